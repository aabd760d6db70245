// The batches of an epoch, by pairs and by tokens, and gradients that are summed over several.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <set>

#include <translator/training/epoch.h>
#include <translator/training/trainer.h>

#include "../about.h"
#include "../io/scratch.h"
#include "tiny.h"

using namespace gradus;
using namespace translator;

namespace {

const std::atomic<bool> kRunsOn{false};

// Pairs of 1 to 12 tokens on either side.
std::vector<EncodedPair> pairs_of(size_t n) {
  std::vector<EncodedPair> out(n);
  for (size_t i = 0; i < n; ++i) {
    out[i].source.assign(1 + i * 7 % 12, 5);
    out[i].target.assign(i * 5 % 12, 5);
  }
  return out;
}

size_t padded(const std::vector<EncodedPair>& pairs, const Batch& batch) {
  size_t source = 0, target = 0;
  for (size_t i : batch) {
    source = std::max(source, pairs[i].source.size());
    target = std::max(target, pairs[i].target.size() + 1);
  }
  return batch.size() * (source + target);
}

void each_once(const std::vector<Batch>& batches, size_t n) {
  std::set<size_t> seen;
  for (const Batch& b : batches)
    for (size_t i : b) CHECK(seen.insert(i).second);
  CHECK(seen.size() == n);
}

tiny::Values trained(const TrainOptions& o, const Model& start, double* loss = nullptr) {
  Model model = tiny::model();
  nn::load_state_dict(*model.network, nn::state_dict(*start.network));
  Trainer trainer(model, tiny::pairs(), tiny::pairs(), o);
  REQUIRE(trainer.run(kRunsOn));
  if (loss) *loss = trainer.validations().back().train_loss;
  return tiny::weights(model);
}

}  // namespace

TEST_CASE("batches by pairs have as many each, and lengths so alike that they pad little") {
  const auto pairs = pairs_of(1000);
  const EpochOptions o{.batch_size = 16, .seed = 3};
  const std::vector<Batch> batches = epoch_batches(pairs, 0, o);
  each_once(batches, pairs.size());
  size_t all = 0, tokens = 0, short_of = 0;
  for (const Batch& b : batches) all += padded(pairs, b), short_of += b.size() != 16;
  for (const EncodedPair& p : pairs) tokens += p.source.size() + p.target.size() + 1;
  CHECK(short_of == 1);  // 1000 = 62 * 16 + 8
  CHECK(all * 100 < tokens * 105);
  CHECK(epoch_batches(pairs, 0, o) == batches);
  CHECK(epoch_batches(pairs, 1, o) != batches);
  // Which batch comes when is no matter of its length.
  auto length = [&](const Batch& b) { return pairs[b[0]].target.size(); };
  CHECK(!std::is_sorted(batches.begin(), batches.end(),
                        [&](const Batch& a, const Batch& b) { return length(a) < length(b); }));
}

TEST_CASE("batches by tokens hold no more of them, padding included, and as many pairs as go in") {
  auto pairs = pairs_of(500);
  pairs.push_back({std::vector<int32_t>(300, 5), {5}});  // too long for any
  for (int64_t tokens : {1, 30, 200, 100000}) {
    CAPTURE(tokens);
    const EpochOptions o{.batch_tokens = tokens, .seed = 3};
    std::vector<Batch> batches = epoch_batches(pairs, 0, o);
    each_once(batches, pairs.size());
    size_t smallest = SIZE_MAX, filled = 0;
    for (const Batch& b : batches) {
      CHECK((b.size() == 1 || padded(pairs, b) <= static_cast<size_t>(tokens)));
      smallest = std::min(smallest, b.size());
      filled += padded(pairs, b) * 10 > static_cast<size_t>(tokens) * 8;
    }
    if (tokens == 200) CHECK(filled * 10 > batches.size() * 8);
    CHECK(epoch_batches(pairs, 0, o) == batches);
    CHECK(epoch_batches(pairs, 1, o).size() == batches.size());
    if (batches.size() > 1) CHECK(epoch_batches(pairs, 1, o) != batches);
  }
}

TEST_CASE("a weight says how often an epoch has a pair, in part by drawing, anew each time") {
  auto pairs = pairs_of(100);
  for (size_t i = 20; i < 60; ++i) pairs[i].weight = 2.25;
  for (size_t i = 60; i < 100; ++i) pairs[i].weight = 0.1;
  auto times = [&](int64_t epoch, size_t from, size_t to) {
    std::map<size_t, int> seen;
    for (size_t i : epoch_pairs(pairs, epoch, 3))
      if (i >= from && i < to) ++seen[i];
    return seen;
  };
  CHECK(epoch_pairs(pairs, 0, 3).size() == 20 + 90 + 4);
  for (const auto& [i, n] : times(0, 0, 20)) CHECK(n == 1);
  int thrice = 0;
  for (const auto& [i, n] : times(0, 20, 60)) {
    CHECK((n == 2 || n == 3));
    thrice += n == 3;
  }
  CHECK(thrice == 10);
  CHECK(times(0, 60, 100).size() == 4);
  CHECK(times(0, 60, 100) == times(0, 60, 100));
  CHECK(times(0, 60, 100) != times(1, 60, 100));
  CHECK(times(0, 20, 60) != times(1, 20, 60));
  // A rare file has one pair at least, and whole weights draw nothing.
  pairs.resize(1);
  pairs[0].weight = 0.001;
  CHECK(epoch_pairs(pairs, 5, 3).size() == 1);
}

