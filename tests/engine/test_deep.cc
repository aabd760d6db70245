// Graphs as long and as wide as memory allows: nothing recurses.

#include <gradus/ops/arithmetic.h>
#include <gradus/ops/reduce.h>
#include <gradus/ops/shape.h>

#include "../about.h"
#include "../check.h"

using namespace gradus;
using namespace gradus::testing;

namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr int kMany = 100000;  // the sanitizer's larger frames overflow sooner, and its memory is dear
#else
constexpr int kMany = 1000000;
#endif

}  // namespace

TEST_CASE("a chain of a million nodes is recorded, differentiated and freed") {
  Var x = variable(f64({}, {1}));
  Var y = x;
  for (int i = 0; i < kMany; ++i) y = y + 1;
  CHECK(y.item() == kMany + 1);
  CHECK(backward(y)[x].item() == 1);
}

TEST_CASE("a chain is freed without a backward") {
  Var x = variable(f64({}, {1}));
  Var y = x;
  for (int i = 0; i < kMany / 2; ++i) y = y * 1;
  y = Var();
  CHECK(x.node().use_count() == 1);
}

TEST_CASE("a chain in which every node holds its input twice") {
  Var x = variable(f64({}, {1}));
  Var y = x;
  for (int i = 0; i < kMany / 4; ++i) y = (y + y) * 0.5;
  CHECK(backward(y, {.retain_graph = true})[x].item() == 1);
  y = Var();
  CHECK(x.node().use_count() == 1);
}

TEST_CASE("a ladder: each step uses the last two") {
  Var x = variable(f64({}, {1}));
  Var a = x, b = x * 1;
  for (int i = 0; i < kMany / 4; ++i) {
    Var next = a * 0.5 + b * 0.5;
    a = b;
    b = next;
  }
  CHECK(backward(b)[x].item() == about(1));
}

TEST_CASE("a value with very many consumers, and an op with very many inputs") {
  const int wide = kMany / 10;
  Var x = variable(f64({}, {2}));
  std::vector<Var> parts;
  for (int i = 0; i < wide; ++i) parts.push_back(x * 1);
  Var y = sum(stack(parts, 0));
  CHECK(y.item() == 2.0 * wide);
  CHECK(backward(y)[x].item() == wide);
}

TEST_CASE("the end of a long chain may outlive its beginning") {
  Var end;
  std::weak_ptr<Node> middle;
  {
    Var x = variable(f64({}, {1}));
    Var y = x * 2;
    middle = y.node();
    for (int i = 0; i < 10; ++i) y = y + 0;
    end = y;
  }
  CHECK_FALSE(middle.expired());
  Gradients grads = backward(end, {.retain_graph = true});
  REQUIRE(grads.entries().size() == 1);
  CHECK(grads.entries()[0].dense.item() == 2);
  end = Var();
  CHECK(middle.expired());
}
