#include <gradus/ops/attention.h>
