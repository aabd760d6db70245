// Dependencies point one way:
//   base <- kernels <- tensor <- autograd <- ops <- nn <- examples, tools
// This reads the #include lines of lib/ and nn/ and knows for every file which layer it belongs to. A file
// may include headers of its own layer and of those below. Only kernels/ may see BLAS and SIMD, and no
// installed header pulls fmt, JSON, BLAS or SIMD into its users' builds. The translator's rooms are layers
// like these.

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "../read.h"

namespace fs = std::filesystem;

namespace {

enum Layer { kBase, kKernels, kTensor, kAutograd, kOps, kNn };
const char* const kNames[] = {"base", "kernels", "tensor", "autograd", "ops", "nn"};

// The files directly under lib/gradus/, by stem. A new one has to be entered here.
const std::map<std::string, Layer> kStems = {
    {"dtype", kBase},         {"error", kBase},         {"shape", kBase},
    {"memory", kBase},        {"parallel", kBase},      {"random", kBase},
    {"names", kBase},
    {"tensor", kTensor},      {"numeric", kTensor},     {"print", kTensor},
    {"walk", kTensor},        {"autograd", kAutograd},  {"backward", kAutograd},
    {"gradcheck", kAutograd}, {"diagnosis", kAutograd}, {"diagnosis_rules", kAutograd},
    {"diagnosis_slopes", kAutograd},
    {"backward_pass", kAutograd}, {"grads", kAutograd},
    {"op_case", kAutograd},   {"trace", kAutograd},     {"differences", kBase},
    {"ops", kOps},  // ops.h gathers the headers of ops/
};
const std::map<std::string, Layer> kFolders = {
    {"kernels", kKernels}, {"io", kTensor}, {"ops", kOps}, {"nn", kNn}};

// Layer of "gradus/ops/gru.h" and the like; -1 when nobody knows.
int layer_of(const std::string& path) {
  fs::path p(path);
  auto part = p.begin();
  if (part == p.end() || *part != "gradus") return -1;
  ++part;
  if (std::next(part) != p.end()) {
    auto folder = kFolders.find(part->string());
    return folder == kFolders.end() ? -1 : folder->second;
  }
  auto stem = kStems.find(part->stem().string());
  return stem == kStems.end() ? -1 : stem->second;
}

struct Include {
  std::string target;
  int line;
};

struct Source {
  std::string path;    // from the include root: "gradus/ops/gru.cc"
  std::string folder;  // "lib" or "nn"
  std::vector<Include> includes;
  bool is_header() const { return path.ends_with(".h"); }
  std::string at(const Include& i) const {
    return folder + "/" + path + ":" + std::to_string(i.line) + " includes " + i.target;
  }
};

std::vector<Include> includes_of(std::istream& in) {
  std::vector<Include> out;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    size_t at = line.find_first_not_of(" \t");
    if (at == std::string::npos || line[at] != '#') continue;
    at = line.find_first_not_of(" \t", at + 1);
    if (at == std::string::npos || line.compare(at, 7, "include") != 0) continue;
    size_t open = line.find_first_of("<\"", at + 7);
    if (open == std::string::npos) continue;
    size_t close = line.find_first_of(">\"", open + 1);
    if (close != std::string::npos) out.push_back({line.substr(open + 1, close - open - 1), number});
  }
  return out;
}

std::vector<Source> sources() {
  std::vector<Source> out;
  for (const char* folder : {"lib", "nn"}) {
    fs::path root = fs::path(GRADUS_SOURCE_ROOT) / folder;
    for (const auto& entry : fs::recursive_directory_iterator(root / "gradus")) {
      std::string kind = entry.path().extension().string();
      if (!entry.is_regular_file() || (kind != ".h" && kind != ".cc")) continue;
      std::ifstream in(entry.path());
      out.push_back({fs::relative(entry.path(), root).generic_string(), folder, includes_of(in)});
    }
  }
  std::sort(out.begin(), out.end(), [](auto& a, auto& b) { return a.path < b.path; });
  return out;
}

bool is_third_party(const std::string& target, const std::vector<std::string>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](const std::string& p) { return target.starts_with(p); });
}

