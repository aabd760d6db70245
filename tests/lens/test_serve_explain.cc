// What `lens serve` explains: a word of what a model said, and nothing else.

#include <algorithm>
#include <map>
#include <memory>

#include "../about.h"
#include "../pieces.h"
#include "../quick_doctest.h"
#include "../show_json.h"
#include "commands.h"
#include "serving.h"
#include <common/json_text.h>
#include <translator/inference/translation.h>

using namespace lens;
namespace nn = gradus::nn;
using test::refusal;
using test::Told;

namespace {

const ServedModels& explaining() {
  static const ServedModels answers({own_model(), own_model("model-transformer"), test::saved_model("plain")});
  return answers;
}

json data_of(const std::string& page) {
  const size_t begin = page.find("id=\"data\">") + 10;
  return json_text::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

// What the page asks about a translation that it shows.
ExplainRequest about_word(const ServeRequest& asked, const Told& told, int64_t word) {
  return {.model = asked.model,
          .text = asked.text,
          .tokens = told.ids(),
          .attention_temperature = asked.attention_temperature,
          .word = word};
}

std::string refusal_of_fields(const std::multimap<std::string, std::string>& fields) {
  return refusal([&] { read_explain(fields); });
}

}  // namespace

TEST_CASE("an explanation is the explain page of a word") {
  const std::string page = explaining().explain(
      {.model = "model", .text = "he doesn't like apples", .target = "il n'aime pas les pommes", .word = 1});
  CHECK(page.starts_with("<!DOCTYPE html>"));
  CHECK(page.find("error travels back") != std::string::npos);
  CHECK(data_of(page)["show"]["step"] == 1);
  CHECK(explaining()
            .explain({.model = "model-transformer", .text = "he sings"})
            .find("travels back through a Transformer") != std::string::npos);
}

TEST_CASE("a model that was trained on in its place is not explained for the one that is served") {
  const ServedModels answers({test::saved_model("trained")});
  const ExplainRequest asked = {.model = "trained", .text = "the cat eats fish"};
  CHECK(refusal([&] { static_cast<void>(answers.explain(asked)); }) == "");
  translator::Model later = translator::Model::load(test::served_files().file("trained"));
  nn::state_dict(*later.network).front().second.f32()[0] += 1;
  later.save_weights(test::served_files().file("trained"));
  const std::string why = refusal([&] { static_cast<void>(answers.explain(asked)); });
  CHECK(why == "409 " + test::served_files().file("trained") +
                   " holds another model than was loaded when serving began; start lens serve anew to ask "
                   "that one");
}

TEST_CASE("what is explained is what was said, token by token and with its probabilities") {
  std::vector<ServeRequest> questions = {test::asking("model", "he doesn't like apples"),
                                         test::asking("model-transformer", "he sings"),
                                         test::asking("plain", "the cat eats fish")};
  questions.push_back(questions[0]);
  questions.back().attention_temperature = 0.5;
  // Drawn, and so forced: words that the model would not say, <unk> among them.
  questions.push_back(test::asking("plain", "the cat eats fish"));
  questions.back().prefix = {0, 5, 0, 3};
  std::unique_ptr<ServedModels> of_pieces;
  if (!gradus::testing::no_pieces()) {
    of_pieces = std::make_unique<ServedModels>(std::vector{test::saved_model("explained", {.subwords = true})});
    // Pieces that as text would be one.
    const translator::Model& model = of_pieces->prepare(test::asking("", "the")).served->model;
    questions.push_back(test::asking("explained", "the cat eats fish"));
    for (const char* piece : {"\xe2\x96\x81", "m", "a", "n", "g", "e"})
      questions.back().prefix.push_back(model.target.id(piece));
    questions.back().prefix.push_back(gradus::nn::kEos);
    REQUIRE(model.writes.split("mange").pieces.size() == 1);
    REQUIRE(std::count(questions.back().prefix.begin(), questions.back().prefix.end(), 0) == 0);
  }
  for (const ServeRequest& q : questions) {
    CAPTURE(q.model);
    const ServedModels& answers = q.model == "explained" ? *of_pieces : explaining();
    const Told said = test::told(answers, q);
    const json data = data_of(answers.explain(about_word(q, said, 0)));
    CHECK(data["has_reference"] == !q.prefix.empty());
    CHECK(data["show"]["step"] == 0);
    // What an untrained model does not end has its </s> there all the same.
    REQUIRE(data["steps"].size() == said.tokens.size() + !said.end["finished"].get<bool>());
    for (size_t t = 0; t < said.tokens.size(); ++t) {
      CAPTURE(t);
      CHECK(data["steps"][t]["target_id"] == said.tokens[t]["id"]);
      CHECK(data["steps"][t]["p_target"].get<double>() ==
            about(said.tokens[t]["probability"].get<double>(), 1e-4));
      // The model's own choice is not called wrong.
      if (q.prefix.empty()) CHECK(data["steps"][t]["choice"] == said.tokens[t]["token"]);
    }
    // Words are the same, too; what was copied is marked.
    for (size_t w = 0; w < said.end["words"].size(); ++w) {
      const bool copied = std::any_of(said.tokens.begin(), said.tokens.end(), [&](const json& token) {
        return token["word"] == w && token["id"] == 0;
      });
      const json& words = data.contains("words") ? data["words"]["target"]["words"] : data["target"];
      CHECK(words[w] == said.end["words"][w].get<std::string>() + (copied ? " <unk>" : ""));
    }
  }
}

TEST_CASE("attention is explained at the page's temperature, and the page says so") {
  const json data = data_of(explaining().explain(
      {.model = "model", .text = "he sings", .attention_temperature = 0.5, .word = 0}));
  CHECK(data["model"]["temperature"] == 0.5);
  CHECK(data["model"]["name"] == "model, its attention at temperature 0.5");
}

TEST_CASE("what cannot be explained is refused with its reason") {
  auto refused = [](const ExplainRequest& q) { return refusal([&] { explaining().explain(q); }); };
  CHECK(refused({.model = "model", .text = "he sings", .target = "il chante", .word = 9}) ==
        "422 the translation has no word 9: they are 0 to 2, </s> the last");
  CHECK(refused({.model = "modal", .text = "he sings"}) ==
        "404 there is no model \"modal\"; served are: model, model-transformer, plain");
  using Ids = std::vector<int32_t>;
  CHECK(refused({.model = "model", .text = "he sings", .tokens = Ids{100000}}) ==
        "422 the model has no word 100000 to have said");
  CHECK(refused({.model = "model", .text = "he sings", .tokens = Ids{1}}) ==
        "422 the model has no word 1 to have said");
  CHECK(refused({.model = "model", .text = "he sings", .tokens = Ids{3, 3}}) ==
        "422 a translation ends with its first </s>");
  CHECK(refused({.model = "model-transformer", .text = "he sings", .attention_temperature = 2}) ==
        "422 a Transformer's many attentions have no temperature of their own");
  CHECK_THROWS_WITH(explaining().explain({.model = "model", .text = "he", .tokens = Ids(61, 4)}),
                    "the target sentence: has 61 words; 60 at most can be looked at");
}

TEST_CASE("a model that cannot be taken apart is told as such before it is tried") {
  const ServedModels answers({own_model(), own_model("model-transformer"),
                              test::saved_model("plain none", {.attention = "none"}),
                              test::saved_model("plain local", {.attention = "local-p"})});
  const char* why[] = {"", "",
                       "this model has no attention to look at (it was trained with attention \"none\")",
                       "attention local-p cannot be taken apart: its weights are more than a softmax of "
                       "scores"};
  for (size_t i = 0; i < 4; ++i) CHECK(answers.models()["models"][i]["unexplained"] == why[i]);
  CHECK_THROWS_WITH(answers.explain({.model = "plain local", .text = "the cat"}),
                    doctest::Contains("attention local-p cannot be taken apart: "));
}

TEST_CASE("the fields of an address are within their bounds") {
  CHECK(refusal_of_fields({}) == "");
  CHECK(refusal_of_fields({{"tokens", "4,0,3"}, {"attention_temperature", "0.5"}, {"word", "2"}}) == "");
  CHECK(refusal_of_fields({{"tokens", ""}}) == "");
  for (const char* bad : {"4,-1", "4,x", "4,,3", "1e3", "\"4\"", "[4]", "99999999999", "4],[3"}) {
    CAPTURE(bad);
    CHECK(refusal_of_fields({{"tokens", bad}}).find("400 \"tokens\" must be a ") == 0);
  }
  std::string many = "4";
  for (int i = 0; i < 200; ++i) many += ",4";
  CHECK(refusal_of_fields({{"tokens", many}}) == "400 \"tokens\" must be a list of at most 200 whole numbers");
  CHECK(refusal_of_fields({{"tokens", "4"}, {"target", "il"}}) ==
        "400 \"target\" and \"tokens\" both say what is explained: one of them is enough");
  for (const char* bad : {"", "0", "nan", "1e999", "{}"})
    CHECK(refusal_of_fields({{"attention_temperature", bad}}) ==
          "400 \"attention_temperature\" must be a number from 0.05 to 20");
  CHECK(refusal_of_fields({{"attention_temprature", "2"}}) ==
        "400 there is no field \"attention_temprature\"; those there are: attention_temperature, model, "
        "target, text, tokens, word");
  CHECK(refusal_of_fields({{"\xff", ""}}).find("400 there is no field \"\xef\xbf\xbd\"") == 0);
  CHECK(refusal_of_fields({{"text", "he"}, {"text", "she"}}) == "400 \"text\" is given twice");
  CHECK(refusal_of_fields({{"word", "-1"}}) == "400 \"word\" must be the number of a word, from 0");
  CHECK(refusal_of_fields({{"text", "\xff"}}) == "400 \"text\" is no text: byte 1 (0xff) is not valid UTF-8");
}
