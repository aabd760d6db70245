#include <translator/training/trainer.h>

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <optional>

#include <gradus/nn/data_parallel.h>
#include <gradus/nn/scheduled_sampling.h>
#include <translator/doctor/aligner.h>
#include <translator/inference/translation.h>
#include <translator/model/files.h>
#include <translator/training/autopsy.h>
#include <translator/training/live_view.h>
#include <common/error.h>
#include <common/progress.h>
#include <common/program.h>
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
constexpr double kKnown = 20;  // seconds after which the speed is known
constexpr double kWarmupShare = 0.25;

// For --guided-alignment: a word aligner's links, which need no one who knows better.
void link_words(std::vector<SentencePair>& pairs, const TrainOptions& o) {
  gradus::ThreadPool pool(o.threads);
  Progress bar("linking words", 100, {.delay_seconds = 2, .quiet = o.quiet});
  auto links = doctor::align_words(
      pairs, pool, {.on_progress = [&](double share) { bar.update(std::llround(100 * share)); }});
  for (size_t i = 0; i < pairs.size(); ++i) pairs[i].alignment = GoldAlignment{.sure = std::move(links[i])};
}

std::vector<EncodedPair> encode_with_bar(std::vector<SentencePair>& pairs, const Model& model,
                                         const TrainOptions& options) {
  if (options.guided_alignment > 0 && options.links == "learnt") link_words(pairs, options);
  Progress bar("splitting sentences", static_cast<int64_t>(pairs.size()),
               {.unit = "pairs/s", .delay_seconds = 2, .quiet = options.quiet});
  return encode(pairs, model, {.links = options.guided_alignment > 0, .on_progress = [&](int64_t done) {
                                 bar.update(done);
                               }});
}

}  // namespace

Trainer::Trainer(Model& model, std::vector<SentencePair> train, std::vector<SentencePair> valid,
                 const TrainOptions& options)
    : model_(model),
      trained_(trained_parameters(*model.network, options.freeze).parameters),
      train_(encode_with_bar(train, model, options)),
      valid_(std::move(valid)),
      options_(options),
      optimizer_(make_optimizer(options, hidden_matrices(*model.network))),
      plateau_(*optimizer_, {.maximize = options.metric != "loss", .factor = 0.5, .patience = 1}),
      ema_({.decay = options.ema, .warmup = true}),
      base_lr_(options.lr),
      pool_(options.threads),
      meter_(*model.network),
      log_(options.out),
      checkpoints_(options.out, options.kept()) {
  if (train_.empty()) throw InputError("training data", 0, "has no sentence pairs");
  const bool guided = options.guided_alignment > 0;
  if ((guided || model.takes_alignments()) &&
      std::all_of(train_.begin(), train_.end(), [](const EncodedPair& p) { return p.links.empty(); }))
    throw InputError("training data", 0,
                     fmt::format("has no alignments (a third column, 0-0 1-2), which {}",
                                 guided ? "--guided-alignment learns from" : "oracle attention takes"));
  batches_per_epoch_ = steps_of(epoch_batches(train_, 0, epoch_options()));
  // Split anew, a text has a token a byte at most.
  for (size_t i = 0; i < train_.size(); ++i)
    tokens_per_epoch_ +=
        static_cast<int64_t>(std::ceil(train_[i].weight)) *
        (1 + static_cast<int64_t>(options_.subword_dropout > 0 ? train[i].target_text.size() + 1
                                                               : train_[i].target.size()));
  fingerprints_ = fingerprints(train_, valid_);
  if (options_.subword_dropout > 0) texts_ = std::move(train);
}

// With --subword-dropout an epoch has its own pieces: a function of seed and epoch, as its batches.
void Trainer::split_anew() {
  if (texts_.empty()) return;
  Subwords::seeded(drawn(Draws::pieces, options_.seed, epoch_).next_u64(), [&] {
    train_ =
        encode(texts_, model_, {.dropout = options_.subword_dropout, .links = options_.guided_alignment > 0});
  });
}

