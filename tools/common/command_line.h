#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

// The command lines of the programs. CLI11 parses them; it is one large header of templates, which every file
// that includes it takes seconds to read, so that only command_line.cc does. What it knows no name like is told
// with the nearest one that there is. Names are CLI11's:
// "-o,--out" is an option, "out" a positional argument, "--yes,!--no" a flag that sets true or false.

namespace command_line {

/// An option or a flag of a command. Copies stand for the same one.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  /// --help tells the value that the variable has now
  Option show_default() const;
  /// what --help calls the value: FILE
  Option type_name(const std::string& name) const;
  Option required() const;
  /// Takes empty texts, too: the program says what is wrong with them, in its own words.
  Option with_empty() const;
  /// number of values behind the name
  Option expected(int least, int most) const;
  /// several values in one argument: a,b
  Option delimiter(char between) const;
  /// several values, whatever last_wins() says
  Option take_all() const;

  Option range(double least, double most) const;
  /// of any number without a bound of its own
  static constexpr double kMost = 1e9;
  Option positive(double most = kMost) const;
  /// the same from 0
  Option not_negative() const;
  /// Or one of the aliases, which neither --help nor an error names. --help leaves many values to a footer.
  Option one_of(const std::vector<std::string>& values,
                const std::map<std::string, std::string>& aliases = {}) const;
  Option existing_file() const;
  /// A file to write, or "-": that its directory is missing is told before the work is done.
  Option output_file() const;
  /// Given twice it is refused, whatever last_wins() says; `instead` tells what was meant.
  Option once(const std::string& instead) const;
  /// `error` says what is wrong with a value; "": nothing.
  Option check(const std::function<std::string(const std::string& value)>& error) const;

  Option needs(const Option& other) const;
  Option excludes(const Option& other) const;

  /// on the command line
  bool given() const;

 private:
  CLI::Option* option_;
};

/// A program or one of its commands. Copies stand for the same one. Variables are kept by reference: they must
/// live until the command line is read. Numbers must be finite, and text must not be empty but where the
/// variable is optional.
class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  Option option(const std::string& names, std::string& value, const std::string& help) const;
  Option option(const std::string& names, std::optional<std::string>& value, const std::string& help) const;
  Option option(const std::string& names, std::vector<std::string>& values, const std::string& help) const;
  /// Of int, int64_t and uint64_t.
  template <std::integral Whole>
  Option option(const std::string& names, Whole& value, const std::string& help) const;
  Option option(const std::string& names, double& value, const std::string& help) const;
  Option option(const std::string& names, const std::function<void(const std::string& value)>& take,
                const std::string& help) const;
  Option flag(const std::string& names, bool& value, const std::string& help) const;
  Option flag(const std::string& names, const std::function<void()>& take, const std::string& help) const;

  Command add_command(const std::string& name, const std::string& help) const;
  /// the end of --help
  void footer(const std::string& text) const;
  /// What is done when the command line is read and names this command.
  void callback(const std::function<void()>& run) const;

  /// options on the command line, by their first long name: "--out"
  std::vector<std::string> given() const;

 protected:
  CLI::App* app_;
};

/// A program, whose first argument is one of its commands where it has any. One that is started without a
/// standard stream gets one that fails to be read or written: otherwise the first file it opens would take the
/// number, and what is meant for people would be written into that file.
class Program : public Command {
 public:
  /// Without a name --help shows the one the program was called by.
  explicit Program(const std::string& help, const std::string& name = "");
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Of an option given twice the last value counts, instead of an error. For commands and options added later.
  void last_wins() const;
  /// of --version
  void version(const std::string& text) const;

  /// Reads the command line and calls back the command that it names. False for --help, for --version, and when
  /// it is wrong: `report` then. What a callback throws gets through.
  bool parse(int argc, char** argv);
  /// Prints why `parse` returned false: help and version to stdout, an error to stderr.
  /// @return The exit status: 0 for help and version, 2 for errors.
  int report() const;
  /// For the end of main: `code`, or 1 where standard output could not be written, which is said.
  int end(int code) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace command_line
