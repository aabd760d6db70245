#include <gradus/op_case.h>

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include <gradus/diagnosis_rules.h>
#include <gradus/gradcheck.h>
#include <gradus/numeric.h>
#include <gradus/random.h>

namespace gradus {

OpCase::Input::Input(std::initializer_list<int64_t> sizes) : shape(sizes) {}
OpCase::Input::Input(const Shape& s, double from, double to) : shape(s), low(from), high(to) {}
OpCase::Input::Input(Tensor numbers) : shape(numbers.shape()), given(std::move(numbers)) {}
OpCase::Input::Input(const Input& other) = default;
OpCase::Input& OpCase::Input::operator=(const Input& other) = default;
OpCase::Input::~Input() = default;
OpCase::~OpCase() = default;

namespace {

std::vector<OpCase>& registry() {
  static std::vector<OpCase> cases;
  return cases;
}

std::vector<Var> as_variables(const std::vector<Tensor>& inputs) {
  std::vector<Var> out;
  for (const Tensor& t : inputs) out.push_back(is_floating(t.dtype()) ? variable(t) : Var(t));
  return out;
}

// A fixed random weighting of the output.
Tensor weighting(const Var& y) {
  Rng rng(7);
  return Tensor::uniform(y.shape(), 0.5, 1.5, rng, y.dtype());
}

// The gradients of all floating inputs under it.
std::vector<Tensor> gradients_of(const Var& y, const std::vector<Var>& inputs) {
  Gradients grads = backward(y, {.seed = weighting(y)});
  std::vector<Tensor> out;
  for (const Var& x : inputs)
    out.push_back(grads.contains(x)        ? grads[x]
                  : is_floating(x.dtype()) ? Tensor::zeros(x.shape(), x.dtype())
                                           : Tensor());
  return out;
}

double scaled_difference(double a, double b) {
  double difference = a == b ? 0 : std::abs(a - b) / std::max(1.0, std::abs(b));
  return std::isnan(a) || std::isnan(difference) ? INFINITY : difference;
}

double scaled_difference(const Tensor& a, const Tensor& b) {
  double worst = 0;
  for (int64_t i = 0; i < a.numel(); ++i) worst = worse(worst, scaled_difference(a.at(i), b.at(i)));
  return worst;
}

class CaseChecker {
 public:
  explicit CaseChecker(const OpCase& c) : case_(c), inputs_(sample_inputs(c, DType::f64)) {}

  std::vector<std::string> run() {
    guarded("gradient check", [&] { gradient_check("op", case_.op); });
    if (case_.reference) {
      guarded("gradient check of the reference", [&] { gradient_check("reference", case_.reference); });
      guarded("comparison with the reference", [&] { against_reference(); });
    }
    guarded("f32", [&] { float_against_double(); });
    guarded("wide range", [&] { over_a_wide_range(); });
    guarded("constants", [&] { constants(); });
    guarded("one Var twice", [&] { same_variable_twice(); });
    guarded("NoGrad", [&] { without_graph(); });
    return failures_;
  }

 private:
  void fail_case(const std::string& text) { failures_.push_back(case_.name + ": " + text); }

  // A check that throws has failed; the others still run.
  void guarded(const char* which, const std::function<void()>& check) {
    try {
      check();
    } catch (const Error& e) {
      fail_case(fmt::format("{}: threw {}", which, e.what()));
    }
  }

  void gradient_check(const char* which, const OpFunction& f) {
    GradcheckOptions options;
    options.tolerance = case_.tolerance;
    GradcheckReport report = gradcheck(f, inputs_, options);
    if (!report) fail_case(fmt::format("{}: {}", which, report.message));
  }

  void against_reference() {
    std::vector<Var> a = as_variables(inputs_), b = as_variables(inputs_);
    Var y = case_.op(a), z = case_.reference(b);
    if (y.shape() != z.shape())
      return fail_case("reference has shape " + z.shape().str() + ", op " + y.shape().str());
    if (double d = scaled_difference(y.value(), z.value()); d > 1e-11)
      fail_case(fmt::format("value differs from the reference by {:.2g}", d));
    std::vector<Tensor> dy = gradients_of(y, a), dz = gradients_of(z, b);
    for (size_t i = 0; i < dy.size(); ++i)
      if (dy[i].defined())
        if (double d = scaled_difference(dy[i], dz[i]); d > 1e-10)
          fail_case(fmt::format("gradient of input {} differs from the reference by {:.2g}", i, d));
  }

