// Training that starts from a trained model: --from, --extend-vocabulary, --freeze.

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>

#include <gradus/io/safetensors.h>

#include "../pieces.h"
#include "../quick_doctest.h"
#include <common/json_text.h>
#include "program.h"

using namespace cli;

namespace {

std::map<std::string, gradus::Tensor> tensors_of(const std::string& file) {
  std::map<std::string, gradus::Tensor> out;
  for (auto& [name, tensor] : gradus::load_safetensors(in_scratch(file)).tensors) out.emplace(name, tensor);
  return out;
}

// The first bytes of b are those of a, all of them.
bool begins_with(const gradus::Tensor& b, const gradus::Tensor& a) {
  return a.bytes() <= b.bytes() && std::memcmp(a.raw(), b.raw(), static_cast<size_t>(a.bytes())) == 0;
}

// Other pairs, in which some words are new.
const std::string& other_pairs() {
  static const std::string name = [] {
    std::string text;
    for (int i = 0; i < 40; ++i)
      text += std::string("she eats ") + (i % 2 ? "quinces" : "apples") + " chez\telle mange des " +
              (i % 2 ? "coings" : "pommes") + " certes\n";
    text += "she eats .\telle mange .\nshe eats .\telle mange .\n";  // known, but for the space
    write_file("other.tsv", text + "a hapax here\tun hapax ici\n");
    write_file("few.tsv", "she eats\telle mange\nshe sings\telle chante\n");
    return std::string("other.tsv");
  }();
  return name;
}

Result from(const std::string& model, const std::string& out, const Arguments& more) {
  Arguments a = {"train", "--from", model,       "--data", other_pairs(), "--valid", "few.tsv",      "--out",
                 out,     "-q",     "--threads", "1",      "--epochs",    "1",       "--batch-size", "8"};
  return run(a + more);
}

const Arguments kStill = {"--lr", "1e-30"};

}  // namespace

TEST_CASE("a run starts from a model's weights, words and shape, with other data and another recipe") {
  Result r = from(trained_model(), "tuned", {"--lr", "1e-30", "--optimizer", "sgd", "--dropout", "0.5"});
  INFO(r.err);
  REQUIRE(r.code == 0);
  auto before = tensors_of("trained/model.safetensors"), after = tensors_of("tuned/model.safetensors");
  REQUIRE(before.size() == after.size());
  for (const auto& [name, tensor] : before) {
    CAPTURE(name);
    CHECK(tensor.bytes() == after.at(name).bytes());
    CHECK(begins_with(after.at(name), tensor));
  }
  for (const char* file : {"source.vocab", "target.vocab"})
    CHECK(read_file(std::string("tuned/") + file) == read_file(std::string("trained/") + file));
  auto config = json_text::parse(read_file("tuned/config.json"));
  CHECK(config.at("network").at("hidden_size") == 32);
  CHECK(config.at("network").at("dropout") == 0.5);
  CHECK(config.at("case") == "lower");
  REQUIRE(from("trained", "as-it-was", kStill).code == 0);
  CHECK(json_text::parse(read_file("as-it-was/config.json")).at("network").at("dropout") == 0.1);
  // It does learn, is made again by its own training.json, and goes on without the model it began with.
  REQUIRE(shell("cp -r trained start").code == 0);
  REQUIRE(from("start", "learnt", {"--epochs", "2"}).code == 0);
  CHECK(events("learnt", "validation").back().at("train_loss") <
        events("learnt", "validation")[0].at("train_loss"));
  REQUIRE(run({"train", "--config", "learnt/training.json", "--out", "again", "-q"}).code == 0);
  CHECK(read_file("learnt/model.safetensors") == read_file("again/model.safetensors"));
  std::filesystem::remove_all(in_scratch("start"));
  CHECK(run({"train", "--resume", "--out", "learnt", "--epochs", "3", "-q"}).code == 0);
  CHECK(run({"train", "--config", "again/training.json", "--out", "third", "-q"}).err ==
        "translator: " + in_scratch("start") +
            ": is not there, though again/training.json names it: --from tells where it is now\n");
}

TEST_CASE("a vocabulary that is full is not extended in silence") {
  trained_model();
  write_file("new.tsv", "blorp zwick\tblorpe zwicke\nblorp zwock\tblorpe zwocke\n");
  Arguments a = {"train", "--from", "trained", "--data", "new.tsv", "--extend-vocabulary", "--min-count", "2",
                 "--out", "full", "-q", "--epochs", "1", "--max-vocabulary", "10"};
  Result r = run(a);
  CHECK(r.code == 2);
  const size_t known = lines_of(read_file("trained/source.vocab")).size();
  CHECK(r.err == "translator: --extend-vocabulary: trained has " + std::to_string(known) +
                     " words a side already: --max-vocabulary makes room for more\n");
  CHECK_FALSE(exists("full"));
  a.back() = "1000";
  REQUIRE(run(a).code == 0);
  CHECK(lines_of(read_file("full/source.vocab")).size() == known + 1);
  a[7] = "3";  // nothing new is seen as often
  a.back() = "10";
  a[9] = "not-full";
  CHECK(run(a).code == 0);
}

