#include <gradus/ops/shape.h>
