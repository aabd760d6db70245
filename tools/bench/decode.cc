#include <fmt/core.h>
#include <gradus/kernels/gemm.h>
#include <gradus/parallel.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "measure.h"

namespace bench {
namespace {

using gradus::Tensor;

// T words for every sentence, the most probable one at each step, whether a sentence is over or not.
void greedy(const Network& network, const Batch& batch) {
  gradus::NoGrad guard;
  int64_t T = batch.source.size(0), B = batch.source.size(1);
  gradus::nn::DecoderState state = network.decoder->start(network.encoder(batch.source, batch.lengths));
  Tensor words({T + 1, B}, gradus::DType::i32);
  words.row(0).fill(kBos);
  for (int64_t t = 0; t < T; ++t) {
    Tensor logits = network.output(network.decoder->step(words.row(t), state).readout).value();
    int64_t V = logits.size(1);
    for (int64_t b = 0; b < B; ++b) {
      const float* x = logits.f32() + b * V;
      words.i32()[(t + 1) * B + b] = static_cast<int32_t>(std::max_element(x, x + V) - x);
    }
  }
}

double sentences_per_second(const Network& network, gradus::ThreadPool& pool, const Batch& batch,
                            int repeats) {
  std::vector<Batch> parts = split(batch, pool.size());
  std::vector<double> ms;
  for (int i = -2; i < repeats; ++i) {
    Stopwatch watch;
    pool.run([&](int k) {
      if (static_cast<size_t>(k) < parts.size()) greedy(network, parts[static_cast<size_t>(k)]);
    });
    if (i >= 0) ms.push_back(watch.lap());
  }
  return static_cast<double>(batch.lengths.numel()) / median(ms) * 1e3;
}

int decode_one(const Options& options, const Size& size, const std::string& variant) {
  Network network = make_network(options, size, variant);
  gradus::ThreadPool pool(options.threads);
  double one = sentences_per_second(network, pool, random_sources(size, 1, options.seed),
                                    options.steps ? options.steps : 30);
  double many = sentences_per_second(network, pool, random_sources(size, 64, options.seed),
                                     options.steps ? options.steps : 8);
  if (options.json)
    fmt::print("{}\n", nlohmann::ordered_json{{"framework", "gradus"},
                                              {"blas_core", gradus::kernels::blas_core()},
                                              {"size", size.name},
                                              {"variant", variant},
                                              {"threads", options.threads},
                                              {"decode_b1_sentences_per_s", std::round(one * 100) / 100},
                                              {"decode_b64_sentences_per_s", std::round(many * 100) / 100},
                                              {"peak_rss_mb", std::round(peak_rss_mb() * 10) / 10}}
                           .dump());
  else
    fmt::print("{:<6} {:<9} {:>2} {:>14.1f} {:>14.1f} {:>8.0f}\n", size.name, variant, options.threads, one,
               many, peak_rss_mb());
  return 0;
}

}  // namespace

int decode(const Options& options) {
  return for_each(
      options,
      fmt::format("Greedy decoding of T words, sentences a second, medians; OpenBLAS core {}\n"
                  "{:<6} {:<9} {:>2} {:>14} {:>14} {:>8}",
                  gradus::kernels::blas_core(), "size", "variant", "th", "batch 1", "batch 64", "RSS MB"),
      decode_one);
}

}  // namespace bench
