// What `lens serve` answers, without the network: greedy it says what the translator says, and what is masked,
// forced or drawn is told from the model's own steps.

#include <cmath>

#include "../about.h"
#include "../pieces.h"
#include "../quick_doctest.h"
#include "../show_json.h"
#include "commands.h"
#include "serving.h"
#include <gradus/io/safetensors.h>
#include <translator/inference/translation.h>
#include <translator/model/int8_state.h>

using lens::json;
using lens::Refused;
using lens::ServedModels;
using lens::ServeRequest;
using lens::test::asking;
using lens::test::refusal;
using lens::test::saved_model;
using lens::test::served_files;
using lens::test::Told;
using lens::test::told;

namespace {

std::string transformer() {
  const std::string directory = served_files().file("transformer");
  lens::Subject s = lens::test::subject();
  translator::ModelConfig config;
  config.model = "transformer";
  config.transformer.d_model = 8;
  config.transformer.num_heads = 2;
  config.transformer.num_layers = 2;
  translator::Model model(config, s.model.source, s.model.target, 3);
  model.save_description(directory);
  model.save_weights(directory);
  return directory;
}

// As `translator quantize` leaves one.
std::string quantized() {
  const std::string directory = served_files().file("quantized");
  translator::Model model = translator::Model::load(lens::own_model());
  model.round_to_int8();
  model.save_description(directory);
  gradus::save_safetensors(
      directory + "/model.safetensors",
      {translator::int8_state_dict(*model.network), {{"weights", "int8"}}});
  return directory;
}

std::string refusal_of(const std::string& body) {
  return refusal([&] { lens::read_request(body); });
}

const ServedModels& all() {
  static const ServedModels answers({lens::own_model(), transformer(),
                                     saved_model("general", {.attention = "general"}),
                                     saved_model("none", {.attention = "none"}), quantized()});
  return answers;
}

const std::vector<ServeRequest>& questions() {
  static const std::vector<ServeRequest> out = {asking("model", "he doesn't like apples"),
                                                asking("transformer", "the cat eats fish"),
                                                asking("general", "the cat eats fish"),
                                                asking("quantized", "the cat eats fish")};
  return out;
}

}  // namespace

TEST_CASE("a served translation is the translator's own, told token by token") {
  for (const ServeRequest& q : questions()) {
    CAPTURE(q.model);
    const ServedModels::Job job = all().prepare(q);
    const translator::Model& model = job.served->model;
    const translator::Translation expected =
        translator::translate(model, {job.source}, {.weights = true})[0].at(0);
    const Told t = told(all(), q);
    CHECK(t.end["translation"] == model.writes.join(expected.tokens));
    CHECK(t.end["log_probability"].get<double>() == about(expected.log_probability, 1e-6));
    CHECK(t.source["words"] == job.source.words);
    REQUIRE(t.tokens.size() >= expected.tokens.size());
    double sum = 0;
    for (size_t i = 0; i < t.tokens.size(); ++i) {
      const json& token = t.tokens[i];
      sum += std::log(token["probability"].get<double>());
      // The choice is the best of what else might have been said; alternatives fall.
      CHECK(token["alternatives"][0]["id"] == token["id"]);
      for (size_t k = 1; k < token["alternatives"].size(); ++k)
        CHECK(token["alternatives"][k]["probability"].get<double>() <=
              token["alternatives"][k - 1]["probability"].get<double>());
      CHECK(sum_of(token["weights"]) == about(1, 1e-2));
      CHECK(token["weights"].size() == job.source.words.size() + 1);
    }
    CHECK(sum == about(expected.log_probability, 1e-4));
    CHECK((t.tokens.back()["token"] == "</s>") == t.end["finished"].get<bool>());
  }
}

TEST_CASE("what is forced is said, and the rest is the model's own choice after it") {
  for (ServeRequest q : questions()) {
    CAPTURE(q.model);
    const Told free = told(all(), q);
    // The second best instead of the second token.
    const json& other = free.tokens.at(1)["alternatives"][1];
    q.prefix = {free.ids()[0], other["id"].get<int32_t>()};
    const Told forced = told(all(), q);
    REQUIRE(forced.tokens.size() >= 2);
    CHECK(forced.ids()[0] == q.prefix[0]);
    CHECK(forced.ids()[1] == q.prefix[1]);
    CHECK(forced.tokens[0]["forced"] == true);
    CHECK(forced.tokens[1]["forced"] == true);
    CHECK(forced.tokens[1]["probability"].get<double>() == about(other["probability"].get<double>(), 1e-6));
    for (size_t i = 2; i < forced.tokens.size(); ++i) {
      CHECK(forced.tokens[i]["forced"] == false);
      CHECK(forced.tokens[i]["alternatives"][0]["id"] == forced.tokens[i]["id"]);
    }
    // All that it said, forced, is said again: teacher forcing and the search choose alike.
    ServeRequest again = q;
    again.prefix = forced.ids();
    CHECK(told(all(), again).ids() == forced.ids());
    CHECK(told(all(), again).end["log_probability"].get<double>() ==
          about(forced.end["log_probability"].get<double>(), 1e-5));
  }
  ServeRequest typed = questions()[0];
  typed.force = "elle";
  CHECK(told(all(), typed).end["words"][0] == "elle");
}

