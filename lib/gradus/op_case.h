#pragma once

#include <functional>
#include <string>
#include <vector>

#include <gradus/autograd.h>

namespace gradus {

using OpFunction = std::function<Var(const std::vector<Var>&)>;

/// Sample inputs of one op. From a case the tests run: the gradient check of `op` and of `reference`, op
/// against reference (value and all gradients), f32 against f64, each input as a constant, one Var in two
/// places, and NoGrad; and where the op takes each element by itself, both at 2000 points of [-30, 30].
struct OpCase {
  /// A floating input drawn at random, or given.
  struct Input {
    Input(std::initializer_list<int64_t> shape);
    Input(const Shape& shape, double low = -1, double high = 1);
    Input(Tensor given);
    Input(const Input& other);
    Input& operator=(const Input& other);
    ~Input();
    Shape shape;
    /// Range of the random numbers: keep ops off their kinks and poles. On a side of 0 where it has none an op
    /// of single elements is not asked either.
    double low = -1, high = 1;
    /// Exactly these numbers (ids, masks, chosen values).
    Tensor given;
  };

  /// "matmul", or "matmul: batched" for a further case.
  std::string name;
  std::vector<Input> inputs;
  OpFunction op;
  /// The composed form, where the op is fused. The library's are in a namespace `reference` of the op's file,
  /// and few in its header: there their names would be ambiguous to other references.
  OpFunction reference = nullptr;
  /// Of the gradient check.
  double tolerance = 1e-6;

  ~OpCase();  // not inline, nor are the functions of Input: a file has a hundred uses of them
};

/// The registered cases, by name.
const std::vector<OpCase>& op_cases();

/// The inputs of a case as tensors: random ones in `dtype`, given ones converted to it when they are floating.
std::vector<Tensor> sample_inputs(const OpCase& c, DType dtype, uint64_t seed = 1);

/// Runs all the checks that a case stands for; returns one line for each that failed, empty when all is well.
std::vector<std::string> check_op_case(const OpCase& c);

/// Registers cases when a program starts. Use GRADUS_OP_CASES.
struct OpCaseRegistration {
  OpCaseRegistration(const std::vector<OpCase>& cases);
};

#define GRADUS_OP_CASES_CONCAT2(a, b) a##b
#define GRADUS_OP_CASES_CONCAT(a, b) GRADUS_OP_CASES_CONCAT2(a, b)
/// GRADUS_OP_CASES({"swish", {{2, 5}}, [](auto& in) { return swish(in[0]); }, [](auto& in) { ... }}, ...);
/// at namespace scope, once or more in a file; or of a vector of cases.
#define GRADUS_OP_CASES(...)                                                         \
  [[maybe_unused]] static const ::gradus::OpCaseRegistration GRADUS_OP_CASES_CONCAT( \
      gradus_op_cases_, __LINE__)(std::vector<::gradus::OpCase>{__VA_ARGS__})

}  // namespace gradus
