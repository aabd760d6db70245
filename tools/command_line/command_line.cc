#include "command_line.h"

#include <fmt/core.h>

#include <fcntl.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <system_error>

#include <translator/text/tell.h>

namespace command_line {
namespace {

// CLI11's own checks let NaN through, and print their bounds with all 309 digits.
std::string number_fault(const std::string& text, const std::function<bool(double)>& fits, const std::string& rule) {
  double value = 0;
  if (text.empty() || !CLI::detail::lexical_cast(text, value) || !std::isfinite(value))
    return fmt::format("\"{}\" is no number", text);
  return fits(value) ? "" : fmt::format("{} is not {}", text, rule);
}

CLI::Validator number_check(const std::function<bool(double)>& fits, const std::string& rule,
                            const std::string& in_help) {
  return CLI::Validator([=](const std::string& text) { return number_fault(text, fits, rule); }, in_help);
}

CLI::Validator between(double least, double most) {
  return number_check([=](double x) { return x >= least && x <= most; }, fmt::format("from {} to {}", least, most),
                      fmt::format("{} to {}", least, most));
}

// CLI11 takes "" for 0, and -1 or 99999999999999999999 for the largest number there is where no sign is wanted.
template <class T>
CLI::Validator whole() {
  return CLI::Validator(
      [](const std::string& text) -> std::string {
        T value = 0;
        const char* end = text.data() + text.size();
        auto [last, error] = std::from_chars(text.data(), end, value);
        if (error == std::errc::result_out_of_range && last == end) return fmt::format("{} is too large", text);
        return error == std::errc() && last == end ? "" : fmt::format("\"{}\" is no whole number", text);
      },
      "");
}

// --data "$FORGOTTEN" is a mistake, and not the same as no --data.
const CLI::Validator kNotEmpty([](const std::string& text) { return text.empty() ? "it is empty" : ""; }, "");

// Of OpenBLAS's threads each asks for its work area again for ever where there is no room for it (0.3.21,
// blas_memory_alloc), and what the library does at the end of a program waits for them: under a limit of memory it is left
// out.
void end_without_waiting(int status, void*) {
  rlimit memory;
  if (getrlimit(RLIMIT_AS, &memory) != 0 || memory.rlim_cur == RLIM_INFINITY) return;
  std::fflush(nullptr);
  std::_Exit(status);
}

}  // namespace

const Option& Option::show_default() const {
  option_->capture_default_str();
  return *this;
}

const Option& Option::type_name(const std::string& name) const {
  option_->type_name(name);
  return *this;
}

const Option& Option::required() const {
  option_->required();
  return *this;
}

const Option& Option::expected(int least, int most) const {
  option_->expected(least, most);
  return *this;
}

const Option& Option::delimiter(char between) const {
  option_->delimiter(between);
  return *this;
}

const Option& Option::take_all() const {
  option_->take_all();
  return *this;
}

const Option& Option::range(int least, int most) const {
  option_->check(between(least, most));
  return *this;
}

const Option& Option::range(double least, double most) const {
  option_->check(between(least, most));
  return *this;
}

const Option& Option::positive(double most) const {
  option_->check(number_check([most](double x) { return x > 0 && x <= most; },
                              fmt::format("above 0 and at most {}", most), "above 0"));
  return *this;
}

const Option& Option::not_negative() const {
  option_->check(number_check([](double x) { return x >= 0 && x <= kMost; }, fmt::format("from 0 to {}", kMost),
                              "0 or more"));
  return *this;
}

const Option& Option::one_of(const std::vector<std::string>& values) const {
  option_->check(CLI::IsMember(values));
  return *this;
}

const Option& Option::existing_file() const {
  option_->check(CLI::ExistingFile);
  return *this;
}

const Option& Option::check(const std::function<std::string(const std::string&)>& error) const {
  option_->check(CLI::Validator(error, ""));
  return *this;
}

const Option& Option::needs(const Option& other) const {
  option_->needs(other.option_);
  return *this;
}

const Option& Option::excludes(const Option& other) const {
  option_->excludes(other.option_);
  return *this;
}

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

Option Command::option(const std::string& names, int& value, const std::string& help) const {
  return Option(app_->add_option(names, value, help)->check(whole<int>()));
}

Option Command::option(const std::string& names, int64_t& value, const std::string& help) const {
  return Option(app_->add_option(names, value, help)->check(whole<int64_t>()));
}

Option Command::option(const std::string& names, uint64_t& value, const std::string& help) const {
  return Option(app_->add_option(names, value, help)->check(whole<uint64_t>()));
}

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
    : Program(std::unique_ptr<State>(new State{CLI::App(help, name), {}, {}})) {
  for (int stream : {0, 1, 2})
    if (::fcntl(stream, F_GETFD) < 0 && errno == EBADF) (void)!::open("/dev/null", stream == 1 ? O_RDONLY : O_WRONLY);
  static const bool once = on_exit(end_without_waiting, nullptr) == 0;
  (void)once;
}

Program::Program(std::unique_ptr<State> state) : Command(&state->app), state_(std::move(state)) {
  app_->require_subcommand(1);
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
    std::fwrite(help.str().data(), 1, help.str().size(), stdout);
    return 0;
  }
  std::string text = complaint.str();
  if (!state_->first.empty() && state_->first[0] != '-' && app_->get_subcommands().empty()) {
    std::string names;
    for (const CLI::App* command : app_->get_subcommands([](CLI::App*) { return true; }))
      names += (names.empty() ? "" : ", ") + command->get_name();
    text = fmt::format("{}: there is no command \"{}\", only {}", app_->get_name(), state_->first, names);
  }
  while (text.ends_with('\n')) text.pop_back();
  translator::tell("{}\n", text);
  return 2;
}

}  // namespace command_line
