#include "request.h"

#include <fmt/core.h>

#include <cmath>
#include <functional>

#include <common/json_text.h>
#include <common/utf8.h>

namespace lens {
namespace {

using json = nlohmann::ordered_json;

[[noreturn]] void refuse(const std::string& field, const std::string& why) {
  throw Refused(400, fmt::format("\"{}\" {}", field, why));
}

// `known`: what there is, by its name.
template <class Fields>
[[noreturn]] void refuse_unknown(const std::string& field, const Fields& known) {
  std::string names;
  for (const auto& [each, take] : known) names += (names.empty() ? "" : ", ") + each;
  throw Refused(400, fmt::format("there is no field \"{}\"; those there are: {}",
                                 translator::utf8::fit(translator::utf8::printable(field), 40), names));
}

std::string text(const std::string& field, const json& x) {
  if (!x.is_string()) refuse(field, "must be text");
  auto out = x.get<std::string>();
  check_text(field, out);
  return out;
}

double number(const std::string& field, const json& x, double least, double most) {
  const double value = x.is_number() ? x.get<double>() : std::nan("");
  if (!(value >= least && value <= most))
    refuse(field, fmt::format("must be a number from {} to {}", least, most));
  return value;
}

int64_t whole(const std::string& field, const json& x, int64_t least, int64_t most) {
  const bool fits = x.is_number_integer() && !(x.is_number_unsigned() && x.get<uint64_t>() > INT64_MAX);
  const int64_t value = fits ? x.get<int64_t>() : least - 1;
  if (value < least || value > most)
    refuse(field, fmt::format("must be a whole number from {} to {}", least, most));
  return value;
}

std::vector<int32_t> numbers(const std::string& field, const json& x) {
  if (!x.is_array() || x.size() > kMostTokens)
    refuse(field, fmt::format("must be a list of at most {} whole numbers", kMostTokens));
  std::vector<int32_t> out;
  for (const json& one : x) out.push_back(static_cast<int32_t>(whole(field, one, 0, INT32_MAX)));
  return out;
}

}  // namespace

void check_text(const std::string& field, const std::string& given) {
  if (given.size() > kMostTextBytes)
    throw Refused(
        413, fmt::format("\"{}\" has {} bytes; {} at most are taken", field, given.size(), kMostTextBytes));
  if (auto bad = translator::utf8::describe_invalid_byte(given); !bad.empty())
    refuse(field, "is no text: " + bad);
}

ExplainRequest read_explain(const std::multimap<std::string, std::string>& given) {
  ExplainRequest out;
  const std::map<std::string, std::function<void(const std::string&, const std::string&)>> fields = {
      {"model", [&](auto&, auto& x) { out.model = x; }},
      {"text", [&](auto&, auto& x) { out.text = x; }},
      {"target", [&](auto&, auto& x) { out.target = x; }},
      {"tokens",
       [&](auto& field, auto& x) {
         out.tokens = numbers(field, json_text::parse_or_discarded("[" + x + "]"));
       }},
      {"attention_temperature",
       [&](auto& field, auto& x) {
         out.attention_temperature = number(field, json_text::parse_or_discarded(x), 0.05, 20);
       }},
      {"word",
       [&](auto& field, auto& x) {
         if (x.size() > 4 || x.find_first_not_of("0123456789") != std::string::npos)
           refuse(field, "must be the number of a word, from 0");
         if (!x.empty()) out.word = std::stoi(x);
       }},
  };
  for (const auto& [name, value] : given) {
    const auto field = fields.find(name);
    if (field == fields.end()) refuse_unknown(name, fields);
    if (given.count(name) > 1) refuse(name, "is given twice");
    check_text(name, value);
    field->second(name, value);
  }
  if (out.tokens && !out.target.empty())
    throw Refused(400, "\"target\" and \"tokens\" both say what is explained: one of them is enough");
  return out;
}

ServeRequest read_request(std::string_view body, const std::string& without) {
  if (auto bad = translator::utf8::describe_invalid_byte(body); !bad.empty())
    throw Refused(400, "the request is no text: " + bad);
  const json all = json_text::parse_or_discarded(body);
  if (!all.is_object()) throw Refused(400, "the request must be one JSON object");
  ServeRequest out;
  std::map<std::string, std::function<void(const std::string&, const json&)>> fields = {
      {"model", [&](auto& field, auto& x) { out.model = text(field, x); }},
      {"text", [&](auto& field, auto& x) { out.text = text(field, x); }},
      {"force", [&](auto& field, auto& x) { out.force = text(field, x); }},
      {"prefix", [&](auto& field, auto& x) { out.prefix = numbers(field, x); }},
      {"hidden", [&](auto& field, auto& x) { out.hidden = numbers(field, x); }},
      {"seed",
       [&](auto& field, auto& x) { out.seed = static_cast<uint64_t>(whole(field, x, 0, int64_t{1} << 53)); }},
      {"sampling_temperature",
       [&](auto& field, auto& x) { out.sampling_temperature = number(field, x, 0.05, 20); }},
      {"attention_temperature",
       [&](auto& field, auto& x) { out.attention_temperature = number(field, x, 0.05, 20); }},
      {"beam_size", [&](auto& field, auto& x) { out.beam_size = whole(field, x, 1, 10); }},
  };
  fields.erase(without);
  for (const auto& [name, value] : all.items()) {
    auto field = fields.find(name);
    if (field == fields.end()) refuse_unknown(name, fields);
    if (!value.is_null()) field->second(name, value);
  }
  if (!all.value("sampling_temperature", json()).is_null() && !out.seed)
    throw Refused(400, "\"sampling_temperature\" is of words that are drawn, with a \"seed\"");
  if (out.text.empty()) throw Refused(400, "\"text\" is missing: the sentence to translate");
  return out;
}

}  // namespace lens
