#include "check_page.h"

#include <fmt/core.h>
#include <gradus/error.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <translator/text/tell.h>

#include "commands.h"
#include "json_text.h"

namespace lens {
namespace {

void write_page(const json& data, const std::string& out) {
  std::string page = assemble_page("check", data);
  write_file(out, page);
  if (out != "-")
    translator::tell("{}: {} check{}, {} KB\n", out, data["checks"].size(),
                     data["checks"].size() == 1 ? "" : "s", page.size() / 1000);
}

}  // namespace

json read_check_log(const std::string& path) {
  std::ifstream in(path);
  if (!in) gradus::fail("lens", path + " cannot be read; hint: LENS_CHECK_LOG=" + path + " ./your-program writes it");
  json checks = json::array();
  std::string line;
  while (std::getline(in, line)) {
    json one = json_text::parse_or_discarded(line);
    if (!one.is_object() || !one.contains("title") || !one.contains("tensors"))
      gradus::fail("lens", fmt::format("{}, line {}: this is not what a check logs", path, checks.size() + 1));
    checks.push_back(std::move(one));
  }
  if (checks.empty()) gradus::fail("lens", path + " holds no check");
  return {{"format", "gradus-lens-trace"}, {"version", 1}, {"kind", "check"}, {"checks", checks}};
}

int with_check_page(const std::string& out, const std::function<int()>& command) {
  if (out.empty()) return command();
  std::filesystem::path log =
      std::filesystem::temp_directory_path() / fmt::format("lens-check-{}.log", static_cast<long>(getpid()));
  std::error_code ignored;
  std::filesystem::remove(log, ignored);
  setenv("LENS_CHECK_LOG", log.c_str(), 1);
  int code = command();
  unsetenv("LENS_CHECK_LOG");
  if (!std::filesystem::exists(log)) {
    fmt::print(stderr, "nothing was checked: no page\n");
    return code;
  }
  json data = read_check_log(log.string());
  std::filesystem::remove(log, ignored);
  write_page(data, out);
  return code;
}

int check_page(const std::string& log, const std::string& out) {
  json data = read_check_log(log);
  write_page(data, out);
  return std::any_of(data["checks"].begin(), data["checks"].end(), [](const json& c) { return c["ok"] != true; });
}

}  // namespace lens
