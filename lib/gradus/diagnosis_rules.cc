#include <gradus/diagnosis_rules.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include <gradus/differences.h>

namespace gradus {
namespace {

// A hypothesis explains the difference when it leaves this little of it, relative to the largest derivative.
constexpr double kExplained = 1e-4;

bool small(double v, const Evidence& e) { return std::abs(v) <= kExplained * e.scale; }

template <class F>
bool everywhere(const Evidence& e, F holds) {
  for (int64_t k = 0; k < e.numeric.rows; ++k)
    for (int64_t c = 0; c < e.numeric.cols; ++c)
      if (!holds(k, c)) return false;
  return true;
}

// True when analytic = expected(k, c) everywhere.
template <class F>
bool fits(const Evidence& e, F expected) {
  return everywhere(e, [&](auto k, auto c) { return small(e.a(k, c) - expected(k, c), e); });
}

std::string list_of(const Evidence& e, const std::vector<int64_t>& positions) {
  std::string text;
  for (size_t i = 0; i < positions.size() && i < 4; ++i)
    text += (i ? ", " : "") + e.name + element_name(e.in, positions[i]);
  return positions.size() > 4 ? fmt::format("{} and {} more", text, positions.size() - 4) : text;
}

std::optional<Finding> kink(const Evidence& e, double tolerance) {
  bool any = false;
  bool bent = everywhere(e, [&](auto k, auto c) {
    double a = e.a(k, c), b = e.b(k, c), bend = std::abs(e.bend.at(k, c));
    if (relative_error(a, b, e.floor) <= tolerance) return true;
    any = true;
    // Central differences lie between the slopes of both sides; so must a right gradient at a kink.
    return bend >= 1e-3 * std::max(e.floor, std::abs(b)) && std::abs(a - b) <= 0.51 * bend;
  });
  if (!any || !bent) return {};
  return Finding(Mistake::kink, "the function has a kink there (relu, max, abs?): move the point");
}

std::optional<Finding> not_connected(const Evidence& e, double) {
  if (!fits(e, [](auto, auto) { return 0.0; })) return {};
  if (!e.reached)
    return Finding(Mistake::not_connected, "no gradient reached it: the graph is not connected");
  return Finding(Mistake::not_connected,
                 "its gradient is zero, but the result depends on it: does the backward add to every input? "
                 "Is there a 1/N of whole numbers in it? That is 0; 1.0 / N is not");
}

// Evidence::a or b.
using Entry = double (Evidence::*)(int64_t k, int64_t c) const;

// The elements whose columns are wrong, if all `entry`s of these columns are 0; none otherwise.
std::vector<int64_t> wrong_where_zero(const Evidence& e, Entry entry) {
  std::vector<int64_t> wrong;
  for (int64_t c = 0; c < e.numeric.cols; ++c) {
    bool zero = true, right = true;
    for (int64_t k = 0; k < e.numeric.rows; ++k) {
      zero = zero && small((e.*entry)(k, c), e);
      right = right && small(e.a(k, c) - e.b(k, c), e);
    }
    if (right) continue;
    if (!zero) return {};
    wrong.push_back(e.element(c));
  }
  return wrong;
}

std::optional<Finding> mask_leak(const Evidence& e, double) {
  std::vector<int64_t> leaking = wrong_where_zero(e, &Evidence::b);
  if (leaking.empty()) return {};
  return Finding(Mistake::mask_leak,
                 "a gradient leaks to elements that have no influence on the result (masked or padded "
                 "positions?): {}",
                 list_of(e, leaking));
}

std::optional<Finding> incomplete(const Evidence& e, double) {
  std::vector<int64_t> missing = wrong_where_zero(e, &Evidence::a);
  if (missing.empty() || static_cast<int64_t>(missing.size()) == e.numeric.cols) return {};
  return Finding(
      Mistake::incomplete,
      "some elements receive no gradient, the others the right one (does a loop end too early?): {}",
      list_of(e, missing));
}

// What a factor may come from: a size, its root, or a number from calculus.
std::string origin_of(double c, const Evidence& e) {
  auto near = [&](double v) { return std::abs(c - v) < 1e-3 * std::abs(v); };
  if (near(0.5)) return " (1/2: a square, or a value used twice?)";
  if (near(2)) return " (2: added twice?)";
  for (const auto& [shape, which] :
       {std::pair<const Shape*, const char*>{&e.out, "result"}, {&e.in, "input"}})
    for (int axis = 0; axis < shape->dims(); ++axis) {
      double n = static_cast<double>((*shape)[axis]);
      if (n < 2) continue;
      std::string where = fmt::format("the size of axis {} of the {} {}", axis, which, shape->str());
      if (near(1 / n)) return fmt::format(" (1/{}: {}; a mean instead of a sum?)", n, where);
      if (near(n)) return fmt::format(" ({}: {}; a sum instead of a mean?)", n, where);
      if (near(1 / std::sqrt(n)) || near(std::sqrt(n)))
        return fmt::format(
            " (the root of {}: {}; is the scale of scores applied once too often or not at all?)", n, where);
    }
  for (int i = 0; i < e.in.dims(); ++i)
    for (int j = 0; j < e.in.dims(); ++j)
      if (e.in[i] != e.in[j] && near(static_cast<double>(e.in[i]) / static_cast<double>(e.in[j])))
        return fmt::format(
            " ({}/{}: divided by the size of axis {} of the input {} instead of that of axis {}?)", e.in[i],
            e.in[j], j, e.in.str(), i);
  return "";
}

std::optional<Finding> factor(const Evidence& e, double) {
  double ab = 0, bb = 0;
  for (int64_t k = 0; k < e.numeric.rows; ++k)
    for (int64_t c = 0; c < e.numeric.cols; ++c) ab += e.a(k, c) * e.b(k, c), bb += e.b(k, c) * e.b(k, c);
  const double ratio = ab / bb;
  if (bb == 0 || !fits(e, [&](auto k, auto c) { return ratio * e.b(k, c); })) return {};
  if (std::abs(ratio + 1) < 1e-3) return Finding(Mistake::sign, "it has the wrong sign everywhere");
  return Finding(Mistake::factor, "it is {:.6g} times what it should be{}", ratio, origin_of(ratio, e));
}

std::optional<Finding> swapped(const Evidence& e, const std::vector<Evidence>& others) {
  for (const Evidence& o : others)
    if (o.name != e.name && o.in == e.in && o.elements == e.elements &&
        fits(e, [&](auto k, auto c) { return o.b(k, c); }))
      return Finding(Mistake::swapped, "it is the gradient of {}: are the two inputs exchanged?", o.name);
  return {};
}

Shape turned(const Shape& shape, int i, int j) {
  Shape out = shape;
  out.set(i, shape[j]);
  out.set(j, shape[i]);
  return out;
}

// Where the element at `position` is when two axes are exchanged and the numbers are read in the old shape.
int64_t exchanged(const Shape& shape, int i, int j, int64_t position) {
  const Shape to = turned(shape, i, j);
  int64_t out = 0;
  for (int axis = 0; axis < shape.dims(); ++axis) {
    int from = axis == i ? j : axis == j ? i : axis;
    out += along(shape, from, position) * to.stride(axis);
  }
  return out;
}

std::optional<Finding> transposed(const Evidence& e, double) {
  for (int i = 0; i < e.in.dims(); ++i)
    for (int j = i + 1; j < e.in.dims(); ++j)
      if (everywhere(e, [&](auto k, auto c) {
            return small(e.analytic.at(k, exchanged(e.in, i, j, e.element(c))) - e.b(k, c), e);
          }))
        return Finding(Mistake::transposed, "it is transposed: axes {} and {} are exchanged", i, j);
  for (int i = 0; e.each_output && i < e.out.dims(); ++i)
    for (int j = i + 1; j < e.out.dims(); ++j)
      for (const Shape& shape : {e.out, turned(e.out, i, j)})  // to and fro
        if (fits(e, [&](auto k, auto c) { return e.b(exchanged(shape, i, j, k), c); }))
          return Finding(Mistake::transposed, "dy is transposed: its axes {} and {} are exchanged", i, j);
  return {};
}

std::optional<Finding> softmax_diagonal(const Evidence& e, double) {
  if (!e.each_output || e.in != e.out || e.numeric.cols != e.analytic.cols) return {};
  bool beside = false, all_equal = true, all_outputs = true;
  for (int64_t k = 0; k < e.numeric.rows; ++k) {
    double sum = 0;
    for (int64_t c = 0; c < e.numeric.cols; ++c) {
      sum += e.b(k, c);
      if (k == c) continue;
      if (!small(e.a(k, c), e)) return {};
      beside = beside || !small(e.b(k, c), e);
    }
    if (!small(sum, e)) return {};  // of a softmax each row of J sums to 0
    all_equal = all_equal && small(e.a(k, k) - e.b(k, k), e);
    all_outputs = all_outputs && small(e.a(k, k) - e.output[static_cast<size_t>(k)], e);
  }
  if (!beside || (!all_equal && !all_outputs)) return {};
  const char* compete = "outputs that sum to 1 compete, so that raising one lowers the others";
  if (!all_equal) return Finding(Mistake::softmax_diagonal, "it is dy y without - y (dy . y): {}", compete);
  return Finding(Mistake::softmax_diagonal,
                 "only the diagonal of the Jacobian is there, y (1 - y): {}; dx = y (dy - (dy . y))",
                 compete);
}

// The places along an axis of dy with an `entry` in column c that is not 0.
std::set<int64_t> places(const Evidence& e, int axis, Entry entry, int64_t c) {
  std::set<int64_t> out;
  for (int64_t k = 0; k < e.numeric.rows; ++k)
    if (!small((e.*entry)(k, c), e)) out.insert(along(e.out, axis, k));
  return out;
}

// Along an axis of dy, of all contributions to an element only one is there.
std::optional<Finding> one_contribution(const Evidence& e, double) {
  for (int axis = 0; e.each_output && axis < e.out.dims(); ++axis) {
    if (e.out[axis] < 2) continue;
    bool fit = true, all_first = true, all_last = true, all_equal = true, full = true, one_place = true;
    int64_t fixed = -1;
    for (int64_t c = 0; c < e.numeric.cols && fit; ++c) {
      std::set<int64_t> contribute = places(e, axis, &Evidence::b, c);
      std::set<int64_t> present = places(e, axis, &Evidence::a, c);
      fit = present.size() == (contribute.empty() ? 0 : 1);
      if (!fit || contribute.empty()) continue;
      const int64_t kept = *present.begin(), first = *contribute.begin(), last = *contribute.rbegin();
      all_first = all_first && kept == first;
      all_last = all_last && kept == last;
      full = full && static_cast<int64_t>(contribute.size()) == e.out[axis];
      one_place = one_place && (fixed < 0 || fixed == kept);
      fixed = kept;
      for (int64_t k = 0; k < e.numeric.rows; ++k) {
        const int64_t place = along(e.out, axis, k), other = k + (first - place) * e.out.stride(axis);
        fit = fit && small(e.a(k, c) - (place == kept ? e.b(k, c) : 0), e);
        // The same derivative at every place is what broadcasting gives.
        all_equal = all_equal && small(e.b(k, c) - e.b(other, c), e);
      }
    }
    if (!fit || fixed < 0) continue;
    if (all_last)
      return Finding(Mistake::overwritten,
                     "contributions along axis {} of dy are overwritten instead of added (= where += is "
                     "needed): only the last one is there",
                     axis);
    const bool broadcast = full && all_equal && one_place;
    if (all_first && !broadcast)
      return Finding(Mistake::overwritten,
                     "of the contributions along axis {} of dy only the first one is there: is the sum over "
                     "that axis missing, or does = stand where += is needed, in a loop that runs backwards?",
                     axis);
    if (one_place)
      return Finding(Mistake::broadcast_sum,
                     "the sum over axis {} of dy is missing{}: only entry {} of {} is there", axis,
                     broadcast ? ", along which it was broadcast" : "", fixed, e.out[axis]);
  }
  return {};
}

// Some entries along an axis of dy send nothing, the others what they should.
std::optional<Finding> skipped(const Evidence& e, double) {
  for (int axis = 0; e.each_output && axis < e.out.dims(); ++axis) {
    std::set<int64_t> send, should;
    for (int64_t c = 0; c < e.numeric.cols; ++c) {
      send.merge(places(e, axis, &Evidence::a, c));
      should.merge(places(e, axis, &Evidence::b, c));
    }
    std::vector<int64_t> missing;
    std::set_difference(should.begin(), should.end(), send.begin(), send.end(), std::back_inserter(missing));
    if (missing.empty() || send.empty()) continue;
    if (fits(e, [&](auto k, auto c) { return send.count(along(e.out, axis, k)) ? e.b(k, c) : 0.0; }))
      return Finding(Mistake::incomplete,
                     "along axis {} of dy nothing comes from entry {}, the others are right: does a loop "
                     "begin late or end early?",
                     axis, fmt::join(missing, ", "));
  }
  return {};
}

std::optional<Finding> shifted(const Evidence& e, double) {
  for (int axis = 0; axis < e.in.dims(); ++axis)
    for (int64_t by : {-1, 1}) {
      int64_t compared = 0;
      bool fit = everywhere(e, [&](auto k, auto c) {
        int64_t place = along(e.in, axis, e.element(c)) + by;
        if (place < 0 || place >= e.in[axis]) return true;
        compared += !small(e.b(k, c), e);
        return small(e.analytic.at(k, e.element(c) + by * e.in.stride(axis)) - e.b(k, c), e);
      });
      if (fit && compared > 1)
        return Finding(Mistake::shifted, "it is shifted by {} along axis {}: is an index off by one?", by,
                       axis);
    }
  return {};
}

}  // namespace

std::string element_name(const Shape& shape, int64_t position) {
  std::vector<int64_t> index;
  for (int axis = 0; axis < shape.dims(); ++axis) index.push_back(along(shape, axis, position));
  return index.empty() ? std::string() : fmt::format("[{}]", fmt::join(index, ","));
}

Finding explain(const Evidence& e, const std::vector<Evidence>& others, double tolerance) {
  if (auto found = kink(e, tolerance)) return *found;
  // Of what is nearly right any of these might fit.
  if (!fits(e, [&](auto k, auto c) { return e.b(k, c); })) {
    for (auto rule : {not_connected, mask_leak, incomplete, factor})
      if (auto found = rule(e, tolerance)) return *found;
    if (auto found = swapped(e, others)) return *found;
    for (auto rule : {transposed, softmax_diagonal, one_contribution, skipped, shifted})
      if (auto found = rule(e, tolerance)) return *found;
  }
  if (auto found = wrong_slope(e, others)) return *found;
  return {Mistake::unknown, "no known kind of mistake explains the difference"};
}

const char* name_of(Mistake mistake) {
  constexpr const char* names[] = {"none",
                                   "float used",
                                   "not finite",
                                   "not deterministic",
                                   "kink",
                                   "not connected",
                                   "not linear in dy",
                                   "mask leak",
                                   "incomplete",
                                   "sign",
                                   "factor",
                                   "inputs swapped",
                                   "transposed",
                                   "softmax diagonal",
                                   "missing sum over a broadcast axis",
                                   "overwritten",
                                   "shifted",
                                   "wrong slope",
                                   "sum over the wrong axis",
                                   "cross terms",
                                   "invariant broken",
                                   "unknown"};
  return names[static_cast<int>(mistake)];
}

}  // namespace gradus
