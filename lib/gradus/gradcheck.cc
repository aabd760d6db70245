#include <gradus/gradcheck.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gradus/diagnosis_rules.h>
#include <gradus/differences.h>
#include <gradus/random.h>

namespace gradus {
namespace {

// No gradient is known better than to this part of the largest of all.
constexpr double kRounding = 1e-7;

class Checker {
 public:
  Checker(const std::function<Var()>& f, const GradcheckOptions& options)
      : f_(f), options_(options), rng_(options.seed) {}

  GradcheckReport run(const std::vector<NamedParameter>& parameters) {
    if (Diagnosis d = unfit(f_, parameters); !d) return problem(d.mistake, d.sentence);
    Var y = f_();
    weights_ = Tensor::uniform(y.shape(), 1, 3, rng_, DType::f64);
    if (y.numel() == 1) weights_.fill(2);  // not 1, which a backward may forget to multiply by
    if (!y.requires_grad())
      return problem(Mistake::not_connected, "the result depends on no parameter: is something detached?");
    Tensor dy = weights_.clone();
    Gradients grads = backward(y, {.seed = dy, .retain_graph = true}), again = backward(y, {.seed = dy});
    if (max_abs_difference(dy, weights_) > 0)
      return problem(Mistake::overwritten, "a backward writes into dy, which others may hold: use a copy");
    for (const NamedParameter& p : parameters)
      if (grads.contains(*p.parameter) && max_abs_difference(grads[*p.parameter], again[*p.parameter]) > 0)
        return problem(Mistake::overwritten, "a backward writes into what it captured: its second run differs");
    auto gradient = [&](const NamedParameter& p) {
      return grads.contains(*p.parameter) ? grads[*p.parameter] : Tensor();
    };
    for (const NamedParameter& p : parameters)
      largest_ = worse(largest_, largest_finite(gradient(p).to_vector()));
    for (const NamedParameter& p : parameters) {
      moved_ = false;
      parameter_error_ = 0;
      Tensor analytic = gradient(p);
      floor_ = worse(kFloor * largest_finite(analytic.to_vector()), kRounding * largest_);
      if (p.parameter->value().numel() <= options_.max_elements) full(p, analytic);
      else along_directions(p, analytic);
      if (!analytic.defined() && !moved_ && p.parameter->value().numel() > 0) unused_.push_back(p.name);
      if (parameter_error_ > options_.tolerance) failed_.push_back({parameter_error_, p});
    }
    finish(parameters);
    return report_;
  }

 private:
  GradcheckReport problem(Mistake mistake, const std::string& text) {
    return {.ok = false, .message = "[gradcheck] " + text, .diagnosis = {.mistake = mistake, .sentence = text}};
  }

  double value() const {
    NoGrad guard;
    const Tensor y = f_().value();
    return std::inner_product(y.f64(), y.f64() + y.numel(), weights_.f64(), 0.0);
  }

  void full(const NamedParameter& p, const Tensor& analytic) {
    for (int64_t i = 0; i < p.parameter->value().numel(); ++i) {
      double x = p.parameter->value().at(i), unit = std::max(1.0, std::abs(x));
      auto move = [&](double t) { p.parameter->update([&](const Tensor& v) { v.set(i, x + t * unit); }); };
      compare(p.name + element_name(p.parameter->shape(), i), analytic.defined() ? analytic.at(i) : 0, move,
              options_.step, unit);
    }
  }

  void along_directions(const NamedParameter& p, const Tensor& analytic) {
    Tensor start = p.parameter->value().clone();
    for (int d = 0; d < std::max(options_.directions, 1); ++d) {
      // Unit length, so that the step is comparable with the one of a single element.
      Tensor u = Tensor::normal(start.shape(), 0, 1, rng_, DType::f64);
      double slope = 0;
      const double norm = std::sqrt(std::inner_product(u.f64(), u.f64() + u.numel(), u.f64(), 0.0));
      for (int64_t i = 0; i < u.numel(); ++i) u.f64()[i] /= norm;
      for (int64_t i = 0; i < u.numel() && analytic.defined(); ++i) slope += u.f64()[i] * analytic.at(i);
      auto move = [&](double t) {
        p.parameter->update([&](const Tensor& x) {
          for (int64_t i = 0; i < x.numel(); ++i) x.f64()[i] = start.f64()[i] + t * u.f64()[i];
        });
      };
      compare(fmt::format("{} along direction {}", p.name, d), slope, move, options_.step * 10, 1);
    }
  }

