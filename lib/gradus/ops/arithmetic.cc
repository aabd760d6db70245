#include <gradus/ops/arithmetic.h>

#include <cmath>
#include <functional>
#include <limits>

#include <gradus/kernels/elementwise.h>
#include <gradus/kernels/logarithm.h>
#include <gradus/ops/cases.h>
#include <gradus/ops/operands.h>
#include <gradus/walk.h>

namespace gradus {
namespace {

// y_i = f(x_i, c) with c in x's element type.
template <class F>
Tensor with_number(const Tensor& x, double c, F f) {
  return map(x, [c, f](auto v) { return f(v, static_cast<decltype(v)>(c)); });
}

// What a closure saves of an operand that only the other operand's gradient needs.
Tensor saved_for(const Var& other, const Tensor& x) { return other.requires_grad() ? x : Tensor(); }

Tensor logarithm(const Tensor& x) {
  return by_kernel("log", [](auto... a) { kernels::log(a...); }, x);
}

Tensor power(const Tensor& x, double e) {
  auto kernel = [e](auto* base, auto* y, int64_t n) {
    kernels::pow(base, static_cast<std::remove_pointer_t<decltype(y)>>(e), y, n);
  };
  return by_kernel("pow", kernel, x);
}

Tensor power(const Tensor& x, const Tensor& e) {
  Shape shape = broadcast(x.shape(), e.shape(), "pow");
  return by_kernel("pow", [](auto... a) { kernels::pow(a...); }, broadcast_to(x, shape, "pow"),
                   broadcast_to(e, shape, "pow"));
}

}  // namespace

// ---- sums, products ----

Var operator+(const Input& a, const Var& b) {
  CheckedAt at(a, b, "add");
  Tensor y = zip_broadcast(a.value(), b.value(), "add", std::plus<>());
  return record("add", {a, b}, y, [](const Tensor& dy, Grads& dx) {
    dx.add(0, dy);
    dx.add(1, dy);
  });
}

Var operator-(const Input& a, const Var& b) {
  CheckedAt at(a, b, "sub");
  Tensor y = zip_broadcast(a.value(), b.value(), "sub", std::minus<>());
  return record("sub", {a, b}, y, [](const Tensor& dy, Grads& dx) {
    dx.add(0, dy);
    if (dx.needed(1)) dx.add(1, map(dy, std::negate<>()));
  });
}

Var operator*(const Input& a, const Var& b) {
  CheckedAt at(a, b, "mul");
  Tensor y = zip_broadcast(a.value(), b.value(), "mul", std::multiplies<>());
  Tensor saved_a = saved_for(b, a.value()), saved_b = saved_for(a, b.value());
  return record("mul", {a, b}, y, [a = saved_a, b = saved_b](const Tensor& dy, Grads& dx) {
    if (dx.needed(0)) dx.add(0, zip_broadcast(dy, b, "mul", std::multiplies<>()));
    if (dx.needed(1)) dx.add(1, zip_broadcast(dy, a, "mul", std::multiplies<>()));
  });
}

Var operator/(const Input& a, const Var& b) {
  CheckedAt at(a, b, "div");
  Tensor y = zip_broadcast(a.value(), b.value(), "div", std::divides<>());
  return record("div", {a, b}, y, [b = b.value(), y = saved_for(b, y)](const Tensor& dy, Grads& dx) {
    if (dx.needed(0)) dx.add(0, zip_broadcast(dy, b, "div", std::divides<>()));
    if (!dx.needed(1)) return;
    // y / b first: dy / b may overflow where db does not.
    dx.add(1, zip(dy, zip_broadcast(y, b, "div", std::divides<>()), [](auto g, auto q) { return -g * q; }));
  });
}

Var operator-(const Input& x) {
  CheckedAt at(x, "neg");
  return record("neg", {x}, map(x.value(), std::negate<>()),
                [](const Tensor& dy, Grads& dx) { dx.add(0, map(dy, std::negate<>())); });
}

Var operator+(const Input& a, double b) {
  CheckedAt at(a, "add");
  return record("add", {a}, with_number(a.value(), b, std::plus<>()),
                [](const Tensor& dy, Grads& dx) { dx.add(0, dy); });
}
Var operator+(double a, const Input& b) { return b + a; }

Var operator-(const Input& a, double b) {
  CheckedAt at(a, "sub");
  return record("sub", {a}, with_number(a.value(), b, std::minus<>()),
                [](const Tensor& dy, Grads& dx) { dx.add(0, dy); });
}

Var operator-(double a, const Input& b) {
  CheckedAt at(b, "sub");
  Tensor y = with_number(b.value(), a, [](auto v, auto c) { return c - v; });
  return record("sub", {b}, y, [](const Tensor& dy, Grads& dx) { dx.add(0, map(dy, std::negate<>())); });
}

Var operator*(const Input& a, double b) {
  CheckedAt at(a, "mul");
  return record("mul", {a}, with_number(a.value(), b, std::multiplies<>()),
                [b](const Tensor& dy, Grads& dx) { dx.add(0, with_number(dy, b, std::multiplies<>())); });
}
Var operator*(double a, const Input& b) { return b * a; }

Var operator/(const Input& a, double b) {
  CheckedAt at(a, "div");
  return record("div", {a}, with_number(a.value(), b, std::divides<>()),
                [b](const Tensor& dy, Grads& dx) { dx.add(0, with_number(dy, b, std::divides<>())); });
}

Var operator/(double a, const Input& b) {
  CheckedAt at(b, "div");
  Tensor y = with_number(b.value(), a, [](auto v, auto c) { return c / v; });
  return record("div", {b}, y, [b = b.value(), y](const Tensor& dy, Grads& dx) {
    dx.add(0, zip(dy, y, b, [](auto g, auto q, auto v) { return -g * (q / v); }));
  });
}

// ---- powers ----

Var pow(const Input& x, double e) {
  CheckedAt at(x, "pow");
  Tensor y = e == 2 ? map(x.value(), [](auto v) { return v * v; }) : power(x.value(), e);
  return record("pow", {x}, y, [x = x.value(), e](const Tensor& dy, Grads& dx) {
    if (e == 2) return dx.add(0, zip(dy, x, [](auto g, auto v) { return 2 * g * v; }));
    if (e == 0) return dx.add(0, Tensor::zeros(x.shape(), x.dtype()));
    auto slope = [e](auto g, auto p) { return g * (static_cast<decltype(p)>(e) * p); };
    dx.add(0, zip(dy, power(x, e - 1), slope));
  });
}

Var pow(const Input& x, const Var& e) {
  CheckedAt at(x, e, "pow");
  Tensor y = power(x.value(), e.value());
  auto back = [x = x.value(), e = e.value(), y = saved_for(e, y)](const Tensor& dy, Grads& dx) {
    if (dx.needed(0)) {
      Tensor less = power(x, map(e, [](auto c) { return c - 1; }));
      auto slope = [](auto c, auto p) { return c == 0 ? decltype(p){0} : c * p; };
      dx.add(0, zip(dy, zip_broadcast(e, less, "pow", slope), std::multiplies<>()));
    }
    if (dx.needed(1)) {
      // 0^c is 0 for every c > 0, and stays
      Tensor log_x = zip_broadcast(logarithm(x), e, "pow", [](auto l, auto c) {
        return l == -std::numeric_limits<decltype(l)>::infinity() && c >= 0 ? decltype(l){0} : l;
      });
      dx.add(1, zip(dy, y, log_x, [](auto g, auto p, auto l) { return g * p * l; }));
    }
  };
  return record("pow", {x, e}, y, std::move(back));
}

Var sqrt(const Input& x) {
  CheckedAt at(x, "sqrt");
  Tensor y = map(x.value(), [](auto v) { return std::sqrt(v); });
  return record_elementwise("sqrt", x, y, y, [](auto g, auto root) { return g / (2 * root); });
}

Var exp(const Input& x) {
  CheckedAt at(x, "exp");
  Tensor y = by_kernel("exp", [](auto... a) { kernels::exp(a...); }, x.value());
  return record_elementwise("exp", x, y, y, std::multiplies<>());
}

Var log(const Input& x) {
  CheckedAt at(x, "log");
  return record_elementwise("log", x, logarithm(x.value()), x.value(), std::divides<>());
}

// ---- piecewise ----

Var abs(const Input& x) {
  CheckedAt at(x, "abs");
  Tensor y = map(x.value(), [](auto v) { return std::abs(v); });
  return record_elementwise("abs", x, y, x.value(), [](auto g, auto v) {
    return v > 0 ? g : v < 0 ? -g : decltype(g){0};
  });
}

namespace {

// `ahead(p, q)`: p is the larger (smaller) one and alone decides. NaN is ahead of every number: it survives.
template <class F>
Var choose(const char* op, const Var& a, const Var& b, F ahead) {
  check_operands(a, b, op);
  Tensor y = zip_broadcast(a.value(), b.value(), op,
                           [ahead](auto p, auto q) { return ahead(p, q) || p != p ? p : q; });
  return record(op, {a, b}, y, [a = a.value(), b = b.value(), ahead, op](const Tensor& dy, Grads& dx) {
    auto share = [ahead]<class T>(T p, T q) { return p == q ? T(0.5) : ahead(p, q) || p != p ? T{1} : T{0}; };
    Tensor share_of_a = zip_broadcast(a, b, op, share);
    auto part = []<class T>(T g, T s) { return s == 0 ? T{0} : g * s; };  // nothing, of an infinite dy, too
    if (dx.needed(0)) dx.add(0, zip(dy, share_of_a, part));
    if (dx.needed(1)) dx.add(1, zip(dy, share_of_a, [part](auto g, auto s) { return part(g, 1 - s); }));
  });
}

}  // namespace

Var maximum(const Input& a, const Var& b) {
  At at(a.caller());
  return choose("maximum", a, b, [](auto p, auto q) { return p > q; });
}

Var minimum(const Input& a, const Var& b) {
  At at(a.caller());
  return choose("minimum", a, b, [](auto p, auto q) { return p < q; });
}

Var clamp(const Input& x, double low, double high) {
  CheckedAt at(x, "clamp");
  if (!(low <= high)) refuse("clamp", "low must not exceed high: {} and {}", low, high);
  Tensor y = map(x.value(), [low, high]<class T>(T v) {
    return v < T(low) ? T(low) : v > T(high) ? T(high) : v;
  });
  return record_elementwise("clamp", x, y, x.value(), [low, high]<class T>(T g, T v) {
    return v >= T(low) && v <= T(high) ? g : T{0};
  });
}

// ---- cases ----

namespace reference {
namespace {

Var div(const Var& a, const Var& b) { return a * pow(b, -1); }
Var power(const Var& x, const Var& e) { return exp(e * log(x)); }
Var magnitude(const Var& x) { return sqrt(x * x); }
Var larger(const Var& a, const Var& b) { return (a + b + abs(a - b)) / 2; }
Var smaller(const Var& a, const Var& b) { return (a + b - abs(a - b)) / 2; }
Var clamped(const Var& x, double low, double high) {
  return smaller(larger(x, Tensor::scalar(low, x.dtype())), Tensor::scalar(high, x.dtype()));
}

}  // namespace
}  // namespace reference

GRADUS_OP_CASES(
    {"add", {{2, 3}, {2, 3}}, [](auto& in) { return in[0] + in[1]; }},
    {"add: row", {{4, 3}, {3}}, [](auto& in) { return in[0] + in[1]; }},
    {"add: column", {{4, 3}, {4, 1}}, [](auto& in) { return in[0] + in[1]; }},
    {"add: both stretch", {{2, 1, 3}, {4, 1}}, [](auto& in) { return in[0] + in[1]; }},
    {"add: scalar", {Shape{}, {2, 2}}, [](auto& in) { return in[0] + in[1]; }},
    {"add: two scalars", {Shape{}, Shape{}}, [](auto& in) { return in[0] + in[1]; }},
    {"add: six axes", {{2, 1, 2, 1, 2, 1}, {1, 2, 1, 2, 1, 3}}, [](auto& in) { return in[0] + in[1]; }},
    {"add: number", {{3}}, [](auto& in) { return 2 + in[0] + 1; }},
    {"add: empty", {{0, 3}, {3}}, [](auto& in) { return in[0] + in[1]; }},
    {"sub", {{2, 3}, {2, 3}}, [](auto& in) { return in[0] - in[1]; },
     [](auto& in) { return in[0] + -in[1]; }},
    {"sub: stretch", {{3}, {2, 2, 1}}, [](auto& in) { return in[0] - in[1]; }},
    {"sub: number", {{3}}, [](auto& in) { return 2 - (in[0] - 1); }},
    {"mul", {{2, 3}, {2, 3}}, [](auto& in) { return in[0] * in[1]; }},
    {"mul: row", {{3}, {4, 3}}, [](auto& in) { return in[0] * in[1]; }},
    {"mul: column", {{2, 4, 1}, {4, 3}}, [](auto& in) { return in[0] * in[1]; }},
    {"mul: middle axis", {{2, 3, 2}, {2, 1, 2}}, [](auto& in) { return in[0] * in[1]; }},
    {"mul: scalar", {{2, 2}, Shape{}}, [](auto& in) { return in[0] * in[1]; }},
    {"mul: number", {{3}}, [](auto& in) { return 3 * in[0] * -0.5; }},
    {"div", {{2, 3}, {{2, 3}, 0.5, 2}}, [](auto& in) { return in[0] / in[1]; }, calls(reference::div)},
    {"div: stretch", {{4, 1, 3}, {{2, 1}, -2, -0.5}}, [](auto& in) { return in[0] / in[1]; },
     calls(reference::div)},
    {"div: number", {{Shape{3}, 0.5, 2}}, [](auto& in) { return 3 / (in[0] / 2); }},
    {"neg", {{2, 3}}, [](auto& in) { return -in[0]; }, [](auto& in) { return in[0] * -1; }});

GRADUS_OP_CASES(
    {"pow: square", {{2, 3}}, [](auto& in) { return pow(in[0], 2); }, [](auto& in) { return in[0] * in[0]; }},
    {"pow: cube", {{2, 3}}, [](auto& in) { return pow(in[0], 3); },
     [](auto& in) { return in[0] * in[0] * in[0]; }},
    {"pow: number", {{Shape{4}, 0.5, 2}}, [](auto& in) { return pow(in[0], -1.5); }},
    {"pow: zero", {{Shape{4}, 0.5, 2}}, [](auto& in) { return pow(in[0], 0); }},
    {"pow", {{{2, 3}, 0.5, 2}, {2, 3}}, [](auto& in) { return pow(in[0], in[1]); }, calls(reference::power)},
    {"pow: stretch", {{Shape{3}, 0.5, 2}, {2, 1}}, [](auto& in) { return pow(in[0], in[1]); },
     calls(reference::power)},
    {"sqrt", {{{2, 3}, 0.2, 3}}, calls(sqrt), [](auto& in) { return pow(in[0], 0.5); }},
    {"exp", {{{2, 9}, -3, 3}}, calls(exp)},
    {"log", {{{2, 3}, 0.2, 3}}, calls(log)},
    {"log: of exp", {{2, 3}}, [](auto& in) { return log(exp(in[0])); }, [](auto& in) { return in[0] * 1; }});

GRADUS_OP_CASES(
    {"abs: right", {{{2, 3}, 0.1, 1}}, calls(abs), calls(reference::magnitude)},
    {"abs: left", {{{2, 3}, -1, -0.1}}, calls(abs), calls(reference::magnitude)},
    {"maximum", {{3, 4}, {3, 4}}, [](auto& in) { return maximum(in[0], in[1] + 0.01); },
     [](auto& in) { return reference::larger(in[0], in[1] + 0.01); }},
    {"maximum: row", {{3, 4}, {4}}, calls(maximum), calls(reference::larger)},
    {"minimum", {{3, 4}, {3, 4}}, [](auto& in) { return minimum(in[0], in[1] + 0.01); },
     [](auto& in) { return reference::smaller(in[0], in[1] + 0.01); }},
    {"minimum: both stretch", {{3, 1}, {2, 1, 4}}, calls(minimum), calls(reference::smaller)},
    {"clamp", {{Tensor::from({5}, {-2, -0.6, 0.1, 0.4, 3})}}, calls(clamp, -0.5, 0.5),
     calls(reference::clamped, -0.5, 0.5)});

}  // namespace gradus
