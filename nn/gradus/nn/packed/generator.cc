#include <gradus/nn/linear.h>
#include <gradus/nn/packed/decoder.h>

namespace gradus::nn {
namespace {

using namespace packed;

struct Weights {
  PackedEncoder encoder;
  DecoderWeights decoder;
};

class PackedGenerator : public Generator {
 public:
  PackedGenerator(const Encoder& encoder, const RecurrentDecoder& decoder, const Linear& output)
      : weights_([&encoder, &decoder, &output](int64_t rows) {
          return std::make_shared<const Weights>(
              Weights{PackedEncoder(encoder, rows), DecoderWeights(decoder, output, rows)});
        }) {}

  std::unique_ptr<IncrementalDecoder> start(const Tensor& source, const Tensor& lengths,
                                            const IncrementalOptions& options) const override {
    Team team(options.pool);
    std::shared_ptr<const Weights> weights = weights_.for_search(source, options);
    Annotations read = weights->encoder(source, lengths, team);
    return std::make_unique<PackedDecoder>(
        std::shared_ptr<const DecoderWeights>(weights, &weights->decoder), read, options);
  }

 private:
  LaidOut<Weights> weights_;
};

}  // namespace

std::unique_ptr<Generator> make_generator(const Encoder& encoder, const Decoder& decoder,
                                          const Linear& output) {
  if (PackedEncoder::fits(encoder) && DecoderWeights::fits(decoder, output))
    return std::make_unique<PackedGenerator>(encoder, *as_recurrent(decoder), output);
  return composed_generator(encoder, decoder, output);
}

}  // namespace gradus::nn