const std::vector<std::string> kBlasAndSimd = {"cblas",     "openblas",  "hwy/",
                                               "immintrin", "x86intrin", "arm_neon"};
const std::string kProducts = "gradus/kernels/products/";
const std::set<std::string> kDoors = {kProducts + "gemm.h", kProducts + "packed_gemm.h",
                                      kProducts + "small_gemm.h", kProducts + "int8.h"};
const std::vector<std::string> kHeavy = {"fmt/", "nlohmann/", "CLI/", "utf8proc"};

// Everything an include list breaks, one line each: the rules themselves, so that they can be tested.
std::vector<std::string> violations(const Source& file, const std::set<std::string>& internal_headers) {
  std::vector<std::string> out;
  const int own = layer_of(file.path);
  if (own < 0) return {file.folder + "/" + file.path + " belongs to no known layer: enter it in this test"};
  const bool installed = file.is_header() && !internal_headers.count(file.path);
  for (const Include& i : file.includes) {
    if (i.target.starts_with("gradus/")) {
      const int other = layer_of(i.target);
      if (other < 0) out.push_back(file.at(i) + ", which belongs to no known layer");
      else if (other > own)
        out.push_back(file.at(i) + ": " + kNames[own] + " may not look up at " + kNames[other]);
      if (installed && internal_headers.count(i.target))
        out.push_back(file.at(i) + ", which is not installed");
      if (i.target.starts_with(kProducts) && !file.path.starts_with(kProducts) && !kDoors.count(i.target))
        out.push_back(file.at(i) + ": of products/ only the doors gemm.h, packed_gemm.h, small_gemm.h, int8.h");
    } else if (own != kKernels && is_third_party(i.target, kBlasAndSimd)) {
      out.push_back(file.at(i) + ": BLAS and SIMD are for kernels/ only");
    } else if (installed && (is_third_party(i.target, kHeavy) || is_third_party(i.target, kBlasAndSimd))) {
      out.push_back(file.at(i) + ": installed headers stay light");
    }
  }
  return out;
}

// Headers that no meson.build lists for installation: for .cc files of the library only.
std::set<std::string> not_installed(const std::vector<Source>& files) {
  std::map<fs::path, std::string> builds;  // directory -> text of its meson.build
  auto build_of = [&](const fs::path& directory) -> const std::string& {
    auto [at, is_new] = builds.try_emplace(directory);
    std::ifstream in(fs::path(GRADUS_SOURCE_ROOT) / directory / "meson.build");
    if (is_new) at->second = std::string(std::istreambuf_iterator<char>(in), {});
    return at->second;
  };
  std::set<std::string> out;
  for (const Source& file : files) {
    if (!file.is_header()) continue;
    const fs::path path = fs::path(file.folder) / file.path;
    bool listed = false;
    for (fs::path directory = path.parent_path(); !directory.empty() && !listed;
         directory = directory.parent_path()) {
      // By name, or without its ending in a list that stands for both the .cc and the .h.
      const fs::path name = path.lexically_relative(directory);
      const std::string& text = build_of(directory);
      listed =
          text.find("'" + name.generic_string() + "'") != std::string::npos ||
          text.find("'" + fs::path(name).replace_extension().generic_string() + "'") != std::string::npos;
    }
    if (!listed) out.insert(file.path);
  }
  return out;
}

// The pages of the project.
std::vector<fs::path> pages() {
  const fs::path root = GRADUS_SOURCE_ROOT;
  std::vector<fs::path> out{root / "README.md", root / "SECURITY.md"};
  for (const auto& entry : fs::recursive_directory_iterator(root / "docs"))
    if (entry.path().extension() == ".md") out.push_back(entry.path());
  return out;
}

}  // namespace

TEST_CASE("no file of lib/ or nn/ includes what its layer may not see") {
  const std::vector<Source> files = sources();
  REQUIRE(files.size() > 50);
  const std::set<std::string> internal_headers = not_installed(files);
  CHECK(internal_headers.count("gradus/walk.h") == 1);
  CHECK(internal_headers.count("gradus/autograd.h") == 0);
  CHECK(internal_headers.count("gradus/ops/gru.h") == 0);
  for (const Source& file : files)
    for (const std::string& line : violations(file, internal_headers)) FAIL_CHECK(line);
}

