// The rules themselves are checked against PyTorch's numbers in tests/training; here, that whole vectors,
// their remainders and single elements give the same, and nothing behind the end is touched.

#include <gradus/kernels/optimizer.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "../quick_doctest.h"

using namespace gradus::kernels;

namespace {

template <class T>
using Rule = std::function<void(const T* g, T* p, T* a, T* b, T* c, int64_t n)>;

template <class T>
std::vector<Rule<T>> rules() {
  UpdateStep step{.lr = 0.1, .grad_scale = 0.5, .weight_decay = 0.2};
  return {[=](auto g, auto p, auto, auto, auto, auto n) { sgd(step, {}, g, p, static_cast<T*>(nullptr), n); },
          [=](auto g, auto p, auto a, auto, auto, auto n) {
            sgd(step, {.momentum = 0.9, .dampening = 0.1}, g, p, a, n);
          },
          [=](auto g, auto p, auto a, auto, auto, auto n) {
            sgd(step, {.momentum = 0.9, .nesterov = true, .first = true}, g, p, a, n);
          },
          [=](auto g, auto p, auto a, auto, auto, auto n) { adagrad(step, 1e-10, g, p, a, n); },
          [=](auto g, auto p, auto a, auto b, auto c, auto n) {
            rmsprop(step, {.alpha = 0.9, .eps = 1e-3, .momentum = 0.5}, g, p, a, b, c, n);
          },
          [=](auto g, auto p, auto a, auto b, auto, auto n) {
            adadelta(step, {.rho = 0.9, .eps = 1e-6}, g, p, a, b, n);
          },
          [=](auto g, auto, auto a, auto, auto, auto n) { move_average(0.9, g, a, n); }};
}

template <class T>
void check() {
  constexpr int64_t kMost = 70;
  size_t which = 0;
  for (const Rule<T>& rule : rules<T>()) {
    CAPTURE(which++);
    for (int64_t n : {0, 1, 3, 8, 15, 16, 31, 64, 67}) {
      CAPTURE(n);
      std::vector<std::vector<T>> all;
      for (int k = 0; k < 5; ++k) {
        all.emplace_back(kMost);
        for (int64_t i = 0; i < kMost; ++i)
          all.back()[static_cast<size_t>(i)] = static_cast<T>(
              k < 2 ? std::sin(1.3 * static_cast<double>(i + k)) : 0.5 + static_cast<double>(i % 7));
      }
      auto single = all, before = all;
      rule(all[0].data(), all[1].data(), all[2].data(), all[3].data(), all[4].data(), n);
      for (int64_t i = 0; i < n; ++i) {
        auto at = [&](int k) { return single[static_cast<size_t>(k)].data() + i; };
        rule(at(0), at(1), at(2), at(3), at(4), 1);
      }
      CHECK(all == single);
      for (size_t k = 0; k < 5; ++k)
        for (size_t i = static_cast<size_t>(n); i < kMost; ++i) CHECK(all[k][i] == before[k][i]);
      if (n > 0) CHECK(all != before);
    }
  }
}

}  // namespace

TEST_CASE("update rules: every length, element by element") {
  check<float>();
  check<double>();
}

// One number of each array, as the headers write the rules.
struct Entry {
  double g, p, a, b, c;
};

// All rules, with one setting in every place where a rule has one.
TEST_CASE("update rules: as they are written, whatever the setting and the numbers") {
  for (double s = 0.05; s < 1; s += 0.1) {
    CAPTURE(s);
    const UpdateStep step{.lr = s, .grad_scale = 1 - s / 2, .weight_decay = s};
    std::vector<Entry> entries;
    for (int i = 0; i < 40; ++i)
      entries.push_back({0.07 * i - 1.3, 1.1 - 0.05 * i, 0.06 * i, 2 + 0.05 * i, 0.03 * i});
    auto check = [&](const char* name, const std::function<void(Entry&)>& kernel,
                     const std::function<double(Entry&, double)>& move) {
      CAPTURE(name);
      for (const Entry& given : entries) {
        Entry got = given, want = given;
        kernel(got);
        want.p -= s * move(want, step.grad_scale * given.g + s * given.p);
        CHECK(std::abs(got.p - want.p) < 1e-12);
        CHECK(std::abs(got.a - want.a) < 1e-12);
        CHECK(std::abs(got.b - want.b) < 1e-12);
        CHECK(std::abs(got.c - want.c) < 1e-12);
      }
    };
    check("sgd", [&](Entry& e) { sgd(step, {.momentum = s, .dampening = 1 - s}, &e.g, &e.p, &e.a, 1); },
          [&](Entry& e, double g) { return e.a = s * e.a + s * g; });
    check("nesterov", [&](Entry& e) { sgd(step, {.momentum = s, .nesterov = true}, &e.g, &e.p, &e.a, 1); },
          [&](Entry& e, double g) {
            e.a = s * e.a + g;
            return g + s * e.a;
          });
    check("adagrad", [&](Entry& e) { adagrad(step, s, &e.g, &e.p, &e.a, 1); },
          [&](Entry& e, double g) {
            e.a += g * g;
            return g / (std::sqrt(e.a) + s);
          });
    const RmspropRule rule{.alpha = s, .eps = s, .momentum = s};
    check("rmsprop", [&](Entry& e) { rmsprop(step, rule, &e.g, &e.p, &e.b, &e.a, &e.c, 1); },
          [&](Entry& e, double g) {
            e.b = s * e.b + (1 - s) * g * g;
            e.a = s * e.a + (1 - s) * g;
            double variance = std::max(0.0, e.b - e.a * e.a);
            return e.c = s * e.c + g / (std::sqrt(variance) + s);
          });
    check("adadelta", [&](Entry& e) { adadelta(step, {.rho = s, .eps = s}, &e.g, &e.p, &e.b, &e.a, 1); },
          [&](Entry& e, double g) {
            e.b = s * e.b + (1 - s) * g * g;
            double d = g * std::sqrt(e.a + s) / std::sqrt(e.b + s);
            e.a = s * e.a + (1 - s) * d * d;
            return d;
          });
    check("move_average", [&](Entry& e) { move_average(s, &e.g, &e.a, 1); },
          [&](Entry& e, double) {
            e.a += (1 - s) * (e.g - e.a);
            return 0;
          });
  }
}

TEST_CASE("update rules: an entry without a gradient does not move, even with eps 0") {
  float g = 0, p = 2, a = 0;
  adagrad({.lr = 0.1}, 0, &g, &p, &a, 1);
  CHECK(p == 2);
  rmsprop<float>({.lr = 0.1}, {.alpha = 0.9, .eps = 0}, &g, &p, &a, nullptr, nullptr, 1);
  CHECK(p == 2);
}
