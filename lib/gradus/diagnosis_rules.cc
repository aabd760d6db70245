#include <gradus/diagnosis_rules.h>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include <gradus/differences.h>

namespace gradus {
namespace {

// A hypothesis explains the difference when it leaves this little of it, relative to the largest derivative.
constexpr double kExplained = 1e-4;

bool small(double v, const Evidence& e) { return std::abs(v) <= kExplained * e.scale; }

// True when analytic = expected(k, c) everywhere.
template <class F>
bool fits(const Evidence& e, F expected) {
  for (int64_t k = 0; k < e.numeric.rows; ++k)
    for (int64_t c = 0; c < e.numeric.cols; ++c)
      if (!small(e.a(k, c) - expected(k, c), e)) return false;
  return true;
}

int64_t along(const Shape& shape, int axis, int64_t position) {
  return position / shape.stride(axis) % shape[axis];
}

std::string list_of(const Evidence& e, const std::vector<int64_t>& positions) {
  std::string text;
  for (size_t i = 0; i < positions.size() && i < 4; ++i)
    text += (i ? ", " : "") + e.name + element_name(e.in, positions[i]);
  return positions.size() > 4 ? fmt::format("{} and {} more", text, positions.size() - 4) : text;
}

std::optional<Finding> kink(const Evidence& e, double tolerance) {
  bool any = false;
  for (int64_t k = 0; k < e.numeric.rows; ++k)
    for (int64_t c = 0; c < e.numeric.cols; ++c) {
      double a = e.a(k, c), b = e.b(k, c), bend = std::abs(e.bend.at(k, c));
      if (relative_error(a, b, e.floor) <= tolerance) continue;
      // Central differences lie between the slopes of both sides; so must a right gradient at a kink.
      if (!(bend >= 1e-3 * std::max(e.floor, std::abs(b)) && std::abs(a - b) <= 0.51 * bend)) return {};
      any = true;
    }
  if (!any) return {};
  return Finding{Mistake::kink, "the function has a kink there (relu, max, abs?): move the point"};
}

std::optional<Finding> not_connected(const Evidence& e, double) {
  if (!fits(e, [](auto, auto) { return 0.0; })) return {};
  return Finding{
      Mistake::not_connected,
      e.reached ? "its gradient is zero, but the result depends on it: does the backward add to every input?"
                : "no gradient reached it: the graph is not connected"};
}

// Column by column: right, or of a kind.
std::optional<Finding> mask_leak(const Evidence& e, double) {
  std::vector<int64_t> leaking;
  for (int64_t c = 0; c < e.numeric.cols; ++c) {
    bool influence = false, right = true;
    for (int64_t k = 0; k < e.numeric.rows; ++k) {
      influence = influence || !small(e.b(k, c), e);
      right = right && small(e.a(k, c) - e.b(k, c), e);
    }
    if (right) continue;
    if (influence) return {};
    leaking.push_back(e.elements[static_cast<size_t>(c)]);
  }
  if (leaking.empty()) return {};
  return Finding{
      Mistake::mask_leak,
      fmt::format("a gradient leaks to elements that have no influence on the result (masked or padded "
                  "positions?): {}",
                  list_of(e, leaking))};
}

std::optional<Finding> incomplete(const Evidence& e, double) {
  std::vector<int64_t> missing;
  for (int64_t c = 0; c < e.numeric.cols; ++c) {
    bool empty = true, right = true;
    for (int64_t k = 0; k < e.numeric.rows; ++k) {
      empty = empty && small(e.a(k, c), e);
      right = right && small(e.a(k, c) - e.b(k, c), e);
    }
    if (right) continue;
    if (!empty) return {};
    missing.push_back(e.elements[static_cast<size_t>(c)]);
  }
  if (missing.empty() || static_cast<int64_t>(missing.size()) == e.numeric.cols) return {};
  return Finding{Mistake::incomplete,
                 fmt::format("some elements receive no gradient, the others the right one (does a "
                             "loop end too early?): {}",
                             list_of(e, missing))};
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
  return "";
}

std::optional<Finding> factor(const Evidence& e, double) {
  double ab = 0, bb = 0;
  for (int64_t k = 0; k < e.numeric.rows; ++k)
    for (int64_t c = 0; c < e.numeric.cols; ++c) ab += e.a(k, c) * e.b(k, c), bb += e.b(k, c) * e.b(k, c);
  if (bb == 0) return {};
  double ratio = ab / bb;
  if (!fits(e, [&](auto k, auto c) { return ratio * e.b(k, c); })) return {};
  if (std::abs(ratio + 1) < 1e-3) return Finding{Mistake::sign, "it has the wrong sign everywhere"};
  return Finding{Mistake::factor,
                 fmt::format("it is {:.6g} times what it should be{}", ratio, origin_of(ratio, e))};
}

std::optional<Finding> swapped(const Evidence& e, const std::vector<Evidence>& others) {
  for (const Evidence& o : others)
    if (o.name != e.name && o.in == e.in && o.elements == e.elements &&
        fits(e, [&](auto k, auto c) { return o.b(k, c); }))
      return Finding{Mistake::swapped,
                     fmt::format("it is the gradient of {}: are the two inputs exchanged?", o.name)};
  return {};
}

// Where the element at `position` of a tensor of this shape ends up when two axes are exchanged and the numbers
// are read in the old shape.
int64_t exchanged(const Shape& shape, int i, int j, int64_t position) {
  Shape turned = shape;
  turned.set(i, shape[j]);
  turned.set(j, shape[i]);
  int64_t out = 0;
  for (int axis = 0; axis < shape.dims(); ++axis) {
    int from = axis == i ? j : axis == j ? i : axis;
    out += along(shape, from, position) * turned.stride(axis);
  }
  return out;
}

std::optional<Finding> transposed(const Evidence& e, double) {
  for (int i = 0; i < e.in.dims(); ++i)
    for (int j = i + 1; j < e.in.dims(); ++j) {
      bool fit = true;
      for (int64_t k = 0; k < e.numeric.rows && fit; ++k)
        for (int64_t c = 0; c < e.numeric.cols && fit; ++c)
          fit = small(e.analytic.at(k, exchanged(e.in, i, j, e.elements[static_cast<size_t>(c)])) - e.b(k, c),
                      e);
      if (fit)
        return Finding{Mistake::transposed,
                       fmt::format("it is transposed: axes {} and {} are exchanged", i, j)};
    }
  if (e.each_output)
    for (int i = 0; i < e.out.dims(); ++i)
      for (int j = i + 1; j < e.out.dims(); ++j)
        if (fits(e, [&](auto k, auto c) { return e.b(exchanged(e.out, i, j, k), c); }) ||
            fits(e, [&](auto k, auto c) {
              for (int64_t m = 0; m < e.numeric.rows; ++m)
                if (exchanged(e.out, i, j, m) == k) return e.b(m, c);
              return 0.0;
            }))
          return Finding{Mistake::transposed,
                         fmt::format("dy is transposed: its axes {} and {} are exchanged", i, j)};
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
  return Finding{
      Mistake::softmax_diagonal,
      all_equal
          ? "only the diagonal of the Jacobian is there, y (1 - y): outputs that sum to 1 compete, so "
            "that raising one lowers the others; dx = y (dy - (dy . y))"
          : "it is dy y without - y (dy . y): outputs that sum to 1 compete, so that raising one lowers "
            "the others"};
}

// Along an axis of dy, of all contributions to an element only one is there.
std::optional<Finding> one_contribution(const Evidence& e, double) {
  if (!e.each_output) return {};
  for (int axis = 0; axis < e.out.dims(); ++axis) {
    if (e.out[axis] < 2) continue;
    // Of each element: the first and the last place along the axis that contributes, and the only one that is
    // there.
    bool fit = true, all_first = true, all_last = true, all_equal = true, full = true;
    int64_t fixed = -1;
    bool one_place = true;
    for (int64_t c = 0; c < e.numeric.cols && fit; ++c) {
      std::vector<char> contributes(static_cast<size_t>(e.out[axis])), present = contributes;
      for (int64_t k = 0; k < e.numeric.rows; ++k) {
        size_t place = static_cast<size_t>(along(e.out, axis, k));
        if (!small(e.b(k, c), e)) contributes[place] = 1;
        if (!small(e.a(k, c), e)) present[place] = 1;
      }
      int64_t count = std::count(contributes.begin(), contributes.end(), 1), kept = -1;
      if (count == 0) {
        fit = std::count(present.begin(), present.end(), 1) == 0;
        continue;
      }
      fit = std::count(present.begin(), present.end(), 1) == 1;
      if (!fit) break;
      kept = std::find(present.begin(), present.end(), 1) - present.begin();
      for (int64_t k = 0; k < e.numeric.rows && fit; ++k)
        fit = small(e.a(k, c) - (along(e.out, axis, k) == kept ? e.b(k, c) : 0), e);
      int64_t first = std::find(contributes.begin(), contributes.end(), 1) - contributes.begin(),
              last = first;
      for (int64_t i = first; i < e.out[axis]; ++i)
        if (contributes[static_cast<size_t>(i)]) last = i;
      all_first = all_first && kept == first;
      all_last = all_last && kept == last;
      full = full && count == e.out[axis];
      one_place = one_place && (fixed < 0 || fixed == kept);
      fixed = kept;
      // The same derivative at every place is what broadcasting gives.
      for (int64_t k = 0; k < e.numeric.rows; ++k) {
        int64_t other = k + (first - along(e.out, axis, k)) * e.out.stride(axis);
        all_equal = all_equal && small(e.b(k, c) - e.b(other, c), e);
      }
    }
    if (!fit || fixed < 0) continue;
    bool broadcast = full && all_equal && one_place;
    if (broadcast && !all_last)
      return Finding{
          Mistake::broadcast_sum,
          fmt::format("the sum over axis {} of dy is missing, along which it was broadcast: only entry {} of "
                      "{} is there",
                      axis, fixed, e.out[axis])};
    if (all_last)
      return Finding{
          Mistake::overwritten,
          fmt::format("contributions along axis {} of dy are overwritten instead of added (= where += is "
                      "needed): only the last one is there",
                      axis)};
    if (all_first)
      return Finding{
          Mistake::overwritten,
          fmt::format(
              "of the contributions along axis {} of dy only the first one is there: is the sum over that "
              "axis missing, or does = stand where += is needed, in a loop that runs backwards?",
              axis)};
    if (one_place)
      return Finding{Mistake::broadcast_sum,
                     fmt::format("the sum over axis {} of dy is missing: only entry {} of {} is "
                                 "there",
                                 axis, fixed, e.out[axis])};
  }
  return {};
}

// Some entries along an axis of dy send nothing, the others what they should.
std::optional<Finding> skipped(const Evidence& e, double) {
  if (!e.each_output) return {};
  for (int axis = 0; axis < e.out.dims(); ++axis) {
    std::vector<char> sends(static_cast<size_t>(e.out[axis])), should = sends;
    for (int64_t k = 0; k < e.numeric.rows; ++k)
      for (int64_t c = 0; c < e.numeric.cols; ++c) {
        size_t place = static_cast<size_t>(along(e.out, axis, k));
        if (!small(e.a(k, c), e)) sends[place] = 1;
        if (!small(e.b(k, c), e)) should[place] = 1;
      }
    std::string missing;
    for (size_t i = 0; i < sends.size(); ++i)
      if (should[i] && !sends[i]) missing += (missing.empty() ? "" : ", ") + std::to_string(i);
    if (missing.empty() || std::count(sends.begin(), sends.end(), 1) == 0) continue;
    if (fits(e, [&](auto k, auto c) {
          return sends[static_cast<size_t>(along(e.out, axis, k))] ? e.b(k, c) : 0.0;
        }))
      return Finding{
          Mistake::incomplete,
          fmt::format("along axis {} of dy nothing comes from entry {}, the others are right: does a loop "
                      "begin late or end early?",
                      axis, missing)};
  }
  return {};
}

std::optional<Finding> shifted(const Evidence& e, double) {
  for (int axis = 0; axis < e.in.dims(); ++axis)
    for (int64_t by : {-1, 1}) {
      bool fit = true;
      int64_t compared = 0;
      for (size_t c = 0; c < e.elements.size() && fit; ++c) {
        int64_t place = along(e.in, axis, e.elements[c]) + by;
        if (place < 0 || place >= e.in[axis]) continue;
        int64_t other = e.elements[c] + by * e.in.stride(axis);
        for (int64_t k = 0; k < e.numeric.rows && fit; ++k) {
          fit = small(e.analytic.at(k, other) - e.b(k, static_cast<int64_t>(c)), e);
          compared += !small(e.b(k, static_cast<int64_t>(c)), e);
        }
      }
      if (fit && compared > 1)
        return Finding{Mistake::shifted,
                       fmt::format("it is shifted by {} along axis {}: is an index off by one?", by, axis)};
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
  for (auto rule : {kink, not_connected, mask_leak, incomplete, factor})
    if (auto found = rule(e, tolerance)) return *found;
  if (auto found = swapped(e, others)) return *found;
  for (auto rule : {transposed, softmax_diagonal, one_contribution, skipped, shifted})
    if (auto found = rule(e, tolerance)) return *found;
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
                                   "unknown"};
  return names[static_cast<int>(mistake)];
}

}  // namespace gradus
