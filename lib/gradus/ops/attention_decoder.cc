#include <gradus/ops/attention_decoder.h>
