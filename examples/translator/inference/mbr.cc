#include <translator/inference/mbr.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace translator {

std::vector<Translation> by_expected_utility(const Model& model, const Metric& utility,
                                             const std::vector<Translation>& samples) {
  std::map<std::string, size_t> place;
  std::vector<std::string> texts;
  std::vector<double> times;
  std::vector<Translation> out;
  for (const Translation& sample : samples) {
    const std::string text = model.writes.join(sample.tokens);
    const auto [at, fresh] = place.emplace(text, texts.size());
    if (fresh) {
      texts.push_back(text);
      times.push_back(0);
      out.push_back(sample);
    }
    ++times[at->second];
  }
  const std::vector<double> alike = utility.pairwise(texts);
  for (size_t i = 0; i < out.size(); ++i) {
    out[i].score = 0;
    for (size_t k = 0; k < texts.size(); ++k)
      out[i].score += times[k] * alike[i * texts.size() + k] / static_cast<double>(samples.size());
  }
  std::stable_sort(out.begin(), out.end(), [](const Translation& a, const Translation& b) {
    return std::tie(a.score, a.log_probability) > std::tie(b.score, b.log_probability);
  });
  return out;
}

}  // namespace translator
