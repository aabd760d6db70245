// `lens report`: what it makes of logs, whole, old and broken.

#include <filesystem>
#include <fstream>
#include <sstream>

#include <common/error.h>
#include <common/program.h>
#include <common/utf8.h>

#include "../quick_doctest.h"
#include "commands.h"
#include "report/report.h"
#include "small.h"

using lens::json;

namespace {

std::string log_directory(const std::string& name, const std::string& lines) {
  std::string out = runs::directory(name);
  std::ofstream(out + "/train.log") << lines;
  return out;
}

std::string validation(int step, const std::string& more = "") {
  return R"({"event":"validation","epoch":1,"step":)" + std::to_string(step) +
         R"(,"seconds":1.0,"train_loss":2.5,"valid_loss":2.0,"perplexity":7.4,"bleu":3.5,"exact_match":0.1,)" +
         R"("best":true,"samples":[{"source":"a","reference":"b","output":"c"}])" + more + "}\n";
}

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

bool has(const json& notes, const std::string& text) {
  return std::find(notes.begin(), notes.end(), json(text)) != notes.end();
}

}  // namespace

TEST_CASE("a run of two epochs on a fixed seed becomes a page and a text") {
  std::string out = runs::train("reported");
  json run = lens::read_run(out);
  CHECK(run["name"] == "reported");
  CHECK(run["state"] == "finished");
  CHECK(run["notes"].empty());
  CHECK(run["validations"].size() == 2);
  CHECK(run["layers"].size() == run["validations"][0]["norms"]["gradient"].size());
  CHECK(lens::last_worst(run).size() == 5);

  lens::ReportOptions options;
  options.run = out;
  options.out = out + "/page.html";
  options.explain = true;
  REQUIRE(lens::report(options) == 0);
  std::string page = runs::read(options.out);
  for (const char* bad : {"http:", "https:", "src=", "@import", "fetch(", "XMLHttpRequest", "{{"}) {
    CAPTURE(std::string(bad));
    CHECK(count(page, bad) == 0);
  }
  CHECK(page.size() < 2'000'000);
  for (int i = 1; i <= 5; ++i) {
    std::string link = "page-worst-" + std::to_string(i) + ".html";
    CHECK(count(page, "\"page\":\"" + link + "\"") == 1);
    CHECK(runs::read(out + "/" + link).starts_with("<!DOCTYPE html>"));
  }

  std::string text = lens::report_text(run, {.width = 100});
  CHECK(text.find("not logged") == std::string::npos);
  CHECK(text.find("  BLEU ") != std::string::npos);
  CHECK(count(text, "encoder.embedding.weight") == 2);  // gradient, and update against weight
  CHECK(text.find("probe: " + run["validations"][1]["probe"]["source"].get<std::string>()) !=
        std::string::npos);
  CHECK(count(text, "nats a word") == 5);
  json deep = run;
  deep["layers"][0]["name"] = "decoder.layers.0.multihead_attn.in_proj_weight";
  CHECK(count(lens::report_text(deep, {.width = 80}), "multihead_attn.in_proj_weight  ") == 2);
  for (int width : {40, 80})
    CHECK_NOTHROW(lens::report_text(run, {.color = translator::Color::truecolor, .width = width}));
  while (deep["validations"].size() < 40) deep["validations"].push_back(deep["validations"][0]);
  for (int width : {80, 100}) {
    std::istringstream curves_and_layers(lens::report_text(deep, {.width = width}));
    for (std::string line; std::getline(curves_and_layers, line) && !line.starts_with("probe: ");)
      CHECK_MESSAGE(translator::utf8::display_width(line) <= width, line);
  }
}

TEST_CASE("without --explain each of the worst has its command") {
  translator::called_as("my tools/lens");
  CHECK(lens::explain_command("runs/a b", "he doesn't", "il", "x.html") ==
        R"('my tools/lens' explain 'runs/a b' 'he doesn'\''t' --target il --out x.html)");
  translator::called_as("lens");
  CHECK(lens::explain_command("m", "-a", "b", "c") == "lens explain m ' -a' --target b --out c");
  CHECK(lens::explain_command("$HOME", "", "~", "*") == "lens explain '$HOME' '' --target '~' --out '*'");
}

