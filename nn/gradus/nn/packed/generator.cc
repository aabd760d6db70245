#include <gradus/nn/linear.h>
#include <gradus/nn/packed/decoder.h>

namespace gradus::nn {
namespace {

using namespace packed;

class PackedGenerator : public Generator {
 public:
  PackedGenerator(const Encoder& encoder, std::shared_ptr<const DecoderWeights> weights)
      : encoder_(encoder, weights->rows), weights_(std::move(weights)) {}

  std::unique_ptr<IncrementalDecoder> start(const Tensor& source, const Tensor& lengths,
                                            const IncrementalOptions& options) const override {
    Team team(options.pool);
    return std::make_unique<PackedDecoder>(weights_, encoder_(source, lengths, team), options);
  }

 private:
  PackedEncoder encoder_;
  std::shared_ptr<const DecoderWeights> weights_;
};

}  // namespace

std::unique_ptr<Generator> make_generator(const Encoder& encoder, const Decoder& decoder,
                                          const Linear& output, int64_t rows) {
  if (PackedEncoder::fits(encoder))
    if (auto weights = DecoderWeights::of(decoder, output, layout_for(rows)))
      return std::make_unique<PackedGenerator>(encoder, std::move(weights));
  return composed_generator(encoder, decoder, output);
}

}  // namespace gradus::nn
