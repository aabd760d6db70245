#include <translator/model/fields.h>

#include <fmt/core.h>

namespace translator {
namespace {

namespace nn = gradus::nn;

struct ValueText {
  std::string operator()(const Switch& kind) const { return *kind.value ? "yes" : "no"; }
  std::string operator()(const Word& kind) const {
    auto alias = kind.aliases.find(*kind.value);
    return alias == kind.aliases.end() ? *kind.value : alias->second;
  }
  std::string operator()(const Cell& kind) const { return nn::cell_name(*kind.value); }
  std::string operator()(const Free& kind) const { return *kind.value; }
  template <class Kind>
  std::string operator()(const Kind& kind) const {
    return fmt::format("{}", *kind.value);
  }
};

}  // namespace

void Cell::set(const std::string& name) const {
  nn::CellType type = nn::cell_type(name);
  type.layer_norm = value->layer_norm;
  *value = type;
}

std::string Field::option() const {
  std::string_view all = flags;
  const size_t begin = all.find("--");
  return begin == all.npos ? "" : std::string(all.substr(begin, all.find(',', begin) - begin));
}

std::string Field::text() const { return std::visit(ValueText{}, value); }

void Field::assign(const Field& other) const {
  auto take = [&](const auto& kind) {
    *kind.value = *std::get<std::decay_t<decltype(kind)>>(other.value).value;
  };
  std::visit(take, value);
}

}  // namespace translator
