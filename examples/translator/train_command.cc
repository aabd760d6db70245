#include <fmt/core.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>

#include <gradus/nn/module.h>
#include <translator/commands.h>
#include <translator/data.h>
#include <translator/text/error.h>
#include <translator/text/progress.h>
#include <translator/trainer.h>

namespace translator {
namespace {

std::atomic<bool> stop_requested{false};

// The first Ctrl-C asks for a stop at the next step; a second one ends the program as usual.
void on_interrupt(int signal) {
  stop_requested = true;
  std::signal(signal, SIG_DFL);
}

// What is not given on the command line depends on the data: the embedded corpus is small and clean.
void fill_defaults(TrainCommand& o, bool embedded) {
  if (o.hidden == 0) o.hidden = embedded ? 128 : 256;
  if (o.embedding == 0) o.embedding = embedded ? 128 : 256;
  if (o.dropout < 0) o.dropout = embedded ? 0.0 : 0.2;
  if (o.min_count == 0) o.min_count = embedded ? 1 : 2;
  o.train.lr = o.lr > 0 ? o.lr : embedded ? 3e-3 : 1e-3;
  o.train.epochs = o.epochs >= 0 ? o.epochs : o.train.max_minutes > 0 ? 0 : embedded ? 7 : 12;
  if (o.train.epochs == 0 && o.train.max_minutes <= 0)
    throw UsageError("--epochs 0 needs --max-minutes: the run would never end");
  o.model.network.hidden_size = o.hidden;
  o.model.network.embedding_dim = o.embedding;
  o.model.network.dropout = o.dropout;
}

Vocabulary vocabulary_of(const std::vector<SentencePair>& pairs, std::vector<std::string> SentencePair::*side,
                         const TrainCommand& o) {
  TokenCounts counts;
  for (const SentencePair& p : pairs) counts.add(p.*side);
  return Vocabulary::build(counts, {.min_count = o.min_count, .max_size = o.max_vocabulary});
}

}  // namespace

int run(TrainCommand& o) {
  namespace fs = std::filesystem;
  apply(o.common);
  o.train.threads = o.common.threads;
  bool quiet = o.train.quiet;
  const fs::path out = o.train.out, weights = out / "model.safetensors", last = out / "last.safetensors";
  std::error_code ignored;
  if (!o.resume && !o.force && (fs::exists(weights, ignored) || fs::exists(last, ignored)))
    throw InputError(
        o.train.out, 0,
        "holds a model already: --resume goes on with it, --force replaces it, --out names another place");
  if (o.resume && !fs::exists(last, ignored))
    throw InputError(o.train.out, 0, "holds no run to go on with: " + last.string() + " is missing");
  o.data.read.lowercase = !o.case_sensitive;
  if (o.resume) o.data.read.lowercase = Model::load_description(o.train.out).config.lowercase;
  Data data = load_data(o.data);
  for (const std::string& line : data.reports)
    if (!quiet) fmt::print(stderr, "{}\n", line);
  const int64_t hidden = o.hidden, embedding = o.embedding;  // as given; 0 is not
  fill_defaults(o, data.embedded);
  if (data.train.empty())
    throw InputError(o.data.data.empty() ? o.data.source : o.data.data, 0, "has no usable sentence pairs");

  o.model.lowercase = !o.case_sensitive;
  o.model.source_language = data.source_language;
  o.model.target_language = data.target_language;
  o.model.french = o.model.french || data.embedded;
  auto build = [&] {
    if (o.resume) return Model::load_description(o.train.out);
    return Model(o.model, vocabulary_of(data.train, &SentencePair::source, o),
                 vocabulary_of(data.train, &SentencePair::target, o), o.train.seed);
  };
  Model model = build();
  const auto& network = model.config.network;
  if (o.resume &&
      ((hidden && hidden != network.hidden_size) || (embedding && embedding != network.embedding_dim)))
    throw UsageError(fmt::format("the model in {} has --hidden {} --embedding {}: --resume cannot change them",
                                 o.train.out, network.hidden_size, network.embedding_dim));
  size_t pairs = data.train.size();
  bool validated = !data.valid.empty();
  Trainer trainer(model, std::move(data.train), std::move(data.valid), o.train);
  trainer.set_probes(std::move(data.probes));
  if (o.resume) {
    trainer.resume();
  } else {
    // The old weights go first: a model's description never stands beside the weights of another.
    for (const fs::path& old : {weights, last, out / "train.log"}) fs::remove(old, ignored);
    model.save_description(o.train.out);
    trainer.save_start();
  }
  if (!quiet)
    fmt::print(stderr, "{} pairs, {} and {} words, attention {}, {} parameters, {} thread{}\n",
               format_count(static_cast<double>(pairs)), model.source.size(), model.target.size(),
               model.config.network.attention,
               format_count(static_cast<double>(gradus::nn::num_parameters(model.network))), o.train.threads,
               o.train.threads == 1 ? "" : "s");
  int64_t first_step = trainer.step();
  for (int signal : {SIGINT, SIGTERM, SIGHUP})
    if (std::signal(signal, on_interrupt) == SIG_IGN)
      std::signal(signal, SIG_IGN);  // nohup, jobs in the background
  bool finished = trainer.run(stop_requested);
  if (!finished) {
    fmt::print(
        stderr,
        "Interrupted at step {}; everything is saved in {}. Go on with the same command and --resume{}.\n",
        trainer.step(), o.train.out, o.force ? " in place of --force" : "");
    return 130;
  }
  if (!quiet && o.resume && trainer.step() == first_step)
    fmt::print(stderr, "The run was over already: more --epochs or --max-minutes prolong it.\n");
  if (!quiet && validated)
    fmt::print(stderr, "Trained in {}. The best model (validation loss {:.4f}) is in {}.\n",
               format_duration(trainer.seconds()), trainer.best_loss(), o.train.out);
  if (!quiet && !validated)
    fmt::print(stderr, "Trained in {}. The model is in {}.\n", format_duration(trainer.seconds()),
               o.train.out);
  return 0;
}

}  // namespace translator
