#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <string>

#include <gradus/nn/module.h>
#include <translator/commands/commands.h>
#include <translator/commands/comparison.h>
#include <translator/inference/evaluation.h>
#include <translator/model/batches.h>
#include <translator/model/data.h>
#include <translator/model/files.h>
#include <common/error.h>
#include <common/progress.h>
#include <common/tell.h>
#include <common/terminal.h>
#include <translator/text/word_picture.h>
#include <translator/training/trainer.h>

namespace translator {
namespace {

namespace fs = std::filesystem;

// What a run writes goes, and nothing else: the directory may be anybody's.
void clear(const std::string& directory) {
  std::error_code ignored;
  for (const char* name : {"race.json", "model.safetensors", "last.safetensors", "train.log"})
    fs::remove(in(directory, name), ignored);
}

// One run of the race: an attention, or the Transformer, and a seed.
struct Entry {
  std::string attention;
  TrainCommand command;  // its own directory and seed, and the defaults of its kind of model
  std::string settings;
};

// The name that races a whole Transformer beside the recurrent models.
constexpr const char* kTransformer = "transformer";

// `checksum` is of all the pairs that a race on own data has: a file may change and keep its name.
std::string settings_of(const TrainCommand& o, size_t pairs, uint64_t checksum) {
  const std::string data = o.data.data + o.data.source,
                    embedded = o.data.verb_final ? "embedded, verbs last" : "embedded",
                    given = data.empty() ? embedded : data;
  const gradus::nn::Seq2SeqConfig& n = o.model.network;
  const gradus::nn::TransformerConfig& t = o.model.transformer;
  const std::string model =
      o.model.model == kTransformer
          ? fmt::format("size {}, layers {} + {}, heads {}, feed-forward {}, dropout {}, {}, positions {}{}",
                        t.d_model, t.num_layers, t.num_layers, t.num_heads,
                        t.dim_feedforward ? t.dim_feedforward : 4 * t.d_model, t.dropout,
                        t.norm_first ? "pre-LN" : "post-LN", t.positions,
                        t.temperature == 1 ? "" : fmt::format(", temperature {}", t.temperature))
          : fmt::format(
                "embedding {}, hidden {}, layers {}, dropout {}, decoder {}, input feeding {}, "
                "readout {}, heads {}, window {}, temperature {}",
                n.embedding_dim, n.hidden_size, n.rnn.num_layers, n.rnn.dropout, n.decoder,
                n.input_feeding ? "on" : "off", n.readout, n.attention_options.heads,
                n.attention_options.window, n.attention_options.temperature);
  // Only what is not so by default, so that races of before go on.
  const bool words = o.model.subwords == "none";
  const bool usual = o.data.embedded() && o.model.letter_case == "lower" && words && o.min_count == 1;
  const std::string text =
      usual ? ""
      : words
          ? fmt::format("case {}, words seen {} times; ", o.model.letter_case, o.min_count)
          : fmt::format("case {}, {} pieces of kind {}, {}; ", o.model.letter_case,
                        o.subword_size ? std::to_string(o.subword_size) : "as many as the data give",
                        o.model.subwords, o.model.subword_model);
  std::string elsewhere;
  auto also = [&](const char* what, const std::string& value) {
    if (!value.empty()) elsewhere += fmt::format(", {} {}", what, value);
  };
  also("target", o.data.target);
  also("validated on", o.data.valid + o.data.valid_source);
  also("and", o.data.valid_target);
  if (!o.data.embedded()) also("checksum", fmt::format("{:016x}", checksum));
  if (o.data.read.swap_columns) elsewhere += ", swapped";
  if (o.data.read.max_length != (o.data.embedded() ? 0 : 50))
    also("at most", fmt::format("{} words", o.data.read.max_length));
  if (words && o.max_vocabulary != TrainCommand().max_vocabulary)
    also("vocabularies of", fmt::format("{} at most", o.max_vocabulary));
  return fmt::format("data {}, {} pairs; {}{}; batch {}, lr {}, epochs {}, minutes {}, threads {}", given,
                     pairs, text, model, o.train.batch_size, o.train.lr, o.train.epochs, o.train.max_minutes,
                     o.train.threads) +
         elsewhere;
}

std::optional<RaceRun> finished_run(const Entry& e) {
  const TrainOptions& o = e.command.train;
  const std::string path = in(o.out, "race.json");
  if (!fs::exists(path)) return std::nullopt;
  auto run = race_run_from_json(read_file(path), e.settings);
  if (!run || run->attention != e.attention || run->seed != o.seed)
    throw InputError(o.out, 0,
                     "was made with other settings: --force races anew, --work names another place");
  return run;
}

// The weights under the reference, </s> included on both sides.
WordPicture map_of(const Model& model, const SentencePair& pair) {
  const Segmented source = model.reads.split(pair.source_text), target = model.writes.split(pair.target_text);
  std::vector<std::vector<float>> weights(model.network->attends() ? target.pieces.size() + 1 : 0);
  if (!weights.empty()) {
    gradus::Tensor w = model.network->align(make_batch(encode({pair}, model), {0}));  // [T, 1, S]
    for (size_t t = 0; t < weights.size(); ++t) {
      const float* row = w.f32() + static_cast<int64_t>(t) * w.size(2);
      weights[t].assign(row, row + w.size(2));
    }
  }
  WordPicture out = picture_of(source, target, weights);
  if (weights.empty()) out.target.push_back("</s>");
  return out;
}

class Race {
 public:
  Race(CompareCommand& o, Data data) : o_(o), data_(std::move(data)) {
    std::set<std::string> seen;  // what is named twice, by an alias or not, is no second run of it
    std::erase_if(o.attentions, [&](const std::string& name) {
      std::string known = name;
      for (const gradus::nn::AttentionKind& kind : gradus::nn::attention_kinds())
        if (std::count(kind.aliases.begin(), kind.aliases.end(), name)) known = kind.name;
      return !seen.insert(known).second;
    });
    test_ = data_.embedded ? embedded_pairs("test", 1000, {.verb_final = o.train.data.verb_final}) : own_test();
    if (test_.empty() || data_.train.empty())
      throw InputError(o.train.data.name(), 0,
                       fmt::format("has too few pairs to hold some out for validation and others for the test: "
                                   "it takes {}",
                                   kFewestJudged + kFewestJudged / 20));
    checksum_ = checksum_of(test_, checksum_of(data_.valid, checksum_of(data_.train)));
    text_ = learn_text(o.train, data_);  // of what is left when test sentences are taken out
    // By seed first: a race that is stopped has all attentions with the seeds that it got to.
    for (int64_t s = 0; s < o.seeds; ++s)
      for (const std::string& name : o.attentions)
        entries_.push_back(entry(name, o.train.train.seed + static_cast<uint64_t>(s)));
    for (size_t i = 0; i < o.attentions.size(); ++i)
      fresh_model(entries_[i].command, data_, text_);  // what cannot be built fails before hours are spent
  }

