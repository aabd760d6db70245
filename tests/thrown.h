#pragma once

#include <string>

#include "function_ref.h"

/// The text of the Refusal that f throws; "(no error)" where it throws none.
template <class Refusal>
std::string thrown(const gradus::testing::FunctionRef<void()>& f) {
  try {
    f();
  } catch (const Refusal& e) {
    return e.what();
  }
  return "(no error)";
}