  void float_against_double() {
    std::vector<Var> a = as_variables(inputs_), b = as_variables(sample_inputs(case_, DType::f32));
    Var y = case_.op(a), z = case_.op(b);
    if (z.dtype() != DType::f32) return fail_case("f32 inputs gave " + std::string(name_of(z.dtype())));
    if (double d = scaled_difference(z.value(), y.value()); d > 2e-5)
      fail_case(fmt::format("f32 value differs from f64 by {:.2g}", d));
    std::vector<Tensor> dy = gradients_of(y, a), dz = gradients_of(z, b);
    for (size_t i = 0; i < dy.size(); ++i)
      if (dy[i].defined())
        if (double d = scaled_difference(dz[i], dy[i]); d > 1e-4)
          fail_case(fmt::format("f32 gradient of input {} differs from f64 by {:.2g}", i, d));
    OtherUses uses = beside_other_uses([&] { return case_.op(b); }, b, weighting(z));
    if (!uses.sentence.empty()) fail_case("f32: " + uses.sentence);
  }

  // Whether every number of the result depends on the numbers at its own place alone.
  bool elementwise() const {
    Tensor y = case_.op({inputs_.begin(), inputs_.end()}).value();
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (case_.inputs[i].given.defined() || inputs_[i].shape() != y.shape()) return false;
    if (y.dims() == 0 || y.numel() < 2) return false;
    for (size_t i = 0; i < inputs_.size(); ++i)
      for (int64_t e = 0; e < std::min<int64_t>(y.numel(), 8); ++e) {
        std::vector<Tensor> moved = inputs_;
        moved[i] = inputs_[i].clone();
        moved[i].set(e, moved[i].at(e) + 0.1);
        Tensor z = case_.op({moved.begin(), moved.end()}).value();
        for (int64_t k = 0; k < y.numel(); ++k)
          if (k != e && z.at(k) != y.at(k)) return false;
      }
    return true;
  }

  // Two thousand numbers between -30 and 30, on the sides of 0 that the case allows: kernels have branches, and
  // what a few numbers near 0 do not meet may be NaN. Inputs are never equal, where maximum has its kink.
  void over_a_wide_range() {
    if (!elementwise()) return;
    std::vector<Tensor> wide, narrow;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const OpCase::Input& in = case_.inputs[i];
      double low = in.low < 0 ? -30 : in.low, high = in.high > 0 ? 30 : in.high;
      Shape shape = in.shape;
      shape.set(shape.dims() - 1, 2000 * shape[-1] / shape.numel() + 1);
      Tensor x(shape, DType::f64);
      const int64_t n = x.numel();
      for (int64_t e = 0; e < n; ++e) {
        double place = (static_cast<double>(e * (i ? 7919 : 1) % n) + 0.38 + 0.25 * static_cast<double>(i)) /
                       static_cast<double>(n);
        x.set(e, static_cast<float>(low + (high - low) * place));
      }
      wide.push_back(x);
      narrow.push_back(x.to(DType::f32));
    }
    std::vector<Var> a = as_variables(wide), b = as_variables(narrow);
    Var y, reference;
    try {
      y = case_.op(a);
      if (case_.reference) reference = case_.reference(as_variables(wide));
    } catch (const Error&) {
      return;  // takes its own shape only
    }
    if (y.shape() != wide[0].shape()) return;
    // Where f32 ends, a product on the way may be infinite before the result is.
    auto agree = [&](const std::string& what, const Tensor& got, const Tensor& wanted, double tolerance) {
      for (int64_t e = 0; e < got.numel(); ++e) {
        double v = got.at(e), w = wanted.at(e);
        if (scaled_difference(v, w) <= tolerance || (std::abs(w) > 1e34 && v == std::copysign(INFINITY, w)))
          continue;
        std::string place;
        for (const Tensor& x : wide) place += fmt::format("{}{:.6g}", place.empty() ? "" : ", ", x.at(e));
        return fail_case(fmt::format("{} is {:.10g} at {}, not {:.10g}", what, v, place, w));
      }
    };
    Var z = case_.op(b);
    agree("f32 value", z.value(), y.value().to(DType::f32), 2e-5);
    // A reference of exp and log loses digits far from 0.
    if (reference.defined()) agree("value", y.value(), reference.value(), 1e-3);
    std::vector<Tensor> dy = gradients_of(y, a), dz = gradients_of(z, b);
    Tensor weights = weighting(y);
    for (size_t i = 0; i < wide.size(); ++i) {
      agree(fmt::format("f32 gradient of input {}", i), dz[i], dy[i].to(DType::f32), 1e-4);
      Tensor slope = Tensor::zeros(y.shape(), DType::f64);
      for (auto [times, part] : {std::pair{-2, 1}, {-1, -8}, {1, 8}, {2, -1}}) {
        auto step = [](double x) { return 1e-5 * std::max(1.0, std::abs(x)); };
        std::vector<Tensor> moved = wide;
        moved[i] = map(wide[i], [&, t = times](auto x) { return x + t * step(x); });
        Tensor there = case_.op({moved.begin(), moved.end()}).value();
        for (int64_t e = 0; e < slope.numel(); ++e)
          slope.f64()[e] += part * there.at(e) * weights.at(e) / (12 * step(wide[i].at(e)));
      }
      agree(fmt::format("gradient of input {}", i), dy[i], slope, case_.tolerance);
    }
  }

