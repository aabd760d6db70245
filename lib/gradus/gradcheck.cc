#include <gradus/gradcheck.h>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include <gradus/diagnosis_rules.h>
#include <gradus/random.h>

namespace gradus {
namespace {

class Checker {
 public:
  Checker(const std::function<Var()>& f, const GradcheckOptions& options)
      : f_(f), options_(options), rng_(options.seed) {}

  GradcheckReport run(const std::vector<NamedParameter>& parameters) {
    for (const NamedParameter& p : parameters)
      if (p.parameter->value().dtype() != DType::f64)
        return problem(Mistake::float_used, fmt::format("{} is {}: central differences need f64", p.name,
                                                        name_of(p.parameter->value().dtype())));
    Var y = f_();
    if (y.dtype() != DType::f64)
      return problem(
          Mistake::float_used,
          fmt::format("the function returned {}: it must compute in f64 throughout", name_of(y.dtype())));
    weights_ = Tensor::uniform(y.shape(), 0.5, 1.5, rng_, DType::f64);
    if (y.numel() == 1) weights_.fill(1);
    double once = value();
    if (!std::isfinite(once))
      return problem(Mistake::not_finite,
                     fmt::format("the function is {} at this point", std::isnan(once) ? "NaN" : "infinite"));
    if (value() != once)
      return problem(
          Mistake::not_deterministic,
          "the function is not deterministic: two calls at one point gave two results (dropout on?)");
    if (!y.requires_grad())
      return problem(Mistake::not_connected, "the result depends on no parameter: is something detached?");
    Gradients grads = backward(y, {.seed = weights_});
    for (const NamedParameter& p : parameters) {
      moved_ = false;
      parameter_error_ = 0;
      Tensor analytic = grads.contains(*p.parameter) ? grads[*p.parameter] : Tensor();
      if (p.parameter->value().numel() <= options_.max_elements) full(p, analytic);
      else along_directions(p, analytic);
      if (!analytic.defined() && !moved_ && p.parameter->value().numel() > 0) unused_.push_back(p.name);
      if (parameter_error_ > options_.tolerance) failed_.push_back({parameter_error_, p});
    }
    finish();
    return report_;
  }

 private:
  GradcheckReport problem(Mistake mistake, const std::string& text) {
    report_.diagnosis.mistake = mistake;
    report_.diagnosis.sentence = text;
    report_.ok = false;
    report_.message = "[gradcheck] " + text;
    return report_;
  }

  double value() const {
    NoGrad guard;
    Var y = f_();
    double sum = 0;
    const double *v = y.value().f64(), *w = weights_.f64();
    for (int64_t i = 0; i < y.numel(); ++i) sum += v[i] * w[i];
    return sum;
  }

  void full(const NamedParameter& p, const Tensor& analytic) {
    for (int64_t i = 0; i < p.parameter->value().numel(); ++i) {
      double x = p.parameter->value().at(i), h = options_.step * std::max(1.0, std::abs(x));
      auto at = [&](double v) {
        p.parameter->update([&](const Tensor& t) { t.set(i, v); });
        return value();
      };
      double plus = at(x + h), minus = at(x - h);
      at(x);
      compare(p.name + element_name(p.parameter->shape(), i), analytic.defined() ? analytic.at(i) : 0, plus,
              minus, h);
    }
  }

  void along_directions(const NamedParameter& p, const Tensor& analytic) {
    Tensor start = p.parameter->value().clone();
    for (int d = 0; d < options_.directions; ++d) {
      // Unit length, so that the step is comparable with the one of a single element.
      Tensor u = Tensor::normal(start.shape(), 0, 1, rng_, DType::f64);
      double norm = 0, slope = 0;
      for (double v : u.to_vector()) norm += v * v;
      norm = std::sqrt(norm);
      for (int64_t i = 0; i < u.numel(); ++i) u.f64()[i] /= norm;
      for (int64_t i = 0; i < u.numel() && analytic.defined(); ++i) slope += u.f64()[i] * analytic.at(i);
      double h = options_.step * 10;
      auto at = [&](double t) {
        p.parameter->update([&](const Tensor& x) {
          for (int64_t i = 0; i < x.numel(); ++i) x.f64()[i] = start.f64()[i] + t * u.f64()[i];
        });
        return value();
      };
      double plus = at(h), minus = at(-h);
      at(0);
      compare(fmt::format("{} along direction {}", p.name, d), slope, plus, minus, h);
    }
  }

