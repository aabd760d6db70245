#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include <common/heat_map.h>
#include <common/progress.h>
#include <common/utf8.h>

#include "ablate.h"

namespace lens {
namespace {

const AblateEpoch& last(const Ablation& a) { return a.epochs.back(); }

std::string title(Cut cut) {
  static const char* const titles[] = {"nothing cut", "value path cut", "scores cut", "recurrent path cut"};
  return titles[static_cast<int>(cut)];
}

// After the last epoch with the k-th seed.
const AblateEpoch& with_seed(const Ablation& a, size_t k) { return k == 0 ? last(a) : a.repeats.at(k - 1); }

// The digit's own state and the next one's: a network is free to look at either.
double near(const AblateEpoch& e) { return e.on_place + e.one_later; }

std::string percent(double x) { return fmt::format("{:.0f} %", 100 * x); }

}  // namespace

std::vector<std::string> findings(const AblateTask& task, const std::vector<Ablation>& all) {
  std::vector<std::string> out;
  const Ablation* whole = nullptr;
  std::vector<const Ablation*> cuts;
  for (const Ablation& a : all)
    if (a.cut == Cut::none) whole = &a;
    else
      cuts.push_back(&a);
  double n = static_cast<double>(task.length), even = 1 / n, even_later = (n - 1) / (n * n);
  for (const Ablation& a : all) {
    const AblateEpoch& e = last(a);
    std::string text = fmt::format(
        "With {}: {} of the weight lies where the digit comes from and {} one place later (even "
        "attention: {} and {}), loss {:.3f} nats a digit, {} of the digits right.",
        title(a.cut), percent(e.on_place), percent(e.one_later), percent(even), percent(even_later), e.loss,
        percent(e.accuracy));
    if (whole && a.cut != Cut::none) {
      double weight = near(e) - near(last(*whole)), loss = e.loss - last(*whole).loss;
      text += std::abs(weight) < 0.05
                  ? " Both places together have as much as without the cut, within 5 points;"
                  : fmt::format(" Both places together have {:.0f} points {} than without the cut;",
                                100 * std::abs(weight), weight < 0 ? "less" : "more");
      text += std::abs(loss) < 0.02 ? " the loss is the same within 0.02 nats."
                                    : fmt::format(" the loss is {} by {:.3f} nats.",
                                                  loss > 0 ? "higher" : "lower", std::abs(loss));
    }
    out.push_back(text);
  }
  // Which cut costs most, seed by seed; only what differs clearly is told apart.
  size_t seeds = all.front().repeats.size() + 1;
  if (cuts.size() > 1) {
    std::map<std::string, int> verdicts;
    for (size_t k = 0; k < seeds; ++k) {
      std::sort(cuts.begin(), cuts.end(),
                [&](auto* a, auto* b) { return near(with_seed(*a, k)) < near(with_seed(*b, k)); });
      double least = near(with_seed(*cuts[0], k)), gap = near(with_seed(*cuts[1], k)) - least;
      if (whole && least > near(with_seed(*whole, k)) - 0.05)
        ++verdicts["no cut harms the alignment by 5 points or more"];
      else if (gap < 0.05)
        ++verdicts["the two cuts that harm the alignment most do so about equally"];
      else
        ++verdicts[fmt::format("the alignment suffers most with {}", title(cuts[0]->cut))];
    }
    std::string text;
    for (const auto& [verdict, times] : verdicts)
      text += seeds == 1 ? verdict
                         : fmt::format("{}{} of {} seeds {}", text.empty() ? "with " : "; with ", times,
                                       seeds, verdict);
    text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
    out.push_back(text + ".");
  }
  if (seeds > 1) {
    std::string text = fmt::format("Both places together, and the loss, with seeds {} to {}:", task.seed,
                                   task.seed + seeds - 1);
    for (const Ablation& a : all) {
      double low = 1, high = 0, cheap = HUGE_VAL, dear = 0;
      for (size_t k = 0; k < seeds; ++k) {
        const AblateEpoch& e = with_seed(a, k);
        low = std::min(low, near(e));
        high = std::max(high, near(e));
        cheap = std::min(cheap, e.loss);
        dear = std::max(dear, e.loss);
      }
      text += fmt::format("{} {} {} to {}, {:.3f} to {:.3f} nats", &a == &all.front() ? "" : ";",
                          title(a.cut), percent(low), percent(high), cheap, dear);
    }
    out.push_back(text + ". What is drawn is the first seed.");
  } else {
    out.push_back(
        fmt::format("This is one seed ({}) and one small task; another seed may come out otherwise: --seeds.",
                    task.seed));
  }
  return out;
}

json to_json(const AblateTask& task, const std::vector<Ablation>& all) {
  Numbers number{.digits = 5};
  json columns = json::array(), expected = json::array();
  for (int64_t t = 0; t < task.length; ++t) expected.push_back(position_of(task, t));
  auto outcome = [&](const AblateEpoch& e) -> json {
    return {{"loss", number(e.loss)},
            {"accuracy", number(e.accuracy)},
            {"on_place", number(e.on_place)},
            {"one_later", number(e.one_later)}};
  };
  for (const Ablation& a : all) {
    json epochs = json::array(), repeats = json::array();
    for (const AblateEpoch& e : a.epochs) {
      json one = outcome(e);
      one["ways"] = {{"value", number(e.ways.value)},
                     {"score", number(e.ways.score)},
                     {"recurrent", number(e.ways.recurrent)}};
      one["alignment"] = json::array();
      for (const auto& row : e.alignment) one["alignment"].push_back(number(row));
      epochs.push_back(one);
    }
    for (const AblateEpoch& e : a.repeats) repeats.push_back(outcome(e));
    columns.push_back(
        {{"cut", name_of(a.cut)}, {"title", title(a.cut)}, {"epochs", epochs}, {"repeats", repeats}});
  }
  return {{"format", "gradus-lens-ablation"},
          {"version", 1},
          {"task",
           {{"kind", task.kind},
            {"length", task.length},
            {"hidden", task.hidden},
            {"epochs", task.epochs},
            {"steps", task.steps},
            {"batch", task.batch},
            {"lr", task.lr},
            {"seed", task.seed}}},
          {"expected", expected},
          {"columns", columns},
          {"findings", findings(task, all)}};
}

std::string ablate_text(const AblateTask& task, const std::vector<Ablation>& all,
                        const translator::TerminalStyle& style) {
  std::string out = fmt::format("{} {} digits, {} epochs of {} batches of {}, seed {}\n", task.kind,
                                task.length, task.epochs, task.steps, task.batch, task.seed);
  const std::string explained = fmt::format(
      "Rows are digits of the output, columns those of the input; the largest of a row is marked. Output 1 is "
      "to be input {}. \"weight in place\": on the input digit that belongs there, mean over all outputs. "
      "\"one place later\": on the input digit read next (one column to the right), since that state has just "
      "read the one before, too.",
      position_of(task, 0) + 1);
  out += translator::utf8::wrapped(explained, style.width);
  translator::HeatMapOptions options = translator::heat_map_options(style);
  options.name_largest = options.legend = options.cursor = false;
  std::vector<std::string> places;
  for (int64_t j = 0; j < task.length; ++j) places.push_back(std::to_string(j + 1));
  for (const Ablation& a : all) {
    const AblateEpoch& e = last(a);
    auto curve = [&](const char* name, double AblateEpoch::*number, int digits) {
      std::vector<double> x;
      for (const AblateEpoch& one : a.epochs) x.push_back(one.*number);
      out += fmt::format("  {:<18} {}  {:.{}f} -> {:.{}f}\n", name, translator::sparkline(x, 40), x.front(),
                         digits, x.back(), digits);
    };
    out += fmt::format("\n{}\n", title(a.cut));
    std::vector<float> flat;
    for (const auto& row : e.alignment)
      for (double w : row) flat.push_back(static_cast<float>(w));
    out += translator::draw_heat_map({task.length, task.length, flat}, places, places, options);
    curve("loss", &AblateEpoch::loss, 3);
    curve("weight in place", &AblateEpoch::on_place, 2);
    curve("one place later", &AblateEpoch::one_later, 2);
    std::string ways = fmt::format("gradient by way: value {:.3g}, score {:.3g}, recurrent {:.3g}",
                                   e.ways.value, e.ways.score, e.ways.recurrent);
    out += translator::utf8::wrapped(ways, style.width, 2);
  }
  out += "\n";
  for (const std::string& text : findings(task, all)) out += translator::utf8::wrapped(text, style.width);
  return out;
}

}  // namespace lens
