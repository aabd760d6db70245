// Links learnt from pairs alone, against those of a grammar and of a dictionary.

#include <algorithm>
#include <set>

#include <gradus/random.h>
#include <translator/corpus/corpus.h>
#include <translator/doctor/aligner.h>

#include "../about.h"
#include "../quick_doctest.h"

using namespace translator;

namespace {

double error_rate(const std::vector<Links>& links, const std::vector<SentencePair>& pairs) {
  AlignmentScore score;
  for (size_t i = 0; i < pairs.size(); ++i) score.add(links[i], *pairs[i].alignment);
  return score.error_rate();
}

std::vector<Links> linked(const std::vector<SentencePair>& pairs, int threads = 1,
                          const doctor::AlignerOptions& options = {}) {
  gradus::ThreadPool pool(threads);
  return doctor::align_words(pairs, pool, options);
}

// Sentences of 3 to 8 words of a language of 60, in the same order with "the" put in, or from the end.
std::vector<SentencePair> dictionary(bool reversed, size_t count) {
  gradus::Rng rng(3);
  std::vector<SentencePair> out(count);
  for (SentencePair& p : out) {
    p.alignment.emplace();
    const int64_t n = 3 + rng.below(6);
    for (int64_t i = 0; i < n; ++i) p.source.push_back("s" + std::to_string(rng.below(60)));
    for (int64_t i = 0; i < n; ++i) {
      const int64_t from = reversed ? n - 1 - i : i;
      if (i % 3 == 1) p.target.push_back("the");
      p.alignment->sure.push_back({static_cast<int32_t>(from), static_cast<int32_t>(p.target.size())});
      p.target.push_back("t" + p.source[static_cast<size_t>(from)].substr(1));
    }
  }
  return out;
}

}  // namespace

TEST_CASE("word aligner: words that translate each other are linked in any order, words of no word are not") {
  for (bool reversed : {false, true}) {
    CAPTURE(reversed);
    const auto pairs = dictionary(reversed, 1000);
    CHECK(error_rate(linked(pairs), pairs) < (reversed ? 0.2 : 0.05));  // what is near is likelier
  }
}

TEST_CASE("word aligner: of the grammar's sentences nearly all links are found") {
  const Corpus corpus = generate_corpus({.train = 3000, .valid = 0, .test = 0});
  CHECK(error_rate(linked(corpus.train), corpus.train) < 0.1);
  double last = 0;
  const auto some = linked(corpus.train, 1, {.most = 20'000, .on_progress = [&](double share) {
                                               CHECK(share > last);
                                               last = share;
                                             }});
  CHECK(last == 1);
  CHECK(some.size() == corpus.train.size());
  const double error = error_rate(some, corpus.train);  // learnt from a fifth
  CHECK(error > error_rate(linked(corpus.train), corpus.train));
  CHECK(error < 0.3);
}

TEST_CASE("word aligner: links lie in their sentences, are sorted, and the same with any number of threads") {
  auto pairs = dictionary(false, 200);
  pairs.resize(203);  // one with nothing on either side, and
  pairs[201].source = {"s1"};
  pairs[202].source = {"once"};
  pairs[202].target = {"jamais", "jamais"};
  const auto links = linked(pairs);
  CHECK(linked(pairs, 2) == links);
  CHECK(linked(pairs, 3) == links);
  for (size_t i = 0; i < pairs.size(); ++i) {
    CHECK(fits({.sure = links[i]}, static_cast<int64_t>(pairs[i].source.size()),
               static_cast<int64_t>(pairs[i].target.size())));
    CHECK(std::is_sorted(links[i].begin(), links[i].end()));
    CHECK(std::set<Link>(links[i].begin(), links[i].end()).size() == links[i].size());
  }
  CHECK(links[200].empty());
  CHECK(links[201].empty());
  CHECK(links[202] == Links{{0, 0}, {0, 1}});
  CHECK(linked({}).empty());
  // One endless pair costs no more than a long one, and the others are still linked.
  for (int i = 0; i < 50'000; ++i) {
    pairs[202].source.push_back("u" + std::to_string(i));
    pairs[202].target.push_back("v" + std::to_string(i));
  }
  const auto beside = linked(pairs);
  CHECK(beside[202].size() <= 2 * 200);
  pairs.resize(200);
  CHECK(error_rate(beside, pairs) < 0.2);
}
