#include <gradus/ops/arithmetic.h>
