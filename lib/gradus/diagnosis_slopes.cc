// The rules that read a Jacobian number by number: factors of slopes, and what the elements of a row send each
// other. They say only what holds of every derivative that was looked at.

#include <gradus/diagnosis_rules.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

namespace gradus {
namespace {

constexpr double kAgreement = 1e-6;

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

// What derivatives of functions of one number are made of; {0} stands for the input's name.
struct Term {
  const char* text;
  double (*of)(double x, double y);
};
constexpr Term kTerms[] = {
    {"y", [](double, double y) { return y; }},
    {"{0}", [](double x, double) { return x; }},
    {"1 - y", [](double, double y) { return 1 - y; }},
    {"1 - y^2", [](double, double y) { return 1 - y * y; }},
    {"y (1 - y)", [](double, double y) { return y * (1 - y); }},
    {"y^2", [](double, double y) { return y * y; }},
    {"s({0})", [](double x, double) { return logistic(x); }},
    {"1 - s({0})", [](double x, double) { return 1 - logistic(x); }},
    {"s({0}) (1 - s({0}))", [](double x, double) { return logistic(x) * (1 - logistic(x)); }},
    {"tanh({0})", [](double x, double) { return std::tanh(x); }},
    {"1 - tanh({0})^2", [](double x, double) { return 1 - std::tanh(x) * std::tanh(x); }},
    {"tanh({0}) (1 - tanh({0}))", [](double x, double) { return std::tanh(x) * (1 - std::tanh(x)); }},
    {"1 - {0}^2", [](double x, double) { return 1 - x * x; }},
    {"1 + {0}^2", [](double x, double) { return 1 + x * x; }},
    {"{0} (1 - {0})", [](double x, double) { return x * (1 - x); }},
    {"1 - {0}", [](double x, double) { return 1 - x; }},
    {"1 + {0}", [](double x, double) { return 1 + x; }},
    {"{0}^2", [](double x, double) { return x * x; }},
    {"exp(y)", [](double, double y) { return std::exp(y); }},
    {"exp({0} - y)", [](double x, double y) { return std::exp(x - y); }},
    {"log({0})", [](double x, double) { return std::log(x); }},
    {"sin({0})", [](double x, double) { return std::sin(x); }},
    {"cos({0})", [](double x, double) { return std::cos(x); }},
    {"1 + y", [](double, double y) { return 1 + y; }},
    {"1 + y^2", [](double, double y) { return 1 + y * y; }}};

// A derivative that was compared: of output k by input element n, and the numbers that belong to it.
struct Place {
  int64_t k, n;
  double yours, right;
};
using Places = std::vector<Place>;

// A number for each place, and what it is called.
struct Factor {
  std::string text;
  std::vector<double> at;
};

// Where t lies in a tensor of shape `small` that was broadcast to `large`; -1 where it cannot have been.
int64_t within(const Shape& small, const Shape& large, int64_t position) {
  if (small.dims() > large.dims()) return -1;
  int64_t out = 0;
  for (int axis = 0; axis < small.dims(); ++axis) {
    int in_large = axis + large.dims() - small.dims();
    if (small[axis] != large[in_large] && small[axis] != 1) return -1;
    if (small[axis] > 1) out += along(large, in_large, position) * small.stride(axis);
  }
  return out;
}

class Reading {
 public:
  Reading(const Evidence& e, const std::vector<Evidence>& others) : e_(e), others_(others) {
    alike_ = e.in == e.out && e.numeric.cols == e.analytic.cols;
    for (int64_t k = 0; k < e.numeric.rows; ++k)
      for (int64_t c = 0; c < e.numeric.cols; ++c) {
        Place p{k, e.element(c), e.a(k, c), e.b(k, c)};
        if (std::abs(p.yours) <= nothing() && std::abs(p.right) <= nothing()) continue;
        (alike_ && e.each_output && k != p.n ? beside_ : own_).push_back(p);
        all_.push_back(p);
      }
    axes_ = axes_of(&Place::right);
  }

  std::optional<Finding> find() const {
    if (!std::ranges::all_of(all_, [](const Place& p) { return std::isfinite(p.yours); })) return {};
    using R = Reading;
    using Rules = std::vector<std::optional<Finding> (R::*)() const>;
    const Rules for_elements{&R::by_factor, &R::by_product, &R::by_own, &R::by_invariant};
    const Rules for_rows{&R::by_axis, &R::by_row,     &R::by_factor,   &R::by_term,
                         &R::by_own,  &R::by_weights, &R::by_invariant};
    for (auto rule : beside_.empty() ? for_elements : for_rows)
      if (auto found = (this->*rule)()) return found;
    return {};
  }

