#pragma once

// All ops.

#include <gradus/ops/activation.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/attention.h>
#include <gradus/ops/attention_decoder.h>
#include <gradus/ops/attention_scores.h>
#include <gradus/ops/concat_rows.h>
#include <gradus/ops/cross_entropy.h>
#include <gradus/ops/dropout.h>
#include <gradus/ops/embedding.h>
#include <gradus/ops/gru.h>
#include <gradus/ops/join_directions.h>
#include <gradus/ops/layer_norm.h>
#include <gradus/ops/location_features.h>
#include <gradus/ops/loss.h>
#include <gradus/ops/lstm.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/output_loss.h>
#include <gradus/ops/recurrent_weights.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/rnn.h>
#include <gradus/ops/scaled_dot_product_attention.h>
#include <gradus/ops/shape.h>
#include <gradus/ops/softmax.h>
#include <gradus/ops/where.h>
