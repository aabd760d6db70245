#include <gradus/kernels/recurrent.h>
#include <gradus/kernels/inference.h>

#include "util.h"

using namespace gradus;
using namespace kernel_test;

TEST_CASE("gru_state: the training kernel's state, from strided parts, in place too") {
  on_every_target([] {
    std::mt19937 rng(91);
    for (const int64_t H : {1, 7, 16, 37}) {
      for (const bool more : {false, true}) {
        for (const bool bias : {false, true}) {
          const int64_t R = 4, wide = 3 * H + 5, state = H + 3;
          Row<float> gi = Row<float>::random(R * wide, rng), part = Row<float>::random(R * wide, rng);
          Row<float> gh = Row<float>::random(R * wide, rng), before = Row<float>::random(R * state, rng);
          Row<float> b_ih = Row<float>::random(3 * H, rng), b_hh = Row<float>::random(3 * H, rng);
          Row<float> sum(R * 3 * H), product(R * 3 * H), old(R * H), want(R * H), gates(R * 4 * H);
          for (int64_t r = 0; r < R; ++r) {
            for (int64_t i = 0; i < 3 * H; ++i) {
              sum[r * 3 * H + i] = gi[r * wide + i] + (more ? part[r * wide + i] : 0) + (bias ? b_ih[i] : 0);
              product[r * 3 * H + i] = gh[r * wide + i];
            }
            for (int64_t i = 0; i < H; ++i) old[r * H + i] = before[r * state + i];
          }
          kernels::gru_reset_after(R, H, sum.data(), product.data(), bias ? b_hh.data() : nullptr, old.data(),
                                   kernels::UpdateGate::keeps_old, want.data(), gates.data());
          const kernels::GruStateInputs in{gi.data(),
                                           wide,
                                           more ? part.data() : nullptr,
                                           wide,
                                           gh.data(),
                                           wide,
                                           bias ? b_ih.data() : nullptr,
                                           bias ? b_hh.data() : nullptr,
                                           before.data(),
                                           state};
          Row<float> h(R * state, 5.0f);
          kernels::gru_state(R, H, in, h.data(), state);
          Row<float> in_place = before;
          kernels::GruStateInputs again = in;
          again.h_prev = in_place.data();
          kernels::gru_state(R, H, again, in_place.data(), state);
          CHECK(h.intact());
          CHECK(in_place.intact());
          for (int64_t r = 0; r < R; ++r) {
            for (int64_t i = 0; i < H; ++i) {
              CHECK(close(h[r * state + i], want[r * H + i], 2e-6));
              CHECK(in_place[r * state + i] == h[r * state + i]);
            }
            for (int64_t i = H; i < state; ++i) CHECK(h[r * state + i] == 5.0f);
          }
        }
      }
    }
  });
}

TEST_CASE("tanh_of_sum: two, three, four parts") {
  on_every_target([] {
    std::mt19937 rng(92);
    for (const int64_t n : {1, 16, 35}) {
      for (const int parts : {0, 1, 2, 3}) {
        Row<float> a = Row<float>::random(n, rng), b = Row<float>::random(n, rng);
        Row<float> c = Row<float>::random(n, rng), bias = Row<float>::random(n, rng), y(n);
        const bool third = parts & 1, with_bias = parts & 2;
        kernels::tanh_of_sum(n, a.data(), b.data(), third ? c.data() : nullptr,
                             with_bias ? bias.data() : nullptr, y.data());
        CHECK(y.intact());
        for (int64_t i = 0; i < n; ++i) {
          const double sum =
              double(a[i]) + b[i] + (third ? double(c[i]) : 0) + (with_bias ? double(bias[i]) : 0);
          CHECK(close(y[i], std::tanh(sum), 2e-6));
        }
      }
    }
  });
}