  void compare(const std::string& name, double analytic, double plus, double minus, double h) {
    double numeric = (plus - minus) / (2 * h);
    double error = std::abs(analytic - numeric) / std::max({1.0, std::abs(analytic), std::abs(numeric)});
    ++report_.checked;
    moved_ = moved_ || numeric != 0;
    if (std::isnan(error)) error = INFINITY;
    parameter_error_ = worse(parameter_error_, error);
    if (error <= report_.worst_error && report_.checked > 1) return;
    report_.worst_error = error;
    report_.worst_name = name;
    report_.analytic = analytic;
    report_.numeric = numeric;
  }

  void finish() {
    report_.ok = report_.worst_error <= options_.tolerance;
    report_.message = fmt::format(
        "[gradcheck] {}: {} of {} derivatives, worst {}: analytic {:.10g}, numeric {:.10g}, relative error {:.2g}",
        report_.ok ? "passed" : "failed", report_.ok ? "all" : "at least 1", report_.checked,
        report_.worst_name, report_.analytic, report_.numeric, report_.worst_error);
    if (!unused_.empty())
      report_.message += fmt::format("; the result does not depend on {}", fmt::join(unused_, ", "));
    if (report_.ok) return;
    std::stable_sort(failed_.begin(), failed_.end(), [](auto& a, auto& b) { return a.first > b.first; });
    std::vector<NamedParameter> worst;
    for (size_t i = 0; i < failed_.size() && i < 3; ++i) worst.push_back(failed_[i].second);
    report_.diagnosis =
        diagnose(f_, worst, {.step = options_.step, .tolerance = options_.tolerance, .max_elements = 200});
    const Diagnosis& d = report_.diagnosis;
    // Found along a direction, but not in any single derivative that was looked at.
    if (d.mistake == Mistake::none || d.mistake == Mistake::unknown) return;
    if (d.name.empty() || report_.worst_name.starts_with(d.name)) report_.message += "; " + d.sentence;
    else report_.message += fmt::format("; {}: {}", d.name, d.sentence);
  }

  const std::function<Var()>& f_;
  GradcheckOptions options_;
  Rng rng_;
  Tensor weights_;
  GradcheckReport report_;
  double parameter_error_ = 0;  // worst of the parameter at hand
  std::vector<std::pair<double, NamedParameter>> failed_;
  bool moved_ = false;  // the parameter at hand changed the value
  std::vector<std::string> unused_;
};

}  // namespace

GradcheckReport gradcheck(const std::function<Var()>& f, const std::vector<NamedParameter>& parameters,
                          const GradcheckOptions& options) {
  return Checker(f, options).run(parameters);
}

GradcheckReport gradcheck(const std::function<Var(const std::vector<Var>&)>& f,
                          const std::vector<Tensor>& inputs, const GradcheckOptions& options) {
  std::vector<Parameter> parameters(inputs.size());
  std::vector<NamedParameter> named;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!is_floating(inputs[i].dtype())) continue;
    Tensor x = inputs[i].dtype() == DType::f64 ? inputs[i].clone() : inputs[i].to(DType::f64);
    parameters[i] = Parameter(std::move(x), fmt::format("input{}", i));
    named.push_back({fmt::format("input{}", i), &parameters[i]});
  }
  auto call = [&] {
    std::vector<Var> args;
    for (size_t i = 0; i < inputs.size(); ++i)
      args.push_back(parameters[i].defined() ? parameters[i].var() : Var(inputs[i]));
    return f(args);
  };
  return gradcheck(std::function<Var()>(call), named, options);
}

}  // namespace gradus
