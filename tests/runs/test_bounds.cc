// What a model directory says of sizes is not believed: config.json spoilt field by field, and what networks
// are foretold to take against what they take.

#include "../about.h"
#include "../quick_doctest.h"
#include "small.h"

#include <cmath>
#include <fstream>

#include <gradus/error.h>
#include <gradus/nn/attention/attention.h>
#include <gradus/nn/module.h>
#include <gradus/nn/recurrent_cell.h>
#include <translator/model/forecast.h>
#include <translator/training/training_forecast.h>
#include <common/error.h>

#include <common/json_text.h>

using namespace translator;
using json = nlohmann::ordered_json;

namespace {

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// What loading the directory says with this config.json; "" when it loads.
std::string refusal_of(const std::string& directory, const json& config) {
  std::ofstream(directory + "/config.json") << json_text::dump(config, 2);
  try {
    Model::load(directory);
    return "";
  } catch (const InputError& e) {
    CHECK(std::string(e.what()).starts_with(directory));
    return e.what();
  } catch (const gradus::Error& e) {  // of the weights, which no longer fit
    return e.message();
  }
}

std::string saved_model(const std::string& name, const std::string& kind) {
  std::string out = runs::directory(name);
  auto pairs = runs::pairs("train", 60);
  Model model = runs::small_model(pairs, "location-aware", kind);
  model.save_description(out);
  model.save_weights(out);
  return out;
}

}  // namespace

TEST_CASE(
    "every field of config.json x every hostile value: refused with the file and the field, and no memory "
    "asked for") {
  const std::vector<json> hostile = {int64_t{1} << 61,
                                     int64_t{1} << 62,
                                     INT64_MAX,
                                     INT64_MIN,
                                     UINT64_MAX,
                                     -1,
                                     0,
                                     1e300,
                                     -1e300,
                                     2.5,
                                     "big",
                                     true,
                                     nullptr,
                                     json::array({1}),
                                     json::object({{"a", 1}}),
                                     int64_t{1} << 16,
                                     std::string(100000, 'x'),
                                     "\x1b[31m"};
  for (const char* kind : {"gru", "transformer"}) {
    std::string out = saved_model(std::string("bounds-") + kind, kind);
    const json good = json_text::parse(runs::read(out + "/config.json"));
    REQUIRE(refusal_of(out, good) == "");
    size_t refused = 0;
    auto spoil = [&](const json::json_pointer& place) {
      const json& value = good.at(place);
      std::string field = place.back();
      for (const json& bad : hostile) {
        json config = good;
        config[place] = bad;
        std::string said = refusal_of(out, config);
        CAPTURE(kind);
        CAPTURE(field);
        CAPTURE(json_text::dump(bad).substr(0, 40));
        CAPTURE(said);
        CHECK(said.size() < 700);
        CHECK_FALSE(holds(said, "\x1b"));
        // Of the right kind and within the bounds a value may be: the weights then tell whether it is.
        bool whole = bad.is_number_integer() && (bad == 0 || bad == (1 << 16)),
             name = value.is_string() && bad.is_string();
        bool possible = (value.is_number() && (whole || (bad == 2.5 && value.is_number_float()))) || name ||
                        (value.is_boolean() && bad.is_boolean());
        if (possible) continue;
        CHECK(holds(said, "config.json: "));
        CHECK(holds(said, field));
        ++refused;
      }
    };
    for (const auto& [key, value] : good.at("network").items())
      if (!value.is_object()) spoil(json::json_pointer("/network/" + key));
    if (kind == std::string("gru"))
      for (const auto& [key, value] : good.at("network").at("attention_options").items())
        spoil(json::json_pointer("/network/attention_options/" + key));
    json cold = good;  // scores are divided by it
    const json::json_pointer temperature(kind == std::string("gru") ? "/network/attention_options/temperature"
                                                                    : "/network/temperature");
    cold[temperature] = 0;
    CHECK(holds(refusal_of(out, cold), "temperature\" must be from 1e-06 to "));
    for (const char* key :
         {"model", "source_language", "case", "subwords", "subword_model", "french_typography"})
      spoil(json::json_pointer(std::string("/") + key));
    CHECK(refused > 150);
    for (const json& bad : {json(nullptr), json::array(), json("x"), json(5)}) {
      json config = good;
      config["network"] = bad;
      CHECK(holds(refusal_of(out, config), "network is no object"));
      CHECK(holds(refusal_of(out, bad), "config.json: is not a translator's configuration: it is no object"));
    }
  }
}

