#pragma once

#include <signal.h>
#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "../show_json.h"

// Runs the translator as a person would: a process with arguments, standard input, an environment. Its
// working directory is a scratch directory of this test run, so that files have short names.

namespace cli {

struct Result {
  int code = -1;   // of exit; -1 when a signal ended it
  int signal = 0;  // that ended it
  std::string out, err;

  bool says(const std::string& text) const { return err.find(text) != std::string::npos; }
};

struct Setting {
  std::string input = {};
  std::map<std::string, std::string> environment = {};  // besides a plain one without colours
};

using Arguments = std::vector<std::string>;
Arguments operator+(Arguments first, const Arguments& more);

// A process under way; killed when it goes out of scope.
class Running {
 public:
  explicit Running(const Arguments& arguments, const Setting& setting = {});
  ~Running();
  Running(const Running&) = delete;

  void send(int signal) const;
  bool ended();  // without waiting
  Result wait();

 private:
  pid_t pid_ = -1;
  int status_ = 0;
  bool ended_ = false;
  std::string stem_;  // of the files its output goes to
};

Result run(const Arguments& arguments, const Setting& setting = {});
// It ends with 0; else the test does, with what it said.
Result run_well(const Arguments& arguments, const Setting& setting = {});
// It ends with this code and says this alone, behind its name; it writes nothing to standard output.
void check_refused(const Arguments& arguments, int code, const std::string& text, const Setting& setting = {});
// Another program, the first of the words; it has the same scratch directory.
Result run_program(const Arguments& words, const Setting& setting = {});

// Runs a shell command line in the scratch directory; $T is the program. 2>&1 is up to the command.
Result shell(const std::string& command);

// The scratch directory, and a file in it.
const std::filesystem::path& scratch_path();
std::string in_scratch(const std::string& name);
void write_file(const std::string& name, const std::string& text);
std::string read_file(const std::string& name);
bool exists(const std::string& name);

std::vector<std::string> lines_of(const std::string& text);
// What stands between the tabs of a line.
std::vector<std::string> columns_of(const std::string& line);
size_t count(const std::string& text, const std::string& part);

// The first control character (but for line feeds and tabs), bidirectional control or byte that is no UTF-8 of
// what a program printed, as "U+001B"; "" where a terminal can do nothing but show the text.
std::string acts_on_terminal(const std::string& text);

// Events of DIR/train.log; fails the test when a line is no JSON.
std::vector<nlohmann::ordered_json> events(const std::string& directory, const std::string& kind = {});

// How often the run in this directory has validated.
size_t validations(const std::string& directory);
// Begins a run into `out`, and sends it the signal when it has validated so often, each of its members where it
// has some; a run that was faster than that is begun anew. Returns how it ended, interrupted.
Result interrupted(const Arguments& command, const std::string& out, size_t after, int signal = SIGINT,
                   const std::vector<std::string>& members = {""});

// A file of 1200 short sentence pairs, made once.
const std::string& short_pairs();
// Arguments of a small, quick run on them, or on what `more` names, into `out`.
Arguments small_run(const std::string& out, const Arguments& more = {});
// A model directory trained for a few seconds, made once; nobody writes into it.
const std::string& trained_model();
// A copy of it, to be spoilt, in place of what is there.
void copy_model(const std::string& name);

}  // namespace cli
