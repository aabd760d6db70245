// `translator train`: what it leaves behind, and that it is the same again.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <sstream>

#include <gradus/nn/attention/attention.h>

#include "../about.h"
#include "../quick_doctest.h"
#include <common/json_text.h>
#include "program.h"

using namespace cli;
namespace fs = std::filesystem;

namespace {

// What a model loses a word that only knows how often each word of the target language is: their entropy, of
// small_run's data. One that learns more than that is below.
double loss_by_frequency() {
  static const double entropy = [] {
    std::map<std::string, double> counts;
    double all = 0;
    for (const std::string& line : lines_of(read_file(short_pairs()))) {
      std::string words;
      for (char c : line.substr(line.find('\t') + 1))
        words += c == '.' || c == '?' ? std::string(" ") + c : c == '\'' ? "' " : std::string(1, c);
      std::istringstream in(words + " </s>");
      for (std::string word; in >> word; ++all) ++counts[word];
    }
    double sum = 0;
    for (const auto& [word, count] : counts) sum -= count / all * std::log(count / all);
    return sum;
  }();
  return entropy;
}

}  // namespace

TEST_CASE("train leaves a whole model directory and a log of its validations; progress is on stderr") {
  Result r = run(small_run("fresh", {"--epochs", "2"}));
  INFO(r.err);
  CHECK(r.code == 0);
  CHECK(r.out.empty());
  for (const char* name :
       {"config.json", "source.vocab", "target.vocab", "model.safetensors", "last.safetensors", "train.log"})
    CHECK_MESSAGE(exists(std::string("fresh/") + name), name);
  for (const auto& entry : std::filesystem::directory_iterator(scratch_path() / "fresh"))
    CHECK_MESSAGE(entry.path().extension() != ".tmp", entry.path().string());
  CHECK(r.err.find('\r') == std::string::npos);
  CHECK(r.err.find('\x1b') == std::string::npos);
  CHECK(r.says("short.tsv: 1200 of 1200 lines read\n"));
  CHECK(r.says("no validation data given: 60 pairs held out of the training data\n"));
  CHECK(r.says(" parameters, 1 thread\n"));
  CHECK(r.says("  ->  "));
  CHECK(r.says("is in fresh.\n"));
  CHECK(count(r.err, "perplexity") == 2);
  auto words = lines_of(read_file("fresh/source.vocab"));
  REQUIRE(words.size() > 100);
  CHECK(std::vector<std::string>(words.begin(), words.begin() + 4) ==
        std::vector<std::string>{"<unk>", "<pad>", "<s>", "</s>"});
  auto config = json_text::parse(read_file("fresh/config.json"));
  CHECK(config.at("network").at("hidden_size") == 32);
  CHECK(config.at("network").at("source_vocabulary") == words.size());

  auto log = events("fresh");
  REQUIRE(log.size() == 4);
  CHECK(log[0].at("event") == "start");
  CHECK(log[3] == nlohmann::ordered_json{
                      {"event", "end"}, {"finished", true}, {"step", 72}, {"seconds", log[3].at("seconds")}});
  CHECK(log[0].at("pairs") == 1140);
  CHECK(log[0].at("epochs") == 2);
  for (int epoch : {1, 2}) {
    const auto& v = log[static_cast<size_t>(epoch)];
    CHECK(v.at("event") == "validation");
    CHECK(v.at("epoch") == epoch);
    CHECK(v.at("step") == epoch * 36);
    CHECK(v.at("perplexity").get<double>() == about(std::exp(v.at("valid_loss").get<double>())));
    CHECK(v.at("samples").size() == 3);
  }
  CHECK(log[2].at("valid_loss") < log[1].at("valid_loss"));
  CHECK(log[2].at("train_loss") < log[1].at("train_loss"));
}

