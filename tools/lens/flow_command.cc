#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "commands.h"
#include "explain.h"
#include "flow.h"

namespace lens {
namespace {

const gradus::nn::Seq2Seq& network_of(const translator::Model& model) {
  if (auto* found = dynamic_cast<const gradus::nn::Seq2Seq*>(model.network.get())) return *found;
  throw UsageError("flow is for recurrent translators: this model is a Transformer");
}

std::string title_of(const FlowOptions& o, const FlowSetting& s) {
  if (!o.model.empty()) return fmt::format("{}, {} random words", o.model, s.length);
  return fmt::format("How much gradient reaches each word: untrained {}, {} words", s.cell, s.length);
}

}  // namespace

int flow(const FlowOptions& o) {
  auto started = std::chrono::steady_clock::now();
  bool page = !o.text && !o.json;
  std::vector<FlowResult> results;
  size_t show = 0;
  std::optional<translator::Model> model, other;
  if (!o.model.empty()) {
    model = translator::Model::load(o.model);
    gradus::nn::to(*model->network, gradus::DType::f64);
    if (!network_of(*model).attends())
      throw UsageError("the first model must have attention; one without goes behind --vs");
  }
  if (!o.versus.empty()) {
    if (!model) throw UsageError("--vs needs a model to compare with");
    other = translator::Model::load(o.versus);
    gradus::nn::to(*other->network, gradus::DType::f64);
    if (network_of(*other).attends())
      throw UsageError("the model behind --vs must have been trained with attention \"none\"");
    if (other->source.size() != model->source.size() || other->target.size() != model->target.size())
      throw UsageError("the two models must have one vocabulary");
  }
  auto result = [&](const FlowSetting& s) {
    return model ? flow_trained(network_of(*model), other ? &network_of(*other) : nullptr, s.length, o.seeds)
                 : flow_untrained(s, o.seeds);
  };
  FlowSetting wanted{o.cell, o.bidirectional, o.length};
  std::vector<int64_t> lengths;
  for (int64_t n = 5; n <= 60; n += 5) lengths.push_back(n);
  if (!page) lengths = {o.length};
  else if (o.length % 5 != 0) lengths.push_back(o.length);
  std::sort(lengths.begin(), lengths.end());
  std::vector<std::pair<std::string, bool>> kinds = {{o.cell, o.bidirectional}};
  if (page && !model) {
    kinds.clear();
    std::vector<std::string> cells = {"rnn", "gru", "lstm"};
    if (std::find(cells.begin(), cells.end(), o.cell) == cells.end()) cells.push_back(o.cell);
    for (const std::string& cell : cells)
      for (bool both : {false, true}) kinds.emplace_back(cell, both);
  }
  for (const auto& [cell, both] : kinds)
    for (int64_t length : lengths) {
      if (length == o.length && (model || (cell == o.cell && both == o.bidirectional))) show = results.size();
      results.push_back(result({cell, both, length}));
    }
  std::string title = title_of(o, results[show].setting);
  if (!o.svg.empty()) write_file(o.svg, flow_svg(results[show], title));
  json data = flow_json(results, title, model.has_value(), o.seeds, show);
  if (o.json) write_file(o.out, data.dump() + "\n");
  if (page) write_file(o.out, assemble_page("flow", data));
  if (o.out == "-" && !o.text) return 0;
  fmt::print("{}", flow_text(results[show], title));
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  if (!o.text) fmt::print(stderr, "{}: {} settings, {:.1f} s\n", o.out, results.size(), seconds);
  return 0;
}

}  // namespace lens
