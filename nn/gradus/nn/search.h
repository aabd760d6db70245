#pragma once

#include <functional>
#include <optional>
#include <vector>

#include <gradus/autograd.h>
#include <gradus/nn/incremental.h>
#include <gradus/nn/phrases.h>
#include <gradus/nn/sampling.h>

namespace gradus::nn {

/// What one sentence's search is told besides.
struct SentenceSearch {
  /// The target's first words, whatever their probability; the search goes on from there.
  std::vector<int32_t> prefix = {};
  /// Source positions that are read, but that no step looks at
  std::vector<int32_t> hidden = {};
  /// Words are drawn as options.sampling says instead of taken: beam_size samples, each by a generator of its
  /// own that this seed makes. The same seed draws the same words.
  std::optional<uint64_t> seed = {};
  /// That no translation has, but where the prefix has it
  std::vector<Phrase> forbidden = {};
  /// That each translation has, in any order: the beam is shared out among hypotheses that have said different
  /// numbers of their tokens (Post and Vilar 2018, 1804.06609). Not where words are drawn.
  std::vector<Phrase> required = {};
};

/// A step that one sentence's search has taken. R rows of it were there before the step.
struct SearchStep {
  enum class Fate { kept, finished, cut };
  struct Considered {
    /// Row, before the step; of what was kept the n-th is row n after it
    int64_t parent;
    int32_t token;
    /// Of all words so far
    double log_probability;
    Fate fate;
  };
  /// Both from 0
  int64_t sentence, step;
  /// What each row could best go on with, most probable first
  std::vector<Considered> considered;
  /// f32 [R, V], valid until `watch` returns
  Tensor logits;
  /// f32 [R, S] likewise; undefined: there are none
  Tensor weights;
};

struct SearchOptions {
  /// 1: greedy
  int64_t beam_size = 1;
  /// Alpha of Wu et al. 2016, 1609.08144, equation 14: score = log p / ((5 + n) / 6)^alpha, n counts </s>; 0:
  /// off. Without: score = log p / n, the average of a token.
  std::optional<double> length_penalty = {};
  /// Beta of the same: what a finished hypothesis has, score += beta sum_s log min(sum_t a_ts, 1), a_ts the
  /// weight of source word s (</s> is none) at target word t, at least 1e-4 in all. Needs a model with weights.
  double coverage_penalty = 0;
  /// Target words at least
  int64_t min_length = 0;
  /// So many target words in a row never come twice; 0: they may
  int64_t no_repeat_ngram = 0;
  /// n: a sentence is done when no hypothesis that goes on can come among its n best any more, be that sooner
  /// or later than beam_size have finished; 0: when beam_size have.
  int64_t exact_stop = 0;
  /// Target words at most; 0: twice the source's and 10, or min_length; 10 behind a longer prefix
  int64_t max_length = 0;
  /// Keep the alignment weights
  bool weights = false;
  /// false: a greedy search need not work out probabilities; they stay 0
  bool scores = true;
  /// Threads to share the work among; null: the caller's alone
  ThreadPool* pool = nullptr;
  /// Sentences on their way at a time, 0: all. When half of them are done, others take their rows, in their
  /// order (continuous batching): so these had better come by length. Of a decoder that takes none, when all
  /// are done.
  int64_t together = 0;
  /// Never produced; begins a target; ends one (-1: nothing does)
  int32_t pad = kPad, bos = kBos, eos = kEos;
  /// One for each; empty: nothing is asked of any
  std::vector<SentenceSearch> sentences = {};
  Sampling sampling = {};
  /// Called after each step of each sentence, by the caller's thread; false ends the search of all of them, and
  /// hypotheses without </s> are lost. With it the sentences are not divided among threads.
  std::function<bool(const SearchStep&)> watch = {};

  /// @throws Error "[translate] beam_size must be at least 1: 0" and the like, for so many sentences.
  void check(int64_t of) const;
};

/// Target words at most, for a source of so many words.
int64_t max_target_length(int64_t source_length, const SearchOptions& options);

/// One translation.
struct Hypothesis {
  /// Without <s> and </s>
  std::vector<int32_t> tokens;
  /// Sum over tokens and </s>, nats
  double log_probability = 0;
  /// Length-normalised, what hypotheses are ranked by
  double score = 0;
  /// False when max_length cut it off
  bool finished = false;
  /// One row per token, one more for </s> if finished: weights over the S positions of the padded source.
  std::vector<std::vector<float>> weights;
  /// Of each token, and of </s> if finished, nats; empty where options.scores is false and nothing needs them.
  std::vector<double> log_probabilities = {};
  /// False when max_length came before all required phrases were said
  bool complete = true;
};

/// Beam search, batched over sentences and hypotheses; nothing is recorded. Source ids i32 [S, B], lengths i32
/// [B]. Returns up to beam_size hypotheses per sentence, best first, in the order of the sentences. A finished
/// hypothesis leaves the beam; a sentence is done when beam_size of them have finished. With a pool, each
/// thread takes some of the sentences, or a part of each product when they are few; the result is the same.
/// @throws Error "[translate] beam_size must be at least 1: 0", and for what options.sentences cannot have:
/// another number of them than sources, a word that is never produced or not in the vocabulary, phrases that
/// are required of drawn words.
std::vector<std::vector<Hypothesis>> translate(const Generator& generator, const Input& source,
                                               const Tensor& lengths, const SearchOptions& options = {});
/// The same for a single batch; for many, keep the generator.
std::vector<std::vector<Hypothesis>> translate(const Generative& model, const Input& source,
                                               const Tensor& lengths, const SearchOptions& options = {});

/// The search alone, over a decoder that was started with options.beam_size rows per sentence. lengths i32 [B]
/// are what the limit on target words is worked out from.
/// @throws Error as translate.
std::vector<std::vector<Hypothesis>> search(IncrementalDecoder& decoder, const Tensor& lengths,
                                            const SearchOptions& options = {});
/// The same of sentences that are started when there is room for them, first .. end - 1 at a time.
using StartSome = std::function<std::unique_ptr<IncrementalDecoder>(int64_t first, int64_t end)>;
std::vector<std::vector<Hypothesis>> search(const StartSome& start, const Tensor& lengths,
                                            const SearchOptions& options = {});

}  // namespace gradus::nn