  /// False when it was interrupted.
  bool run() {
    const std::atomic<bool>& stop = stop_on_signals();
    const double minutes = o_.train.train.max_minutes * static_cast<double>(entries_.size());
    say(fmt::format("{} pairs, {} test sentences; {} runs{}",
                    format_count(static_cast<double>(data_.train.size())), test_.size(), entries_.size(),
                    minutes > 0 ? ", at most " + format_duration(60 * minutes) + " of training" : ""));
    say(fmt::format("         {:<16}{:>5} {:>6} {:>7} {:>7} {:>5} {:>5}", "", "seed", "epochs", "loss", "exact",
                    "BLEU", "AER"));
    for (const Entry& e : entries_) {
      if (o_.force) clear(e.command.train.out);
      std::optional<RaceRun> done = finished_run(e);
      const char* when = done ? "  (as before)" : "";
      if (!done && !stop) done = race(e, stop);
      if (!done) return false;
      runs_.push_back(std::move(*done));
      say(fmt::format("{:>3}/{:<4} {}{}", runs_.size(), entries_.size(), describe(runs_.back()), when));
    }
    return true;
  }

  const std::vector<RaceRun>& runs() const { return runs_; }
  size_t planned() const { return entries_.size(); }

  std::string markdown(const std::vector<RaceRow>& rows, const std::string& picture) const {
    const TrainOptions& run = entries_.front().command.train;
    std::string budget;
    if (run.epochs > 0)
      budget = fmt::format("{} pass{} over the data", run.epochs, run.epochs == 1 ? "" : "es");
    if (run.max_minutes > 0)
      budget += fmt::format("{}{} minute{}", budget.empty() ? "" : " or ", run.max_minutes,
                            run.max_minutes == 1 ? "" : "s");
    std::string out = fmt::format(
        "# The attentions compared\n\nEach run had {} on {} thread{}. Mean ± standard deviation over the "
        "seeds ({} of {} runs), on {} sentence pairs that neither trained a run nor chose its weights.\n",
        budget, run.threads, run.threads == 1 ? "" : "s", runs_.size(), entries_.size(), test_.size());
    out += "Settings: " + settings() + ".\n\n" + race_table_markdown(rows) + "\n";
    out +=
        "Loss: nats per target token, teacher-forced. Exact match, BLEU: greedy translations. AER: strongest "
        "source word of each target word against gold links, under the reference. Entropy: of the weights at "
        "a target word, nats; of several heads of their mean.\n";
    auto findings = race_findings(rows);
    if (!findings.empty())
      out += "\nTold apart by more than twice the standard error of a difference, or not:\n\n";
    for (const std::string& line : findings) out += "- " + line + "\n";
    return out + "\n![Weights of one sentence, by attention](" + picture + ")\n";
  }

