// Every registered op case, through every check that a case stands for: gradients against central
// differences, fused against composed, f32 against f64, constants, one Var twice, NoGrad.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <regex>
#include <set>
#include <string>

#include <gradus/op_case.h>

#include "../read.h"

using namespace gradus;
namespace fs = std::filesystem;

// The one op that lives beside the engine.
GRADUS_OP_CASES({"tap", {{2, 3}}, [](auto& in) { return tap(in[0], "here"); }, [](auto& in) { return in[0]; }});

namespace {

std::vector<fs::path> files(const std::vector<std::string>& folders, const std::string& extension) {
  std::vector<fs::path> out;
  for (const std::string& folder : folders)
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(GRADUS_SOURCE_ROOT) / folder))
      if (entry.path().extension() == extension) out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

// "matmul: batched" is a case of matmul.
std::string op_of(const OpCase& c) { return c.name.substr(0, c.name.find(':')); }

}  // namespace

TEST_CASE("every registered op case holds") {
  CHECK(op_cases().size() > 50);
  for (const OpCase& c : op_cases()) {
    CAPTURE(c.name);
    for (const std::string& failure : check_op_case(c)) FAIL_CHECK(failure);
  }
}

TEST_CASE("every op has a case, and no case is registered twice") {
  std::set<std::string> ops, names;
  for (const OpCase& c : op_cases()) {
    ops.insert(op_of(c));
    CAPTURE(c.name);
    CHECK(names.insert(c.name).second);
  }
  // Of every function of the installed headers that returns a Var, or something made of Vars.
  const std::regex declaration(
      R"(^(Var|std::vector<Var>|[A-Z][A-Za-z]*) ([a-z]\w*)\(const (Input&|std::vector<Var>&|\w+Inputs&))");
  int functions = 0;
  for (const fs::path& path : files({"lib/gradus/ops"}, ".h")) {
    const std::set<std::string> internal = {"recurrence.h", "recurrent_norm.h", "operands.h",
                                            "packed_sequence.h", "recurrent_cases.h"};
    if (internal.count(path.filename())) continue;
    std::ifstream in(path);
    std::smatch found;
    for (std::string line; std::getline(in, line);) {
      if (!std::regex_search(line, found, declaration) || found[1] == "Tensor") continue;
      ++functions;
      CHECK_MESSAGE(ops.count(found[2]) == 1, found[2].str() << " of " << path.filename() << " has no case");
    }
  }
  CHECK(functions > 50);
  CHECK(op_cases().size() >= 140);
  CHECK(
      std::is_sorted(op_cases().begin(), op_cases().end(), [](auto& a, auto& b) { return a.name < b.name; }));
}

TEST_CASE("every backward that the library records is that of some case") {
  std::set<std::string> recorded;
  for (const OpCase& c : op_cases()) {
    std::vector<Var> args;
    for (const Tensor& t : sample_inputs(c, DType::f64))
      args.push_back(is_floating(t.dtype()) ? variable(t) : Var(t));
    std::vector<std::shared_ptr<Node>> stack{c.op(args).node()};
    while (!stack.empty()) {
      std::shared_ptr<Node> node = stack.back();
      stack.pop_back();
      if (!node) continue;
      recorded.insert(node->op);
      stack.insert(stack.end(), node->inputs.begin(), node->inputs.end());
    }
  }
  const std::regex call(R"re(\brecord\w*\(\s*"(\w+)")re");
  std::set<std::string> names;
  for (const fs::path& path : files({"lib/gradus", "nn/gradus"}, ".cc")) {
    const std::string text = read_whole(path);
    for (std::sregex_iterator it(text.begin(), text.end(), call), end; it != end; ++it) {
      std::string name = (*it)[1];
      names.insert(name);
      CHECK_MESSAGE(recorded.count(name) == 1, name << " of " << path.filename() << " has no case");
    }
  }
  CHECK(names.size() > 35);
}

TEST_CASE("an op refuses operands of two element types") {
  for (const OpCase& c : op_cases()) {
    const std::vector<Tensor> given = sample_inputs(c, DType::f64);
    for (size_t i = 0; i < given.size(); ++i) {
      if (!is_floating(given[i].dtype())) continue;
      CAPTURE(c.name);
      CAPTURE(i);
      std::vector<Var> args(given.begin(), given.end());
      args[i] = given[i].to(DType::f32);
      const bool others =
          std::any_of(args.begin(), args.end(), [](auto& x) { return x.dtype() == DType::f64; });
      std::string error;
      try {
        c.op(args);
      } catch (const Error& e) {
        error = e.what();
      }
      CHECK(std::regex_search(error, std::regex("element types,? must agree")) == others);
    }
  }
}

TEST_CASE("an op looks at its arguments and leaves them alone") {
  for (const OpCase& c : op_cases()) {
    CAPTURE(c.name);
    std::vector<Tensor> given = sample_inputs(c, DType::f64), before;
    std::vector<Var> args;
    for (const Tensor& t : given) {
      before.push_back(t.clone());
      args.push_back(is_floating(t.dtype()) ? variable(t) : Var(t));
    }
    Var y = c.op(args);
    backward(y, {.seed = Tensor::ones(y.shape(), y.dtype())});
    for (size_t i = 0; i < given.size(); ++i) CHECK(given[i].to_vector() == before[i].to_vector());
  }
}
