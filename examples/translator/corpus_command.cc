#include <fmt/core.h>


#include <translator/commands.h>
#include <translator/data.h>
#include <translator/files.h>
#include <translator/text/alignment.h>

namespace translator {
namespace {

void write_lines(const std::string& path, const std::string& text) {
  if (path == "-") {
    print_whole(text);
    return;
  }
  write_file(path, text);
}

}  // namespace

int run(CorpusCommand& o) {
  int64_t count = o.count > 0 ? o.count : o.split == "train" ? 40000 : 1000;
  if (o.split != "train" && count > 1000)
    throw UsageError("--count: the " + o.split + " part has 1000 sentences, --split train has more");
  auto joined = [](const std::vector<std::string>& tokens) {
    std::string text;
    for (const std::string& t : tokens) text += text.empty() ? t : " " + t;
    return text;
  };
  std::string text, links;
  for (const SentencePair& p : embedded_pairs(o.split, count, o.seed, o.max_length)) {
    std::string moses = format_moses(*p.alignment);
    text +=
        (o.tokens ? joined(p.source) : p.source_text) + "\t" + (o.tokens ? joined(p.target) : p.target_text);
    if (o.links) text += "\t" + moses;
    text += "\n";
    links += moses + "\n";
  }
  write_lines(o.out, text);
  if (!o.alignments.empty()) write_lines(o.alignments, links);
  return 0;
}

}  // namespace translator
