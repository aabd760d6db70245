#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <optional>
#include <vector>

#include <gradus/nn/module.h>
#include <translator/commands.h>
#include <translator/data.h>
#include <translator/files.h>
#include <translator/forecast.h>
#include <translator/model_config.h>
#include <common/error.h>
#include <common/progress.h>
#include <common/tell.h>
#include <translator/trainer.h>

namespace translator {
namespace {

std::atomic<bool> stop_requested{false};

// The first Ctrl-C asks for a stop at the next step; a second one ends the program as usual.
void on_interrupt(int signal) {
  stop_requested = true;
  std::signal(signal, SIG_DFL);
}

// An option that the other kind of model has would be without effect.
void refuse_options_of_the_other(TrainCommand& o) {
  const bool transformer = o.model.model == "transformer";
  const char *own = "recurrent model", *other = "transformer";
  if (transformer) std::swap(own, other);
  std::set<std::string> known;
  for (const Field& f : network_fields(o.model, o.model.model)) known.insert(f.option());
  for (const Field& f : network_fields(o.model, transformer ? "gru" : "transformer"))
    if (o.given.count(f.option()) && !known.count(f.option()))
      throw UsageError(fmt::format("{} is of a {}: a {} has nothing for it", f.option(), other, own));
}

std::string kind_of(const ModelConfig& c) {
  if (c.model != "transformer") return "attention " + c.network.attention;
  return fmt::format("transformer of {} + {} layers, {} heads", c.transformer.num_layers,
                     c.transformer.num_layers, c.transformer.num_heads);
}

const char* kind_of_tokens(const ModelConfig& c) { return c.subwords == "none" ? "words" : "pieces"; }

// Before any of it is asked for.
void must_fit_this_machine(const ModelConfig& config, const TrainCommand& o, const Data& data) {
  if (std::string why = why_training_is_too_large(config, o.train, data.train); !why.empty())
    throw UsageError("train: " + why);
}

// The vocabularies of a run that goes on are its own; what is wrong with options that would make others, or
// nothing.
std::string vocabulary_complaint(const TrainCommand& o, const Data& data, const Model& model) {
  std::string options;
  for (const char* option : {"--min-count", "--max-vocabulary", "--subword-size"})
    if (o.given.count(option)) options += std::string(options.empty() ? "" : " and ") + option;
  if (options.empty()) return "";
  const LearntText others = learn_text(o, data);
  if (others.source.size() == model.source.size() && others.target.size() == model.target.size()) return "";
  return fmt::format(
      "the model in {} knows {} and {} {}, {} would make it {} and {}: --resume cannot change them",
      o.train.out, model.source.size(), model.target.size(), kind_of_tokens(model.config), options,
      others.source.size(), others.target.size());
}

// The sentence that --probe names, read as the data are.
SentencePair probe_of(const TrainCommand& o, const Model& model) {
  SentencePair p;
  p.source_text = o.probe;
  p.source = model.reads.split(o.probe).words;
  if (p.source.empty()) throw UsageError("--probe: the sentence has no words");
  if (auto fault = model.length_fault(model.reads, o.probe); !fault.empty())
    throw UsageError("--probe: the sentence " + fault);
  return p;
}

void must_be_there_or_not(const TrainCommand& o) {
  const std::string& out = o.train.out;
  auto has = [&](const char* file) {
    std::error_code ignored;
    return std::filesystem::exists(in(out, file), ignored);
  };
  if (o.resume && !has("last.safetensors"))
    throw InputError(out, 0, "holds no run to go on with: " + in(out, "last.safetensors") + " is missing");
  if (!o.resume && !o.force && (has("model.safetensors") || has("last.safetensors")))
    throw InputError(
        out, 0,
        "holds a model already: --resume goes on with it, --force replaces it, --out names another place");
}

// --resume goes on with the network that is there, and reads text as it does: what is given must be what its
// config.json says.
void take_over(TrainCommand& o) {
  ModelConfig here = o.model, there = read_config(in(o.train.out, "config.json"));
  if (o.given.count("--model") && here.model != there.model)
    throw UsageError(
        fmt::format("the model in {} is a {}: --resume cannot change it", o.train.out, there.model));
  if (there.transformer.dim_feedforward == 0)
    there.transformer.dim_feedforward = 4 * there.transformer.d_model;
  std::vector<std::string> others;
  auto compare = [&](const Fields& asked, const Fields& found) {
    for (size_t i = 0; i < asked.size(); ++i)
      if (o.given.count(asked[i].option()) && asked[i].text() != found[i].text())
        others.push_back(fmt::format("{} {}, not {}", asked[i].option(), found[i].text(), asked[i].text()));
  };
  compare(network_fields(here, there.model), network_fields(there, there.model));
  compare(common_fields(here), common_fields(there));
  if (!others.empty())
    throw UsageError(fmt::format("the model in {} has {}: --resume cannot change {}", o.train.out,
                                 fmt::join(others, "; "), others.size() == 1 ? "it" : "them"));
  o.model.model = there.model;
}

}  // namespace

const std::atomic<bool>& stop_on_signals() {
  for (int signal : {SIGINT, SIGTERM, SIGHUP})
    if (std::signal(signal, on_interrupt) == SIG_IGN)
      std::signal(signal, SIG_IGN);  // nohup, jobs in the background
  return stop_requested;
}

// What is not given on the command line depends on the network and on the data: the embedded corpus is small
// and clean.
void fill_defaults(TrainCommand& o, bool embedded) {
  const bool transformer = o.model.model == "transformer";
  auto open = [&](const char* option) { return o.given.count(option) == 0; };
  gradus::nn::Seq2SeqConfig& n = o.model.network;
  gradus::nn::TransformerConfig& t = o.model.transformer;
  TrainOptions& run = o.train;
  if (open("--hidden")) n.hidden_size = embedded ? 128 : 256;
  if (open("--embedding")) n.embedding_dim = t.d_model = embedded ? 128 : 256;
  if (open("--layers")) {
    n.rnn.num_layers = 1;
    t.num_layers = embedded ? 2 : 3;
  }
  if (open("--dropout")) {
    n.rnn.dropout = embedded ? 0 : 0.2;
    t.dropout = embedded ? 0 : 0.1;
  }
  if (open("--case")) o.model.letter_case = embedded ? "lower" : "first";
  if (open("--subwords")) o.model.subwords = embedded || !Subwords::available() ? "none" : "bpe";
  o.data.read.text = {.lowercase = o.model.lowercase(), .plain = o.model.subwords == "none"};
  if (open("--min-count")) o.min_count = embedded ? 1 : 2;
  if (open("--lr")) {
    run.lr = default_lr(run.optimizer, embedded);
    if (transformer && embedded && run.optimizer.starts_with("adam")) run.lr = 2e-3;
  }
  if (open("--weight-decay")) run.weight_decay = run.optimizer == "adamw" ? 0.01 : 0;
  if (open("--clip-norm")) run.clip = run.clip_value > 0 ? 0 : 1;
  if (open("--epochs")) run.epochs = run.max_minutes > 0 ? 0 : embedded ? 7 : 12;
  if (run.epochs == 0 && run.max_minutes <= 0)
    throw UsageError("--epochs 0 needs --max-minutes: the run would never end");
}

Model fresh_model(const TrainCommand& o, const Data& data, const LearntText& text) {
  ModelConfig config = o.model;
  config.source_language = data.source_language;
  config.target_language = data.target_language;
  config.trained_on = data.trained_on;
  config.french = text.french;
  config.source_folded = text.models.source_case != nullptr;
  config.target_folded = text.models.target_case != nullptr;
  config.network.source_vocabulary = config.transformer.source_vocabulary = text.source.size();
  config.network.target_vocabulary = config.transformer.target_vocabulary = text.target.size();
  must_fit_this_machine(config, o, data);
  Model model(config, text.source, text.target, o.train.seed, text.models);
  for (const auto* part : {&data.train, &data.valid})
    for (const SentencePair& p : *part) {
      std::string fault = model.length_fault(model.reads, p.source_text);
      if (fault.empty()) fault = model.length_fault(model.writes, p.target_text);
      if (!fault.empty())
        throw UsageError("a sentence " + fault + "; a smaller --max-length leaves such pairs out");
    }
  return model;
}

int run(TrainCommand& o) {
  auto say = [quiet = o.train.quiet](const std::string& line) {
    if (!quiet) tell("{}\n", line);
  };
  apply(o.common);
  o.train.threads = o.common.threads;
  Model::finish_replacing(o.train.out);
  must_be_there_or_not(o);
  if (o.resume) take_over(o);
  refuse_options_of_the_other(o);

  fill_defaults(o, o.data.embedded());
  std::optional<Model> there;
  if (o.resume) {
    there.emplace(Model::load_description(o.train.out));
    o.model = there->config;
    o.data.read.text = there->reads.reading();
  }
  if (!Subwords::available() && !o.data.embedded() && !o.resume && !o.given.count("--subwords"))
    say("this build has no SentencePiece (libsentencepiece-dev): words are the tokens, as with --subwords none");
  Data data = load_data(o.data);
  for (const std::string& line : data.reports) say(line);
  if (data.train.empty())
    throw InputError(o.data.data.empty() ? o.data.source : o.data.data, 0, "has no usable sentence pairs");
  Model model = there ? std::move(*there) : fresh_model(o, data, learn_text(o, data));
  if (o.resume) must_fit_this_machine(model.config, o, data);
  const std::string complaint = o.resume ? vocabulary_complaint(o, data, model) : "";
  const size_t pairs = data.train.size();
  const bool validated = !data.valid.empty();

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
  say(fmt::format("{} pairs, {} and {} {}, {}, {} parameters, {} thread{}",
                  format_count(static_cast<double>(pairs)), model.source.size(), model.target.size(),
                  kind_of_tokens(model.config), kind_of(model.config),
                  format_count(static_cast<double>(gradus::nn::num_parameters(*model.network))),
                  o.train.threads, o.train.threads == 1 ? "" : "s"));

  const int64_t first_step = trainer.step();
  if (!trainer.run(stop_on_signals())) {
    tell("Interrupted at step {}; everything is saved in {}. Go on with the same command and --resume{}.\n",
         trainer.step(), o.train.out, o.force ? " in place of --force" : "");
    return 130;
  }
  if (o.resume && trainer.step() == first_step)
    say("The run was over already: more --epochs or --max-minutes prolong it.");
  say(fmt::format("Trained in {}. The {} is in {}.", format_duration(trainer.seconds()),
                  validated ? fmt::format("best model (validation loss {:.4f})", trainer.best_loss()) : "model",
                  o.train.out));
  return 0;
}

}  // namespace translator
