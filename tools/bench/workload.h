#pragma once

#include <gradus/nn/data_parallel.h>
#include <gradus/nn/decoder.h>
#include <gradus/nn/encoder.h>
#include <gradus/nn/linear.h>
#include <gradus/nn/optimizer.h>
#include <gradus/parallel.h>

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

/// Vocabulary, embedding, state, batch and (padded) sentence length.
struct Size {
  std::string name;
  int64_t V, E, H, B, T;
};

/// "toy", "small", "base", several with commas, or "all". @throws gradus::Error for another name.
std::vector<Size> sizes_named(const std::string& names);
/// "bahdanau", "luong", both with a comma, or "all". @throws gradus::Error for another name.
std::vector<std::string> variants_named(const std::string& names);

/// The vocabulary of the workload: 0 pads, 1 begins a target, words from 3 on.
constexpr int32_t kPad = 0, kBos = 1, kFirstWord = 3;

/// Sentence pairs, padded to exactly T steps.
struct Batch {
  /// i32 [T, B]
  gradus::Tensor source;
  /// i32 [B], of the sources
  gradus::Tensor lengths;
  /// i32 [T, B], kBos first
  gradus::Tensor target_in;
  /// i32 [T, B]
  gradus::Tensor target_out;
  /// without padding
  int64_t target_tokens = 0, source_tokens = 0;
};

/// `count` batches: lengths uniform in [T/2, T], words uniform, longest source first.
std::vector<Batch> random_batches(const Size& size, int count, uint64_t seed);
/// The batches of a safetensors file: "K.source" [T, B], "K.source_lengths" [B] and "K.target" [T, B],
/// integers, K = 0, 1, ... (tools/peer_torch.py --write-batches writes one). @throws gradus::Error when it
/// does not fit the size.
std::vector<Batch> load_batches(const std::string& path, const Size& size);
/// B sources of T words each, for decoding.
Batch random_sources(const Size& size, int64_t B, uint64_t seed);
/// Cuts a batch into shards with the same number of sentences, and as nearly as may be of target words.
std::vector<Batch> split(const Batch& batch, int shards);

/// The translator of the workload, of the library's modules.
struct Network {
  gradus::nn::Encoder encoder;
  std::unique_ptr<gradus::nn::Decoder> decoder;
  gradus::nn::Linear output;

  Network(const Size& size, const std::string& variant, gradus::Rng& rng);
  /// The mean over the words of the batch, times `weight`: a shard's share of its batch.
  gradus::nn::ShardOutput outputs(const Batch& batch) const;
  void params(gradus::nn::ParamVisitor& visit);
};

/// Takes over weights saved by tools/peer_torch.py, or by save_for_peer. @throws gradus::Error as
/// nn::load_state_dict.
void load_from_peer(Network& network, const std::string& variant, const std::string& path);
/// Writes the weights under the names of tools/peer_torch.py.
void save_for_peer(const Network& network, const std::string& variant, const std::string& path);

/// A batch, cut for so many threads beforehand.
struct Work {
  std::vector<Batch> shards;
  int64_t target_tokens, source_tokens;
};
std::vector<Work> prepare(const std::vector<Batch>& batches, int threads);

/// Milliseconds of one training step. The forward phase is that of the slowest shard, up to the output layer:
/// this one works out its gradients together with the loss, and belongs to the backward, as adding up the
/// gradients does.
struct StepTimes {
  double forward = 0, backward = 0, clip = 0, adam = 0;
  double total = 0;
  /// nats a word, of the whole batch
  double loss = 0;
  /// target words a second; source words, too
  double target = 0, words = 0;
};

/// The training step of the translator: shards in parallel on one model, clipping at norm 1, Adam.
class TrainingStep {
 public:
  TrainingStep(Network& network, int threads) : network_(network), pool_(threads), adam_({.lr = 1e-3}) {}
  StepTimes run(const Work& work);

 private:
  Network& network_;
  gradus::ThreadPool pool_;
  gradus::nn::Adam adam_;
};

}  // namespace bench