TEST_CASE("a log of version 1 is drawn with its gaps marked") {
  std::string out = log_directory(
      "old",
      R"({"event":"start","pairs":10,"epochs":2,"lr":0.003,"recipe":{"--optimizer":"adam"},"parameters":1234})"
      "\n" +
          validation(10) + validation(20));
  json run = lens::read_run(out);
  CHECK(run["state"] == "not logged how it ended");
  CHECK(has(run["notes"], "The log is of version 1: layers, attention and worst sentences were not logged."));
  CHECK(run["layers"].is_null());
  CHECK(run["validations"][0]["samples"].size() == 1);
  std::string text = lens::report_text(run, {.width = 80});
  CHECK(text.find("attention entropy  not logged") != std::string::npos);
  CHECK(count(text, "  not logged\n") >= 3);  // two of layers, the worst
  CHECK(text.find("attention not logged") != std::string::npos);
  CHECK(text.find("  step 10      c\n") != std::string::npos);  // the sample stands in for the probe
  CHECK(count(lens::assemble_page("report", run), "</script>") == 2);
  out = log_directory("newer", R"({"event":"start","version":3})" "\n" + validation(10));
  CHECK(has(lens::read_run(out)["notes"], "The log is of version 3, newer than this program."));
}

TEST_CASE("a model without attention is told as such, not as one whose entropy was not logged") {
  const std::string start = R"({"event":"start","version":2})" "\n";
  const auto read = [&](const std::string& config) {
    std::istringstream log(start + validation(10, R"(,"attention_entropy":null)")), described(config);
    return lens::read_run("a run", log, &described);
  };
  const json none = read(R"({"model":"gru","network":{"attention":"none"}})");
  CHECK(none["attends"] == false);
  CHECK(lens::report_text(none, {.width = 80})
            .find("\n  attention entropy  none: this model has no attention\n") != std::string::npos);
  // Where nobody knows it was not logged.
  for (const char* config : {R"({"network":{"attention":"dot"}})", R"({"model":"transformer"})", "{}"}) {
    const json run = read(config);
    CHECK(run["attends"] == true);
    CHECK(lens::report_text(run, {.width = 80}).find("\n  attention entropy  not logged\n") !=
          std::string::npos);
  }
}

TEST_CASE("a run without validation sentences has no validation, not one of loss 0") {
  const std::string start = R"({"event":"start","version":2})" "\n", none = R"(,"sentences":0,"worst":[])";
  const auto read = [&](const std::string& log) {
    std::istringstream lines(start + log);
    return lens::read_run("a run", lines, nullptr);
  };
  const json run = read(validation(10, none) + validation(20, none));
  CHECK(run["validated"] == false);
  const std::string text = lens::report_text(run, {.width = 80});
  CHECK(text.find("\nno validation: the run had no validation sentences\n  train loss ") != std::string::npos);
  for (const char* claim :
       {"validation loss", "perplexity", "BLEU", "exact match", "entropy", "probe", "worst"}) {
    CAPTURE(std::string(claim));
    CHECK(text.find(claim) == std::string::npos);
  }
  // Old logs do not say how many sentences there were.
  CHECK(read(validation(10) + validation(20, none))["validated"] == true);
  CHECK(read(validation(10, R"(,"sentences":3)"))["validated"] == true);
  CHECK(read("")["validated"] == true);
}

TEST_CASE("the perplexity of a run that diverges is no line of digits") {
  std::istringstream log(R"({"event":"validation","epoch":1,"step":1,"valid_loss":2.5,"perplexity":1e40})");
  const std::string text = lens::report_text(lens::read_run("a run", log, nullptr), {.width = 80});
  CHECK(text.find("2.500 -> 2.500\n") != std::string::npos);
  CHECK(text.find("1e+40 -> 1e+40\n") != std::string::npos);
}

