#include <translator/training/run_log.h>

#include <fmt/core.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include <common/json_text.h>
#include <translator/model/files.h>
#include <translator/training/trainer.h>

namespace translator {
namespace {

using json = nlohmann::ordered_json;

// JSON has neither NaN nor infinities.
json number(double x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  return x;
}

// Four digits are enough for a picture.
json rounded(double x) {
  if (!std::isfinite(x)) return number(x);
  return std::strtod(fmt::format("{:.4g}", x).c_str(), nullptr);
}

json rounded(const std::vector<double>& all) {
  json out = json::array();
  for (double x : all) out.push_back(rounded(x));
  return out;
}

json of(const StepMeter& meter) {
  json out = json::array();
  for (const auto& [name, shape] : meter.parameters()) {
    json sizes = json::array();
    for (int i = 0; i < shape.dims(); ++i) sizes.push_back(shape[i]);
    out.push_back({{"name", name}, {"shape", sizes}});
  }
  return out;
}

json of(const RunLog::Sample& s) {
  return {{"source", s.source}, {"reference", s.reference}, {"output", s.output}};
}

json of(const ProbeResult& p, const RunLog::Sample& s) {
  json weights = nullptr;
  if (!p.weights.empty()) {
    weights = json::array();
    for (const std::vector<float>& row : p.weights) {
      json numbers = json::array();
      for (float w : row) numbers.push_back(std::isfinite(w) ? json(std::round(w * 1e4) / 1e4) : number(w));
      weights.push_back(std::move(numbers));
    }
  }
  return {{"source", s.source},       {"reference", s.reference.empty() ? json(nullptr) : json(s.reference)},
          {"output", p.output},       {"source_words", p.source},
          {"target_words", p.target}, {"weights", weights}};
}

}  // namespace

RunLog::RunLog(const std::string& directory) : path_(in(directory, "train.log")) {}

void RunLog::write(const json& event) const { append_line(path_, json_text::dump(event)); }

void RunLog::cut(int64_t step, bool validation_due) const {
  if (!std::filesystem::exists(path_)) return;
  std::string text = read_file(path_), kept;
  for (size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    std::string line = text.substr(at, end + 1 - at);
    json event = json_text::parse_or_discarded(line);
    bool counts = event.is_object() && event.contains("step") && event["step"].is_number_integer();
    bool later = step == 0 || (counts && event["step"].get<int64_t>() > step);
    bool again = validation_due && counts && event["step"] == step &&
                 event.value("event", json()) == "validation";
    if (!later && !again) kept += line;
  }
  if (kept != text) write_file(path_, kept);
}

void RunLog::start(const TrainOptions& o, size_t pairs, int64_t parameters, const StepMeter& meter) const {
  write({{"event", "start"},
         {"version", kVersion},
         {"pairs", pairs},
         {"epochs", o.epochs},
         {"max_minutes", o.max_minutes},
         {"batch_size", o.batch_size},
         {"lr", o.lr},
         {"recipe", recipe(o)},
         {"seed", o.seed},
         {"threads", o.threads},
         {"parameters", parameters},
         {"layers", of(meter)}});
}

void RunLog::resume(const TrainOptions& o, int64_t epoch, int64_t step, double seconds,
                    const StepMeter& meter) const {
  write({{"event", "resume"},
         {"version", kVersion},
         {"epoch", epoch},
         {"step", step},
         {"seconds", seconds},
         {"epochs", o.epochs},
         {"max_minutes", o.max_minutes},
         {"threads", o.threads},
         {"layers", of(meter)}});
}

void RunLog::validation(const Validation& v, const Details& d) const {
  const Evaluation& e = v.evaluation;
  json samples = json::array(), worst = json::array();
  for (const Sample& s : d.samples) samples.push_back(of(s));
  for (const Worst& w : d.worst) {
    json one = of(w.sample);
    one["loss"] = rounded(w.sentence.loss);
    one["tokens"] = w.sentence.tokens;
    worst.push_back(std::move(one));
  }
  json norms = nullptr;
  if (d.norms.step >= 0)
    norms = {{"step", d.norms.step},
             {"gradient", rounded(d.norms.gradient)},
             {"weight", rounded(d.norms.weight)},
             {"update", rounded(d.norms.update)}};
  json event = {{"event", "validation"},
                {"epoch", v.epoch},
                {"step", v.step},
                {"seconds", v.seconds},
                {"lr", number(d.lr)},
                {"train_loss", number(v.train_loss)},
                {"valid_loss", number(e.nll)},
                {"perplexity", number(e.perplexity)},
                {"bleu", number(e.bleu.score)},
                {"exact_match", e.exact_match},
                {"sentences", e.sentences},
                {"tokens_per_s", number(v.tokens_per_second)},
                {"grad_norm", number(d.grad_norm)},
                {"skipped_steps", d.skipped},
                {"best", v.best},
                {"attention_entropy", e.entropy ? number(*e.entropy) : json(nullptr)},
                {"norms", norms},
                {"probe", d.probe ? of(*d.probe, d.samples[0]) : json(nullptr)},
                {"worst", worst},
                {"samples", samples}};
  if (d.metric != "loss") event["score"] = number(v.score);
  write(event);
}

void RunLog::end(bool finished, int64_t step, double seconds, const std::vector<int64_t>& averaged) const {
  json event = {{"event", "end"}, {"finished", finished}, {"step", step}, {"seconds", seconds}};
  if (!averaged.empty()) event["averaged"] = averaged;
  write(event);
}

}  // namespace translator
