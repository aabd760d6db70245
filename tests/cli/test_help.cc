// --help: the same words in a pipe, a line each, and on a terminal, in its width.

#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <common/utf8.h>

#include "../quick_doctest.h"
#include "../skip.h"
#include "program.h"
#include "terminal.h"

using namespace cli;

#ifdef HAVE_PTY
TEST_CASE("help fits the terminal, with texts in their column, and is one line each in a pipe") {
  auto words = [](const std::string& text) {
    std::istringstream in(text);
    return std::vector<std::string>(std::istream_iterator<std::string>(in), {});
  };
  size_t wide = 0, of_pipe = 0, below = 0, blank = 0;
  for (const char* command : {"train", "translate", "evaluate", "score", "doctor", "corpus", "quantize"}) {
    CAPTURE(command);
    const std::string piped = run({command, "--help"}).out;
    Terminal terminal({command, "--help"});
    REQUIRE(terminal.wait() == 0);
    CHECK(words(terminal.seen()) == words(piped));
    for (const std::string& line : lines_of(terminal.seen())) {
      const std::string shown = line.substr(0, line.find('\r'));
      wide += translator::utf8::display_width(shown) > 80;
      below += shown.find_first_not_of(' ') == 30;
      blank += shown.empty();
    }
    for (const std::string& line : lines_of(piped)) {
      of_pipe += translator::utf8::display_width(line) > 80;
      blank -= line.empty();
    }
  }
  CHECK(wide == 0);
  CHECK(blank == 0);
  CHECK(of_pipe > 100);
  CHECK(below > 200);
}
#else
TEST_CASE("help fits the terminal") { gradus::testing::skipped("no <pty.h> here"); }
#endif