 private:
  // Differences do not tell such a number from 0.
  double nothing() const { return kAgreement * e_.floor; }
  bool near(double a, double b) const {
    return std::abs(a - b) <= kAgreement * std::max({std::abs(a), std::abs(b), e_.floor});
  }
  double x(int64_t i) const { return e_.input[static_cast<size_t>(i)]; }
  double y(int64_t i) const { return e_.output[static_cast<size_t>(i)]; }

  template <class... Args>
  Finding finding(fmt::format_string<Args...> text, Args&&... args) const {
    return {beside_.empty() ? Mistake::slope : Mistake::cross_terms, text, std::forward<Args>(args)...};
  }

  // The terms of x and y at each place, and the other inputs; with `of_output` x and y where dy stands.
  std::vector<Factor> factors(const Places& places, bool of_output) const {
    std::vector<Factor> out;
    auto add = [&](std::string text, auto value) {
      Factor f{std::move(text), {}};
      for (const Place& p : places) f.at.push_back(value(p));
      if (std::ranges::all_of(f.at, [](double v) { return std::isfinite(v); })) out.push_back(std::move(f));
    };
    const bool no_y = !alike_ && !e_.each_output;  // random sums are of no output
    for (const Term& t : kTerms)
      add(fmt::format(fmt::runtime(t.text), e_.name), [&](const Place& p) {
        return t.of(x(of_output ? p.k : p.n), no_y ? NAN : y(of_output || !alike_ ? p.k : p.n));
      });
    for (const Evidence& o : others_)
      if (o.name != e_.name && (o.in == e_.in || (e_.each_output && within(o.in, e_.out, 0) >= 0)))
        add(o.name, [&](const Place& p) {
          return o.input[static_cast<size_t>(o.in == e_.in ? p.n : within(o.in, e_.out, p.k))];
        });
    return out;
  }

  // Whether yours times `left` is c times the right one times `right`, everywhere. Either may be missing: 1.
  bool agree(const Places& places, const Factor* left, const Factor* right, double c = 1) const {
    int64_t seen = 0;
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < places.size(); ++i) {
      double l = left ? left->at[i] : 1, r = c * (right ? right->at[i] : 1);
      double one = places[i].yours * l, two = places[i].right * r;
      double size = std::max({std::abs(one), std::abs(two), e_.floor * std::abs(l), e_.floor * std::abs(r)});
      if (!(std::abs(one - two) <= kAgreement * size)) return false;
      if (std::abs(two) < 0.1 * e_.floor) continue;
      ++seen;
      low = std::min(low, r / l);
      high = std::max(high, r / l);
    }
    // Of factors that hardly differ from a number the rule of numbers has spoken.
    return seen >= (c == 1 ? 3 : 4) && high - low > 1e-3 * std::max(std::abs(low), std::abs(high));
  }

  // The number c that agree() would need, from the largest derivative.
  static double constant(const Places& places, const Factor* left, const Factor* right) {
    double c = 1, largest = 0;
    for (size_t i = 0; i < places.size(); ++i) {
      double two = places[i].right * (right ? right->at[i] : 1);
      if (std::abs(two) > largest)
        largest = std::abs(two), c = places[i].yours * (left ? left->at[i] : 1) / two;
    }
    return std::isfinite(c) && c != 0 ? c : 1;
  }

  static std::string besides(double c) {
    if (c == 1) return "";
    if (std::abs(c + 1) < 1e-4) return ", and the sign is wrong";
    return fmt::format(", and it is {:.4g} times as large besides", c);
  }

  // yours = right without a factor, with one too many, or with one in place of another.
  std::optional<Finding> by_factors(const Places& places, bool of_output, const std::string& what) const {
    const std::vector<Factor> known = factors(places, of_output);
    for (bool with_number : {false, true})
      for (const Factor& f : known)
        for (bool lacks : {true, false}) {
          const Factor *left = lacks ? &f : nullptr, *right = lacks ? nullptr : &f;
          const double c = with_number ? constant(places, left, right) : 1;
          if (!agree(places, left, right, c)) continue;
          const char* text = lacks ? "{} lacks the factor {}{}"
                                   : "{} has a factor {} too many, or the division by it is missing{}";
          return finding(fmt::runtime(text), what, f.text, besides(c));
        }
    for (size_t i = 0; i < known.size(); ++i)  // what is more usual stands in front
      for (size_t j = 0; j < i; ++j)
        for (auto [is, should] : {std::pair(&known[i], &known[j]), std::pair(&known[j], &known[i])})
          if (agree(places, should, is))
            return finding("{} has {} where {} belongs", what, is->text, should->text);
    return {};
  }

