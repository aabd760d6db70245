#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace lens {

/// Why a request is not answered: an HTTP status, and a sentence for whoever asked.
class Refused : public std::runtime_error {
 public:
  Refused(int http, const std::string& why) : std::runtime_error(why), status(http) {}
  int status;
};

/// What is asked of a model, see docs/serve.md.
struct ServeRequest {
  std::string model, text;
  /// ids of the first tokens of the translation
  std::vector<int32_t> prefix;
  /// text that comes after them, in the model's own tokens
  std::string force;
  /// words of the source, from 0, that attention must not look at
  std::vector<int32_t> hidden;
  /// words are drawn
  std::optional<uint64_t> seed;
  /// of these
  double sampling_temperature = 1;
  /// none: the model's own
  std::optional<double> attention_temperature;
  /// of a tree
  int64_t beam_size = 4;
};

/// A word that is to be explained.
struct ExplainRequest {
  std::string model = "", text = "";
  /// what should be said; empty: what the model says
  std::string target = "";
  /// instead: the ids that a model said, with </s> or not
  std::optional<std::vector<int32_t>> tokens = {};
  /// none: the model's own
  std::optional<double> attention_temperature = {};
  /// from 0; -1: the one with the largest loss
  int64_t word = -1;
};

/// of a sentence, and of each other text of a request
constexpr size_t kMostTextBytes = 4000;
/// of a source, and of what is forced
constexpr size_t kMostTokens = 200;

/// The JSON object that a body holds; there is no field `without`. @throws Refused (400) that says what is
/// wrong with which field.
ServeRequest read_request(std::string_view body, const std::string& without = "");
/// The same of the fields of an address: numbers are text there, those of a list with commas between.
/// @throws Refused likewise.
ExplainRequest read_explain(const std::multimap<std::string, std::string>& given);
/// A text of a request. @throws Refused unless it is UTF-8 of at most kMostTextBytes.
void check_text(const std::string& field, const std::string& text);

}  // namespace lens
