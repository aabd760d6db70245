// Every registered op case, through every check that a case stands for: gradients against central
// differences, fused against composed, f32 against f64, constants, one Var twice, NoGrad.

#include <algorithm>
#include <set>
#include <string>

#include <gradus/op_case.h>

#include "../quick_doctest.h"

using namespace gradus;

namespace {

// "matmul: batched" is a case of matmul.
std::string op_of(const OpCase& c) { return c.name.substr(0, c.name.find(':')); }

}  // namespace

TEST_CASE("every registered op case holds") {
  CHECK(op_cases().size() > 50);
  for (const OpCase& c : op_cases()) {
    CAPTURE(c.name);
    for (const std::string& failure : check_op_case(c)) FAIL_CHECK(failure);
  }
}

TEST_CASE("every op has a case, and no case is registered twice") {
  std::set<std::string> ops, names;
  for (const OpCase& c : op_cases()) {
    ops.insert(op_of(c));
    CAPTURE(c.name);
    CHECK(names.insert(c.name).second);
  }
  for (const char* op : {"add",
                         "sub",
                         "mul",
                         "div",
                         "neg",
                         "pow",
                         "sqrt",
                         "exp",
                         "log",
                         "abs",
                         "maximum",
                         "minimum",
                         "clamp",
                         "where",
                         "tanh",
                         "sigmoid",
                         "relu",
                         "gelu",
                         "softplus",
                         "sum",
                         "mean",
                         "max",
                         "logsumexp",
                         "reshape",
                         "permute",
                         "transpose",
                         "concat",
                         "stack",
                         "slice",
                         "select",
                         "split",
                         "expand",
                         "gather_rows",
                         "matmul",
                         "linear",
                         "softmax",
                         "log_softmax",
                         "embedding",
                         "dropout",
                         "layer_norm",
                         "cross_entropy",
                         "linear_cross_entropy",
                         "concat_rows",
                         "gru_cell",
                         "gru",
                         "lstm_cell",
                         "lstm",
                         "rnn_cell",
                         "rnn",
                         "layer_norm_gru_cell",
                         "layer_norm_gru",
                         "layer_norm_lstm_cell",
                         "layer_norm_lstm",
                         "layer_norm_rnn_cell",
                         "layer_norm_rnn",
                         "additive_attention",
                         "multiplicative_attention",
                         "additive_scores",
                         "multiplicative_scores",
                         "weighted_sum",
                         "location_features",
                         "attention_decoder",
                         "scaled_dot_product_attention"}) {
    CAPTURE(op);
    CHECK(ops.count(op) == 1);
  }
  CHECK(op_cases().size() >= 140);
  CHECK(
      std::is_sorted(op_cases().begin(), op_cases().end(), [](auto& a, auto& b) { return a.name < b.name; }));
}

TEST_CASE("an op looks at its arguments and leaves them alone") {
  for (const OpCase& c : op_cases()) {
    CAPTURE(c.name);
    std::vector<Tensor> given = sample_inputs(c, DType::f64), before;
    std::vector<Var> args;
    for (const Tensor& t : given) {
      before.push_back(t.clone());
      args.push_back(is_floating(t.dtype()) ? variable(t) : Var(t));
    }
    Var y = c.op(args);
    backward(y, {.seed = Tensor::ones(y.shape(), y.dtype())});
    for (size_t i = 0; i < given.size(); ++i) CHECK(given[i].to_vector() == before[i].to_vector());
  }
}