TEST_CASE("a sample is cut to the width of the screen, a file's being 200 columns") {
  std::string sentence = "she";
  for (int i = 0; i < 100; ++i) sentence += " eats";
  Result r = run_well(small_run("wide", {"--epochs", "1", "--probe", sentence}));
  const std::vector<std::string> lines = lines_of(r.err);
  const auto sample =
      std::find_if(lines.begin(), lines.end(), [](auto& l) { return l.starts_with("          she"); });
  REQUIRE(sample != lines.end());
  CHECK(*sample == "          " + sentence.substr(0, 189) + "\xE2\x80\xA6");
  CHECK(events("wide", "validation")[0].at("samples")[0].at("source") == sentence);
}

TEST_CASE("train -q says nothing when nothing is wrong") {
  Result r = run(small_run("quiet", {"--epochs", "1", "-q"}));
  CHECK(r.code == 0);
  CHECK(r.out + r.err == "");
}

// What stands behind the header of a safetensors file.
static std::string numbers_of(const std::string& name) {
  std::string bytes = read_file(name);
  REQUIRE(bytes.size() > 8);
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), 8);
  REQUIRE(header < bytes.size() - 8);
  return bytes.substr(8 + header);
}

TEST_CASE("the same seed and threads give the same bytes; another seed does not") {
  for (const char* out : {"same1", "same2"})
    REQUIRE(run(small_run(out, {"--epochs", "1", "--threads", "2"})).code == 0);
  CHECK(read_file("same1/model.safetensors") == read_file("same2/model.safetensors"));
  // The states hold the seconds taken, and differ in those alone.
  CHECK(numbers_of("same1/last.safetensors") == numbers_of("same2/last.safetensors"));
  REQUIRE(run(small_run("same3", {"--epochs", "1", "--threads", "2", "--seed", "43"})).code == 0);
  CHECK(read_file("same1/model.safetensors") != read_file("same3/model.safetensors"));
}

TEST_CASE("one thread and two learn the same, up to rounding") {
  // Without dropout: each thread draws masks of its own.
  for (const char* threads : {"1", "2"})
    REQUIRE(
        run(small_run(std::string("threads") + threads,
                      {"--epochs", "1", "--dropout", "0", "--recurrent-dropout", "0", "--threads", threads}))
            .code == 0);
  auto one = events("threads1", "validation"), two = events("threads2", "validation");
  REQUIRE(one.size() == 1);
  REQUIRE(two.size() == 1);
  for (const char* key : {"train_loss", "valid_loss"})
    CHECK(std::abs(one[0].at(key).get<double>() - two[0].at(key).get<double>()) < 1e-4);
}

TEST_CASE("every attention trains and translates") {
  std::vector<std::string> names = gradus::nn::attention_names();
  names.push_back("none");
  for (const std::string& attention : names) {
    CAPTURE(attention);
    // The oracle needs alignments, which the embedded corpus has.
    Arguments arguments = attention == "oracle" ? Arguments{"train", "--corpus-size", "1000",      "--hidden",
                                                            "32",    "--embedding",   "32",        "--epochs",
                                                            "3",     "--out",         "by_oracle", "--lr",
                                                            "0.01",  "-q"}
                                                : small_run("by_" + attention, {"--epochs", "3", "-q"});
    Result r = run(arguments + Arguments{"--attention", attention});
    CHECK(r.code == 0);
    CHECK(r.err == "");
    auto config = json_text::parse(read_file("by_" + attention + "/config.json"));
    CHECK(config.at("network").at("attention") == attention);
    auto log = events("by_" + attention, "validation");
    REQUIRE(!log.empty());
    CHECK(log.back().at("valid_loss") < loss_by_frequency() - 0.25);
    Result t = run({"translate", "by_" + attention, "she eats apples", "--attention-map", "--alignments"});
    CHECK(t.code == 0);
    bool draws = attention != "none";
    CHECK((lines_of(t.out).size() > 1) == draws);
    CHECK(t.err == (draws ? "" : "translator: this model has no attention to draw\n"));
  }
}

