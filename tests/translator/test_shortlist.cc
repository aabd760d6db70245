// The words that a sentence is translated with, where not all of the vocabulary is asked.

#include <algorithm>

#include <common/error.h>
#include <translator/model/shortlist.h>

#include "../io/scratch.h"
#include "../quick_doctest.h"

using namespace translator;

TEST_CASE("a shortlist has the words that are usual, and those that go with each source word most often") {
  std::vector<EncodedPair> pairs;
  auto add = [&](int times, int32_t source, int32_t target) {
    for (int i = 0; i < times; ++i) pairs.push_back({{source}, {target}});
  };
  add(40, 4, 10), add(30, 5, 11), add(20, 6, 12), add(9, 7, 13), add(3, 7, 14), add(1, 7, 15);
  gradus::ThreadPool pool(1);
  const Shortlist list = Shortlist::learn(pairs, 8, 16, pool, {});  // three usual words, two linked ones
  CHECK(list.words_for({}, {}) == std::vector<int32_t>{0, 1, 2, 3, 10, 11, 12});
  CHECK(list.words_for({7}, {}) == std::vector<int32_t>{0, 1, 2, 3, 10, 11, 12, 13, 14});
  CHECK(list.words_for({}, {15}).back() == 15);

  scratch::Directory directory;
  const std::string path = directory.file("shortlist.safetensors");
  list.save(path);
  CHECK(Shortlist::load(path, 8, 15).words_for({7}, {}) == list.words_for({7}, {}));
  CHECK_THROWS_AS(Shortlist::load(path, 9, 15), InputError);
  CHECK_THROWS_AS(Shortlist::load(path, 8, 14), InputError);  // it has word 14
}
