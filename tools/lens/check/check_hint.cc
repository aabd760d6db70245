#include "check_hint.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace lens {
namespace {

using gradus::Tensor;

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

std::string text_of(const Term& t, const std::string& name) { return fmt::format(fmt::runtime(t.text), name); }

// Whether yours times `left` is the right one times `right`, everywhere, at three elements or more.
bool fits(const gradus::InputDiagnosis& in, const Tensor& x, const Tensor& y, Both left, Both right) {
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

std::string factor_hint(const gradus::InputDiagnosis& in, const Tensor& x, const Tensor& y) {
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

std::string row_hint(const gradus::InputDiagnosis& in, const Tensor& x) {
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

}  // namespace

std::string hint_of(const gradus::InputDiagnosis& in, const Tensor& x, const Tensor& y) {
  std::string hint = x.shape() == y.shape() ? factor_hint(in, x, y) : "";
  return hint.empty() ? row_hint(in, x) : hint;
}

}  // namespace lens
