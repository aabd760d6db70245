#include <gradus/ops/dropout.h>
