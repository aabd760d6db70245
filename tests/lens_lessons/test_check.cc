// lens::check from a program of one's own: what it prints, and that it knows the kinds of mistakes.

#include <fcntl.h>
#include <gradus/nn/linear.h>
#include <gradus/nn/module.h>
#include <lens/lesson.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>

#include "../quick_doctest.h"
#include "../scratch.h"
#include "../thrown.h"
#include "check/check_log.h"
#include "exercises/exercises.h"

using namespace gradus;

namespace {

struct Printed {
  int code;
  std::string text;
  bool says(const std::string& part) const { return text.find(part) != std::string::npos; }
};

// Runs f with stdout going to a file.
Printed printed(const std::function<int()>& f) {
  std::fflush(stdout);
  std::FILE* file = std::tmpfile();
  int before = dup(1);
  dup2(fileno(file), 1);
  int code = f();
  std::fflush(stdout);
  dup2(before, 1);
  close(before);
  std::rewind(file);
  Printed out{code, ""};
  char buffer[4096];
  for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, file)) > 0;) out.text.append(buffer, n);
  std::fclose(file);
  return out;
}

std::vector<lens::CheckInput> inputs_of(const std::string& name) {
  Tensor mask = Tensor::from({2, 4}, {1, 1, 1, 1, 1, 1, 0, 0}, DType::u8);
  auto ids = [](std::vector<int32_t> v) { return Tensor::from_ids({static_cast<int64_t>(v.size())}, v); };
  auto r = [](const Shape& s, uint64_t seed) { return lens::random(s, seed); };
  if (name == "one-score") return {{"s", r({4}, 1)}, {"h_j", r({4}, 2)}};
  if (name == "all-scores" || name == "weighted-sum") return {{"s", r({4}, 1)}, {"h", r({5, 4}, 2)}};
  if (name == "attention")
    return {
        {"s", r({3}, 1)}, {"h", r({5, 4}, 2)}, {"Wa", r({3, 3}, 3)}, {"Ua", r({3, 4}, 4)}, {"v", r({3}, 5)}};
  if (name == "dot-attention") return {{"q", r({4}, 1)}, {"h", r({5, 4}, 2)}};
  if (name == "bilinear-weights") return {{"s", r({4}, 1)}, {"h", r({4, 4}, 2)}, {"W", r({4, 4}, 3)}};
  if (name == "masked-softmax") return {{"e", r({2, 4}, 1)}, {"mask", mask}};
  if (name == "linear") return {{"x", r({4, 3}, 1)}, {"W", r({2, 3}, 2)}};
  if (name == "bias") return {{"x", r({4, 3}, 1)}, {"b", r({3}, 2)}};
  if (name == "chain-rule" || name == "gate") return {{"a", r({6}, 1)}, {"b", r({6}, 2)}};
  if (name == "scale") return {{"x", r({2, 3, 4}, 1)}, {"g", r({4}, 2)}};
  if (name == "softmax") return {{"x", r({3, 4}, 1)}};
  if (name == "cross-entropy") return {{"z", r({3, 5}, 1)}, {"targets", ids({4, 0, 2})}};
  if (name == "carry") return {{"z", r({4, 3}, 1)}, {"n", r({4, 3}, 2)}, {"h0", r({3}, 3)}};
  if (name == "sequence-loss") return {{"table", r({6, 6}, 1)}, {"targets", ids({3, 4, 3, 5, 2, 0})}};
  if (name == "padded-loss") return {{"z", r({5, 4}, 1)}, {"targets", ids({3, 1, 2, 0, 0})}};
  if (name == "reverse-states") return {{"x", r({4, 2, 3}, 1)}, {"lengths", ids({4, 2})}};
  if (name == "scaled-dot" || name == "causal")
    return {{"Q", r({4, 3}, 1)}, {"K", r({4, 3}, 2)}, {"V", r({4, 3}, 3)}};
  if (name == "split-heads") return {{"x", r({3, 4}, 1)}, {"H", ids({2})}};
  if (name == "join-heads") return {{"o", r({2, 3, 2}, 1)}, {"W_O", r({4, 4}, 2)}};
  if (name == "layer-norm") return {{"x", r({3, 4}, 1)}, {"gamma", r({4}, 2)}, {"beta", r({4}, 3)}};
  if (name == "residual") return {{"x", r({3, 4}, 1)}, {"W1", r({5, 4}, 2)}, {"W2", r({4, 5}, 3)}};
  return {};
}

}  // namespace