TEST_CASE("sizes that each are possible, but not together with the weights that are there, ask for no memory") {
  std::string out = saved_model("bounds-weights", "gru");
  json config = json_text::parse(runs::read(out + "/config.json"));
  config["network"]["hidden_size"] = 65536;
  config["network"]["num_layers"] = 200;
  std::string said = refusal_of(out, config);
  CHECK(holds(said, "config.json: describes a network of about "));
  CHECK(holds(said, "model.safetensors has "));
}

TEST_CASE("what a network takes is foretold within a tenth, for every attention, order, cell and kind") {
  auto pairs = runs::pairs("train", 300);
  auto near = [&](const Model& model, const std::string& what) {
    double said = foretold_parameters(model.config),
           real = static_cast<double>(gradus::nn::num_parameters(*model.network));
    CAPTURE(what);
    CAPTURE(said);
    CAPTURE(real);
    CHECK(std::abs(said - real) <= 0.1 * real);
  };
  Model base = runs::small_model(pairs, "bahdanau");
  std::vector<std::string> names = gradus::nn::attention_names();
  names.push_back("none");
  for (const std::string& attention : names)
    for (const char* order : {"auto", "bahdanau", "luong"}) {
      ModelConfig c = base.config;
      c.network.attention = attention;
      c.network.decoder = order;
      c.network.embedding_dim = 40;
      c.network.hidden_size = 64;
      c.network.rnn.num_layers = 3;
      c.network.decoder_layers = 3;
      c.network.attention_options.max_positions = 500;
      near(Model(c, base.source, base.target, 1), attention + " " + order);
    }
  for (const std::string& cell : gradus::nn::cell_names())
    for (bool both : {true, false}) {
      ModelConfig c = base.config;
      c.network.rnn.cell = gradus::nn::cell_type(cell);
      c.network.rnn.bidirectional = both;
      c.network.readout = both ? "maxout" : "tanh";
      c.network.hidden_size = 96;
      near(Model(c, base.source, base.target, 1), cell);
    }
  for (bool tied : {true, false})
    for (const char* positions : {"learned", "sinusoidal"}) {
      ModelConfig c = base.config;
      c.model = "transformer";
      c.transformer.d_model = 64;
      c.transformer.num_layers = 3;
      c.transformer.num_heads = 4;
      c.transformer.tie_embeddings = tied;
      c.transformer.positions = positions;
      near(Model(c, base.source, base.target, 1), positions);
    }
}

TEST_CASE(
    "training is foretold with gradients, the optimiser's state and a batch; sizes beyond all bounds do not "
    "wrap") {
  auto pairs = runs::pairs("train", 60);
  ModelConfig c = runs::small_model(pairs, "bahdanau").config;
  TrainOptions adam = runs::options("", 1), sgd = adam;
  sgd.optimizer = "sgd";
  double weights = 4 * foretold_parameters(c);
  CHECK(foretold_training(c, sgd, pairs) > 2 * weights);
  CHECK(foretold_training(c, adam, pairs) - foretold_training(c, sgd, pairs) == about(2 * weights));
  TrainOptions averaged = adam;
  averaged.ema = 0.99;
  CHECK(foretold_training(c, averaged, pairs) - foretold_training(c, adam, pairs) == about(weights));
  CHECK(why_training_is_too_large(c, adam, pairs) == "");
  c.network.hidden_size = c.network.embedding_dim = int64_t{1} << 61;
  c.network.rnn.num_layers = int64_t{1} << 61;
  CHECK(foretold_parameters(c) > 1e50);
  CHECK(holds(why_training_is_too_large(c, adam, pairs), "and there are "));
  CHECK(holds(why_too_large(c), "of memory here"));
  CHECK_THROWS_AS(Model(c, Vocabulary(), Vocabulary(), 1), gradus::Error);
  CHECK(format_bytes(3.24e9) == "3.24 GB");
  CHECK(format_bytes(999.7e3) == "1 MB");
}
