#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include <translator/training/insight.h>

namespace translator {

struct TrainOptions;
struct Validation;

/// train.log: a JSON object a line, appended as the run goes; docs/run-log.md describes it.
class RunLog {
 public:
  /// of what is written; lines of version 1 do not say so
  static constexpr int kVersion = 2;

  explicit RunLog(const std::string& directory);

  /// Takes out what a crash left half-written, and what is of steps after `step`, which are done again; with
  /// `validation_due` that of `step` too.
  void cut(int64_t step, bool validation_due) const;
  void start(const TrainOptions& options, size_t pairs, int64_t parameters, const StepMeter& meter) const;
  void resume(const TrainOptions& options, int64_t epoch, int64_t step, double seconds,
              const StepMeter& meter) const;

  struct Sample {
    std::string source, reference, output;
  };
  struct Worst {
    WorstSentence sentence;
    Sample sample;
  };
  struct Details {
    std::string metric = "loss";
    double lr = 0, grad_norm = 0;
    int64_t skipped = 0;
    std::vector<Sample> samples;
    StepNorms norms;
    /// of the first sample
    std::optional<ProbeResult> probe;
    std::vector<Worst> worst;
  };
  void validation(const Validation& v, const Details& d) const;
  /// `averaged`: the steps whose mean is the best model, if one is.
  void end(bool finished, int64_t step, double seconds, const std::vector<int64_t>& averaged = {}) const;

 private:
  void write(const nlohmann::ordered_json& event) const;
  std::string path_;
};

}  // namespace translator