  // y = x f(x): dy f(x) comes straight, dy x f'(x) through f.
  std::optional<Finding> by_product() const {
    if (!alike_ || !e_.each_output || own_.size() < 3) return {};
    Places through = own_;
    bool only_straight = true, no_straight = true, subtracted = true, any = false;
    for (Place& p : through) {
      const double straight = y(p.n) / x(p.n), f = p.right - straight;
      any = any || !near(p.right, straight);
      only_straight = only_straight && near(p.yours, straight);
      no_straight = no_straight && near(p.yours, f);
      subtracted = subtracted && near(p.yours, straight - f);
      p.yours -= straight;
      p.right = f;
    }
    if (!any) return {};
    const std::string twice = fmt::format("with {} used twice, as in y = {} f({})", e_.name, e_.name, e_.name);
    if (only_straight) return finding("{}: it is dy f alone, and what goes through f is missing", twice);
    if (no_straight) return finding("{}: only what goes through f is there, and dy f is missing", twice);
    if (subtracted) return finding("{}: what goes through f is subtracted where it must be added", twice);
    return by_factors(through, false, twice + ": what goes through f");
  }

  // The axes along which elements reach others.
  std::vector<int> axes_of(double Place::*entry) const {
    std::vector<int> out;
    for (int axis = 0; axis < e_.in.dims(); ++axis)
      if (std::ranges::any_of(beside_, [&](const Place& p) {
            return std::abs(p.*entry) > 1e-4 * e_.scale && place(p.k, axis) != place(p.n, axis);
          }))
        out.push_back(axis);
    return out;
  }
  int64_t place(int64_t position, int axis) const { return along(e_.in, axis, position); }

  std::optional<Finding> by_axis() const {
    std::vector<int> yours = axes_of(&Place::yours);
    if (yours.size() != 1 || axes_.size() != 1 || yours == axes_) return {};
    return Finding(Mistake::wrong_axis, "it sums along axis {}, and must along axis {}", yours[0], axes_[0]);
  }

  // Where the row begins that the element stands in. It lies along axes_.
  size_t row(int64_t position) const {
    for (int axis : axes_) position -= place(position, axis) * e_.in.stride(axis);
    return static_cast<size_t>(position);
  }
  std::string line_of(int axis) const {
    if (axis + 1 == e_.in.dims()) return "row";
    return e_.in.dims() == 2 ? "column" : fmt::format("line along axis {}", axis);
  }
  std::string row_name() const { return axes_.size() == 1 ? line_of(axes_[0]) : "row"; }

  // yours = right times a number for each row.
  std::optional<Finding> by_row() const {
    std::map<size_t, Places> rows;
    for (const Place& p : all_) rows[row(p.k)].push_back(p);
    double low = INFINITY, high = -INFINITY;
    for (const auto& [first, places] : rows) {
      const double c = constant(places, nullptr, nullptr);
      for (const Place& p : places)
        if (!near(p.yours, c * p.right)) return {};
      low = std::min(low, c);
      high = std::max(high, c);
    }
    if (rows.size() < 2) return {};
    return Finding(Mistake::slope,
                   "it is right but for a factor of each {0}, from {1:.3g} to {2:.3g}: is a division by the "
                   "{0}'s sum, length or deviation missing?",
                   row_name(), low, high);
  }

  // Of dx = ... - v (dy . u) this term: missing, with the wrong sign, or of another size. What is missing at
  // (k, n) is then u_k v_n times one number a row.
  std::optional<Finding> by_term() const {
    if (axes_.empty()) return {};
    const std::pair<std::string, std::function<double(int64_t)>> weights[] = {
        {"", [](int64_t) { return 1.0; }},
        {"y", [&](int64_t i) { return y(i); }},
        {"exp(y)", [&](int64_t i) { return std::exp(y(i)); }},
        {e_.name, [&](int64_t i) { return x(i); }}};
    for (const auto& [v_name, v] : weights)
      for (const auto& [u_name, u] : weights) {
        std::vector<double> size(static_cast<size_t>(e_.in.numel())), largest(size.size());
        for (const Place& p : all_)
          if (double w = u(p.k) * v(p.n), &most = largest[row(p.k)]; std::abs(w) > most)
            most = std::abs(w), size[row(p.k)] = (p.right - p.yours) / w;
        bool fit = true;
        for (const Place& p : all_)
          fit = fit && row(p.k) == row(p.n) && near(p.right, p.yours + size[row(p.k)] * u(p.k) * v(p.n));
        if (!fit) continue;
        std::string term = "the term with " + v_name + (v_name.empty() ? "" : " ") +
                           (u_name.empty() ? "sum(dy)" : "(dy . " + u_name + ")");
        if (std::ranges::all_of(beside_, [&](const Place& p) { return near(p.yours, -p.right); }))
          return finding(
              "{} has the wrong sign: what is averaged over a {} is added (+) where it must be subtracted "
              "(-), or the other way round",
              term, row_name());
        const bool missing = std::ranges::all_of(beside_, [&](const Place& p) { return near(p.yours, 0); });
        return finding(
            "{}, summed over a {}, is missing{}", term, row_name(),
            missing ? ": raising one element moves the results of the others" : " or of the wrong size");
      }
    return {};
  }

