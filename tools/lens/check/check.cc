#include <fmt/core.h>
#include <gradus/error.h>
#include <gradus/random.h>
#include <lens/lesson.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "check_log.h"
#include "check_picture.h"
#include "exercises/exercises.h"

namespace lens {
namespace {

using namespace gradus;

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

using Both = double (*)(double x, double y);
double one(double, double) { return 1; }
double itself(double x, double) { return x; }

// What derivatives of functions of one number are made of; {} stands for the input's name.
struct Term {
  const char* text;
  Both of;
};
constexpr Term kTerms[] = {
    {"{}", itself},
    {"y", [](double, double y) { return y; }},
    {"1 - y", [](double, double y) { return 1 - y; }},
    {"1 - y^2", [](double, double y) { return 1 - y * y; }},
    {"y (1 - y)", [](double, double y) { return y * (1 - y); }},
    {"s({})", [](double x, double) { return logistic(x); }},
    {"1 - s({})", [](double x, double) { return 1 - logistic(x); }},
    {"s({0}) (1 - s({0}))", [](double x, double) { return logistic(x) * (1 - logistic(x)); }},
    {"1 - {}^2", [](double x, double) { return 1 - x * x; }},
    {"{0} (1 - {0})", [](double x, double) { return x * (1 - x); }}};

std::string text_of(const Term& t, const std::string& x) { return fmt::format(fmt::runtime(t.text), x); }

// Whether yours times `left` is the right one times `right`, everywhere, at three elements or more.
bool fits(const InputDiagnosis& in, const Tensor& x, const Tensor& y, Both left, Both right) {
  int64_t seen = 0;
  double largest = 0;
  for (double v : in.numeric.to_vector())
    if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
  for (int64_t i = 0; i < x.numel(); ++i) {
    double n = in.numeric.at(i), a = in.analytic.at(i), u = x.at(i), v = y.at(i);
    if (std::isnan(n) || std::abs(n) < 1e-3 * largest) continue;
    double one = a * left(u, v), two = n * right(u, v);
    if (!(std::abs(one - two) <= 1e-5 * std::max(std::abs(one), std::abs(two)))) return false;
    ++seen;
  }
  return seen >= 3;
}

std::string factor_hint(const InputDiagnosis& in, const Tensor& x, const Tensor& y) {
  for (const Term& t : kTerms) {
    if (fits(in, x, y, t.of, one)) return fmt::format("The factor {} is missing.", text_of(t, in.name));
    if (fits(in, x, y, one, t.of)) return fmt::format("It has a factor {} too many.", text_of(t, in.name));
  }
  for (const Term& is : kTerms)
    for (const Term& should : kTerms)
      if (fits(in, x, y, should.of, is.of))
        return fmt::format("It has {} where {} belongs.", text_of(is, in.name), text_of(should, in.name));
  return "";
}

// The first row of t whose sum, weighted with w, is not 0 beside the size of its terms; -1 when there is none.
int64_t uneven_row(const Tensor& t, Both weight, const Tensor& x, double& sum) {
  int64_t columns = t.size(-1);
  for (int64_t r = 0; r < t.numel() / columns; ++r) {
    double size = 0;
    sum = 0;
    for (int64_t i = r * columns; i < (r + 1) * columns; ++i) {
      double term = t.at(i) * weight(x.at(i), 0);
      sum += term;
      size += std::abs(term);
    }
    if (!(std::abs(sum) <= 1e-6 * size)) return r;
  }
  return -1;
}

std::string row_hint(const InputDiagnosis& in, const Tensor& x) {
  if (x.dims() == 0 || x.size(-1) < 2 || x.numel() == 0) return "";
  double sum = 0;
  int64_t row = -1;
  if (uneven_row(in.numeric, one, x, sum) < 0 && (row = uneven_row(in.analytic, one, x, sum)) >= 0)
    return fmt::format(
        "Each row of the gradient must sum to 0, as the result does not change when a whole row of {} is "
        "shifted; row {} of yours sums to {:.3g}.",
        in.name, row, sum);
  if (uneven_row(in.numeric, itself, x, sum) < 0 && (row = uneven_row(in.analytic, itself, x, sum)) >= 0)
    return fmt::format(
        "Each row of the gradient times its row of {0} must sum to 0, as the result does not change when a row "
        "of {0} is scaled; row {1} of yours gives {2:.3g}.",
        in.name, row, sum);
  return "";
}

// What a wrong gradient that no rule explains lacks or has too much of: where each element goes by itself a
// factor made of the input x and the result y, or what all rows of the right one share. "": nothing fits.
std::string hint_of(const InputDiagnosis& in, const Tensor& x, const Tensor& y) {
  std::string hint = x.shape() == y.shape() ? factor_hint(in, x, y) : "";
  return hint.empty() ? row_hint(in, x) : hint;
}

class Checker {
 public:
  Checker(const std::string& title, const CheckOptions& options)
      : options_(options), style_(style_of_stdout()), log_(title) {
    print(toned(title, Tone::strong, style_) + "\n\n");
  }

