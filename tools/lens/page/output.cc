#include "output.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

#include <gradus/io/replacement.h>

#include <common/json_text.h>
#include <common/tell.h>

namespace lens {

// Generated from page/ by embed.py.
extern const std::pair<std::string_view, std::string_view> kPageFiles[];
extern const size_t kPageFileCount;

json Numbers::operator()(double x) const {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  if (digits >= 17) return x;
  double rounded = std::strtod(fmt::format("{:.{}g}", x, digits).c_str(), nullptr);
  // Whole numbers without ".0": shorter, and still numbers.
  if (rounded == std::trunc(rounded) && std::abs(rounded) < 1e9) return static_cast<int64_t>(rounded);
  return rounded;
}

json Numbers::operator()(const std::vector<double>& all) const {
  json out = json::array();
  for (double x : all) out.push_back((*this)(x));
  return out;
}

json Numbers::operator()(const gradus::Tensor& all) const {
  if (!all.defined()) return nullptr;
  return (*this)(all.to_vector());
}

json Numbers::grid(const gradus::Tensor& x, int64_t units) const {
  if (!x.defined()) return nullptr;
  int64_t columns = x.dims() == 0 ? 1 : x.size(-1), rows = x.numel() / std::max<int64_t>(columns, 1);
  int64_t shown = std::min(columns, units);
  std::vector<double> values;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < shown; ++c) values.push_back(x.at(r * columns + c));
  json out = {{"shape", {rows, columns}}, {"shown", shown}};
  if (bytes == 0) {
    out["values"] = (*this)(values);
  } else {
    out["bytes"] = bytes;
    out["base64"] = packed(gradus::Tensor::from({rows * shown}, values, gradus::DType::f64), bytes);
  }
  return out;
}

json Numbers::array(const gradus::Tensor& x) const {
  if (!x.defined()) return nullptr;
  if (bytes > 0)
    return {{"shape", std::vector<int64_t>(x.shape().begin(), x.shape().end())},
            {"bytes", bytes},
            {"base64", packed(x, bytes)}};
  if (x.dims() < 2) return (*this)(x);
  json out = json::array();
  for (int64_t i = 0; i < x.size(0); ++i) out.push_back(array(x.row(i)));
  return out;
}

const json& field(const json& x, const char* name) {
  static const json none;
  if (!x.is_object()) return none;
  auto at = x.find(name);
  return at == x.end() ? none : *at;
}

namespace {

std::string base64(const std::string& bytes) {
  static const char* const digit = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    auto byte = [&](size_t k) { return k < bytes.size() ? static_cast<unsigned char>(bytes[k]) : 0u; };
    uint32_t three = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    for (int k = 0; k < 4; ++k)
      out += i + static_cast<size_t>(k) > bytes.size() ? '=' : digit[three >> (18 - 6 * k) & 63];
  }
  return out;
}

}  // namespace

std::string packed(const gradus::Tensor& x, int bytes) {
  std::string out;
  for (int64_t i = 0; i < x.numel(); ++i) {
    uint64_t word = std::bit_cast<uint64_t>(x.at(i));
    if (bytes < 8 && std::isfinite(x.at(i))) word += uint64_t{1} << (63 - 8 * bytes);
    for (int k = 0; k < bytes; ++k) out += static_cast<char>(word >> (56 - 8 * k) & 255);
  }
  return base64(out);
}

std::string base64_f32(const gradus::Tensor& x) {
  std::string bytes;
  for (int64_t i = 0; i < x.numel(); ++i) {
    uint32_t word = std::bit_cast<uint32_t>(static_cast<float>(x.at(i)));
    for (int k = 0; k < 4; ++k) bytes += static_cast<char>(word >> (8 * k) & 255);
  }
  return base64(bytes);
}

std::string_view page_file(std::string_view name) {
  for (size_t i = 0; i < kPageFileCount; ++i)
    if (kPageFiles[i].first == name) return kPageFiles[i].second;
  gradus::fail("lens", fmt::format("there is no page file {}", name));
}

std::string as_script(const json& data) {
  std::string out;
  for (char c : json_text::dump(data)) {
    if (c == '<') out += "\\u003c";
    else out += c;
  }
  return out;
}

std::string assemble_page(const std::string& name, const json& data) {
  constexpr std::string_view kData = "{{data}}";
  std::string_view page = page_file(name + ".html");
  size_t at = page.find(kData);
  if (at == std::string_view::npos) gradus::fail("lens", fmt::format("{}.html has no place for data", name));
  return std::string(page.substr(0, at)) + as_script(data) + std::string(page.substr(at + kData.size()));
}

std::string name_of_model(const std::string& directory) {
  std::string path = directory;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  size_t begin = path.find_last_of('/') + 1;
  const bool number = path.find_first_not_of("0123456789", begin) == std::string::npos;
  if (number && begin > 1) begin = path.find_last_of('/', begin - 2) + 1;
  return path.substr(begin);
}

std::string reason(const gradus::Error& e) {
  constexpr std::string_view kOwn = "[lens] ";
  const std::string text = e.message();
  return text.starts_with(kOwn) ? text.substr(kOwn.size()) : text;
}

void write_file(const std::string& path, const std::string& text) {
  const std::string name = path == "-" ? "standard output" : path;
  auto complain = [&](const std::string& what) { gradus::fail("lens", fmt::format("{} {}", name, what)); };
  if (path != "-") return gradus::io::replace_file(path, text, complain);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    complain(fmt::format("cannot be written: {}", std::strerror(errno)));
}

void write_page(const std::string& path, const std::string& name, const json& data,
                const std::string& about) {
  std::string page = assemble_page(name, data);
  write_file(path, page);
  if (path != "-") translator::tell("{}: {}, {} KB\n", path, about, page.size() / 1000);
}

void write_trace(bool as_json, const std::string& path, const std::string& name, const json& data,
                 const std::string& about) {
  if (as_json) return write_file(path, json_text::dump(data) + "\n");
  write_page(path, name, data, about);
}

}  // namespace lens
