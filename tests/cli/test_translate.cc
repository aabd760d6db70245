// `translator translate`: argument, standard input, prompt.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#if __has_include(<pty.h>)
#include <poll.h>
#include <pty.h>
#define HAVE_PTY 1
#endif

#include "../quick_doctest.h"
#include "program.h"

using namespace cli;

namespace {

std::vector<std::string> fields(const std::string& line) {
  std::vector<std::string> out;
  for (size_t begin = 0;;) {
    size_t end = line.find('\t', begin);
    out.push_back(line.substr(begin, end - begin));
    if (end == std::string::npos) return out;
    begin = end + 1;
  }
}

Result translate(const Arguments& more, const Setting& setting = {}) {
  Arguments a = {"translate", trained_model()};
  a.insert(a.end(), more.begin(), more.end());
  return run(a, setting);
}

}  // namespace

TEST_CASE("translate: an argument, and the same sentence on standard input") {
  Result r = translate({"she eats apples"});
  CHECK(r.code == 0);
  CHECK(r.err.empty());
  REQUIRE(lines_of(r.out).size() == 1);
  CHECK(r.out.size() > 4);
  CHECK(translate({}, {.input = "she eats apples\n"}).out == r.out);
  CHECK(translate({"  SHE  eats apples "}).out == r.out);
  CHECK(translate({""}).out == "\n");
  CHECK(translate({""}, {.input = "not read\n"}).out == "\n");
}

TEST_CASE("translate: one line out for each line in; empty lines, CRLF, a BOM and a missing last line end") {
  std::string eats = translate({"she eats apples"}).out, sings = translate({"he sings"}).out;
  Result r =
      translate({}, {.input = "\xEF\xBB\xBFshe eats apples\r\n\r\n\n  \t \nhe sings\nshe eats apples"});
  CHECK(r.code == 0);
  CHECK(r.err.empty());
  CHECK(r.out == eats + "\n\n\n" + sings + eats);
  CHECK(translate({}, {.input = ""}).out == "");
  CHECK(translate({}, {.input = "\n"}).out == "\n");
  // More lines than go through together, in order, on any number of threads.
  std::string many, expected;
  for (int i = 0; i < 300; ++i) {
    many += i % 3 == 0 ? "he sings\n" : i % 3 == 1 ? "\n" : "she eats apples\n";
    expected += i % 3 == 0 ? sings : i % 3 == 1 ? "\n" : eats;
  }
  CHECK(translate({"--threads", "2"}, {.input = many}).out == expected);
}

TEST_CASE(
    "translate: a line that is not UTF-8 is named, an empty line stands for it, the rest goes through") {
  std::string sings = translate({"he sings"}).out;
  Result r = translate({}, {.input = "he sings\nna\xEFve\nhe sings\n"});
  CHECK(r.code == 1);
  CHECK(r.out == sings + "\n" + sings);
  CHECK(r.err ==
        "translator: standard input:2: byte 3 (0xef) is not valid UTF-8; an empty line stands for it\n");
  Result argument = translate({"na\xEFve"});
  CHECK(argument.code == 1);
  CHECK(argument.err == "translator: the sentence: byte 3 (0xef) is not valid UTF-8\n");
}

TEST_CASE("translate: words nobody has seen, and a NUL among them, do no harm") {
  Result r =
      translate({}, {.input = std::string("zyx\0wv \xE0\xA4\xB9\xE0\xA4\xBF\n", 14) + "\xF0\x9F\x98\x80\n"});
  CHECK(r.code == 0);
  CHECK(lines_of(r.out).size() == 2);
}

TEST_CASE("translate: --beam-size, --n-best, --scores, --alignments") {
  std::string greedy = lines_of(translate({"the girl eats apples", "--scores"}).out).at(0);
  auto best = lines_of(
      translate({"the girl eats apples", "--beam-size", "4", "--n-best", "3", "--scores", "--alignments"})
          .out);
  REQUIRE(best.size() == 3);
  double log_probability = std::stod(fields(greedy).at(1));
  CHECK(log_probability <= 0);
  for (const std::string& line : best) {
    auto f = fields(line);
    REQUIRE(f.size() == 3);
    CHECK(std::stod(f[1]) <= 0);
    CHECK(f[2].find('-') != std::string::npos);
  }
  CHECK(best[0] != best[1]);
  CHECK(lines_of(translate({"the girl eats apples", "--beam-size", "4"}).out).at(0) == fields(best[0])[0]);
  // From standard input always so many lines a sentence, so that a reader can count.
  auto counted = lines_of(translate({"--n-best", "2"}, {.input = "he sings\n\nhe sings\n"}).out);
  REQUIRE(counted.size() == 6);
  CHECK(counted[2] + counted[3] == "");
  CHECK(counted[0] == counted[4]);
  auto links = fields(lines_of(translate({"he sings", "--alignments"}).out).at(0));
  REQUIRE(links.size() == 2);
}

