#include <gradus/kernels/recurrent.h>

#include "util.h"

using namespace gradus;
using namespace kernel_test;

namespace lstm_test {
namespace {

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

template <class T>
struct Step {
  int64_t B, H;
  Row<T> pre, c_prev;
  Row<T> gates, h, c;

  Step(int64_t B_, int64_t H_, std::mt19937& rng)
      : B(B_), H(H_), pre(Row<T>::random(B * 4 * H, rng, 2)), c_prev(Row<T>::random(B * H, rng)),
        gates(B * 4 * H), h(B * H, T(9)), c(B * H, T(9)) {}

  void run() {
    gates = pre;
    kernels::lstm_step(B, H, gates.data(), c_prev.data(), h.data(), c.data());
  }
  // The plain loop: h and c.
  std::pair<Row<double>, Row<double>> plain() const {
    Row<double> h_out(B * H), c_out(B * H);
    for (int64_t b = 0; b < B; ++b)
      for (int64_t k = 0; k < H; ++k) {
        const int64_t at = b * H + k;
        const auto gate = [&](int64_t n) { return double(pre[(b * 4 + n) * H + k]); };
        c_out[at] = logistic(gate(1)) * c_prev[at] + logistic(gate(0)) * std::tanh(gate(2));
        h_out[at] = logistic(gate(3)) * std::tanh(c_out[at]);
      }
    return {h_out, c_out};
  }
};

}  // namespace

TEST_CASE_TEMPLATE("lstm: a step against plain loops, in place too", T, float, double) {
  on_every_target([] {
    std::mt19937 rng(61);
    for (const int64_t H : {1, 2, 3, 5, 8, 15, 16, 17, 33, 64, 70}) {
      CAPTURE(H);
      Step<T> step(3, H, rng);
      step.run();
      auto [h, c] = step.plain();
      CHECK(worst_error(step.h, h) < tolerance<T>());
      CHECK(worst_error(step.c, c) < tolerance<T>());
      CHECK((step.h.intact() && step.c.intact() && step.gates.intact()));
      Row<T> h_again(3 * H), c_again = step.c_prev, gates = step.pre;
      kernels::lstm_step(3, H, gates.data(), c_again.data(), h_again.data(), c_again.data());
      CHECK((h_again.same_bits(step.h) && c_again.same_bits(step.c)));
    }
  });
}

TEST_CASE("lstm: backward against finite differences") {
  on_every_target([] {
    std::mt19937 rng(62);
    for (const int64_t H : {1, 3, 9}) {
      Step<double> step(3, H, rng);
      const Row<double> wanted_h = Row<double>::random(3 * H, rng);
      const Row<double> wanted_c = Row<double>::random(3 * H, rng);
      const auto loss = [&] {
        step.run();
        return inner(step.h, wanted_h) + inner(step.c, wanted_c);
      };
      loss();
      Row<double> dh = wanted_h, dc = wanted_c, dgates(3 * 4 * H, 9);
      kernels::lstm_step_backward(3, H, step.gates.data(), step.c_prev.data(), dh.data(), dc.data(),
                                  dgates.data());
      CHECK(worst_error(dgates, numeric_gradient(step.pre, loss)) < 1e-8);
      CHECK(worst_error(dc, numeric_gradient(step.c_prev, loss)) < 1e-8);
      for (int64_t k = 0; k < 3 * H; ++k) CHECK(dh[k] == 0);
      CHECK((dgates.intact() && dh.intact() && dc.intact()));
    }
  });
}

TEST_CASE("lstm backward: f32 agrees with f64") {
  on_every_target([] {
    std::mt19937 rng(63);
    const int64_t B = 4, H = 21;
    Step<float> narrow(B, H, rng);
    Step<double> wide(B, H, rng);
    const auto copy = [](const Row<float>& from, Row<double>& to) {
      for (int64_t i = 0; i < from.size(); ++i) to[i] = from[i];
    };
    copy(narrow.pre, wide.pre);
    copy(narrow.c_prev, wide.c_prev);
    narrow.run();
    wide.run();
    Row<float> dh = Row<float>::random(B * H, rng), dc = Row<float>::random(B * H, rng), dgates(B * 4 * H);
    Row<double> dh2(B * H), dc2(B * H), dgates2(B * 4 * H);
    copy(dh, dh2);
    copy(dc, dc2);
    kernels::lstm_step_backward(B, H, narrow.gates.data(), narrow.c_prev.data(), dh.data(), dc.data(),
                                dgates.data());
    kernels::lstm_step_backward(B, H, wide.gates.data(), wide.c_prev.data(), dh2.data(), dc2.data(),
                                dgates2.data());
    CHECK(worst_error(dgates, dgates2) < 3e-6);
    CHECK(worst_error(dc, dc2) < 3e-6);
  });
}

TEST_CASE_TEMPLATE("lstm in two halves: with nothing between them the step, forward and backward", T, float,
                   double) {
  on_every_target([] {
    std::mt19937 rng(64);
    for (const int64_t H : {1, 3, 8, 16, 17, 33}) {
      CAPTURE(H);
      const int64_t B = 3;
      Step<T> step(B, H, rng);
      step.run();
      Row<T> gates = step.pre, c(B * H), h(B * H);
      kernels::lstm_step<T>(B, H, gates.data(), step.c_prev.data(), nullptr, c.data());
      CHECK((gates.same_bits(step.gates) && c.same_bits(step.c)));
      Row<T> tanh_y = c;
      kernels::lstm_output(B, H, gates.data(), tanh_y.data(), h.data());
      CHECK(h.same_bits(step.h));
      CHECK((gates.intact() && c.intact() && h.intact() && tanh_y.intact()));
      Row<T> in_place = step.c_prev, again = step.pre;
      kernels::lstm_step<T>(B, H, again.data(), in_place.data(), nullptr, in_place.data());
      CHECK(in_place.same_bits(c));

      const Row<T> dh = Row<T>::random(B * H, rng), dc = Row<T>::random(B * H, rng);
      Row<T> dh_whole = dh, dc_whole = dc, whole(B * 4 * H, T(9));
      kernels::lstm_step_backward(B, H, step.gates.data(), step.c_prev.data(), dh_whole.data(),
                                  dc_whole.data(), whole.data());
      Row<T> dh_half = dh, dc_half = dc, dy(B * H), halves(B * 4 * H, T(9));
      kernels::lstm_output_backward(B, H, gates.data(), tanh_y.data(), dh_half.data(), halves.data(),
                                    dy.data());
      for (int64_t k = 0; k < B * H; ++k) dc_half[k] += dy[k];  // y is c
      kernels::lstm_step_backward<T>(B, H, gates.data(), step.c_prev.data(), nullptr, dc_half.data(),
                                     halves.data());
      Row<double> want(B * 4 * H), want_dc(B * H);
      for (int64_t k = 0; k < B * 4 * H; ++k) want[k] = double(whole[k]);
      for (int64_t k = 0; k < B * H; ++k) want_dc[k] = double(dc_whole[k]);
      CHECK(worst_error(halves, want) < tolerance<T>());
      CHECK(worst_error(dc_half, want_dc) < tolerance<T>());
      for (int64_t k = 0; k < B * H; ++k) CHECK(dh_half[k] == 0);
      CHECK((halves.intact() && dh_half.intact() && dc_half.intact() && dy.intact()));
    }
  });
}

}  // namespace lstm_test
