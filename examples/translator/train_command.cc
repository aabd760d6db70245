#include <fmt/core.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>

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

struct Options {
  DataOptions data;
  TrainOptions train;
  CommonOptions common;
  ModelConfig model;
  int64_t hidden = 0, embedding = 0, min_count = 0, max_vocabulary = 20000;
  double dropout = -1, lr = 0;
  int64_t epochs = -1;
  bool case_sensitive = false, resume = false, force = false;
};

// What is not given on the command line depends on the data: the embedded corpus is small and clean.
void fill_defaults(Options& o, bool embedded) {
  if (o.hidden == 0) o.hidden = embedded ? 128 : 256;
  if (o.embedding == 0) o.embedding = embedded ? 128 : 256;
  if (o.dropout < 0) o.dropout = embedded ? 0.0 : 0.2;
  if (o.min_count == 0) o.min_count = embedded ? 1 : 2;
  o.train.lr = o.lr > 0 ? o.lr : embedded ? 3e-3 : 1e-3;
  o.train.epochs = o.epochs >= 0 ? o.epochs : o.train.max_minutes > 0 ? 0 : embedded ? 8 : 12;
  if (o.train.epochs == 0 && o.train.max_minutes <= 0)
    throw InputError("--epochs 0", 0, "needs --max-minutes: the run would never end");
  o.model.network.hidden_size = o.hidden;
  o.model.network.embedding_dim = o.embedding;
  o.model.network.dropout = o.dropout;
}

Vocabulary vocabulary_of(const std::vector<SentencePair>& pairs, std::vector<std::string> SentencePair::*side,
                         const Options& o) {
  TokenCounts counts;
  for (const SentencePair& p : pairs) counts.add(p.*side);
  return Vocabulary::build(counts, {.min_count = o.min_count, .max_size = o.max_vocabulary});
}

int run(Options& o) {
  namespace fs = std::filesystem;
  apply(o.common);
  o.train.threads = o.common.threads;
  bool quiet = o.train.quiet;
  std::string last = (fs::path(o.train.out) / "last.safetensors").string();
  if (!o.resume && !o.force && fs::exists(last))
    throw InputError(o.train.out, 0, "holds a model already: --resume goes on with it, --force replaces it, --out names another place");
  o.data.read.lowercase = !o.case_sensitive;
  Data data = load_data(o.data);
  for (const std::string& line : data.reports)
    if (!quiet) fmt::print(stderr, "{}\n", line);
  fill_defaults(o, data.embedded);
  if (data.train.empty()) throw InputError(o.data.data.empty() ? o.data.source : o.data.data, 0, "has no usable sentence pairs");

  o.model.lowercase = !o.case_sensitive;
  o.model.source_language = data.source_language;
  o.model.target_language = data.target_language;
  o.model.french = o.model.french || data.embedded;
  auto build = [&] {
    if (o.resume) return Model::load(o.train.out);
    return Model(o.model, vocabulary_of(data.train, &SentencePair::source, o),
                 vocabulary_of(data.train, &SentencePair::target, o), o.train.seed);
  };
  Model model = build();
  if (!o.resume) {
    fs::remove(fs::path(o.train.out) / "train.log");
    model.save_description(o.train.out);
  }
  size_t pairs = data.train.size();
  Trainer trainer(model, std::move(data.train), std::move(data.valid), o.train);
  trainer.set_probes(std::move(data.probes));
  if (o.resume) trainer.resume();
  if (!quiet)
    fmt::print(stderr, "{} pairs, {} and {} words, attention {}, {} parameters, {} thread{}\n", format_count(static_cast<double>(pairs)),
               model.source.size(), model.target.size(), model.config.network.attention,
               format_count(static_cast<double>(gradus::nn::num_parameters(model.network))), o.train.threads,
               o.train.threads == 1 ? "" : "s");
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
  bool finished = trainer.run(stop_requested);
  if (!finished) {
    fmt::print(stderr, "Interrupted at step {}; everything is saved in {}. Go on with the same command and --resume.\n",
               trainer.step(), o.train.out);
    return 130;
  }
  if (!quiet)
    fmt::print(stderr, "Trained in {}. The best model (validation loss {:.4f}) is in {}.\n", format_duration(trainer.seconds()),
               trainer.best_loss(), o.train.out);
  return 0;
}

}  // namespace

