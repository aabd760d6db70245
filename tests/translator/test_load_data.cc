// Which sentence pairs train, which judge, which are shown.

#include <set>

#include <translator/model/data.h>
#include <translator/text/tokenizer.h>

#include "../io/scratch.h"

using namespace translator;

namespace {

DataOptions from(const std::string& data, const std::string& valid = "") {
  DataOptions o;
  o.data = data;
  o.valid = valid;
  return o;
}

// So many different pairs: "s0 x" and "t0 y", ...
std::string numbered(int n) {
  std::string text;
  for (int i = 0; i < n; ++i) text += "s" + std::to_string(i) + " x\tt" + std::to_string(i) + " y\n";
  return text;
}

std::vector<std::string> sources(const std::vector<SentencePair>& pairs) {
  std::vector<std::string> out;
  for (const SentencePair& p : pairs) out.push_back(join_tokens(p.source));
  return out;
}

}  // namespace

TEST_CASE("a twentieth is held out, at equal distances, and its sentences leave the training data") {
  scratch::Directory directory;
  const std::string path = directory.file("pairs.tsv");
  // The first sentence comes a second time, with another translation.
  scratch::write(path, numbered(249) + "s0 x\tother z\n");
  Data data = load_data(from(path));
  CHECK_FALSE(data.embedded);
  REQUIRE(data.valid.size() == 12);
  std::vector<std::string> expected;
  for (int i = 0; i < 12; ++i) expected.push_back("s" + std::to_string(20 * i) + " x");
  CHECK(sources(data.valid) == expected);
  CHECK(data.train.size() == 250 - 12 - 1);
  CHECK(data.given == 250);
  std::set<std::string> held(expected.begin(), expected.end());
  for (const std::string& s : sources(data.train)) CHECK(held.count(s) == 0);
  REQUIRE(data.reports.size() == 2);
  CHECK(data.reports[0] == path + ": 250 of 250 lines read");
  CHECK(data.reports[1] == "no validation data given: 12 pairs held out of the training data");
  // Three of them are shown, from its beginning and its thirds.
  CHECK(sources(data.probes) == std::vector<std::string>{"s0 x", "s80 x", "s160 x"});
}

TEST_CASE("few pairs: all train; with validation data none is held out") {
  scratch::Directory directory;
  scratch::write(directory.file("few.tsv"), numbered(199));
  Data few = load_data(from(directory.file("few.tsv")));
  CHECK(few.train.size() == 199);
  CHECK(few.valid.empty());
  CHECK(few.probes.size() == 3);  // of what is learnt
  REQUIRE(few.reports.size() == 2);
  CHECK(few.reports[1] == "no pairs are held out of " + directory.file("few.tsv") +
                              " for validation, as of any fewer than 200: --valid names some");
  scratch::write(directory.file("more.tsv"), numbered(200));
  const Data several = load_data(from(directory.file("few.tsv") + "," + directory.file("more.tsv")));
  CHECK(several.train.size() == 399);
  CHECK(several.given == 399);
  CHECK(several.reports.back() == few.reports.back());
  CHECK(load_data(from(directory.file("more.tsv"))).valid.size() == 10);
  scratch::write(directory.file("twenty.tsv"), numbered(20));
  scratch::write(directory.file("judge.tsv"), "a\tb\nc\td\nbad line\n");
  Data judged = load_data(from(directory.file("twenty.tsv"), directory.file("judge.tsv")));
  CHECK(judged.train.size() == 20);
  CHECK(sources(judged.valid) == std::vector<std::string>{"a", "c"});
  CHECK(sources(judged.probes) == std::vector<std::string>{"a", "c"});
  REQUIRE(judged.reports.size() == 3);
  CHECK(judged.reports[1] == directory.file("judge.tsv") + ": 2 of 3 lines read, 1 bad");
  CHECK(judged.reports[2].substr(0, 2) == "  ");
}

TEST_CASE("two files are read line by line, for training and for validation") {
  scratch::Directory directory;
  scratch::write(directory.file("a"), "one\ntwo\n");
  scratch::write(directory.file("b"), "un\ndeux\n");
  DataOptions o;
  o.source = o.valid_target = directory.file("a");
  o.target = o.valid_source = directory.file("b");
  Data data = load_data(o);
  CHECK(sources(data.train) == std::vector<std::string>{"one", "two"});
  CHECK(sources(data.valid) == std::vector<std::string>{"un", "deux"});
  CHECK(data.given == 2);
  CHECK(data.valid[1].target == std::vector<std::string>{"two"});
}

TEST_CASE("the embedded corpus: so many pairs as asked for, with texts and links") {
  DataOptions o;
  o.corpus_size = 300;
  CHECK(load_data(o).given == 300);
  auto pairs = embedded_pairs("test", 30, {.max_length = 9});
  REQUIRE(pairs.size() == 30);
  auto train = embedded_pairs("train", 50, {.max_length = 9}),
       valid = embedded_pairs("valid", 30, {.max_length = 9});
  CHECK(train.size() == 50);
  CHECK(sources(valid) != sources(pairs));
  for (const SentencePair& p : pairs) {
    CHECK(p.source.size() <= 9);
    CHECK(tokenize(p.source_text, {}) == p.source);
    CHECK(tokenize(p.target_text, {}) == p.target);
    REQUIRE(p.alignment);
    CHECK(!p.alignment->sure.empty());
    CHECK(fits(*p.alignment, static_cast<int64_t>(p.source.size()), static_cast<int64_t>(p.target.size())));
  }
}