TEST_CASE("every cell trains and translates; models of before --cell still load") {
  for (const std::string cell : {"gru-bahdanau", "lstm", "rnn-relu"}) {
    CAPTURE(cell);
    Result r = run(small_run("by_" + cell, {"--epochs", "10", "--lr", "0.003", "--cell", cell, "--layers", "2",
                                            "--residual", "--variational", "--recurrent-dropout", "0.1"}));
    CHECK(r.code == 0);
    auto config = json_text::parse(read_file("by_" + cell + "/config.json"));
    CHECK(config.at("network").at("cell") == cell);
    auto log = events("by_" + cell, "validation");
    REQUIRE(log.size() == 10);
    CHECK(log.back().at("valid_loss") < loss_by_frequency() - 0.25);
    CHECK(run({"translate", "by_" + cell, "she eats apples"}).code == 0);
  }
  Result now = run({"translate", trained_model(), "she eats apples", "--scores"});
  copy_model("old");
  auto config = json_text::parse(read_file("old/config.json"));
  for (const char* key : {"cell", "layer_norm", "residual", "variational", "recurrent_dropout"})
    CHECK(config.at("network").erase(key) == 1);
  write_file("old/config.json", json_text::dump(config));
  Result old = run({"translate", "old", "she eats apples", "--scores"});
  CHECK(old.code == 0);
  CHECK(old.out == now.out);
}

TEST_CASE("attention's options are kept in the model; help lists what there is") {
  REQUIRE(run(small_run("options",
                        {"--epochs", "1", "-q", "--attention", "local-p", "--window", "3", "--temperature",
                         "0.5", "--top-k", "2", "--readout", "maxout", "--no-input-feeding"}))
              .code == 0);
  auto network = json_text::parse(read_file("options/config.json")).at("network");
  CHECK(network.at("readout") == "maxout");
  CHECK(network.at("input_feeding") == false);
  CHECK(network.at("attention_options").at("window") == 3);
  CHECK(network.at("attention_options").at("temperature") == 0.5);
  CHECK(network.at("attention_options").at("top_k") == 2);
  CHECK(run({"translate", "options", "she eats apples"}).code == 0);
  std::string help = run({"train", "--help"}).out;
  for (const std::string& name : gradus::nn::attention_names())
    CHECK(help.find("\n  " + name) != std::string::npos);
  Result unknown = run({"train", "--attention", "foo"});
  CHECK(unknown.code == 2);
  CHECK(unknown.says("there is no attention \"foo\", only bahdanau, dot, "));
}

TEST_CASE("oracle attention refuses data without alignments") {
  Result r = run(small_run("blind", {"--epochs", "1", "--attention", "oracle"}));
  CHECK(r.code == 1);
  CHECK(r.says("has no alignments (a third column, 0-0 1-2), which oracle attention takes"));
}

TEST_CASE("--max-minutes ends a run; without epochs it is the clock alone") {
  Result r = run(small_run("clock", {"--max-minutes", "0.01"}));
  CHECK(r.code == 0);
  auto log = events("clock", "validation");
  REQUIRE(!log.empty());
  CHECK(events("clock", "start")[0].at("epochs") == 0);
  CHECK(log.back().at("lr").get<double>() < 0.01 * 0.051);  // down to a twentieth
}

TEST_CASE("a model directory is not overwritten by accident") {
  REQUIRE(run(small_run("mine", {"--epochs", "1", "-q"})).code == 0);
  std::string before = read_file("mine/model.safetensors"), log = read_file("mine/train.log");
  check_refused(small_run("mine", {"--epochs", "1"}), 1,
                "mine: holds a model already: --resume goes on with it, --force replaces it, --out names "
                "another place");
  CHECK(read_file("mine/model.safetensors") == before);
  CHECK(read_file("mine/train.log") == log);
  std::filesystem::remove(scratch_path() / "mine/last.safetensors");
  CHECK(run(small_run("mine", {"--epochs", "1"})).code == 1);
  // With --force, bad data still costs nothing.
  CHECK(run({"train", "--data", "missing.tsv", "--out", "mine", "--force"}).code == 1);
  CHECK(read_file("mine/model.safetensors") == before);
  CHECK(run(small_run("mine", {"--epochs", "1", "--force", "--seed", "7", "-q"})).code == 0);
  CHECK(read_file("mine/model.safetensors") != before);
  CHECK(events("mine", "start").size() == 1);
}

