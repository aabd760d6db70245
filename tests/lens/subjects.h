#pragma once

#include <string>

#include "explain/explain.h"

namespace lens::test {

struct Small {
  std::string attention = "bahdanau", cell = "gru", decoder = "auto", readout = "tanh";
  bool bidirectional = true, input_feeding = true, residual = false, layer_norm = false;
  int64_t layers = 1;
  double temperature = 1;
  uint64_t seed = 1;
  std::string source = "the cat eats fish";
  /// the model reads and writes pieces: "the", "eats" and "mange" are some, others several
  bool subwords = false;
  /// pieces are what is shown
  bool pieces = false;
  bool reverse = false;
  int64_t top_k = 0;
};

/// A fresh model of 8 units over a dozen words, or pieces, and "the cat eats fish" with a target of three
/// words.
Subject subject(const Small& s = {}, const std::string& target = "le chat mange");

/// It and all that is computed of it.
struct Traced {
  Subject subject;
  Dissection d;
  SentenceTrace trace;
  explicit Traced(const Small& s = {}, const std::string& target = "le chat mange")
      : subject(test::subject(s, target)), d(subject.dissect()), trace(trace_sentence(d)) {}
};

struct SmallTransformer {
  bool norm_first = true, causal = true;
  double temperature = 1;
  std::string activation = "relu", positions = "sinusoidal";
  uint64_t seed = 1;
  std::string source = "the cat eats fish";
  /// as Small's
  bool subwords = false;
  bool pieces = false;
};

/// A fresh Transformer of 2 + 2 layers, 8 units and 2 heads over the same words.
Subject transformer_subject(const SmallTransformer& s, const std::string& target = "le chat mange");

/// What the schema has against a trace, first of all; "" where nothing.
std::string fault_of(const json& trace);

/// How often a part occurs.
size_t count(const std::string& text, const std::string& part);

}  // namespace lens::test
