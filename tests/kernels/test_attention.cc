#include <gradus/kernels/attention.h>

#include "util.h"

using namespace gradus;
using namespace kernel_test;

namespace {

/// One step of either attention over B queries, with everything a test wants to vary.
template <class T>
struct Case {
  int64_t S, B, A, D;  // A: the width of keys and queries
  Row<T> keys, annotations, u, v;
  T scale = T(0.4);
  std::vector<uint8_t> mask;
  int64_t stride;  // of context rows, longer than D
  Row<T> weights, context;

  Case(int64_t S_, int64_t B_, int64_t A_, int64_t D_, std::mt19937& rng)
      : S(S_), B(B_), A(A_), D(D_), keys(Row<T>::random(S * B * A, rng)),
        annotations(Row<T>::random(S * B * D, rng)), u(Row<T>::random(B * A, rng)), v(Row<T>::random(A, rng)),
        mask(size_t(B * S), 1), stride(D + 3), weights(B * S, T(9)), context(B * stride, T(9)) {}

  /// Query 1 sees nothing, query 2 all but the last positions, the rest every third one not.
  void draw_mask() {
    for (int64_t b = 0; b < B; ++b) {
      for (int64_t s = 0; s < S; ++s) {
        const bool real = b == 1 ? false : b == 2 ? s < std::max<int64_t>(1, S - 4) : s % 3 != 1;
        mask[size_t(b * S + s)] = real;
      }
    }
  }
  void spoil_masked() {
    const T nan = std::numeric_limits<T>::quiet_NaN();
    for (int64_t b = 0; b < B; ++b) {
      for (int64_t s = 0; s < S; ++s) {
        if (mask[size_t(b * S + s)]) continue;
        for (int64_t i = 0; i < A; ++i) keys[(s * B + b) * A + i] = nan;
        for (int64_t i = 0; i < D; ++i) annotations[(s * B + b) * D + i] = nan;
      }
    }
  }
  void run(bool additive, bool masked) {
    const uint8_t* m = masked ? mask.data() : nullptr;
    if (additive) {
      kernels::additive_attention(S, B, A, D, keys.data(), annotations.data(), u.data(), v.data(), m,
                                  weights.data(), context.data(), stride);
    } else {
      kernels::multiplicative_attention(S, B, A, D, keys.data(), annotations.data(), u.data(), scale, m,
                                        weights.data(), context.data(), stride);
    }
  }
  void check_forward(bool additive, bool masked) {
    run(additive, masked);
    for (int64_t b = 0; b < B; ++b) {
      std::vector<double> a(size_t(S), 0.0);
      double top = -1e300, sum = 0;
      const auto real = [&](int64_t s) { return !masked || mask[size_t(b * S + s)]; };
      for (int64_t s = 0; s < S; ++s) {
        if (!real(s)) continue;
        double e = 0;
        for (int64_t i = 0; i < A; ++i) {
          const double key = keys[(s * B + b) * A + i], query = u[b * A + i];
          e += additive ? v[i] * std::tanh(query + key) : scale * query * key;
        }
        a[size_t(s)] = e;
        top = std::max(top, e);
      }
      for (int64_t s = 0; s < S; ++s) sum += real(s) ? std::exp(a[size_t(s)] - top) : 0;
      for (int64_t s = 0; s < S; ++s) {
        a[size_t(s)] = real(s) ? std::exp(a[size_t(s)] - top) / sum : 0;
        if (!real(s)) CHECK(weights[b * S + s] == 0);
        CHECK(close(weights[b * S + s], a[size_t(s)], tolerance<T>() * 4));
      }
      for (int64_t i = 0; i < D; ++i) {
        double c = 0;
        for (int64_t s = 0; s < S; ++s) c += real(s) ? a[size_t(s)] * annotations[(s * B + b) * D + i] : 0;
        CHECK(close(context[b * stride + i], c, tolerance<T>() * 4));
      }
      for (int64_t i = D; i < stride; ++i) CHECK(context[b * stride + i] == 9);
    }
    CHECK((weights.intact() && context.intact()));
  }
};

/// The backward's outputs; what it adds to begins at 0.25 so that adding shows.
template <class T>
struct Back {
  Row<T> du, dv, dkeys, dannotations;