TEST_CASE("train --model transformer: the same commands, the same directory") {
  Arguments options = {"--model",  "transformer", "--heads",     "2",       "--ffn",         "48",
                       "--layers", "1",           "--positions", "learned", "--temperature", "0.8"};
  auto small_run = [](const std::string& out, const Arguments& own) {
    Arguments all = cli::small_run(out, own);
    for (const char* recurrent : {"--hidden", "--attention"}) {
      auto option = std::find(all.begin(), all.end(), recurrent);
      all.erase(option, option + 2);
    }
    return all;
  };
  Result r = run(small_run("transformer", options + Arguments{"--epochs", "8"}));
  INFO(r.err);
  CHECK(r.code == 0);
  CHECK(r.says("transformer of 1 + 1 layers, 2 heads, "));
  auto config = json_text::parse(read_file("transformer/config.json"));
  CHECK(config.at("model") == "transformer");
  CHECK(config.at("network").at("d_model") == 32);
  CHECK(config.at("network").at("dim_feedforward") == 48);
  CHECK(config.at("network").at("positions") == "learned");
  CHECK(config.at("network").at("temperature") == 0.8);
  auto log = events("transformer", "validation");
  CHECK(log.back().at("valid_loss") < 0.5 * log.front().at("valid_loss").get<double>());

  Result translated =
      run({"translate", "transformer", "the cat sleeps", "--attention-map", "--beam-size", "3"});
  CHECK(translated.code == 0);
  CHECK(translated.out.find("cat") != std::string::npos);  // above its column of the map
  Result scored = run({"evaluate", "transformer", short_pairs(), "--json"});
  CHECK(scored.code == 0);
  CHECK(json_text::parse(scored.out).at("bleu").get<double>() > 5);

  Result resumed = run(small_run("transformer", options + Arguments{"--epochs", "9", "--resume"}));
  CHECK(resumed.code == 0);
  CHECK(events("transformer", "validation").size() == 9);
  Result other = run(small_run("transformer", {"--model", "gru", "--resume"}));
  CHECK(other.code == 2);
  CHECK(other.says("the model in transformer is a transformer: --resume cannot change it\n"));
  Result larger = run(small_run("transformer", {"--layers", "2", "--resume"}));
  CHECK(larger.code == 2);
  CHECK(larger.says("the model in transformer has --layers 1, not 2: --resume cannot change it\n"));
}

TEST_CASE(
    "train: a source read in reverse and verbs last are kept in the model, and it is tested on its like") {
  Result r = run({"train", "--verb-final", "--unidirectional", "--reverse-source", "--corpus-size", "200",
                  "--hidden", "8", "--embedding", "8", "--epochs", "1", "--out", "reversed", "-q"});
  CHECK(r.err == "");
  REQUIRE(r.code == 0);
  const std::string config = read_file("reversed/config.json");
  for (const char* kept : {"\"reverse_source\": true", "\"verb_final\": true", "\"verb-final French\""})
    CHECK_MESSAGE(count(config, kept) == 1, kept);
  REQUIRE(run({"corpus", "--split", "test", "--verb-final", "--out", "verb-final.tsv"}).code == 0);
  const Result embedded = run({"evaluate", "reversed", "--embedded", "--json", "--beam-size", "1"}),
               file = run({"evaluate", "reversed", "verb-final.tsv", "--json", "--beam-size", "1"});
  auto perplexity = [](const Result& said) {
    const size_t at = said.out.find("\"perplexity\":");
    return said.out.substr(at, said.out.find(',', at) - at);
  };
  CHECK(perplexity(embedded).size() > 14);
  CHECK(perplexity(embedded) == perplexity(file));
  CHECK(run({"train", "--resume", "--epochs", "2", "--out", "reversed", "-q"}).code == 0);
  CHECK(run({"train", "--resume", "--epochs", "3", "--reverse-source", "--out", "reversed", "-q"}).code == 0);
}

