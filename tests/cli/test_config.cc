// The options of a run as a file: --config, --print-config, and --resume that needs no others.

#include <filesystem>

#include "../pieces.h"
#include "../quick_doctest.h"
#include <common/json_text.h>
#include "program.h"

using namespace cli;
using nlohmann::ordered_json;

namespace {

void check_same_model(const std::string& a, const std::string& b) {
  for (const char* file :
       {"model.safetensors", "config.json", "source.vocab", "target.vocab", "training.json"}) {
    CAPTURE(file);
    CHECK(read_file(a + "/" + file) == read_file(b + "/" + file));
  }
}

// What --print-config says with these options.
ordered_json printed(const Arguments& more) {
  Result r = run_well(Arguments{"train", "--print-config"} + more);
  CHECK(r.err.empty());
  return json_text::parse(r.out);
}

const std::string& first_run() {
  static const std::string name = [] {
    run_well(small_run("first", {"--epochs", "2", "--seed", "7", "--label-smoothing", "0.1",
                                 "--threads", "2", "--probe", "she eats", "--clip-value", "0.5"}));
    return std::string("first");
  }();
  return name;
}

}  // namespace

TEST_CASE("a run's training.json makes the same model again, to the last byte") {
  run_well({"train", "--config", first_run() + "/training.json", "--out", "second"});
  check_same_model("first", "second");
  // Printed, it is the same file; without it, the same command.
  CHECK(run({"train", "--config", "first/training.json", "--print-config"}).out ==
        read_file("first/training.json"));
  CHECK(printed({"--seed", "18446744073709551615"}).at("seed") == 18446744073709551615u);
  CHECK_FALSE(exists("model"));
  // A Transformer of pieces, and pairs in two files.
  if (gradus::testing::no_pieces()) return;
  REQUIRE(shell("cut -f1 short.tsv > short.en; cut -f2 short.tsv > short.fr").code == 0);
  run_well({"train",       "--source",
            "short.en",    "--target",
            "short.fr",    "--model",
            "transformer", "--d-model",
            "16",          "--layers",
            "1",           "--epochs",
            "1",           "--subword-dropout",
            "0.1",         "--subword-size",
            "400",         "--out",
            "third",       "-q",
            "--threads",   "1"});
  REQUIRE(run({"train", "--config", "third/training.json", "--out", "fourth", "-q"}).code == 0);
  check_same_model("third", "fourth");
  CHECK(read_file("third/pieces.model") == read_file("fourth/pieces.model"));
}

TEST_CASE("the command line comes first, and what a file says of another kind of thing goes") {
  const std::string file = first_run() + "/training.json";
  ordered_json same = printed({"--config", file, "--lr", "0.02", "--attention", "general", "--epochs", "3"});
  CHECK(same.at("lr") == 0.02);
  CHECK(same.at("attention") == "general");
  CHECK(same.at("epochs") == 3);
  CHECK(same.at("hidden") == 32);
  CHECK(same.at("optimizer") == "adam");
  CHECK(same.at("data") == in_scratch("short.tsv"));
  ordered_json sgd = printed({"--config", file, "--optimizer", "sgd"});
  CHECK(sgd.at("lr") == 1);
  CHECK(sgd.at("label-smoothing") == 0.1);
  CHECK(printed({"--config", file, "--optimizer", "adam"}).at("lr") == 0.01);
  ordered_json timed = printed({"--config", file, "--max-minutes", "2"});
  CHECK(timed.at("epochs") == 0);
  ordered_json other = printed({"--config", file, "--model", "transformer"});
  CHECK(other.at("embedding") == 128);
  CHECK(other.at("lr") == 0.004);
  CHECK(other.at("label-smoothing") == 0.1);
  CHECK_FALSE(other.contains("hidden"));
  write_file("a", "one\ntwo\nthree\n");
  write_file("b", "un\ndeux\ntrois\n");
  ordered_json files = printed({"--config", file, "--source", "a", "--target", "b"});
  CHECK(files.at("data") == "");
  CHECK(files.at("source") == in_scratch("a"));
  // A file may say a part.
  write_file("part.json", "{\"hidden\": 48, \"lr\": 1, \"dropout\": 0}");
  ordered_json part = printed({"--config", "part.json"});
  CHECK(part.at("hidden") == 48);
  CHECK(part.at("embedding") == 48);  // as wide as the states that are given
}

TEST_CASE("both sides of a switch and all names of an option say what they are for") {
  write_file("off.json", json_text::dump(printed({"--unidirectional"})));
  CHECK(printed({"--config", "off.json"}).at("bidirectional") == false);
  CHECK(printed({"--config", "off.json", "--bidirectional"}).at("bidirectional") == true);
  write_file("off.json",
             json_text::dump(printed({"--model", "transformer", "--norm-last", "--no-causal-mask"})));
  const ordered_json off = printed({"--config", "off.json"}),
                     on = printed({"--config", "off.json", "--norm-first", "--causal-mask"});
  for (const char* name : {"norm-first", "causal-mask"}) {
    CAPTURE(name);
    CHECK(off.at(name) == false);
    CHECK(on.at(name) == true);
  }
  const ordered_json named = printed({"--embedding-dim", "48", "--num-layers", "2"});
  CHECK(named.at("embedding") == 48);
  CHECK(named.at("layers") == 2);
}