  // Of an operation and its inputs, or of a model and its parameters.
  template <class F, class Inputs>
  int run(const F& f, const Inputs& inputs) {
    int code = 1;
    try {
      code = look(f, inputs);
    } catch (const std::exception& error) {
      failed("error", error.what(), "");
    }
    log_.write();
    return code;
  }

 private:
  int look(const OpFunction& f, const std::vector<CheckInput>& inputs) {
    std::vector<Parameter> parameters(inputs.size());
    std::vector<NamedParameter> named;
    std::vector<Tensor> values;
    for (size_t i = 0; i < inputs.size(); ++i) {
      bool floating = is_floating(inputs[i].value.dtype());
      values.push_back(floating ? inputs[i].value.to(DType::f64) : inputs[i].value);
      if (!floating) continue;
      parameters[i] = Parameter(values[i].clone(), inputs[i].name);
      named.push_back({inputs[i].name, &parameters[i]});
    }
    auto call = [&] {
      std::vector<Var> in;
      for (size_t i = 0; i < inputs.size(); ++i)
        in.push_back(parameters[i].defined() ? parameters[i].var() : Var(values[i]));
      return f(in);
    };
    const Exercise* e = options_.exercise.empty() ? nullptr : &exercise(options_.exercise);
    if (e && compare_values(f, *e, values, inputs)) return 1;
    Diagnosis d = diagnose(call, named, options_.diagnosis);
    if (e && !d && !d.inputs.empty()) ask_suspects(f, *e, values, d);
    if (d.mistake == Mistake::unknown && d.sentence.find('\n') == std::string::npos) {
      NoGrad guard;
      Tensor y = f(as_vars(values)).value();
      for (InputDiagnosis& in : d.inputs)
        for (size_t i = 0; i < inputs.size(); ++i)
          if (in.mistake == Mistake::unknown && inputs[i].name == in.name)
            if (std::string hint = hint_of(in, values[i], y); !hint.empty())
              d.name = in.name, d.sentence = hint;
    }
    return report(d, inputs);
  }

  int look(const std::function<Var()>& f, const std::vector<NamedParameter>& parameters) {
    Diagnosis d = diagnose(f, parameters, options_.diagnosis);
    return report(d, {}) || ignored(d);
  }

  static void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

  int failed(const std::string& kind, const std::string& sentence, const std::string& where) {
    log_.fail(kind, sentence, where);
    print("  " + toned("✗ " + kind, Tone::bad, style_) +
          (where.empty() ? "" : " in " + toned(where, Tone::strong, style_)) + "\n" +
          wrapped(sentence, std::min(style_.width, 92), 4) + "\n");
    return 1;
  }

  static std::vector<Var> as_vars(const std::vector<Tensor>& values) {
    return {values.begin(), values.end()};
  }

  // True, with a picture, when f does not compute what the exercise asks for.
  bool compare_values(const OpFunction& f, const Exercise& e, const std::vector<Tensor>& values,
                      const std::vector<CheckInput>& inputs) {
    NoGrad guard;
    Tensor yours = f(as_vars(values)).value(), right = e.right(as_vars(values)).value();
    if (!yours.defined()) return failed("no result", "The function returns an undefined Var.", "");
    std::string shapes =
        fmt::format("The result is {}, it must be {}.", yours.shape().str(), right.shape().str());
    const bool shaped = yours.shape() == right.shape();
    if (shaped && all_close(yours, right, 1e-9, 1e-9)) return false;
    const Suspect* suspect = nullptr;
    for (const Suspect& s : e.suspects) {
      Tensor wrong = s.op(as_vars(values)).value();
      if (!suspect && wrong.shape() == yours.shape() && all_close(yours, wrong, 1e-9, 1e-9)) suspect = &s;
    }
    if (!shaped && !suspect) return failed("wrong shape", shapes, "");
    if (!shaped) return failed(suspect->kind, shapes + " " + suspect->sentence, "the result");
    std::vector<std::string> words;
    for (const CheckInput& in : inputs)
      if (right.dims() > 0 && in.words.size() == static_cast<size_t>(right.size(0))) words = in.words;
    print(draw({"y", yours.to(DType::f64), right, words, "expected"}, style_) + "\n");
    log_.add("y", yours, right, "expected", words, max_abs_difference(yours, right), 1e-6);
    if (suspect) return failed(suspect->kind, suspect->sentence, "the result");
    const char* general = "The result itself is not what the formula says; the gradients come after that.";
    return failed("wrong value", e.otherwise.empty() ? general : e.otherwise, "the result");
  }