TEST_CASE("nobody looks at a masked word") {
  for (ServeRequest q : questions()) {
    CAPTURE(q.model);
    q.hidden = {1, static_cast<int32_t>(all().prepare(q).source.words.size())};  // </s>, too
    const Told t = told(all(), q);
    for (const json& token : t.tokens) {
      for (int32_t word : q.hidden) CHECK(token["weights"][static_cast<size_t>(word)] == 0);
      CHECK(sum_of(token["weights"]) == about(1, 1e-2));  // the others are looked at all the more
    }
  }
}

TEST_CASE("words are drawn by their seed") {
  for (ServeRequest q : questions()) {
    CAPTURE(q.model);
    const std::vector<int32_t> greedy = told(all(), q).ids();
    q.seed = 5;
    q.sampling_temperature = 3;
    const std::vector<int32_t> drawn = told(all(), q).ids();
    CHECK(drawn == told(all(), q).ids());
    bool differs = false;
    for (uint64_t seed = 6; seed < 10; ++seed) {
      q.seed = seed;
      differs = differs || told(all(), q).ids() != drawn;
    }
    CHECK(differs);
    q.sampling_temperature = 0.05;
    if (q.model == "model") CHECK(told(all(), q).ids() == greedy);
  }
}

TEST_CASE("attention gets sharper, and the next request finds the model as it was") {
  for (const char* name : {"model", "general"}) {
    ServeRequest q =
        asking(name, name == std::string("model") ? "he doesn't like apples" : "the cat eats fish");
    ServeRequest masked = q;  // whose steps read the temperature anew each time
    masked.hidden = {0};
    const Told before = told(all(), q), masked_before = told(all(), masked);
    q.attention_temperature = 0.05;
    const Told sharp = told(all(), q);
    // The sum of squares is 1 where all weight is at one word, 1/S where all have the same.
    auto squares = [](const Told& t) {
      double sum = 0;
      for (const json& w : t.tokens[0]["weights"]) sum += w.get<double>() * w.get<double>();
      return sum;
    };
    CHECK(squares(sharp) > squares(before));
    q.attention_temperature.reset();
    CHECK(told(all(), q).tokens == before.tokens);
    CHECK(told(all(), masked).tokens == masked_before.tokens);
  }
}

TEST_CASE("the beam is a tree whose best leaf is the best translation") {
  for (ServeRequest q : questions()) {
    CAPTURE(q.model);
    q.beam_size = 4;
    const ServedModels::Job job = all().prepare(q);
    const json tree = all().beam(job);
    const auto expected = translator::translate(job.served->model, {job.source}, {.beam_size = 4})[0];
    REQUIRE(tree["translations"].size() == expected.size());
    size_t cut = 0, finished = 0;
    for (size_t n = 0; n < tree["nodes"].size(); ++n) {
      const json& node = tree["nodes"][n];
      const int64_t parent = node["parent"].get<int64_t>();
      REQUIRE(parent < static_cast<int64_t>(n));
      if (parent >= 0) {
        CHECK(tree["nodes"][static_cast<size_t>(parent)]["fate"] == "kept");
        CHECK(node["log_probability"].get<double>() <=
              tree["nodes"][static_cast<size_t>(parent)]["log_probability"].get<double>());
      }
      cut += node["fate"] == "cut";
      finished += node["fate"] == "finished";
    }
    CHECK(cut > 0);
    for (size_t i = 0; i < expected.size(); ++i) {
      CHECK(tree["translations"][i]["translation"] == job.served->model.writes.join(expected[i].tokens));
      // The page finds the leaf by this number.
      const auto leaf = std::find_if(tree["nodes"].begin(), tree["nodes"].end(), [&](const json& node) {
        return node["log_probability"] == tree["translations"][i]["log_probability"];
      });
      REQUIRE(leaf != tree["nodes"].end());
      // From it up to the beginning stand the translation's words.
      std::vector<std::string> words;
      for (int64_t n = leaf - tree["nodes"].begin(); n >= 0;) {
        const json& node = tree["nodes"][static_cast<size_t>(n)];
        if (node["token"] != "</s>") words.insert(words.begin(), node["token"].get<std::string>());
        n = node["parent"].get<int64_t>();
      }
      CHECK(words == expected[i].tokens);
    }
    CHECK((finished > 0 || q.model != "model"));
  }
}

