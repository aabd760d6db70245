#include <gradus/ops/layer_norm.h>
