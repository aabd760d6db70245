#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <optional>
#include <vector>

#include <gradus/kernels/products/gemm.h>
#include <gradus/nn/module.h>
#include <translator/commands.h>
#include <translator/data.h>
#include <translator/doctor/examine.h>
#include <translator/files.h>
#include <translator/forecast.h>
#include <translator/ensemble.h>
#include <translator/members.h>
#include <translator/model_config.h>
#include <translator/shortlist.h>
#include <common/error.h>
#include <common/progress.h>
#include <common/program.h>
#include <common/tell.h>
#include <common/utf8.h>
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
void refuse_options_of_the_other(const TrainCommand& o) {
  const bool transformer = o.model.model == "transformer";
  const char *own = "recurrent model", *other = "transformer";
  if (transformer) std::swap(own, other);
  for (const std::string& option : options_only_of(transformer ? "gru" : "transformer"))
    if (o.given.count(option))
      throw UsageError(fmt::format("{} is of a {}: a {} has nothing for it", option, other, own));
}

// Options that are given and would be without effect beside the others.
void refuse_what_does_nothing(const TrainCommand& o) {
  auto refuse = [&](const char* option, bool used, const char* why) {
    if (o.given.count(option) && !used) throw UsageError(fmt::format("{} {}", option, why));
  };
  const TrainOptions& t = o.train;
  refuse("--momentum", t.optimizer == "sgd" || t.optimizer == "rmsprop", "is of --optimizer sgd and rmsprop");
  refuse("--links", t.guided_alignment > 0, "needs --guided-alignment, which learns from them");
  refuse("--corpus-size", o.data.embedded(), "is of the embedded corpus: --data and --source are taken whole");
  refuse("--average", t.kept() != 1, "needs --keep 2 or more: the mean of one model is itself");
  if (t.precision == "bf16" && !gradus::kernels::bf16_ready())
    throw UsageError(
        "--precision bf16 needs a CPU with AVX512_BF16, which this one has not: --precision f32");
  if (o.resume || o.model.model == "transformer") return;  // compared with the run; told of above
  const gradus::nn::Seq2SeqConfig& n = o.model.network;
  const std::string attention = attention_of(o.model);
  const bool luong = attention != "none" &&
                     (n.decoder == "luong" ||
                      (n.decoder == "auto" && gradus::nn::attention_kind(attention).luong_order));
  for (const char* option : {"--decoder", "--temperature", "--top-k"})
    refuse(option, attention != "none", "is of an attention, and --attention none has none");
  refuse("--heads", attention == "multihead", "is of attention multihead, and of a transformer");
  refuse("--window", attention == "local-m" || attention == "local-p",
         "is of the attentions local-m and local-p");
  refuse("--input-feeding", luong, "is of Luong's order: --decoder luong, or an attention published with it");
  refuse("--residual", n.rnn.num_layers > 1 || n.decoder_layers > 1,
         "needs --layers or --decoder-layers of 2 or more: the first has none below it");
}

// What is given, beside what follows from the data.
void must_go_with_defaults(const TrainCommand& o) {
  const gradus::nn::Seq2SeqConfig& n = o.model.network;
  const gradus::nn::TransformerConfig& t = o.model.transformer;
  const bool transformer = o.model.model == "transformer";
  const double dropout = transformer ? t.dropout : std::max(n.rnn.dropout, n.rnn.recurrent_dropout);
  if (o.given.count("--dropout-warmup") && o.train.dropout_warmup > 0 && dropout == 0)
    throw UsageError("--dropout-warmup needs --dropout: there is none to rise");
  if (!transformer && attention_of(o.model) != "multihead") return;
  const int64_t heads = transformer ? t.num_heads : n.attention_options.heads;
  const int64_t width = transformer ? t.d_model : n.hidden_size;
  if (width % heads != 0)
    throw UsageError(fmt::format("--heads {} does not divide --{} {}: each head has an equal part of it", heads,
                                 transformer ? "d-model" : "hidden", width));
}

