// Random graphs of ops against PyTorch: values, gradients of inputs and of what is between, each value used
// by several ops, views of views. graphs.py makes them; stored ones serve where python3 has no PyTorch.

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <common/json_text.h>
#include <gradus/ops.h>

#include "../io/scratch.h"
#include "../quick_doctest.h"
#include "../skip.h"

using namespace gradus;
using Json = nlohmann::ordered_json;
using Numbers = std::vector<double>;

namespace {

int number(const Json& o, const char* name) { return o.at(name).get<int>(); }
int axis(const Json& o) { return number(o, "axis"); }

Tensor mask(const Var& x, const Json& o) {
  Tensor m(x.shape(), DType::u8);
  for (int64_t i = 0; i < m.numel(); ++i) m.u8()[i] = o.at("mask").at(static_cast<size_t>(i)).get<uint8_t>();
  return m;
}

Tensor ids(const Json& o) {
  const auto rows = o.at("ids").get<std::vector<int32_t>>();
  return Tensor::from_ids({static_cast<int64_t>(rows.size())}, rows);
}

Var expanded(const Var& x, const Json& o) {
  std::vector<int64_t> dims(x.shape().begin(), x.shape().end());
  dims.insert(dims.begin(), number(o, "count"));
  return expand(x, dims);
}

Var behind(const Var& x, const Json& o) {
  const int64_t at = number(o, "at");
  return split(x, {at, x.size(axis(o)) - at}, axis(o))[1];
}

using Op = std::function<Var(const Var& a, const Var& b, const Json& options)>;  // b: a again, if one is all

const std::map<std::string, Op>& ops() {
  static const std::map<std::string, Op> all = {
      {"add", [](auto& a, auto& b, auto&) { return a + b; }},
      {"sub", [](auto& a, auto& b, auto&) { return a - b; }},
      {"mul", [](auto& a, auto& b, auto&) { return a * b; }},
      {"div", [](auto& a, auto& b, auto&) { return a / (b * b + 1); }},
      {"maximum", [](auto& a, auto& b, auto&) { return maximum(a, b); }},
      {"minimum", [](auto& a, auto& b, auto&) { return minimum(a, b); }},
      {"scale", [](auto& a, auto&, auto& o) { return a * o.at("by").template get<double>(); }},
      {"neg", [](auto& a, auto&, auto&) { return -a; }},
      {"abs", [](auto& a, auto&, auto&) { return abs(a); }},
      {"square", [](auto& a, auto&, auto&) { return pow(a, 2); }},
      {"exp", [](auto& a, auto&, auto&) { return exp(a); }},
      {"tanh", [](auto& a, auto&, auto&) { return tanh(a); }},
      {"sigmoid", [](auto& a, auto&, auto&) { return sigmoid(a); }},
      {"relu", [](auto& a, auto&, auto&) { return relu(a); }},
      {"gelu", [](auto& a, auto&, auto&) { return gelu(a); }},
      {"softplus", [](auto& a, auto&, auto&) { return softplus(a); }},
      {"sum", [](auto& a, auto&, auto& o) { return sum(a, axis(o)); }},
      {"mean", [](auto& a, auto&, auto& o) { return mean(a, {.axes = {axis(o)}, .keep_dims = true}); }},
      {"max", [](auto& a, auto&, auto& o) { return max(a, axis(o)); }},
      {"logsumexp", [](auto& a, auto&, auto& o) { return logsumexp(a, axis(o)); }},
      {"softmax", [](auto& a, auto&, auto& o) { return softmax(a, {.axis = axis(o)}); }},
      {"log_softmax", [](auto& a, auto&, auto& o) { return log_softmax(a, {.axis = axis(o)}); }},
      {"matmul", [](auto& a, auto& b, auto&) { return matmul(a, b); }},
      {"linear", [](auto& a, auto& b, auto&) { return linear(a, b); }},
      {"layer_norm", [](auto& a, auto& b, auto&) { return layer_norm(a, b, b); }},
      {"attention",
       [](auto& q, auto& v, auto& o) {
         return scaled_dot_product_attention(q, q, v, {.causal = o.at("causal").template get<bool>()}).output;
       }},
      {"flatten", [](auto& a, auto&, auto&) { return reshape(a, {-1}); }},
      {"transpose", [](auto& a, auto&, auto& o) { return transpose(a, axis(o), number(o, "other")); }},
      {"slice",
       [](auto& a, auto&, auto& o) { return slice(a, axis(o), number(o, "begin"), number(o, "end")); }},
      {"select", [](auto& a, auto&, auto& o) { return select(a, axis(o), number(o, "at")); }},
      {"split", [](auto& a, auto&, auto& o) { return behind(a, o); }},
      {"concat",
       [](auto& a, auto& b, auto& o) {
         return concat({a, b}, axis(o));
       }},
      {"stack",
       [](auto& a, auto& b, auto& o) {
         return stack({a, b}, axis(o));
       }},
      {"expand", [](auto& a, auto&, auto& o) { return expanded(a, o); }},
      {"gather_rows", [](auto& a, auto&, auto& o) { return gather_rows(a, ids(o)); }},
      {"where", [](auto& a, auto& b, auto& o) { return where(mask(a, o), a, b); }},
      {"masked_fill", [](auto& a, auto&, auto& o) { return masked_fill(a, mask(a, o), 0.5); }},
      {"tap", [](auto& a, auto&, auto&) { return tap(a, "here"); }},
      {"stop_gradient", [](auto& a, auto&, auto&) { return stop_gradient(a); }},
  };
  return all;
}

// Largest difference, of the size of the largest number. NaN when any number is NaN, or there are not as many.
double difference(const Numbers& got, const Json& wanted) {
  const auto want = wanted.get<Numbers>();
  if (got.size() != want.size()) return NAN;
  double worst = 0, largest = 1e-3;
  for (size_t i = 0; i < want.size(); ++i) {
    worst = worse(worst, std::abs(got[i] - want[i]));
    largest = worse(largest, std::abs(want[i]));
  }
  return worst / largest;
}

Numbers gradient(const Gradients& grads, const Var& x) {
  return grads.contains(x) ? grads[x].to_vector() : Numbers(static_cast<size_t>(x.value().numel()));
}

// How far the graph of this line is from what PyTorch made of it.
double difference(const Json& graph) {
  std::vector<Var> values, learned, keep;
  for (const Json& in : graph.at("inputs")) {
    const auto shape = in.at("shape").get<std::vector<int64_t>>();
    Tensor x = Tensor::from(Shape(shape.data(), static_cast<int>(shape.size())),
                            in.at("values").get<Numbers>(), DType::f64);
    values.push_back(in.at("learned").get<bool>() ? variable(x) : Var(x));
    if (values.back().requires_grad()) learned.push_back(values.back());
  }
  for (const Json& step : graph.at("steps")) {
    const auto of = step.at("of").get<std::vector<size_t>>();
    values.push_back(ops().at(step.at("op").get<std::string>())(values[of.front()], values[of.back()], step));
  }
  for (const Json& k : graph.at("keep")) keep.push_back(values.at(k.get<size_t>()));
  const Var& out = values.at(graph.at("out").get<size_t>());
  const Tensor seed = Tensor::from(out.shape(), graph.at("seed").get<Numbers>(), DType::f64);
  const Gradients grads = backward(out, {.seed = seed, .keep = keep});
  double worst = difference(out.value().to_vector(), graph.at("value"));
  for (size_t i = 0; i < learned.size(); ++i)
    worst = worse(worst, difference(gradient(grads, learned[i]), graph.at("gradients").at(i)));
  for (size_t i = 0; i < keep.size(); ++i)
    worst = worse(worst, difference(gradient(grads, keep[i]), graph.at("kept").at(i)));
  return worst;
}

// All graphs of a file; how many there are.
int compare_graphs(const std::string& path) {
  std::ifstream file(path);
  REQUIRE(file);
  int count = 0;
  for (std::string line; std::getline(file, line); ++count) {
    const Json graph = json_text::parse(line);
    CAPTURE(line);
    CHECK(difference(graph) < 1e-10);
  }
  return count;
}

}  // namespace

TEST_CASE("random graphs have PyTorch's values and gradients") {
  CHECK(compare_graphs(TORCH_TESTS "/stored/graphs.jsonl") == 60);
  if (std::system("python3 -c 'import torch' >/dev/null 2>&1") != 0)
    return gradus::testing::skipped("python3 has no PyTorch here: only the stored graphs were compared");
  scratch::Directory scratch;
  const std::string path = scratch.file("graphs.jsonl");
  REQUIRE(std::system(("python3 " TORCH_TESTS "/graphs.py 2 1000 > '" + path + "'").c_str()) == 0);
  CHECK(compare_graphs(path) == 1000);
}
