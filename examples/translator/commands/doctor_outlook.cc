#include <translator/commands/doctor_outlook.h>

#include <gradus/memory.h>
#include <gradus/nn/module.h>
#include <gradus/parallel.h>
#include <gradus/random.h>
#include <translator/text/subwords.h>
#include <translator/training/training_step.h>

#include <algorithm>
#include <chrono>
#include <numeric>

namespace translator::doctor {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

constexpr size_t kSample = 3000;  // sentences that lengths are told from
constexpr size_t kLearnt = 6000;  // pairs that other sizes of pieces are learnt from

// Evenly spread over the data.
std::vector<SentencePair> sample_of(const std::vector<SentencePair>& pairs, size_t count) {
  std::vector<SentencePair> out;
  const size_t step = std::max<size_t>(1, pairs.size() / count);
  for (size_t i = 0; i < pairs.size() && out.size() < count; i += step) out.push_back(pairs[i]);
  return out;
}

std::vector<Outlook::MinCount> min_counts_of(const std::vector<SentencePair>& pairs,
                                             const WordSegmenters& split, int threads) {
  TokenCounts source, target;
  auto read = [&](TokenCounts& counts, std::string SentencePair::*side, const Segmenter& segmenter) {
    for (const SentencePair& p : pairs) counts.add(segmenter.split(p.*side).pieces);
  };
  gradus::ThreadPool pool(std::min(threads, 2));  // a side each
  pool.run([&](int worker) {
    if (worker == 0) read(source, &SentencePair::source_text, split.source);
    if (worker == pool.size() - 1) read(target, &SentencePair::target_text, split.target);
  });
  auto count = [](const TokenCounts& counts, int64_t least, int64_t& words, double& unknown) {
    int64_t all = 0, rare = 0;
    for (const auto& [word, n] : counts.all()) {
      all += n;
      (n < least ? rare : words) += n < least ? n : 1;
    }
    unknown = all > 0 ? static_cast<double>(rare) / static_cast<double>(all) : 0;
  };
  std::vector<Outlook::MinCount> out;
  for (int64_t least : {1, 2, 3, 5}) {
    Outlook::MinCount row{.least = least};
    count(source, least, row.source_words, row.source_unknown);
    count(target, least, row.target_words, row.target_unknown);
    out.push_back(row);
  }
  return out;
}

double mean_pieces(const std::vector<SentencePair>& pairs, std::string SentencePair::*side,
                   const Segmenter& way) {
  double sum = 0;
  for (const SentencePair& p : pairs) sum += static_cast<double>(way.split(p.*side).pieces.size());
  return sum / static_cast<double>(std::max<size_t>(1, pairs.size()));
}

// The steps that a Trainer would take, on batches of a sample, until the time is over. The first has the
// longest sentences, for the memory.
void measure(const TrainCommand& o, Model& model, const std::vector<SentencePair>& pairs, double seconds,
             Outlook& out) {
  const auto batch_size = static_cast<size_t>(o.train.batch_size);
  const std::vector<EncodedPair> encoded = encode(sample_of(pairs, 200 * batch_size), model);
  std::vector<size_t> order(encoded.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(encoded[a].target.size(), encoded[a].source.size()) >
           std::pair(encoded[b].target.size(), encoded[b].source.size());
  });
  std::vector<std::vector<size_t>> batches;
  for (size_t begin = 0; begin < order.size(); begin += batch_size)
    batches.emplace_back(order.begin() + static_cast<long>(begin),
                         order.begin() + static_cast<long>(std::min(order.size(), begin + batch_size)));
  gradus::Rng rng(o.train.seed);
  for (size_t i = batches.size(); i > 2; --i)
    std::swap(batches[i - 1], batches[1 + static_cast<size_t>(rng.below(static_cast<int64_t>(i - 1)))]);

  gradus::ThreadPool pool(o.train.threads);
  const auto optimizer = make_optimizer(o.train, hidden_matrices(*model.network));
  int64_t tokens = 0, step = 0;
  auto train_on = [&](const std::vector<size_t>& batch) {
    const StepBatch work{.parts = parts_of(encoded, batch, pool.size()),
                         .loss = {.label_smoothing = o.train.label_smoothing},
                         .training_seed = o.train.seed + static_cast<uint64_t>(step),
                         .step = step};
    gradus::nn::OutputGradients result = differentiate(model, work, pool);
    const double norm = gradus::nn::grad_norm(result.gradients, &pool);
    optimizer->step(*model.network, result.gradients, gradus::nn::clip_factor(norm, 1), &pool);
    ++step;
    return result.tokens;
  };
  train_on(batches.front());
  const auto start = Clock::now();
  while (since(start) < seconds) tokens += train_on(batches[static_cast<size_t>(step) % batches.size()]);
  out.measured_seconds = since(start);
  out.tokens_per_second = static_cast<double>(tokens) / out.measured_seconds;
  double sampled = 0;
  for (const EncodedPair& p : encoded) sampled += static_cast<double>(p.target.size() + 1);
  const double epoch = sampled / static_cast<double>(encoded.size()) * static_cast<double>(pairs.size());
  out.minutes = static_cast<double>(out.epochs) * epoch / out.tokens_per_second / 60;
  const gradus::MemoryStats memory = gradus::memory_stats();
  out.bytes = static_cast<double>(std::max(memory.peak, memory.in_use + memory.cached));
}

}  // namespace

Outlook look_ahead(TrainCommand o, const Data& data, const LearntText& text, double seconds,
                   const std::function<void(const std::string& stage)>& on_stage) {
  Outlook out;
  o.train.threads = out.threads = o.common.threads;
  out.epochs = o.train.epochs;
  out.pieces = o.model.subwords != "none";
  on_stage("words");
  out.min_counts = min_counts_of(data.train, word_segmenters(o, data, text.models), out.threads);
  on_stage("pieces");
  const Data some{.train = sample_of(data.train, kLearnt), .valid = {}};
  const std::vector<SentencePair> sample = sample_of(data.train, kSample);
  auto lengths = [&](int64_t size, const TextModels& models) {
    const SegmenterOptions options{.letter_case = o.model.letter_case};
    const Segmenter source(options, models.source, models.source_case),
        target(options, models.target, models.target_case);
    out.piece_sizes.push_back({size, mean_pieces(sample, &SentencePair::source_text, source),
                               mean_pieces(sample, &SentencePair::target_text, target)});
  };
  if (out.pieces) {
    for (int64_t size : {1000, 2000, 4000, 6000, 8000}) {
      if (size == std::max(text.source.size(), text.target.size())) {
        lengths(size, text.models);
        continue;
      }
      TrainCommand other = o;
      other.subword_size = size;
      lengths(size, learn_text(other, some).models);
    }
  }
  out.source_vocabulary = text.source.size();
  out.target_vocabulary = text.target.size();
  Model model = fresh_model(o, data, text);
  out.parameters = gradus::nn::num_parameters(*model.network);
  if (seconds <= 0) return out;
  on_stage("a training of some seconds");
  measure(o, model, data.train, seconds, out);
  return out;
}

}  // namespace translator::doctor
