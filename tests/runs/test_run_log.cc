// train.log: docs/run-log.md.

#include <sys/resource.h>

#include <csignal>

#include <common/error.h>
#include <translator/model/files.h>

#include "../quick_doctest.h"
#include "../scratch.h"
#include "page/schema.h"
#include "small.h"

using lens::json;
using translator::append_line;

namespace {

void check_schema(const std::vector<json>& lines) {
  for (const json& line : lines) {
    auto found = lens::problems(line, lens::run_log_schema());
    for (const std::string& problem : found) FAIL_CHECK(problem);
  }
}

json timeless(std::vector<json> log) {
  for (json& line : log)
    for (const char* key : {"seconds", "tokens_per_s"}) line.erase(key);
  return log;
}

}  // namespace

TEST_CASE("a run of two epochs logs what the schema says, the same each time") {
  std::string out = runs::train("two");
  std::vector<json> log = runs::log(out);
  check_schema(log);
  REQUIRE(log.size() == 4);
  CHECK(log[0]["version"] == 2);
  size_t layers = log[0]["layers"].size();
  CHECK(log[0]["layers"][0] ==
        json{{"name", "encoder.embedding.weight"}, {"shape", log[0]["layers"][0]["shape"]}});
  for (size_t i : {1, 2}) {
    const json& v = log[i];
    CHECK(v["norms"]["step"] == v["step"].get<int>() - 1);  // the step just before
    for (const char* kind : {"gradient", "weight", "update"}) CHECK(v["norms"][kind].size() == layers);
    CHECK(v["attention_entropy"].get<double>() > 0);
    CHECK(v["worst"].size() == 5);
    const json& p = v["probe"];
    CHECK(p["source"] == log[1]["samples"][0]["source"]);
    CHECK(p["weights"].size() == p["target_words"].size());
    CHECK(p["weights"][0].size() == p["source_words"].size());
  }
  CHECK(log[3]["finished"] == true);
  CHECK(timeless(log) == timeless(runs::log(runs::train("again"))));
}

TEST_CASE("a run that is judged by its translations logs their score, and which models' mean is the best") {
  translator::TrainOptions o = runs::options(runs::directory("judged"), 1);
  o.metric = "chrf";
  const std::vector<translator::SentencePair> data = runs::pairs("train", 60);
  translator::Model model = runs::small_model(data);
  translator::Trainer trainer(model, data, data, o);
  const std::atomic<bool> never{false};
  REQUIRE(trainer.run(never));
  translator::RunLog(o.out).end(true, 7, 1.5, {3, 7});
  std::vector<json> lines = runs::log(o.out);
  check_schema(lines);
  CHECK(lines[1]["score"].get<double>() == trainer.validations()[0].score);
  CHECK(lines.back()["averaged"] == json{3, 7});
}

TEST_CASE("a model without attention logs no weights and no entropy") {
  std::vector<json> log = runs::log(runs::train("plain", 1, "none"));
  check_schema(log);
  CHECK(log[1]["attention_entropy"].is_null());
  CHECK(log[1]["probe"]["weights"].is_null());
  CHECK(log[1]["probe"]["output"].is_string());
}

TEST_CASE("the schema refuses what is wrong") {
  std::vector<json> log = runs::log(runs::train("wrong", 1));
  json v = log[1];
  v.erase("norms");
  CHECK(!lens::problems(v, lens::run_log_schema()).empty());
  v = log[1];
  v["probe"]["weights"] = "none";
  CHECK(!lens::problems(v, lens::run_log_schema()).empty());
  v = log[1];
  v["surprise"] = 1;
  CHECK(!lens::problems(v, lens::run_log_schema()).empty());
  CHECK(!lens::problems(json{{"event", "party"}}, lens::run_log_schema()).empty());
}

TEST_CASE("docs/run-log.md names every field and the version") {
  std::string page = runs::read(std::string(GRADUS_DOCS_DIR) + "/run-log.md");
  const json& kinds = lens::run_log_schema().at("$defs");
  for (const char* kind : {"start", "resume", "validation", "end"})
    for (const auto& [field, rule] : kinds.at(kind).at("properties").items()) {
      CAPTURE(field);
      CHECK(page.find("`" + field + "`") != std::string::npos);
    }
  CHECK(page.find("This page describes version " + std::to_string(translator::RunLog::kVersion)) !=
        std::string::npos);
  CHECK(kinds.at("start").at("properties").at("version").at("const") == translator::RunLog::kVersion);
}

TEST_CASE("a line that does not fit is taken back") {
  scratch::Directory directory;
  const std::string path = directory.file("log");
  append_line(path, "whole");
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit less{10, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &less) == 0);
  CHECK_THROWS_AS(append_line(path, "in part"), translator::InputError);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CHECK(runs::read(path) == "whole\n");
}