  // Each input in turn a constant: the other gradients must not change.
  void constants() {
    std::vector<Var> all = as_variables(inputs_);
    std::vector<Tensor> full = gradients_of(case_.op(all), all);
    for (size_t k = 0; k < inputs_.size(); ++k) {
      if (!is_floating(inputs_[k].dtype())) continue;
      std::vector<Var> some = as_variables(inputs_);
      some[k] = Var(inputs_[k]);
      Var y = case_.op(some);
      bool left = std::any_of(some.begin(), some.end(), [](const Var& v) { return v.requires_grad(); });
      if (y.requires_grad() != left) {
        fail_case(fmt::format("with input {} constant the result {} a gradient", k, left ? "lacks" : "has"));
        continue;
      }
      if (!left) continue;
      std::vector<Tensor> part = gradients_of(y, some);
      for (size_t i = 0; i < part.size(); ++i)
        if (i != k && part[i].defined() && scaled_difference(part[i], full[i]) > 1e-12)
          fail_case(fmt::format("with input {} constant the gradient of input {} changes", k, i));
    }
  }

  // The same Var as two inputs: its gradient is the sum of the two.
  void same_variable_twice() {
    for (size_t i = 0; i < inputs_.size(); ++i)
      for (size_t k = i + 1; k < inputs_.size(); ++k) {
        if (!is_floating(inputs_[i].dtype()) || !is_floating(inputs_[k].dtype()) ||
            inputs_[i].shape() != inputs_[k].shape())
          continue;
        std::vector<Tensor> equal = inputs_;
        equal[k] = equal[i];
        std::vector<Var> apart = as_variables(equal), shared = as_variables(equal);
        shared[k] = shared[i];
        std::vector<Tensor> two = gradients_of(case_.op(apart), apart);
        Tensor sum = two[i].clone();
        for (int64_t e = 0; e < sum.numel(); ++e) sum.set(e, two[i].at(e) + two[k].at(e));
        Tensor one = gradients_of(case_.op(shared), shared)[i];
        if (scaled_difference(one, sum) > 1e-12)
          fail_case(fmt::format("inputs {} and {} as one Var: the gradient is not the sum", i, k));
      }
  }

  void without_graph() {
    NoGrad guard;
    Var y = case_.op(as_variables(inputs_));
    if (y.requires_grad()) fail_case("records a graph under NoGrad");
  }

  const OpCase& case_;
  std::vector<Tensor> inputs_;
  std::vector<std::string> failures_;
};

}  // namespace

const std::vector<OpCase>& op_cases() {
  static const bool sorted = [] {
    std::stable_sort(registry().begin(), registry().end(), [](auto& a, auto& b) { return a.name < b.name; });
    return true;
  }();
  (void)sorted;
  return registry();
}

std::vector<Tensor> sample_inputs(const OpCase& c, DType dtype, uint64_t seed) {
  std::vector<Tensor> out;
  Rng rng(seed);
  for (const OpCase::Input& in : c.inputs) {
    if (in.given.defined()) out.push_back(is_floating(in.given.dtype()) ? in.given.to(dtype) : in.given);
    else out.push_back(Tensor::uniform(in.shape, in.low, in.high, rng, DType::f64).to(dtype));
  }
  return out;
}

std::vector<std::string> check_op_case(const OpCase& c) { return CaseChecker(c).run(); }

OpCaseRegistration::OpCaseRegistration(std::initializer_list<OpCase> cases) {
  registry().insert(registry().end(), cases.begin(), cases.end());
}

}  // namespace gradus
