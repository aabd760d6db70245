#include "check_page.h"

#include <common/tell.h>
#include <fmt/core.h>
#include <gradus/error.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <common/error.h>

#include "commands.h"
#include <common/json_text.h>
#include "page/schema.h"
#include "scratch.h"

namespace lens {
namespace {

void write_checks(const std::string& out, const json& data) {
  size_t count = data["checks"].size();
  write_page(out, "check", data, fmt::format("{} check{}", count, count == 1 ? "" : "s"));
}

}  // namespace

json read_check_log(const std::string& path) {
  std::ifstream log(path, std::ios::binary);
  if (std::error_code no; std::filesystem::is_directory(path, no))
    throw translator::InputError(path, 0, "is a directory");
  if (!log)
    gradus::fail("lens", path + " cannot be read; hint: LENS_CHECK_LOG=" + path + " ./your-program writes it");
  return read_check_log(log, path);
}

json read_check_log(std::istream& log, const std::string& path) {
  json checks = json::array();
  std::string line;
  for (int64_t number = 1; next_line(log, path, number, line); ++number) {
    json one = json_text::parse_or_discarded(line);
    if (!one.is_object()) throw translator::InputError(path, number, "this is not what a check logs");
    if (auto wrong = check_problems(one); !wrong.empty())
      throw translator::InputError(path, number, "this is not what a check logs: " + wrong[0]);
    checks.push_back(std::move(one));
  }
  if (checks.empty()) gradus::fail("lens", path + " holds no check");
  return {{"format", "gradus-lens-trace"}, {"version", 1}, {"kind", "check"}, {"checks", checks}};
}

int with_check_page(const std::string& out, const std::function<int()>& command) {
  if (out.empty()) return command();
  Scratch scratch;
  std::filesystem::path log = scratch.file("check.log");
  setenv("LENS_CHECK_LOG", log.c_str(), 1);
  int code = command();
  unsetenv("LENS_CHECK_LOG");
  if (!std::filesystem::exists(log)) {
    translator::tell("nothing was checked: no page\n");
    return code;
  }
  write_checks(out, read_check_log(log.string()));
  return code;
}

int check_page(const std::string& log, const std::string& out) {
  json data = read_check_log(log);
  write_checks(out, data);
  return std::any_of(data["checks"].begin(), data["checks"].end(),
                     [](const json& c) { return c["ok"] != true; });
}

}  // namespace lens
