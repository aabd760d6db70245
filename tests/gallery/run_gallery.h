#pragma once

#include <string>

#include <common/json_text.h>

#include "../cli/program.h"
#include "../nn/helpers.h"

namespace cli {

/// A program of the gallery, by its name there: "captions".
inline Result run_gallery(const std::string& name, const Arguments& options) {
  return run_program(Arguments{std::string(GALLERY) + "/gallery-" + name} + options);
}

/// What it writes under --quick --json: a line each, the last one its result.
inline std::vector<nlohmann::ordered_json> gallery_lines(const std::string& name, const Arguments& options) {
  const Result run = run_gallery(name, Arguments{"--quick", "--json"} + options);
  REQUIRE(run.code == 0);
  std::vector<nlohmann::ordered_json> out;
  for (const std::string& line : lines_of(run.out)) out.push_back(json_text::parse(line));
  REQUIRE(out.back().at("event") == "result");
  return out;
}
inline nlohmann::ordered_json gallery_result(const std::string& name, const Arguments& options = {}) {
  return gallery_lines(name, options).back();
}

/// It takes these options for wrong usage, and names what is wrong.
inline void check_gallery_refuses(const std::string& name, const Arguments& options, const std::string& text) {
  const Result bad = run_gallery(name, options);
  CHECK(bad.code == 2);
  CHECK(bad.says(text));
}

}  // namespace cli
