#include <translator/commands/commands.h>

#include <fmt/core.h>

#include <common/tell.h>
#include <common/utf8.h>
#include <gradus/kernels/products/gemm.h>
#include <gradus/nn/seq2seq.h>
#include <gradus/parallel.h>
#include <translator/model/files.h>
#include <translator/text/alignment.h>
#include <translator/text/tokenizer.h>
#include <translator/training/autopsy.h>

namespace translator {

void apply(CommonOptions& options) {
  if (options.threads == 0) options.threads = gradus::available_threads();
  // A system may give fewer: found out and said once, before anything is divided among them.
  if (const int given = gradus::ThreadPool(options.threads).size(); given < options.threads) {
    tell("translator: only {} of {} threads could be started\n", given, options.threads);
    options.threads = given;
  }
  if (!options.verbose) return;
  const char* best = gradus::kernels::blas_core_for_this_cpu();
  tell("OpenBLAS core {} (the CPU's best: {}), {} thread{}\n", gradus::kernels::blas_core(),
       *best ? best : "OpenBLAS's choice", options.threads, options.threads == 1 ? "" : "s");
}

void apply(const LookOptions& o, const Model& model) {
  if (o.top_k == 0 && !o.last_only) return;
  const gradus::nn::Seq2Seq* network = model.recurrent();
  const gradus::nn::RecurrentDecoder* decoder =
      network ? gradus::nn::as_recurrent(*network->decoder) : nullptr;
  if (!decoder || !decoder->attention)
    throw UsageError("--top-k and --last-only are for recurrent models with attention, which this is not");
  decoder->attention->options.top_k = o.top_k;
  decoder->attention->options.last_only = o.last_only;
}

int run(CorpusCommand& o) {
  int64_t count = o.count > 0 ? o.count : o.split == "train" ? 40000 : 1000;
  if (o.split != "train" && count > 1000)
    throw UsageError("--count: the " + o.split + " part has 1000 sentences, --split train has more");
  if (o.out != "-" && is_same_place(o.out, o.alignments))
    throw UsageError("--out and --alignments name one file: " + o.out);
  auto write = [](const std::string& path, const std::string& text) {
    return path == "-" ? print_whole(text) : write_file(path, text);
  };
  std::string text, links;
  for (const SentencePair& p : embedded_pairs(
           o.split, count, {.seed = o.seed, .max_length = o.max_length, .verb_final = o.verb_final})) {
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