TEST_CASE("of a model of pieces losses are counted by piece, and the probe's words are put together") {
  const std::string more =
      R"(,"probe":{"source":"a cat","reference":null,"output":"le chat","source_words":["cat","</s>"],)"
      R"("target_words":["chat"],"weights":[[0.75,0.25]]},"worst":[{"source":"a","reference":"b","output":"c",)"
      R"("loss":2,"tokens":3}])";
  const std::string start = R"({"event":"start","version":2,"layers":[]})"
                            "\n";
  std::string out = log_directory("pieces", start + validation(10, more));
  auto described = [&](const std::string& config) {
    std::ofstream(out + "/config.json") << config;
    return lens::read_run(out);
  };
  json run = described(R"({"model":"gru","subwords":"unigram"})");
  CHECK(run["pieces"] == true);
  CHECK(run["facts"][1] == json({"subwords", "unigram"}));
  std::string text = lens::report_text(run, {.width = 80});
  CHECK(text.find("2.00 nats a piece") != std::string::npos);
  CHECK(text.find("pieces as words: columns added, rows averaged\n") != std::string::npos);
  for (const char* words : {R"({"model":"gru","subwords":"none"})", R"({"model":"gru"})"}) {
    run = described(words);
    CHECK(run["pieces"] == false);
    CHECK(run["facts"].size() == 1);
    text = lens::report_text(run, {.width = 80});
    CHECK(text.find("2.00 nats a word") != std::string::npos);
    CHECK(text.find("columns added") == std::string::npos);
  }
  CHECK_THROWS_WITH((void)described(R"({"subwords":["bpe"]})"), doctest::Contains("subwords must be text"));
}

TEST_CASE("broken lines, an interruption, a kill") {
  const std::string start = R"({"event":"start","version":2,"layers":[]})" "\n";
  std::string stopped =
      log_directory("stopped", start + validation(10) +
                                   R"({"event":"end","finished":false,"step":15,"seconds":2})"
                                   "\n");
  CHECK(lens::read_run(stopped)["state"] == "interrupted at step 15");
  const std::string resumed = R"({"event":"resume","version":2,"epoch":0,"step":15,"layers":[]})";
  CHECK(lens::read_run(log_directory("again", runs::read(stopped + "/train.log") + resumed + "\n"))["state"] ==
        "going on, or ended without a word");

  std::string killed =
      log_directory("killed", start + validation(10) + validation(20) +
                                  R"({"event":"valid)"
                                  "\n" +
                                  "[1]\n" +
                                  R"({"event":"resume","version":2,"epoch":0,"step":10,"layers":[]})"
                                  "\n" +
                                  validation(22));
  json run = lens::read_run(killed);
  CHECK(run["state"] == "going on, or ended without a word");
  CHECK(run["validations"].size() == 2);
  CHECK(run["validations"][1]["step"] == 22);
  CHECK(run["resumes"] == json::array({{{"epoch", 0}, {"step", 10}}}));
  CHECK(has(run["notes"], "2 lines of train.log could not be read."));
  CHECK(has(run["notes"], "1 validation is left out: the run was killed, and went on from before."));

  json none = lens::read_run(log_directory("none", start));
  CHECK(lens::report_text(none, {.width = 80}).find("no validation yet") != std::string::npos);
  CHECK_THROWS_WITH((void)lens::read_run(runs::directory("nothing")),
                    doctest::Contains("has no train.log: it is no run of `translator train`"));
}

TEST_CASE("layers are told as powers of ten: the gradient, and the update over the weight") {
  json run = lens::read_run(
      log_directory("powers", R"({"event":"start","version":2,"layers":[{"name":"\u001b","shape":[1]}]})"
                              "\n"
                              R"({"event":"validation","epoch":1,"step":20,)"
                              R"("norms":{"step":20,"gradient":[1000],"weight":[2],"update":[0.02]}})"
                              "\n"));
  run["notes"].push_back("\x1B[31m");  // as an error's text has what a file says
  const std::string text = lens::report_text(run, {.width = 80});
  CHECK(text.find('\x1B') == std::string::npos);
  CHECK(count(text, "\n  \uFFFD   3.0\n") == 1);
  CHECK(count(text, "\n  \uFFFD  -2.0\n") == 1);
}

