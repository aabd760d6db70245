#include <gradus/ops/activation.h>
