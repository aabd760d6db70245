#include <fmt/core.h>
#include <gradus/nn/incremental.h>

#include <algorithm>
#include <numeric>

#include <gradus/nn/decoder.h>
#include <gradus/nn/sampling.h>
#include <gradus/ops/attention.h>

namespace gradus::nn {
namespace {

class Composed : public IncrementalDecoder {
 public:
  Composed(const Decoder& decoder, const Linear& output, const Encoded& source,
           const IncrementalOptions& options)
      : decoder_(decoder),
        output_(output),
        state_(decoder.start(source)),
        sentences_(state_.hidden.size(0), options.rows_per_sentence) {}

  const Tensor& step(const Tensor& previous) override {
    NoGrad guard;
    logits_ = output_(read_out(previous)).value().to(DType::f32);
    return logits_;
  }

  Tensor readouts(const Tensor& previous) override {
    NoGrad guard;
    return read_out(previous).value().to(DType::f32);
  }

  const Tensor& weights() const override { return weights_; }

  void select(const std::vector<int64_t>& rows) override {
    RowSentences::Change change = sentences_.select(rows);
    if (change == RowSentences::Change::none) return;
    NoGrad guard;
    const bool same_sources = change == RowSentences::Change::rows;
    state_ = same_sources ? state_.reordered(index_of(rows)) : state_.rows(index_of(rows));
  }

 private:
  Var read_out(const Tensor& previous) {
    DecoderStep out = decoder_.step(previous, state_);
    weights_ = out.weights.to(DType::f32);
    return out.readout;
  }

  const Decoder& decoder_;
  const Linear& output_;
  DecoderState state_;
  RowSentences sentences_;
  Tensor logits_, weights_;
};

}  // namespace

void IncrementalDecoder::step_best(const Tensor& previous, const std::vector<int32_t>& never,
                                   const Tensor& best) {
  const Tensor& logits = step(previous);
  std::vector<int32_t> words;
  for (int64_t row = 0; row < logits.size(0); ++row) {
    best_words(logits.row(row).f32(), logits.size(1), 1, never, words);
    best.i32()[row] = words.empty() ? -1 : words[0];
  }
}

Tensor IncrementalDecoder::readouts(const Tensor&) {
  fail("readouts", "there is no one output layer: this decoder is of several models");
}

void IncrementalDecoder::join(const IncrementalDecoder&) {
  fail("join", "this decoder takes no further sentences");
}

Tensor visible(const Tensor& lengths, int64_t S, const std::vector<std::vector<int32_t>>& hidden) {
  Tensor mask = length_mask(lengths, S);
  if (hidden.empty()) return mask;
  const int64_t B = lengths.numel();
  if (static_cast<int64_t>(hidden.size()) != B)
    fail("start", fmt::format("hidden positions are given for all {} sentences or none: {}", B, hidden.size()));
  for (int64_t b = 0; b < B; ++b)
    for (int32_t s : hidden[static_cast<size_t>(b)]) {
      if (s < 0 || s >= S) fail("start", fmt::format("hidden positions are 0 .. {}: {}", S - 1, s));
      mask.u8()[b * S + s] = 0;
    }
  return mask;
}

Tensor index_of(const std::vector<int64_t>& rows) {
  return Tensor::from_ids({static_cast<int64_t>(rows.size())},
                          std::vector<int32_t>(rows.begin(), rows.end()));
}

RowSentences::RowSentences(int64_t sentences, int64_t rows_per_sentence)
    : sentence_(static_cast<size_t>(sentences)), most_(sentences * rows_per_sentence) {
  for (auto* list : {&sentence_, &chosen_}) list->reserve(static_cast<size_t>(most_));
  std::iota(sentence_.begin(), sentence_.end(), int64_t{0});
}

RowSentences::Change RowSentences::select(const std::vector<int64_t>& rows) {
  const int64_t given = static_cast<int64_t>(sentence_.size()), wanted = static_cast<int64_t>(rows.size());
  if (wanted > most_) fail("select", fmt::format("at most {} rows were planned for: {}", most_, wanted));
  bool same = rows.size() == sentence_.size();
  chosen_.clear();
  for (int64_t row : rows) {
    if (row < 0 || row >= given) fail("select", fmt::format("rows are 0 .. {}: {}", given - 1, row));
    same = same && row == static_cast<int64_t>(chosen_.size());
    chosen_.push_back(sentence_[static_cast<size_t>(row)]);
  }
  if (same) return Change::none;
  std::swap(sentence_, chosen_);
  return sentence_ == chosen_ ? Change::rows : Change::sources;
}

// The sentences of rows, by the first of them: their numbers are their places there from now on.
std::vector<size_t> RowSentences::renumbered(size_t further) {
  const size_t rows = sentence_.size() + further;
  if (static_cast<int64_t>(rows) > most_)
    fail("join", fmt::format("at most {} rows were planned for: {}", most_, rows));
  std::vector<size_t> kept;
  for (int64_t& sentence : sentence_) {
    const auto at = std::find(kept.begin(), kept.end(), static_cast<size_t>(sentence)) - kept.begin();
    if (at == static_cast<int64_t>(kept.size())) kept.push_back(static_cast<size_t>(sentence));
    sentence = at;
  }
  for (size_t n = 0; n < further; ++n) sentence_.push_back(static_cast<int64_t>(kept.size() + n));
  return kept;
}

std::unique_ptr<Generator> composed_generator(const Encoder& encoder, const Decoder& decoder,
                                              const Linear& output) {
  auto start = [&](const Tensor& source, const Tensor& lengths, const IncrementalOptions& options) {
    NoGrad guard;
    Encoded read = encoder(source, lengths);
    read.mask = visible(lengths, source.size(0), options.hidden);
    return std::make_unique<Composed>(decoder, output, read, options);
  };
  return std::make_unique<Generator>(start);
}

}  // namespace gradus::nn