TEST_CASE("who stops listening ends the work") {
  int lines = 0;
  all().translate(all().prepare(questions()[0]), [&](const json&) { return ++lines < 3; });
  CHECK(lines == 3);
}

TEST_CASE("a request is one JSON object of known fields within their bounds") {
  const ServeRequest r = lens::read_request(
      R"({"model":"m","text":"t","prefix":[4],"force":"f","hidden":[0],"seed":3,"sampling_temperature":0.5,)"
      R"("attention_temperature":2,"beam_size":7})");
  CHECK(r.model == "m");
  CHECK(r.text == "t");
  CHECK(r.force == "f");
  CHECK(r.prefix == std::vector<int32_t>{4});
  CHECK(r.hidden == std::vector<int32_t>{0});
  CHECK(r.seed == 3);
  CHECK(r.sampling_temperature == 0.5);
  CHECK(r.attention_temperature == 2);
  CHECK(r.beam_size == 7);

  CHECK(refusal([] { lens::read_request(R"({"text":"t","beam_size":7})", "beam_size"); }) ==
        "400 there is no field \"beam_size\"; those there are: attention_temperature, force, hidden, model, "
        "prefix, sampling_temperature, seed, text");

  CHECK(refusal_of("") == "400 the request must be one JSON object");
  CHECK(refusal_of("[1]") == "400 the request must be one JSON object");
  CHECK(refusal_of(R"({"text":"t")") == "400 the request must be one JSON object");
  CHECK(refusal_of("{\"text\":\"\xff\"}").find("400 the request is no text: byte 10") == 0);
  CHECK(refusal_of(R"({"text":""})").find("400 \"text\" is missing") == 0);
  CHECK(refusal_of(R"({"text":7})") == "400 \"text\" must be text");
  CHECK(refusal_of(R"({"txt":"t"})")
            .find("400 there is no field \"txt\"; those there are: attention_temperature") == 0);
  CHECK(refusal_of(R"({"text":"t","hidden":[-1]})").find("400 \"hidden\" must be a whole number from 0") == 0);
  CHECK(refusal_of(R"({"text":"t","prefix":[1.5]})").find("400 \"prefix\" must be a whole number") == 0);
  CHECK(refusal_of(R"({"text":"t","prefix":[18446744073709551615]})").find("400 \"prefix\"") == 0);
  CHECK(refusal_of(R"({"text":"t","seed":-1})").find("400 \"seed\" must be a whole number from 0") == 0);
  CHECK(refusal_of(R"({"text":"t","beam_size":11})")
            .find("400 \"beam_size\" must be a whole number from 1 to 10") == 0);
  CHECK(refusal_of(R"({"text":"t","sampling_temperature":0})")
            .find("400 \"sampling_temperature\" must be a number") == 0);
  CHECK(refusal_of(R"({"text":"t","sampling_temperature":1e999})").find("400 ") == 0);
  CHECK(refusal_of(R"({"text":"t","sampling_temperature":2})") ==
        "400 \"sampling_temperature\" is of words that are drawn, with a \"seed\"");
  CHECK(refusal_of(R"({"text":")" + std::string(lens::kMostTextBytes + 1, 'a') + "\"}") ==
        "413 \"text\" has 4001 bytes; 4000 at most are taken");
}