 private:
  // What all runs share; of the Transformer what is its own, besides.
  std::string settings() const {
    std::string out;
    for (bool transformer : {false, true}) {
      auto first = std::find_if(entries_.begin(), entries_.end(),
                                [&](const Entry& e) { return (e.attention == kTransformer) == transformer; });
      if (first == entries_.end()) continue;
      std::string given = first->settings;
      for (const std::string none : {", epochs 0,", ", minutes 0,"})  // no limit
        if (size_t at = given.find(none); at != std::string::npos) given.erase(at, none.size() - 1);
      out += (out.empty() ? "" : ". The Transformer's: ") + given;
    }
    return out;
  }

  // The validation pairs choose each run's best weights, so that what a run is measured on must be others.
  std::vector<SentencePair> own_test() {
    std::vector<SentencePair> test = hold_out(data_.train);
    std::set<std::vector<std::string>> chosen_on;
    for (const SentencePair& p : data_.valid) chosen_on.insert(p.source);
    std::erase_if(test, [&](const SentencePair& p) { return chosen_on.count(p.source) > 0; });
    return test;
  }

  void say(const std::string& line) const {
    if (!o_.train.train.quiet) tell("{}\n", line);
  }

  Entry entry(const std::string& attention, uint64_t seed) const {
    TrainCommand o = o_.train;
    if (attention == kTransformer) o.model.model = kTransformer;
    else o.model.network.attention = attention;
    o.train.seed = seed;
    o.train.out = in(o_.work, attention + "-" + std::to_string(seed));
    fill_defaults(o, data_);
    return {attention, o, settings_of(o, data_.train.size(), checksum_)};
  }

