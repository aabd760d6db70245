#include "command_line.h"

#include <CLI/CLI.hpp>

namespace command_line {

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
  option_->check(CLI::Range(least, most));
  return *this;
}

const Option& Option::range(double least, double most) const {
  option_->check(CLI::Range(least, most));
  return *this;
}

const Option& Option::positive() const {
  option_->check(CLI::PositiveNumber);
  return *this;
}

const Option& Option::not_negative() const {
  option_->check(CLI::NonNegativeNumber);
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
  return Option(app_->add_option(names, value, help));
}

Option Command::option(const std::string& names, std::optional<std::string>& value,
                       const std::string& help) const {
  return Option(app_->add_option(names, value, help));
}

Option Command::option(const std::string& names, std::vector<std::string>& values,
                       const std::string& help) const {
  return Option(app_->add_option(names, values, help));
}

Option Command::option(const std::string& names, int& value, const std::string& help) const {
  return Option(app_->add_option(names, value, help));
}

Option Command::option(const std::string& names, int64_t& value, const std::string& help) const {
  return Option(app_->add_option(names, value, help));
}

Option Command::option(const std::string& names, uint64_t& value, const std::string& help) const {
  return Option(app_->add_option(names, value, help));
}

Option Command::option(const std::string& names, double& value, const std::string& help) const {
  return Option(app_->add_option(names, value, help));
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
};

Program::Program(const std::string& help, const std::string& name)
    : Program(std::unique_ptr<State>(new State{CLI::App(help, name), {}})) {}

Program::Program(std::unique_ptr<State> state) : Command(&state->app), state_(std::move(state)) {
  app_->require_subcommand(1);
}

Program::~Program() = default;

void Program::last_wins() const { app_->option_defaults()->take_last(); }

void Program::version(const std::string& text) const { app_->set_version_flag("--version", text); }

bool Program::parse(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
    return true;
  } catch (const CLI::ParseError& e) {
    state_->stopped_by = e;
    return false;
  }
}

bool Program::names_command() const { return !app_->get_subcommands().empty(); }

int Program::report() const { return state_->stopped_by ? app_->exit(*state_->stopped_by) : 0; }

}  // namespace command_line
