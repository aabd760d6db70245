#include <fmt/core.h>
#include <gradus/diagnosis_rules.h>
#include <gradus/differences.h>
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

constexpr double kSame = 1e-9;  // of results
constexpr const char* kNotANumber =
    "NaN comes of 0 / 0, of infinity minus infinity or times 0, of the root or the logarithm of a number "
    "below 0";
constexpr const char* kInfinite =
    "Infinity comes of a division by 0, of the logarithm of 0, of exp(x) where x is above 709: a softmax takes "
    "the largest score off first";

// NaN and infinity in `what`, "the gradient of x", and what they usually come of.
struct Unbounded {
  std::string kind, sentence;  // empty: all is finite
};
Unbounded unbounded(const std::string& what, const Tensor& x) {
  int64_t nan = -1, inf = -1, first = -1, count = 0;
  for (int64_t i = x.numel() - 1; i >= 0; --i) {
    if (std::isfinite(x.at(i))) continue;
    (std::isnan(x.at(i)) ? nan : inf) = first = i;
    ++count;
  }
  if (count == 0) return {};
  std::string sentence = fmt::format("{} is {} at {} of {} places, first at {}.", what,
                                     nan < 0 ? "infinite" : inf < 0 ? "NaN" : "NaN or infinite", count,
                                     x.numel(), element_name(x.shape(), first));
  if (nan >= 0) sentence += fmt::format(" {}.", kNotANumber);
  if (inf >= 0) sentence += fmt::format(" {}.", kInfinite);
  return {nan < 0 ? "infinite" : "not a number", sentence};
}

class Checker {
 public:
  Checker(const std::string& title, const CheckOptions& options)
      : options_(options), style_(style_of_stdout()), title_(title), log_(title) {
    if (!options.brief) begin();
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
    name_unbounded(d);
    return report(d, inputs);
  }

  int look(const std::function<Var()>& f, const std::vector<NamedParameter>& parameters) {
    Diagnosis d = diagnose(f, parameters, options_.diagnosis);
    name_unbounded(d);
    return report(d, {}) || ignored(d);
  }

  void begin() {
    if (!begun_) print(toned(title_, Tone::strong, style_) + "\n\n");
    begun_ = true;
  }

  static void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

  int failed(const std::string& kind, const std::string& sentence, const std::string& where) {
    log_.fail(kind, sentence, where);
    begin();
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
    if (shaped && all_close(yours, right, kSame, kSame)) return false;
    const Suspect* suspect = nullptr;
    for (const Suspect& s : e.suspects) {
      Tensor wrong = s.op(as_vars(values)).value();
      if (!suspect && wrong.shape() == yours.shape() && all_close(yours, wrong, kSame, kSame)) suspect = &s;
    }
    if (!shaped && !suspect) return failed("wrong shape", shapes, "");
    if (!shaped) return failed(suspect->kind, shapes + " " + suspect->sentence, "the result");
    std::vector<std::string> words;
    for (const CheckInput& in : inputs)
      if (right.dims() > 0 && in.words.size() == static_cast<size_t>(right.size(0))) words = in.words;
    print(draw({"y", yours.to(DType::f64), right, words, "expected", kSame}, style_) + "\n");
    double error = 0;
    for (int64_t i = 0; i < right.numel(); ++i)
      error = worse(error, relative_error(yours.at(i), right.at(i), 1));
    log_.add("y", yours, right, "expected", words, error, kSame);
    if (suspect) return failed(suspect->kind, suspect->sentence, "the result");
    if (const Unbounded u = unbounded("The result", yours); !u.kind.empty())
      return failed(u.kind, u.sentence, "the result");
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

  // What is no number fits no rule, or one by chance.
  static void name_unbounded(Diagnosis& d) {
    for (const InputDiagnosis& in : d.inputs)
      if (const Unbounded u = unbounded("The gradient of " + in.name, in.analytic); !u.kind.empty()) {
        d.sentence = u.kind + "\n" + u.sentence;
        return;
      }
    if (d.mistake == Mistake::not_finite)
      d.sentence += std::string(": ") + (d.sentence.find("NaN") != std::string::npos ? kNotANumber : kInfinite);
  }

  int report(const Diagnosis& d, const std::vector<CheckInput>& inputs) {
    if (d.inputs.empty() && !d) return failed(name_of(d.mistake), sentence_case(d.sentence), "");
    if (d.inputs.empty())
      return failed("nothing to check", "No input holds floating numbers: does params() name all parts?", "");
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
    if (d && options_.brief) {
      print(toned("✓", Tone::good, style_) + fmt::format(" {}: worst {:.1e}\n", title_, worst));
      return 0;
    }
    const std::string what = options_.exercise.empty() ? "the gradients agree" : "right: agrees";
    const std::string verdict = fmt::format("{} with finite differences, worst {:.1e}", what, worst);
    begin();
    if (shown && !d) {
      std::string text =
          fmt::format("the gradient of {} {} under a random dy", shown->name, shown->analytic.shape().str());
      if (d.dy.numel() <= 12)
        for (int64_t i = 0; i < d.dy.numel(); ++i)
          text += fmt::format("{}{:.2f}", i ? ", " : ": ", d.dy.at(i));
      print(toned(wrapped(text, std::min(style_.width, 92), 2), Tone::quiet, style_));
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
      size_t cut = d.sentence.find('\n');  // kind and sentence of a suspect, or of what is no number
      if (cut != std::string::npos) return failed(d.sentence.substr(0, cut), d.sentence.substr(cut + 1), "");
      return failed(name_of(d.mistake), sentence_case(d.sentence) + where_to_look(d), d.name);
    }
    print("  " + toned("✓ " + verdict, Tone::good, style_) + "\n\n");
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
  std::string title_;
  bool begun_ = false;
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

Vector::Vector(const Tensor& t, Caller line) : Row(t.f64(), t.numel()), t_(t) {
  if (t.dims() > 1)
    throw Error(
        fmt::format("[vector] a vector has one axis, and this tensor is {}: Rows m(...); m[i][k] ({})",
                    t.shape().str(), to_string(line)));
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
