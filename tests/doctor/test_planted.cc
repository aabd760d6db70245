// Damage planted in sentences of the grammar: all of it is found, and next to nothing else.

#include <translator/doctor/examine.h>
#include <translator/doctor/lexicon.h>
#include <translator/model/data.h>

#include <functional>
#include <map>
#include <set>

#include "../quick_doctest.h"

using namespace translator;
using namespace translator::doctor;

namespace {

constexpr size_t kPairs = 4000;

const std::vector<SentencePair>& sound() {
  static const std::vector<SentencePair> pairs = [] {
    std::vector<SentencePair> out = embedded_pairs("train", kPairs);
    for (size_t i = 0; i < out.size(); ++i) out[i].line = static_cast<int64_t>(i) + 1;
    return out;
  }();
  return pairs;
}

Examination examined(const std::vector<SentencePair>& pairs, const ExamineOptions& options = {},
                     int threads = 2) {
  gradus::ThreadPool pool(threads);
  return examine(pairs, pool, options);
}

void set(SentencePair& p, const std::string& source, const std::string& target) {
  p.source_text = source;
  p.target_text = target;
  p.source = tokenize(source);
  p.target = tokenize(target);
}

// Every 97th pair from `first` on, so many of them, changed.
std::set<size_t> plant(std::vector<SentencePair>& pairs, size_t first, size_t count,
                       const std::function<void(SentencePair&)>& change) {
  std::set<size_t> out;
  for (size_t i = first; out.size() < count; i = (i + 97) % pairs.size()) {
    change(pairs[i]);
    out.insert(i);
  }
  return out;
}

// Of the pairs with a finding of this kind.
std::map<size_t, std::string> found(const Examination& e, Kind kind) {
  std::map<size_t, std::string> out;
  for (const Finding& f : e.findings)
    if (f.kind == kind) out[f.pair] = f.detail;
  return out;
}

size_t hits(const std::map<size_t, std::string>& found, const std::set<size_t>& planted) {
  size_t out = 0;
  for (size_t i : planted) out += found.count(i);
  return out;
}

}  // namespace

TEST_CASE("sound pairs: nothing is found") {
  const Examination e = examined(sound());
  CHECK(e.by_words);
  CHECK_FALSE(e.hopeless);
  CHECK(e.displaced == 0);
  CHECK(e.blocks.empty());
  CHECK(e.findings.size() <= kPairs / 1000);
}

TEST_CASE("each kind of damage is found for what it is") {
  struct Damage {
    Kind kind;
    const char* detail;  // of every one; null: various
    std::function<void(SentencePair&)> change;
  };
  const std::vector<Damage> all = {
      {Kind::copy, nullptr,
       [](SentencePair& p) { set(p, p.source_text + " or not", p.source_text + " or not"); }},
      {Kind::language, nullptr, [](SentencePair& p) { set(p, p.target_text, p.source_text); }},
      {Kind::language, "the target is in another script",
       [](SentencePair& p) { set(p, p.source_text, "Это другое предложение"); }},
      {Kind::odd, "the target has no word", [](SentencePair& p) { set(p, p.source_text, "..."); }},
      {Kind::odd, "the target has no word", [](SentencePair& p) { set(p, p.source_text, "? ?!"); }},
      {Kind::odd, "the source has a control character, U+001B",
       [](SentencePair& p) { set(p, p.source_text + "\x1B", p.target_text); }},
      {Kind::markup, "<b> in the target only",
       [](SentencePair& p) { set(p, p.source_text, "<b>" + p.target_text + "</b>"); }},
      {Kind::numbers, "31 against 13",
       [](SentencePair& p) { set(p, p.source_text + " 31", p.target_text + " 13"); }},
      {Kind::casing, "the source is in capitals",
       [](SentencePair& p) { set(p, "SHE EATS APPLES", "Elle mange des pommes"); }},
      {Kind::capitals, "both sides in capitals",
       [](SentencePair& p) { set(p, "SHE EATS APPLES", "ELLE MANGE DES POMMES"); }},
      {Kind::normalisation, "the target",
       [](SentencePair& p) { set(p, p.source_text, p.target_text + " e\u0301te\u0301"); }},
      {Kind::length, "the source is too short",
       [](SentencePair& p) { set(p, p.source[0], p.target_text + " " + sound()[200].target_text); }},
      {Kind::duplicate, "the same as line 1",
       [](SentencePair& p) { set(p, sound()[0].source_text, sound()[0].target_text); }},
      {Kind::too_long, "51 words", [](SentencePair& p) {
         std::string text = "b";
         for (int i = 0; i < 50; ++i) text += " a";
         set(p, text, p.target_text);
       }}};
  for (const Damage& d : all) {
    std::vector<SentencePair> pairs = sound();
    const std::set<size_t> planted = plant(pairs, 50, 20, d.change);
    const Examination e = examined(pairs);
    const auto of_kind = found(e, d.kind);
    CAPTURE(name_of(d.kind).name);
    CHECK(hits(of_kind, planted) == planted.size());
    CHECK(of_kind.size() <= planted.size() + kPairs / 1000);
    if (d.detail)
      for (size_t i : planted) {
        REQUIRE_MESSAGE(of_kind.count(i) == 1, pairs[i].source_text << " | " << pairs[i].target_text);
        CHECK(of_kind.at(i) == d.detail);
      }
  }
}

