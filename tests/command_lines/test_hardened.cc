// What SECURITY.md says of how the programs are compiled: asked of the programs themselves, and of the
// compiler's command for each of their files.

#include <string>

#include <nlohmann/json.hpp>

#include "../read.h"

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("the programs carry stack protectors, the library's assertions and checked copies") {
  for (const char* program : {TRANSLATOR, LENS, BENCH}) {
    CAPTURE(program);
    const std::string symbols = read_whole(program);
    CHECK(has(symbols, "__stack_chk_fail"));
    CHECK(has(symbols, "__glibcxx_assert_fail"));
    if (FORTIFIED) CHECK(has(symbols, std::string("_chk\0", 5)));
  }
}

TEST_CASE("every file of the programs, and those of the libraries that read files, is compiled hardened") {
  int64_t programs = 0, readers = 0;
  for (const auto& one : nlohmann::json::parse(read_whole(COMPILE_COMMANDS))) {
    const std::string output = one["output"], command = one["command"];
    const bool program = output.starts_with("examples/translator/") || output.starts_with("tools/");
    const bool reader = output.starts_with("lib/libgradus-check.a.p/");
    if (!program && !reader) continue;
    programs += program, readers += reader;
    CAPTURE(output);
    CHECK(has(command, " -fstack-protector-strong"));
    CHECK(has(command, " -D_GLIBCXX_ASSERTIONS"));
    if (FORTIFIED) CHECK(has(command, " -D_FORTIFY_SOURCE=3"));
  }
  CHECK(programs >= 10);
  CHECK(readers >= 1);
}