TEST_CASE("what excludes another option on the command line takes its place in a file, whatever that says") {
  write_file("a", "one\ntwo\nthree\n");
  write_file("b", "un\ndeux\ntrois\n");
  write_file("some.json", "{\"data\": \"" + short_pairs() + "\", \"valid\": \"" + short_pairs() +
                              "\", \"batch-tokens\": 500, \"epochs\": 5}");
  auto with = [](const Arguments& more) {
    return printed(Arguments{"--config", "some.json"} + more);
  };
  ordered_json files = with({"--source", "a", "--target", "b"});
  CHECK(files.at("data") == "");
  CHECK(files.at("source") == in_scratch("a"));
  ordered_json valid = with({"--valid-source", "a", "--valid-target", "b"});
  CHECK(valid.at("valid") == "");
  CHECK(valid.at("valid-source") == in_scratch("a"));
  // What a run with --batch-tokens has, too, and does not use.
  ordered_json batch = with({"--batch-size", "64"});
  CHECK(batch.at("batch-size") == 64);
  CHECK(batch.at("batch-tokens") == 0);
  ordered_json timed = with({"--max-minutes", "2"});
  CHECK(timed.at("epochs") == 0);
  CHECK(timed.at("max-minutes") == 2);
}

TEST_CASE("defaults of the run that a file is of do not stick to another kind of run") {
  const std::string file = first_run() + "/training.json";
  CHECK(printed({"--config", file, "--model", "transformer"}).at("warmup") == 0);
  write_file("plain.json", json_text::dump(printed({"--data", "short.tsv"})));
  CHECK(printed({"--config", "plain.json", "--guided-alignment", "0.3"}).at("links") == "learnt");
  CHECK(printed({"--config", "plain.json", "--clip-value", "0.3"}).at("clip-norm") == 0);
}

TEST_CASE("a file that is no configuration is refused with its name and the field") {
  const std::string head = "translator: bad.json: is not a configuration of a run: ";
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"{\"hiden\": 3}", head + "\"hiden\" is no option of a run with a gru; hint: hidden?\n"},
      {"{\"model\": \"transformer\", \"hidden\": 3}",
       head + "\"hidden\" is no option of a run with a transformer\n"},
      {"{\"qqqqqqq\\u001b[31m\": 3}",
       head + "\"qqqqqqq\xEF\xBF\xBD[31m\" is no option of a run with a gru\n"},
      {"{\"hidden\": \"3\"}", head + "\"hidden\" must be a whole number: \"3\"\n"},
      {"{\"hidden\": 0}", head + "\"hidden\" must be from 1 to 65536: 0\n"},
      {"{\"hidden\": 18446744073709551615}",
       head + "\"hidden\" must be from 1 to 65536: 18446744073709551615\n"},
      {"{\"lr\": true}", head + "\"lr\" must be a number: true\n"},
      {"{\"lr\": -1}", head + "\"lr\" must be from 5e-324 to 1e+30: -1\n"},
      {"{\"patience\": -1}", head + "\"patience\" must be from 0 to 1000000: -1\n"},
      {"{\"average\": 1}", head + "\"average\" must be true or false: 1\n"},
      {"{\"optimizer\": \"adamm\"}", head + "\"optimizer\" cannot be adamm; hint: adam?\n"},
      {"{\"cell\": \"gnu\"}", head + "\"cell\": "},
      {"{\"cell\": \"" + std::string(101, 'x') + "\"}", head + "\"cell\" must be a text of at most 100 bytes "},
      {"{\"optimizer\": \"\\u001b\"}", head + "\"optimizer\" must be a text of at most 100 bytes "},
      {"{\"threads\": 4294967297}", head + "\"threads\" must be from 0 to 256: 4294967297\n"},
      {"{\"model\": \"gpt\"}", head + "\"model\" cannot be gpt"},
      {"{\"seed\": -1}", head + "\"seed\" must be a whole number from 0 on: -1\n"},
      {"{\"data\": [\"a\"]}", head + "\"data\" must be a text: [\"a\"]\n"},
      {"{\"format\": \"gradus-translator\"}",
       head + "\"format\" must be gradus-training: \"gradus-translator\"\n"},
      {"{\"version\": 2}", head + "\"version\" must be 1: it is of a newer program, or of none\n"},
      {"[]", head + "it is no object\n"},
      {"{\"lr\": 1", head + "parse error at line 1, column 9"},
      {"", head + "parse error at line 1, column 1"},
      {std::string(2 << 20, ' '), head + "it has more than a million bytes\n"}};
  for (const auto& [text, said] : bad) {
    CAPTURE(text.substr(0, 60));
    write_file("bad.json", text);
    Result r = run({"train", "--config", "bad.json", "--print-config"});
    CHECK(r.code == 1);
    CHECK(r.err.starts_with(said));
    CHECK(r.out.empty());
    CHECK(acts_on_terminal(r.err) == "");
  }
  CHECK(run({"train", "--config", "nowhere.json"}).err ==
        "translator: nowhere.json: cannot be read: is there such a file?\n");
  CHECK(run({"train", "--config", "."}).err == "translator: .: cannot be read: is there such a file?\n");
  CHECK(run({"train", "--config", "/dev/zero"}).says("it has more than a million bytes"));
  write_file("stdin.json", "{\"data\": \"-\"}");
  check_refused({"train", "--config", "stdin.json"}, 2,
                "stdin.json names standard input for --data: --data - reads it from there again");
}

