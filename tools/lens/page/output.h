#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <gradus/error.h>
#include <gradus/tensor.h>
#include <nlohmann/json.hpp>

namespace lens {

using json = nlohmann::ordered_json;

/// How numbers go into a trace. JSON knows neither NaN nor infinities: they become the strings "nan", "inf",
/// "-inf", so that an exploded gradient is seen. What was not computed is null, never 0.
struct Numbers {
  /// significant ones
  int digits = 17;
  /// of a grid's numbers, see packed(); 0: as text
  int bytes = 0;

  json operator()(double x) const;
  json operator()(const std::vector<double>& all) const;
  /// flat; null when undefined
  json operator()(const gradus::Tensor& all) const;
  /// {"shape": [rows, columns], "shown": n, "values": [...]}, or "bytes" and "base64" instead of "values": the
  /// first `units` columns of each row; null when undefined.
  json grid(const gradus::Tensor& x, int64_t units) const;
  /// All numbers, rows within rows: {"shape": [...], "bytes", "base64"}, or nested lists; null when undefined.
  json array(const gradus::Tensor& x) const;
};

/// What stands there under a name; null where nothing does, or x is no object.
const json& field(const json& x, const char* name);

/// The leading bytes of a tensor's numbers as f64, big-endian, rounded, base64. 3 bytes keep 4 digits, 4 bytes
/// 6, 5 bytes 9, all of them the range of f64, NaN and infinities.
std::string packed(const gradus::Tensor& x, int bytes);

/// The bytes of a tensor's numbers as f32, little-endian, base64: a third of the same in digits.
std::string base64_f32(const gradus::Tensor& x);

/// A schema, or a page that lacks only its data (see embed.py). @throws gradus::Error when there is none.
std::string_view page_file(std::string_view name);

/// JSON without "<", so that no word in it can end the script element that it stands in.
std::string as_script(const json& data);
/// The self-contained page `name`, its data in a script element that is not run.
std::string assemble_page(const std::string& name, const json& data);

/// What pages call the model of a directory: its last part, and of one of several, both/1, the last two.
std::string name_of_model(const std::string& directory);

/// An error's text for a line that begins with this program's name: without "[lens] ", and without its place.
std::string reason(const gradus::Error& e);

/// Writes the file, or throws. "-" is standard output.
void write_file(const std::string& path, const std::string& text);
/// Writes the page `name`, and if that is a file a line to stderr: "FILE: about, 12 KB".
void write_page(const std::string& path, const std::string& name, const json& data, const std::string& about);
/// The same, or as JSON the data alone.
void write_trace(bool as_json, const std::string& path, const std::string& name, const json& data,
                 const std::string& about);

}  // namespace lens
