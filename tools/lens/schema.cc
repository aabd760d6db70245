#include "schema.h"

#include <fmt/core.h>

#include <algorithm>

#include <gradus/error.h>

#include "json_text.h"

namespace lens {
namespace {

std::string type_of(const json& x) {
  if (x.is_object()) return "object";
  if (x.is_array()) return "array";
  if (x.is_string()) return "string";
  if (x.is_boolean()) return "boolean";
  if (x.is_number_integer()) return "integer";
  if (x.is_number()) return "number";
  return "null";
}

bool is(const std::string& type, const std::string& wanted) {
  return type == wanted || (wanted == "number" && type == "integer");
}

class Validator {
 public:
  explicit Validator(const json& root) : root_(root) {}

  void check(const json& x, const json& schema, const std::string& where) {
    for (const auto& [rule, value] : schema.items()) apply(rule, value, x, schema, where);
  }
  std::vector<std::string> found;

 private:
  void report(const std::string& where, const std::string& what) {
    if (found.size() < 50) found.push_back((where.empty() ? "document" : where) + ": " + what);
  }

  void apply(const std::string& rule, const json& value, const json& x, const json& schema,
             const std::string& where) {
    if (rule == "type") return type(value, x, where);
    if (rule == "const") {
      if (x != value)
        report(where, fmt::format("must be {}, is {}", json_text::dump(value), json_text::dump(x)));
    } else if (rule == "enum") {
      if (std::find(value.begin(), value.end(), x) == value.end())
        report(where, fmt::format("must be one of {}, is {}", json_text::dump(value), json_text::dump(x)));
    } else if (rule == "minimum") {
      if (x.is_number() && x.get<double>() < value.get<double>())
        report(where, fmt::format("must be at least {}, is {}", json_text::dump(value), json_text::dump(x)));
    } else if (rule == "required") {
      for (const json& name : value)
        if (x.is_object() && !x.contains(name.get<std::string>()))
          report(where, "lacks " + json_text::dump(name));
    } else if (rule == "properties") {
      for (const auto& [name, sub] : value.items())
        if (x.is_object() && x.contains(name))
          check(x.at(name), sub, where.empty() ? name : where + "." + name);
    } else if (rule == "additionalProperties") {
      if (!x.is_object()) return;
      for (const auto& [name, item] : x.items()) {
        if (schema.contains("properties") && schema.at("properties").contains(name)) continue;
        if (value.is_boolean() && !value.get<bool>()) report(where, "has an unknown \"" + name + "\"");
        else if (value.is_object()) check(item, value, where + "." + name);
      }
    } else if (rule == "items") {
      size_t first = schema.contains("prefixItems") ? schema.at("prefixItems").size() : 0;
      for (size_t i = first; x.is_array() && i < x.size(); ++i)
        check(x[i], value, fmt::format("{}[{}]", where, i));
    } else if (rule == "prefixItems") {
      for (size_t i = 0; x.is_array() && i < std::min(x.size(), value.size()); ++i)
        check(x[i], value[i], fmt::format("{}[{}]", where, i));
    } else if (rule == "minItems") {
      if (x.is_array() && x.size() < value.get<size_t>()) report(where, "has too few entries");
    } else if (rule == "maxItems") {
      if (x.is_array() && x.size() > value.get<size_t>()) report(where, "has too many entries");
    } else if (rule == "oneOf") {
      size_t fitting = 0;
      std::string first;
      for (const json& sub : value) {
        Validator inner(root_);
        inner.check(x, sub, where);
        fitting += inner.found.empty();
        if (first.empty() && !inner.found.empty()) first = inner.found[0];
      }
      if (fitting != 1)
        report(where, fmt::format("fits {} of {} descriptions ({})", fitting, value.size(), first));
    } else if (rule == "$ref") {
      std::string name = value.get<std::string>().substr(std::string("#/$defs/").size());
      check(x, root_.at("$defs").at(name), where);
    } else if (rule != "description" && rule != "$defs" && rule != "$schema" && rule != "title") {
      gradus::fail("schema", "unknown rule \"" + rule + "\"");
    }
  }

  void type(const json& wanted, const json& x, const std::string& where) {
    std::string own = type_of(x), names;
    for (const json& name : wanted.is_array() ? wanted : json::array({wanted})) {
      if (is(own, name.get<std::string>())) return;
      names += (names.empty() ? "" : " or ") + name.get<std::string>();
    }
    report(where, fmt::format("must be {}, is {}", names, own));
  }

  const json& root_;
};

}  // namespace

std::vector<std::string> problems(const json& document, const json& schema) {
  Validator v(schema);
  v.check(document, schema, "");
  return v.found;
}

const json& run_log_schema() {
  static const json schema = json_text::parse(page_file("run-log.schema.json"));
  return schema;
}

const json& trace_schema() {
  static const json schema = json_text::parse(page_file("trace.schema.json"));
  return schema;
}

}  // namespace lens