TEST_CASE("argmax: the first of the largest, wherever it stands") {
  on_every_target([] {
    std::mt19937 rng(93);
    for (const int64_t n : {1, 2, 15, 16, 17, 63, 64, 65, 200}) {
      Row<float> x = Row<float>::random(n, rng);
      for (int64_t at = 0; at < n; ++at) {
        Row<float> y = x;
        y[at] = 50;
        if (at + 3 < n) y[at + 3] = 50;
        CHECK(kernels::argmax(y.data(), n) == at);
      }
    }
    const Row<float> low(20, -std::numeric_limits<float>::infinity());
    CHECK(kernels::argmax(low.data(), 20) == 0);
    const Row<float> nan(20, std::numeric_limits<float>::quiet_NaN());
    CHECK(kernels::argmax(nan.data(), 20) < 20);
  });
}

TEST_CASE("raise_best: the first of the largest over several blocks of columns, with and without a bias") {
  on_every_target([] {
    std::mt19937 rng(96);
    for (const int64_t n : {1, 7, 16, 33, 64, 130}) {
      for (const bool with_bias : {false, true}) {
        const int64_t rows = 5, wide = 3 * n, stride = wide + 2;
        Row<float> x = Row<float>::random(rows * stride, rng), bias = Row<float>::random(wide, rng);
        for (int64_t i = 0; i < x.size(); ++i) x[i] = std::round(4 * x[i]);  // many equal ones
        for (int64_t i = 0; i < wide; ++i) bias[i] = std::round(bias[i]);
        for (int64_t i = 0; i < wide; ++i) x[stride + i] = -std::numeric_limits<float>::infinity();
        std::vector<float> top(rows, -std::numeric_limits<float>::infinity());
        std::vector<int32_t> best(rows, 77);
        for (int64_t first = 0; first < wide; first += n)
          kernels::raise_best(rows, n, x.data() + first, stride, with_bias ? bias.data() + first : nullptr,
                              first, top.data(), best.data());
        for (int64_t r = 0; r < rows; ++r) {
          const auto at = [&](int64_t i) { return x[r * stride + i] + (with_bias ? bias[i] : 0); };
          int64_t want = 0;
          for (int64_t i = 1; i < wide; ++i)
            if (at(i) > at(want)) want = i;
          CHECK(best[size_t(r)] == (r == 1 ? 77 : want));  // row 1 has nothing above what it began with
          CHECK(top[size_t(r)] == at(want));
        }
      }
    }
  });
}

TEST_CASE("first_above: the next number beyond a bound") {
  on_every_target([] {
    std::mt19937 rng(94);
    const int64_t n = 150;
    const Row<float> x = Row<float>::random(n, rng);
    for (const float bound : {-9.0f, 0.0f, 1.5f, 9.0f}) {
      for (int64_t begin = 0; begin <= n; ++begin) {
        int64_t want = begin;
        while (want < n && !(x[want] > bound)) ++want;
        CHECK(kernels::first_above(x.data(), begin, n, bound) == want);
      }
    }
    const Row<float> equal(40, 2.0f);
    CHECK(kernels::first_above(equal.data(), 0, 40, 2.0f) == 40);
  });
}

TEST_CASE("log_sum_exp") {
  on_every_target([] {
    std::mt19937 rng(95);
    for (const int64_t n : {1, 5, 16, 33, 1000}) {
      for (const double shift : {0.0, 300.0, -300.0}) {
        Row<float> x = Row<float>::random(n, rng, 4);
        double top = -INFINITY, sum = 0;
        for (int64_t i = 0; i < n; ++i) {
          x[i] += static_cast<float>(shift);
          top = std::max(top, double(x[i]));
        }
        for (int64_t i = 0; i < n; ++i) sum += std::exp(x[i] - top);
        CHECK(close(kernels::log_sum_exp(x.data(), n), top + std::log(sum), 1e-6));
      }
    }
    const Row<float> nothing(20, -std::numeric_limits<float>::infinity());
    CHECK(kernels::log_sum_exp(nothing.data(), 20) == -INFINITY);
  });
}
