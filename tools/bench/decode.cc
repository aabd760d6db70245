#include <fmt/core.h>
#include <gradus/nn/search.h>
#include <gradus/parallel.h>

#include <nlohmann/json.hpp>

#include "commands.h"
#include "measure.h"

namespace bench {
namespace {

// T words for every sentence, the most probable one at each step, whether a sentence is over or not: the
// library's own greedy search, the weights laid out beforehand as for any number of batches.
double sentences_per_second(const gradus::nn::Generator& generator, gradus::ThreadPool& pool,
                            const Batch& batch, int repeats) {
  gradus::nn::SearchOptions options;
  options.max_length = batch.source.size(0);
  options.scores = false;
  options.pad = kPad;
  options.bos = kBos;
  options.eos = -1;
  options.pool = &pool;
  std::vector<double> ms;
  for (int i = -2; i < repeats; ++i) {
    Stopwatch watch;
    auto found = gradus::nn::translate(generator, batch.source, batch.lengths, options);
    if (i >= 0) ms.push_back(watch.lap());
    for (const auto& list : found)
      if (list.size() != 1 || list[0].tokens.size() != static_cast<size_t>(options.max_length))
        gradus::fail("bench", "decoding did not give T words");
  }
  return static_cast<double>(batch.lengths.numel()) / median(ms) * 1e3;
}

int decode_one(const Options& options, const Size& size, const std::string& variant) {
  Network network = make_network(options, size, variant);
  gradus::ThreadPool pool(options.threads);
  auto measured = [&](int64_t B, int repeats) {
    auto generator = gradus::nn::make_generator(network.encoder, *network.decoder, network.output);
    return sentences_per_second(*generator, pool, random_sources(size, B, options.seed),
                                options.steps ? options.steps : repeats);
  };
  double one = measured(1, 30), many = measured(64, 8);
  if (options.json)
    print_json(options, size, variant,
               {{"decode_b1_sentences_per_s", rounded(one, 2)},
                {"decode_b64_sentences_per_s", rounded(many, 2)},
                {"peak_rss_mb", rounded(peak_rss_mb(), 1)}});
  else
    fmt::print("{:<6} {:<9} {:>2} {:>14.1f} {:>14.1f} {:>8.0f}\n", size.name, variant, options.threads, one,
               many, peak_rss_mb());
  return 0;
}

}  // namespace

int decode(const Options& options) {
  return for_each(
      options,
      fmt::format("Greedy decoding of T words, sentences a second, medians; products by {}\n"
                  "{:<6} {:<9} {:>2} {:>14} {:>14} {:>8}",
                  products_by(), "size", "variant", "th", "batch 1", "batch 64", "RSS MB"),
      decode_one);
}

}  // namespace bench