void add_train_command(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<Options>();
  o->train.out = "model";
  CLI::App* c = app.add_subcommand("train", "Train a model; without arguments on the embedded corpus");
  auto* data = c->add_option("--data", o->data.data, "Training pairs, a TSV file: source TAB target; - is stdin");
  auto* source = c->add_option("--source", o->data.source, "Source sentences, one a line, instead of --data")->excludes(data);
  c->add_option("--target", o->data.target, "Their translations, line by line")->needs(source);
  source->needs(c->get_option("--target"));
  c->add_option("--valid", o->data.valid, "Validation pairs, TSV (default: a twentieth of the data, at most 1000 pairs)");
  auto* valid_source = c->add_option("--valid-source", o->data.valid_source, "Validation sources, one a line");
  c->add_option("--valid-target", o->data.valid_target, "Validation targets, one a line")->needs(valid_source);
  valid_source->needs(c->get_option("--valid-target"));
  c->add_flag("--swap", o->data.read.swap_columns, "The second column (or --target) is what is translated from");
  c->add_flag("--strict", o->data.read.strict, "Stop at the first bad line instead of leaving it out");
  c->add_option("--max-length", o->data.read.max_length, "Leave out pairs with more tokens on a side (default: 50)")
      ->check(CLI::PositiveNumber);
  c->add_option("--corpus-size", o->data.corpus_size, "Embedded training pairs")->capture_default_str()->check(CLI::Range(100, 2000000));
  c->add_flag("--case-sensitive", o->case_sensitive, "Keep capitals");
  c->add_flag("--french", o->model.french, "Write French spacing (before ? ! : ;) in the output");
  c->add_option("--min-count", o->min_count, "Words seen less often are <unk> (default: 2; 1 for the embedded corpus)");
  c->add_option("--max-vocabulary", o->max_vocabulary, "Words a side at most")->capture_default_str();

  c->add_option("-a,--attention", o->model.network.attention, "bahdanau, dot, general, concat, or none")
      ->check(CLI::IsMember({"bahdanau", "additive", "mlp", "dot", "general", "luong", "concat", "none"}))->capture_default_str();
  c->add_option("--decoder", o->model.network.decoder, "Order of the decoder: bahdanau, luong, or auto (by attention)")
      ->check(CLI::IsMember({"auto", "bahdanau", "luong"}))->capture_default_str();
  c->add_option("--hidden", o->hidden, "Size of the states (default: 256; 128 for the embedded corpus)")->check(CLI::PositiveNumber);
  c->add_option("--embedding", o->embedding, "Size of the word vectors (default: 256; 128)")->check(CLI::PositiveNumber);
  c->add_option("--layers", o->model.network.num_layers, "Layers of the encoder")->capture_default_str()->check(CLI::PositiveNumber);
  c->add_option("--dropout", o->dropout, "On embeddings and readout (default: 0.2; 0)")->check(CLI::Range(0.0, 0.95));

  c->add_option("-e,--epochs", o->epochs, "Passes over the data (default: 12, 8 for the embedded corpus; without limit when --max-minutes is given)");
  c->add_option("--max-minutes", o->train.max_minutes, "Stop after so many minutes, learning rate decayed by then");
  c->add_option("-b,--batch-size", o->train.batch_size, "Sentence pairs a step")->capture_default_str()->check(CLI::PositiveNumber);
  c->add_option("--lr", o->lr, "Adam's highest learning rate (default: 0.001; 0.003)");
  c->add_option("--clip", o->train.clip, "Global gradient norm at most")->capture_default_str();
  c->add_option("--label-smoothing", o->train.label_smoothing, "Spread over all words")->capture_default_str()->check(CLI::Range(0.0, 0.9));
  c->add_option("--validate-every", o->train.validate_every, "Steps between validations (default: once an epoch)");
  c->add_option("--seed", o->train.seed, "Of weights, order and dropout")->capture_default_str();
  c->add_option("-o,--out", o->train.out, "Model directory")->capture_default_str();
  auto* resume = c->add_flag("--resume", o->resume, "Go on with the run in --out (same data and options)");
  c->add_flag("--force", o->force, "Replace the model in --out")->excludes(resume);
  c->add_flag("-q,--quiet", o->train.quiet, "Errors only");
  add_common_options(*c, o->common);
  c->callback([o, &exit_code] {
    if (o->data.read.max_length == 0 && (!o->data.data.empty() || !o->data.source.empty())) o->data.read.max_length = 50;
    exit_code = run(*o);
  });
}

}  // namespace translator
