// Models of each kind as the translator of commit 3735772 saved them, with what it made of stored/sources.txt:
// `translate MODEL -k 3 --n-best 2 --scores --alignments --threads 1`, the length penalty being 1
// then. Such files are people's; whatever happens to the code, they load and say the same.

#include <filesystem>
#include <fstream>

#include <translator/inference/translation.h>
#include <translator/model/model.h>
#include <translator/text/alignment.h>
#include <translator/text/tokenizer.h>

#include "tiny.h"
#include "../about.h"
#include "../check.h"

using namespace translator;
namespace fs = std::filesystem;

namespace {

const fs::path kStored = GRADUS_STORED_MODELS;

std::vector<std::string> lines_of(const fs::path& path) {
  std::vector<std::string> out;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

std::vector<std::string> columns_of(const std::string& line) {
  std::vector<std::string> out(1);
  for (char c : line)
    if (c == '\t')
      out.emplace_back();
    else
      out.back() += c;
  return out;
}

// To the strongest source word of each word; none without attention.
Links links_of(const Translation& t, size_t source_words) {
  std::vector<float> flat;
  for (size_t row = 0; row < t.tokens.size() && row < t.weights.size(); ++row)
    flat.insert(flat.end(), t.weights[row].begin(), t.weights[row].begin() + static_cast<long>(source_words));
  if (flat.empty()) return {};
  return links_from_attention(
      {static_cast<int64_t>(t.tokens.size()), static_cast<int64_t>(source_words), flat});
}

}  // namespace

TEST_CASE("models that an older version saved load, and translate as they did") {
  const std::vector<std::string> sources = lines_of(kStored / "sources.txt");
  REQUIRE(sources.size() == 5);
  int models = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(kStored)) {
    if (!entry.is_directory()) continue;
    ++models;
    const std::string name = entry.path().filename().string();
    CAPTURE(name);
    const std::vector<std::string> told = lines_of(entry.path() / "translations.tsv");
    REQUIRE(told.size() == 2 * sources.size());
    const Model model = Model::load(entry.path().string());
    for (int threads : {1, 2}) {
      CAPTURE(threads);
      const auto found =
          translate(model, tiny::split(model, sources), {.beam_size = 3, .length_penalty = 1, .weights = true},
                    threads);
      for (size_t i = 0; i < told.size(); ++i) {
        CAPTURE(i);
        const Translation& t = found[i / 2].at(i % 2);
        const std::vector<std::string> columns = columns_of(told[i]);
        REQUIRE(columns.size() == 3);
        CHECK(join_tokens(t.tokens) == columns[0]);
        CHECK(t.log_probability == about(std::stod(columns[1]), 1e-5, 1e-4));  // four decimals are told
        CHECK(format_moses(links_of(t, split_tokens(sources[i / 2]).size())) == columns[2]);
      }
    }
  }
  CHECK(models == 11);
}