// Those that choose where to look by themselves, all at once.
void must_be_guidable(const TrainCommand& o) {
  if (o.train.guided_alignment == 0) return;
  const std::string attention = attention_of(o.model);
  const bool recurrent = o.model.model != "transformer";
  for (const char* other : {"none", "uniform", "oracle", "hard", "multihead"})
    if (recurrent && attention == other)
      throw UsageError("--guided-alignment has nothing to teach to attention " + attention);
  if (!recurrent) throw UsageError("--guided-alignment is for recurrent models, with one attention");
}

std::string kind_of(const ModelConfig& c) {
  if (c.model != "transformer") return "attention " + c.network.attention;
  return fmt::format("transformer of {} + {} layers, {} heads", c.transformer.num_layers,
                     c.transformer.num_layers, c.transformer.num_heads);
}

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
  if (options.empty() || !o.from.empty()) return "";  // with --from others would take another model
  const LearntText others = learn_text(o, data);
  if (others.source.size() == model.source.size() && others.target.size() == model.target.size()) return "";
  return fmt::format(
      "the model in {} knows {} and {} {}, {} would make it {} and {}: --resume cannot change them",
      o.train.out, model.source.size(), model.target.size(), model.config.tokens(), options,
      others.source.size(), others.target.size());
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

// Sentences as long as the model can take.
void must_be_readable(const Model& model, const Data& data) {
  for (const auto* part : {&data.train, &data.valid})
    for (const SentencePair& p : *part) {
      std::string fault = model.length_fault(model.reads, p.source_text);
      if (fault.empty() && !p.tag.empty() && model.most_positions() > 0)
        fault = model.length_fault(model.reads.split(p.source_text).pieces.size() + 1);
      if (fault.empty()) fault = model.length_fault(model.writes, p.target_text);
      if (!fault.empty())
        throw UsageError("a sentence " + fault + "; a smaller --max-length leaves such pairs out");
    }
}

