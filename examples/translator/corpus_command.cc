#include <fmt/core.h>

#include <cstdio>
#include <fstream>
#include <memory>

#include <translator/commands.h>
#include <translator/data.h>
#include <translator/text/alignment.h>
#include <translator/text/error.h>

namespace translator {
namespace {

struct Options {
  std::string split = "train", out = "-", alignments;
  int64_t count = 0;
  uint64_t seed = 1;
  int max_length = 40;
  bool tokens = false, links = false;
};

void write_lines(const std::string& path, const std::string& text) {
  if (path == "-") {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return;
  }
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw InputError(path, 0, "cannot be written");
}

void run(const Options& o) {
  int64_t count = o.count > 0 ? o.count : o.split == "train" ? 40000 : 1000;
  if (o.split != "train" && count > 1000)
    throw InputError("--count", 0, "the " + o.split + " part has 1000 sentences; ask for more with --split train --seed S");
  auto joined = [](const std::vector<std::string>& tokens) {
    std::string text;
    for (const std::string& t : tokens) text += text.empty() ? t : " " + t;
    return text;
  };
  std::string text, links;
  for (const SentencePair& p : embedded_pairs(o.split, count, o.seed, o.max_length)) {
    std::string moses = format_moses(*p.alignment);
    text += (o.tokens ? joined(p.source) : p.source_text) + "\t" + (o.tokens ? joined(p.target) : p.target_text);
    if (o.links) text += "\t" + moses;
    text += "\n";
    links += moses + "\n";
  }
  write_lines(o.out, text);
  if (!o.alignments.empty()) write_lines(o.alignments, links);
}

}  // namespace

void add_corpus_command(CLI::App& app, int&) {
  auto o = std::make_shared<Options>();
  CLI::App* c = app.add_subcommand("corpus", "Write the embedded English-French sentences, made by a grammar");
  c->add_option("--split", o->split, "train, valid or test: no English sentence is in two of them")
      ->check(CLI::IsMember({"train", "valid", "test"}))->capture_default_str();
  c->add_option("-n,--count", o->count, "Pairs (default: 40000 of train, 1000 of the others)")->check(CLI::PositiveNumber);
  c->add_option("--seed", o->seed, "The same seed gives the same sentences everywhere")->capture_default_str();
  c->add_option("--max-length", o->max_length, "Tokens on either side at most")->capture_default_str()->check(CLI::Range(3, 100));
  c->add_option("-o,--out", o->out, "TSV file: English, French; - is stdout")->capture_default_str();
  c->add_flag("--links", o->links, "A third column with the word alignment in Moses form (0-0 1-2, token numbers)");
  c->add_option("--alignments", o->alignments, "File for the alignments alone, a line each");
  c->add_flag("--tokens", o->tokens, "Tokens with spaces between them instead of readable text");
  c->callback([o] { run(*o); });
}

}  // namespace translator
