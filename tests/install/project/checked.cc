// An attention of somebody's own under the check of the lessons, which is installed, too.
#include <lens/check.h>

#include <gradus/ops.h>

using namespace gradus;

int main() {
  auto score = [](auto& in) { return sum(in[0] * in[1], 1); };
  return lens::check(
      "my score", score,
      {{"query", Tensor::from({2, 2}, {1, 2, 3, 4})}, {"keys", Tensor::from({2, 2}, {4, 3, 2, 1})}});
}
