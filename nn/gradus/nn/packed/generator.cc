#include <gradus/nn/packed/decoder.h>

namespace gradus::nn {
namespace {

using namespace packed;

struct Weights {
  PackedEncoder encoder;
  DecoderWeights decoder;
};

}  // namespace

std::unique_ptr<Generator> make_generator(const Encoder& encoder, const Decoder& decoder,
                                          const Linear& output) {
  if (!PackedEncoder::fits(encoder) || !DecoderWeights::fits(decoder, output))
    return composed_generator(encoder, decoder, output);
  auto laid_out = std::make_shared<LaidOut<Weights>>([&](int64_t rows) {
    return Weights{PackedEncoder(encoder, rows), DecoderWeights(*as_recurrent(decoder), output, rows)};
  });
  return generator_of([laid_out](const Tensor& source, const Tensor& lengths, const IncrementalOptions& o) {
    Team team(o.pool);
    std::shared_ptr<const Weights> weights = laid_out->for_search(source, o);
    Annotations read = weights->encoder(source, lengths, team);
    std::shared_ptr<const DecoderWeights> of_decoder(weights, &weights->decoder);
    return std::make_unique<PackedDecoder>(of_decoder, read, o);
  });
}

}  // namespace gradus::nn
