#pragma once

#include <cstdint>
#include <vector>

#include <gradus/autograd.h>
#include <gradus/nn/encoder.h>
#include <gradus/nn/seq2seq.h>

namespace lens {

/// A source, read state by state: what one hands on to the next can be told from what attention reads of it.
struct Reading {
  /// [S, 1, E], the embeddings
  gradus::Var words;
  /// [S, 1, D]
  gradus::Var annotations;
  // Of the last layer, by position; the backward ones are empty in an encoder of one direction, whichever.
  /// [1, H] states: what arrives here is the whole gradient
  std::vector<gradus::Var> forward, backward;
  /// the same states as the next one sees them
  std::vector<gradus::Var> forward_link, backward_link;
  /// as the decoder's first state sees them
  gradus::Var forward_start, backward_start;
  /// the word that the forward ones end with
  size_t forward_end;
  /// all of it as a decoder takes it
  gradus::nn::Encoded encoded;
};

/// Where `shift` [S, directions H] is defined it is added to the states as they are made, so that everything
/// that comes after sees it: for finite differences.
Reading read_source(const gradus::nn::Encoder& encoder, const std::vector<int32_t>& source,
                    const gradus::Tensor& shift = {});

/// One sentence pair, each with </s> at its end, as the network is trained on it.
gradus::nn::Seq2SeqBatch batch_of(const std::vector<int32_t>& source, const std::vector<int32_t>& target);

/// What a backward must keep for the gradients of the states, and of what each hands on.
std::vector<gradus::Var> arrivals(const Reading& reading);
/// Adds the gradient of x, if anything arrived there, to `sum` [S, D], from this row and column on.
void add_gradient(const gradus::Tensor& sum, const gradus::Gradients& grads, const gradus::Var& x,
                  int64_t row = 0, int64_t column = 0);
/// The same of states of both directions, a row a word; the backward ones may be missing.
void add_gradients(const gradus::Tensor& sum, const gradus::Gradients& grads,
                   const std::vector<gradus::Var>& forward, const std::vector<gradus::Var>& backward);
/// And of what the decoder's first state starts from.
void add_start_gradients(const gradus::Tensor& sum, const gradus::Gradients& grads, const Reading& reading);

}  // namespace lens
