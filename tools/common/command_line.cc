#include "command_line.h"

#include <fmt/ranges.h>
#include <gradus/names.h>

#include <fcntl.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <system_error>

#include <common/tell.h>
#include <common/terminal.h>
#include <common/utf8.h>

namespace command_line {
namespace {

namespace utf8 = translator::utf8;

// CLI11's own checks let NaN through, and print their bounds with all 309 digits.
CLI::Validator number_check(const std::function<bool(double)>& fits, const std::string& rule,
                            const std::string& in_help) {
  auto fault = [=](const std::string& text) {
    double value = 0;
    if (text.empty() || !CLI::detail::lexical_cast(text, value) || !std::isfinite(value))
      return fmt::format("\"{}\" is no number", text);
    return fits(value) ? "" : fmt::format("{} is not {}", text, rule);
  };
  return CLI::Validator(fault, in_help);
}

CLI::Validator between(double least, double most) {
  return number_check([=](double x) { return x >= least && x <= most; },
                      fmt::format("from {} to {}", least, most), fmt::format("{} to {}", least, most));
}

// CLI11 takes "" for 0, -1 or 99999999999999999999 for the largest number there is where no sign is wanted, and
// 010 for 8: it is given what was read here.
template <class T>
CLI::Validator whole() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        T value = 0;
        const char* end = text.data() + text.size();
        auto [last, error] = std::from_chars(text.data(), end, value);
        if (error == std::errc::result_out_of_range && last == end) return fmt::format("{} is too large", text);
        if (error != std::errc() || last != end) return fmt::format("\"{}\" is no whole number", text);
        text = fmt::to_string(value);
        return "";
      },
      "");
}

// There is no such value or command: those that there are, and the nearest.
std::string unknown_among(const std::string& what, const std::string& name,
                          const std::vector<std::string>& known) {
  const std::string nearest = gradus::nearest_name(name, known);
  return fmt::format("there is no {} \"{}\", only {}{}", what, name, fmt::join(known, ", "),
                     nearest.empty() ? "" : "; hint: " + nearest + "?");
}

// --data "$FORGOTTEN" is a mistake, and not the same as no --data.
const CLI::Validator kNotEmpty([](const std::string& text) { return text.empty() ? "it is empty" : ""; }, "");

// Under a limit of memory, exits without OpenBLAS's cleanup. Its threads retry the allocation of their work
// area for ever when there is no room (0.3.21, blas_memory_alloc), and the cleanup waits for them. Without
// glibc no function at the end is told the exit status.
#ifdef __GLIBC__
void end_without_waiting(int status, void*) {
  rlimit memory;
  if (getrlimit(RLIMIT_AS, &memory) != 0 || memory.rlim_cur == RLIM_INFINITY) return;
  std::fflush(nullptr);
  std::_Exit(status);
}
#endif

// The options that were meant: those that go on where `name` ends ("beam": --beam-size), else the nearest, of
// whole names or of what stands before their first dash ("beem").
std::string meant(const std::string& name, const std::vector<std::string>& options) {
  std::vector<std::string> longer, beginnings;
  for (const std::string& option : options) {
    if (option.starts_with(name + "-")) longer.push_back("--" + option);
    beginnings.push_back(option.substr(0, option.find('-')));
  }
  if (!longer.empty()) return fmt::format("{}", fmt::join(longer, " or "));
  if (const std::string nearest = gradus::nearest_name(name, options); !nearest.empty()) return "--" + nearest;
  const std::string nearest = gradus::nearest_name(name, beginnings);
  return nearest.empty() ? "" : meant(nearest, options);
}

// What is wrong with arguments that a command left over.
std::string unexpected(const CLI::App& command, const std::vector<std::string>& arguments) {
  auto wrong = std::find_if(arguments.begin(), arguments.end(), [](auto& a) { return a.starts_with('-'); });
  if (wrong == arguments.end()) return fmt::format("\"{}\" was not expected", arguments.front());
  const std::string name = wrong->substr(0, wrong->find('='));
  std::vector<std::string> options;
  std::string positional;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& known : option->get_lnames()) options.push_back(known);
    const std::string place = option->get_positional() ? option->get_name(true) : "";
    if (!place.empty()) positional += option->get_required() ? " " + place : " [" + place + "]";
  }
  std::string hint = meant(name.substr(std::min(name.find_first_not_of('-'), name.size())), options);
  auto has_it = [&](const CLI::App* other) { return other->get_option_no_throw(name) != nullptr; };
  // An option that the command has stood before it.
  const CLI::App* program = command.get_parent();
  if (program && has_it(&command))
    return fmt::format("options go behind the command: {} {} {}", program->get_name(), command.get_name(),
                       name);
  if (!program && !command.get_subcommands(has_it).empty())
    return fmt::format("options go behind a command: {} COMMAND {}", command.get_name(), name);
  const bool of_another = program && !program->get_subcommands(has_it).empty();
  if (!hint.empty()) hint += "?";
  else if (of_another && !positional.empty())
    hint = "these are named by their places: " + command.get_name() + positional;
  return fmt::format("there is no option {}{}", name, hint.empty() ? "" : "; hint: " + hint);
}

