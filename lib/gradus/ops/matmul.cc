#include <gradus/ops/matmul.h>