TEST_CASE("--resume and --out suffice, from any directory, and what prolongs a run is remembered") {
  const Arguments options = {"--epochs", "3",   "--validate-every", "7",
                             "--ema",    "0.9", "--schedule",       "cosine"};
  REQUIRE(run(small_run("unbroken", options)).code == 0);
  interrupted(small_run("stopped", options), "stopped", 2);
  Result rest = shell("mkdir -p elsewhere && cd elsewhere && $T train --resume --out ../stopped -q");
  INFO(rest.err);
  CHECK(rest.code == 0);
  check_same_model("unbroken", "stopped");
  CHECK(run({"train", "--resume", "--out", "stopped"})
            .says("The run was over already: more --epochs or --max-minutes prolong it.\n"));
  REQUIRE(run({"train", "--resume", "--out", "stopped", "--epochs", "4", "-q"}).code == 0);
  CHECK(events("stopped", "validation").back().at("epoch") == 4);
  CHECK(json_text::parse(read_file("stopped/training.json")).at("epochs") == 4);
  CHECK(run({"train", "--resume", "--out", "stopped"}).says("The run was over already"));
  CHECK(run({"train", "--resume", "--out", "stopped", "--lr", "0.5", "-q"}).err ==
        "translator: the run in stopped began with --lr 0.01, not 0.5: --resume cannot change it\n");
}

TEST_CASE("pairs that are somewhere else now are named, and so is what helps") {
  REQUIRE(shell("cp short.tsv pairs.tsv").code == 0);
  REQUIRE(run(small_run("moved", {"--epochs", "1", "-q", "--data", "pairs.tsv"})).code == 0);
  REQUIRE(shell("mv pairs.tsv there.tsv").code == 0);
  check_refused({"train", "--resume", "--out", "moved"}, 1,
                in_scratch("pairs.tsv") +
                    ": is not there, though moved/training.json names it: --data tells where it is now");
  CHECK(run({"train", "--resume", "--out", "moved", "--data", "there.tsv"}).code == 0);
  CHECK(run({"train", "--resume", "--out", "moved"}).code == 0);
}

TEST_CASE("the dropout of a run from before it could rise does not rise when it goes on or is made again") {
  const Arguments options = {"--epochs", "1", "-q", "--dropout", "0.3", "--dropout-warmup", "0"};
  REQUIRE(run(small_run("steady", options)).code == 0);
  auto file = json_text::parse(read_file("steady/training.json"));
  CHECK(file.at("dropout-warmup") == 0);
  file.erase("dropout-warmup");
  write_file("steady/training.json", json_text::dump(file));
  auto again = json_text::parse(run({"train", "--config", "steady/training.json", "--print-config"}).out);
  CHECK(again.at("dropout-warmup") == 0);
  Result rest = run({"train", "--resume", "--out", "steady", "--epochs", "2", "-q"});
  INFO(rest.err);
  CHECK(rest.code == 0);
  CHECK(run({"train", "--resume", "--out", "steady", "--dropout-warmup", "2"})
            .says("began with --dropout-warmup 0, not 2: --resume cannot change it\n"));
  // A run that says nothing has it, and one that takes some options from a file.
  write_file("some.json", "{\"dropout\": 0.3}");
  again = json_text::parse(run(small_run("rising", {"--config", "some.json", "--print-config"})).out);
  CHECK(again.at("dropout-warmup") == 10);
}

TEST_CASE("a run whose training.json is of before it held all options goes on with the same command") {
  REQUIRE(run(small_run("old", {"--epochs", "1", "-q"})).code == 0);
  write_file("old/training.json", "{\n  \"epochs\": 1,\n  \"max_minutes\": 0.0,\n  \"lr\": 0.01\n}\n");
  CHECK(run(small_run("old", {"--epochs", "2", "--resume", "-q"})).code == 0);
  CHECK(events("old", "validation").size() == 2);
  CHECK(run({"train", "--config", "old/training.json", "--print-config"}).code ==
        0);  // of which it is one now
}
