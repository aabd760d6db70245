#include <fmt/core.h>
#include <gradus/names.h>
#include <gradus/op_case.h>
#include <lens/check.h>

#include <algorithm>

#include <common/program.h>

#include "check/check_picture.h"
#include "../commands.h"

namespace lens {
namespace {

using gradus::OpCase;
using translator::program;

// "softmax" stands for itself and for "softmax: masked".
bool matches(const OpCase& c, const std::string& name) {
  return c.name == name || c.name.starts_with(name + ":");
}

int check_case(const OpCase& c, bool reference) {
  std::vector<CheckInput> inputs;
  std::vector<gradus::Tensor> samples = gradus::sample_inputs(c, gradus::DType::f64);
  for (size_t i = 0; i < samples.size(); ++i)
    inputs.push_back({samples.size() == 1 ? "x" : fmt::format("x{}", i), samples[i]});
  return check(c.name + (reference ? " (composed)" : ""), reference ? c.reference : c.op, inputs,
               {.diagnosis = {.tolerance = c.tolerance}, .brief = true});
}

void list_cases() {
  PictureStyle style = style_of_stdout();
  fmt::print("{}\n\n", toned(fmt::format("Operations that can be checked: {} check NAME, or --all", program()),
                             Tone::strong, style));
  std::string names, last;
  for (const OpCase& c : gradus::op_cases()) {
    std::string family = c.name.substr(0, c.name.find(':'));
    if (family == last) continue;
    names += (names.empty() ? "" : ", ") + family;
    last = family;
  }
  fmt::print("{}\n", wrapped(names, std::min(style.width, 92), 2));
  fmt::print("  {} cases; NAME takes all of its family, \"NAME: case\" one.\n", gradus::op_cases().size());
}

}  // namespace

int check_command(const CheckCommandOptions& options) {
  if (options.names.empty() && !options.all) {
    if (options.reference) throw UsageError("--reference wants the name of an operation, or --all");
    list_cases();
    return 0;
  }
  std::vector<std::string> known;
  for (const OpCase& c : gradus::op_cases()) known.push_back(c.name.substr(0, c.name.find(':')));
  for (const std::string& name : options.names)
    if (std::none_of(gradus::op_cases().begin(), gradus::op_cases().end(),
                     [&](auto& c) { return matches(c, name); })) {
      const std::string nearest = gradus::nearest_name(name, known);
      throw UsageError(fmt::format("there is no operation {}: {} check lists them{}", name, program(),
                                   nearest.empty() ? "" : "; hint: " + nearest + "?"));
    }
  int wrong = 0;
  size_t checked = 0;
  for (const OpCase& c : gradus::op_cases()) {
    if (!options.all &&
        std::none_of(options.names.begin(), options.names.end(), [&](auto& n) { return matches(c, n); }))
      continue;
    if (options.reference && !c.reference) {
      fmt::print("  {}: no composed twin\n", c.name);
      continue;
    }
    wrong += check_case(c, options.reference);
    ++checked;
  }
  fmt::print("\n{} case{}, {} wrong: relative errors of gradients beside finite differences\n", checked,
             checked == 1 ? "" : "s", wrong);
  return wrong != 0;
}

}  // namespace lens
