#pragma once

#include <string>

namespace gradus::testing {

/// Says that the rest of this test case does not run here, and why: `return skipped("no strace here");`. The
/// case counts as skipped, unless it failed before, and tools/test prints the reason. Scripts that Meson starts
/// do the same with a line "[skipped] reason"; one that did nothing at all ends with 77.
void skipped(const std::string& reason);

/// False where a sanitizer is built in, which takes more addresses than any limit leaves; the case is then
/// skipped: `if (!memory_can_be_limited()) return;`.
bool memory_can_be_limited();

}  // namespace gradus::testing
