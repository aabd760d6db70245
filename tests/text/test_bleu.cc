#include <translator/text/bleu.h>

#include <nlohmann/json.hpp>

#include <fstream>
#include <random>

#include "../quick_doctest.h"
#include "json_text.h"

using namespace translator;
using Strings = std::vector<std::string>;
using Sets = std::vector<Strings>;

namespace {

nlohmann::ordered_json golden() {
  std::ifstream file(TRANSLATOR_GOLDEN_DIR "/bleu.json");
  REQUIRE(file);
  return json_text::parse(file);
}

Strings strings(const nlohmann::ordered_json& list) { return list.get<Strings>(); }
double number(const nlohmann::ordered_json& tensor, size_t i = 0) { return tensor["data"][i].get<double>(); }

}  // namespace

TEST_CASE("bleu: golden corpus") {
  const auto g = golden();
  const Strings hypotheses = strings(g["config"]["hypotheses"]);
  const Strings references = strings(g["config"]["references"]);
  const auto& out = g["outputs"];
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    CHECK(tokenize_13a(hypotheses[i]) == strings(g["config"]["tokenised_hypotheses"])[i]);
    CHECK(tokenize_13a(references[i]) == strings(g["config"]["tokenised_references"])[i]);
    CHECK(sentence_bleu(hypotheses[i], {references[i]}).score ==
          doctest::Approx(number(out["sentence_bleu_exp_effective"], i)).epsilon(1e-12));
  }
  const BleuScore bleu = corpus_bleu(hypotheses, references);
  for (size_t n = 0; n < 4; ++n) {
    CHECK(static_cast<double>(bleu.correct[n]) == number(out["correct"], n));
    CHECK(static_cast<double>(bleu.total[n]) == number(out["total"], n));
    CHECK(bleu.precisions[n] == doctest::Approx(number(out["precisions"], n)).epsilon(1e-12));
  }
  CHECK(bleu.brevity_penalty == doctest::Approx(number(out["brevity_penalty"])).epsilon(1e-12));
  CHECK(bleu.score == doctest::Approx(number(out["corpus_bleu"])).epsilon(1e-12));
  CHECK(bleu.format() == "56.88 77.4/69.2/57.1/38.9 (BP = 0.968 ratio = 0.969 hyp_len = 31 ref_len = 32)");
  CHECK(bleu.signature == "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:gradus-0.1");
}

TEST_CASE("bleu: golden smoothing") {
  const auto g = golden();
  const Strings hypotheses = strings(g["config"]["small_corpus_hypotheses"]);
  const Strings references = strings(g["config"]["small_corpus_references"]);
  const auto score = [&](Smoothing smoothing) {
    return corpus_bleu(hypotheses, references, {.smoothing = smoothing}).score;
  };
  CHECK(score(Smoothing::none) == 0.0);
  CHECK(score(Smoothing::floor) == doctest::Approx(number(g["outputs"]["small_bleu_floor"])).epsilon(1e-12));
  CHECK(score(Smoothing::add_k) == doctest::Approx(number(g["outputs"]["small_bleu_add_k"])).epsilon(1e-12));
  CHECK(score(Smoothing::exp) == doctest::Approx(number(g["outputs"]["small_bleu_exp"])).epsilon(1e-12));
}

TEST_CASE("bleu: the tokens of 13a") {
  CHECK(tokenize_13a("He paid $3.50, i.e. 1,000 (or so).") == "He paid $ 3.50 , i . e . 1,000 ( or so ) .");
  CHECK(tokenize_13a("a-b 3-4 c'est &quot;oui&quot; &lt;b&gt; A&amp;B") ==
        "a-b 3 - 4 c'est \" oui \" < b > A & B");
  CHECK(tokenize_13a("x<skipped>y end-\nless\nline") == "xy endless line");
  CHECK(tokenize_13a("a..b ,,c .5 5.") == "a . . b , , c . 5 5 .");
  CHECK(tokenize_13a("dit\u202F: «\u00A0oui\u00A0»") == "dit : « oui »");
  CHECK(tokenize_13a("था।") == "था।");
  CHECK(tokenize_13a("") == "");
}

