// The lists of options: names, texts, and what both kinds of network have.

#include <sstream>

#include <nlohmann/json.hpp>

#include <translator/model/fields_json.h>
#include <translator/model/model_config.h>
#include <translator/training/train_options.h>

#include "../quick_doctest.h"

using namespace translator;

TEST_CASE("a field's option is the first long name of its flags, and its text what people write") {
  ModelConfig c;
  c.network.attention = "additive";
  c.network.rnn.cell = gradus::nn::cell_type("lstm");
  c.network.rnn.dropout = 0.25;
  std::map<std::string, std::string> texts;
  for (const Fields& list : {common_fields(c), network_fields(c, "gru")})
    for (const Field& f : list) texts[f.option()] = f.text();
  CHECK(texts.at("--model") == "gru");
  CHECK(texts.at("--embedding") == "128");
  CHECK(texts.at("--attention") == "bahdanau");  // of which additive is an alias
  CHECK(texts.at("--cell") == "lstm");
  CHECK(texts.at("--dropout") == "0.25");
  CHECK(texts.at("--input-feeding") == "yes");
  CHECK(texts.at("--case") == "lower");
}

TEST_CASE("an option that both networks have is explained once, has one kind of value, and can be handed on") {
  ModelConfig c;
  size_t shared = 0;
  for (const Field& to : network_fields(c, "transformer")) {
    if (*to.help || !*to.flags) continue;
    CAPTURE(to.flags);
    size_t found = 0;
    for (const Field& from : network_fields(c, "gru")) {
      if (from.option() != to.option()) continue;
      ++found;
      CHECK(*from.help);
      CHECK(from.value.index() == to.value.index());
    }
    CHECK(found == 1);
    ++shared;
  }
  CHECK(shared == 6);
  c.network.embedding_dim = 77;
  for (const Field& to : network_fields(c, "transformer"))
    for (const Field& from : network_fields(c, "gru"))
      if (to.option() == "--embedding" && from.option() == "--embedding") to.assign(from);
  CHECK(c.transformer.d_model == 77);
}

TEST_CASE("a cell is set by its name and keeps its layer_norm") {
  ModelConfig c;
  c.network.rnn.cell.layer_norm = true;
  Cell{&c.network.rnn.cell}.set("gru-bahdanau");
  CHECK(c.network.rnn.cell.bahdanau);
  CHECK(c.network.rnn.cell.layer_norm);
}

TEST_CASE("a path that is not UTF-8 is written to JSON as what can be shown of it") {
  std::string path = "pairs-\xe9.tsv";
  CHECK(to_json(Field{"--data", Free{&path}}) == "pairs-\uFFFD.tsv");
}

TEST_CASE("what a model of before there were three cases says of capitals") {
  for (const auto& [lowercase, letter_case] : {std::pair{"true", "lower"}, {"false", "keep"}}) {
    ModelConfig c;
    c.network.source_vocabulary = c.network.target_vocabulary = 9;
    std::string text = to_json(c);
    const std::string now = "\"case\": \"lower\"";
    text.replace(text.find(now), now.size(), "\"lowercase\": " + std::string(lowercase));
    std::istringstream file(text);
    CHECK(read_config(file, "config.json").letter_case == letter_case);
  }
}

TEST_CASE("no option of training has two lists or two places in one") {
  TrainOptions o;
  std::map<std::string, int> times;
  for (const Fields& list : {o.recipe(), o.budget()})
    for (const Field& f : list) {
      CHECK(*f.help);
      CHECK(++times[f.option()] == 1);
    }
}