TEST_CASE("no room of the translator includes one that stands on it") {
  const std::vector<std::string> rooms = {"attentions", "text",      "corpus",   "doctor",
                                          "model",      "inference", "training", "commands"};
  auto height = [&](const std::string& room) {
    return std::find(rooms.begin(), rooms.end(), room) - rooms.begin();
  };
  const fs::path root = fs::path(GRADUS_SOURCE_ROOT) / "examples" / "translator";
  int includes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const fs::path path = fs::relative(entry.path(), root);
    if (path.extension() != ".h" && path.extension() != ".cc") continue;
    if (path == "main.cc") continue;  // on top of all
    const std::string own = path.begin()->string();
    REQUIRE_MESSAGE(height(own) < std::ssize(rooms), path.string() << " is in no room that this test knows");
    std::ifstream in(entry.path());
    for (const Include& i : includes_of(in)) {
      if (!i.target.starts_with("translator/")) continue;
      const std::string other = std::next(fs::path(i.target).begin())->string();
      CHECK_MESSAGE(height(other) <= height(own),
                    path.string() << ":" << i.line << ": " << own << " may not look up at " << other);
      ++includes;
    }
  }
  CHECK(includes > 200);
}

TEST_CASE("headers say #pragma once, and ops.h gathers every op") {
  std::set<std::string> gathered;
  for (const Source& file : sources()) {
    if (file.path == "gradus/ops.h")
      for (const Include& i : file.includes) gathered.insert(i.target);
    if (!file.is_header()) continue;
    CAPTURE(file.path);
    const std::string text = read_whole(fs::path(GRADUS_SOURCE_ROOT) / file.folder / file.path);
    // Highway compiles some files once per instruction set: those guard themselves by target.
    CHECK((text.find("#pragma once") != std::string::npos ||
           text.find("HWY_TARGET_TOGGLE") != std::string::npos));
  }
  const std::vector<Source> files = sources();
  const std::set<std::string> internal_headers = not_installed(files);
  for (const Source& file : files)
    if (file.path.starts_with("gradus/ops/") && file.is_header() && !internal_headers.count(file.path)) {
      CAPTURE(file.path);
      CHECK(gathered.count(file.path) == 1);
    }
}

TEST_CASE("every page of docs/ is linked from the index of its folder, and that from the README") {
  const fs::path root = GRADUS_SOURCE_ROOT;
  int pages = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root / "docs")) {
    fs::path page = entry.path(), index = page.parent_path() / "README.md";
    if (page.extension() != ".md") continue;
    if (page == index) index = root / "README.md";
    CAPTURE(page.string());
    std::string link = "](" + fs::relative(page, index.parent_path()).generic_string() + ")";
    CHECK(read_whole(index).find(link) != std::string::npos);
    ++pages;
  }
  CHECK(pages > 15);
}

// As GitHub names a heading: in lower case, without marks, a hyphen for each space.
std::set<std::string> headings(const fs::path& page) {
  std::set<std::string> out;
  std::ifstream in(page);
  for (std::string line; std::getline(in, line);) {
    const size_t begin = line.find_first_not_of('#');
    if (begin == 0 || begin > 6 || line[begin] != ' ') continue;
    std::string name;
    for (unsigned char c : line.substr(begin + 1))
      if (std::isalnum(c) || c == '-' || c == '_' || c >= 0x80) name += static_cast<char>(std::tolower(c));
      else if (c == ' ') name += '-';
    out.insert(name);
  }
  return out;
}

