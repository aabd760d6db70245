#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <vector>

#include <gradus/nn/module.h>
#include <translator/commands.h>
#include <translator/data.h>
#include <translator/forecast.h>
#include <translator/model_config.h>
#include <translator/recipe.h>
#include <translator/text/error.h>
#include <translator/text/progress.h>
#include <translator/text/tell.h>
#include <translator/text/tokenizer.h>
#include <translator/trainer.h>

namespace translator {
namespace {

std::atomic<bool> stop_requested{false};

// The first Ctrl-C asks for a stop at the next step; a second one ends the program as usual.
void on_interrupt(int signal) {
  stop_requested = true;
  std::signal(signal, SIG_DFL);
}

}  // namespace

const std::atomic<bool>& stop_on_signals() {
  for (int signal : {SIGINT, SIGTERM, SIGHUP})
    if (std::signal(signal, on_interrupt) == SIG_IGN)
      std::signal(signal, SIG_IGN);  // nohup, jobs in the background
  return stop_requested;
}

// What is not given on the command line depends on the network and on the data: the embedded corpus is small and clean.
void fill_defaults(TrainCommand& o, bool embedded) {
  bool transformer = o.model.model == "transformer";
  if (o.hidden == 0) o.hidden = embedded ? 128 : 256;
  if (o.embedding == 0) o.embedding = embedded ? 128 : 256;
  if (o.num_layers == 0) o.num_layers = !transformer ? 1 : embedded ? 2 : 3;
  if (o.dropout < 0) o.dropout = embedded ? 0.0 : transformer ? 0.1 : 0.2;
  if (o.min_count == 0) o.min_count = embedded ? 1 : 2;
  o.train.lr = o.lr > 0 ? o.lr : default_lr(o.train.optimizer, embedded);
  if (transformer && o.lr <= 0 && embedded && o.train.optimizer.starts_with("adam")) o.train.lr = 2e-3;
  o.train.weight_decay = o.weight_decay >= 0 ? o.weight_decay : o.train.optimizer == "adamw" ? 0.01 : 0;
  o.train.clip = o.clip_norm >= 0 ? o.clip_norm : o.train.clip_value > 0 ? 0 : 1;
  o.train.epochs = o.epochs >= 0 ? o.epochs : o.train.max_minutes > 0 ? 0 : embedded ? 7 : 12;
  if (o.train.epochs == 0 && o.train.max_minutes <= 0)
    throw UsageError("--epochs 0 needs --max-minutes: the run would never end");
  o.model.network.hidden_size = o.hidden;
  o.model.network.embedding_dim = o.model.transformer.d_model = o.embedding;
  gradus::nn::RecurrentOptions& rnn = o.model.network.rnn;
  rnn.num_layers = o.model.transformer.num_layers = o.num_layers;
  rnn.dropout = o.model.transformer.dropout = o.dropout;
  const bool layer_norm = rnn.cell.layer_norm;
  rnn.cell = gradus::nn::cell_type(o.cell);
  rnn.cell.layer_norm = layer_norm;
  o.model.transformer.num_heads = o.model.network.attention_options.heads;
}

namespace {

// An option that the other kind of model has would be without effect.
void refuse_options_of_the_other(const TrainCommand& o) {
  static const std::vector<std::string> recurrent = {
      "--attention", "--decoder", "--input-feeding", "--readout",  "--temperature", "--top-k",
      "--window",    "--cell",    "--layer-norm",    "--residual", "--variational", "--recurrent-dropout"};
  static const std::vector<std::string> transformer = {"--ffn", "--norm-first", "--positions",
                                                       "--tie-embeddings"};
  bool is_transformer = o.model.model == "transformer";
  for (const std::string& option : is_transformer ? recurrent : transformer)
    if (o.given.count(option))
      throw UsageError(fmt::format("{} is of a {}: {} has nothing for it", option,
                                   is_transformer ? "recurrent model" : "transformer",
                                   is_transformer ? "a transformer" : "a recurrent model"));
}

std::string kind_of(const ModelConfig& c) {
  if (c.model != "transformer") return "attention " + c.network.attention;
  return fmt::format("transformer of {} + {} layers, {} heads", c.transformer.num_layers,
                     c.transformer.num_layers, c.transformer.num_heads);
}

Vocabulary vocabulary_of(const std::vector<SentencePair>& pairs, std::vector<std::string> SentencePair::*side,
                         const TrainCommand& o) {
  TokenCounts counts;
  for (const SentencePair& p : pairs) counts.add(p.*side);
  return Vocabulary::build(counts, {.min_count = o.min_count, .max_size = o.max_vocabulary});
}

}  // namespace

namespace {

// Before any of it is asked for.
void must_fit_this_machine(const ModelConfig& config, const TrainCommand& o, const Data& data) {
  if (std::string why = why_training_is_too_large(config, o.train, data.train); !why.empty())
    throw UsageError("train: " + why);
}

}  // namespace

Model fresh_model(const TrainCommand& o, const Data& data) {
  ModelConfig config = o.model;
  config.lowercase = !o.case_sensitive;
  config.source_language = data.source_language;
  config.target_language = data.target_language;
  config.trained_on = data.trained_on;
  config.french = config.french || data.embedded;
  Vocabulary source = vocabulary_of(data.train, &SentencePair::source, o),
             target = vocabulary_of(data.train, &SentencePair::target, o);
  config.network.source_vocabulary = config.transformer.source_vocabulary = source.size();
  config.network.target_vocabulary = config.transformer.target_vocabulary = target.size();
  must_fit_this_machine(config, o, data);
  Model model(config, std::move(source), std::move(target), o.train.seed);
  for (const auto* part : {&data.train, &data.valid})
    for (const SentencePair& p : *part)
      if (auto fault = model.length_fault(std::max(p.source.size(), p.target.size())); !fault.empty())
        throw UsageError("a sentence " + fault + "; a smaller --max-length leaves such pairs out");
  return model;
}

namespace {

// The vocabularies of a run that goes on are its own; what is wrong with options that would make others, or nothing.
std::string vocabulary_complaint(const TrainCommand& o, const Data& data, const Model& model) {
  std::string options;
  for (const char* option : {"--min-count", "--max-vocabulary"})
    if (o.given.count(option)) options += std::string(options.empty() ? "" : " and ") + option;
  if (options.empty()) return "";
  int64_t source = vocabulary_of(data.train, &SentencePair::source, o).size(),
          target = vocabulary_of(data.train, &SentencePair::target, o).size();
  if (source == model.source.size() && target == model.target.size()) return "";
  return fmt::format(
      "the model in {} knows {} and {} words, {} would make it {} and {}: --resume cannot change them",
      o.train.out, model.source.size(), model.target.size(), options, source, target);
}

// The sentence that --probe names, read as the data are.
SentencePair probe_of(const TrainCommand& o, const Model& model) {
  SentencePair p;
  p.source_text = o.probe;
  p.source = tokenize(o.probe, {.lowercase = model.config.lowercase});
  if (p.source.empty()) throw UsageError("--probe: the sentence has no words");
  if (auto fault = model.length_fault(p.source.size()); !fault.empty())
    throw UsageError("--probe: the sentence " + fault);
  return p;
}

}  // namespace

int run(TrainCommand& o) {
  namespace fs = std::filesystem;
  apply(o.common);
  o.train.threads = o.common.threads;
  bool quiet = o.train.quiet;
  const fs::path out = o.train.out, weights = out / "model.safetensors", last = out / "last.safetensors";
  std::error_code ignored;
  Model::finish_replacing(o.train.out);
  if (!o.resume && !o.force && (fs::exists(weights, ignored) || fs::exists(last, ignored)))
    throw InputError(
        o.train.out, 0,
        "holds a model already: --resume goes on with it, --force replaces it, --out names another place");
  if (o.resume && !fs::exists(last, ignored))
    throw InputError(o.train.out, 0, "holds no run to go on with: " + last.string() + " is missing");
  o.data.read.lowercase = !o.case_sensitive;
  o.model.model = o.network.empty() ? "gru" : o.network;
  if (o.resume) {
    ModelConfig there = read_config((out / "config.json").string());
    must_be_the_same(o, there);
    o.model.model = there.model;
    o.data.read.lowercase = there.lowercase;
  }
  refuse_options_of_the_other(o);
  Data data = load_data(o.data);
  for (const std::string& line : data.reports)
    if (!quiet) tell("{}\n", line);
  fill_defaults(o, data.embedded);
  if (data.train.empty())
    throw InputError(o.data.data.empty() ? o.data.source : o.data.data, 0, "has no usable sentence pairs");

  Model model = o.resume ? Model::load_description(o.train.out) : fresh_model(o, data);
  if (o.resume) must_fit_this_machine(model.config, o, data);
  std::string complaint = o.resume ? vocabulary_complaint(o, data, model) : "";
  size_t pairs = data.train.size();
  bool validated = !data.valid.empty();
  Trainer trainer(model, std::move(data.train), std::move(data.valid), o.train);
  if (!o.probe.empty()) data.probes.insert(data.probes.begin(), probe_of(o, model));
  trainer.set_probes(std::move(data.probes));
  if (o.resume) {
    trainer.resume();  // refuses other data first, which would have other words too
    if (!complaint.empty()) throw UsageError(complaint);
  } else {
    Model::replace(o.train.out, [&](const std::string& where) {
      model.save_description(where);
      trainer.save_start(where);
    });
  }
  if (!quiet)
    tell("{} pairs, {} and {} words, {}, {} parameters, {} thread{}\n",
         format_count(static_cast<double>(pairs)), model.source.size(), model.target.size(),
         kind_of(model.config),
         format_count(static_cast<double>(gradus::nn::num_parameters(*model.network))),
         o.train.threads, o.train.threads == 1 ? "" : "s");
  int64_t first_step = trainer.step();
  bool finished = trainer.run(stop_on_signals());
  if (!finished) {
    tell("Interrupted at step {}; everything is saved in {}. Go on with the same command and --resume{}.\n",
         trainer.step(), o.train.out, o.force ? " in place of --force" : "");
    return 130;
  }
  if (!quiet && o.resume && trainer.step() == first_step)
    tell("The run was over already: more --epochs or --max-minutes prolong it.\n");
  if (!quiet && validated)
    tell("Trained in {}. The best model (validation loss {:.4f}) is in {}.\n",
         format_duration(trainer.seconds()), trainer.best_loss(), o.train.out);
  if (!quiet && !validated)
    tell("Trained in {}. The model is in {}.\n", format_duration(trainer.seconds()), o.train.out);
  return 0;
}

}  // namespace translator
