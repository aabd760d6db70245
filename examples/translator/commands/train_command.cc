#include <fmt/ranges.h>

#include <atomic>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <optional>
#include <vector>

#include <gradus/nn/module.h>
#include <translator/commands/commands.h>
#include <translator/commands/members.h>
#include <translator/commands/train_checks.h>
#include <translator/doctor/examine.h>
#include <translator/model/data.h>
#include <translator/model/files.h>
#include <translator/model/model_config.h>
#include <translator/model/shortlist.h>
#include <translator/training/trainer.h>
#include <common/error.h>
#include <common/progress.h>
#include <common/program.h>
#include <common/tell.h>
#include <common/utf8.h>

namespace translator {
namespace {

std::atomic<bool> stop_requested{false};

// The first Ctrl-C asks for a stop at the next step; a second one ends the program as usual.
void on_interrupt(int signal) {
  stop_requested = true;
  std::signal(signal, SIG_DFL);
}

std::string kind_of(const ModelConfig& c) {
  if (c.model != "transformer") return "attention " + c.network.attention;
  return fmt::format("transformer of {} + {} layers, {} heads", c.transformer.num_layers,
                     c.transformer.num_layers, c.transformer.num_heads);
}

// The sentence that --probe names, read as the data are.
SentencePair probe_of(const TrainCommand& o, const Model& model) {
  if (const std::string fault = utf8::describe_invalid_byte(o.probe); !fault.empty())
    throw UsageError("--probe: " + fault);
  SentencePair p;
  p.source_text = o.probe;
  p.source = model.reads.split(o.probe).words;
  if (p.source.empty()) throw UsageError("--probe: the sentence has no words");
  if (auto fault = model.length_fault(model.reads, o.probe); !fault.empty())
    throw UsageError("--probe: the sentence " + fault);
  return p;
}

// --resume and --from go on with the network that is there, and read text as it does: what is given must be
// what its config.json says. --from may drop out otherwise.
void take_over(TrainCommand& o) {
  const std::string& directory = o.resume ? o.train.out : o.from;
  const char* why = o.resume ? "--resume" : "--from";
  const std::set<std::string> free = {"--dropout", "--recurrent-dropout", "--variational", "--word-dropout"};
  ModelConfig here = o.model, there = read_config(in(directory, "config.json"));
  if (o.given.count("--model") && here.model != there.model)
    throw UsageError(
        fmt::format("the model in {} is a {}: {} cannot change it", directory, there.model, why));
  if (there.transformer.dim_feedforward == 0)
    there.transformer.dim_feedforward = 4 * there.transformer.d_model;
  std::vector<std::string> others;
  auto compare = [&](const Fields& asked, const Fields& found) {
    for (size_t i = 0; i < asked.size(); ++i)
      if (o.given.count(asked[i].option()) && asked[i].text() != found[i].text() &&
          (o.resume || !free.count(asked[i].option())))
        others.push_back(fmt::format("{} {}, not {}", asked[i].option(), found[i].text(), asked[i].text()));
  };
  compare(network_fields(here, there.model), network_fields(there, there.model));
  compare(common_fields(here), common_fields(there));
  if (!others.empty())
    throw UsageError(fmt::format("the model in {} has {}: {} cannot change {}", directory,
                                 fmt::join(others, "; "), why, others.size() == 1 ? "it" : "them"));
  o.model.model = there.model;
  if (o.resume) return;
  const Fields asked = network_fields(here, there.model), found = network_fields(there, there.model);
  for (size_t i = 0; i < asked.size(); ++i)
    if (free.count(asked[i].option()) && !o.open(asked[i].option().c_str())) found[i].assign(asked[i]);
  for (const Fields& settled : {found, common_fields(there)})
    for (const Field& f : settled) o.configured.insert(f.option());
  o.model = there;
}

// A trained model to go on from with other data.
Model trained_model(const TrainCommand& o, const Data& data) {
  Model model = Model::load(o.from);
  prepare(model, o, data);
  must_fit_this_machine(model.config, o, data);
  must_be_readable(model, data);
  return model;
}

std::string best_of(const TrainOptions& o, const Trainer& trainer) {
  const std::string score =
      o.metric == "loss" ? "" : fmt::format("{} {:.2f}, ", o.metric, trainer.best_score());
  return fmt::format("best model ({}validation loss {:.4f})", score, trainer.best_loss());
}

constexpr int64_t kShortlistPays = 10'000;  // target words: docs/decoding.md

// Whether there is a new one.
bool learn_shortlist(const TrainOptions& o, const Trainer& trainer, Model& model) {
  if (!o.shortlist || model.shortlist) return false;
  gradus::ThreadPool pool(o.threads);
  Progress bar("linking words", 100, {.delay_seconds = 2, .quiet = o.quiet});
  model.shortlist = std::make_shared<const Shortlist>(
      Shortlist::learn(trainer.pairs(), model.source.size(), model.target.size(), pool,
                       [&](double share) { bar.update(std::llround(100 * share)); }));
  return true;
}

void say(const TrainCommand& o, const std::string& line) {
  if (!o.train.quiet) tell("{}\n", line);
}

int run_together(TrainCommand& o, std::vector<TrainCommand>& members, DirectoryLock& lock) {
  for (const TrainCommand& m : members) {
    must_be_there_or_not(m);
    if (!o.resume) refuse_options_of_the_other(m);
  }
  make_directory(o.train.out);
  lock.take(o.train.out);
  return train_together(o, members);
}

// What the command line, files of options and the model that is gone on with say together.
void settle_options(TrainCommand& o) {
  if (o.resume) {
    must_be_there_or_not(o);
    take_own_config(o);
  }
  if (!o.config.empty()) take_config(o, o.config);
  apply(o.common);
  o.train.threads = o.common.threads;
  if (!o.resume && !o.print_config) must_be_there_or_not(o);
  if (o.resume || !o.from.empty()) take_over(o);
  refuse_options_of_the_other(o);
  fill_text_defaults(o);
  refuse_what_does_nothing(o);
  must_be_guidable(o);
}

Data read_pairs(const TrainCommand& o) {
  if (!Subwords::available() && !o.data.embedded() && !o.resume && o.open("--subwords"))
    say(o,
        "this build has no SentencePiece (libsentencepiece-dev): words are the tokens, as with --subwords "
        "none");
  Data data = load_data(o.data);
  if (!o.print_config)
    for (const std::string& line : data.reports) say(o, line);
  if (data.train.empty())
    throw InputError(o.data.name(), 0, "has no usable sentence pairs");
  return data;
}

// Puts the new run in the place of what --out has.
void begin(const TrainCommand& o, Trainer& trainer, const Model& model, DirectoryLock& lock) {
  make_directory(o.train.out);
  lock.take(o.train.out);
  must_be_there_or_not(o);  // where nothing was, another training may have made its model by now
  Model::replace(o.train.out, [&](const std::string& where) {
    model.save_description(where);
    trainer.save_start(where);
    write_file(in(where, "training.json"), to_json(o));
  });
}

void go_on(const TrainCommand& o, const Trainer& trainer, const Model& model, bool listed) {
  const std::string best = in(o.train.out, "model.safetensors");
  if (std::error_code ignored; std::isfinite(trainer.best_loss()) && !std::filesystem::exists(best, ignored))
    throw InputError(best, 0, "is missing: the best model so far, kept until there is a better one");
  write_file(in(o.train.out, "training.json"), to_json(o));  // it may be prolonged
  if (listed) model.save_description(o.train.out);
}

void introduce(const TrainCommand& o, size_t pairs, const Model& model) {
  say(o, fmt::format("{} pair{}, {} and {} {}, {}, {} parameters, {} thread{}",
                     format_count(static_cast<double>(pairs)), pairs == 1 ? "" : "s", model.source.size(),
                     model.target.size(), model.config.tokens(), kind_of(model.config),
                     format_count(static_cast<double>(gradus::nn::num_parameters(*model.network))),
                     o.train.threads, o.train.threads == 1 ? "" : "s"));
}

// Tells how it ended, and with which exit code. `over`: there was nothing left to do.
int outcome(const TrainCommand& o, const Trainer& trainer, bool validated, bool whole, bool over) {
  if (trainer.diverged()) {
    const bool kept = validated && std::isfinite(trainer.best_loss());
    tell("translator: {}: stopped at step {}: validation and training have no finite loss any more{}. {}\n",
         o.train.out, trainer.step(), kept ? "; the best model of before is kept" : "", kDivergedAdvice);
    return 1;
  }
  if (Watched* w = o.train.watched) {
    w->best = trainer.best_loss();
    return whole ? 0 : 130;
  }
  if (!whole) {
    tell("Interrupted at step {}; everything is saved in {}. Go on with: {} train --resume --out {}\n",
         trainer.step(), o.train.out, program(), shell_word(o.train.out));
    return 130;
  }
  if (o.resume && over)
    say(o, fmt::format("The run was over already: more {}.", trainer.out_of_patience()
                                                                 ? "--patience prolongs it"
                                                                 : "--epochs or --max-minutes prolong it"));
  if (trainer.out_of_patience())
    say(o, fmt::format("No better {} in {} validation{}: stopped at step {}.", o.train.metric,
                       o.train.patience, o.train.patience == 1 ? "" : "s", trainer.step()));
  if (validated && std::isinf(std::exp(trainer.best_loss()))) {
    tell("translator: no validation had a finite perplexity: what is in {} has learnt nothing. {}\n",
         o.train.out, kDivergedAdvice);
    return 1;
  }
  if (!trainer.averaged().empty())
    say(o, fmt::format("The mean of the models of steps {} is better than each.",
                       fmt::join(trainer.averaged(), ", ")));
  say(o, fmt::format("Trained in {}. The {} is in {}.", format_duration(trainer.seconds()),
                     validated ? best_of(o.train, trainer) : "model", o.train.out));
  return 0;
}

}  // namespace

const std::atomic<bool>& stop_on_signals() {
  for (int signal : {SIGINT, SIGTERM, SIGHUP})
    if (std::signal(signal, on_interrupt) == SIG_IGN)
      std::signal(signal, SIG_IGN);  // nohup, jobs in the background
  return stop_requested;
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
  must_be_readable(model, data);
  return model;
}

int run(TrainCommand& o) {
  DirectoryLock lock;
  if (!o.print_config) lock.take(o.train.out);
  if (auto members = members_of(o); !members.empty()) return run_together(o, members, lock);
  if (!o.print_config) Model::finish_replacing(o.train.out);
  settle_options(o);
  std::optional<Model> there;
  if (o.resume) {
    there.emplace(Model::load_description(o.train.out));
    o.model = there->config;
    o.data.read.text = there->reads.reading();
  }
  Data data = read_pairs(o);
  const std::string chosen = fill_defaults(o, data);
  if (!o.resume) must_go_with_defaults(o);
  if (o.print_config) return print_whole(to_json(o)), 0;
  if (!o.resume) {
    if (!chosen.empty()) say(o, chosen);
    if (!data.embedded && !o.train.quiet)
      doctor::warn(data.train, o.common.threads,
                   o.data.data.empty() || corpus_files(o.data.data).size() == 1);
  }
  must_have_validation(o, data);
  Model model = there            ? std::move(*there)
                : o.from.empty() ? fresh_model(o, data, learn_text(o, data))
                                 : trained_model(o, data);
  if (auto wrong = trained_parameters(*model.network, o.train.freeze).complaint; !wrong.empty())
    throw UsageError("--freeze: " + wrong);
  if (o.resume) must_fit_this_machine(model.config, o, data);
  const std::string complaint = o.resume ? vocabulary_complaint(o, data, model) : "";
  const size_t pairs = data.train.size();
  const bool validated = !data.valid.empty();
  if (o.open("--shortlist")) o.train.shortlist = !o.resume && model.target.size() >= kShortlistPays;

  Trainer trainer(model, std::move(data.train), std::move(data.valid), o.train);
  if (!o.probe.empty()) data.probes.insert(data.probes.begin(), probe_of(o, model));
  trainer.set_probes(std::move(data.probes));
  const bool listed = learn_shortlist(o.train, trainer, model);  // before an epoch splits the pairs anew
  if (o.resume) {
    trainer.resume();  // refuses other data first, which would have other words too
    if (!complaint.empty()) throw UsageError(complaint);
    go_on(o, trainer, model, listed);
  } else {
    begin(o, trainer, model, lock);
  }
  introduce(o, pairs, model);
  const int64_t first_step = trainer.step();
  const bool whole = trainer.run(stop_on_signals());
  return outcome(o, trainer, validated, whole, whole && trainer.step() == first_step);
}

}  // namespace translator
