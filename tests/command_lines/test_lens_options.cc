// What lens is told, it does: with an option it writes something else than without.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <common/json_text.h>
#include <common/utf8.h>

#include "../cli/program.h"
#include "../quick_doctest.h"

using namespace cli;

namespace {

// What a command writes to standard output.
std::string said(Arguments command) {
  command.insert(command.begin(), LENS);
  const Result r = run_program(command);
  REQUIRE_MESSAGE(r.code == 0, r.err);
  REQUIRE(!r.out.empty());
  return r.out;
}

const std::string& flat_model() {
  static const std::string name = [] {
    REQUIRE(run(small_run("without-attention", {"--attention", "none", "--epochs", "1"})).code == 0);
    return std::string("without-attention");
  }();
  return name;
}

}  // namespace

TEST_CASE("no option of lens is ignored") {
  std::string pairs;
  const std::vector<std::string> lines = lines_of(read_file(short_pairs()));
  for (size_t i = 0; i < 5; ++i) pairs += lines.at(i) + "\n";
  write_file("five.tsv", pairs);
  const Arguments explain = {"explain", "--transformer", "--text"},
                  flow = {"flow", "--text", "--seeds", "1", "-n", "8"},
                  of_model = {"flow", trained_model(), "she eats", "--text"},
                  graph = {"graph", "--text", "--step", "1"},
                  ablate = {"ablate", "--text", "--epochs", "1", "--seeds", "1", "--length", "3"},
                  blame = {"blame", trained_model(), "five.tsv"},
                  diff = {"diff", trained_model(), flat_model(), "five.tsv", "--out", "-"};
  const std::vector<std::pair<Arguments, Arguments>> all = {
      {explain, {"--no-mask"}},
      {explain, {"--sublayer", "encoder"}},
      {explain, {"--layer", "1"}},
      {explain, {"--head", "1"}},
      {explain, {"--target", "elle chante"}},
      {flow, {"--cell", "lstm"}},
      {flow, {"--bidirectional"}},
      {flow, {"--init", "orthogonal"}},
      {of_model, {"--vs", flat_model()}},
      {of_model, {"--target", "elle chante"}},
      {graph, {"--transformer"}},
      {graph, {"--target", "elle chante"}},
      {ablate, {"--cut", "recurrent"}},
      {ablate, {"--task", "copy"}},
      {ablate, {"--hidden", "4"}},
      {ablate, {"--seed", "2"}},
      {blame, {"--swap"}},
      {diff, {"--swap"}},
      {diff, {"--beam-size", "4"}},
      {diff, {"--min-length", "9"}},
      {diff, {"--seed", "5"}},
      {diff, {"--train", short_pairs()}},
      {{"check", "softmax"}, {"--reference"}},
  };
  std::map<Arguments, std::string> without;
  for (const auto& [command, option] : all) {
    INFO(command[0] << " " << option[0]);
    if (!without.contains(command)) {
      without[command] = said(command);
      CHECK(said(command) == without[command]);
    }
    CHECK((said(command + option) != without[command]));
  }
}

TEST_CASE("flow tells how networks were made only where it made some") {
  const auto setup = [](const Arguments& of) {
    return json_text::parse(said(Arguments{"flow", "--json", "--out", "-", "--seeds", "1"} + of)).at("setup");
  };
  CHECK(setup({trained_model(), "she eats"}) == "");
  CHECK(setup({"-n", "8"}).get<std::string>().starts_with("1 pair of fresh networks"));
}

TEST_CASE("lens writes the files that it is told to") {
  said({"graph", "--text", "--dot", "module.dot"});
  said({"graph", "--text", "--dot", "op.dot", "--level", "op"});
  CHECK(read_file("module.dot").starts_with("digraph"));
  CHECK(read_file("op.dot").starts_with("digraph"));
  CHECK(count(read_file("op.dot"), "->") > count(read_file("module.dot"), "->"));
  said({"flow", "--text", "--seeds", "1", "-n", "8", "--svg", "flow.svg"});
  CHECK(read_file("flow.svg").starts_with("<svg"));
  said({"check", "softmax", "--html"});
  said({"check", "softmax", "--out", "softmax.html"});
  CHECK(count(read_file("check.html"), "softmax") > 0);
  CHECK(read_file("softmax.html") == read_file("check.html"));
  const std::string page = said({"explain", "--out", "-"}),
                    few = said({"explain", "--out", "-", "--units", "8"});
  CHECK(count(page, "<html") == 1);
  CHECK(few.size() < page.size());
}

TEST_CASE("lens's text fits 80 columns") {
  for (const Arguments& command : {Arguments{"explain", "--text"}, {"explain", "--transformer", "--text"},
                                   {"graph", "--text"}, {"graph", "--transformer", "--text"},
                                   {"flow", "--text", "--seeds", "1"}, {"check", "--all"},
                                   {"flow", "--depth", "--text", "--seeds", "1"}})
    for (const std::string& line : lines_of(said(command))) {
      INFO(command[0] << " " << command[1] << ": " << line);
      CHECK(translator::utf8::display_width(line) <= 80);
    }
}
