// The same number of threads gives the same bits, another one the same numbers to 1e-5: 20 steps of size toy.

#include <algorithm>
#include <cmath>

#include <workload.h>

#include "../quick_doctest.h"

using namespace bench;

namespace {

struct Run {
  std::vector<double> losses;
  gradus::nn::StateDict weights;
};

Run train(const std::string& variant, int threads) {
  Size size = sizes_named("toy")[0];
  gradus::Rng rng(5);
  Network network(size, variant, rng);
  std::vector<Work> data = prepare(random_batches(size, 4, 5), threads);
  TrainingStep step(network, threads);
  Run run;
  for (int i = 0; i < 20; ++i)
    run.losses.push_back(step.run(data[static_cast<size_t>(i) % data.size()]).loss);
  for (auto& [name, tensor] : gradus::nn::state_dict(network)) run.weights.emplace_back(name, tensor.clone());
  return run;
}

}  // namespace

TEST_CASE("the same number of threads gives the same bits, one and two agree to 1e-5") {
  for (const char* variant : {"bahdanau", "luong"}) {
    CAPTURE(variant);
    Run runs[2];
    for (int threads : {1, 2}) {
      CAPTURE(threads);
      Run& first = runs[threads - 1];
      first = train(variant, threads);
      Run again = train(variant, threads);
      CHECK(first.losses == again.losses);
      for (size_t i = 0; i < first.weights.size(); ++i) {
        CAPTURE(first.weights[i].first);
        CHECK(first.weights[i].second.to_vector() == again.weights[i].second.to_vector());
      }
    }
    double worst = 0;
    for (size_t i = 0; i < 20; ++i)
      worst = gradus::worse(worst, std::fabs(runs[0].losses[i] - runs[1].losses[i]) / runs[0].losses[i]);
    CHECK(worst < 1e-5);
    CHECK(worst > 0);  // they do add in another order: the second thread did something
  }
}

TEST_CASE("the words of a batch are counted without its padding") {
  const Batch b = random_batches(sizes_named("toy")[0], 1, 5)[0];
  const auto words = [](const gradus::Tensor& ids) {
    return ids.numel() - std::count(ids.i32(), ids.i32() + ids.numel(), kPad);
  };
  CHECK(b.source_tokens == words(b.source));
  CHECK(b.target_tokens == words(b.target_out));
  CHECK(b.target_tokens < b.target_out.numel());
}