  Back(Case<T>& c, bool additive, bool masked, const Row<T>& dcontext)
      : du(c.B * c.A, T(9)), dv(c.A, T(0.25)), dkeys(c.keys.size(), T(0.25)),
        dannotations(c.annotations.size(), T(0.25)) {
    const uint8_t* m = masked ? c.mask.data() : nullptr;
    if (additive) {
      kernels::additive_attention_backward(c.S, c.B, c.A, c.D, c.keys.data(), c.annotations.data(),
                                           c.u.data(), c.v.data(), m, c.weights.data(), dcontext.data(),
                                           c.stride, du.data(), dv.data(), dkeys.data(),
                                           dannotations.data());
    } else {
      kernels::multiplicative_attention_backward(c.S, c.B, c.A, c.D, c.keys.data(), c.annotations.data(),
                                                 c.u.data(), c.scale, m, c.weights.data(), dcontext.data(),
                                                 c.stride, du.data(), dkeys.data(), dannotations.data());
    }
  }
};

Row<double> plus_quarter(Row<double> x) {
  for (int64_t i = 0; i < x.size(); ++i) x[i] += 0.25;
  return x;
}

}  // namespace

TEST_CASE_TEMPLATE("attention: weights and contexts against plain loops, masked places never read", T, float,
                   double) {
  on_every_target([] {
    std::mt19937 rng(61);
    for (const bool additive : {false, true}) {
      for (const int64_t S : {1, 2, 5, 9, 17, 40}) {
        for (const int64_t width : {1, 3, 16, 37}) {
          CAPTURE(additive);
          CAPTURE(S);
          CAPTURE(width);
          Case<T> c(S, 4, width, width + 2, rng);
          c.check_forward(additive, false);
          c.draw_mask();
          c.check_forward(additive, true);
          c.spoil_masked();
          c.check_forward(additive, true);
        }
      }
    }
  });
}

TEST_CASE(
    "additive attention from exponentials: the other one's weights and contexts, up to what they can hold") {
  on_every_target([] {
    std::mt19937 rng(97);
    for (const float spread : {1.0f, 5.0f}) {
      for (const int64_t A : {1, 16, 37}) {
        for (const int64_t S : {1, 9}) {
          const int64_t D = 21;
          Row<float> keys = Row<float>::random(S * A, rng), u = Row<float>::random(A, rng);
          const Row<float> annotations = Row<float>::random(S * D, rng), v = Row<float>::random(A, rng);
          for (Row<float>* row : {&keys, &u})
            for (int64_t i = 0; i < row->size(); ++i)
              (*row)[i] = std::clamp(spread * (*row)[i], -20.0f, 20.0f);
          keys[0] = -20, u[0] = 20;  // as far as it goes
          Row<float> exp_keys(S * A), exp_u(A), weights(S), context(D), want_weights(S), want(D);
          CHECK(kernels::exp_of_double(S * A, keys.data(), exp_keys.data()));
          CHECK(kernels::exp_of_double(A, u.data(), exp_u.data()));
          for (int64_t i = 0; i < A; ++i) CHECK(close(exp_u[i], std::exp(2.0 * u[i]), 1e-6, 0));
          kernels::additive_attention_of_exp(S, A, D, exp_keys.data(), annotations.data(), exp_u.data(),
                                             v.data(), weights.data(), context.data());
          kernels::additive_attention(S, 1, A, D, keys.data(), annotations.data(), u.data(), v.data(),
                                      nullptr, want_weights.data(), want.data(), D);
          for (int64_t s = 0; s < S; ++s) CHECK(close(weights[s], want_weights[s], 4e-6));
          for (int64_t i = 0; i < D; ++i) CHECK(close(context[i], want[i], 4e-6));
          CHECK(exp_keys.intact());
          CHECK(context.intact());
        }
      }
    }
    Row<float> x(37, 3.0f), y(37);
    CHECK(kernels::exp_of_double(37, x.data(), y.data()));
    for (const float large : {20.1f, -20.1f, std::numeric_limits<float>::quiet_NaN()}) {
      for (const int64_t at : {0, 36}) {
        Row<float> z = x;
        z[at] = large;
        CHECK(!kernels::exp_of_double(37, z.data(), y.data()));
      }
    }
  });
}