TEST_CASE("check: a right op passes, a wrong one is named, and so is what throws") {
  Printed right = printed([] {
    return lens::check("a product", [](auto& in) { return in[0] * in[1]; },
                       {{"x", lens::random({2, 3}, 1)}, {"w", lens::random({3}, 2)}});
  });
  CHECK(right.code == 0);
  CHECK(right.says("a product\n"));
  CHECK(right.says("✓ x [2, 3]  largest relative error"));
  CHECK(right.says("✓ the gradients agree with finite differences"));

  auto wrong = [](const std::vector<Var>& in) {
    return record("half", {in[0]}, (in[0] * 2.0).value(), [](const Tensor& dy, Grads& dx) { dx.add(0, dy); });
  };
  Printed half = printed([&] { return lens::check("half", wrong, {{"x", lens::random({2, 3}, 1)}}); });
  CHECK(half.code == 1);
  CHECK(half.says("✗ factor in x\n"));
  CHECK(half.says("It is 0.5 times what it should be"));
  CHECK(half.says("┏"));

  Printed thrown = printed([&] {
    return lens::check("shapes", [](auto& in) { return in[0] + in[1]; },
                       {{"x", lens::random({2}, 1)}, {"y", lens::random({3}, 1)}});
  });
  CHECK(thrown.code == 1);
  CHECK(thrown.says("✗ error"));
  CHECK(thrown.says("[2]"));
}

TEST_CASE("check: a backward without dy is found where dy is one number, too") {
  auto f = [](const std::vector<Var>& in) {
    return record("sum", {in[0]}, sum(in[0]).value(), [shape = in[0].shape()](const Tensor&, Grads& dx) {
      dx.add(0, Tensor::ones(shape, DType::f64));
    });
  };
  Printed p = printed([&] { return lens::check("sum", f, {{"x", lens::random({3}, 1)}}); });
  CHECK(p.code == 1);
  CHECK_MESSAGE(p.says("✗ not linear in dy"), p.text);
  CHECK(p.says("right for dy = 1 alone"));
}

TEST_CASE("check: yours is what the backward computes, also where it is not linear in dy") {
  // Chapter 5 with the diagonal alone and dy in it twice.
  auto f = [&](const std::vector<Var>& in) {
    Tensor y = softmax(in[0]).value();
    return record("softmax", {in[0]}, y, [y](const Tensor& dy, Grads& dx) {
      dx.add(0, zip(dy, y, [](auto g, auto v) { return g * v * (1 - g); }));
    });
  };
  Tensor x = lens::random({3, 4}, 1), y = softmax(Var(x)).value();
  Diagnosis d = diagnose(f, {x});
  CHECK(d.mistake == Mistake::not_linear);
  REQUIRE(d.inputs.size() == 1);
  CHECK(d.inputs[0].mistake == Mistake::not_linear);
  Rng rng(1 + 100);  // the dy of the pictures
  Tensor dy = Tensor::uniform({3, 4}, -1, 1, rng, DType::f64);
  for (int64_t i = 0; i < 12; ++i) {
    double computed = dy.at(i) * y.at(i) * (1 - dy.at(i));
    CHECK(std::abs(d.inputs[0].analytic.at(i) - computed) < 1e-15);
    CHECK(std::abs(computed) > 1e-6);
  }
  Printed p = printed([&] { return lens::check("softmax", f, {{"x", x}}); });
  CHECK(p.code == 1);
  CHECK_MESSAGE(p.says("✗ not linear in dy"), p.text);
  for (int64_t i : {0, 4, 6}) {
    char number[16];
    std::snprintf(number, sizeof number, "%.2f", dy.at(i) * y.at(i) * (1 - dy.at(i)));
    std::string text = number;
    CHECK_MESSAGE(p.says(text.erase(text.find('0'), 1)), p.text);  // -.22
  }
}

