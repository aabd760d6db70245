#include <gradus/ops/embedding.h>
