#include <gradus/diagnosis.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include <gradus/diagnosis_rules.h>
#include <gradus/differences.h>
#include <gradus/numeric.h>
#include <gradus/random.h>
#include <gradus/trace.h>

namespace gradus {
namespace {

// NaN is as wrong as can be.
double relative(double a, double b, double floor) {
  double error = relative_error(a, b, floor);
  return std::isnan(error) ? INFINITY : error;
}

// NaN equals no number, but NaN twice is no other result.
bool equal_or_nan(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// f itself is at fault.
Diagnosis whole(Mistake mistake, const std::string& sentence) {
  return {.mistake = mistake, .sentence = sentence};
}

std::vector<double> values(const std::function<Var()>& f) {
  NoGrad guard;
  return f().value().to_vector();
}

class Examination {
 public:
  Examination(const std::function<Var()>& f, const std::vector<NamedParameter>& parameters,
              const DiagnosisOptions& o)
      : f_(f), parameters_(parameters), options_(o), rng_(o.seed) {}

  Diagnosis run() {
    if (Diagnosis d = unfit(f_, parameters_); !d) return d;
    Var y = f_();
    out_ = y.shape();
    output_ = y.value().to_vector();
    auto once = [&] { return all_gradients(random_dy(1)); };
    if (y.requires_grad() && !std::ranges::equal(once(), once(), equal_or_nan))
      return whole(Mistake::not_deterministic,
                   "the backward is not deterministic: two runs gave two gradients");
    // Each output by itself, or, of many, random sums.
    each_output_ = out_.numel() <= options_.max_outputs;
    for (int64_t k = 0; k < (each_output_ ? out_.numel() : 8); ++k) {
      seeds_.push_back(each_output_ ? Tensor::zeros(out_, DType::f64)
                                    : random_dy(options_.seed + static_cast<uint64_t>(k)));
      if (each_output_) seeds_.back().set(k, 1);
    }
    return judge(y.requires_grad());
  }

 private:
  Tensor random_dy(uint64_t seed) const {
    Rng rng(seed + 100);
    return Tensor::uniform(out_, -1, 1, rng, DType::f64);
  }

  // What f's backward computes; zeros where none arrived.
  std::vector<Tensor> gradients(const Tensor& dy) const {
    std::vector<Tensor> out;
    Var y = f_();
    Gradients grads = y.requires_grad() ? backward(y, {.seed = dy}) : Gradients();
    for (const NamedParameter& p : parameters_)
      out.push_back(grads.contains(*p.parameter) ? grads[*p.parameter].clone()
                                                 : Tensor::zeros(p.parameter->shape(), DType::f64));
    return out;
  }

  std::vector<double> all_gradients(const Tensor& dy) const {
    std::vector<double> out;
    for (const Tensor& g : gradients(dy)) out.insert(out.end(), g.f64(), g.f64() + g.numel());
    return out;
  }

  Diagnosis judge(bool requires_grad) {
    int64_t rows = static_cast<int64_t>(seeds_.size());
    std::vector<Evidence> evidence;
    for (const NamedParameter& p : parameters_) {
      const Shape& in = p.parameter->shape();
      evidence.push_back({p.name, in, out_, output_, p.parameter->value().to_vector(), each_output_,
                          Matrix(rows, in.numel())});
      differentiate(*p.parameter, evidence.back());
    }
    for (int64_t k = 0; k < rows && requires_grad; ++k) {
      // A trace has every contribution collected by itself: what an op sends, whatever becomes of others'.
      Trace apart;
      Gradients grads = backward(f_(), {.seed = seeds_[static_cast<size_t>(k)], .trace = &apart});
      for (size_t i = 0; i < parameters_.size(); ++i) {
        if (!grads.contains(*parameters_[i].parameter)) continue;
        evidence[i].reached = true;
        Tensor g = grads[*parameters_[i].parameter];
        std::copy_n(g.f64(), g.numel(), evidence[i].analytic.values.begin() + k * g.numel());
      }
    }
    return conclude(evidence);
  }

  // Central differences of steps h and h / 2, extrapolated so that the error of order h^2 cancels (Richardson).
  // The slope to the right less that to the left tells a kink: where there is none it is in proportion to h,
  // and the extrapolation cancels it. A tiny step shows rounding to float.
  void differentiate(Parameter& parameter, Evidence& e) {
    int64_t n = e.in.numel();
    e.elements.resize(static_cast<size_t>(n));
    std::iota(e.elements.begin(), e.elements.end(), 0);
    if (const int64_t most = std::max<int64_t>(options_.max_elements, 1); n > most) {
      auto at = e.elements.begin(), chosen = at + most, end = e.elements.end();
      for (; at != chosen; ++at)  // a random choice in front
        std::swap(*at, at[static_cast<int64_t>(rng_.uniform() * static_cast<double>(end - at))]);
      e.elements.erase(chosen, end);
      std::sort(e.elements.begin(), e.elements.end());
    }
    int64_t rows = e.analytic.rows, cols = static_cast<int64_t>(e.elements.size());
    e.numeric = Matrix(rows, cols);
    e.bend = Matrix(rows, cols);
    for (int64_t c = 0; c < cols; ++c) {
      int64_t i = e.elements[static_cast<size_t>(c)];
      double x = parameter.value().at(i), h = options_.step * std::max(1.0, std::abs(x));
      auto move = [&](double v) { parameter.update([&](const Tensor& t) { t.set(i, v); }); };
      auto at = [&](double v) {
        move(v);
        try { return values(f_); } catch (...) { move(x); throw; }
      };
      std::vector<double> plus = at(x + h), minus = at(x - h);
      std::vector<double> half_plus = at(x + h / 2), half_minus = at(x - h / 2);
      if (c < 20) look_for_float(plus, minus, h, at(x + h * 1e-4), at(x - h * 1e-4), 2e-4 * h);
      move(x);
      for (int64_t k = 0; k < rows; ++k) {
        const double* w = seeds_[static_cast<size_t>(k)].f64();
        double slope = 0, bend = 0;
        for (size_t m = 0; m < plus.size(); ++m) {
          slope += w[m] * (8 * (half_plus[m] - half_minus[m]) - (plus[m] - minus[m])) / (6 * h);
          bend += w[m] * (4 * (half_plus[m] + half_minus[m]) - (plus[m] + minus[m]) - 6 * output_[m]) / h;
        }
        e.numeric.at(k, c) = slope;
        e.bend.at(k, c) = bend;
        if (std::isfinite(slope)) e.scale = std::max(e.scale, std::abs(slope));
      }
    }
    double size = 0;  // of what is differentiated, whose rounding the differences divide by the step
    for (double v : output_) size = each_output_ ? worse(size, std::abs(v)) : size + std::abs(v);
    e.floor = std::max(kFloor * e.scale, 1e-15 * size / options_.step / options_.tolerance);
  }

  // In double a step of 1e-9 to both sides moves the result in proportion; in float it stays or jumps.
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

  Diagnosis conclude(std::vector<Evidence>& evidence) {
    Diagnosis d;
    double worst = 0;
    Tensor dy = d.dy = random_dy(options_.seed);
    std::vector<Tensor> yours = gradients(dy);
    for (size_t i = 0; i < evidence.size(); ++i) {
      InputDiagnosis in = measure(evidence[i], dy, yours[i]);
      evidence[i].yours = yours[i].to_vector();
      if (in.worst_error > options_.tolerance) {
        Finding found = explain(evidence[i], evidence, options_.tolerance);
        in.mistake = found.mistake;
        in.sentence = found.sentence;
        if (in.worst_error > worst) blame(d, in);
        worst = worse(worst, in.worst_error);
      }
      d.inputs.push_back(std::move(in));
    }
    if (d.mistake != Mistake::none && slopes_ > 0 && jumps_ * 2 > slopes_)
      return whole(Mistake::float_used,
                   "the result moves in jumps of a float's size: something inside computes in f32");
    if (std::ranges::none_of(evidence, &Evidence::reached)) return d;
    if (d.mistake != Mistake::kink && !linear()) {
      d.sentence =
          d.mistake == Mistake::none
              ? "the gradient is right for dy = 1 alone: the backward does not multiply by dy"
              : "the gradient is not linear in dy: the backward does not multiply by dy, or uses it twice";
      d.mistake = Mistake::not_linear;
      for (InputDiagnosis& in : d.inputs) {
        compare(in);
        if (in.worst_error > options_.tolerance) in.mistake = d.mistake, in.sentence = d.sentence;
      }
    } else if (d.mistake == Mistake::none || d.mistake == Mistake::unknown ||
               d.mistake == Mistake::invariant) {
      ask_other_uses(d, dy);
    }
    return d;
  }

  static void blame(Diagnosis& d, const InputDiagnosis& in) {
    d.mistake = in.mistake;
    d.name = in.name;
    d.sentence = in.sentence;
  }

  // Of the gradients that are drawn, too.
  static void compare(InputDiagnosis& in) {
    for (int64_t i = 0; i < in.numeric.numel(); ++i) {
      if (std::isnan(in.numeric.at(i))) continue;
      double error = relative(in.analytic.at(i), in.numeric.at(i), in.floor);
      if (error > in.worst_error) in.worst_error = error, in.worst = i;
    }
  }

  void ask_other_uses(Diagnosis& d, const Tensor& dy) const {
    OtherUses uses = beside_other_uses(f_, parameters_, dy);
    double most = 0;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (uses.lost[i] == 0) continue;
      InputDiagnosis& in = d.inputs[i];
      in.mistake = Mistake::overwritten;
      in.sentence = uses.sentence;
      in.numeric = zip(in.numeric, uses.expected[i], in.analytic,
                       [](auto n, auto with, auto without) { return n + (with - without); });
      in.analytic = uses.kept[i];
      compare(in);
      in.worst_error = worse(in.worst_error, uses.lost[i]);
      if (uses.lost[i] > most) blame(d, in);
      most = worse(most, uses.lost[i]);
    }
  }

  // backward(2 dy1 - 3 dy2) = 2 backward(dy1) - 3 backward(dy2)
  bool linear() const {
    Tensor one = random_dy(11), two = random_dy(12), both(out_, DType::f64);
    for (int64_t i = 0; i < both.numel(); ++i) both.f64()[i] = 2 * one.f64()[i] - 3 * two.f64()[i];
    std::vector<double> a = all_gradients(one), b = all_gradients(two), c = all_gradients(both);
    const double scale = std::max(1e-9, largest_finite(a));
    for (size_t i = 0; i < a.size(); ++i)
      if (std::isfinite(a[i]) && !(std::abs(c[i] - 2 * a[i] + 3 * b[i]) <= 1e-6 * scale)) return false;
    return true;
  }

  InputDiagnosis measure(const Evidence& e, const Tensor& dy, const Tensor& yours) const {
    InputDiagnosis in{.name = e.name, .analytic = yours, .numeric = Tensor::full(e.in, NAN, DType::f64)};
    in.floor = e.floor;
    for (int64_t c = 0; c < e.numeric.cols; ++c) {
      int64_t i = e.elements[static_cast<size_t>(c)];
      double numeric = 0;
      for (int64_t k = 0; k < e.numeric.rows; ++k) {
        // Random sums stand for themselves in the gradient under dy, the first one alone.
        numeric += (each_output_ ? dy.f64()[k] : k == 0 ? 1 : 0) * e.b(k, c);
        double error = relative(e.a(k, c), e.b(k, c), e.floor);
        if (error > in.worst_error || in.worst < 0) in.worst_error = error, in.worst = i;
      }
      in.numeric.set(i, numeric);
    }
    return in;
  }

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

Diagnosis unfit(const std::function<Var()>& f, const std::vector<NamedParameter>& parameters) {
  for (const NamedParameter& p : parameters)
    if (p.parameter->value().dtype() != DType::f64)
      return whole(Mistake::float_used, fmt::format("central differences need f64, and {} is {}", p.name,
                                                    name_of(p.parameter->value().dtype())));
  Tensor y = f().value();
  if (y.dtype() != DType::f64)
    return whole(
        Mistake::float_used,
        fmt::format("the function returned {}: it must compute in f64 throughout", name_of(y.dtype())));
  for (double v : y.to_vector())
    if (!std::isfinite(v))
      return whole(Mistake::not_finite,
                   fmt::format("the function is {} at this point", std::isnan(v) ? "NaN" : "infinite"));
  if (values(f) != y.to_vector())
    return whole(Mistake::not_deterministic,
                 "the function is not deterministic: two calls at one point gave two results (dropout on?)");
  return {};
}

Diagnosis diagnose(const std::function<Var()>& f, const std::vector<NamedParameter>& parameters,
                   const DiagnosisOptions& options) {
  return Examination(f, parameters, options).run();
}

OfParameters::OfParameters(const std::function<Var(const std::vector<Var>&)>& f,
                           const std::vector<Tensor>& inputs, const std::vector<std::string>& names)
    : parameters(inputs.size()) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined() || !is_floating(inputs[i].dtype())) continue;
    std::string name = i < names.size() ? names[i] : fmt::format("input{}", i);
    parameters[i] = Parameter(inputs[i].to(DType::f64).clone(), name);
    named.push_back({name, &parameters[i]});
  }
  call = [this, &f, &inputs] {
    std::vector<Var> args;
    for (size_t i = 0; i < inputs.size(); ++i)
      args.push_back(parameters[i].defined() ? parameters[i].var() : Var(inputs[i]));
    return f(args);
  };
}

