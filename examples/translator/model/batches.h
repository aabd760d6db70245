#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <common/fnv1a.h>
#include <gradus/parallel.h>
#include <translator/model/model.h>
#include <translator/text/parallel.h>

namespace translator {

/// Ids of tokens. A word with a mark of its spacing that is not known counts as the word.
std::vector<int32_t> ids_of(const Vocabulary& vocabulary, const std::vector<std::string>& tokens);

/// One sentence pair as ids. Source without <s>, with </s>; target without either.
struct EncodedPair {
  std::vector<int32_t> source, target;
  /// gold alignment, for a model that takes one
  Links links = {};
  /// how often an epoch of training has it
  double weight = 1;
};

/// Of the pairs' text, told after what has the checksum `begun`: FNV-1a.
uint64_t checksum_of(const std::vector<SentencePair>& pairs, uint64_t begun = Fnv1a().hash);

/// Of what a run learns from and is judged by, to tell whether it goes on with what it began with: "data", ids
/// and weights; "links"; "valid", the validation pairs' text. FNV-1a.
std::map<std::string, std::string> fingerprints(const std::vector<EncodedPair>& train,
                                                const std::vector<SentencePair>& valid);

struct EncodeOptions {
  /// Segmenter::split's
  double dropout = 0;
  /// keep them, though the model takes none
  bool links = false;
  /// told how many are done
  std::function<void(int64_t pairs)> on_progress = {};
};
/// With the links, where the model takes them: of words, so that each piece of a word has those of its word.
/// A pair's tag is the first token of its source.
std::vector<EncodedPair> encode(const std::vector<SentencePair>& pairs, const Model& model,
                                const EncodeOptions& options = {});

/// Pads the chosen pairs into one batch. Targets get <s> in front of the input and </s> behind the output.
/// Where pairs have links, the batch has an alignment: a target word looks at the source words that it is
/// linked to, equally; one without links at all words equally; </s> at </s>.
gradus::nn::Seq2SeqBatch make_batch(const std::vector<EncodedPair>& pairs, const std::vector<size_t>& chosen);

/// Source sentences alone, as search wants them.
struct SourceBatch {
  gradus::Tensor ids, lengths;
};
SourceBatch make_source_batch(const std::vector<std::vector<int32_t>>& sentences);

/// Thrown out of work that takes long when its `stop` is set, between two batches.
struct Interrupted {};

/// How work on many sentences is done.
struct Work {
  int threads = 1;
  /// sentences that one search translates at most
  int64_t together = 64;
  /// Told, on the calling thread, how many are done.
  std::function<void(int64_t sentences)> on_progress = {};
  /// once set, Interrupted is thrown
  const std::atomic<bool>* stop = nullptr;
};

/// Calls f(k, chosen) for k = 0, 1, ... and batches of up to `size` pairs of similar length, so that little is
/// padding. Batches go to threads as `divide` says.
void for_each_batch(const std::vector<EncodedPair>& pairs, size_t size, const Work& work,
                    const std::function<void(size_t k, const std::vector<size_t>& chosen)>& f);

/// Calls f(k), which returns how many sentences it has done, for k = 0 .. count-1, and leaves no tape. A thread
/// that is free takes the next k: what f writes should be k's own, or it would depend on timing.
void divide(gradus::ThreadPool& pool, size_t count, const Work& work,
            const std::function<int64_t(size_t k)>& f);

}  // namespace translator
