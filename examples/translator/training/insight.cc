#include <translator/inference/translation.h>
#include <translator/training/insight.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gradus/kernels/optimizer.h>
#include <gradus/numeric.h>

namespace translator {
namespace {

namespace nn = gradus::nn;

double squares(const gradus::Tensor& x) {
  double sum = 0;
  gradus::visit_floating(x, "StepMeter",
                         [&](const auto* p) { sum = gradus::kernels::sum_squares(p, x.numel()); });
  return sum;
}

double gradient_norm(const gradus::Gradients::Entry* entry) {
  if (!entry) return 0;  // an embedding none of whose words occurred
  if (entry->dense.defined()) return std::sqrt(squares(gradus::densify(*entry)));
  double sum = 0;
  for (const gradus::RowGradient& part : entry->rows) sum += squares(part.rows);
  return std::sqrt(sum);
}

double difference_norm(const gradus::Tensor& a, const gradus::Tensor& b) {
  double sum = 0;
  gradus::visit_floating(a, "StepMeter", [&](const auto* p) {
    const auto* q = static_cast<decltype(p)>(b.raw());
    for (int64_t i = 0; i < a.numel(); ++i) {
      double d = static_cast<double>(p[i]) - static_cast<double>(q[i]);
      sum += d * d;
    }
  });
  return std::sqrt(sum);
}

}  // namespace

StepMeter::StepMeter(nn::TranslationModel& network) : network_(network) {
  for (const gradus::NamedParameter& p : nn::named_parameters(network))
    names_.emplace_back(p.name, p.parameter->shape());
}

void StepMeter::begin(int64_t step, const gradus::Gradients& gradients) {
  norms_ = {.step = step, .gradient = {}, .weight = {}, .update = {}};
  for (const gradus::NamedParameter& p : nn::named_parameters(network_)) {
    norms_.gradient.push_back(gradient_norm(gradients.find(*p.parameter)));
    norms_.weight.push_back(std::sqrt(squares(p.parameter->value())));
    before_.push_back(p.parameter->value());  // the optimiser's update copies what is held here
  }
}

void StepMeter::end() {
  size_t i = 0;
  for (const gradus::NamedParameter& p : nn::named_parameters(network_))
    norms_.update.push_back(difference_norm(p.parameter->value(), before_[i++]));
  before_.clear();
}

StepNorms StepMeter::take() { return std::exchange(norms_, {}); }

ProbeResult probe(const Model& model, const SentencePair& pair) {
  ProbeResult out;
  const Segmented source = model.reads.split(pair.source_text);
  static_cast<WordPicture&>(out) = picture_of(source, {}, {});
  if (model.takes_alignments()) {  // only its own evaluation can give it what it looks at
    out.output = evaluate(model, {pair}, {.alignment = false}).hypotheses.at(0);
    return out;
  }
  std::vector<Translation> found = translate(model, {source}, {.weights = true})[0];
  if (found.empty()) return out;
  Translation& best = found[0];
  out.output = model.writes.join(best.tokens);
  static_cast<WordPicture&>(out) =
      picture_of(source, model.writes.words_of(std::move(best.tokens)), best.weights);
  return out;
}

std::vector<WorstSentence> worst_sentences(const Model& model, const std::vector<SentencePair>& pairs,
                                           size_t among, size_t count, const Work& work) {
  const auto losses = token_losses(
      model, encode({pairs.begin(), pairs.begin() + static_cast<long>(std::min(among, pairs.size()))}, model),
      work);
  std::vector<WorstSentence> all;
  for (size_t i = 0; i < losses.size(); ++i) {
    const double sum = std::accumulate(losses[i].begin(), losses[i].end(), 0.0);
    all.push_back({i, sum / static_cast<double>(losses[i].size()), static_cast<int64_t>(losses[i].size())});
  }
  auto badness = [](const WorstSentence& s) { return std::isnan(s.loss) ? INFINITY : s.loss; };
  std::stable_sort(all.begin(), all.end(),
                   [&](const WorstSentence& a, const WorstSentence& b) { return badness(a) > badness(b); });
  if (all.size() > count) all.resize(count);
  return all;
}

}  // namespace translator
