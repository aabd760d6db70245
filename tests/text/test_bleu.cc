#include <translator/text/bleu.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <random>

#include "../about.h"
#include "../quick_doctest.h"
#include <common/json_text.h>

using namespace translator;
using Strings = std::vector<std::string>;
using Sets = std::vector<Strings>;

namespace {

nlohmann::ordered_json golden() {
  std::ifstream file(TRANSLATOR_GOLDEN_DIR "/bleu.json");
  REQUIRE(file);
  return json_text::parse(file);
}

// As make_bleu.py names them, which is as sacreBLEU does.
BleuOptions options_of(const nlohmann::ordered_json& j) {
  const std::string smoothing = j.value("smooth_method", "exp");
  BleuOptions o;
  o.smoothing = smoothing == "floor"   ? Smoothing::floor
                : smoothing == "add-k" ? Smoothing::add_k
                : smoothing == "none"  ? Smoothing::none
                                       : Smoothing::exp;
  o.smoothing_value = j.value("smooth_value", -1.0);
  o.lowercase = j.value("lowercase", false);
  o.tokenize_13a = j.value("tokenize", "13a") == "13a";
  o.effective_order = j.value("effective_order", false);
  o.max_order = j.value("max_ngram_order", 4);
  return o;
}

std::string without_version(const std::string& signature) {
  return signature.substr(0, signature.find("|version:"));
}

}  // namespace

TEST_CASE("bleu: sacreBLEU's numbers, with every option") {
  const auto g = golden();
  CHECK(g["made_by"].get<std::string>().starts_with("make_bleu.py with sacreBLEU 2."));
  size_t scores = 0, above = 0;
  for (const auto& corpus : g["corpora"]) {
    CAPTURE(corpus["name"].get<std::string>());
    const auto hypotheses = corpus["hypotheses"].get<Strings>();
    const auto references = corpus["references"].get<Sets>();
    for (size_t i = 0; i < hypotheses.size(); ++i) {
      CHECK(tokenize_13a(hypotheses[i]) == corpus["tokens"][i].get<std::string>());
      CHECK(corpus_bleu({hypotheses[i]}, Sets{references[i]}, {.effective_order = true}).score ==
            about(corpus["sentence_scores"][i].get<double>(), 1e-12));
    }
    for (const auto& want : corpus["scores"]) {
      CAPTURE(want["options"].dump());
      const BleuScore bleu = corpus_bleu(hypotheses, references, options_of(want["options"]));
      CHECK(bleu.score == about(want["score"].get<double>(), 1e-12));
      if (!want["options"].contains("smooth_method") || want["options"]["smooth_method"] != "add-k") {
        // add-k's counts have k added there.
        CHECK((bleu.correct == want["correct"].get<std::vector<int64_t>>()));
        CHECK((bleu.total == want["total"].get<std::vector<int64_t>>()));
      }
      REQUIRE(bleu.precisions.size() == want["precisions"].size());
      for (size_t n = 0; n < bleu.precisions.size(); ++n)
        CHECK(bleu.precisions[n] == about(want["precisions"][n].get<double>(), 1e-12));
      CHECK(bleu.brevity_penalty == about(want["brevity_penalty"].get<double>(), 1e-12));
      CHECK(bleu.hypothesis_length == want["hypothesis_length"].get<int64_t>());
      CHECK(bleu.reference_length == want["reference_length"].get<int64_t>());
      CHECK(fmt::format("BLEU = {:.2f} {}", bleu.score, bleu.details()) == want["text"].get<std::string>());
      CHECK(without_version(bleu.signature) == without_version(want["signature"].get<std::string>()));
      ++scores;
      above += bleu.score > 0;
    }
  }
  CHECK(scores == 12 * 13);
  CHECK(above > scores / 2);
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
  CHECK(corpus_bleu({"a ab c"}, Strings{"a bc a"}).correct == std::vector<int64_t>{1, 0, 0, 0});  // no "abc"
  CHECK(bleu.signature == "nrefs:3|case:mixed|eff:no|tok:13a|smooth:exp|version:gradus-0.1");
  CHECK(corpus_bleu(Strings{"a", "b"}, Sets{Strings{"a"}, Strings{"b", "c"}})
            .signature.starts_with("nrefs:var|"));
  const Strings both = {"Le chat dort ici .", "Un chat dort là ."};
  CHECK(corpus_bleu({"Un chat dort là ."}, Sets{both}, {.effective_order = true}).score == about(100.0));
}

TEST_CASE("bleu: options and the signature that tells them") {
  auto signature = [](const BleuOptions& options, int64_t references) {
    return signature_of(bleu_metric(options), references);
  };
  CHECK(signature({.smoothing = Smoothing::floor}, 1) ==
        "nrefs:1|case:mixed|eff:no|tok:13a|smooth:floor[0.10]|version:gradus-0.1");
  CHECK(signature({.smoothing = Smoothing::add_k, .smoothing_value = 0.5, .lowercase = true}, 1) ==
        "nrefs:1|case:lc|eff:no|tok:13a|smooth:add-k[0.50]|version:gradus-0.1");
  CHECK(signature({.tokenize_13a = false, .effective_order = true}, 2) ==
        "nrefs:2|case:mixed|eff:yes|tok:none|smooth:exp|version:gradus-0.1");
  CHECK(corpus_bleu({"LE CHAT DORT ICI"}, Strings{"le chat dort ici"}).score == 0.0);
  CHECK(corpus_bleu({"LE CHAT DORT ICI"}, Strings{"le chat dort ici"}, {.lowercase = true}).score ==
        about(100.0));
  CHECK(corpus_bleu({"a . b c d"}, Strings{"a. b c d"}, {.tokenize_13a = false}).correct[0] == 3);
}

TEST_CASE("bleu: nothing to compare") {
  CHECK(corpus_bleu(Strings{}, Strings{}).score == 0.0);
  CHECK(corpus_bleu({""}, Strings{"a b"}).score == 0.0);
  CHECK(corpus_bleu({""}, Strings{"a b"}).brevity_penalty == 0.0);
  CHECK(corpus_bleu({"a b"}, Strings{""}).score == 0.0);
  CHECK_THROWS_WITH_AS(corpus_bleu({"a"}, Strings{}), "BLEU: as many hypotheses as references: 1 and 0",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(corpus_bleu({"a"}, Sets{Strings{}}), "BLEU: sentence 1 has no reference",
                       std::invalid_argument);
}

TEST_CASE("bleu: any bytes at all") {
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    std::string a;
    std::string b;
    for (size_t n = random() % 30; n > 0; --n) a.push_back(static_cast<char>(random() % 256));
    for (size_t n = random() % 30; n > 0; --n) b.push_back(" .,-'a1&<"[random() % 9]);
    CHECK(tokenize_13a(b).find("  ") == std::string::npos);
    const double score = corpus_bleu({a}, Sets{Strings{b, a}}, {.effective_order = true}).score;
    CHECK(score >= 0.0);
    CHECK(score <= 100.0 + 1e-9);
  }
}
