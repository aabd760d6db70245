// Runs the example programs and reads what they print.

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "../about.h"
#include "../read.h"
#include "../scratch.h"

namespace {

struct Output {
  int code;
  std::string text;
  std::vector<std::string> lines;

  bool has(const std::string& what) const { return text.find(what) != std::string::npos; }

  // The numbers of the first line that starts with these words, blanks apart.
  std::vector<double> numbers(const std::string& start) const {
    for (const std::string& line : lines) {
      size_t begin = line.find_first_not_of(' ');
      if (begin == std::string::npos || line.compare(begin, start.size(), start) != 0) continue;
      std::string rest = line.substr(begin + start.size());
      for (char& c : rest)
        if (c == '[' || c == ']' || c == ',' || c == '%') c = ' ';
      std::vector<double> out;
      std::istringstream words(rest);
      for (std::string word; words >> word;) {
        char* end = nullptr;
        double value = strtod(word.c_str(), &end);
        if (*end == 0) out.push_back(value);
      }
      return out;
    }
    FAIL("no line starts with \"" << start << "\" in:\n" << text);
    return {};
  }
};

Output run(const std::string& program, const std::string& arguments = "") {
  std::string command = std::string(EXAMPLES_DIR) + "/" + program + " " + arguments + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe);
  Output out;
  char buffer[4096];
  while (size_t n = fread(buffer, 1, sizeof buffer, pipe)) out.text.append(buffer, n);
  int status = pclose(pipe);
  out.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  std::istringstream text(out.text);
  for (std::string line; std::getline(text, line);) out.lines.push_back(line);
  return out;
}

void check_near(const std::vector<double>& got, const std::vector<double>& expected, double tolerance) {
  REQUIRE(got.size() >= expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    // Relative, but for what is 0 or nearly so.
    CHECK(got[i] == about(expected[i], tolerance, std::abs(expected[i]) < 1e-9 ? 1e-9 : 0));
  }
}

}  // namespace

TEST_CASE("01_gradients: values, tape, both contributions, and gradients that the numeric ones confirm") {
  Output out = run("01_gradients");
  INFO(out.text);
  CHECK(out.code == 0);
  // By hand: u = 0.9, y = tanh u, s = 1.5 y, miss = s - 1, loss = miss^2 + 0.064.
  check_near(out.numbers("y    = tanh(u)"), {0.716298}, 1e-6);
  check_near(out.numbers("loss = miss^2 + 0.1 w^2"), {0.069542}, 1e-6);
  CHECK(out.has("tanh(%4)"));
  CHECK(out.has("parameter \"x\""));
  double through_s = out.numbers("through s = y x").back();
  double through_u = out.numbers("through u = w x + b").back();
  check_near({through_s + through_u}, {0.193651}, 2e-6);
  check_near(out.numbers("sum"), {0.193651}, 1e-6);
  check_near(out.numbers("x      "), {1.5, 0.1936508369, 0.1936508369}, 1e-8);
  check_near(out.numbers("w      "), {0.8, 0.3231224889, 0.3231224889}, 1e-8);
  check_near(out.numbers("b      "), {-0.3, 0.1087483259, 0.1087483259}, 1e-8);
  CHECK(out.has("[gradcheck] passed: all of 3 derivatives"));
}

TEST_CASE("02_worked_attention: the golden numbers, every gradient, float and double, softmax as written") {
  Output out = run("02_worked_attention");
  INFO(out.text);
  CHECK(out.code == 0);
  const std::vector<double> scores = {927, 397, 148, 929};
  const std::vector<double> weights = {0.119202922022118, 7.94715150796016e-232, 0, 0.880797077977883};
  const std::vector<double> context = {3.88079707797788, 4.07282629819906, 45.2642391233934};
  auto entry = [](const char* name, size_t i) { return std::string(name) + "[" + std::to_string(i) + "]"; };
  for (size_t i = 0; i < 4; ++i) {
    check_near(out.numbers(entry("score", i)), {scores[i], scores[i]}, 1e-7);
    check_near(out.numbers(entry("weight", i)), {weights[i], weights[i]}, 1e-6);
  }
  check_near(out.numbers("context c, their sum"), {3.8808, 4.0728, 45.2642}, 5e-5);
  for (size_t i = 0; i < 3; ++i) check_near(out.numbers(entry("context", i)), {context[i], context[i]}, 1e-5);

  // delta_s = a_s g . (h_s - c) with g = (1, 1, 1): 0.1192 (60 - 53.2179) and its opposite.
  const double delta = 0.119202922022118 * (60 - (context[0] + context[1] + context[2]));
  check_near(out.numbers("d weight[0]"), {60, 60}, 1e-6);
  check_near(out.numbers("d weight[3]"), {52.3, 52.3}, 1e-6);
  check_near(out.numbers("d score[0]"), {delta, delta}, 1e-5);
  check_near(out.numbers("d score[1]"), {0, 0}, 1e-9);
  check_near(out.numbers("d score[3]"), {-delta, -delta}, 1e-5);
  // sum_s delta_s h_s = delta (h_0 - h_3)
  check_near(out.numbers("d state[0]"), {-delta, -delta}, 1e-5);
  check_near(out.numbers("d state[1]"), {9 * delta, 9 * delta}, 1e-5);
  check_near(out.numbers("d state[2]"), {-0.3 * delta, -0.3 * delta}, 2e-4);
  // a_s g + delta_s q
  check_near(out.numbers("d annotation[0,0]"), {0.119202922 + 5 * delta, 0.119202922 + 5 * delta}, 1e-5);
  check_near(out.numbers("d annotation[1,2]"), {0, 0}, 1e-9);
  check_near(out.numbers("d annotation[3,2]"), {0.880797078 - 20 * delta, 0.880797078 - 20 * delta}, 1e-5);

  CHECK(out.has("nan"));
  CHECK_FALSE(out.has("-nan"));
  CHECK(out.has("[exp] the output is not finite: f32 [4], 4 infinite, scope \"attention\""));
}

