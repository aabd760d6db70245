#include <gradus/ops/softmax.h>
