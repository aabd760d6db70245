#include <gradus/ops/cross_entropy.h>
