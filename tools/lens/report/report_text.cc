#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include <common/heat_map.h>
#include <common/progress.h>
#include <common/utf8.h>

#include <common/json_text.h>
#include "report.h"

namespace lens {
namespace {

using translator::utf8::fit;
using translator::utf8::printable;

std::optional<double> number(const json& x) {
  if (x.is_number()) return x.get<double>();
  if (x == "nan") return NAN;
  if (x == "inf") return INFINITY;
  if (x == "-inf") return -INFINITY;
  return std::nullopt;
}

std::optional<double> number(const json& from, const char* key) { return number(field(from, key)); }

std::string text(const json& from, const char* key) {
  const json& x = field(from, key);
  return x.is_string() ? printable(x.get<std::string>()) : "";
}

// Perplexities of a run that diverges have dozens of digits.
std::string figure(double x, int decimals) {
  return std::abs(x) < 1e6 ? fmt::format("{:.{}f}", x, decimals) : fmt::format("{:.3g}", x);
}

// One quantity over all validations: a sparkline, the first number and the last.
std::string curve(const char* name, const json& all, const char* key, double factor, int decimals,
                  int width) {
  std::vector<double> values;
  bool any = false;
  for (const json& v : all) {
    auto x = number(v, key);
    any = any || x;
    values.push_back(x ? factor * *x : NAN);
  }
  if (!any) return fmt::format("  {:<18} not logged\n", name);
  return fmt::format("  {:<18} {}  {} -> {}\n", name,
                     translator::sparkline(values, std::clamp(width - 44, 8, 60)),
                     figure(values.front(), decimals), figure(values.back(), decimals));
}

// A layer's numbers by validation, as powers of ten.
std::string layers(const json& run, bool ratio, int width) {
  const json& all = run.at("validations");
  if (!run.at("layers").is_array()) return "  not logged\n";
  std::vector<size_t> columns;  // as many validations as fit, spread evenly
  size_t name_width = 0, n = all.size();
  for (const json& layer : run.at("layers")) name_width = std::max(name_width, text(layer, "name").size());
  // Half of the line, or all but four validations: what differs of a Transformer's names stands at their end.
  name_width = std::min<size_t>(name_width, static_cast<size_t>(std::max({12, width / 2, width - 27})));
  size_t most = static_cast<size_t>(std::max<int>(1, (width - 3 - static_cast<int>(name_width)) / 6));
  for (size_t k = 0; k < std::min(n, most); ++k)
    columns.push_back(most >= n || most == 1 ? k : k * (n - 1) / (most - 1));
  std::string out = fmt::format("  {:<{}}", "step", name_width);
  for (size_t c : columns)
    out += fmt::format("{:>6}", translator::format_count(number(all[c], "step").value_or(0)));
  out += "\n";
  for (size_t i = 0; i < run.at("layers").size(); ++i) {
    std::string name = text(run.at("layers")[i], "name");
    out += "  " + fit(name, static_cast<int>(name_width));
    out += std::string(name_width - std::min(name_width, name.size()), ' ');
    for (size_t c : columns) {
      std::optional<double> x;
      auto at = [&](const char* key) {
        const json& norms = field(field(all[c], "norms"), key);
        return norms.size() > i ? number(norms[i]) : std::nullopt;
      };
      auto update = at("update"), weight = at("weight");
      if (!ratio)
        x = at("gradient");
      else if (update && weight && *weight > 0)
        x = *update / *weight;
      out += !x                 ? "     ."
             : std::isnan(*x)   ? "   nan"
             : std::isinf(*x)   ? "   inf"
             : *x == 0          ? "     0"
                                : fmt::format("{:>6.1f}", std::log10(*x));
    }
    out += "\n";
  }
  return out;
}

std::string probe(const json& v, const translator::TerminalStyle& style) {
  const json& p = field(v, "probe");
  if (!p.is_object()) return "  attention not logged\n";
  if (!p.at("weights").is_array()) return "  no attention to draw\n";
  std::vector<std::string> source = p.at("source_words"), target = p.at("target_words");
  std::vector<float> flat;
  for (const json& row : p.at("weights"))
    for (const json& w : row) flat.push_back(static_cast<float>(number(w).value_or(NAN)));
  if (flat.size() != source.size() * target.size()) return "  attention damaged\n";
  translator::HeatMapOptions options = translator::heat_map_options(style);
  options.cursor = false;
  return translator::draw_heat_map(
      {static_cast<int64_t>(target.size()), static_cast<int64_t>(source.size()), flat}, source, target,
      options);
}

}  // namespace

std::string report_text(const json& run, const translator::TerminalStyle& style) {
  const int width = style.width;
  const json& all = run.at("validations");
  std::string out = fmt::format("{}: {}\n", printable(run.at("name").get<std::string>()),
                                run.at("state").get<std::string>());
  std::string line;
  for (const json& f : run.at("facts")) {
    std::string fact = printable(f[0].get<std::string>() + " " + f[1].get<std::string>());
    if (!line.empty() && line.size() + 2 + fact.size() >= static_cast<size_t>(width)) {
      out += line + ",\n";
      line.clear();
    }
    line += (line.empty() ? "" : ", ") + fact;
  }
  if (!line.empty()) out += line + "\n";
  for (const json& r : run.at("resumes"))
    out += fmt::format("resumed at step {}\n", json_text::dump(r.at("step")));
  for (const json& n : run.at("notes")) out += printable(n.get<std::string>()) + "\n";
  if (all.empty()) return out + "\nno validation yet\n";
  const bool validated = run.at("validated") == true;
  out += validated ? fmt::format("\n{} validation{}\n", all.size(), all.size() == 1 ? "" : "s")
                   : "\nno validation: the run had no validation sentences\n";
  out += curve("train loss", all, "train_loss", 1, 3, width);
  if (validated) {
    out += curve("validation loss", all, "valid_loss", 1, 3, width) +
           curve("perplexity", all, "perplexity", 1, 2, width) + curve("BLEU", all, "bleu", 1, 1, width) +
           curve("exact match, %", all, "exact_match", 100, 1, width);
    out += run.at("attends") == true ? curve("attention entropy", all, "attention_entropy", 1, 3, width)
                                     : "  attention entropy  none: this model has no attention\n";
  }
  out += "\ngradient norm, log10\n" + layers(run, false, width);
  out += "\nupdate / weight, log10 (-3 is usual, -2 too fast; -5 is too slow, but for the\nend of a run)\n" +
         layers(run, true, width);
  if (!validated) return out;

  // What a validation's one sentence says: the probe's, or of old logs a sample's.
  auto said = [](const json& v, const char* key) {
    const json &probe = field(v, "probe"), &samples = field(v, "samples");
    if (probe.is_object()) return text(probe, key);
    return samples.is_array() && !samples.empty() ? text(samples[0], key) : "not logged";
  };
  out += "\nprobe: " + said(all.back(), "source") + "\n";
  for (const json& v : all)
    out +=
        fit(fmt::format("  step {:<7} {}", number(v, "step").value_or(0), said(v, "output")), width) + "\n";
  out += "\n" + probe(all.back(), style);
  if (run.at("pieces") == true) out += "pieces as words: columns added, rows averaged\n";

  out += "\nworst sentences at the last validation\n";
  json worst = last_worst(run);
  if (worst.empty()) out += "  not logged\n";
  for (size_t i = 0; i < worst.size(); ++i) {
    const json& w = worst[i];
    auto loss = number(w, "loss");
    out += fmt::format("  {} nats a {}  {}\n", loss ? fmt::format("{:.2f}", *loss) : "not logged",
                       run.at("pieces") == true ? "piece" : "word", text(w, "source"));
    out +=
        fmt::format("       reference  {}\n           model  {}\n", text(w, "reference"), text(w, "output"));
    if (run.at("explained").size() > i) {
      const json& e = run.at("explained")[i];
      out += e.at("page").is_string()
                 ? fmt::format("       explained  {}\n", printable(e.at("page").get<std::string>()))
                 : fmt::format("         explain  {}\n", printable(e.at("command").get<std::string>()));
    }
  }
  return out;
}

}  // namespace lens