TEST_CASE("what a log holds is held to the schema: file, line and field are named") {
  const std::string start = R"({"event":"start","version":2,"layers":[{"name":"w","shape":[1]}]})" "\n";
  auto error = [&](const std::string& line) {
    std::string out = log_directory("wrong", start + validation(10) + line + "\n");
    try {
      (void)lens::read_run(out);
    } catch (const translator::InputError& e) {
      std::string text = e.what(), begin = out + "/train.log:3: ";
      CHECK_MESSAGE(text.starts_with(begin), text);
      return text.substr(std::min(text.size(), begin.size()));
    }
    return std::string("taken");
  };
  auto with = [](const std::string& more) {
    return R"({"event":"validation","epoch":1,"step":20)" + more + "}";
  };
  CHECK(error(with("")) == "taken");
  CHECK(error(R"({"event":"validation","epoch":1})") == "document: lacks \"step\"");
  CHECK(error(R"({"event":"validation","epoch":1,"step":"</text><img src=x onerror=alert(1)>"})") ==
        "step: must be integer, is string");
  CHECK(error(R"({"event":"validation","epoch":1,"step":1e300})") == "step: must be integer, is number");
  CHECK(error(R"({"event":"validation","epoch":1,"step":9223372036854775808})") ==
        "step: must be at most 9007199254740991, is 9223372036854775808");
  CHECK(error(R"({"event":"validation","epoch":-1,"step":1})") == "epoch: must be at least 0, is -1");
  CHECK(error(with(R"(,"valid_loss":"low")")).starts_with("valid_loss: fits 0 of 2"));
  CHECK(error(with(R"(,"valid_loss":"nan")")) == "taken");
  CHECK(error(with(R"(,"best":1)")) == "best: must be boolean, is integer");
  CHECK(error(with(R"(,"norms":{"step":1,"gradient":["x"],"weight":[1],"update":[1]})"))
            .find("norms.gradient[0]") != std::string::npos);
  const std::string probe =
      R"(,"probe":{"source":"a b","reference":null,"output":"c","source_words":["a","b"],)"
      R"("target_words":["c"],)";
  CHECK(error(with(probe + R"("weights":[[0.5,0.5]]})")) == "taken");
  CHECK(error(with(probe + R"("weights":[[0.5]]})")) ==
        "probe.weights[0]: must be 2 numbers, one for each of source_words; is 1");
  CHECK(error(with(probe + R"("weights":[]})")) ==
        "probe.weights: must be 1 rows, one for each of target_words; is 0");
  CHECK(error(R"({"event":"resume","version":2,"epoch":0,"step":"12"})") == "step: must be integer, is string");
  CHECK(error(R"({"event":"start","recipe":{"--lr":3}})") == "recipe.--lr: must be string, is integer");
  CHECK(error(R"({"event":"party","step":"now"})") == "taken");          // of a later program
  CHECK(error(with(R"(,"of a later program":[1])")) == "taken");

  std::string out = log_directory("config", start + validation(10));
  auto config = [&](const std::string& text) {
    std::ofstream(out + "/config.json") << text;
    try {
      return lens::report_text(lens::read_run(out), {.width = 80}).substr(0, 0);
    } catch (const translator::InputError& e) {
      return std::string(e.what()).substr((out + "/").size());
    }
  };
  CHECK(config(R"({"model":"gru","network":{"cell":"lstm"}})") == "");
  CHECK(config(R"({"model":7})") == "");
  CHECK(config(R"({"model":{}})") == "config.json: model must be text or a number, is object");
  CHECK(config(R"({"network":[1]})") == "config.json: network must be an object, is array");
  for (const std::string key : {"cell", "attention", "hidden_size", "d_model", "num_heads", "num_layers"})
    CHECK(config("{\"network\":{\"" + key + "\":[1]}}") ==
          "config.json: network." + key + " must be text or a number, is array");
  std::ofstream(out + "/config.json") << R"({"model":"\u001b[31mgru"})";
  CHECK(lens::report_text(lens::read_run(out), {.width = 80}).find("model \uFFFD[31mgru") != std::string::npos);
  CHECK(config("[]") == "config.json: is not a JSON object");
  CHECK(config("{") == "config.json: is not a JSON object");
}

TEST_CASE("an exploded run shows NaN and infinity, and a very long one is thinned") {
  std::string lines = R"({"event":"start","version":2,"layers":[{"name":"w","shape":[1]}]})" "\n";
  for (int i = 1; i <= 600; ++i) {
    std::string line = validation(
        i,
        R"(,"attention_entropy":"nan","norms":{"step":1,"gradient":["inf"],"weight":[1],"update":["nan"]})");
    if (i != 6) line.replace(line.find("true"), 4, "false");
    lines += line;
  }
  json run = lens::read_run(log_directory("long", lines));
  CHECK(run["validations"].size() <= 242);
  CHECK(run["validations"][2]["step"] == 6);  // every third and the best
  CHECK(run["validations"].back()["step"] == 600);
  CHECK(run["left_out"] == 600 - run["validations"].size());
  std::string text = lens::report_text(run, {.width = 80});
  CHECK(count(text, "   600\n") == 2);  // the last column of both tables
  CHECK(text.find("   inf") != std::string::npos);
  CHECK(text.find("   nan") != std::string::npos);
}
