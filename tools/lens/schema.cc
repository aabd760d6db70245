#include "schema.h"

#include <fmt/core.h>

#include <algorithm>

#include <gradus/error.h>
#include <translator/text/utf8.h>

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

// A value in a message.
std::string brief(const json& x) {
  return x.is_structured() ? type_of(x) : translator::utf8::fit(json_text::dump(x), 60);
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
    if (found.size() < 50)
      found.push_back(translator::utf8::printable((where.empty() ? "document" : where) + ": " + what));
  }

  void apply(const std::string& rule, const json& value, const json& x, const json& schema,
             const std::string& where) {
    if (rule == "type") return type(value, x, where);
    if (rule == "const") {
      if (x != value)
        report(where, fmt::format("must be {}, is {}", brief(value), brief(x)));
    } else if (rule == "enum") {
      if (std::find(value.begin(), value.end(), x) == value.end())
        report(where, fmt::format("must be one of {}, is {}", json_text::dump(value), brief(x)));
    } else if (rule == "minimum") {
      if (x.is_number() && x.get<double>() < value.get<double>())
        report(where, fmt::format("must be at least {}, is {}", brief(value), brief(x)));
    } else if (rule == "maximum") {
      if (x.is_number() && x.get<double>() > value.get<double>())
        report(where, fmt::format("must be at most {}, is {}", brief(value), brief(x)));
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
        if (value.is_boolean() && !value.get<bool>()) report(where, "has an unknown " + brief(name));
        else if (value.is_object()) check(item, value, where + "." + translator::utf8::fit(name, 60));
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
      if (x.is_array() && x.size() > value.get<size_t>())
        report(where, fmt::format("has too many entries: {}, at most {}", x.size(), value.get<size_t>()));
    } else if (rule == "oneOf") {
      size_t fitting = 0;
      std::string nearest;  // that of the description that goes deepest before it breaks, which is the one that was meant
      for (const json& sub : value) {
        Validator inner(root_);
        inner.check(x, sub, where);
        fitting += inner.found.empty();
        if (!inner.found.empty() && (nearest.empty() || inner.found[0].find(": ") > nearest.find(": ")))
          nearest = inner.found[0];
      }
      if (fitting != 1)
        report(where, fmt::format("fits {} of {} descriptions ({})", fitting, value.size(), nearest));
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

namespace {

// The schema of one of another's parts.
json part_of(const json& whole, const std::string& name) {
  return {{"$ref", "#/$defs/" + name}, {"$defs", whole.at("$defs")}};
}

constexpr const char* kEvents[] = {"start", "resume", "validation", "end"};

json schema_of_events() {
  json out = run_log_schema();
  for (const char* kind : kEvents) {
    json& event = out["$defs"][kind];
    event.erase("additionalProperties");
    event["required"] = json::array();
    if (event["properties"].contains("version"))
      event["properties"]["version"] = json::object({{"$ref", "#/$defs/count"}});
  }
  out["$defs"]["validation"]["required"] = json::array({"epoch", "step"});
  out["$defs"]["resume"]["required"] = json::array({"step"});
  return out;
}

}  // namespace

std::vector<std::string> event_problems(const json& event) {
  static const json schema = schema_of_events();
  std::string kind = event.at("event").get<std::string>();
  if (std::find(std::begin(kEvents), std::end(kEvents), kind) == std::end(kEvents)) return {};
  std::vector<std::string> found = problems(event, part_of(schema, kind));
  if (!found.empty() || !event.contains("probe") || !event.at("probe").is_object()) return found;
  const json &probe = event.at("probe"), &rows = probe.at("weights"), &columns = probe.at("source_words");
  if (rows.is_null()) return {};
  if (rows.size() != probe.at("target_words").size())
    return {fmt::format("probe.weights: must be {} rows, one for each of target_words; is {}",
                        probe.at("target_words").size(), rows.size())};
  for (size_t i = 0; i < rows.size(); ++i)
    if (rows[i].size() != columns.size())
      return {fmt::format("probe.weights[{}]: must be {} numbers, one for each of source_words; is {}", i,
                          columns.size(), rows[i].size())};
  return {};
}

std::vector<std::string> check_problems(const json& check) {
  static const json schema = part_of(trace_schema(), "logged_check");
  std::vector<std::string> found = problems(check, schema);
  if (!found.empty()) return found;
  const json& tensors = check.at("tensors");
  for (size_t i = 0; i < tensors.size(); ++i)
    for (const char* side : {"yours", "expected"}) {
      size_t given = tensors[i].at(side).size(), wanted = 1;
      for (const json& n : tensors[i].at("shape")) {
        size_t size = n.get<size_t>();
        wanted = size == 0 ? 0 : wanted > given / size ? given + 1 : wanted * size;  // what is more than that, is more
        if (size == 0) break;
      }
      if (wanted != given)
        return {fmt::format("tensors[{}].{}: {} numbers do not make the shape {}", i, side, given,
                            json_text::dump(tensors[i].at("shape")))};
    }
  return {};
}

const json& trace_schema() {
  static const json schema = json_text::parse(page_file("trace.schema.json"));
  return schema;
}

}  // namespace lens
