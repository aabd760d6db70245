#pragma once

// What the tests of the recurrent units share.

#include <functional>

#include <gradus/nn/recurrent.h>

#include "helpers.h"

namespace gradus::test {

using nn::CellKind;
using nn::CellType;
using nn::RecurrentOptions;
using nn::RecurrentOutput;
using nn::RecurrentStack;

inline const Tensor kLengths = Tensor::from_ids({4}, {3, 0, 4, 1});

// For a module with 3 input features: x [4, 4, 3].
inline Tensor input(uint64_t seed = 1, DType dtype = DType::f64) { return random({4, 4, 3}, seed, dtype); }

// Every unit there is, with and without layer normalisation.
inline std::vector<CellType> all_cells() {
  std::vector<CellType> out;
  for (const std::string& name : nn::cell_names())
    for (bool layer_norm : {false, true}) {
      out.push_back(nn::cell_type(name));
      out.back().layer_norm = layer_norm;
    }
  return out;
}

inline std::string text_of(const CellType& c) {
  std::string kind = c.kind == CellKind::rnn ? "rnn" : c.kind == CellKind::gru ? "gru" : "lstm";
  return kind + (c.nonlinearity == nn::Nonlinearity::relu ? ", relu" : "") +
         (c.reset_after ? "" : ", reset before") + (c.bahdanau ? ", bahdanau" : "") +
         (c.layer_norm ? ", layer norm" : "");
}

inline RecurrentOptions options_of(const CellType& cell, int64_t layers = 2, bool bidirectional = true) {
  return {.num_layers = layers, .bidirectional = bidirectional, .cell = cell};
}

inline RecurrentStack stack_of(const RecurrentOptions& options, Rng& rng, int64_t input_size = 3) {
  return RecurrentStack("Stack", input_size, 4, rng, options);
}

inline nn::RecurrentState start_of(const RecurrentOptions& o, uint64_t seed, DType dtype = DType::f64) {
  Shape shape{o.num_layers * (*o.bidirectional ? 2 : 1), 4, 4};
  bool lstm = o.cell.kind == CellKind::lstm;
  return {random(shape, seed, dtype), lstm ? Var(random(shape, seed + 1, dtype)) : Var()};
}

inline void set(Parameter& p, const std::function<double(int64_t row, int64_t column)>& f) {
  p.update([&](const Tensor& t) {
    int64_t columns = t.dims() == 2 ? t.size(1) : 1;
    for (int64_t i = 0; i < t.numel(); ++i) t.set(i, f(i / columns, i % columns));
  });
}

inline double one_if_equal(int64_t a, int64_t b) { return a == b ? 1 : 0; }
}  // namespace gradus::test