TEST_CASE("check: an accumulator that is set is named, and the picture shows what is lost") {
  auto set = [](const std::vector<Var>& in) {
    return record("square", {in[0]}, (in[0] * in[0]).value(), [x = in[0].value()](const Tensor& dy, Grads& dx) {
      Tensor g = dx.into(0);
      for (int64_t i = 0; i < g.numel(); ++i) g.set(i, 2 * x.at(i) * dy.at(i));
    });
  };
  Printed p = printed([&] { return lens::check("square", set, {{"x", lens::random({4}, 1)}}); });
  CHECK(p.code == 1);
  CHECK_MESSAGE(p.says("✗ overwritten in x"), p.text);
  CHECK(p.says("The backward of square sets (=) the gradient of x"));
  CHECK_MESSAGE(p.says("-3.0"), p.text);
  // In use beside another: what the ordinary rules cannot explain.
  auto beside = [&](const std::vector<Var>& in) { return set(in) + in[0] * 3.0; };
  Printed q = printed([&] { return lens::check("square", beside, {{"x", lens::random({4}, 1)}}); });
  CHECK_MESSAGE(q.says("✗ overwritten in x"), q.text);
}

TEST_CASE("check: one hundredth is seen in a gradient that is small") {
  auto f = [](const std::vector<Var>& in) {
    return record("small", {in[0]}, (in[0] * 1e-5 + 1.0).value(), [](const Tensor& dy, Grads& dx) {
      dx.add(0, map(dy, [](auto g) { return 1.01e-5 * g; }));
    });
  };
  Printed p = printed([&] { return lens::check("small", f, {{"x", lens::random({4}, 1)}}); });
  CHECK_MESSAGE(p.says("✗ factor in x"), p.text);
  CHECK(p.says("It is 1.01 times what it should be"));
  CHECK(p.says("┏"));
}

TEST_CASE("check: a loop that begins late, and what is right when nothing explains the rest") {
  auto sums = [](const std::vector<Var>& in) {  // column sums whose backward leaves row 0 of dy out
    return record("rows", {in[0]}, (in[0] + Var(Tensor::zeros({3, 2}, DType::f64))).value(),
                  [](const Tensor& dy, Grads& dx) {
                    Tensor late = dy.clone();
                    late.set(0, 0), late.set(1, 0);
                    dx.add(0, late);
                  });
  };
  Printed late = printed([&] { return lens::check("late", sums, {{"b", lens::random({2}, 1)}}); });
  CHECK_MESSAGE(late.says("nothing comes from entry 0"), late.text);

  auto odd = [](const std::vector<Var>& in) {
    return record("odd", {in[0], in[1]}, (in[0] * in[1]).value(),
                  [a = in[0].value(), b = in[1].value()](const Tensor& dy, Grads& dx) {
                    dx.add(0, zip(dy, b, [](auto g, auto v) { return g * v; }));
                    dx.add(1, zip(dy, a, [](auto g, auto v) { return g * (v * v + std::cos(9 * v)); }));
                  });
  };
  Printed p = printed(
      [&] { return lens::check("odd", odd, {{"a", lens::random({3}, 1)}, {"b", lens::random({3}, 2)}}); });
  CHECK_MESSAGE(p.says("Right: a. Wrong: b."), p.text);
}