TEST_CASE("what contradicts the model is refused, and so is what is for another vocabulary") {
  auto refused = [](const Arguments& more, const std::string& said) {
    Result r = from(trained_model(), "none", more);
    CHECK(r.code == 2);
    CHECK(r.err == "translator: " + said + "\n");
  };
  refused({"--hidden", "40"}, "the model in trained has --hidden 32, not 40: --from cannot change it");
  refused({"--model", "transformer"}, "the model in trained is a gru: --from cannot change it");
  refused({"--case", "keep", "--cell", "lstm"},
          "the model in trained has --cell gru, not lstm; --case lower, not keep: --from cannot change them");
  refused({"--min-count", "3"},
          "--min-count: --from keeps the words of trained; --extend-vocabulary adds to them");
  refused({"--subword-dropout", "0.1"}, "--subword-dropout is for pieces, but words are the tokens here");
  std::string names;
  for (const auto& [name, tensor] : gradus::load_safetensors(in_scratch("trained/model.safetensors")).tensors)
    names += (names.empty() ? "" : ", ") + name;
  refused({"--freeze", "encoder,nothing"},
          "--freeze: \"nothing\" is no parameter, nor what one begins with: " + names);
  refused({"--freeze", "encodr"},
          "--freeze: \"encodr\" is no parameter, nor what one begins with: " + names + "; hint: encoder?");
  refused({"--freeze", "encoder,decoder,output"}, "--freeze: no parameter is left to be trained");
  CHECK_FALSE(exists("none"));
  CHECK(run({"train", "--extend-vocabulary", "--out", "none"}).code == 2);
  CHECK(from("nowhere", "none", {}).err ==
        "translator: nowhere/config.json: cannot be read: is this a model directory?\n");
}

TEST_CASE("new words get rows behind the old ones, which stay") {
  Result r = from(trained_model(), "wider", {"--lr", "1e-30", "--extend-vocabulary"});
  INFO(r.err);
  REQUIRE(r.code == 0);
  CHECK(read_file("wider/source.vocab") == read_file("trained/source.vocab") + "chez\nquinces\n");
  CHECK(read_file("wider/target.vocab") == read_file("trained/target.vocab") + "certes\ncoings\n");
  auto before = tensors_of("trained/model.safetensors"), after = tensors_of("wider/model.safetensors");
  int grown = 0;
  for (const auto& [name, tensor] : before) {
    CAPTURE(name);
    const gradus::Tensor& now = after.at(name);
    CHECK(begins_with(now, tensor));
    if (now.size(0) == tensor.size(0)) continue;
    CHECK(now.size(0) == tensor.size(0) + 2);
    ++grown;
    if (now.dims() == 2) CHECK(now.at(tensor.numel()) != 0);
  }
  CHECK(grown == 4);  // two embeddings, weight and bias of the output
  CHECK(from("trained", "rare", {"--lr", "1e-30", "--extend-vocabulary", "--min-count", "1"}).code == 0);
  CHECK(count(read_file("rare/source.vocab"), "hapax\n") == 1);
  CHECK(run({"translate", "wider", "she eats quinces"}).code == 0);
  CHECK(run({"train", "--resume", "--out", "wider", "--epochs", "2", "-q"}).code == 0);
}

TEST_CASE("a model of pieces keeps them, and says why there are no new ones") {
  if (gradus::testing::no_pieces()) return;
  run_well({"train", "--data", short_pairs(), "--epochs", "1", "--hidden", "16", "--embedding", "16",
            "--subwords", "bpe", "--subword-size", "400", "--out", "pieces", "-q"});
  REQUIRE(from("pieces", "tuned-pieces", {"--subword-dropout", "0.1"}).code == 0);
  for (const char* file : {"source.vocab", "target.vocab", "pieces.model"})
    CHECK(read_file(std::string("tuned-pieces/") + file) == read_file(std::string("pieces/") + file));
  for (const char* option : {"--extend-vocabulary", "--min-count=2", "--subword-size=500"}) {
    Result refused = from("pieces", "none", {option});
    const std::string name = std::string(option).substr(0, std::string(option).find('='));
    CHECK(refused.code == 2);
    CHECK(refused.err == "translator: " + name +
                             ": --from keeps the pieces of pieces: what is new is spelt in smaller ones, and "
                             "nothing is unknown\n");
  }
}

TEST_CASE("what is frozen stays the same to the bit, whatever pulls at it, and the rest learns") {
  const Arguments options = {
      "--freeze", "encoder.embedding,output", "--optimizer", "adamw", "--weight-decay", "0.5", "--ema",
      "0.9"};
  REQUIRE(from(trained_model(), "cold", options).code == 0);
  auto before = tensors_of("trained/model.safetensors"), after = tensors_of("cold/model.safetensors");
  int frozen = 0;
  for (const auto& [name, tensor] : before) {
    CAPTURE(name);
    const bool stays = name == "encoder.embedding.weight" || name.starts_with("output.");
    frozen += stays;
    CHECK(begins_with(after.at(name), tensor) == stays);
  }
  CHECK(frozen == 3);
  CHECK(run({"train", "--resume", "--out", "cold", "--freeze", "encoder", "-q"}).err ==
        "translator: the run in cold began with --freeze encoder.embedding,output, not encoder: --resume "
        "cannot change it\n");
  CHECK(run({"train", "--resume", "--out", "cold", "--epochs", "2", "-q"}).code == 0);
  CHECK(begins_with(tensors_of("cold/model.safetensors").at("output.weight"), before.at("output.weight")));
}