TEST_CASE("bleu: several references") {
  // Clipping takes the best reference for each n-gram, brevity the closest length, the shorter of equals.
  const BleuScore bleu =
      corpus_bleu({"the the cat"}, Sets{Strings{"the cat sat", "the the dog runs", "the the"}});
  CHECK(bleu.correct == std::vector<int64_t>{3, 2, 0, 0});
  CHECK(bleu.reference_length == 3);
  CHECK(corpus_bleu({"a b c"}, Sets{Strings{"a b c d", "a b"}}).reference_length == 2);
  CHECK(bleu.signature == "nrefs:3|case:mixed|eff:no|tok:13a|smooth:exp|version:gradus-0.1");
  CHECK(corpus_bleu(Strings{"a", "b"}, Sets{Strings{"a"}, Strings{"b", "c"}})
            .signature.starts_with("nrefs:var|"));
  const Strings both = {"Le chat dort ici .", "Un chat dort là ."};
  CHECK(sentence_bleu("Un chat dort là .", both).score == doctest::Approx(100.0));
}

TEST_CASE("bleu: options and the signature that tells them") {
  CHECK(bleu_signature({.smoothing = Smoothing::floor}) ==
        "nrefs:1|case:mixed|eff:no|tok:13a|smooth:floor[0.10]|version:gradus-0.1");
  CHECK(bleu_signature({.smoothing = Smoothing::add_k, .smoothing_value = 0.5, .lowercase = true}) ==
        "nrefs:1|case:lc|eff:no|tok:13a|smooth:add-k[0.50]|version:gradus-0.1");
  CHECK(bleu_signature({.tokenize_13a = false, .effective_order = true}, 2) ==
        "nrefs:2|case:mixed|eff:yes|tok:none|smooth:exp|version:gradus-0.1");
  CHECK(corpus_bleu({"LE CHAT DORT ICI"}, Strings{"le chat dort ici"}).score == 0.0);
  CHECK(corpus_bleu({"LE CHAT DORT ICI"}, Strings{"le chat dort ici"}, {.lowercase = true}).score ==
        doctest::Approx(100.0));
  CHECK(corpus_bleu({"a . b c d"}, Strings{"a. b c d"}, {.tokenize_13a = false}).correct[0] == 3);
}

TEST_CASE("bleu: nothing to compare") {
  CHECK(corpus_bleu(Strings{}, Strings{}).score == 0.0);
  CHECK(corpus_bleu({""}, Strings{"a b"}).score == 0.0);
  CHECK(corpus_bleu({"a b"}, Strings{""}).score == 0.0);
  CHECK_THROWS_WITH_AS(corpus_bleu({"a"}, Strings{}),
                       "corpus_bleu: as many hypotheses as references: 1 and 0", std::invalid_argument);
  CHECK_THROWS_WITH_AS(corpus_bleu({"a"}, Sets{Strings{}}), "corpus_bleu: sentence 1 has no reference",
                       std::invalid_argument);
}

TEST_CASE("bleu: exact match") {
  CHECK(exact_match(Strings{"a b", "c", "d"}, Strings{"a b", "c", "e"}) == doctest::Approx(2.0 / 3.0));
  CHECK(exact_match(Strings{"a", "b"}, Sets{Strings{"x", "a"}, Strings{"b"}}) == 1.0);
  CHECK(exact_match(Strings{}, Strings{}) == 0.0);
}

TEST_CASE("bleu: any bytes at all") {
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    std::string a;
    std::string b;
    for (size_t n = random() % 30; n > 0; --n) a.push_back(static_cast<char>(random() % 256));
    for (size_t n = random() % 30; n > 0; --n) b.push_back(" .,-'a1&<"[random() % 9]);
    CHECK(tokenize_13a(b).find("  ") == std::string::npos);
    const double score = sentence_bleu(a, {b, a}).score;
    CHECK(score >= 0.0);
    CHECK(score <= 100.0 + 1e-9);
  }
}