TEST_CASE("check: what a slope lacks, and what a row must sum to, is said in the names of the inputs") {
  auto hint = [](const OpFunction& f, const std::vector<lens::CheckInput>& inputs,
                 const std::string& expected) {
    Printed p = printed([&] { return lens::check("own", f, inputs); });
    CHECK(p.code == 1);
    std::string text;  // on one line
    for (char c : p.text)
      if (c != '\n' && (c != ' ' || text.empty() || text.back() != ' ')) text += c;
      else if (!text.empty() && text.back() != ' ') text += ' ';
    CHECK_MESSAGE(text.find(expected) != std::string::npos, p.text);
  };
  std::vector<lens::CheckInput> x{{"x", lens::random({2, 4}, 1)}};
  auto tanh_with = [](auto slope) {
    return [slope](const std::vector<Var>& in) {
      Tensor y = tanh(in[0]).value();
      return record("tanh", {in[0]}, y, [x = in[0].value(), y, slope](const Tensor& dy, Grads& dx) {
        dx.add(0, zip(dy, zip(x, y, slope), [](auto g, auto s) { return g * s; }));
      });
    };
  };
  hint(tanh_with([](auto, auto v) { return v * (1 - v); }), x, "It has y (1 - y) where 1 - y^2 belongs.");
  hint(tanh_with([](auto u, auto) { return 1 - u * u; }), x, "It has 1 - x^2 where 1 - y^2 belongs.");
  hint(tanh_with([](auto, auto v) { return v * (1 - v * v); }), x,
       "It has a factor y too many, or the division by it is missing.");
  auto gate = [](const std::vector<Var>& in) {
    Tensor s = sigmoid(in[1]).value();
    return record("glu", {in[0], in[1]}, (in[0] * s).value(),
                  [a = in[0].value(), s](const Tensor& dy, Grads& dx) {
                    dx.add(0, (Var(dy) * s).value());
                    dx.add(1, (Var(dy) * a * s).value());
                  });
  };
  hint(gate, {x[0], {"gate", lens::random({2, 4}, 2)}},
       "✗ wrong slope in gate It lacks the factor 1 - s(gate)");
  auto crossed = [](const std::vector<Var>& in) {
    Var y = softmax(in[0]);
    return record("softmax", {in[0]}, y.value(), [y = y.value()](const Tensor& dy, Grads& dx) {
      dx.add(0, (Var(dy) - Var(y) * sum(Var(dy) * y, {.axes = {1}, .keep_dims = true})).value());
    });
  };
  hint(crossed, x, "what each sends itself, before the sum, is dy times 1 - y too large.");
  auto unit = [](const std::vector<Var>& in) {
    Tensor length = sqrt(sum(in[0] * in[0], {.axes = {1}, .keep_dims = true})).value();
    return record("unit", {in[0]}, (in[0] / length).value(),
                  [length](const Tensor& dy, Grads& dx) { dx.add(0, (Var(dy) / length).value()); });
  };
  hint(unit, x, "The term with y (dy . y), summed over a row, is missing");
  // Where nothing fits nothing is said.
  hint(tanh_with([](auto u, auto) { return std::cos(3 * u) + 2; }), x,
       "No known kind of mistake explains the difference.");
}

TEST_CASE("check: what is no number is named so, and what it usually comes of") {
  auto said = [](const OpFunction& f, const lens::CheckOptions& options = {}) {
    Printed p = printed([&] { return lens::check("own", f, {{"x", lens::random({2, 3}, 1)}}, options); });
    CHECK(p.code == 1);
    CHECK(!p.says("No known kind"));
    std::string text;  // on one line
    for (char c : p.text)
      if (c != '\n' && c != ' ') text += c;
      else if (!text.empty() && text.back() != ' ') text += ' ';
    return text;
  };
  const std::string nan = "NaN comes of 0 / 0, of infinity minus infinity or times 0, of the root or the "
                          "logarithm of a number below 0.",
                    inf = "Infinity comes of a division by 0, of the logarithm of 0, of exp(x) where x is "
                          "above 709: a softmax takes the largest score off first.";
  auto backward_with = [](std::vector<double> odd) {
    return [odd](const std::vector<Var>& in) {
      return record("own", {in[0]}, (in[0] * 2.0).value(), [odd](const Tensor& dy, Grads& dx) {
        Tensor g = zip(dy, dy, [](auto a, auto b) { return a + b; });
        for (size_t i = 0; i < odd.size(); ++i) g.set(static_cast<int64_t>(i) + 4, odd[i]);
        dx.add(0, g);
      });
    };
  };
  CHECK(said(backward_with({NAN})).find(
            "✗ not a number The gradient of x is NaN at 1 of 6 places, first at [1,1]. " + nan) !=
        std::string::npos);
  CHECK(said(backward_with({INFINITY, -INFINITY}))
            .find("✗ infinite The gradient of x is infinite at 2 of 6 places, first at [1,1]. " + inf) !=
        std::string::npos);
  CHECK(said(backward_with({INFINITY, NAN}))
            .find("The gradient of x is NaN or infinite at 2 of 6 places, first at [1,1]. " + nan + " " +
                  inf) !=
        std::string::npos);
  // Of the result itself.
  auto value = [](double odd) {
    return [odd](const std::vector<Var>& in) {
      Tensor y = softmax(in[0]).value().clone();
      y.set(2, odd);
      return record("own", {in[0]}, y, [](const Tensor&, Grads&) {});
    };
  };
  CHECK(said(value(NAN), {.exercise = "softmax"})
            .find("✗ not a number in the result The result is NaN at 1 of 6 places, first at [0,2]. " + nan) !=
        std::string::npos);
  CHECK(said(value(NAN)).find("The function is NaN at this point: " + nan) != std::string::npos);
  CHECK(said(value(INFINITY)).find("The function is infinite at this point: " + inf) != std::string::npos);
}

