// Wrong backwards deep within a model: gradcheck(model, inputs) names the kind of the mistake, and the worst
// element by its parameter's name.

#include <gradus/nn/linear.h>
#include <gradus/ops.h>

#include <cmath>

#include "helpers.h"

using namespace gradus;
using namespace gradus::test;

namespace mistakes_test {
namespace {

constexpr int64_t N = 4, E = 3;

using Layer = std::function<Var(const Var& x, const Var& weight)>;

// A parameter, and what is done with it.
struct Query {
  Parameter weight;
  Layer layer;
  Query(const Shape& shape, Layer use) : weight(random(shape, 5), "weight"), layer(std::move(use)) {}
  void params(nn::ParamVisitor& visit) { visit("weight", weight); }
};

struct Decoder {
  nn::Linear embedding;
  Query query;
  Decoder(const Shape& shape, Layer layer, Rng& rng) : embedding(E, E, rng), query(shape, std::move(layer)) {}
  void params(nn::ParamVisitor& visit) {
    visit("embedding", embedding);
    visit("query", query);
  }
};

struct Model {
  Decoder decoder;
  Model(const Shape& shape, Layer layer, Rng& rng) : decoder(shape, std::move(layer), rng) {}
  Var operator()(const Input& x) const {
    return decoder.query.layer(decoder.embedding(x), decoder.query.weight);
  }
  void params(nn::ParamVisitor& visit) { visit("decoder", decoder); }
};

Var wrong(const Var& x, const Var& weight, const Var& y, Backward backward) {
  return record("wrong", {x, weight}, y.value(), std::move(backward));
}

void check(const Shape& shape, const Layer& layer, Mistake expected, const std::string& sentence) {
  Rng rng(2);
  Model model(shape, layer, rng);
  GradcheckReport report = nn::gradcheck(model, {random({N, E}, 3)});
  INFO(report.message);
  CHECK_FALSE(report);
  CHECK(name_of(report.diagnosis.mistake) == std::string(name_of(expected)));
  CHECK(report.message.find(sentence) != std::string::npos);
  bool of_one = expected != Mistake::not_deterministic;  // that one is the whole function's
  if (of_one) CHECK(report.message.find("decoder.query.weight") != std::string::npos);
  if (of_one) CHECK(report.worst_name.find("decoder.query.weight[") == 0);
}

Tensor product(const Var& a, const Var& b) { return matmul(a, b).value(); }
Tensor turned(const Tensor& a) { return transpose(a, 0, 1).value(); }

// x W^T with the gradient of W that `of_weight` makes of the right one.
Layer linear_with(std::function<Tensor(const Tensor&)> of_weight) {
  return [of_weight](const Var& x, const Var& w) {
    return wrong(x, w, matmul(x, transpose(w, 0, 1)),
                 [x = x.value(), w = w.value(), of_weight](const Tensor& dy, Grads& dx) {
                   dx.add(0, product(dy, w));
                   dx.add(1, of_weight(product(turned(dy), x)));
                 });
  };
}

Tensor times(const Tensor& a, double c) { return (Var(a) * c).value(); }

}  // namespace

TEST_CASE("a wrong backward in a model is named by its kind and by its parameter") {
  SUBCASE("constant factor") {
    check({2, E}, linear_with([](const Tensor& g) { return times(g, 0.5); }), Mistake::factor, "0.5 times");
  }
  SUBCASE("sign") {
    check({2, E}, linear_with([](const Tensor& g) { return times(g, -1); }), Mistake::sign, "wrong sign");
  }
  SUBCASE("transposed") { check({E, E}, linear_with(turned), Mistake::transposed, "transposed"); }
  SUBCASE("a sum over a broadcast axis") {
    check(
        {E},
        [](const Var& x, const Var& b) {
          return wrong(x, b, x + b, [](const Tensor& dy, Grads& dx) {
            dx.add(0, dy);
            dx.add(1, dy.row(0));
          });
        },
        Mistake::broadcast_sum, "the sum over axis 0 of dy is missing");
  }
  SUBCASE("overwritten instead of added") {
    check(
        {E},
        [](const Var& x, const Var& b) {
          return wrong(x, b, x * b, [x = x.value(), b = b.value()](const Tensor& dy, Grads& dx) {
            dx.add(0, (Var(dy) * b).value());
            Tensor db = dx.into(1);
            for (int64_t n = 0; n < N; ++n) db.copy_from((Var(dy.row(n)) * x.row(n)).value());
          });
        },
        Mistake::overwritten, "overwritten instead of added");
  }
  SUBCASE("a softmax's diagonal alone") {
    check(
        {N, E},
        [](const Var& x, const Var& w) {
          Var y = softmax(x + w);
          return wrong(x, w, y, [y = y.value()](const Tensor& dy, Grads& dx) {
            dx.add(0, (Var(y) * (Var(dy) - sum(Var(dy) * y, {.axes = {-1}, .keep_dims = true}))).value());
            dx.add(1, (Var(dy) * y * (1 - Var(y))).value());
          });
        },
        Mistake::softmax_diagonal, "diagonal");
  }
  SUBCASE("masked positions leak") {
    Tensor mask = Tensor::ones({N, E});
    mask.set(2, 0);
    mask.set(7, 0);
    Var real = mask.to(DType::f64);
    check(
        {N, E},
        [real](const Var& x, const Var& w) {
          return wrong(x, w, x * w * real, [x = x.value(), w = w.value(), real](const Tensor& dy, Grads& dx) {
            dx.add(0, (Var(dy) * w * real).value());
            dx.add(1, (Var(dy) * x).value());
          });
        },
        Mistake::mask_leak, "decoder.query.weight[0,2], decoder.query.weight[2,1]");
  }
  SUBCASE("not connected") {
    check(
        {E}, [](const Var& x, const Var& w) { return x * stop_gradient(w); }, Mistake::not_connected,
        "not connected");
  }
  SUBCASE("not deterministic") {
    Training training(1);
    check(
        {E}, [](const Var& x, const Var& w) { return dropout(x * w, 0.5); }, Mistake::not_deterministic,
        "dropout on?");
  }
  SUBCASE("a kink") {
    check(
        {N, E},
        [](const Var& x, const Var& w) {
          return x + relu(w - random({N, E}, 5));
        },
        Mistake::kink, "kink");
  }
  SUBCASE("float inside") {
    check(
        {E},
        [](const Var& x, const Var& w) {
          Tensor rounded = w.value().to(DType::f32).to(DType::f64);
          return x * record("rounded", {w}, rounded, [](const Tensor& dy, Grads& dx) { dx.add(0, dy); });
        },
        Mistake::float_used, "f32");
  }
  SUBCASE("an index off by one") {
    check(
        {N},
        [](const Var& x, const Var& w) {
          return wrong(x, w, x * reshape(w, {N, 1}),
                       [x = x.value(), w = w.value()](const Tensor& dy, Grads& dx) {
                         dx.add(0, (Var(dy) * w.reshape({N, 1})).value());
                         Tensor right = sum(Var(dy) * x, {.axes = {1}}).value(), dw = dx.into(1);
                         for (int64_t n = 0; n + 1 < N; ++n) dw.set(n, dw.at(n) + right.at(n + 1));
                       });
        },
        Mistake::shifted, "shifted");
  }
}

TEST_CASE("the right backward in the same place passes") {
  Rng rng(2);
  Model model({2, E}, linear_with([](const Tensor& g) { return g; }), rng);
  CHECK_GRADIENTS(nn::gradcheck(model, {random({N, E}, 3)}));
}

}  // namespace mistakes_test
