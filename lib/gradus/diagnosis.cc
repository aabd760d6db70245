#include <gradus/diagnosis.h>

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <gradus/diagnosis_rules.h>
#include <gradus/random.h>

namespace gradus {
namespace {

double relative(double a, double b) {
  double error = std::abs(a - b) / std::max({1.0, std::abs(a), std::abs(b)});
  return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
}

bool equal(const std::vector<double>& a, const std::vector<double>& b) { return a == b; }

class Examination {
 public:
  Examination(const std::function<Var()>& f, const std::vector<NamedParameter>& parameters,
              const DiagnosisOptions& o)
      : f_(f), parameters_(parameters), options_(o), rng_(o.seed) {}

  Diagnosis run() {
    for (const NamedParameter& p : parameters_)
      if (p.parameter->value().dtype() != DType::f64)
        return whole(Mistake::float_used, fmt::format("{} is {}: central differences need f64", p.name,
                                                      name_of(p.parameter->value().dtype())));
    Var y = f_();
    if (y.dtype() != DType::f64)
      return whole(
          Mistake::float_used,
          fmt::format("the function returned {}: it must compute in f64 throughout", name_of(y.dtype())));
    out_ = y.shape();
    output_ = y.value().to_vector();
    for (double v : output_)
      if (!std::isfinite(v))
        return whole(Mistake::not_finite, fmt::format("the function is {} at this point", v));
    if (!equal(values(), output_))
      return whole(
          Mistake::not_deterministic,
          "the function is not deterministic: two calls at one point gave two results (dropout on?)");
    if (y.requires_grad() && !equal(all_gradients(random_dy(1)), all_gradients(random_dy(1))))
      return whole(Mistake::not_deterministic,
                   "the backward is not deterministic: two runs gave two gradients");
    choose_seeds();
    return judge(y.requires_grad());
  }

 private:
  Diagnosis whole(Mistake mistake, const std::string& sentence) {
    Diagnosis d;
    d.mistake = mistake;
    d.sentence = sentence;
    return d;
  }

  std::vector<double> values() const {
    NoGrad guard;
    return f_().value().to_vector();
  }

  Tensor random_dy(uint64_t seed) const {
    Rng rng(seed + 100);
    return Tensor::uniform(out_, -1, 1, rng, DType::f64);
  }

  Gradients gradients(const Tensor& dy) const { return backward(f_(), {.seed = dy}); }

  // One after the other; zeros where none arrived.
  std::vector<double> all_gradients(const Tensor& dy) const {
    Gradients grads = gradients(dy);
    std::vector<double> out;
    for (const NamedParameter& p : parameters_) {
      std::vector<double> g = grads.contains(*p.parameter)
                                  ? grads[*p.parameter].to_vector()
                                  : std::vector<double>(static_cast<size_t>(p.parameter->value().numel()));
      out.insert(out.end(), g.begin(), g.end());
    }
    return out;
  }

  // Each output by itself, or, of many, random sums.
  void choose_seeds() {
    int64_t m = out_.numel();
    each_output_ = m <= options_.max_outputs;
    for (int64_t k = 0; k < (each_output_ ? m : 8); ++k) {
      seeds_.push_back(each_output_ ? Tensor::zeros(out_, DType::f64)
                                    : random_dy(options_.seed + static_cast<uint64_t>(k)));
      if (each_output_) seeds_.back().set(k, 1);
    }
  }

  Diagnosis judge(bool requires_grad) {
    int64_t rows = static_cast<int64_t>(seeds_.size());
    std::vector<Evidence> evidence;
    for (const NamedParameter& p : parameters_) {
      Evidence e;
      e.name = p.name;
      e.in = p.parameter->shape();
      e.out = out_;
      e.each_output = each_output_;
      e.reached = false;
      e.output = output_;
      e.analytic = Matrix(rows, e.in.numel());
      differentiate(*p.parameter, e);
      evidence.push_back(std::move(e));
    }
    for (int64_t k = 0; k < rows && requires_grad; ++k) {
      Gradients grads = gradients(seeds_[static_cast<size_t>(k)]);
      for (size_t i = 0; i < parameters_.size(); ++i) {
        if (!grads.contains(*parameters_[i].parameter)) continue;
        evidence[i].reached = true;
        std::vector<double> g = grads[*parameters_[i].parameter].to_vector();
        Matrix& analytic = evidence[i].analytic;  // of no columns when the input is empty
        std::copy(g.begin(), g.end(), analytic.values.begin() + k * analytic.cols);
      }
    }
    return conclude(evidence);
  }

