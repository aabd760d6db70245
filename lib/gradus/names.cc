#include <gradus/names.h>

#include <algorithm>

namespace gradus {
namespace {

// Letters to insert, delete, replace or exchange with a neighbour (Damerau 1964, each place edited once).
size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i)
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

}  // namespace

std::string nearest_name(std::string_view name, const std::vector<std::string>& known) {
  std::string nearest;
  size_t fewest = std::max<size_t>(1, name.size() / 3) + 1;
  for (const std::string& n : known)
    if (size_t e = edits(name, n); e < fewest) fewest = e, nearest = n;
  return nearest;
}

}  // namespace gradus