// Help for a terminal, which would break long lines anywhere. CLI11 has the texts in a column of their own,
// behind a short name or below a long one.
std::string folded(const std::string& help, int width) {
  constexpr size_t kColumn = 30, kBelowName = 6;
  std::istringstream lines(help);
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    if (utf8::display_width(line) > width) {
      const size_t begin = line.find_first_not_of(' ');
      const bool behind =
          begin > 0 && line.size() > kColumn && line[kColumn - 1] == ' ' && line[kColumn] != ' ';
      const size_t column = begin == 0 ? 0 : behind ? kColumn : kBelowName, from = behind ? kColumn : begin;
      line = line.substr(0, from) +
             utf8::wrapped(line.substr(from), width, static_cast<int>(column)).substr(column);
      line.pop_back();
    }
    out += line + '\n';
  }
  return out;
}

}  // namespace

Option Option::show_default() const {
  option_->capture_default_str();
  return *this;
}

Option Option::type_name(const std::string& name) const { return Option(option_->type_name(name)); }

Option Option::required() const { return Option(option_->required()); }

Option Option::with_empty() const {
  option_->get_validator(0)->active(false);  // kNotEmpty, the first
  return *this;
}

// Of a list CLI11 takes all that comes behind the name, whatever is expected.
Option Option::expected(int least, int most) const {
  return Option(option_->expected(least, most)->allow_extra_args(most != 1));
}

Option Option::delimiter(char between) const { return Option(option_->delimiter(between)); }

Option Option::take_all() const { return Option(option_->take_all()); }

Option Option::range(double least, double most) const { return Option(option_->check(between(least, most))); }

Option Option::positive(double most) const {
  const std::string bounds = fmt::format("above 0 and at most {}", most);
  return Option(option_->check(number_check([most](double x) { return x > 0 && x <= most; }, bounds,
                                            most < kMost ? bounds : "above 0")));
}

Option Option::not_negative() const {
  return Option(option_->check(between(0, kMost).description("0 or more")));
}

Option Option::one_of(const std::vector<std::string>& values,
                      const std::map<std::string, std::string>& aliases) const {
  auto fault = [=, what = option_->get_single_name()](const std::string& text) {
    const bool known = std::find(values.begin(), values.end(), text) != values.end() || aliases.count(text);
    return known ? "" : unknown_among(what, text, values);
  };
  constexpr size_t kMany = 10;
  const std::string in_help = values.size() > kMany ? "" : fmt::format("{{{}}}", fmt::join(values, ","));
  return Option(option_->check(CLI::Validator(fault, in_help)));
}

Option Option::existing_file() const { return Option(option_->check(CLI::ExistingFile)); }

Option Option::output_file() const {
  return type_name("FILE").check([](const std::string& value) -> std::string {
    std::error_code none;
    if (value == "-") return "";
    if (std::filesystem::is_directory(value, none)) return value + " is a directory";
    const std::filesystem::path folder = std::filesystem::path(value).parent_path();
    if (folder.empty() || std::filesystem::is_directory(folder, none)) return "";
    return fmt::format("{}: there is no directory {}", value, folder.string());
  });
}

Option Option::once(const std::string& instead) const {
  return check([option = option_, instead](const std::string&) {
    return option->count() > 1 ? "is given twice: " + instead : "";
  });
}

Option Option::check(const std::function<std::string(const std::string&)>& error) const {
  return Option(option_->check(CLI::Validator(error, "")));
}

Option Option::needs(const Option& other) const { return Option(option_->needs(other.option_)); }

Option Option::excludes(const Option& other) const { return Option(option_->excludes(other.option_)); }

bool Option::given() const { return option_->count() > 0; }

Option Command::option(const std::string& names, std::string& value, const std::string& help) const {
  return Option(app_->add_option(names, value, help)->check(kNotEmpty));
}

Option Command::option(const std::string& names, std::optional<std::string>& value,
                       const std::string& help) const {
  return Option(app_->add_option(names, value, help));
}