TEST_CASE("train: an option of the other kind of model is refused, not ignored") {
  auto said = [](const Arguments& options) {
    Result r = run(Arguments{"train", "--quiet", "--data", short_pairs(), "--out", "other-kind"} + options);
    CHECK(r.code == 2);
    return r.err;
  };
  CHECK(said({"--model", "transformer", "--attention", "dot"}) ==
        "translator: --attention is of a recurrent model: a transformer has nothing for it\n");
  CHECK(said({"--model", "transformer", "--no-input-feeding"}) ==
        "translator: --input-feeding is of a recurrent model: a transformer has nothing for it\n");
  CHECK(said({"--model", "transformer", "--hidden", "64"}) ==
        "translator: --hidden is of a recurrent model: a transformer has nothing for it\n");
  CHECK(said({"--model", "transformer", "--reverse-source"}) ==
        "translator: --reverse-source is of a recurrent model: a transformer has nothing for it\n");
  CHECK(said({"--positions", "none"}) ==
        "translator: --positions is of a transformer: a recurrent model has nothing for it\n");
  CHECK(said({"--momentum", "0.9"}) == "translator: --momentum is of --optimizer sgd and rmsprop\n");
  CHECK(run({"train", "--dropout-warmup", "3", "--out", "other-kind"}).err ==
        "translator: --dropout-warmup needs --dropout: there is none to rise\n");
  CHECK(said({"--dropout-warmup", "3", "--dropout", "0", "--recurrent-dropout", "0"}) ==
        "translator: --dropout-warmup needs --dropout: there is none to rise\n");
  CHECK(said({"--heads", "2"}) ==
        "translator: --heads is of attention multihead, and of a transformer\n");
  CHECK(said({"--attention", "multi-head", "--window", "2"}) ==
        "translator: --window is of the attentions local-m and local-p\n");
  CHECK(said({"--attention", "multi-head", "--heads", "3", "--hidden", "64"}) ==
        "translator: --heads 3 does not divide --hidden 64: each head has an equal part of it\n");
  CHECK(said({"--model", "transformer", "--heads", "3"}) ==
        "translator: --heads 3 does not divide --d-model 128: each head has an equal part of it\n");
  CHECK(said({"--attention", "multi-head", "--guided-alignment", "0.5"}) ==
        "translator: --guided-alignment has nothing to teach to attention multihead\n");
  CHECK(said({"--attention", "bahdanau", "--no-input-feeding"}) ==
        "translator: --input-feeding is of Luong's order: --decoder luong, or an attention published with "
        "it\n");
  for (const auto& [option, value] :
       {std::pair{"--decoder", "luong"}, {"--temperature", "0.5"}, {"--top-k", "2"}})
    CHECK(said({"--attention", "none", option, value}) ==
          "translator: " + std::string(option) + " is of an attention, and --attention none has none\n");
  CHECK(said({"--residual"}) == "translator: --residual needs --layers or --decoder-layers of 2 or more: the "
                                "first has none below it\n");
  CHECK(run({"train", "--residual", "--decoder-layers", "2", "--print-config"}).code == 0);
  CHECK(said({"--links", "learnt"}) ==
        "translator: --links needs --guided-alignment, which learns from them\n");
  CHECK(said({"--corpus-size", "500"}) ==
        "translator: --corpus-size is of the embedded corpus: --data and --source are taken whole\n");
  CHECK(said({"--average", "--keep", "1"}) ==
        "translator: --average needs --keep 2 or more: the mean of one model is itself\n");
  CHECK_FALSE(exists("other-kind"));
}

TEST_CASE("a configuration without \"model\" is a recurrent one's, as all were before there was a choice") {
  copy_model("older");
  auto config = json_text::parse(read_file("older/config.json"));
  REQUIRE(config.at("model") == "gru");
  config.erase("model");
  write_file("older/config.json", json_text::dump(config));
  Result a = run({"translate", trained_model(), "the cat sleeps"}),
         b = run({"translate", "older", "the cat sleeps"});
  CHECK(b.code == 0);
  CHECK(a.out == b.out);
  config["model"] = "oracle";
  write_file("older/config.json", json_text::dump(config));
  Result c = run({"translate", "older", "the cat sleeps"});
  CHECK(c.code == 1);
  CHECK(c.says("unknown model \"oracle\": gru or transformer"));
}