TEST_CASE("02_worked_attention: the five heat maps are those of docs/, and it takes no other option") {
  scratch::Directory directory;
  const std::string file = directory.file("worked.svg");
  Output out = run("02_worked_attention", "--svg '" + file + "'");
  INFO(out.text);
  CHECK(out.code == 0);
  CHECK(out.text.empty());
  const std::string svg = read_whole(file);
  CHECK_MESSAGE(svg == read_whole(SOURCE_ROOT "/docs/worked-attention.svg"),
                "run 02_worked_attention --svg docs/worked-attention.svg");
  for (const char* number : {">927<", ">929<", ">0.1192<", ">0.8808<", ">5.364<", ">3.881<", ">45.26<"})
    CHECK_MESSAGE(svg.find(number) != std::string::npos, number);
  Output nowhere = run("02_worked_attention", "--svg /no/such/directory/worked.svg");
  CHECK(nowhere.code == 1);
  CHECK(nowhere.has("/no/such/directory/worked.svg cannot be written"));
  CHECK(run("02_worked_attention", "--sing").code == 2);
}

TEST_CASE("03_custom_op: the right backward passes every check, the wrong one fails") {
  Output out = run("03_custom_op");
  INFO(out.text);
  CHECK(out.code == 0);
  check_near(out.numbers("0.000"), {0, 0.5, 0.5}, 1e-8);
  check_near(out.numbers("2.000"), {1.761594, 1.09078425, 1.09078425}, 1e-6);
  CHECK(out.has("swish                        passed"));
  CHECK(out.has("swish: far from 0            passed"));
  CHECK(out.has("forgetful_swish: op: [gradcheck] failed"));
  CHECK(out.has("forgetful_swish: gradient of input 0 differs from the reference"));
  CHECK(out.has("swish            [gradcheck] passed"));
  CHECK(out.has("forgetful_swish  [gradcheck] failed"));
}

TEST_CASE("04_custom_layer: checked, trained, saved and loaded") {
  scratch::Directory directory;
  std::string file = directory.file("layer.safetensors");
  Output out = run("04_custom_layer", "'" + file + "'");
  INFO(out.text);
  CHECK(out.code == 0);
  CHECK(out.has("The layer:  [gradcheck] passed"));
  CHECK(out.has("The model:  [gradcheck] passed"));
  CHECK(out.has("layers.1.candidate.weight"));
  std::vector<double> first = out.numbers("0 "), last = out.numbers("200 ");
  REQUIRE(first.size() >= 4);
  REQUIRE(last.size() >= 4);
  CHECK(first[0] > 0.5);   // two classes, nothing learned: log 2
  CHECK(last[0] < 0.01);
  CHECK(last[3] >= 97);    // per cent right on held-out points
  CHECK(out.has(", 0 after."));
  // 8 bytes of header length, then JSON.
  std::ifstream saved(file, std::ios::binary);
  std::string head(9, ' ');
  saved.read(head.data(), 9);
  CHECK(head[8] == '{');

  Output nowhere = run("04_custom_layer", "/no/such/directory/spirals.safetensors");
  INFO(nowhere.text);
  CHECK(nowhere.code == 1);
  CHECK(nowhere.has("/no/such/directory/spirals.safetensors"));
}

TEST_CASE("the README shows code that the example programs contain, word for word") {
  std::string readme = read_whole(SOURCE_ROOT "/README.md"), programs;
  for (const char* name : {"01_gradients", "02_worked_attention", "03_custom_op", "04_custom_layer"})
    programs += read_whole(std::string(SOURCE_ROOT "/examples/") + name + ".cc");
  const std::string open = "```cpp\n", close = "```";
  int blocks = 0;
  for (size_t begin = readme.find(open); begin != std::string::npos; begin = readme.find(open, begin)) {
    begin += open.size();
    std::string code = readme.substr(begin, readme.find(close, begin) - begin);
    CAPTURE(code);
    CHECK(programs.find(code) != std::string::npos);
    ++blocks;
  }
  CHECK(blocks >= 1);
}