Option Command::option(const std::string& names, std::vector<std::string>& values,
                       const std::string& help) const {
  return Option(app_->add_option(names, values, help)->check(kNotEmpty));
}

template <std::integral Whole>
Option Command::option(const std::string& names, Whole& value, const std::string& help) const {
  return Option(app_->add_option(names, value, help)->transform(whole<Whole>()));
}
template Option Command::option(const std::string&, int&, const std::string&) const;
template Option Command::option(const std::string&, int64_t&, const std::string&) const;
template Option Command::option(const std::string&, uint64_t&, const std::string&) const;

Option Command::option(const std::string& names, double& value, const std::string& help) const {
  return Option(app_->add_option(names, value, help)->check(number_check([](double) { return true; }, "", "")));
}

Option Command::option(const std::string& names, const std::function<void(const std::string&)>& take,
                       const std::string& help) const {
  return Option(app_->add_option_function<std::string>(names, take, help));
}

Option Command::flag(const std::string& names, bool& value, const std::string& help) const {
  return Option(app_->add_flag(names, value, help));
}

Option Command::flag(const std::string& names, const std::function<void()>& take,
                     const std::string& help) const {
  return Option(app_->add_flag_callback(names, take, help));
}

Command Command::add_command(const std::string& name, const std::string& help) const {
  app_->require_subcommand(1);
  return Command(app_->add_subcommand(name, help));
}

void Command::footer(const std::string& text) const { app_->footer(text); }

void Command::callback(const std::function<void()>& run) const { app_->callback(run); }

std::vector<std::string> Command::given() const {
  std::vector<std::string> out;
  for (const CLI::Option* option : app_->get_options())
    if (option->count() > 0 && !option->get_lnames().empty()) out.push_back("--" + option->get_lnames()[0]);
  return out;
}

struct Program::State {
  CLI::App app;
  std::optional<CLI::ParseError> stopped_by;
  std::string first;  // word behind the program's name
};

Program::Program(const std::string& help, const std::string& name)
    : Command(nullptr), state_(new State{CLI::App(help, name), {}, {}}) {
  app_ = &state_->app;
  for (int stream : {0, 1, 2})
    if (::fcntl(stream, F_GETFD) < 0 && errno == EBADF)
      (void)!::open("/dev/null", stream == 1 ? O_RDONLY : O_WRONLY);
#ifdef __GLIBC__
  static const bool once = on_exit(end_without_waiting, nullptr) == 0;
  (void)once;
#endif
}

Program::~Program() = default;

void Program::last_wins() const { app_->option_defaults()->take_last(); }

void Program::version(const std::string& text) const { app_->set_version_flag("--version", text); }

bool Program::parse(int argc, char** argv) {
  if (argc > 1) state_->first = argv[1];
  try {
    app_->parse(argc, argv);
    return true;
  } catch (const CLI::ParseError& e) {
    state_->stopped_by = e;
    return false;
  }
}

int Program::report() const {
  if (!state_->stopped_by) return 0;
  std::ostringstream help, complaint;
  if (app_->exit(*state_->stopped_by, help, complaint) == 0) {
    const translator::TerminalStyle terminal = translator::terminal_style(1);
    const std::string text =
        terminal.is_terminal ? folded(help.str(), std::max(terminal.width, 60)) : help.str();
    std::fwrite(text.data(), 1, text.size(), stdout);
    return 0;
  }
  std::string text = complaint.str();
  const std::vector<CLI::App*> parsed = app_->get_subcommands();
  const std::vector<std::string> left = app_->remaining(true);
  std::vector<std::string> names;
  for (const CLI::App* command : app_->get_subcommands([](CLI::App*) { return true; }))
    names.push_back(command->get_name());
  if (!names.empty() && !state_->first.empty() && state_->first[0] != '-' && parsed.empty()) {
    text = app_->get_name() + ": " + unknown_among("command", state_->first, names);
  } else if (!left.empty()) {
    const CLI::App& command = parsed.empty() ? *app_ : *parsed.back();
    const std::string name = app_->get_name() + (parsed.empty() ? "" : " " + command.get_name());
    text = name + ": " + unexpected(command, left);
  }
  while (text.ends_with('\n')) text.pop_back();
  translator::tell("{}\n", text);
  return 2;
}

int Program::end(int code) const {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return code;
  translator::tell("{}: standard output cannot be written: {}\n", app_->get_name(), std::strerror(errno));
  return code == 0 ? 1 : code;
}

}  // namespace command_line
