// Sentences as numbers and back: batches, alignments, translation in batches.

#include <algorithm>

#include <gradus/nn/search.h>

#include "../about.h"
#include "../check.h"
#include "tiny.h"
#include <translator/inference/translation.h>

using namespace gradus;
using namespace translator;

namespace {

std::vector<int32_t> ids(const Tensor& t) { return {t.i32(), t.i32() + t.numel()}; }

}  // namespace

TEST_CASE("a batch, entry by entry: <s> before what goes in, </s> behind what comes out, padding") {
  const int32_t p = nn::kPad, b = nn::kBos, e = nn::kEos;
  std::vector<EncodedPair> pairs = {{{9, 9, e}, {9}}, {{4, 5, e}, {6, 7, 8}}, {{5, e}, {7}}, {{e}, {}}};
  nn::Seq2SeqBatch batch = make_batch(pairs, {1, 2, 3});
  CHECK(batch.source.shape() == Shape{3, 3});
  CHECK(ids(batch.source) == std::vector<int32_t>{4, 5, e, 5, e, p, e, p, p});
  CHECK(ids(batch.source_lengths) == std::vector<int32_t>{3, 2, 1});
  CHECK(ids(batch.target_in) == std::vector<int32_t>{b, b, b, 6, 7, p, 7, p, p, 8, p, p});
  CHECK(ids(batch.target_out) == std::vector<int32_t>{6, 7, e, 7, e, p, 8, p, p, e, p, p});
  CHECK(batch.target_tokens == 7);
  CHECK_FALSE(batch.alignment.defined());
}

TEST_CASE("a source batch, entry by entry") {
  SourceBatch batch = make_source_batch({{4}, {5, 6, 7}, {8, 9}});
  const int32_t p = nn::kPad;
  CHECK(ids(batch.ids) == std::vector<int32_t>{4, 5, 8, p, 6, 9, p, 7, p});
  CHECK(ids(batch.lengths) == std::vector<int32_t>{1, 3, 2});
}

TEST_CASE("gold alignments as weights: shares of the linked words, of all words without a link, </s> to </s>") {
  const int32_t e = nn::kEos;
  std::vector<EncodedPair> pairs = {{{4, 5, e}, {6, 7}, {{0, 0}, {1, 0}}}, {{4, e}, {6}, {{0, 0}}}};
  Tensor w = make_batch(pairs, {0, 1}).alignment;
  REQUIRE(w.shape() == Shape{3, 2, 3});
  const float third = 1.0f / 3;
  const std::vector<float> expected = {0.5f, 0.5f, 0, 1, 0, 0, third, third, third, 0, 1, 0, 0, 0, 1, 0, 0, 0};
  CHECK(std::vector<float>(w.f32(), w.f32() + w.numel()) == expected);
  // One pair with links is enough.
  pairs[1].links.clear();
  w = make_batch(pairs, {1, 0}).alignment;
  REQUIRE(w.defined());
  CHECK(w.at(0) == 0.5);
  CHECK(w.at(1) == 0.5);
}

TEST_CASE("pairs become ids, with their links where the model takes them") {
  auto pairs = tiny::pairs();
  for (const char* attention : {"oracle", "bahdanau"}) {
    Model model = tiny::model(attention);
    CHECK(model.takes_alignments() == (std::string(attention) == "oracle"));
    auto encoded = encode(pairs, model);
    REQUIRE(encoded.size() == pairs.size());
    for (size_t i = 0; i < pairs.size(); ++i) {
      std::vector<int32_t> source = model.source.encode(pairs[i].source);
      source.push_back(nn::kEos);
      CHECK(encoded[i].source == source);
      CHECK(encoded[i].target == model.target.encode(pairs[i].target));
      CHECK(encoded[i].links == (model.takes_alignments() ? pairs[i].alignment->sure : Links{}));
      CHECK(encode(pairs, model, {.links = true})[i].links == pairs[i].alignment->sure);
    }
  }
}

TEST_CASE("links may stand in any order") {
  auto pairs = tiny::pairs();
  const Model model = tiny::model();
  const auto before = encode(pairs, model, {.links = true});
  for (SentencePair& p : pairs) std::reverse(p.alignment->sure.begin(), p.alignment->sure.end());
  const auto after = encode(pairs, model, {.links = true});
  for (size_t i = 0; i < pairs.size(); ++i) CHECK(after[i].links == before[i].links);
}

TEST_CASE("many sentences translated together come out as each does alone, in their order, on any threads") {
  Model model = tiny::model();
  std::vector<std::string> texts;
  for (int i = 0; i < 150; ++i) {  // more than two batches
    std::vector<std::string> words;
    for (int w = 0; w < i % 7; ++w)
      words.push_back(tiny::pairs()[static_cast<size_t>(i * w % 6)].source[w % 2]);
    texts.push_back(join_tokens(words));
  }
  const std::vector<Segmented> sources = tiny::split(model, texts);
  auto generator = model.network->generator();
  for (int threads : {1, 2, 4}) {
    CAPTURE(threads);
    std::vector<int64_t> told;
    const Work work{.threads = threads, .on_progress = [&](int64_t done) { told.push_back(done); }};
    auto all = translate(model, *generator, sources, {.beam_size = 2, .weights = true}, work);
    REQUIRE(all.size() == sources.size());
    CHECK(std::is_sorted(told.begin(), told.end()));
    REQUIRE(!told.empty());
    CHECK(told.back() == 150);
    if (threads == 1) CHECK(told == std::vector<int64_t>{37, 65, 86, 102, 118, 134, 150});
    for (size_t i = 0; i < sources.size(); ++i) {
      CAPTURE(i);
      auto alone = translate(model, *generator, std::vector{sources[i]}, {.beam_size = 2, .weights = true});
      REQUIRE(all[i].size() == alone[0].size());
      for (size_t k = 0; k < all[i].size(); ++k) {
        CHECK(all[i][k].tokens == alone[0][k].tokens);
        CHECK(all[i][k].log_probability == about(alone[0][k].log_probability, 1e-4));
        REQUIRE(all[i][k].weights.size() == alone[0][k].weights.size());
        for (const auto& row : all[i][k].weights) CHECK(row.size() == sources[i].pieces.size() + 1);
      }
    }
  }
  // Weights only for those who ask.
  CHECK(translate(model, std::vector{sources[6]})[0][0].weights.empty());
}

TEST_CASE("an unknown word in a translation is the source word it looks at") {
  // A model that says <unk> first: its bias.
  Model model = tiny::model();
  tiny::set(model, "output.bias", nn::kUnk, 50);
  const std::vector<std::string> source = {"she", "strange", "eats"};
  auto found =
      translate(model, tiny::split(model, {"she strange eats"}), {.max_length = 5, .weights = true})[0][0];
  REQUIRE(found.tokens.size() == 5);
  for (size_t t = 0; t < 5; ++t) {
    const auto& row = found.weights[t];
    size_t largest = static_cast<size_t>(std::max_element(row.begin(), row.begin() + 3) - row.begin());
    CHECK(found.tokens[t] == source[largest]);
  }
  // Without a source word there is none to take.
  const auto none = translate(model, std::vector<Segmented>(1), {.max_length = 2})[0][0];
  CHECK(none.tokens == std::vector<std::string>{"<unk>", "<unk>"});
}

TEST_CASE("a checksum tells where one text ends and the next one begins") {
  const auto of = [](const std::string& source, const std::string& target) {
    return checksum_of({tiny::pair(source, target)});
  };
  CHECK(of("she eats", "elle") == of("she eats", "elle"));
  CHECK(of("she eats", "elle") != of("she", " eatselle"));
}