TEST_CASE("Rows and Ids: an index out of range names the line that used it") {
  lens::Rows m(lens::zeros({2, 3}));
  m[1][2] = 5;
  CHECK(lens::dot(m[1], m[1], 3) == 25);
  const int line = __LINE__ + 1;
  std::string text = thrown<Error>([&] { m[1][3] = 1; });
  CHECK(text ==
        "[index] 3 is out of range: there are 3, from 0 to 2 (test_check.cc:" + std::to_string(line) + ")");
  CHECK(thrown<Error>([&] { m[2][0] = 1; }).starts_with("[index] 2 is out of range: there are 2"));
  CHECK(thrown<Error>([&] { m[0][-1] = 1; }).starts_with("[index] -1 is out of range"));
  CHECK(thrown<Error>([&] { lens::dot(m[0], m[1], 4); })
            .starts_with("[dot] 4 numbers are wanted of rows of 3 and 3"));
  lens::Vector x(lens::zeros({3}));
  x[2] += 4;
  CHECK(lens::dot(x, m[1], 3) == 20);
  CHECK(thrown<Error>([&] { lens::dot(lens::Rows(lens::zeros({1, 4}))[0], m[1], 4); })
            .starts_with("[dot] 4 numbers are wanted of rows of 4 and 3"));
  CHECK(thrown<Error>([&] { x[3] = 1; }).starts_with("[index] 3 is out of range: there are 3"));
  CHECK(thrown<Error>([&] {
          lens::Vector(lens::zeros({2, 3}));
        }).starts_with("[vector] a vector has one axis, and this tensor is [2, 3]: Rows"));
  lens::Ids ids(Tensor::from_ids({2}, {7, 8}));
  CHECK(ids[1] == 8);
  CHECK(thrown<Error>([&] { ids[2] = 1; }).starts_with("[index] 2 is out of range"));
}

TEST_CASE("check_model: parameters that nothing depends on are an error") {
  Rng rng(1);
  nn::Linear used(3, 2, rng), unused(3, 2, rng);
  nn::to(used, DType::f64);
  nn::to(unused, DType::f64);
  auto parameters = nn::named_parameters(used);
  Tensor x = lens::random({4, 3}, 1);
  auto f = [&] { return sum(tanh(used(x))); };
  CHECK(printed([&] { return lens::check_model("one", f, parameters); }).code == 0);
  parameters.push_back({"unused.weight", &unused.weight});
  Printed p = printed([&] { return lens::check_model("two", f, parameters); });
  CHECK(p.code == 1);
  CHECK(p.says("✗ ignored"));
  CHECK(p.says("The result does not depend on unused.weight"));
  nn::Linear others[4] = {{3, 2, rng}, {3, 2, rng}, {3, 2, rng}, {3, 2, rng}};
  for (nn::Linear& l : others) {
    nn::to(l, DType::f64);
    parameters.push_back({"more", &l.weight});
  }
  CHECK(printed([&] { return lens::check_model("five", f, parameters); })
            .says("unused.weight, more, more, more and 1 more"));
}