  // Nothing when it was interrupted.
  std::optional<RaceRun> race(const Entry& e, const std::atomic<bool>& stop) const {
    Model model = fresh_model(e.command, data_, text_);
    TrainOptions options = e.command.train;
    options.title =
        fmt::format("{}/{} {}, seed {}", runs_.size() + 1, entries_.size(), e.attention, options.seed);
    clear(options.out);
    model.save_description(options.out);
    Trainer trainer(model, data_.train, data_.valid, options);
    if (!trainer.run(stop)) return std::nullopt;
    if (!std::isfinite(trainer.best_loss()))
      throw InputError(options.out, 0, "no validation had a finite loss: a lower --lr may help");
    double tokens_per_second = 0;
    for (const Validation& v : trainer.validations())
      tokens_per_second += v.tokens_per_second / static_cast<double>(trainer.validations().size());
    Model best = Model::load(options.out);
    Evaluation found;
    try {
      found = evaluate(best, test_, {.threads = options.threads, .stop = &stop});
    } catch (const Interrupted&) {
      return std::nullopt;
    }
    RaceRun run{e.attention,
                options.seed,
                gradus::nn::num_parameters(*model.network),
                tokens_per_second,
                trainer.epochs(),
                found.nll,
                found.exact_match,
                found.bleu.score,
                found.aer,
                found.entropy,
                map_of(best, data_.probes.empty() ? test_.front() : data_.probes.front())};
    write_file(in(options.out, "race.json"), to_json(run, e.settings));
    return run;
  }

  static std::string describe(const RaceRun& r) {
    return fmt::format("{:<16}{:>5} {:>6.1f} {:>7.4f} {:>5.1f} % {:>5.1f} {:>5}", r.attention, r.seed, r.epochs,
                       r.loss, 100 * r.exact_match, r.bleu,
                       r.aer ? fmt::format("{:.1f} %", 100 * *r.aer) : "-");
  }

  CompareCommand& o_;
  Data data_;
  LearntText text_;
  std::vector<SentencePair> test_;
  uint64_t checksum_ = 0;
  std::vector<Entry> entries_;
  std::vector<RaceRun> runs_;
};

// Links tell oracle attention where to look. That there are none is said before hours of training, not after.
void leave_out_oracle(CompareCommand& o, const Data& data) {
  auto linked = [](const SentencePair& p) { return p.alignment.has_value(); };
  if (std::any_of(data.train.begin(), data.train.end(), linked) ||
      std::erase(o.attentions, "oracle") == 0)
    return;
  const std::string why = "needs links in the pairs' third column (0-0 1-2), and they have none";
  if (o.train.given.count("--attention")) throw UsageError("--attention: oracle " + why);
  if (!o.train.train.quiet) tell("oracle is left out: it {}\n", why);
}

}  // namespace

int run(CompareCommand& o) {
  if (const fs::path page = o.out; !o.out.empty() && page.extension() != ".md")
    throw UsageError("--out: " + o.out + " must end in .md: it is Markdown, with a picture (.svg) beside it");
  check_seeds(o.train.train.seed, o.seeds);
  apply(o.train.common);
  o.train.train.threads = o.train.common.threads;
  fill_text_defaults(o.train);
  Data data = load_data(o.train.data);
  for (const std::string& line : data.reports)
    if (!o.train.train.quiet) tell("{}\n", line);
  if (data.train.empty()) throw InputError(o.train.data.name(), 0, "has no usable sentence pairs");
  leave_out_oracle(o, data);
  if (std::string chosen = fill_defaults(o.train, data); !chosen.empty() && !o.train.train.quiet)
    tell("{}\n", chosen);
  Race race(o, std::move(data));
  make_directory(o.work);
  DirectoryLock lock;
  lock.take(o.work);
  bool finished = race.run();
  std::vector<RaceRow> rows = race_rows(race.runs());
  if (!rows.empty()) {
    fmt::print("{}\n", race_table(rows, screen_width(terminal_style(1))));
    for (const std::string& line : race_findings(rows)) fmt::print("{}\n", line);
    fmt::print("\n{}", race_maps(rows, terminal_style(1).width));
    if (!o.out.empty()) {
      const fs::path picture = fs::path(o.out).replace_extension(".svg");
      write_file(picture.string(), race_svg(rows));
      write_file(o.out, race.markdown(rows, picture.filename().string()));
      if (!o.train.train.quiet) tell("Written to {} and {}.\n", o.out, picture.string());
    }
  }
  if (finished) return 0;
  tell("Interrupted after {} of {} runs, which are kept in {}. The same command goes on.\n", race.runs().size(),
       race.planned(), o.work);
  return 130;
}

}  // namespace translator
