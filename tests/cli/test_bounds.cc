// Options that ask for more than there is.

#include "../quick_doctest.h"
#include "../skip.h"
#include "program.h"

using namespace cli;

TEST_CASE("every number on train's command line has bounds, and what lies outside is wrong usage") {
  const std::vector<std::string> whole = {
      "--hidden",         "--embedding",      "--layers",     "--heads",      "--ffn",     "--window",
      "--top-k",          "--epochs",         "--batch-size", "--warmup",     "--threads", "--min-count",
      "--max-vocabulary", "--validate-every", "--max-length", "--corpus-size"};
  const std::vector<std::string> real = {"--max-minutes", "--lr", "--momentum", "--weight-decay", "--clip-norm",
                                         "--clip-value", "--ema", "--scheduled-sampling", "--label-smoothing",
                                         "--dropout", "--recurrent-dropout", "--temperature"};
  auto refused = [](const std::string& option, const std::string& value) {
    Result r = run({"train", "--out", "bounded", option, value});
    CAPTURE(option);
    CAPTURE(value);
    CAPTURE(r.err);
    CHECK(r.code == 2);
    CHECK(r.says(option));
  };
  for (const std::string& option : whole)
    for (const char* value : {"-1", "9223372036854775807", "9223372036854775808", "1e300", "nan", "2.5x"})
      refused(option, value);
  for (const std::string& option : real)
    for (const char* value : {"-1", "1e300", "nan", "inf", "-inf", "x"}) refused(option, value);
  for (const char* value : {"0", "2000001", "4294967297"}) {
    Result r = run({"corpus", "--count", value});
    CHECK(r.code == 2);
    CHECK(r.says("--count"));
  }
  for (const char* option : {"--beam-size", "--n-best", "--max-length"}) {
    Result r = run({"translate", trained_model(), "a", option, "9223372036854775807"});
    CHECK(r.code == 2);
    CHECK(r.says(option));
  }
  CHECK_FALSE(exists("bounded"));
}

TEST_CASE(
    "a network that the machine has no memory for is refused before any is asked for, and the old model "
    "stays") {
  Result r = run(small_run("huge", {"--hidden", "65536", "--embedding", "65536", "--layers", "256"}));
  INFO(r.err);
  CHECK(r.code == 2);
  CHECK(r.says("translator: train: word vectors of 65536 and 256 layers of 65536 units: about "));
  CHECK(r.says(" of memory here. Smaller --hidden, --embedding, --layers"));
  CHECK_FALSE(exists("huge"));
  Result t = run({"train", "--data", short_pairs(), "--out", "huge", "--model", "transformer", "--d-model",
                  "65536", "--layers", "256"});
  CHECK(t.code == 2);
  CHECK(t.says("256 + 256 layers of 65536 units"));
}

TEST_CASE("a limit of the process on its memory counts like the machine's own") {
  if (!gradus::testing::memory_can_be_limited()) return;
  Result limited = shell("ulimit -v 1500000; \"$T\" train --data " + short_pairs() +
                         " --out limited --hidden 4096 --embedding 4096 --threads 1 -q");
  CHECK(limited.code == 2);
  CHECK(limited.says("and there are 1.54 GB of memory here"));
  CHECK_FALSE(exists("limited"));
}

TEST_CASE("config.json with a size of 2^61 is an error and no crash, for every command") {
  copy_model("giant");
  std::string config = read_file("giant/config.json");
  size_t at = config.find("\"hidden_size\": 32");
  REQUIRE(at != std::string::npos);
  write_file("giant/config.json", config.replace(at, 17, "\"hidden_size\": 2305843009213693952"));
  for (const Arguments& command :
       {Arguments{"translate", "giant", "a"}, Arguments{"evaluate", "giant", short_pairs()},
        small_run("giant", {"--resume"})}) {
    Result r = run(command);
    CAPTURE(r.err);
    CHECK(r.code == 1);
    CHECK(r.says(
        "giant/config.json: describes no network that can be built: \"network.hidden_size\" must be from 1 to "
        "65536: 2305843009213693952\n"));
  }
}
