// What goes wrong is said in one line on stderr that names the file; the exit status is 1.

#include "../quick_doctest.h"
#include "program.h"

using namespace cli;
namespace fs = std::filesystem;

namespace {

void check_error(const Arguments& arguments, const std::string& text) { check_refused(arguments, 1, text); }

}  // namespace

TEST_CASE("train: files that are missing, empty, directories, UTF-16, of different length") {
  check_error({"train", "--data", "absent.tsv", "--out", "e1"},
              "absent.tsv: cannot be opened: No such file or directory");
  write_file("empty.tsv", "");
  Result empty = run({"train", "--data", "empty.tsv", "--out", "e1"});
  CHECK(empty.code == 1);
  CHECK(empty.err.ends_with("translator: empty.tsv: has no usable sentence pairs\n"));
  check_error({"train", "--data", ".", "--out", "e1"}, ".: is a directory");
  write_file("wide.tsv",
             "\xFF\xFE"
             "a");
  check_error({"train", "--data", "wide.tsv", "--out", "e1"},
              "wide.tsv:1: looks like UTF-16: iconv -f UTF-16 -t UTF-8 makes UTF-8 of it");
  const std::string none_has_one =
      "  no line has a tab: docs/text.md has commands that make pairs of CSV and other files\n";
  write_file("comma.csv", "a,b\n\nc,d\n");
  CHECK(run({"train", "--data", "comma.csv", "--out", "e1"})
            .err.ends_with(none_has_one + "translator: comma.csv: has no usable sentence pairs\n"));
  for (const char* text : {"a,b\n", "a,b\nc,d\n\te\n"}) {
    write_file("comma.csv", text);
    CHECK_FALSE(run({"train", "--data", "comma.csv", "--out", "e1"}).says(none_has_one));
  }
  write_file("three.en", "a\nb\nc\n");
  write_file("two.fr", "a\nb\n");
  check_error({"train", "--source", "three.en", "--target", "two.fr", "--out", "e1"},
              "three.en: has 3 lines, but two.fr has 2");
  write_file("few.tsv", "a\tb\n");
  check_error({"train", "--data", "few.tsv", "--valid", "absent.tsv", "--out", "e1"},
              "absent.tsv: cannot be opened: No such file or directory");
  CHECK_FALSE(exists("e1"));
  Result file = run({"train", "--data", "few.tsv", "--out", "few.tsv", "-q"});
  CHECK(file.code == 1);
  CHECK(file.says("translator: few.tsv: cannot be made: "));
  CHECK(read_file("few.tsv") == "a\tb\n");
  // Before the pairs are read and pieces are learnt, which takes a while.
  check_error({"train", "--data", "absent.tsv", "--out", "few.tsv/model"},
              "few.tsv/model: cannot be made: Not a directory");
}

