#pragma once

// All ops.

#include <gradus/ops/activation.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/attention.h>
#include <gradus/ops/attention_decoder.h>
#include <gradus/ops/attention_sequence.h>
#include <gradus/ops/cross_entropy.h>
#include <gradus/ops/dropout.h>
#include <gradus/ops/embedding.h>
#include <gradus/ops/gru.h>
#include <gradus/ops/layer_norm.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/output_loss.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/shape.h>
#include <gradus/ops/softmax.h>