TEST_CASE("wrong targets, and targets that are cut, are told by their words") {
  std::vector<SentencePair> pairs = sound();
  size_t next = 1000;
  const std::set<size_t> wrong =
      plant(pairs, 7, 100, [&](SentencePair& p) { set(p, p.source_text, sound()[next += 13].target_text); });
  const Examination e = examined(pairs);
  auto blamed = found(e, Kind::pairing);
  blamed.merge(found(e, Kind::length));
  CHECK(hits(blamed, wrong) >= 95);
  CHECK(blamed.size() <= hits(blamed, wrong) + kPairs / 200);
}

TEST_CASE("a shifted block is named by its range, wherever its targets went") {
  for (const int64_t shift : {1, -2, 40}) {
    std::vector<SentencePair> pairs = sound();
    constexpr size_t kFirst = 1500, kCount = 400;
    for (size_t i = kFirst; i < kFirst + kCount; ++i)
      set(pairs[i], pairs[i].source_text,
          sound()[static_cast<size_t>(static_cast<int64_t>(i) - shift)].target_text);
    const Examination e = examined(pairs);
    CAPTURE(shift);
    REQUIRE(e.blocks.size() == 1);
    CHECK(e.blocks[0].shift == shift);
    CHECK(std::abs(static_cast<int64_t>(e.blocks[0].first) - static_cast<int64_t>(kFirst)) <=
          2 + std::abs(shift));
    CHECK(std::abs(static_cast<int64_t>(e.blocks[0].last) - static_cast<int64_t>(kFirst + kCount - 1)) <=
          2 + std::abs(shift));
    CHECK(found(e, Kind::shifted).at(1700) == "its target is that of line " + std::to_string(1701 + shift));
  }
}

TEST_CASE("a line that is lost displaces all behind it: one block, though it be most of the file") {
  for (const size_t lost : {kPairs / 4, kPairs / 3, kPairs / 2, 3 * kPairs / 4}) {
    std::vector<SentencePair> pairs = sound();
    for (size_t i = lost; i + 1 < pairs.size(); ++i)
      set(pairs[i], pairs[i].source_text, sound()[i + 1].target_text);
    pairs.pop_back();
    const Examination e = examined(pairs);
    CAPTURE(lost);
    REQUIRE(e.blocks.size() == 1);
    CHECK(e.blocks[0].shift == -1);
    CHECK(std::abs(static_cast<int64_t>(e.blocks[0].first) - static_cast<int64_t>(lost)) <= 3);
    CHECK(e.blocks[0].last + 3 >= pairs.size() - 1);
  }
}

TEST_CASE("a third language is told; words that are rare in the side's own language are not taken for one") {
  std::vector<SentencePair> pairs = sound();
  set(pairs[100], pairs[100].source_text, "zwei männer stehen vor einem großen gebäude");
  set(pairs[200], "the tourists don't want the blankets", "les touristes ne veulent pas les couvertures");
  const auto language = found(examined(pairs), Kind::language);
  CHECK(language.count(100) == 1);
  CHECK(language.count(200) == 0);
}

