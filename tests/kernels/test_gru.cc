#include <gradus/kernels/recurrent.h>

#include "util.h"

using namespace gradus;
using namespace kernel_test;
using kernels::UpdateGate;

namespace gru_test {
namespace {

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

constexpr UpdateGate kUpdates[] = {UpdateGate::keeps_old, UpdateGate::selects_new};

/// One step, both variants. Reset before gets the product W_hn (r h) as `gh_n`.
template <class T>
struct Step {
  int64_t B, H;
  Row<T> gi, gh, gh_n, b_hh, h_prev;
  UpdateGate update = UpdateGate::keeps_old;
  Row<T> h, gates, rh;

  Step(int64_t B_, int64_t H_, std::mt19937& rng)
      : B(B_),
        H(H_),
        gi(Row<T>::random(B * 3 * H, rng)),
        gh(Row<T>::random(B * 3 * H, rng)),
        gh_n(Row<T>::random(B * H, rng)),
        b_hh(Row<T>::random(3 * H, rng)),
        h_prev(Row<T>::random(B * H, rng)),
        h(B * H, T(9)),
        gates(B * 4 * H, T(9)),
        rh(B * H, T(9)) {}

  void after(bool with_bias) {
    kernels::gru_reset_after(B, H, gi.data(), gh.data(), with_bias ? b_hh.data() : nullptr, h_prev.data(),
                             update, h.data(), gates.data());
  }
  void before(bool with_bias) {
    const T* bias = with_bias ? b_hh.data() : nullptr;
    kernels::gru_reset_before_gates(B, H, gi.data(), gh.data(), bias, h_prev.data(), update, gates.data(),
                                    rh.data());
    kernels::gru_reset_before_state(B, H, gi.data(), gh_n.data(), bias, h_prev.data(), h.data(),
                                    gates.data());
  }
  Row<double> plain(bool reset_after, bool with_bias) const {
    Row<double> out(B * H);
    for (int64_t b = 0; b < B; ++b) {
      for (int64_t i = 0; i < H; ++i) {
        const auto bias = [&](int64_t gate) { return with_bias ? double(b_hh[gate * H + i]) : 0; };
        const int64_t at = b * 3 * H + i;
        const double r = logistic(double(gi[at]) + gh[at] + bias(0));
        const double z = logistic(double(gi[at + H]) + gh[at + H] + bias(1));
        const double n = reset_after ? std::tanh(gi[at + 2 * H] + r * (gh[at + 2 * H] + bias(2)))
                                     : std::tanh(double(gi[at + 2 * H]) + gh_n[b * H + i] + bias(2));
        const double old = h_prev[b * H + i];
        out[b * H + i] = update == UpdateGate::keeps_old ? (1 - z) * n + z * old : (1 - z) * old + z * n;
      }
    }
    return out;
  }
};

}  // namespace

TEST_CASE_TEMPLATE("gru: both variants and both meanings of z against plain loops", T, float, double) {
  on_every_target([] {
    std::mt19937 rng(51);
    for (const int64_t H : {1, 2, 3, 5, 8, 15, 16, 17, 33, 64, 70}) {
      for (const bool with_bias : {false, true}) {
        for (const UpdateGate update : kUpdates) {
          CAPTURE(H);
          CAPTURE(with_bias);
          CAPTURE(int(update));
          Step<T> step(3, H, rng);
          step.update = update;
          step.after(with_bias);
          CHECK(worst_error(step.h, step.plain(true, with_bias)) < tolerance<T>());
          CHECK((step.h.intact() && step.gates.intact()));
          step.before(with_bias);
          CHECK(worst_error(step.h, step.plain(false, with_bias)) < tolerance<T>());
          CHECK((step.h.intact() && step.gates.intact() && step.rh.intact()));
          for (int64_t i = 0; i < H; ++i) {
            CHECK(close(step.rh[i], double(step.gates[i]) * double(step.h_prev[i]), tolerance<T>()));
          }
        }
      }
    }
  });
}

TEST_CASE("gru reset after: backward against finite differences") {
  on_every_target([] {
    std::mt19937 rng(52);
    for (const int64_t H : {1, 3, 9})
      for (const UpdateGate update : kUpdates) {
        Step<double> step(3, H, rng);
        step.update = update;
        const Row<double> dh = Row<double>::random(3 * H, rng);
        const auto loss = [&] {
          step.after(true);
          return inner(step.h, dh);
        };
        loss();
        Row<double> dgi(3 * 3 * H, 9), dgh(3 * 3 * H, 9), dh_prev = dh;  // in place
        kernels::gru_backward(3, H, step.gates.data(), step.h_prev.data(), dh_prev.data(), update, dgi.data(),
                              dgh.data(), dh_prev.data());
        CHECK(worst_error(dgi, numeric_gradient(step.gi, loss)) < 1e-8);
        CHECK(worst_error(dgh, numeric_gradient(step.gh, loss)) < 1e-8);
        CHECK(worst_error(dh_prev, numeric_gradient(step.h_prev, loss)) < 1e-8);
        CHECK((dgi.intact() && dgh.intact() && dh_prev.intact()));
      }
  });
}

TEST_CASE("gru reset before: backward against finite differences") {
  on_every_target([] {
    std::mt19937 rng(53);
    for (const int64_t H : {1, 3, 9})
      for (const UpdateGate update : kUpdates) {
        Step<double> step(3, H, rng);
        step.update = update;
        const Row<double> dh = Row<double>::random(3 * H, rng);
        Row<double> drh = Row<double>::random(3 * H, rng);  // as if W_hn had brought it
        const auto loss = [&] {
          step.before(true);
          return inner(step.h, dh) + inner(step.rh, drh);
        };
        step.before(true);
        Row<double> dgi(3 * 3 * H, 9), dh_prev(3 * H, 9);
        kernels::gru_backward<double>(3, H, step.gates.data(), step.h_prev.data(), dh.data(), update,
                                      dgi.data(), nullptr, dh_prev.data());
        kernels::gru_reset_before_gates_backward(3, H, step.gates.data(), step.h_prev.data(), drh.data(),
                                                 dgi.data(), dh_prev.data());
        CHECK(worst_error(dgi, numeric_gradient(step.gi, loss)) < 1e-8);
        CHECK(worst_error(dh_prev, numeric_gradient(step.h_prev, loss)) < 1e-8);
        const Row<double> dgh_n = numeric_gradient(step.gh_n, loss);  // equals dgi's n block
        for (int64_t b = 0; b < 3; ++b) {
          for (int64_t i = 0; i < H; ++i) CHECK(close(dgi[(b * 3 + 2) * H + i], dgh_n[b * H + i], 1e-8));
        }
        CHECK((dgi.intact() && dh_prev.intact()));
      }
  });
}

TEST_CASE("gru backward: f32 agrees with f64") {
  on_every_target([] {
    std::mt19937 rng(54);
    const int64_t B = 4, H = 21;
    Step<float> narrow(B, H, rng);
    Step<double> wide(B, H, rng);
    const auto copy = [](const Row<float>& from, Row<double>& to) {
      for (int64_t i = 0; i < from.size(); ++i) to[i] = from[i];
    };
    copy(narrow.gi, wide.gi);
    copy(narrow.gh, wide.gh);
    copy(narrow.b_hh, wide.b_hh);
    copy(narrow.h_prev, wide.h_prev);
    narrow.after(true);
    wide.after(true);
    const Row<float> dh = Row<float>::random(B * H, rng);
    Row<double> dh2(B * H);
    copy(dh, dh2);
    Row<float> dgi(B * 3 * H), dgh(B * 3 * H), dh_prev(B * H);
    Row<double> dgi2(B * 3 * H), dgh2(B * 3 * H), dh_prev2(B * H);
    kernels::gru_backward(B, H, narrow.gates.data(), narrow.h_prev.data(), dh.data(), narrow.update,
                          dgi.data(), dgh.data(), dh_prev.data());
    kernels::gru_backward(B, H, wide.gates.data(), wide.h_prev.data(), dh2.data(), wide.update, dgi2.data(),
                          dgh2.data(), dh_prev2.data());
    CHECK(worst_error(dgi, dgi2) < 3e-6);
    CHECK(worst_error(dgh, dgh2) < 3e-6);
    CHECK(worst_error(dh_prev, dh_prev2) < 3e-6);
  });
}

}  // namespace gru_test