TEST_CASE("attention backward: against finite differences, masked and not") {
  on_every_target([] {
    std::mt19937 rng(62);
    for (const bool additive : {false, true}) {
      for (const bool masked : {false, true}) {
        CAPTURE(additive);
        CAPTURE(masked);
        Case<double> c(6, 3, 5, 7, rng);
        c.draw_mask();
        Row<double> dcontext = Row<double>::random(c.B * c.stride, rng);
        for (int64_t i = 0; i < dcontext.size(); ++i) dcontext[i] = i % c.stride < c.D ? dcontext[i] : 0;
        const auto loss = [&] {
          c.run(additive, masked);
          return inner(c.context, dcontext);
        };
        loss();
        const Back<double> back(c, additive, masked, dcontext);
        CHECK(worst_error(back.du, numeric_gradient(c.u, loss)) < 1e-8);
        CHECK(worst_error(back.dkeys, plus_quarter(numeric_gradient(c.keys, loss))) < 1e-8);
        CHECK(worst_error(back.dannotations, plus_quarter(numeric_gradient(c.annotations, loss))) < 1e-8);
        if (additive) CHECK(worst_error(back.dv, plus_quarter(numeric_gradient(c.v, loss))) < 1e-8);
        CHECK((back.du.intact() && back.dv.intact() && back.dkeys.intact() && back.dannotations.intact()));
      }
    }
  });
}

TEST_CASE_TEMPLATE("attention backward: masked places are neither read nor touched", T, float, double) {
  on_every_target([] {
    std::mt19937 rng(63);
    for (const bool additive : {false, true}) {
      Case<T> c(11, 4, 19, 35, rng);
      c.draw_mask();
      c.run(additive, true);
      const Row<T> dcontext = Row<T>::random(c.B * c.stride, rng);
      const Back<T> clean(c, additive, true, dcontext);
      c.spoil_masked();
      const Back<T> spoilt(c, additive, true, dcontext);
      CHECK(spoilt.du.same_bits(clean.du));
      CHECK(spoilt.dv.same_bits(clean.dv));
      CHECK(spoilt.dkeys.same_bits(clean.dkeys));
      CHECK(spoilt.dannotations.same_bits(clean.dannotations));
      for (int64_t i = 0; i < c.A; ++i) CHECK(spoilt.du[c.A + i] == 0);  // query 1 sees nothing
      for (int64_t b = 0; b < c.B; ++b) {
        for (int64_t s = 0; s < c.S; ++s) {
          if (c.mask[size_t(b * c.S + s)]) continue;
          CHECK(spoilt.dkeys[(s * c.B + b) * c.A] == T(0.25));
          CHECK(spoilt.dannotations[(s * c.B + b) * c.D] == T(0.25));
        }
      }
    }
  });
}

TEST_CASE("attention backward: f32 agrees with f64, sources longer than what is kept included") {
  on_every_target([] {
    std::mt19937 rng(64);
    for (const int64_t S : {7, 1200}) {
      for (const bool additive : {false, true}) {
        CAPTURE(S);
        CAPTURE(additive);
        Case<float> narrow(S, 2, 6, 9, rng);
        Case<double> wide(S, 2, 6, 9, rng);
        const auto copy = [](const Row<float>& from, Row<double>& to) {
          for (int64_t i = 0; i < from.size(); ++i) to[i] = from[i];
        };
        copy(narrow.keys, wide.keys);
        copy(narrow.annotations, wide.annotations);
        copy(narrow.u, wide.u);
        copy(narrow.v, wide.v);
        wide.scale = narrow.scale;
        narrow.run(additive, false);
        wide.run(additive, false);
        const Row<float> dcontext = Row<float>::random(2 * narrow.stride, rng);
        Row<double> dcontext2(2 * wide.stride);
        copy(dcontext, dcontext2);
        const Back<float> a(narrow, additive, false, dcontext);
        const Back<double> b(wide, additive, false, dcontext2);
        CHECK(worst_error(a.du, b.du) < 1e-5);
        CHECK(worst_error(a.dv, b.dv) < 1e-5);
        CHECK(worst_error(a.dkeys, b.dkeys) < 1e-5);
        CHECK(worst_error(a.dannotations, b.dannotations) < 1e-5);
      }
    }
  });
}

