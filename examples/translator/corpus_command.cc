#include <translator/commands.h>
#include <translator/data.h>
#include <translator/files.h>
#include <translator/text/alignment.h>
#include <translator/text/tokenizer.h>

namespace translator {

int run(CorpusCommand& o) {
  int64_t count = o.count > 0 ? o.count : o.split == "train" ? 40000 : 1000;
  if (o.split != "train" && count > 1000)
    throw UsageError("--count: the " + o.split + " part has 1000 sentences, --split train has more");
  auto write = [](const std::string& path, const std::string& text) {
    return path == "-" ? print_whole(text) : write_file(path, text);
  };
  std::string text, links;
  for (const SentencePair& p : embedded_pairs(o.split, count, o.seed, o.max_length)) {
    std::string moses = format_moses(*p.alignment);
    text += o.tokens ? join_tokens(p.source) + "\t" + join_tokens(p.target)
                     : p.source_text + "\t" + p.target_text;
    text += (o.links ? "\t" + moses : "") + "\n";
    links += moses + "\n";
  }
  write(o.out, text);
  if (!o.alignments.empty()) write(o.alignments, links);
  return 0;
}

}  // namespace translator