TEST_CASE("a word that stands nowhere else is no evidence against its pair") {
  std::vector<SentencePair> pairs = sound();
  auto evidence = [&] {
    const Words source = words_of(pairs, &SentencePair::source),
                target = words_of(pairs, &SentencePair::target);
    return Lexicon(source, target).one_way(0, 100, 100);
  };
  const double before = evidence();
  pairs[100].target.push_back("zygomorphe");
  CHECK(std::abs(evidence() - before) < 0.1);
}

TEST_CASE("one line of a million characters does not decide what a language is") {
  std::vector<SentencePair> pairs = sound();
  pairs.resize(400);
  const size_t before = found(examined(pairs), Kind::language).size();
  std::string text;
  for (int i = 0; i < 500'000; ++i) text += "a ";
  set(pairs[100], text, "b b");
  CHECK(found(examined(pairs), Kind::language).size() <= before + 1);
}

TEST_CASE("a file that is displaced altogether, and one that is shuffled") {
  std::vector<SentencePair> pairs = sound();
  for (size_t i = 0; i + 1 < pairs.size(); ++i)
    set(pairs[i], pairs[i].source_text, sound()[i + 1].target_text);
  Examination e = examined(pairs);
  CHECK(e.hopeless);
  CHECK(e.displaced == -1);
  pairs = sound();
  for (size_t i = 0; i < pairs.size(); ++i)
    set(pairs[i], pairs[i].source_text, sound()[i * 1237 % kPairs].target_text);
  e = examined(pairs);
  CHECK(e.hopeless);
  CHECK(e.displaced == 0);
  CHECK(e.blocks.empty());
}

TEST_CASE("pairs of the validation and test data, and those one word away") {
  std::vector<SentencePair> pairs(4);
  set(pairs[0], "You walk to the old house", "Tu marches");
  set(pairs[1], "You walk to the new house", "Tu marches vers la maison");
  set(pairs[2], "He sings", "Il chante");
  set(pairs[3], "We go home now", "Nous rentrons");  // too short to be near another
  std::vector<SentencePair> held(3);
  set(held[0], "you walk to the old house!", "Autre chose");
  set(held[1], "Somebody else", "il chante.");
  set(held[2], "We go there now", "Nous y allons");
  held[0].line = 4;
  held[1].line = 9;
  const Examination e = examined(pairs, {.held_out = {{"test.tsv", held}}});
  CHECK(found(e, Kind::overlap) ==
        std::map<size_t, std::string>{{0, "the source is that of line 4 of test.tsv"},
                                      {2, "the target is that of line 9 of test.tsv"}});
  CHECK(found(e, Kind::near_overlap) ==
        std::map<size_t, std::string>{{1, "one word away from line 4 of test.tsv"}});
}

TEST_CASE("few pairs: words tell nothing, and nobody is blamed for it") {
  for (size_t count : {1, 2, 30, 300}) {
    const std::vector<SentencePair> few(sound().begin(), sound().begin() + static_cast<long>(count));
    const Examination e = examined(few);
    CAPTURE(count);
    CHECK(e.blocks.empty());
    CHECK(e.findings.size() <= count / 100);
    CHECK_FALSE(e.hopeless);
    if (count < 100) CHECK_FALSE(e.by_words);
  }
  CHECK(examined({}).findings.empty());
}

TEST_CASE("any number of threads, and a quick look, find the same of what both look for") {
  std::vector<SentencePair> pairs = sound();
  plant(pairs, 3, 30, [](SentencePair& p) { set(p, p.target_text, p.source_text); });
  plant(pairs, 40, 30, [](SentencePair& p) { set(p, p.source_text, p.target_text + " %s"); });
  const Examination one = examined(pairs, {}, 1), three = examined(pairs, {}, 3),
                    quick = examined(pairs, {.quick = true});
  REQUIRE(one.findings.size() == three.findings.size());
  for (size_t i = 0; i < one.findings.size(); ++i) {
    CHECK(one.findings[i].pair == three.findings[i].pair);
    CHECK(one.findings[i].kind == three.findings[i].kind);
    CHECK(one.findings[i].detail == three.findings[i].detail);
  }
  CHECK(found(one, Kind::markup).size() >= 30);
  CHECK(found(quick, Kind::markup) == found(one, Kind::markup));
  CHECK(found(quick, Kind::language).size() >= 30);
}