TEST_CASE("what a model cannot do is said") {
  auto asked = [](const std::string& model, const std::function<void(ServeRequest&)>& change) {
    ServeRequest q = asking(model, "the cat eats fish");
    change(q);
    return refusal([&] { all().prepare(q); });
  };
  CHECK(asked("modal", [](auto&) {}) ==
        "404 there is no model \"modal\"; served are: model, transformer, general, none, quantized");
  CHECK(asked("\x1b" + std::string(100, 'x'), [](auto&) {})
            .starts_with("404 there is no model \"\uFFFD" + std::string(58, 'x') + "…\"; served are: "));
  CHECK(asked("general", [](auto& q) { q.text = " "; }) == "422 the sentence has no words");
  CHECK(asked("general", [](auto& q) {
          q.text = "a";
          for (int i = 0; i < 200; ++i) q.text += " b";
        }) == "422 the sentence has 201 words; 200 at most are taken");
  CHECK(asked("general", [](auto& q) {
          q.force = "Zork";
        }).find("422 \"zork\" is not in the model's vocabulary") == 0);
  CHECK(asked("general", [](auto& q) { q.prefix = {100}; }) == "422 the model has no word 100 to begin with");
  CHECK(asked("general", [](auto& q) { q.prefix = {1}; }) == "422 the model has no word 1 to begin with");
  CHECK(asked("general", [](auto& q) { q.prefix = {4, 3}; }) == "");
  CHECK(asked("general", [](auto& q) { q.prefix = {4, 3, 4}; }) ==
        "422 a translation ends with its first </s>");
  CHECK(asked("general", [](auto& q) { q.prefix.assign(201, 4); }) ==
        "422 201 words are forced; 200 at most are");
  CHECK(asked("general", [](auto& q) { q.hidden = {5}; }) ==
        "422 there is no source word 5 to mask: they are 0 to 4, </s> the last");
  CHECK(asked("general", [](auto& q) { q.hidden = {0, 1, 2, 3, 4}; }).find("422 all words are masked") == 0);
  CHECK(asked("general", [](auto& q) { q.hidden = {1, 1, 1, 1, 1}; }) == "");
  CHECK(asked("none", [](auto& q) { q.hidden = {0}; }) == "422 this model has no attention to mask");
  CHECK(asked("none", [](auto& q) { q.attention_temperature = 2; }).find("422 this model has no attention") ==
        0);
  CHECK(asked("transformer", [](auto& q) { q.attention_temperature = 2; }).find("422 a Transformer's") == 0);
  CHECK(refusal([] {
          ServeRequest q = asking("general", "the cat");
          q.seed = 1;
          all().beam(all().prepare(q));
        }).find("422 a beam takes") == 0);
}

TEST_CASE("what a model that has diverged makes of a word is nan, as in traces, and not missing") {
  const std::string directory = served_files().file("diverged");
  translator::Model model = translator::Model::load(lens::own_model());
  for (const auto& p : gradus::nn::named_parameters(*model.network))
    p.parameter->assign(gradus::Tensor::full(p.parameter->shape(), 3e38));
  model.save_description(directory);
  model.save_weights(directory);
  const ServedModels answers({directory});
  const ServeRequest q = asking("", "she sings");
  const Told t = told(answers, q);
  CHECK(t.tokens[0]["probability"] == "nan");
  CHECK(t.end["log_probability"] == "nan");
  const json tree = answers.beam(answers.prepare(q));
  CHECK(tree["nodes"][0]["log_probability"] == "nan");
  CHECK(tree["translations"][0]["log_probability"] == "nan");
}

TEST_CASE("pieces are shown as the words they make") {
  if (gradus::testing::no_pieces()) return;
  const ServedModels answers({saved_model("pieces", {.subwords = true})});
  const ServeRequest q = asking("", "the cat eats fish");
  const Told t = told(answers, q);
  CHECK(t.source["words"] == json({"the", "cat", "eats", "fish"}));
  CHECK(t.source["pieces"].size() > 4);
  for (const json& token : t.tokens) CHECK(token["weights"].size() == 5);
  CHECK(t.tokens.back()["word"].get<size_t>() <= t.tokens.size());
}

TEST_CASE("directories of one name get different ones") {
  const std::string a = saved_model("x"), b = saved_model("more/x");
  const ServedModels answers({a, b + "/"});
  CHECK(answers.models()["models"][0]["name"] == "x");
  CHECK(answers.models()["models"][1]["name"] == "x (2)");
  CHECK(answers.page().find("\"x (2)\"") != std::string::npos);
  const ServedModels of_several({saved_model("both/1"), saved_model("both/2")});  // of train --together
  CHECK(of_several.models()["models"][0]["name"] == "both/1");
  CHECK(of_several.models()["models"][1]["name"] == "both/2");
}

TEST_CASE("no translation is made to begin with what is never said") {
  for (int32_t never : {gradus::nn::kPad, gradus::nn::kBos}) {
    ServeRequest q = asking("general", "the cat eats fish");
    q.prefix = {never};
    CHECK(refusal([&] { all().prepare(q); }) ==
          "422 the model has no word " + std::to_string(never) + " to begin with");
  }
}
