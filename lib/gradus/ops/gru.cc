#include <gradus/ops/gru.h>
