#include <gradus/io/safetensors.h>
