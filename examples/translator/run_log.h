#pragma once

#include <map>
#include <string>
#include <vector>

#include <translator/insight.h>

namespace translator {

struct TrainOptions;
struct Validation;

/// train.log: a JSON object a line, appended as the run goes; docs/run-log.md describes it.
class RunLog {
 public:
  static constexpr int kVersion = 2;  ///< of what is written; lines of version 1 do not say so

  explicit RunLog(std::string directory) : directory_(std::move(directory)) {}

  /// Takes out what a crash left half-written, and what is of steps after `step`, which are done again; with
  /// `validation_due` that of `step` too.
  void cut(int64_t step, bool validation_due) const;
  struct Start {
    size_t pairs = 0;
    int64_t parameters = 0;
    const StepMeter& meter;
  };
  void start(const TrainOptions& options, const Start& facts) const;
  struct Resume {
    int64_t epoch = 0, step = 0;
    double seconds = 0;
    const StepMeter& meter;
  };
  void resume(const TrainOptions& options, const Resume& facts) const;

  struct Sample {
    std::string source, reference, output;
  };
  struct Details {
    double lr = 0, grad_norm = 0;
    int64_t skipped = 0;
    std::vector<Sample> samples;
    StepNorms norms;
    std::vector<ProbeResult> probe;  ///< one, or none
    std::string probe_source, probe_reference;
    struct Worst {
      WorstSentence sentence;
      Sample sample;
    };
    std::vector<Worst> worst;
  };
  void validation(const Validation& v, const Details& d) const;
  void end(bool finished, int64_t step, double seconds) const;

 private:
  void write(const std::string& line) const;
  std::string directory_;
};

}  // namespace translator
