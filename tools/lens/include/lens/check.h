#pragma once

// The check that names the mistake, for programs of your own:
//
//   int main() {
//     return lens::check("my op", [](auto& in) { return my_op(in[0], in[1]); },
//                        {{"x", x}, {"weight", weight}});
//   }
//
// prints one line for each input, and where one is wrong three heat maps (yours, numeric, difference) and what
// kind of mistake it is.

#include <gradus/diagnosis.h>
#include <gradus/op_case.h>

#include <string>
#include <vector>

namespace lens {

struct CheckInput {
  std::string name;
  /// floating ones are converted to f64 and differentiated, others passed on
  gradus::Tensor value;
  /// labels of the first axis
  std::vector<std::string> words = {};
};

struct CheckOptions {
  /// Also compares with this exercise's right answer, and knows its usual mistakes.
  std::string exercise = {};
  gradus::DiagnosisOptions diagnosis = {};
  /// one short line, where all is right: "✓ title: worst 2.8e-10"
  bool brief = false;
};

/// Compares the gradients of f with central differences, in double, and prints what it finds to stdout.
/// Returns what main() returns: 0 when all is well, 1 when not. Errors that f throws are printed, too.
int check(const std::string& title, const gradus::OpFunction& f, const std::vector<CheckInput>& inputs,
          const CheckOptions& options = {});

/// The same for the parameters of a model: check_model("my model", [&] { return loss(model, batch); },
/// nn::named_parameters(model)). They must be f64.
int check_model(const std::string& title, const std::function<gradus::Var()>& f,
                const std::vector<gradus::NamedParameter>& parameters, const CheckOptions& options = {});

/// Something that must hold besides the gradients. Prints one line; `otherwise` says what is wrong. Returns 0
/// or 1.
int expect(bool holds, const std::string& what, const std::string& otherwise);

}  // namespace lens