TEST_CASE("every link from a page to a file of the project, or to a heading, leads to one") {
  int links = 0, anchors = 0;
  for (const fs::path& page : pages()) {
    const std::string text = read_whole(page);
    for (size_t at = text.find("]("); at != std::string::npos; at = text.find("](", at)) {
      at += 2;
      const std::string link = text.substr(at, text.find(')', at) - at);
      // A space is in no link, but in the parameters of a lambda, which look like one.
      if (link.empty() || link.find("://") != std::string::npos || link.find(' ') != std::string::npos)
        continue;
      const size_t mark = link.find('#');
      const fs::path file = mark == 0 ? page : page.parent_path() / link.substr(0, mark);
      CHECK_MESSAGE(fs::exists(file), page.string() << " leads to " << link);
      ++links;
      if (mark == std::string::npos || file.extension() != ".md") continue;
      CHECK_MESSAGE(headings(file).count(link.substr(mark + 1)) == 1, page.string() << " leads to " << link);
      ++anchors;
    }
  }
  CHECK(links > 60);
  CHECK(anchors > 20);
}

// A bar in a cell is escaped, in backquotes, too.
TEST_CASE("the rows of a table have as many cells as its head") {
  for (const fs::path& page : pages()) {
    std::ifstream in(page);
    std::ptrdiff_t cells = 0;
    for (std::string line; std::getline(in, line);) {
      std::ptrdiff_t bars = 0;
      for (size_t i = 0; i < line.size(); ++i) bars += line[i] == '|' && (i == 0 || line[i - 1] != '\\');
      if (!line.starts_with("|")) bars = 0;
      if (cells > 0 && bars > 0) CHECK_MESSAGE(bars == cells, page.string() << ": " << line);
      cells = bars;
    }
  }
}

TEST_CASE("the rules find what breaks them") {
  auto broken = [](const std::string& path, const std::string& target,
                   std::set<std::string> internal_headers = {}) {
    return violations({path, "lib", {{target, 3}}}, internal_headers).size();
  };
  CHECK(broken("gradus/tensor.h", "gradus/shape.h") == 0);
  CHECK(broken("gradus/tensor.cc", "gradus/kernels/products/gemm.h") == 0);
  CHECK(broken("gradus/shape.cc", "gradus/tensor.h") == 1);
  CHECK(broken("gradus/kernels/products/gemm.cc", "gradus/tensor.h") == 1);
  CHECK(broken("gradus/kernels/products/gemm.cc", "cblas.h") == 0);
  CHECK(broken("gradus/kernels/products/gemm.h", "cblas.h") == 1);
  CHECK(broken("gradus/ops/matmul.cc", "gradus/kernels/products/amx.h") == 1);
  CHECK(broken("gradus/kernels/recurrent.cc", "gradus/kernels/products/behind_gemm.h") == 1);
  CHECK(broken("gradus/kernels/products/gemm.cc", "gradus/kernels/products/behind_gemm.h") == 0);
  CHECK(broken("gradus/ops/matmul.cc", "cblas.h") == 1);
  CHECK(broken("gradus/ops/matmul.cc", "hwy/highway.h") == 1);
  CHECK(broken("gradus/autograd.cc", "gradus/ops/matmul.h") == 1);
  CHECK(broken("gradus/ops/gru.cc", "gradus/ops/matmul.h") == 0);
  CHECK(broken("gradus/ops/gru.cc", "gradus/nn/gru.h") == 1);
  CHECK(broken("gradus/nn/gru.cc", "gradus/ops/gru.h") == 0);
  CHECK(broken("gradus/autograd.cc", "fmt/core.h") == 0);
  CHECK(broken("gradus/autograd.h", "fmt/core.h") == 1);
  CHECK(broken("gradus/autograd.h", "nlohmann/json.hpp") == 1);
  CHECK(broken("gradus/autograd.h", "gradus/walk.h", {"gradus/walk.h"}) == 1);
  CHECK(broken("gradus/ops/reduce.cc", "gradus/walk.h", {"gradus/walk.h"}) == 0);
  CHECK(violations({"gradus/news.cc", "lib", {}}, {}).size() == 1);
  std::istringstream text(
      "  #  include <a/b.h>\n// #include <no.h>\n#include \"c.h\"  // why\n#pragma once\n");
  std::vector<Include> found = includes_of(text);
  REQUIRE(found.size() == 2);
  CHECK(found[0].target == "a/b.h");
  CHECK(found[1].target == "c.h");
  CHECK(found[1].line == 3);
}
