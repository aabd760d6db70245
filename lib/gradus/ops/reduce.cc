#include <gradus/ops/reduce.h>