  // All gradients under one random dy.
  static std::vector<Tensor> gradients(const OpFunction& f, const std::vector<Tensor>& values) {
    std::vector<Var> in;
    for (const Tensor& t : values) in.push_back(is_floating(t.dtype()) ? variable(t.clone()) : Var(t));
    Var y = f(in);
    Rng rng(23);
    Gradients grads;
    if (y.requires_grad()) grads = backward(y, {.seed = Tensor::uniform(y.shape(), -1, 1, rng, DType::f64)});
    std::vector<Tensor> out;
    for (const Var& x : in)
      out.push_back(!is_floating(x.dtype()) ? Tensor()
                    : grads.contains(x)     ? grads[x]
                                            : Tensor::zeros(x.shape(), DType::f64));
    return out;
  }

  // A suspect with exactly these gradients knows better what is wrong than the general rules.
  static void ask_suspects(const OpFunction& f, const Exercise& e, const std::vector<Tensor>& values,
                           Diagnosis& d) {
    std::vector<Tensor> yours = gradients(f, values);
    for (const Suspect& s : e.suspects) {
      std::vector<Tensor> theirs = gradients(s.op, values);
      bool same = true;
      for (size_t i = 0; i < yours.size(); ++i)
        same = same && (!yours[i].defined() || all_close(yours[i], theirs[i], 1e-7, 1e-9));
      if (!same) continue;
      d.sentence = s.kind + "\n" + s.sentence;
      return;
    }
  }

  int report(const Diagnosis& d, const std::vector<CheckInput>& inputs) {
    if (d.inputs.empty() && !d) return failed(name_of(d.mistake), sentence_case(d.sentence), "");
    const InputDiagnosis* shown = nullptr;
    double worst = 0;
    size_t name_width = 0, shape_width = 0;
    auto words_of = [&](const std::string& name) {
      for (const CheckInput& in : inputs)
        if (in.name == name) return in.words;
      return std::vector<std::string>();
    };
    // The picture is of the worst input; of wrong ones rather of one whose rows are words.
    auto interest = [&](const InputDiagnosis& in) {
      bool wrong = in.worst_error > options_.diagnosis.tolerance, labelled = !words_of(in.name).empty();
      return std::pair(wrong ? 1 + labelled : 0, wrong || !labelled ? in.worst_error : 1.0);
    };
    for (const InputDiagnosis& in : d.inputs) {
      if (!shown || interest(in) > interest(*shown)) shown = &in;
      worst = gradus::worse(worst, in.worst_error);
      name_width = std::max(name_width, in.name.size());
      shape_width = std::max(shape_width, in.analytic.shape().str().size());
      log_.add(in.name, in.analytic, in.numeric, "numeric", words_of(in.name), in.worst_error,
               options_.diagnosis.tolerance, in.floor);
    }
    if (shown) {
      std::string shape = shown->analytic.shape().str();
      print("  " + toned("the gradient of " + shown->name + " " + shape, Tone::quiet, style_) + "\n");
      Picture picture{shown->name,           shown->analytic, shown->numeric,
                      words_of(shown->name), "numeric",       options_.diagnosis.tolerance,
                      shown->floor};
      print(draw(picture, style_) + "\n");
    }
    for (const InputDiagnosis& in : d.inputs) {
      bool wrong = in.worst_error > options_.diagnosis.tolerance, idle = !wrong && without_influence(in);
      Tone tone = wrong ? Tone::bad : idle ? Tone::quiet : Tone::good;
      std::string line = fmt::format("{:<{}} {:<{}}  largest relative error {:.1e}", in.name, name_width,
                                     in.analytic.shape().str(), shape_width, in.worst_error);
      if (idle) line += "   no influence";
      if (wrong)
        line += in.mistake == Mistake::unknown ? "   wrong" : std::string("   ") + name_of(in.mistake);
      print("  " + toned(wrong ? "✗" : idle ? "○" : "✓", tone, style_) + " " + line + "\n");
    }
    print("\n");
    if (!d) {
      size_t cut = d.sentence.find('\n');  // kind and sentence of a suspect
      if (cut != std::string::npos) return failed(d.sentence.substr(0, cut), d.sentence.substr(cut + 1), "");
      return failed(name_of(d.mistake), sentence_case(d.sentence) + where_to_look(d), d.name);
    }
    const char* what = options_.exercise.empty() ? "the gradients agree" : "right: agrees";
    std::string line = fmt::format("✓ {} with finite differences, worst {:.1e}", what, worst);
    print("  " + toned(line, Tone::good, style_) + "\n\n");
    return 0;
  }