TEST_CASE("a model directory that is none, or is damaged") {
  check_error({"translate", "absent", "a"},
              "absent: no such model directory (made by `translator train --out`)");
  fs::create_directory(scratch_path() / "hollow");
  check_error({"translate", "hollow", "a"}, "hollow/config.json: cannot be read: is this a model directory?");
  check_error({"evaluate", "absent", "few.tsv"},
              "absent: no such model directory (made by `translator train --out`)");

  copy_model("spoilt");
  fs::resize_file(scratch_path() / "spoilt/model.safetensors",
                  fs::file_size(scratch_path() / "spoilt/model.safetensors") - 10);
  Result cut = run({"translate", "spoilt", "a"});
  CHECK(cut.code == 1);
  CHECK(cut.says("translator: [safetensors] spoilt/model.safetensors: is truncated: the tensors take "));
  fs::remove(scratch_path() / "spoilt/model.safetensors");
  check_error({"translate", "spoilt", "a"},
              "[safetensors] spoilt/model.safetensors: cannot be opened: No such file or directory");

  copy_model("spoilt");
  std::string weights = read_file("spoilt/model.safetensors");
  const std::string nan("\0\0\xC0\x7F", 4);
  write_file("spoilt/model.safetensors", weights.replace(weights.size() - 4, 4, nan));
  Result diverged = run({"translate", "spoilt", "a"});
  CHECK(diverged.code == 1);
  CHECK(diverged.says("holds a NaN or an infinity: what trained it diverged (a lower --lr may help), or the "
                      "file is damaged"));
  CHECK(diverged.says("translator: spoilt/model.safetensors: "));

  copy_model("spoilt");
  write_file("spoilt/config.json", "{\"network\": ");
  Result json = run({"translate", "spoilt", "a"});
  CHECK(json.code == 1);
  CHECK(json.says("translator: spoilt/config.json: is not a translator's configuration: "));
  CHECK(lines_of(json.err).size() == 1);
  write_file("spoilt/config.json", "{}");
  CHECK(run({"translate", "spoilt", "a"})
            .says("translator: spoilt/config.json: is not a translator's configuration: "));

  write_file("spoilt/config.json", "{\"format\": \"gradus-translator\", \"version\": 2}");
  check_error({"translate", "spoilt", "a"},
              "spoilt/config.json: is of a newer program, or of none: its format or version is another");

  std::string config = read_file("trained/config.json");
  auto edited = [&](const std::string& from, const std::string& to) {
    std::string text = config;
    size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    write_file("spoilt/config.json", text.replace(at, from.size(), to));
    Result r = run({"translate", "spoilt", "a"});
    CHECK(r.code == 1);
    CHECK(lines_of(r.err).size() == 1);
    return r.err;
  };
  CHECK(edited("\"bahdanau\"", "\"strong\"")
            .find("spoilt/config.json: describes no network that can be built: ") != std::string::npos);
  std::string cell = edited("\"cell\": \"gru\"", "\"cell\": \"gur\"");
  CHECK(cell.find("spoilt/config.json: describes no network that can be built: ") != std::string::npos);
  CHECK(cell.find("hint: gru?") != std::string::npos);
  CHECK(
      edited("\"hidden_size\": 32", "\"hidden_size\": -3").find("spoilt/config.json: describes no network") !=
      std::string::npos);
  CHECK(edited("\"hidden_size\": 32", "\"hidden_size\": \"big\"")
            .find("spoilt/config.json: is not a translator's") != std::string::npos);
  CHECK(edited("\"hidden_size\": 32", "\"hidden_size\": 16").find("spoilt/model.safetensors") !=
        std::string::npos);

  copy_model("spoilt");
  size_t words = lines_of(read_file("spoilt/target.vocab")).size();
  write_file("spoilt/target.vocab", read_file("spoilt/target.vocab") + "extra\n");
  check_error({"translate", "spoilt", "a"}, "spoilt/target.vocab: has " + std::to_string(words + 1) +
                                                " entries, config.json says " + std::to_string(words));
  write_file("spoilt/source.vocab", "<unk>\n<pad>\n");
  CHECK(run({"translate", "spoilt", "a"})
            .says("translator: spoilt/source.vocab:3: expected the special token <s>"));
}

TEST_CASE("a damaged last.safetensors stops --resume and stays as it is") {
  copy_model("spoilt_run");
  fs::resize_file(scratch_path() / "spoilt_run/last.safetensors", 1000);
  Result r = run(small_run("spoilt_run", {"--resume", "-q", "--epochs", "20"}));
  CHECK(r.code == 1);
  CHECK(r.says("translator: [safetensors] spoilt_run/last.safetensors: is truncated: "));
  CHECK(fs::file_size(scratch_path() / "spoilt_run/last.safetensors") == 1000);
  // The weights alone are no run.
  fs::copy(scratch_path() / "spoilt_run/model.safetensors", scratch_path() / "spoilt_run/last.safetensors",
           fs::copy_options::overwrite_existing);
  CHECK(run(small_run("spoilt_run", {"--resume", "-q", "--epochs", "20"}))
            .says("not written by `translator train`"));
}

TEST_CASE("evaluate: nothing usable in the file") {
  write_file("nothing.tsv", "no tab\n\n");
  Result r = run({"evaluate", trained_model(), "nothing.tsv"});
  CHECK(r.code == 1);
  CHECK(r.err.ends_with("translator: nothing.tsv: has no usable sentence pairs\n"));
  check_error({"evaluate", trained_model(), "absent.tsv"},
              "absent.tsv: cannot be opened: No such file or directory");
}

TEST_CASE("a closed standard output is no place for results, a closed standard input no empty one") {
  const Result unheard = shell("\"$T\" --version >&-");
  CHECK(unheard.code == 1);
  CHECK(unheard.says("translator: standard output cannot be written: "));
  const Result deaf = shell("\"$T\" translate " + trained_model() + " <&-");
  CHECK(deaf.code == 1);
  CHECK(deaf.says("translator: standard input: cannot be read: "));
}