// The pieces and batches of this epoch.
void Trainer::begin_epoch() {
  split_anew();
  batches_ = epoch_batches(train_, epoch_, epoch_options());
  batches_per_epoch_ = steps_of(batches_);
}

EpochOptions Trainer::epoch_options() const {
  return {.batch_size = options_.batch_size, .batch_tokens = options_.batch_tokens, .seed = options_.seed};
}

int64_t Trainer::steps_of(const std::vector<Batch>& batches) const {
  return (static_cast<int64_t>(batches.size()) + options_.accumulate - 1) / options_.accumulate;
}

// Of the mean loss over the target words of all batches of the step.
nn::OutputGradients Trainer::step_gradients() {
  const size_t most = static_cast<size_t>(options_.accumulate), begin = static_cast<size_t>(batch_) * most,
               count = std::min(most, batches_.size() - begin);
  int64_t tokens = 0;
  for (size_t k = 0; k < count; ++k)
    for (size_t i : batches_[begin + k]) tokens += static_cast<int64_t>(train_[i].target.size()) + 1;
  nn::OutputGradients sum;
  for (size_t k = 0; k < count; ++k) {
    const uint64_t own = k * 0x9E3779B97F4A7C15;  // each draws its own numbers
    StepBatch work{.parts = parts_of(train_, batches_[begin + k], pool_.size()),
                   .loss = {.label_smoothing = options_.label_smoothing,
                            .guided_alignment = options_.guided_alignment,
                            .baseline = baseline_},
                   .training_seed = options_.seed * 1000003 + static_cast<uint64_t>(step_) + own,
                   .dropout_share = dropout_share(),
                   .bf16 = options_.precision == "bf16",
                   .step = step_};
    if (options_.scheduled_sampling > 0) feed_own_words(work.parts, k);
    if (options_.word_dropout > 0)
      drop_words(work.parts, options_.word_dropout,
                 drawn(Draws::unknown_words, options_.seed, step_).split(k));
    nn::OutputGradients out;
    try {
      std::optional<gradus::CheckFinite> checking;
      if (options_.check_finite) checking.emplace();
      out = differentiate(model_, work, pool_);
    } catch (const gradus::NotFinite&) {
      stop_for(work);
    }
    if (count > 1) out.gradients.scale(static_cast<double>(out.tokens) / static_cast<double>(tokens));
    if (k == 0) {
      sum = std::move(out);
    } else {
      sum.gradients.add(out.gradients);
      sum.nll += out.nll;
      sum.tokens += out.tokens;
    }
  }
  return sum;
}