  // yours = right + or - a term, in what each element sends itself; what it sends others is right.
  std::optional<Finding> by_own() const {
    auto equal = [&](const Place& p) { return near(p.yours, p.right); };
    if ((!e_.each_output && alike_) || own_.size() < 3 || !std::ranges::all_of(beside_, equal)) return {};
    std::string what = "what the elements of a " + row_name() + " send each other is right; what each sends ";
    what = beside_.empty() ? "it is" : what + "itself, before the sum, is";
    std::vector<Factor> known = factors(own_, false);
    known.push_back({"1", std::vector<double>(own_.size(), 1)});
    for (double sign : {1.0, -1.0})
      for (const Factor& f : known) {
        Places difference = own_;
        for (size_t i = 0; i < own_.size(); ++i)
          difference[i].yours -= own_[i].right, difference[i].right = sign * f.at[i];
        if (!std::ranges::all_of(difference, equal)) continue;
        const char* residual = ": dy itself is missing, as of a residual, y = x + f(x)";
        return finding("{} dy times {} too {}{}", what, f.text, sign > 0 ? "large" : "small",
                       f.text == "1" && sign < 0 ? residual : "");
      }
    if (beside_.empty()) return {};
    return finding("{} not", what);
  }

  std::optional<Finding> by_factor() const { return by_factors(all_, false, "it"); }

  // Of what goes from one element to the others: the numbers that weigh dy in the sum, and those of the sum.
  std::optional<Finding> by_weights() const {
    if (auto found = by_factors(beside_, true, "within the sum over a " + row_name() + " it")) return found;
    return by_factors(beside_, false, "the sum over a " + row_name());
  }

  // What does not change the result cannot be where the gradient points: adding a number to a whole row, or
  // scaling it. Then the sums of a row of each gradient, or those weighted with x, are 0.
  std::optional<Finding> by_invariant() const {
    if (e_.numeric.cols != e_.analytic.cols || e_.input.size() < 2) return {};
    for (int axis = e_.in.dims() - 1; axis >= 0; --axis)
      for (bool scaled : {false, true}) {
        const int64_t n = e_.in[axis], stride = e_.in.stride(axis);
        // The sum over the row that begins at `first`, in parts of its size.
        auto sum = [&](auto entry, int64_t first) {
          double total = 0, size = nothing();
          for (int64_t i = first; i < first + n * stride; i += stride) {
            double term = entry(i) * (scaled ? x(i) : 1);
            total += term;
            size += std::abs(term);
          }
          return std::pair(total,
                           std::abs(total) > 10 * kAgreement * size + static_cast<double>(n) * nothing());
        };
        bool holds = n > 1;
        int64_t broken = -1;
        double by = 0;
        for (int64_t i = 0; i < e_.in.numel() && holds; ++i) {
          if (place(i, axis) != 0) continue;
          for (int64_t k = 0; k < e_.numeric.rows; ++k)
            holds = holds && !sum([&](int64_t m) { return e_.b(k, m); }, i).second;
          auto [total, uneven] = sum([&](int64_t m) { return e_.yours[static_cast<size_t>(m)]; }, i);
          if (uneven && broken < 0) broken = i, by = total;
        }
        if (!holds || broken < 0) continue;
        const bool last = axis == e_.in.dims() - 1, flat = last || e_.in.dims() == 2;
        std::string line = line_of(axis), at;
        if (e_.in.dims() > 1) at = (flat ? " " : " from number ") + std::to_string(broken / (last ? n : 1));
        return Finding(
            Mistake::invariant,
            fmt::runtime(
                scaled ? "each {0} of the gradient times its {0} of {1} must sum to 0, as the result "
                         "does not change when a {0} of {1} is scaled; {2} of yours gives {3:.3g}"
                       : "each {0} of the gradient must sum to 0, as the result does not change when the "
                         "same number is added to a whole {0} of {1}; {2} of yours sums to {3:.3g}"),
            line, e_.name, line + at, by);
      }
    return {};
  }

  const Evidence& e_;
  const std::vector<Evidence>& others_;
  bool alike_;
  // On the diagonal of a Jacobian of equal shapes, or all; beside it; and both.
  Places own_, beside_, all_;
  std::vector<int> axes_;  // along which elements reach others
};

}  // namespace

std::optional<Finding> wrong_slope(const Evidence& e, const std::vector<Evidence>& others) {
  return Reading(e, others).find();
}

}  // namespace gradus