  // Central differences of steps h and h / 2, extrapolated so that the error of order h^2 cancels (Richardson). The
  // slope to the right less that to the left tells a kink: where there is none it is in proportion to h, and the
  // extrapolation cancels it. A tiny step shows rounding to float.
  void differentiate(Parameter& parameter, Evidence& e) {
    int64_t n = e.in.numel();
    e.elements.resize(static_cast<size_t>(n));
    std::iota(e.elements.begin(), e.elements.end(), 0);
    if (n > options_.max_elements) {
      for (size_t i = 0; i < static_cast<size_t>(options_.max_elements); ++i)  // a random choice in front
        std::swap(e.elements[i],
                  e.elements[i + static_cast<size_t>(rng_.uniform(0, 1) *
                                                     static_cast<double>(e.elements.size() - i))]);
      e.elements.resize(static_cast<size_t>(options_.max_elements));
      std::sort(e.elements.begin(), e.elements.end());
    }
    int64_t rows = e.analytic.rows, cols = static_cast<int64_t>(e.elements.size());
    e.numeric = Matrix(rows, cols);
    e.bend = Matrix(rows, cols);
    for (int64_t c = 0; c < cols; ++c) {
      int64_t i = e.elements[static_cast<size_t>(c)];
      double x = parameter.value().at(i), h = options_.step * std::max(1.0, std::abs(x));
      auto at = [&](double v) {
        parameter.update([&](const Tensor& t) { t.set(i, v); });
        return values();
      };
      std::vector<double> plus = at(x + h), minus = at(x - h);
      std::vector<double> half_plus = at(x + h / 2), half_minus = at(x - h / 2);
      if (c < 20) look_for_float(plus, minus, h, at(x + h * 1e-4), at(x - h * 1e-4), 2e-4 * h);
      parameter.update([&](const Tensor& t) { t.set(i, x); });
      for (int64_t k = 0; k < rows; ++k) {
        double slope = 0, bend = 0;
        for (size_t m = 0; m < plus.size(); ++m) {
          double w = each_output_ ? (static_cast<int64_t>(m) == k ? 1.0 : 0.0)
                                  : seeds_[static_cast<size_t>(k)].f64()[m];
          slope += w * (8 * (half_plus[m] - half_minus[m]) - (plus[m] - minus[m])) / (6 * h);
          bend += w * (4 * (half_plus[m] + half_minus[m]) - (plus[m] + minus[m]) - 6 * output_[m]) / h;
        }
        e.numeric.at(k, c) = slope;
        e.bend.at(k, c) = bend;
        if (std::isfinite(slope)) e.scale = std::max(e.scale, std::abs(slope));
      }
    }
  }

  // In double a step of 1e-9 to both sides moves the result in proportion; rounded to float it does not move, or jumps.
  void look_for_float(const std::vector<double>& plus, const std::vector<double>& minus, double h,
                      const std::vector<double>& tiny_plus, const std::vector<double>& tiny_minus, double t) {
    for (size_t m = 0; m < plus.size(); ++m) {
      double slope = (plus[m] - minus[m]) / (2 * h), moved = (tiny_plus[m] - tiny_minus[m]) / t;
      if (std::abs(slope) < 1e-2 * std::max(1.0, std::abs(output_[m]))) continue;
      ++slopes_;
      double ratio = moved / slope;
      jumps_ += ratio < 1e-3 || ratio > 10;
    }
  }

