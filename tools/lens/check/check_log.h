#pragma once

#include <gradus/tensor.h>

#include <string>
#include <vector>

namespace lens {

/// What a check found, a line of JSON (docs/trace-schema.md, "check"), for the page of `lens check --from`.
class CheckLog {
 public:
  explicit CheckLog(std::string title) : title_(std::move(title)) {}
  /// Two tensors of one shape; NaN in `expected` is what was not computed.
  void add(const std::string& name, const gradus::Tensor& yours, const gradus::Tensor& expected,
           const char* expected_title, const std::vector<std::string>& words, double error, double tolerance,
           double floor = 1);
  void fail(const std::string& kind, const std::string& sentence, const std::string& where);
  /// Counts the check (verdict.h), and appends the line to the file that the environment's LENS_CHECK_LOG
  /// names; does nothing without it.
  /// @throws gradus::Error when the file cannot be written.
  void write() const;

 private:
  std::string title_, kind_, sentence_, where_, tensors_;
};

}  // namespace lens
