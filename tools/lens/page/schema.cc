#include "schema.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include <gradus/error.h>
#include <common/error.h>
#include <common/json_text.h>
#include <common/utf8.h>

namespace lens {
namespace {

const char* type_of(const json& x) { return x.is_number_integer() ? "integer" : x.type_name(); }

// A value in a message.
std::string brief(const json& x) {
  return x.is_structured() ? type_of(x) : translator::utf8::fit(json_text::dump(x), 60);
}

bool is(std::string_view type, std::string_view wanted) {
  return type == wanted || (wanted == "number" && type == "integer");
}

// A place within a document, put into words only when something is wrong there.
struct Where {
  const Where* around = nullptr;  // nullptr: this is the document
  std::string_view name = {};
  std::optional<size_t> index = {};  // of an entry, which has no name

  std::string text() const {
    if (!around) return "";
    std::string before = around->text();
    if (index) return fmt::format("{}[{}]", before, *index);
    return (before.empty() ? "" : before + ".") + translator::utf8::fit(name, 60);
  }
};

class Validator {
 public:
  explicit Validator(const json& root, bool say = true) : root_(root), say_(say) {}

  void check(const json& x, const json& schema, const Where& where) {
    for (const auto& [rule, value] : schema.get_ref<const json::object_t&>()) {
      apply(rule, value, x, schema, where);
      if (broken && !say_) return;
    }
  }
  std::vector<std::string> found;
  bool broken = false;

 private:
  template <class What>
  void report(const Where& where, const What& what) {
    broken = true;
    if (!say_ || found.size() >= 50) return;
    std::string place = where.text();
    found.push_back(translator::utf8::printable((place.empty() ? "document" : place) + ": " + what()));
  }

  void apply(const std::string& rule, const json& value, const json& x, const json& schema,
             const Where& where) {
    if (rule == "type") {
      type(value, x, where);
    } else if (rule == "const") {
      if (x != value) report(where, [&] { return fmt::format("must be {}, is {}", brief(value), brief(x)); });
    } else if (rule == "enum") {
      if (std::find(value.begin(), value.end(), x) == value.end())
        report(where,
               [&] { return fmt::format("must be one of {}, is {}", json_text::dump(value), brief(x)); });
    } else if (rule == "minimum") {
      if (x.is_number() && x.get<double>() < value.get<double>())
        report(where, [&] { return fmt::format("must be at least {}, is {}", brief(value), brief(x)); });
    } else if (rule == "maximum") {
      if (x.is_number() && x.get<double>() > value.get<double>())
        report(where, [&] { return fmt::format("must be at most {}, is {}", brief(value), brief(x)); });
    } else if (rule == "required") {
      for (const json& name : value)
        if (x.is_object() && !x.contains(name.get_ref<const std::string&>()))
          report(where, [&] { return "lacks " + json_text::dump(name); });
    } else if (rule == "properties") {
      if (!x.is_object()) return;
      for (const auto& [name, sub] : value.get_ref<const json::object_t&>())
        if (auto at = x.find(name); at != x.end()) check(*at, sub, {&where, name});
    } else if (rule == "additionalProperties") {
      additional(value, x, schema, where);
    } else if (rule == "items") {
      for (size_t i = schema.contains("prefixItems") ? schema.at("prefixItems").size() : 0;
           x.is_array() && i < x.size(); ++i)
        check(x[i], value, {&where, "", i});
    } else if (rule == "prefixItems") {
      for (size_t i = 0; x.is_array() && i < std::min(x.size(), value.size()); ++i)
        check(x[i], value[i], {&where, "", i});
    } else if (rule == "minItems") {
      if (x.is_array() && x.size() < value.get<size_t>()) report(where, [] { return "has too few entries"; });
    } else if (rule == "maxItems") {
      size_t most = value.get<size_t>();
      if (x.is_array() && x.size() > most)
        report(where, [&] { return fmt::format("has too many entries: {}, at most {}", x.size(), most); });
    } else if (rule == "oneOf") {
      one_of(value, x, where);
    } else if (rule == "$ref") {
      check(x, root_.at("$defs").at(value.get_ref<const std::string&>().substr(kDefs.size())), where);
    } else if (rule != "description" && rule != "title" && rule != "$schema" && rule != "$defs") {
      gradus::fail("schema", "unknown rule \"" + rule + "\"");
    }
  }

