#pragma once

// What the programs of the gallery share: the command line, and the two ways in which they say what they find.
//
//   struct Settings { std::string task = "add"; };
//
//   void learn(const gallery::Program& program, const Settings& s) {
//     ...
//     program.say("epoch {:>3}  {:6.2f} % right\n", epoch, 100 * accuracy);       // for people
//     program.event("epoch", {{"epoch", epoch}, {"accuracy", accuracy}});         // JSON, under --json
//     ...
//     program.say("{}", picture);
//     program.event("result", {{"epochs", epochs}, {"parameters", parameters}});  // the last line
//   }
//
//   int main(int argc, char** argv) {
//     gallery::Program program("gallery-feedforward", "What it shows, whose paper.");
//     Settings s;
//     program.option("--task", s.task, "What is learned").one_of({"add", "multiply"}).show_default();
//     return program.run(argc, argv, [&] { learn(program, s); });
//   }

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include <common/command_line.h>
#include <common/error.h>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace gallery {

using nlohmann::ordered_json;

/// A program with the options --seed, --quick and --json; `option` and `flag` add its own.
class Program : public command_line::Program {
 public:
  /// of weights and data
  uint64_t seed = 1;
  bool quick = false, json = false;

  Program(const std::string& name, const std::string& help);

  /// Reads the command line and calls `work`. Returns the exit status: 1 when `work` throws, which is told, 2
  /// for a wrong command line.
  int run(int argc, char** argv, const std::function<void()>& work);

  /// Text for people, to standard output; nothing under --json. Text that was read from a file goes through
  /// utf8::printable first.
  template <class... Values>
  void say(fmt::format_string<Values...> form, Values&&... values) const {
    if (!json) write(fmt::format(form, std::forward<Values>(values)...));
  }
  /// {"event": name, ...fields} as a line of its own under --json; nothing otherwise. NaN and infinities become
  /// null. The last one is "result".
  void event(const std::string& name, const ordered_json& fields) const;

 private:
  std::string name_;
  // At once, so that who waits sees it. @throws std::runtime_error when nobody can read it.
  static void write(std::string_view text);
};

}  // namespace gallery
