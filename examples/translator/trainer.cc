#include <translator/trainer.h>

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <optional>

#include <gradus/nn/data_parallel.h>
#include <gradus/nn/scheduled_sampling.h>
#include <translator/autopsy.h>
#include <translator/files.h>
#include <translator/live_view.h>
#include <common/error.h>
#include <common/progress.h>
#include <common/utf8.h>

namespace translator {
namespace {

namespace nn = gradus::nn;
using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Steps between two that are measured, besides those just before a validation: where the clock ends a run,
// nobody knows which step is its last.
constexpr int64_t kMeasureEvery = 100;
constexpr size_t kWorst = 5;  // sentences that are logged
constexpr int64_t kAlignAtMost = 100;

// FNV-1a over all ids: tells whether a run goes on with the data it began with.
uint64_t fingerprint(const std::vector<EncodedPair>& pairs) {
  uint64_t hash = 14695981039346656037ull;
  auto mix = [&hash](int32_t id) { hash = (hash ^ static_cast<uint32_t>(id)) * 1099511628211ull; };
  for (const EncodedPair& p : pairs) {
    for (int32_t id : p.source) mix(id);
    for (int32_t id : p.target) mix(id);
    mix(-1);
  }
  return hash;
}

std::vector<EncodedPair> encode_with_bar(const std::vector<SentencePair>& pairs, const Model& model,
                                         const TrainOptions& options) {
  Progress bar("splitting sentences", static_cast<int64_t>(pairs.size()),
               {.unit = "pairs/s", .delay_seconds = 2, .quiet = options.quiet});
  return encode(pairs, model, 0, [&](int64_t done) { bar.update(done); });
}

}  // namespace

Trainer::Trainer(Model& model, std::vector<SentencePair> train, std::vector<SentencePair> valid,
                 const TrainOptions& options)
    : model_(model),
      train_(encode_with_bar(train, model, options)),
      valid_(std::move(valid)),
      options_(options),
      optimizer_(make_optimizer(options)),
      plateau_(*optimizer_, {.factor = 0.5, .patience = 1}),
      ema_({.decay = options.ema, .warmup = true}),
      base_lr_(options.lr),
      pool_(options.threads),
      meter_(*model.network),
      log_(options.out) {
  if (train_.empty()) throw InputError("training data", 0, "has no sentence pairs");
  if (model.takes_alignments() &&
      std::all_of(train_.begin(), train_.end(), [](const EncodedPair& p) { return p.links.empty(); }))
    throw InputError("training data", 0,
                     "has no alignments (a third column, 0-0 1-2), which oracle attention takes");
  batches_per_epoch_ = static_cast<int64_t>(batches_of(0).size());
  // Split anew, a text has a token a byte at most.
  for (size_t i = 0; i < train_.size(); ++i)
    tokens_per_epoch_ +=
        1 + static_cast<int64_t>(options_.subword_dropout > 0 ? train[i].target_text.size() + 1
                                                              : train_[i].target.size());
  fingerprint_ = fingerprint(train_);
  if (options_.subword_dropout > 0) texts_ = std::move(train);
  int64_t tenth = options_.epochs > 0 ? options_.epochs * batches_per_epoch_ / 10 : 100;
  warmup_ = options_.warmup > 0 ? options_.warmup : std::clamp<int64_t>(tenth, 1, 100);
}

// With --subword-dropout an epoch has its own pieces: a function of seed and epoch, as its batches.
void Trainer::split_anew() {
  if (texts_.empty()) return;
  const uint64_t seed =
      gradus::Rng(options_.seed, static_cast<uint64_t>(epoch_) + (uint64_t{1} << 41)).next_u64();
  Subwords::seeded(seed, [&] { train_ = encode(texts_, model_, options_.subword_dropout); });
}

// Shuffled, sorted by length within pools of 50 batches (so that a batch pads little and the order stays
// random), cut into batches, which are shuffled. A function of seed and epoch alone: a resumed run sees the
// same batches.
std::vector<std::vector<size_t>> Trainer::batches_of(int64_t epoch) const {
  gradus::Rng rng(options_.seed, static_cast<uint64_t>(epoch) + 1000);
  auto shuffle = [&rng](auto& v) {
    for (size_t i = v.size(); i > 1; --i)
      std::swap(v[i - 1], v[static_cast<size_t>(rng.below(static_cast<int64_t>(i)))]);
  };
  std::vector<size_t> order(train_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  shuffle(order);
  size_t size = static_cast<size_t>(options_.batch_size), pool = size * 50;
  std::vector<std::vector<size_t>> batches;
  for (size_t begin = 0; begin < order.size(); begin += pool) {
    auto first = order.begin() + static_cast<long>(begin);
    auto last = order.begin() + static_cast<long>(std::min(order.size(), begin + pool));
    std::stable_sort(first, last, [&](size_t a, size_t b) {
      return std::pair(train_[a].target.size(), train_[a].source.size()) <
             std::pair(train_[b].target.size(), train_[b].source.size());
    });
    for (auto at = first; at != last; at += static_cast<long>(batches.back().size()))
      batches.emplace_back(at, at + std::min<long>(static_cast<long>(size), last - at));
  }
  shuffle(batches);
  return batches;
}

int64_t Trainer::train_step(const std::vector<size_t>& batch) {
  auto start = Clock::now();
  StepBatch work{.parts = parts_of(train_, batch, pool_.size()),
                 .loss = {.label_smoothing = options_.label_smoothing, .baseline = baseline_},
                 .training_seed = options_.seed * 1000003 + static_cast<uint64_t>(step_),
                 .step = step_};
  if (options_.scheduled_sampling > 0) feed_own_words(work.parts);
  nn::OutputGradients out;
  try {
    std::optional<gradus::CheckFinite> checking;
    if (options_.check_finite) checking.emplace();
    out = differentiate(model_, work, pool_);
  } catch (const gradus::NotFinite&) {
    stop_for(work);
  }
  if (options_.clip_value > 0) nn::clip_grad_value(out.gradients, options_.clip_value);
  double norm = nn::grad_norm(out.gradients, &pool_);
  bool measured = validates_after(step_ + 1, batch_ + 1) || step_ % kMeasureEvery == 0;
  if (measured) meter_.begin(step_, out.gradients);
  if (std::isfinite(norm)) {
    double factor = options_.clip > 0 ? nn::clip_factor(norm, options_.clip) : 1;
    optimizer_->set_lr(rate());
    optimizer_->step(*model_.network, out.gradients, factor, &pool_);
    if (options_.ema > 0) ema_.update(*model_.network);
  } else {
    ++skipped_;
  }
  if (measured) meter_.end();
  // The baseline of hard attention's REINFORCE: a moving average of the loss of a target token. A step whose
  // loss is not finite is left out, as it would make every later gradient NaN.
  double mean = out.nll / static_cast<double>(out.tokens);
  if (std::isfinite(mean)) baseline_ = step_ == 0 ? mean : 0.9 * baseline_ + 0.1 * mean;
  ++batch_;
  ++step_;
  window_nll_ += out.nll;
  window_tokens_ += out.tokens;
  last_norm_ = norm;
  window_seconds_ += since(start);
  return out.tokens;
}

void Trainer::stop_for(const StepBatch& batch) {
  std::string bundle = in(options_.out, fmt::format("not-finite-{}", step_));
  Autopsy autopsy = examine(model_, batch);
  save_bundle(bundle, model_, batch, autopsy);
  throw gradus::NotFinite(fmt::format("stopped at step {}:\n{}`translator replay {}` runs it again.", step_,
                                      autopsy.text(), bundle));
}

double Trainer::progress() const {
  double steps = static_cast<double>(options_.epochs * batches_per_epoch_);
  double by_epochs = options_.epochs > 0 ? static_cast<double>(step_) / steps : 0;
  double by_time = options_.max_minutes > 0 ? seconds_ / (60 * options_.max_minutes) : 0;
  return std::min(1.0, std::max(by_epochs, by_time));
}

double Trainer::rate() const {
  return learning_rate(options_.schedule, base_lr_, progress(), step_, warmup_);
}

// The more of the run is over, the more often the decoder hears itself instead of the reference.
void Trainer::feed_own_words(std::vector<nn::Seq2SeqBatch>& parts) {
  auto generator = model_.network->generator();
  double probability = options_.scheduled_sampling * progress();
  pool_.run([&](int worker) {
    for (size_t k = static_cast<size_t>(worker); k < parts.size(); k += static_cast<size_t>(pool_.size())) {
      gradus::Rng rng =
          gradus::Rng(options_.seed, static_cast<uint64_t>(step_) + (uint64_t{1} << 40)).split(k);
      parts[k].target_in = nn::scheduled_sampling(*generator, parts[k], probability, rng);
    }
  });
}

// What there is by now is kept, and whether a validation has to be made up for.
bool Trainer::interrupted(Progress& bar) {
  save_last(options_.out);
  if (best_loss_ == INFINITY) {  // no validation yet: what was learned so far is the best there is
    nn::EMAWeights averages(ema_, *model_.network);
    save_best(options_.out);
  }
  bar.finish();
  log_.end(false, step_, seconds_);
  return false;
}

bool Trainer::run(const std::atomic<bool>& stop) {
  const auto start = Clock::now();
  const double before = seconds_;
  stop_ = &stop;
  log_.cut(step_, validation_due_);
  if (step_ == 0)
    log_.start(options_, train_.size(), nn::num_parameters(*model_.network), meter_);
  else
    log_.resume(options_, epoch_, step_, seconds_, meter_);
  auto label = [&] {
    std::string title = options_.title.empty() ? "" : options_.title + ": ";
    return fmt::format("{}epoch {}", title, epoch_ + 1) +
           (options_.epochs > 0 ? fmt::format("/{}", options_.epochs) : "");
  };
  constexpr int64_t kBar = 1000;  // the bar shows the progress of the whole run, by epochs or by time
  Progress bar(label(), kBar, {.unit = "tokens/s", .quiet = options_.quiet});
  bar.start_at(static_cast<int64_t>(progress() * kBar));
  int64_t counted = 0;
  if (validation_due_ && !validate(bar)) return interrupted(bar);
  while (progress() < 1) {
    split_anew();
    std::vector<std::vector<size_t>> batches = batches_of(epoch_);
    bar.set_label(label());
    while (batch_ < batches_per_epoch_ && progress() < 1) {
      if (stop) return interrupted(bar);
      counted += train_step(batches[static_cast<size_t>(batch_)]);
      seconds_ = before + since(start);
      bar.update(static_cast<int64_t>(progress() * kBar),
                 fmt::format("loss {:.3f}", window_nll_ / static_cast<double>(window_tokens_)),
                 static_cast<double>(counted));
      if (options_.validate_every > 0 && validates_after(step_, batch_) && !validate(bar))
        return interrupted(bar);
    }
    if (batch_ == batches_per_epoch_) {
      ++epoch_;
      batch_ = 0;
    }
    bool over = options_.validate_every == 0 || progress() >= 1;
    if (window_tokens_ > 0 && over && !validate(bar)) return interrupted(bar);
    seconds_ = before + since(start);
  }
  bar.finish();
  log_.end(true, step_, seconds_);
  return true;
}

bool Trainer::validates_after(int64_t step, int64_t batch) const {
  bool last = options_.epochs > 0 && step == options_.epochs * batches_per_epoch_;
  return last ||
         (options_.validate_every > 0 ? step % options_.validate_every == 0 : batch == batches_per_epoch_);
}

// False when it was interrupted: nothing has changed then but that it is due.
bool Trainer::validate(Progress& bar) {
  std::optional<nn::EMAWeights> averages(std::in_place, ema_, *model_.network);  // until they are released
  Validation v{.epoch = epoch_ + (batch_ == batches_per_epoch_ ? 1 : 0), .step = step_};
  v.train_loss = window_nll_ / static_cast<double>(window_tokens_);
  v.tokens_per_second = static_cast<double>(window_tokens_) / window_seconds_;
  RunLog::Details d;
  try {
    v.evaluation = evaluate(model_, valid_, {.translate_at_most = options_.validation_translations,
                                             .align_at_most = kAlignAtMost,
                                             .threads = options_.threads,
                                             .stop = stop_});
    d = look_closer(v.evaluation);
  } catch (const Interrupted&) {
    validation_due_ = true;
    return false;
  }
  validation_due_ = false;
  v.seconds = seconds_ + v.evaluation.seconds;
  v.best = valid_.empty() || v.evaluation.nll < best_loss_;
  window_nll_ = window_seconds_ = 0;
  window_tokens_ = 0;
  const Evaluation& e = v.evaluation;
  if (v.best) {
    best_loss_ = e.nll;
    save_best(options_.out);
  }
  if (options_.schedule == "plateau" && !valid_.empty()) {
    optimizer_->set_lr(base_lr_);
    plateau_.step(e.nll);
    base_lr_ = optimizer_->lr();
  }
  averages.reset();
  d.lr = rate();
  d.grad_norm = last_norm_;
  d.skipped = skipped_;
  d.norms = meter_.take();
  log_.validation(v, d);  // before the state: what the log has too much, a run that goes on takes out of it
  save_last(options_.out);
  validations_.push_back(std::move(v));
  if (!options_.quiet && options_.title.empty()) show(bar, d);
  return true;
}

// What the model as it is says of single sentences.
RunLog::Details Trainer::look_closer(const Evaluation& e) const {
  RunLog::Details d;
  std::vector<Segmented> sources;
  for (const SentencePair& p : probes_) sources.push_back(model_.reads.split(p.source_text));
  auto translations = translate(model_, *model_.network->generator(), sources, {}, {.stop = stop_});
  for (size_t i = 0; i < probes_.size(); ++i)
    d.samples.push_back(
        {probes_[i].source_text, probes_[i].target_text,
         translations[i].empty() ? std::string() : model_.writes.join(translations[i][0].tokens)});
  if (!probes_.empty()) d.probe = probe(model_, probes_[0]);
  const Work work{.threads = options_.threads, .stop = stop_};
  for (const WorstSentence& w : worst_sentences(model_, valid_, e.hypotheses.size(), kWorst, work)) {
    const SentencePair& p = valid_[w.index];
    d.worst.push_back({w, {p.source_text, p.target_text, e.hypotheses[w.index]}});
  }
  return d;
}

void Trainer::show(Progress& bar, const RunLog::Details& d) const {
  TerminalStyle style = terminal_style(2);
  std::string text = describe(validations_.back(), style.is_terminal ? style.width : 200);
  if (!style.is_terminal) {
    for (const RunLog::Sample& s : d.samples)
      text += fmt::format("\n          {}  ->  {}", utf8::printable(s.source), utf8::printable(s.output));
    bar.print(text);
    return;
  }
  bar.set_panel("");  // its lines would be drawn twice
  bar.print(text);
  bar.set_panel(draw_live_view(validations_, d, style));
}

// One line; what a narrow terminal has no room for is left out, the least telling first.
std::string Trainer::describe(const Validation& v, int width) const {
  const Evaluation& e = v.evaluation;
  enum { kAlways, kLast, kThen, kFirst };  // in which order parts go
  std::vector<std::pair<int, std::string>> parts = {
      {kAlways, fmt::format("{:>8}  epoch {:<3} ", format_duration(v.seconds), v.epoch)},
      {kThen, fmt::format("step {:<6} ", v.step)},
      {valid_.empty() ? kAlways : kThen, fmt::format("train {:.3f}  ", v.train_loss)}};
  if (!valid_.empty()) {
    parts.emplace_back(kAlways, fmt::format("valid {:.3f}  ", e.nll));
    parts.emplace_back(kFirst, fmt::format("perplexity {:<7.2f} ", e.perplexity));
    parts.emplace_back(kLast, fmt::format("BLEU {:5.1f}  ", e.bleu.score));
    parts.emplace_back(kLast, fmt::format("exact {:5.1f} %  ", 100 * e.exact_match));
  }
  parts.emplace_back(kFirst, format_count(v.tokens_per_second) + "/s");
  if (v.best && !valid_.empty()) parts.emplace_back(kAlways, "  *");
  for (int kept = kFirst;; --kept) {
    std::string text;
    for (const auto& [order, part] : parts)
      if (order <= kept) text += part;
    if (kept == kAlways || static_cast<int>(text.size()) < width) return text;
  }
}

}  // namespace translator
