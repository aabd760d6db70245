// What is written keeps clear of what others write, and of what is read.

#include <signal.h>

#include <chrono>
#include <thread>

#include "../quick_doctest.h"
#include "program.h"

using namespace cli;
namespace fs = std::filesystem;

namespace {

const Arguments kEndless = {"--epochs", "5000"};

void wait_for(const std::string& file) {
  for (int tenths = 0; tenths < 600 && !exists(file); ++tenths)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  REQUIRE(exists(file));
}

}  // namespace

TEST_CASE("one training at a time has a directory, until it ends in whatever way") {
  const std::string model = trained_model();
  Running first(small_run("shared", kEndless));
  wait_for("shared/train.log");
  const std::string taken = "shared: another training writes here; name another place";
  check_refused(small_run("shared"), 1, taken);
  check_refused(small_run("shared", {"--force"}), 1, taken);
  check_refused({"train", "--resume", "--out", "shared"}, 1, taken);
  check_refused({"average", model, model, "--out", "shared", "--force"}, 1, taken);
  check_refused({"quantize", model, "shared", "--force"}, 1, taken);
  CHECK(run(small_run("shared", {"--print-config"})).code == 0);  // which writes nothing
  CHECK(run({"translate", "shared", "she sings"}).code == 0);
  CHECK_FALSE(first.ended());
  first.send(SIGKILL);
  first.wait();
  const Result rest = run({"train", "--resume", "--out", "shared", "--epochs", "1"});
  CHECK_MESSAGE(rest.code == 0, rest.err);
}

TEST_CASE("of two trainings that begin at once in a directory that is not there yet one is refused") {
  Running a(small_run("contested", {"--epochs", "3"})), b(small_run("contested", {"--epochs", "3"}));
  const Result x = a.wait(), y = b.wait();
  INFO(x.err << y.err);
  CHECK(x.code + y.code == 1);
  const Result& loser = x.code == 1 ? x : y;
  CHECK((loser.says("contested: another training writes here; name another place\n") ||
         loser.says("contested: holds a model already: ")));
  CHECK(run({"translate", "contested", "she sings"}).code == 0);
}

TEST_CASE("models trained together have their directory, and each its own") {
  Running first(small_run("shared-pair", {"--epochs", "5000", "--together", "gru,gru", "--threads", "2"}));
  wait_for("shared-pair/2/train.log");
  const std::string taken = ": another training writes here; name another place";
  check_refused(small_run("shared-pair", {"--together", "gru,gru", "--threads", "2", "--force"}), 1,
                "shared-pair" + taken);
  check_refused({"train", "--resume", "--out", "shared-pair"}, 1, "shared-pair" + taken);
  check_refused({"train", "--resume", "--out", "shared-pair/2"}, 1, "shared-pair/2" + taken);
  first.send(SIGTERM);
  CHECK(first.wait().code == 130);
}

TEST_CASE("train keeps off somebody's config.json and training.json, unless it is forced") {
  fs::create_directories(scratch_path() / "project");
  for (const char* name : {"project/config.json", "project/training.json"}) {
    write_file(name, "{\"mine\": 1}\n");
    check_refused(
        small_run("project"), 1,
        std::string(name) + ": is there, of no model: --force writes over it, --out names another place");
    CHECK(read_file(name) == "{\"mine\": 1}\n");
    fs::remove(in_scratch(name));
  }
  write_file("project/config.json", "{}");
  CHECK(run(small_run("project", {"--epochs", "1", "--force", "-q"})).code == 0);
  CHECK(run({"translate", "project", "she sings"}).code == 0);
}

TEST_CASE("corpus: pairs and alignments are two files") {
  check_refused({"corpus", "-n", "3", "-o", "pairs.tsv", "--alignments", "./pairs.tsv"}, 2,
                "--out and --alignments name one file: pairs.tsv");
  CHECK_FALSE(exists("pairs.tsv"));
  write_file("one-name.tsv", "");
  std::filesystem::create_hard_link(in_scratch("one-name.tsv"), in_scratch("other-name.tsv"));
  check_refused({"corpus", "-n", "3", "-o", "one-name.tsv", "--alignments", "other-name.tsv"}, 2,
                "--out and --alignments name one file: one-name.tsv");
  const Result both = run({"corpus", "-n", "3", "--alignments", "-"});  // one behind the other
  CHECK(both.code == 0);
  CHECK(lines_of(both.out).size() == 6);
}

TEST_CASE("evaluate writes nothing into the models that it reads") {
  const std::string model = trained_model(), before = read_file(model + "/config.json");
  for (const char* option : {"--hypotheses", "--references"})
    for (const std::string& file : {model + "/config.json", "./" + model + "/said.txt"})
      check_refused({"evaluate", model, short_pairs(), option, file}, 2,
                    option + (": " + file) + " is within " + model + ", which is read: name another place");
  check_refused({"evaluate", model + "=2," + model, short_pairs(), "--hypotheses", model + "/config.json"}, 2,
                "--hypotheses: " + model + "/config.json is within " + model +
                    ", which is read: name another place");
  CHECK(read_file(model + "/config.json") == before);
  CHECK_FALSE(exists(model + "/said.txt"));
}

TEST_CASE("compare says beforehand that its page is Markdown") {
  for (const std::string name : {"rep.txt", "-", "rep"})
    check_refused({"compare", "--out", name, "--work", "raced"}, 2,
                  "--out: " + name + " must end in .md: it is Markdown, with a picture (.svg) beside it");
  CHECK_FALSE(exists("raced"));
}
