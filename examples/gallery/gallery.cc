#include "gallery.h"

#include <common/json_text.h>
#include <common/tell.h>
#include <gradus/error.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>

namespace gallery {

Program::Program(const std::string& name, const std::string& help)
    : command_line::Program(help, name), name_(name) {
  option("--seed", seed, "Of weights and data").show_default();
  flag("--quick", quick, "Seconds: what it shows can be seen, the numbers are not those of the full size");
  flag("--json", json, "Lines of JSON instead of text, the last one the result");
}

int Program::run(int argc, char** argv, const std::function<void()>& work) {
  std::signal(SIGPIPE, SIG_DFL);  // `... | head` ends quietly
  if (!parse(argc, argv)) return end(report());
  auto failed = [this](std::string_view what, int status = 1) {
    translator::tell("{}: {}\n", name_, what);
    return status;
  };
  try {
    work();
    return 0;
  } catch (const translator::UsageError& e) {
    return failed(e.what(), 2);
  } catch (const gradus::NotFinite& e) {  // its line is what to look at
    return failed(e.what());
  } catch (const gradus::Error& e) {
    return failed(e.message());
  } catch (const std::exception& e) {
    return failed(e.what());
  }
}

void Program::event(const std::string& name, const ordered_json& fields) const {
  if (!json) return;
  ordered_json line = {{"event", name}};
  line.update(fields);
  write(json_text::dump(line) + "\n");
}

void Program::write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw std::runtime_error(fmt::format("standard output cannot be written: {}", std::strerror(errno)));
}

}  // namespace gallery