TEST_CASE("translate --attention-map: a table without colours, colours where they are forced") {
  Result plain = translate({"she eats apples", "--attention-map"});
  CHECK(plain.code == 0);
  CHECK(plain.out.find('\x1b') == std::string::npos);
  for (const char* word : {"she\n", "eats\n", "apples\n", "</s>\n"})
    CHECK_MESSAGE(count(plain.out, word) >= 1, word);
  std::string translation = lines_of(plain.out).at(0);
  CHECK(translation + "\n" == translate({"she eats apples"}).out);
  Result forced = translate({"she eats apples", "--attention-map"}, {.environment = {{"FORCE_COLOR", "1"}}});
  CHECK(forced.out.find("\x1b[48;5;") != std::string::npos);
  CHECK(lines_of(forced.out).at(0) == translation);
  Result deep = translate({"she eats apples", "--attention-map"},
                          {.environment = {{"FORCE_COLOR", "1"}, {"COLORTERM", "truecolor"}}});
  CHECK(deep.out.find("\x1b[48;2;") != std::string::npos);
  Result both = translate({"she eats apples", "--attention-map"},
                          {.environment = {{"FORCE_COLOR", "1"}, {"NO_COLOR", "1"}}});
  CHECK(both.out == plain.out);
}

TEST_CASE("translate answers a line before it waits for the next one") {
  trained_model();
  // The second line is written only after the first answer was read.
  Result r = shell(
      "mkfifo to from && (\"$T\" translate trained < to > from &) && exec 3> to 4< from && echo he sings >&3 "
      "&& "
      "read -r first <&4 && echo she sings >&3 && read -r second <&4 && exec 3>&- && echo \"$first\" && echo "
      "\"$second\"");
  CHECK(r.code == 0);
  CHECK(r.out == translate({}, {.input = "he sings\nshe sings\n"}).out);
}

#ifdef HAVE_PTY
namespace {

// The program on a terminal of its own.
class Terminal {
 public:
  explicit Terminal(const Arguments& arguments) {
    pid_ = forkpty(&fd_, nullptr, nullptr, nullptr);
    if (pid_ == 0) {
      if (chdir(scratch().c_str()) != 0) _exit(127);
      std::string program = TRANSLATOR;
      std::vector<char*> argv = {program.data()};
      for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
      argv.push_back(nullptr);
      execv(argv[0], argv.data());
      _exit(127);
    }
    REQUIRE(pid_ > 0);
  }
  ~Terminal() {
    if (pid_ > 0 && !over_) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(fd_);
  }
  // Reads until `text` has come up `times` times; false when the program ended before.
  bool until(const std::string& text, size_t times = 1) {
    while (count(seen_, text) < times) {
      pollfd p{fd_, POLLIN, 0};
      if (poll(&p, 1, 60000) <= 0) return false;
      char buffer[1024];
      ssize_t n = read(fd_, buffer, sizeof buffer);
      if (n <= 0) return false;
      seen_.append(buffer, static_cast<size_t>(n));
    }
    return true;
  }
  void type(const std::string& keys) {
    REQUIRE(write(fd_, keys.data(), keys.size()) == static_cast<ssize_t>(keys.size()));
  }
  int wait() {
    int status = 0;
    until("\x01");  // to the end
    REQUIRE(waitpid(pid_, &status, 0) == pid_);
    over_ = true;
    return status;
  }
  const std::string& seen() const { return seen_; }

 private:
  int fd_ = -1;
  pid_t pid_ = -1;
  bool over_ = false;
  std::string seen_;
};

}  // namespace

TEST_CASE("translate at a prompt: answers at once; Ctrl-D ends it, Ctrl-C too and harms nothing") {
  std::string answer = lines_of(translate({"he sings"}).out).at(0),
              weights = read_file("trained/model.safetensors");
  {
    Terminal t({"translate", "trained"});
    REQUIRE(t.until("> "));
    CHECK(count(t.seen(), "One sentence a line; Ctrl-D ends.") == 1);
    t.type("he sings\n");
    REQUIRE(t.until("> ", 2));
    CHECK(count(t.seen(), answer + "\r\n") == 1);
    t.type("\x04");
    int status = t.wait();
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
  }
  {
    Terminal t({"translate", "trained"});
    REQUIRE(t.until("> "));
    t.type("he si\x03");
    int status = t.wait();
    CHECK(WIFSIGNALED(status));  // a shell shows it as 130
    CHECK(WTERMSIG(status) == SIGINT);
    CHECK(count(t.seen(), "translator:") == 0);
  }
  CHECK(read_file("trained/model.safetensors") == weights);
}
#endif