TEST_CASE("dot attention backward: keys that are the annotations get both gradients, null ones none") {
  on_every_target([] {
    std::mt19937 rng(65);
    Case<double> c(5, 3, 4, 4, rng);
    c.stride = 4;
    c.context = Row<double>(c.B * 4);
    c.keys = c.annotations;
    const Row<double> dcontext = Row<double>::random(c.B * 4, rng);
    const auto loss = [&] {
      kernels::multiplicative_attention(c.S, c.B, 4, 4, c.annotations.data(), c.annotations.data(),
                                        c.u.data(), c.scale, nullptr, c.weights.data(), c.context.data(), 4);
      return inner(c.context, dcontext);
    };
    loss();
    Row<double> dq(c.B * 4), dh(c.annotations.size());
    kernels::multiplicative_attention_backward(c.S, c.B, 4, 4, c.annotations.data(), c.annotations.data(),
                                               c.u.data(), c.scale, nullptr, c.weights.data(), dcontext.data(),
                                               4, dq.data(), dh.data(), dh.data());
    CHECK(worst_error(dh, numeric_gradient(c.annotations, loss)) < 1e-8);
    loss();  // the differences have left other weights behind
    Row<double> dq2(c.B * 4);
    kernels::multiplicative_attention_backward<double>(
        c.S, c.B, 4, 4, c.annotations.data(), c.annotations.data(), c.u.data(), c.scale, nullptr,
        c.weights.data(), dcontext.data(), 4, dq2.data(), nullptr, nullptr);
    CHECK(dq2.same_bits(dq));
  });
}

TEST_CASE_TEMPLATE(
    "additive attention: only the first of the queries are asked, the rest neither read nor written", T,
    float, double) {
  on_every_target([] {
    std::mt19937 rng(65);
    const int64_t B = 5;
    for (const int64_t queries : {0, 1, 3, 5}) {
      for (const bool masked : {false, true}) {
        CAPTURE(queries);
        CAPTURE(masked);
        Case<T> all(7, B, 9, 11, rng);
        all.draw_mask();
        all.run(true, masked);
        Case<T> some = all;
        const T nan = std::numeric_limits<T>::quiet_NaN();
        for (int64_t b = queries; b < B; ++b) {
          std::fill_n(some.u.data() + b * some.A, some.A, nan);
          for (int64_t s = 0; s < some.S; ++s)
            std::fill_n(some.keys.data() + (s * B + b) * some.A, some.A, nan);
        }
        const uint8_t* mask = masked ? some.mask.data() : nullptr;
        Row<T> weights(some.weights.size(), T(9)), context(some.context.size(), T(9));
        kernels::additive_attention(some.S, B, some.A, some.D, some.keys.data(), some.annotations.data(),
                                    some.u.data(), some.v.data(), mask, weights.data(), context.data(),
                                    some.stride, queries);
        const auto first = [&](const Row<T>& got, const Row<T>& want, int64_t width) {
          for (int64_t i = 0; i < got.size(); ++i)
            if (i < queries * width ? got[i] != want[i] : got[i] != T(9)) return false;
          return got.intact();
        };
        CHECK(first(weights, all.weights, some.S));
        CHECK(first(context, all.context, some.stride));

        // The backward: as if no gradient had come to the rest.
        Row<T> dcontext = Row<T>::random(B * all.stride, rng);
        std::fill_n(dcontext.data() + queries * all.stride, (B - queries) * all.stride, T(0));
        const Back<T> want(all, true, masked, dcontext);
        std::fill_n(dcontext.data() + queries * all.stride, (B - queries) * all.stride, nan);
        Row<T> du(B * all.A, T(9)), dv(all.A, T(0.25)), dkeys(all.keys.size(), T(0.25)),
            dannotations(all.annotations.size(), T(0.25));
        kernels::additive_attention_backward(
            some.S, B, some.A, some.D, some.keys.data(), some.annotations.data(), some.u.data(),
            some.v.data(), mask, all.weights.data(), dcontext.data(), some.stride, du.data(), dv.data(),
            dkeys.data(), dannotations.data(), queries);
        CHECK(first(du, want.du, all.A));
        CHECK(dv.same_bits(want.dv));
        CHECK(dkeys.same_bits(want.dkeys));
        CHECK(dannotations.same_bits(want.dannotations));
      }
    }
  });
}
