#include <fmt/core.h>

#include <translator/autopsy.h>
#include <translator/commands.h>
#include <common/utf8.h>

namespace translator {

// Exit status 0: the step ended as it did when training stopped.
int run(ReplayCommand& o) {
  Replay replay = translator::replay(o.bundle);
  fmt::print("step {}\n{}", replay.step,
             utf8::printable_lines(replay.autopsy.text(o.all ? replay.autopsy.sentences.size() : 5)));
  bool same = replay.autopsy.text(replay.autopsy.sentences.size()) == replay.saved_text;
  fmt::print("{}\n", same ? "This is what stopped the training."
                          : "Not what stopped the training: report.txt in the same directory tells that.");
  return same ? 0 : 1;
}

}  // namespace translator