TEST_CASE("a tag is the first token of the source, and links move with it") {
  Model model = tiny::model("oracle");
  TokenCounts tags;
  tags.add("<bt>");
  model.extend(model.config, model.source.extended(Vocabulary::build(tags)), model.target, 3);
  std::vector<SentencePair> pairs = tiny::pairs();
  const EncodedPair plain = encode(pairs, model)[1];
  pairs[1].tag = "<bt>";
  pairs[1].weight = 2.5;
  const EncodedPair tagged = encode(pairs, model)[1];
  REQUIRE(tagged.source.size() == plain.source.size() + 1);
  CHECK(tagged.source[0] == model.source.size() - 1);
  CHECK(std::equal(plain.source.begin(), plain.source.end(), tagged.source.begin() + 1));
  CHECK(tagged.target == plain.target);
  CHECK(tagged.weight == 2.5);
  REQUIRE(tagged.links.size() == plain.links.size());
  for (size_t i = 0; i < plain.links.size(); ++i) {
    CHECK(tagged.links[i].source == plain.links[i].source + 1);
    CHECK(tagged.links[i].target == plain.links[i].target);
  }
}

TEST_CASE("batches by pairs have so many of them, but for the last of each pool") {
  auto pairs = pairs_of(523);
  std::vector<Batch> batches = epoch_batches(pairs, 4, {.batch_size = 10, .seed = 3});
  CHECK(batches.size() == 53);
  each_once(batches, pairs.size());
  for (const Batch& b : batches) CHECK((b.size() == 10 || b.size() == 3));
}

TEST_CASE("gradients summed over batches of any sizes make the step of one large batch") {
  Model start = tiny::model();
  scratch::Directory a, b;
  TrainOptions whole = tiny::plain(a), parts = tiny::plain(b);
  whole.batch_size = 6;
  double loss = 0, other = 0;
  auto expected = trained(whole, start, &loss);
  for (auto [size, accumulate] : {std::pair(2, 3), std::pair(4, 2), std::pair(1, 6), std::pair(5, 9)}) {
    CAPTURE(size);
    parts.batch_size = size;
    parts.accumulate = accumulate;
    parts.threads = 2;
    auto seen = trained(parts, start, &other);
    CHECK(other == about(loss, 1e-5));
    for (const auto& [name, numbers] : expected) {
      CAPTURE(name);
      for (size_t i = 0; i < numbers.size(); ++i) REQUIRE(std::abs(seen.at(name)[i] - numbers[i]) < 1e-6);
    }
  }
  // In an epoch of five batches three steps: of two, two and one.
  parts.batch_size = 1;
  parts.accumulate = 4;
  Model model = tiny::model();
  Trainer trainer(model, tiny::pairs(), {}, parts);
  trainer.run(kRunsOn);
  CHECK(trainer.step() == 2);
  CHECK(trainer.epochs() == 1);
}

TEST_CASE("epochs by tokens end where they should, and go on to the same bits") {
  auto run = [](const TrainOptions& o, bool resume) {
    Model model = tiny::model("bahdanau", 0.3);
    Trainer trainer(model, tiny::pairs(), tiny::pairs(), o);
    if (resume) trainer.resume();
    REQUIRE(trainer.run(kRunsOn));
    CHECK(trainer.epochs() == static_cast<double>(o.epochs));
    CHECK(trainer.validations().back().epoch == o.epochs);
    return nn::state_dict(*model.network);
  };
  scratch::Directory a, b;
  TrainOptions o = tiny::plain(a);
  o.batch_tokens = 20;
  o.accumulate = 2;
  o.epochs = 4;
  const nn::StateDict whole = run(o, false);
  o.out = b.path().string();
  for (o.epochs = 1; o.epochs < 4; ++o.epochs) run(o, o.epochs > 1);
  const nn::StateDict parts = run(o, true);
  for (size_t i = 0; i < whole.size(); ++i) CHECK(max_abs_difference(whole[i].second, parts[i].second) == 0);
}

TEST_CASE("word dropout: so many words are <unk>, no other token is, and the parts do not matter") {
  std::vector<EncodedPair> pairs = pairs_of(400);
  for (EncodedPair& p : pairs) p.source.push_back(gradus::nn::kEos);
  std::vector<size_t> all(pairs.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  // What became of each pair, its source and its target side by side.
  auto dropped = [&](int count) {
    auto parts = parts_of(pairs, all, count);
    const auto whole = parts_of(pairs, all, count);
    drop_words(parts, 0.3, Rng(5));
    std::vector<std::vector<int32_t>> out(pairs.size());
    for (size_t k = 0; k < parts.size(); ++k) {
      CHECK(max_abs_difference(parts[k].target_out, whole[k].target_out) == 0);
      const int64_t B = parts[k].source.size(1);
      for (auto ids : {&gradus::nn::Seq2SeqBatch::source, &gradus::nn::Seq2SeqBatch::target_in})
        for (int64_t i = 0; i < (parts[k].*ids).numel(); ++i) {
          const int32_t before = (whole[k].*ids).i32()[i], now = (parts[k].*ids).i32()[i];
          if (before != 5) CHECK(now == before);
          if (before == 5) CHECK((now == 5 || now == gradus::nn::kUnk));
          if (before == 5) out[k + static_cast<size_t>(i % B) * parts.size()].push_back(now);
        }
    }
    return out;
  };
  const auto one = dropped(1);
  size_t words = 0, unknown = 0;
  for (const auto& pair : one)
    for (int32_t id : pair) ++words, unknown += id == gradus::nn::kUnk;
  CHECK(static_cast<double>(unknown) / static_cast<double>(words) == about(0.3, 0.1));
  CHECK(dropped(3) == one);
}
