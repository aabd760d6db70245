#define DOCTEST_CONFIG_IMPLEMENT
#include "quick_doctest.h"

#include <cstdlib>
#include <cstring>
#include <iostream>

#include "skip.h"

namespace gradus::testing {

template <>
doctest::String printed<const char*>(const void* value) {
  const char* text = *static_cast<const char* const*>(value);
  return text ? doctest::String(text) : doctest::toString(nullptr);
}

namespace {

Verdict report(const Assertion& a, bool holds, const Shown& left, const char* op, const Shown* right) {
  if (a.type & doctest::assertType::is_false) holds = !holds;
  doctest::String seen;
  if (!holds || doctest::getContextOptions()->success) {
    seen = left.print(left.value);
    if (right) seen = seen + op + right->print(right->value);
  }
  return {doctest::detail::decomp_assert(a.type, a.file, a.line, a.text, {holds, seen})};
}

}  // namespace

Verdict report(const Assertion& a, bool holds, const Shown& value) {
  return report(a, holds, value, "", nullptr);
}
Verdict report(const Assertion& a, bool holds, const Shown& left, const char* op, const Shown& right) {
  return report(a, holds, left, op, &right);
}

Captured::Captured(const char* name, const Shown& value) : name_(name), value_(value) {}
Captured::~Captured() {
  if (need_to_destroy) destroy();
}
void Captured::stringify(std::ostream* out) const { *out << name_ << " := " << value_.print(value_.value); }

namespace {

// Counts test cases for tools/test, which believes a program only if it came to this line, the last one:
//   [cases] 7 passed, 0 failed, 1 skipped
// A case that asserted nothing has failed, as has a run without cases: neither could fail for another reason.
class Cases : public doctest::IReporter {
 public:
  explicit Cases(const doctest::ContextOptions&) {}
  void test_run_start() override { started_ = true; }
  void test_case_start(const doctest::TestCaseData& in) override {
    name_ = in.m_name;
    reason_.clear();
  }
  void test_case_end(const doctest::CurrentTestCaseStats& in) override {
    if (!in.testCaseSuccess) {
      ++failed_;
    } else if (!reason_.empty()) {
      ++skipped_;
      std::cout << "[skipped] " << name_ << ": " << reason_ << std::endl;
    } else if (in.numAssertsCurrentTest == 0) {
      ++failed_;
      std::cout << "[cases] \"" << name_ << "\" asserts nothing" << std::endl;
    } else {
      ++passed_;
    }
  }
  static void skip(const std::string& reason) { reason_ = reason; }
  /// Prints the line and returns the exit status.
  static int finish(int status) {
    if (!started_) return status;  // a list of the cases, or --help
    if (passed_ + failed_ + skipped_ == 0) std::cout << "[cases] none was chosen" << std::endl;
    std::cout << "[cases] " << passed_ << " passed, " << failed_ << " failed, " << skipped_ << " skipped"
              << std::endl;
    return status != 0 ? status : failed_ > 0 || passed_ + skipped_ == 0;
  }

  void report_query(const doctest::QueryData&) override {}
  void test_run_end(const doctest::TestRunStats&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}

 private:
  static inline bool started_ = false;
  static inline int passed_ = 0, failed_ = 0, skipped_ = 0;
  static inline std::string name_, reason_;
};
REGISTER_LISTENER("cases", 1, Cases);

}  // namespace

void skipped(const std::string& reason) { Cases::skip(reason); }

bool memory_can_be_limited() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  skipped("a sanitizer takes more addresses than any limit");
  return false;
#else
  return true;
#endif
}

int finish(int status) { return Cases::finish(status); }

}  // namespace gradus::testing

// With --forget-coretype the program forgets OPENBLAS_CORETYPE, after OpenBLAS has read it: started with
// OPENBLAS_CORETYPE=Prescott it stands where it would on a CPU that OpenBLAS does not know.
int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--forget-coretype") == 0) unsetenv("OPENBLAS_CORETYPE");
  }
  return gradus::testing::finish(doctest::Context(argc, argv).run());
}