int64_t Trainer::train_step() {
  auto start = Clock::now();
  nn::OutputGradients out = step_gradients();
  if (!options_.freeze.empty()) keep_only(trained_, out.gradients);
  if (options_.clip_value > 0) nn::clip_grad_value(out.gradients, options_.clip_value);
  double norm = nn::grad_norm(out.gradients, &pool_);
  bool measured = validates_after(step_ + 1, batch_ + 1) || step_ % kMeasureEvery == 0;
  if (measured) meter_.begin(step_, out.gradients);
  if (std::isfinite(norm)) {
    double factor = options_.clip > 0 ? nn::clip_factor(norm, options_.clip) : 1;
    optimizer_->set_lr(rate());
    ProductsOf products(options_.precision == "bf16");
    optimizer_->step(trained_, out.gradients, factor, &pool_);
    if (options_.ema > 0) ema_.update(trained_);
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
  throw gradus::NotFinite(fmt::format("stopped at step {}:\n{}`{} replay {}` runs it again.", step_,
                                      autopsy.text(), program(), shell_word(bundle)));
}

// In a run of fewer passes than usual less is learnt by heart, and dropout rises more slowly: in a quarter of
// them half as fast (docs/defaults.md, "Dropout that rises"). How many it will come to, a run of so many
// minutes tells from the pace so far.
double Trainer::dropout_share() const {
  if (options_.dropout_warmup <= 0) return 1;
  const double done = epochs(), over = progress(), usual = options_.usual_epochs;
  const double shorter = usual > 0 && over > 0 ? std::min(1.0, done / over / usual) : 1;
  return std::min(1.0, std::sqrt(shorter) * done / options_.dropout_warmup);
}

// Batches by tokens may be more in one epoch than in another: then only this one's are counted.
double Trainer::epochs() const {
  const double steps = static_cast<double>(batches_per_epoch_);
  return options_.batch_tokens > 0 ? static_cast<double>(epoch_) + static_cast<double>(batch_) / steps
                                   : static_cast<double>(step_) / steps;
}

double Trainer::progress() const {
  double steps = static_cast<double>(options_.epochs * batches_per_epoch_);
  double by_epochs = options_.epochs == 0        ? 0
                     : options_.batch_tokens > 0 ? epochs() / static_cast<double>(options_.epochs)
                                                 : static_cast<double>(step_) / steps;
  double by_time = options_.max_minutes > 0 ? seconds_ / (60 * options_.max_minutes) : 0;
  return std::min(1.0, std::max(by_epochs, by_time));
}

// A run of so many minutes does not know its steps: they are what it would come to at the pace so far.
int64_t Trainer::warmup() const {
  if (options_.warmup > 0) return options_.warmup;
  const double over = progress();
  const double steps = over > 0            ? static_cast<double>(step_) / over
                       : options_.epochs > 0 ? static_cast<double>(options_.epochs * batches_per_epoch_)
                                             : HUGE_VAL;
  return static_cast<int64_t>(
      std::clamp(std::round(kWarmupShare * steps), 1.0, static_cast<double>(options_.usual_warmup)));
}

double Trainer::rate() const {
  return learning_rate(options_.schedule, base_lr_, progress(), step_, warmup());
}

// The more of the run is over, the more often the decoder hears itself instead of the reference.
void Trainer::feed_own_words(std::vector<nn::Seq2SeqBatch>& parts, size_t nth) {
  auto generator = model_.network->generator();
  double probability = options_.scheduled_sampling * progress();
  pool_.run([&](int worker) {
    for (size_t k = static_cast<size_t>(worker); k < parts.size(); k += static_cast<size_t>(pool_.size())) {
      gradus::Rng rng =
          drawn(Draws::own_words, options_.seed, step_).split(nth * static_cast<size_t>(pool_.size()) + k);
      parts[k].target_in = nn::scheduled_sampling(*generator, parts[k], probability, rng);
    }
  });
}

// What there is by now is kept, and whether a validation has to be made up for.
bool Trainer::interrupted(Progress& bar) {
  save_last(options_.out);
  // No validation yet: what was learned so far is the best there is.
  if (validations_.empty() && best_loss_ == INFINITY) {
    nn::EMAWeights averages(ema_, trained_);
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
  Progress bar(label(), kBar, {.unit = "tokens/s", .quiet = options_.silent()});
  bar.start_at(static_cast<int64_t>(progress() * kBar));
  int64_t counted = 0;
  // Once, when the speed is known; a run that goes on was told before.
  bool told = before > 0 || options_.silent() || options_.usual_epochs == 0 || !options_.title.empty();
  auto tell_time = [&] {
    told = since(start) > kKnown;
    if (!told) return;
    const std::string text = time_needed(since(start), epochs(), options_.usual_epochs,
                                         static_cast<double>(counted) / since(start), options_.faster(),
                                         screen_width(terminal_style(2)));
    if (!text.empty()) bar.print(text);
  };
  if (validation_due_ && !validate(bar)) return interrupted(bar);
  while (progress() < 1 && !out_of_patience() && !diverged_) {
    begin_epoch();
    bar.set_label(label());
    while (batch_ < batches_per_epoch_ && progress() < 1 && !out_of_patience() && !diverged_) {
      if (stop) return interrupted(bar);
      counted += train_step();
      seconds_ = before + since(start);
      if (!told) tell_time();
      const double loss = unsigned_nan(window_nll_ / static_cast<double>(window_tokens_));
      bar.update(static_cast<int64_t>(progress() * kBar), fmt::format("loss {:.3f}", loss),
                 static_cast<double>(counted));
      if (Watched* w = options_.watched) w->done = progress(), w->loss = loss;
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
  // The time of the last validation, which saved without it, may be what ended the run.
  if (options_.max_minutes > 0 && seconds_ > before) save_last(options_.out);
  if (!average()) return interrupted(bar);
  bar.finish();
  log_.end(!diverged_, step_, seconds_, averaged_);
  return true;
}

bool Trainer::validates_after(int64_t step, int64_t batch) const {
  bool last = options_.epochs > 0 && epoch_ + 1 >= options_.epochs && batch == batches_per_epoch_;
  return last ||
         (options_.validate_every > 0 ? step % options_.validate_every == 0 : batch == batches_per_epoch_);
}

Evaluation Trainer::evaluate_now() const {
  return evaluate(model_, valid_,
                  {.translate_at_most = options_.translated(),
                   .align_at_most = kAlignAtMost,
                   .threads = options_.threads,
                   .stop = stop_});
}

// False when it was interrupted: nothing has changed then but that it is due.
bool Trainer::validate(Progress& bar) {
  std::optional<nn::EMAWeights> averages(std::in_place, ema_, trained_);  // until they are released
  Validation v{.epoch = epoch_ + (batch_ == batches_per_epoch_ ? 1 : 0), .step = step_};
  v.train_loss = unsigned_nan(window_nll_ / static_cast<double>(window_tokens_));
  v.tokens_per_second = static_cast<double>(window_tokens_) / window_seconds_;
  RunLog::Details d;
  try {
    v.evaluation = evaluate_now();
    d = look_closer(v.evaluation);
  } catch (const Interrupted&) {
    validation_due_ = true;
    return false;
  }
  validation_due_ = false;
  v.seconds = seconds_ + v.evaluation.seconds;
  v.score = score_of(v.evaluation, options_.metric, model_.config.lowercase());
  const double cost = cost_of(v.score, options_.metric);
  v.best = valid_.empty() || (cost < best_cost_ && !std::isnan(v.evaluation.nll));
  since_best_ = v.best ? 0 : since_best_ + 1;
  window_nll_ = window_seconds_ = 0;
  window_tokens_ = 0;
  const Evaluation& e = v.evaluation;
  if (v.best) {
    best_loss_ = e.nll;
    best_cost_ = cost;
    save_best(options_.out);
  }
  if (std::isfinite(cost) && !valid_.empty())
    checkpoints_.offer(model_, {step_, cost}, facts_of(e.nll, v.score));
  if (options_.schedule == "plateau" && !valid_.empty()) {
    optimizer_->set_lr(base_lr_);
    plateau_.step(v.score);
    base_lr_ = optimizer_->lr();
  }
  averages.reset();
  d.metric = options_.metric;
  d.lr = rate();
  d.grad_norm = last_norm_;
  d.skipped = skipped_;
  d.norms = meter_.take();
  log_.validation(v, d);  // before the state: what the log has too much, a run that goes on takes out of it
  save_last(options_.out);
  checkpoints_.tidy();
  validations_.push_back(std::move(v));
  if (!options_.silent() && options_.title.empty()) show(bar, d);
  look_for_divergence(bar);
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
  const size_t among = std::min(e.hypotheses.size(), static_cast<size_t>(options_.validation_translations));
  for (const WorstSentence& w : worst_sentences(model_, valid_, among, kWorst, work)) {
    const SentencePair& p = valid_[w.index];
    d.worst.push_back({w, {p.source_text, p.target_text, e.hypotheses[w.index]}});
  }
  return d;
}

}  // namespace translator
