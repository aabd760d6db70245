#pragma once

#include <string>
#include <vector>

#include <translator/model/model.h>
#include <translator/text/parallel.h>

// A model of a few numbers and the pairs that it learns from.

namespace fuzzing {

inline std::vector<translator::SentencePair> few_pairs() {
  std::vector<translator::SentencePair> out;
  for (const char* words : {"a b", "b a", "a", "b b a", "c", "a c"}) {
    translator::SentencePair p;
    for (const char* c = words; *c; ++c)
      if (*c != ' ')
        p.source.emplace_back(1, *c), p.target.emplace_back(1, static_cast<char>(*c - 'a' + 'x'));
    p.source_text = words;
    p.target_text = "x";
    out.push_back(std::move(p));
  }
  return out;
}

inline translator::Vocabulary words_of(const char* letters) {
  translator::TokenCounts counts;
  for (; *letters; ++letters) counts.add(std::string(1, *letters));
  return translator::Vocabulary::build(counts);
}

inline translator::ModelConfig small_config(const std::string& kind) {
  translator::ModelConfig c;
  c.model = kind;
  c.network.embedding_dim = c.network.hidden_size = c.transformer.d_model = 4;
  c.transformer.num_heads = 2;
  c.transformer.num_layers = 1;
  c.transformer.dim_feedforward = 4;
  return c;
}

inline translator::Model small_model(const std::string& kind) {
  return translator::Model(small_config(kind), words_of("abc"), words_of("xyz"), 7);
}

}  // namespace fuzzing
