// Models whose tokens are pieces: links and weights are of words all the same.

#include <translator/inference/evaluation.h>
#include <translator/inference/translation.h>
#include <translator/training/insight.h>

#include <algorithm>
#include <cmath>

#include "../about.h"
#include "../pieces.h"
#include "../quick_doctest.h"
#include "tiny.h"

using namespace translator;
using gradus::testing::no_pieces;

namespace {

std::shared_ptr<const Subwords> learnt(std::string SentencePair::*side) {
  TokenCounts counts;
  for (const SentencePair& p : tiny::pairs()) Segmenter({.letter_case = "keep"}).count_words(p.*side, counts);
  return std::make_shared<Subwords>(Subwords::learn(counts, {.size = 290, .quiet = true}));
}

// So few pieces that most words have several.
Model pieces_model(const std::string& attention) {
  ModelConfig config;
  config.network.hidden_size = config.network.embedding_dim = 8;
  config.network.attention = attention;
  config.subwords = "bpe";
  config.letter_case = "keep";
  TextModels text{.source = learnt(&SentencePair::source_text), .target = learnt(&SentencePair::target_text)};
  const Vocabulary source = text.source->vocabulary(), target = text.target->vocabulary();
  return Model(config, source, target, 3, text);
}

}  // namespace

TEST_CASE("pieces: the links of a word are those of each of its pieces, and </s> has its own") {
  if (no_pieces()) return;
  const Model model = pieces_model("oracle");
  const auto pairs = tiny::pairs();
  const auto encoded = encode(pairs, model);
  for (size_t i = 0; i < pairs.size(); ++i) {
    CAPTURE(i);
    const Segmented source = model.reads.split(pairs[i].source_text),
                    target = model.writes.split(pairs[i].target_text);
    CHECK(source.words == pairs[i].source);
    CHECK(source.pieces.size() > source.words.size());
    CHECK(encoded[i].source.size() == source.pieces.size() + 1);
    CHECK(encoded[i].target.size() == target.pieces.size());
    CHECK(std::count(encoded[i].source.begin(), encoded[i].source.end(), Vocabulary::kUnknown) == 0);
    Links wanted;
    for (size_t s = 0; s < source.pieces.size(); ++s)
      for (size_t t = 0; t < target.pieces.size(); ++t)
        for (const Link& link : pairs[i].alignment->sure)
          if (link == Link{source.word_of[s], target.word_of[t]})
            wanted.push_back({static_cast<int32_t>(s), static_cast<int32_t>(t)});
    CHECK(encoded[i].links == wanted);
    CHECK(wanted.size() > pairs[i].alignment->sure.size());
  }
  // A model that is given the gold alignment has no alignment error in words; "forms" without links are free.
  CHECK(*evaluate(model, pairs).aer == 0);
}

TEST_CASE(
    "pieces: a picture has a row and a column for each word, whose rows sum to 1, and the same in pieces") {
  if (no_pieces()) return;
  const Model model = pieces_model("bahdanau");
  const Segmented source = model.reads.split("she sees a red house today");
  const Translation t = translate(model, {source}, {.max_length = 12, .weights = true})[0].at(0);
  const Segmented target = model.writes.words_of(t.tokens);
  const WordPicture words = picture_of(source, target, t.weights),
                    pieces = picture_of_pieces(source, target, t.weights);
  CHECK(pieces.source.size() == source.pieces.size() + 1);
  CHECK(pieces.target.size() == t.weights.size());
  CHECK(pieces.weights == t.weights);
  CHECK(words.source == std::vector<std::string>{"she", "sees", "a", "red", "house", "today", "</s>"});
  REQUIRE(words.weights.size() == words.target.size());
  for (const auto& row : words.weights) {
    REQUIRE(row.size() == words.source.size());
    float sum = 0;
    for (float w : row) sum += w;
    CHECK(std::abs(sum - 1) < 1e-5f);
  }
  // One entry by hand: the mean over a target word's pieces of the sum over a source word's.
  double entry = 0, rows = 0;
  for (size_t i = 0; i < target.pieces.size(); ++i) {
    if (target.word_of[i] != 0) continue;
    ++rows;
    for (size_t j = 0; j < source.pieces.size(); ++j)
      if (source.word_of[j] == 4) entry += t.weights[i][j];
  }
  CHECK(std::abs(words.weights[0][4] - entry / rows) < 1e-6);
  const ProbeResult shown = probe(model, tiny::pairs()[3]);
  CHECK(shown.source == words.source);
}

TEST_CASE("pieces: dropout splits the same text otherwise, and padding and order change nothing") {
  if (no_pieces()) return;
  const Model model = pieces_model("bahdanau");
  const auto pairs = tiny::pairs();
  std::vector<EncodedPair> a, b, c;
  Subwords::seeded(5, [&] { a = encode(pairs, model, {.dropout = 0.5}); });
  Subwords::seeded(5, [&] { b = encode(pairs, model, {.dropout = 0.5}); });
  Subwords::seeded(6, [&] { c = encode(pairs, model, {.dropout = 0.5}); });
  auto same = [](const std::vector<EncodedPair>& x, const std::vector<EncodedPair>& y) {
    return std::equal(x.begin(), x.end(), y.begin(), [](const EncodedPair& p, const EncodedPair& q) {
      return p.source == q.source && p.target == q.target;
    });
  };
  CHECK(same(a, b));
  CHECK_FALSE(same(a, c));
  for (size_t i = 0; i < pairs.size(); ++i)
    CHECK(model.writes.join(model.target.decode(a[i].target)) == pairs[i].target_text);
  std::vector<SentencePair> turned(pairs.rbegin(), pairs.rend());
  CHECK(evaluate(model, turned).nll == about(evaluate(model, pairs).nll, 1e-6));
}