  // When no rule explains it: which gradients are right tells which lines are.
  static std::string where_to_look(const Diagnosis& d) {
    std::string right, wrong;
    for (const InputDiagnosis& in : d.inputs) {
      std::string& names = in.mistake == Mistake::none ? right : wrong;
      names += (names.empty() ? "" : ", ") + in.name;
    }
    if (d.mistake != Mistake::unknown || d.inputs.size() < 2) return "";
    if (right.empty()) return " All gradients are wrong: begin with what they have in common.";
    return fmt::format(" Right: {}. Wrong: {}. What do their lines not share?", right, wrong);
  }

  static bool without_influence(const InputDiagnosis& in) {
    for (const Tensor* t : {&in.analytic, &in.numeric})
      for (int64_t i = 0; i < t->numel(); ++i)
        if (std::abs(t->at(i)) > 1e-12) return false;  // NaN is an element that was not looked at
    return true;
  }

  // Of a model every parameter should matter.
  int ignored(const Diagnosis& d) {
    std::string names;
    size_t count = 0;
    for (const InputDiagnosis& in : d.inputs)
      if (without_influence(in) && ++count <= 4) names += (names.empty() ? "" : ", ") + in.name;
    if (count == 0) return 0;
    if (count > 4) names += fmt::format(" and {} more", count - 4);
    std::string sentence = fmt::format(
        "The result does not depend on {}: no gradient arrives there, and no training will ever move them. Is "
        "that part of the model wired in?",
        names);
    return failed("ignored", sentence, "");
  }

  static std::string sentence_case(std::string text) {
    if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
    if (!text.empty() && text.back() != '.' && text.back() != '?' && text.back() != ')') text += '.';
    return text;
  }

  const CheckOptions& options_;
  PictureStyle style_;
  CheckLog log_;
};

}  // namespace

int check(const std::string& title, const OpFunction& f, const std::vector<CheckInput>& inputs,
          const CheckOptions& options) {
  return Checker(title, options).run(f, inputs);
}

int check_model(const std::string& title, const std::function<Var()>& f,
                const std::vector<NamedParameter>& parameters, const CheckOptions& options) {
  return Checker(title, options).run(f, parameters);
}

int expect(bool holds, const std::string& what, const std::string& otherwise) {
  PictureStyle style = style_of_stdout();
  std::string line = "  " + toned((holds ? "✓ " : "✗ ") + what, holds ? Tone::good : Tone::bad, style) + "\n";
  if (!holds) line += wrapped(otherwise, std::min(style.width, 92), 4);
  line += "\n";
  std::fwrite(line.data(), 1, line.size(), stdout);
  return !holds;
}

int64_t Row::checked(const Index& k, int64_t size) {
  if (k.i >= 0 && k.i < size) return k.i;
  // Not fail(): within a backward it names the line of the op.
  throw Error(fmt::format("[index] {} is out of range: there are {}, from 0 to {} ({})", k.i, size, size - 1,
                          to_string(k.at)));
}

double dot(const Row& a, const Row& b, const Index& n) {
  if (n.i > a.size() || n.i > b.size())
    throw Error(fmt::format("[dot] {} numbers are wanted of rows of {} and {} ({})", n.i, a.size(), b.size(),
                            to_string(n.at)));
  double sum = 0;
  for (int64_t k = 0; k < n.i; ++k) sum += a[k] * b[k];
  return sum;
}

Tensor zeros(const Shape& shape) { return Tensor::zeros(shape, DType::f64); }

Tensor random(const Shape& shape, uint64_t seed) {
  Rng rng(seed);
  return Tensor::uniform(shape, -1, 1, rng, DType::f64);
}

std::vector<Tensor> reversals(int64_t T, int64_t B, Rng& rng) {
  Tensor source({T, B}, DType::i32), targets({T, B}, DType::i32), inputs = Tensor::zeros({T, B}, DType::i32);
  for (int64_t i = 0; i < T * B; ++i) source.set(i, static_cast<double>(1 + rng.below(6)));
  for (int64_t t = 0; t < T; ++t) targets.row(t).copy_from(source.row(T - 1 - t));
  for (int64_t t = 1; t < T; ++t) inputs.row(t).copy_from(targets.row(t - 1));
  return {source, inputs, targets};
}

}  // namespace lens