  // move(t) puts the parameter t units away. Two points are cheap, and mostly tell as much as is asked. Where
  // they do not agree with the engine, eight at larger steps decide, down to what these can tell.
  void compare(const std::string& name, double analytic, const std::function<void(double)>& move, double step,
               double unit) {
    auto at = [&](double t) {
      move(t);
      try { return value(); } catch (...) { move(0); throw; }
    };
    double numeric = (at(step) - at(-step)) / (2 * step * unit);
    double error = relative_error(analytic, numeric, floor_);
    if (error > options_.tolerance) {  // not of NaN, which stays one
      Difference d = careful_difference(pointwise(at), floor_ * unit, 0.1 * options_.tolerance);
      numeric = d.value / unit;
      double doubt = (d.doubt + 10 * d.rounding) / unit;
      error = relative_error(analytic, numeric, std::max(floor_, doubt / options_.tolerance));
    }
    move(0);
    // Of a constant, what is left is rounding on both sides.
    if (largest_ < 1e-10 && std::abs(analytic) < 1e-10 && std::abs(numeric) < 1e-10) error = 0;
    ++report_.checked;
    moved_ = moved_ || numeric != 0;
    if (std::isnan(error)) error = INFINITY;
    parameter_error_ = worse(parameter_error_, error);
    if (error <= report_.worst_error && report_.checked > 1) return;
    report_.worst_error = error;
    report_.worst_name = name;
    report_.analytic = analytic / 2;  // a scalar's own
    report_.numeric = numeric / 2;
  }

  void finish(const std::vector<NamedParameter>& parameters) {
    report_.ok = report_.worst_error <= options_.tolerance;
    if (report_.ok) ask_other_uses(parameters);
    if (report_.message.empty())
      report_.message = fmt::format(
          "[gradcheck] {}: {} of {} derivatives, worst {}: analytic {:.10g}, numeric {:.10g}, relative error "
          "{:.2g}",
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
    // Found along a direction, but not in any single derivative that was looked at; or said already.
    if (d.mistake == Mistake::none || d.mistake == Mistake::unknown) return;
    if (report_.message.find(d.sentence) != std::string::npos) return;
    if (d.name.empty() || report_.worst_name.starts_with(d.name)) report_.message += "; " + d.sentence;
    else report_.message += fmt::format("; {}: {}", d.name, d.sentence);
  }

  // By themselves all are right. And where the parameters have other uses?
  void ask_other_uses(const std::vector<NamedParameter>& parameters) {
    OtherUses uses = beside_other_uses(f_, parameters, weights_);
    for (size_t i = 0; i < parameters.size(); ++i)
      if (uses.lost[i] > 0) failed_.push_back({uses.lost[i], parameters[i]});
    if (failed_.empty()) return;
    report_.ok = false;
    report_.message =
        fmt::format("[gradcheck] failed: all of {} derivatives agree, but {}", report_.checked, uses.sentence);
  }

  const std::function<Var()>& f_;
  GradcheckOptions options_;
  Rng rng_;
  Tensor weights_;
  GradcheckReport report_;
  std::vector<std::pair<double, NamedParameter>> failed_;
  std::vector<std::string> unused_;
  // The largest number in any gradient.
  double largest_ = 0;
  // Of the parameter at hand: see kFloor; the worst error; whether it changed the value.
  double floor_ = 0, parameter_error_ = 0;
  bool moved_ = false;
};

}  // namespace

GradcheckReport gradcheck(const std::function<Var()>& f, const std::vector<NamedParameter>& parameters,
                          const GradcheckOptions& options) {
  try {
    return Checker(f, options).run(parameters);
  } catch (const Error& e) {
    if (e.message().find("element types must agree") == std::string::npos) throw;
    throw Error(std::string(e.what()) +
                "; hint: what is checked is f64. A constant: .to(DType::f64). A module that is captured: "
                "nn::gradcheck(module, ...), or nn::to it. A part of a module: does params() visit it?");
  }
}

GradcheckReport gradcheck(const std::function<Var(const std::vector<Var>&)>& f,
                          const std::vector<Tensor>& inputs, const GradcheckOptions& options) {
  OfParameters of(f, inputs, options.names);
  return gradcheck(of.call, of.named, options);
}

}  // namespace gradus
