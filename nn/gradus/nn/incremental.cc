#include <gradus/nn/incremental.h>

#include <numeric>

#include <gradus/nn/decoder.h>
#include <gradus/nn/encoder.h>
#include <gradus/nn/linear.h>
#include <gradus/ops/shape.h>

namespace gradus::nn {
namespace {

Tensor index_of(const std::vector<int64_t>& rows) {
  return Tensor::from_ids({static_cast<int64_t>(rows.size())},
                          std::vector<int32_t>(rows.begin(), rows.end()));
}

class Composed : public IncrementalDecoder {
 public:
  Composed(const Decoder& decoder, const Linear& output, const Encoded& source,
           const IncrementalOptions& options)
      : decoder_(decoder), output_(output), options_(options) {
    state_ = decoder.start(source);
    memory_ = state_.memory;
    sentence_.resize(static_cast<size_t>(state_.hidden.size(0)));
    std::iota(sentence_.begin(), sentence_.end(), int64_t{0});
    most_ = static_cast<int64_t>(sentence_.size()) * options.rows_per_sentence;
  }

  const Tensor& step(const Tensor& previous) override {
    NoGrad guard;
    DecoderStep out = decoder_.step(previous, state_);
    weights_ = out.weights.defined() ? out.weights.to(DType::f32) : Tensor();
    logits_ = output_(out.readout).value().to(DType::f32);
    return logits_;
  }

  const Tensor& weights() const override { return weights_; }

  void select(const std::vector<int64_t>& rows) override {
    check_selection(rows, static_cast<int64_t>(sentence_.size()), most_);
    std::vector<int64_t> sentences;
    bool same = rows.size() == sentence_.size();
    for (size_t i = 0; i < rows.size(); ++i) {
      sentences.push_back(sentence_[static_cast<size_t>(rows[i])]);
      same = same && rows[i] == static_cast<int64_t>(i);
    }
    if (same) return;
    NoGrad guard;
    bool same_sources = sentences == sentence_;
    Tensor index = index_of(rows);
    state_ = state_.reordered(index);
    if (!same_sources) {
      if (state_.summary.defined()) state_.summary = gather_rows(state_.summary, index);
      if (memory_.annotations.defined()) state_.memory = memory_.rows(index_of(sentences));
    }
    sentence_ = std::move(sentences);
  }

 private:
  const Decoder& decoder_;
  const Linear& output_;
  IncrementalOptions options_;
  DecoderState state_;
  AttentionMemory memory_;  // of the sentences, as they came
  std::vector<int64_t> sentence_;  // of each row
  int64_t most_;
  Tensor logits_, weights_;
};

class ComposedGenerator : public Generator {
 public:
  ComposedGenerator(const Encoder& encoder, const Decoder& decoder, const Linear& output)
      : encoder_(encoder), decoder_(decoder), output_(output) {}

  std::unique_ptr<IncrementalDecoder> start(const Tensor& source, const Tensor& lengths,
                                            const IncrementalOptions& options) const override {
    NoGrad guard;
    return std::make_unique<Composed>(decoder_, output_, encoder_(source, lengths), options);
  }

 private:
  const Encoder& encoder_;
  const Decoder& decoder_;
  const Linear& output_;
};

}  // namespace

void check_selection(const std::vector<int64_t>& rows, int64_t given, int64_t most) {
  if (static_cast<int64_t>(rows.size()) > most)
    fail("select",
         "at most " + std::to_string(most) + " rows were planned for: " + std::to_string(rows.size()));
  for (int64_t row : rows)
    if (row < 0 || row >= given)
      fail("select", "rows are 0 .. " + std::to_string(given - 1) + ": " + std::to_string(row));
}

std::unique_ptr<Generator> composed_generator(const Encoder& encoder, const Decoder& decoder,
                                              const Linear& output) {
  return std::make_unique<ComposedGenerator>(encoder, decoder, output);
}

}  // namespace gradus::nn