  void type(const json& wanted, const json& x, const Where& where) {
    const char* own = type_of(x);
    auto fits = [&](const json& name) { return is(own, name.get_ref<const std::string&>()); };
    if (wanted.is_array() ? std::any_of(wanted.begin(), wanted.end(), fits) : fits(wanted)) return;
    report(where, [&] {
      std::string names;
      for (const json& name : wanted.is_array() ? wanted : json::array({wanted}))
        names += (names.empty() ? "" : " or ") + name.get<std::string>();
      return fmt::format("must be {}, is {}", names, own);
    });
  }

  void additional(const json& value, const json& x, const json& schema, const Where& where) {
    if (!x.is_object()) return;
    auto listed = schema.find("properties");
    for (const auto& [name, item] : x.get_ref<const json::object_t&>()) {
      if (listed != schema.end() && listed->contains(name)) continue;
      if (value.is_boolean() && !value.get<bool>())
        report(where, [&, &name = name] { return "has an unknown " + brief(name); });
      else if (value.is_object())
        check(item, value, {&where, name});
    }
  }

  // Most values fit exactly one: only what does not is looked at once more, for what to say of it.
  void one_of(const json& value, const json& x, const Where& where) {
    auto fits = [&](const json& sub) {
      Validator inner(root_, false);
      inner.check(x, sub, where);
      return !inner.broken;
    };
    auto fitting = std::count_if(value.begin(), value.end(), fits);
    if (fitting == 1) return;
    report(where, [&] {
      // That of the description that goes deepest before it breaks, which is the one that was meant.
      std::string nearest;
      for (const json& sub : value) {
        Validator inner(root_);
        inner.check(x, sub, where);
        if (inner.broken && (nearest.empty() || inner.found[0].find(": ") > nearest.find(": ")))
          nearest = inner.found[0];
      }
      return fmt::format("fits {} of {} descriptions ({})", fitting, value.size(), nearest);
    });
  }

  static constexpr std::string_view kDefs = "#/$defs/";
  const json& root_;
  bool say_;  // otherwise only `broken` is told, at the first of them
};

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

std::vector<std::string> problems(const json& document, const json& schema) {
  Validator v(schema);
  v.check(document, schema, {});
  return v.found;
}

const json& run_log_schema() {
  static const json schema = json_text::parse(page_file("run-log.schema.json"));
  return schema;
}

std::vector<std::string> event_problems(const json& event) {
  static const json schema = schema_of_events();
  std::string kind = event.at("event").get<std::string>();
  if (std::find(std::begin(kEvents), std::end(kEvents), kind) == std::end(kEvents)) return {};
  std::vector<std::string> found = problems(event, part_of(schema, kind));
  if (!found.empty() || kind != "validation") return found;
  const json &probe = field(event, "probe"), &rows = field(probe, "weights");
  if (rows.is_null()) return {};
  const json& columns = probe.at("source_words");
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
        wanted = size == 0               ? 0
                 : wanted > given / size ? given + 1
                                         : wanted * size;  // what is more than that, is more
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

bool next_line(std::istream& log, const std::string& path, int64_t number, std::string& line) {
  constexpr size_t kLongest = 64'000'000;
  line.clear();
  std::streambuf* from = log.rdbuf();
  for (int c; (c = from->sbumpc()) != std::char_traits<char>::eof();) {
    if (c == '\n') return true;
    if (line.size() == kLongest)
      throw translator::InputError(path, number, "the line is longer than 64 MB: this is no log");
    line += static_cast<char>(c);
  }
  return !line.empty();
}

}  // namespace lens