TEST_CASE("check: of a wrong result, too, what is logged is how large the error is beside the numbers") {
  scratch::Directory directory;
  const std::string path = directory.file("check.log");
  setenv("LENS_CHECK_LOG", path.c_str(), 1);
  auto f = [](const std::vector<Var>& in) { return sum(in[0] + in[1]); };  // 400, where it is 30000
  Tensor a = Tensor::full({1}, 100, DType::f64), b = Tensor::full({1}, 300, DType::f64);
  printed([&] { return lens::check("off", f, {{"s", a}, {"h_j", b}}, {.exercise = "one-score"}); });
  unsetenv("LENS_CHECK_LOG");
  std::string line;
  std::getline(std::ifstream(path), line);
  CHECK_MESSAGE(line.find("\"error\":0.986666667,\"tolerance\":1e-09") != std::string::npos, line);

  const std::string odd = directory.file("odd.log");
  setenv("LENS_CHECK_LOG", odd.c_str(), 1);
  lens::CheckLog log("a\t\"b\"");
  log.add("x", Tensor::full({1}, NAN, DType::f64), Tensor::full({1}, NAN, DType::f64), "numeric", {}, 0, 1);
  log.write();
  unsetenv("LENS_CHECK_LOG");
  std::getline(std::ifstream(odd), line);
  CHECK_MESSAGE(line.find(R"("title":"a\u0009\"b\"")") != std::string::npos, line);
  CHECK_MESSAGE(line.find(R"("yours":["nan"],"expected":[null])") != std::string::npos, line);
}

TEST_CASE("exercises: the right answer passes its own check, and every suspect is recognised as itself") {
  int checked = 0;
  for (const auto* list :
       {&lens::basic_exercises(), &lens::sequence_exercises(), &lens::attention_exercises(),
        &lens::scaled_dot_exercises(), &lens::layer_exercises()})
    for (const lens::Exercise& e : *list) {
      std::vector<lens::CheckInput> inputs = inputs_of(e.name);
      if (e.suspects.empty()) continue;
      CAPTURE(e.name);
      REQUIRE(!inputs.empty());
      CHECK(printed([&] { return lens::check("right", e.right, inputs, {.exercise = e.name}); }).code == 0);
      for (const lens::Suspect& s : e.suspects) {
        CAPTURE(s.kind);
        Printed p = printed([&] { return lens::check("wrong", s.op, inputs, {.exercise = e.name}); });
        CHECK(p.code == 1);
        CHECK_MESSAGE(p.says("✗ " + s.kind), p.text);
        CHECK(p.says(s.sentence.substr(0, 20)));
        ++checked;
      }
    }
  CHECK(checked > 140);
}

TEST_CASE("expect: one line, and what is wrong") {
  Printed good = printed([] { return lens::expect(true, "sums to 1", "It does not."); });
  CHECK(good.code == 0);
  CHECK(good.text == "  ✓ sums to 1\n\n");
  Printed bad = printed([] { return lens::expect(false, "sums to 1", "It does not."); });
  CHECK(bad.code == 1);
  CHECK(bad.text == "  ✗ sums to 1\n    It does not.\n\n");
}

TEST_CASE("check: of two wrong inputs the picture is of the one whose rows are words") {
  auto f = [](const std::vector<Var>& in) {
    return record("sum", {in[0], in[1]}, (in[0] + in[1]).value(), [](const Tensor& dy, Grads& dx) {
      dx.add(0, (Var(dy) * 9.0).value());
      dx.add(1, (Var(dy) * 2.0).value());
    });
  };
  Printed p = printed([&] {
    return lens::check("sum", f,
                       {{"a", lens::random({2, 3}, 1)}, {"b", lens::random({2, 3}, 2), {"le", "chat"}}});
  });
  CHECK_MESSAGE(p.says("chat"), p.text);
}