Diagnosis diagnose(const std::function<Var(const std::vector<Var>&)>& f, const std::vector<Tensor>& inputs,
                   const DiagnosisOptions& options) {
  OfParameters of(f, inputs);
  return diagnose(of.call, of.named, options);
}

OtherUses beside_other_uses(const std::function<Var()>& f, const std::vector<NamedParameter>& leaves,
                            const Tensor& dy) {
  // Fills `all` with f's result and with what it was computed of, in the same order each time.
  auto run = [&](std::vector<Var>& all, Trace* trace) {
    all = {f()};
    std::vector<Tensor> sent{dy};
    std::set<const Node*> seen;
    Rng rng(5);
    for (size_t k = 0; k < all.size() && all[k].node(); ++k) {
      std::shared_ptr<Node> node = all[k].node();
      for (const auto& input : node->inputs) {
        if (!input || !seen.insert(input.get()).second) continue;
        sent.push_back(input->inputs.empty() ? Tensor::full(input->shape, 3, input->dtype)
                                             : Tensor::uniform(input->shape, 0.5, 1.5, rng, input->dtype));
        all.push_back({sent.back(), input});
      }
    }
    // The newest node of all: what it sends is there before any other.
    Var newest = record("other uses", all, all[0].value(), [&sent](const Tensor&, Grads& dx) {
      for (size_t k = 0; k < sent.size(); ++k) dx.add(static_cast<int>(k), sent[k]);
    });
    return newest.requires_grad() ? backward(newest, {.seed = dy, .keep = all, .trace = trace}) : Gradients();
  };
  std::vector<Var> one, two;
  Trace apart;  // tracing collects every contribution by itself
  Gradients kept = run(one, nullptr), expected = run(two, &apart);
  auto lost = [&](const Var& x, const Var& same) {
    if (!kept.contains(x) || !expected.contains(same)) return 0.0;
    const std::vector<double> a = kept[x].to_vector(), b = expected[same].to_vector();
    double worst = 0, largest = largest_finite(b);
    for (size_t i = 0; i < a.size(); ++i)
      if (!equal_or_nan(a[i], b[i])) worst = worse(worst, std::abs(a[i] - b[i]));
    const double rounding = x.dtype() == DType::f32 ? 1e-4 : 1e-10;
    return worst <= rounding * largest ? 0 : std::isnan(worst) ? 1 : worst / largest;
  };
  OtherUses out;
  for (const NamedParameter& p : leaves) {
    const Var& leaf = *p.parameter;
    out.kept.push_back(kept.contains(leaf) ? kept[leaf] : Tensor());
    out.expected.push_back(expected.contains(leaf) ? expected[leaf] : Tensor());
    out.lost.push_back(lost(leaf, leaf));
  }
  // What is lost on the way spoils all that is computed from it: the newest value tells by whom.
  const Node* where = nullptr;
  for (size_t k = 1; k < two.size(); ++k)
    if ((!where || two[k].node()->order > where->order) && lost(one[k], two[k]) > 0)
      where = two[k].node().get();
  if (!where) return out;
  std::set<std::string> by;
  for (const Trace::Edge& e : apart.edges)
    for (const Var& v : two)
      if (e.from == where->order && e.to == v.node()->order) by.insert(v.node()->op);
  out.sentence = fmt::format(
      "the backward of {} sets (=) the gradient of {}, so what other uses of {} have sent{} is lost: add to it "
      "(+=)",
      fmt::join(by, " or "), where->label.empty() ? "its input" : where->label,
      where->label.empty() ? "that" : where->label, where->inputs.empty() ? " (here 3 to each number)" : "");
  return out;
}

}  // namespace gradus