  Diagnosis conclude(const std::vector<Evidence>& evidence) {
    Diagnosis d;
    double worst = 0;
    Tensor dy = random_dy(options_.seed);
    for (const Evidence& e : evidence) {
      InputDiagnosis in = measure(e, dy);
      if (in.worst_error > options_.tolerance) {
        Finding found = explain(e, evidence, options_.tolerance);
        in.mistake = found.mistake;
        in.sentence = found.sentence;
        if (in.worst_error > worst) {
          worst = in.worst_error;
          d.mistake = in.mistake;
          d.name = in.name;
          d.sentence = in.sentence;
        }
      }
      d.inputs.push_back(std::move(in));
    }
    if (d.mistake == Mistake::none) {
      bool reached = std::any_of(evidence.begin(), evidence.end(), [](auto& e) { return e.reached; });
      if (reached && !linear()) {
        d.mistake = Mistake::not_linear;
        d.sentence = "the gradient is right for dy = 1 alone: the backward does not multiply by dy";
      }
      return d;
    }
    if (slopes_ > 0 && jumps_ * 2 > slopes_)
      return whole(Mistake::float_used,
                   "the result moves in jumps of a float's size: something inside computes in f32");
    if (d.mistake != Mistake::kink && !linear()) {
      d.mistake = Mistake::not_linear;
      d.sentence = "the gradient is not linear in dy: the backward does not multiply by dy, or uses it twice";
      for (InputDiagnosis& in : d.inputs)
        if (in.mistake != Mistake::none) in.mistake = d.mistake, in.sentence = d.sentence;
    }
    return d;
  }

  // backward(2 dy1 - 3 dy2) = 2 backward(dy1) - 3 backward(dy2)
  bool linear() const {
    Tensor one = random_dy(11), two = random_dy(12), both(out_, DType::f64);
    for (int64_t i = 0; i < both.numel(); ++i) both.f64()[i] = 2 * one.f64()[i] - 3 * two.f64()[i];
    std::vector<double> a = all_gradients(one), b = all_gradients(two), c = all_gradients(both);
    double scale = 1e-9;
    for (double v : a) scale = worse(scale, std::abs(v));
    for (size_t i = 0; i < a.size(); ++i)
      if (!(std::abs(c[i] - 2 * a[i] + 3 * b[i]) <= 1e-6 * scale)) return false;
    return true;
  }

  InputDiagnosis measure(const Evidence& e, const Tensor& dy) const {
    InputDiagnosis in;
    in.name = e.name;
    in.analytic = Tensor::zeros(e.in, DType::f64);
    in.numeric = Tensor::full(e.in, std::numeric_limits<double>::quiet_NaN(), DType::f64);
    for (int64_t c = 0; c < e.numeric.cols; ++c) {
      int64_t i = e.elements[static_cast<size_t>(c)];
      double numeric = 0;
      for (int64_t k = 0; k < e.numeric.rows; ++k) {
        numeric += weight(dy, k) * e.b(k, c);
        double error = relative(e.a(k, c), e.b(k, c));
        if (error > in.worst_error || in.worst < 0) in.worst_error = error, in.worst = i;
      }
      in.numeric.set(i, numeric);
    }
    for (int64_t i = 0; i < e.analytic.cols; ++i)
      for (int64_t k = 0; k < e.analytic.rows; ++k)
        in.analytic.f64()[i] += weight(dy, k) * e.analytic.at(k, i);
    return in;
  }

  // Of row k of the Jacobian in the gradient under dy: random sums stand for themselves, the first one alone.
  double weight(const Tensor& dy, int64_t k) const { return each_output_ ? dy.f64()[k] : k == 0 ? 1 : 0; }

  const std::function<Var()>& f_;
  const std::vector<NamedParameter>& parameters_;
  DiagnosisOptions options_;
  Rng rng_;
  Shape out_;
  std::vector<double> output_;
  bool each_output_ = true;
  std::vector<Tensor> seeds_;
  int64_t slopes_ = 0, jumps_ = 0;
};

}  // namespace

Diagnosis diagnose(const std::function<Var()>& f, const std::vector<NamedParameter>& parameters,
                   const DiagnosisOptions& options) {
  return Examination(f, parameters, options).run();
}

Diagnosis diagnose(const std::function<Var(const std::vector<Var>&)>& f, const std::vector<Tensor>& inputs,
                   const DiagnosisOptions& options) {
  std::vector<Parameter> parameters(inputs.size());
  std::vector<NamedParameter> named;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!is_floating(inputs[i].dtype())) continue;
    std::string name = fmt::format("input{}", i);
    parameters[i] =
        Parameter(inputs[i].dtype() == DType::f64 ? inputs[i].clone() : inputs[i].to(DType::f64), name);
    named.push_back({name, &parameters[i]});
  }
  std::function<Var()> call = [&] {
    std::vector<Var> args;
    for (size_t i = 0; i < inputs.size(); ++i)
      args.push_back(parameters[i].defined() ? parameters[i].var() : Var(inputs[i]));
    return f(args);
  };
  return diagnose(call, named, options);
}

}  // namespace gradus
