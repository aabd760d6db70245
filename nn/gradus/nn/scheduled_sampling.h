#pragma once

#include <gradus/nn/incremental.h>
#include <gradus/nn/seq2seq.h>
#include <gradus/random.h>

namespace gradus::nn {

/// Scheduled sampling (Bengio et al. 2015): what the decoder is fed in training, with each word of the
/// reference replaced by the model's own (its most probable word, never <pad> or <s>) with this probability.
/// The word at t follows from the mixed words before it, mistakes included. No gradient passes through the
/// choice of a word: train on the batch with the result as its target_in, and the gradient is the method's.
/// The model decodes as at test time, without dropout: call this outside of Training.
/// @return target_in i32 [T, B]; <s> and padding stay.
/// @throws Error when the probability is not in [0, 1].
Tensor scheduled_sampling(const Generator& generator, const Seq2SeqBatch& batch, double probability,
                          const RngInput& rng);

}  // namespace gradus::nn