void must_be_there_or_not(const TrainCommand& o) {
  const std::string& out = o.train.out;
  if (!o.resume && !o.from.empty()) must_not_replace(out, {o.from});
  if (!o.resume) must_be_makeable(out);
  auto has = [&](const char* file) {
    std::error_code ignored;
    return std::filesystem::exists(in(out, file), ignored);
  };
  if (o.resume && !has("last.safetensors"))
    throw InputError(out, 0, "holds no run to go on with: " + in(out, "last.safetensors") + " is missing");
  if (!o.resume && !members_in(out).empty())
    throw InputError(out, 0, "holds several models, 1 and on: --out names another place, or one of them");
  if (o.resume || o.force) return;
  if (has("model.safetensors") || has("last.safetensors"))
    throw InputError(
        out, 0,
        "holds a model already: --resume goes on with it, --force replaces it, --out names another place");
  for (const char* file : {"config.json", "training.json"})  // of something else
    if (has(file))
      throw InputError(in(out, file), 0,
                       "is there, of no model: --force writes over it, --out names another place");
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

// What is compared with validation pairs needs some.
void must_have_validation(const TrainCommand& o, const Data& data) {
  const TrainOptions& t = o.train;
  if (!data.valid.empty() ||
      (t.metric == "loss" && t.patience == 0 && t.kept() == 0 && t.schedule != "plateau"))
    return;
  throw UsageError(
      "--metric, --patience, --keep, --average and --schedule plateau look at validation pairs, and none could "
      "be held out: --valid names some");
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
  if (auto members = members_of(o); !members.empty()) {
    for (const TrainCommand& m : members) {
      must_be_there_or_not(m);
      if (!o.resume) refuse_options_of_the_other(m);
    }
    make_directory(o.train.out);
    lock.take(o.train.out);
    return train_together(o, members);
  }
  auto say = [quiet = o.train.quiet](const std::string& line) {
    if (!quiet) tell("{}\n", line);
  };
  if (!o.print_config) Model::finish_replacing(o.train.out);
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
  std::optional<Model> there;
  if (o.resume) {
    there.emplace(Model::load_description(o.train.out));
    o.model = there->config;
    o.data.read.text = there->reads.reading();
  }
  if (!Subwords::available() && !o.data.embedded() && !o.resume && o.open("--subwords"))
    say("this build has no SentencePiece (libsentencepiece-dev): words are the tokens, as with --subwords "
        "none");
  Data data = load_data(o.data);
  if (!o.print_config)
    for (const std::string& line : data.reports) say(line);
  if (data.train.empty())
    throw InputError(o.data.name(), 0, "has no usable sentence pairs");
  const std::string chosen = fill_defaults(o, data);
  if (!o.resume) must_go_with_defaults(o);
  if (o.print_config) return print_whole(to_json(o)), 0;
  if (!chosen.empty() && !o.resume) say(chosen);
  if (!o.resume && !data.embedded && !o.train.quiet)
    doctor::warn(data.train, o.common.threads, o.data.data.empty() || corpus_files(o.data.data).size() == 1);
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
  if (o.resume) {
    const bool listed = learn_shortlist(o.train, trainer, model);  // before an epoch splits the pairs anew
    trainer.resume();  // refuses other data first, which would have other words too
    if (!complaint.empty()) throw UsageError(complaint);
    const std::string best = in(o.train.out, "model.safetensors");
    if (std::error_code ignored; std::isfinite(trainer.best_loss()) && !std::filesystem::exists(best, ignored))
      throw InputError(best, 0, "is missing: the best model so far, kept until there is a better one");
    write_file(in(o.train.out, "training.json"), to_json(o));  // it may be prolonged
    if (listed) model.save_description(o.train.out);
  } else {
    learn_shortlist(o.train, trainer, model);
    make_directory(o.train.out);
    lock.take(o.train.out);
    must_be_there_or_not(o);  // where nothing was, another training may have made its model by now
    Model::replace(o.train.out, [&](const std::string& where) {
      model.save_description(where);
      trainer.save_start(where);
      write_file(in(where, "training.json"), to_json(o));
    });
  }
  say(fmt::format("{} pair{}, {} and {} {}, {}, {} parameters, {} thread{}",
                  format_count(static_cast<double>(pairs)), pairs == 1 ? "" : "s", model.source.size(),
                  model.target.size(), model.config.tokens(), kind_of(model.config),
                  format_count(static_cast<double>(gradus::nn::num_parameters(*model.network))),
                  o.train.threads, o.train.threads == 1 ? "" : "s"));

  const int64_t first_step = trainer.step();
  const bool whole = trainer.run(stop_on_signals());
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
    tell(
        "Interrupted at step {}; everything is saved in {}. Go on with: {} train --resume --out {}\n",
        trainer.step(), o.train.out, program(), shell_word(o.train.out));
    return 130;
  }
  if (o.resume && trainer.step() == first_step)
    say(fmt::format("The run was over already: more {}.", trainer.out_of_patience()
                                                              ? "--patience prolongs it"
                                                              : "--epochs or --max-minutes prolong it"));
  if (trainer.out_of_patience())
    say(fmt::format("No better {} in {} validation{}: stopped at step {}.", o.train.metric, o.train.patience,
                    o.train.patience == 1 ? "" : "s", trainer.step()));
  if (validated && std::isinf(std::exp(trainer.best_loss()))) {
    tell("translator: no validation had a finite perplexity: what is in {} has learnt nothing. {}\n",
         o.train.out, kDivergedAdvice);
    return 1;
  }
  if (!trainer.averaged().empty())
    say(fmt::format("The mean of the models of steps {} is better than each.",
                    fmt::join(trainer.averaged(), ", ")));
  say(fmt::format("Trained in {}. The {} is in {}.", format_duration(trainer.seconds()),
                  validated ? best_of(o.train, trainer) : "model", o.train.out));
  return 0;
}

}  // namespace translator
