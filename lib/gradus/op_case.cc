#include <gradus/op_case.h>

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>

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

struct Computed {
  Computed(const OpFunction& f, const std::vector<Var>& of) : inputs(of), y(f(inputs)) {}
  Computed(const OpFunction& f, const std::vector<Tensor>& of) : Computed(f, as_variables(of)) {}
  // The gradients of all floating inputs under that weighting.
  std::vector<Tensor> gradients() const {
    Gradients grads = backward(y, {.seed = weighting(y)});
    std::vector<Tensor> out;
    for (const Var& x : inputs)
      out.push_back(grads.contains(x)        ? grads[x]
                    : is_floating(x.dtype()) ? Tensor::zeros(x.shape(), x.dtype())
                                             : Tensor());
    return out;
  }
  std::vector<Var> inputs;
  Var y;
};

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
    guarded("NoGrad", [&] {
      NoGrad guard;
      if (Computed(case_.op, inputs_).y.requires_grad()) fail_case("records a graph under NoGrad");
    });
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
    GradcheckReport report = gradcheck(f, inputs_, {.tolerance = case_.tolerance});
    if (!report) fail_case(fmt::format("{}: {}", which, report.message));
  }

  // Value and gradients of `a`, which is named "" or "f32 ", against those of `b`.
  void compare(const char* name, const Computed& a, const char* other, const Computed& b,
               double value_tolerance, double gradient_tolerance) {
    if (double d = scaled_difference(a.y.value(), b.y.value()); d > value_tolerance)
      fail_case(fmt::format("{}value differs from {} by {:.2g}", name, other, d));
    std::vector<Tensor> da = a.gradients(), db = b.gradients();
    for (size_t i = 0; i < da.size(); ++i)
      if (da[i].defined())
        if (double d = scaled_difference(da[i], db[i]); d > gradient_tolerance)
          fail_case(fmt::format("{}gradient of input {} differs from {} by {:.2g}", name, i, other, d));
  }

  void against_reference() {
    Computed op(case_.op, inputs_), reference(case_.reference, inputs_);
    if (op.y.shape() != reference.y.shape())
      return fail_case("reference has shape " + reference.y.shape().str() + ", op " + op.y.shape().str());
    compare("", op, "the reference", reference, 1e-11, 1e-10);
  }

  void float_against_double() {
    Computed wide(case_.op, inputs_), narrow(case_.op, sample_inputs(case_, DType::f32));
    DType dtype = narrow.y.dtype();
    if (dtype != DType::f32) return fail_case("f32 inputs gave " + std::string(name_of(dtype)));
    compare("f32 ", narrow, "f64", wide, 2e-5, 1e-4);
    OtherUses uses = beside_other_uses([&] { return case_.op(narrow.inputs); }, {}, weighting(narrow.y));
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
    std::optional<Computed> op, reference;
    try {
      op.emplace(case_.op, wide);
      if (case_.reference) reference.emplace(case_.reference, wide);
    } catch (const Error&) {
      return;  // takes its own shape only
    }
    const Tensor& y = op->y.value();
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
    Computed z(case_.op, narrow);
    agree("f32 value", z.y.value(), y.to(DType::f32), 2e-5);
    // A reference of exp and log loses digits far from 0.
    if (reference) agree("value", y, reference->y.value(), 1e-3);
    std::vector<Tensor> dy = op->gradients(), dz = z.gradients();
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
    std::vector<Tensor> full = Computed(case_.op, inputs_).gradients();
    for (size_t k = 0; k < inputs_.size(); ++k) {
      if (!is_floating(inputs_[k].dtype())) continue;
      std::vector<Var> some = as_variables(inputs_);
      some[k] = Var(inputs_[k]);
      Computed with(case_.op, some);
      bool left = std::ranges::any_of(some, &Var::requires_grad);
      if (with.y.requires_grad() != left) {
        fail_case(fmt::format("with input {} constant the result {} a gradient", k, left ? "lacks" : "has"));
        continue;
      }
      if (!left) continue;
      std::vector<Tensor> part = with.gradients();
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
        std::vector<Var> shared = as_variables(equal);
        shared[k] = shared[i];
        std::vector<Tensor> two = Computed(case_.op, equal).gradients();
        Tensor sum = zip(two[i], two[k], std::plus());
        Tensor one = Computed(case_.op, shared).gradients()[i];
        if (scaled_difference(one, sum) > 1e-12)
          fail_case(fmt::format("inputs {} and {} as one Var: the gradient is not the sum", i, k));
      }
  }

  const OpCase& case_;
  std::vector<Tensor> inputs_;
  std::vector<std::string> failures_;
};

}  // namespace

const std::vector<OpCase>& op_cases() {
  static const std::vector<OpCase>& sorted = []() -> auto& {
    std::ranges::stable_sort(registry(), {}, &OpCase::name);
    return registry();
  }();
  return sorted;
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

OpCaseRegistration::OpCaseRegistration(const std::vector<OpCase>& cases) {
  registry().insert(registry().end(), cases.begin(), cases.end());
}

}  // namespace gradus
