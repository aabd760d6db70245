#include <translator/model/fields_json.h>

#include <common/error.h>
#include <common/json_text.h>
#include <common/utf8.h>
#include <fmt/core.h>

#include <algorithm>

namespace translator {
namespace {

using json = nlohmann::ordered_json;

// A long value is not repeated whole.
std::string shown(const json& value) {
  std::string text = json_text::dump(value);
  return utf8::printable(text.substr(0, 60)) + (text.size() > 60 ? "..." : "");
}

struct FromJson {
  const json& value;
  const FieldsFile& file;
  const std::string& name;

  void must_be(bool right, const char* kind) const {
    if (!right) file.fault(fmt::format("\"{}\" must be {}: {}", name, kind, shown(value)));
  }

  template <class T>
  void operator()(const Range<T>& kind) const {
    if (std::is_integral_v<T>) must_be(value.is_number_integer(), "a whole number");
    must_be(value.is_number(), "a number");
    const T x = value.get<T>();
    const bool wrapped = std::is_integral_v<T> && static_cast<double>(x) != value.get<double>();
    if (wrapped || !((x >= kind.least && x <= kind.most) || (kind.or_zero && x == 0)))
      throw InputError(file.path, 0,
                       fmt::format("{}: \"{}\" must be from {} to {}: {}", file.impossible, name,
                                   kind.or_zero ? T{0} : kind.least, kind.most, shown(value)));
    *kind.value = x;
  }
  void operator()(const Seed& kind) const {
    must_be(value.is_number_unsigned(), "a whole number from 0 on");
    *kind.value = value.get<uint64_t>();
  }
  void operator()(const Switch& kind) const {
    must_be(value.is_boolean(), "true or false");
    *kind.value = value.get<bool>();
  }
  std::string text() const {
    must_be(value.is_string(), "a text");
    return value.get<std::string>();
  }
  void operator()(const Word& kind) const {
    const std::string word = text();
    // It stands in messages, on terminals.
    must_be(word.size() <= 100 && utf8::printable(word) == word,
            "a text of at most 100 bytes without control characters");
    *kind.value = word;
  }
  void operator()(const Free& kind) const { *kind.value = text(); }
  void operator()(const Cell& kind) const {
    std::string cell;
    (*this)(Word{&cell});
    kind.set(cell);
  }
};

struct ToJson {
  json operator()(const Cell& kind) const { return gradus::nn::cell_name(*kind.value); }
  // JSON is UTF-8, which a path need not be.
  json operator()(const Free& kind) const { return utf8::encode(utf8::decode_lossy(*kind.value)); }
  template <class Kind>
  json operator()(const Kind& kind) const {
    return *kind.value;
  }
};

// What is called `name` in `object`, or in an object there; null: nothing is. `place` ends where the search
// did.
const json* find(const json& object, std::string_view name, const FieldsFile& file, std::string& place) {
  if (!object.is_object()) file.fault((place.empty() ? "it" : place) + " is no object");
  const size_t dot = name.find('.');
  const std::string first(name.substr(0, dot));
  place += (place.empty() ? "" : ".") + first;
  auto at = object.find(first);
  if (at == object.end()) return nullptr;
  return dot == name.npos ? &*at : find(*at, name.substr(dot + 1), file, place);
}

}  // namespace

void FieldsFile::fault(const std::string& what) const {
  throw InputError(path, 0, fmt::format("{}: {}", not_one, what));
}

json to_json(const Field& field) { return std::visit(ToJson(), field.value); }

void set_from_json(const Field& field, const json& value, const FieldsFile& file, const std::string& name) {
  std::visit(FromJson{value, file, name}, field.value);
}

void write_fields(json& file, const std::string& place, const Fields& fields) {
  for (const Field& f : fields) {
    std::string pointer = "/" + place + f.name;
    std::replace(pointer.begin(), pointer.end(), '.', '/');
    file[json::json_pointer(pointer)] = to_json(f);
  }
}

void read_fields(const json& object, const FieldsFile& file, const std::string& place, const Fields& fields) {
  for (const Field& f : fields) {
    std::string name;
    if (const json* found = find(object, place + f.name, file, name))
      set_from_json(f, *found, file, name);
    else if (f.required)
      file.fault(fmt::format("\"{}\" is missing", name));
  }
}

}  // namespace translator
