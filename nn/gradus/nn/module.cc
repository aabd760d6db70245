#include <gradus/nn/module.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include <gradus/diagnosis_rules.h>
#include <gradus/io/safetensors.h>
#include <gradus/nn/check.h>
#include <gradus/ops/operands.h>
#include <gradus/ops/shape.h>

namespace gradus::nn {
namespace {

// "Linear" of "... [with M = gradus::nn::Linear; ...]", as gcc writes it, and "... [M = gradus::nn::Linear]",
// as clang does; arguments of templates stay.
std::string type_of(std::string_view signature) {
  std::string_view type = signature.substr(signature.find("M = ") + 4);
  type = type.substr(0, std::min(type.find("; "), type.rfind(']')));
  int depth = 0;
  for (size_t i = type.size(); i-- > 0;) {
    if (type[i] == '>' || type[i] == ')') ++depth;
    if (type[i] == '<' || type[i] == '(') --depth;
    if (depth == 0 && type[i] == ':') return std::string(type.substr(i + 1));
  }
  return std::string(type);
}

std::string with_commas(int64_t n) {
  std::string digits = std::to_string(n);
  for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string readable_bytes(int64_t n) {
  if (n < 10'000) return with_commas(n) + " bytes";
  if (n < 1'000'000) return fmt::format("{:.1f} kB", static_cast<double>(n) / 1e3);
  return fmt::format("{:.1f} MB", static_cast<double>(n) / 1e6);
}

// "module." where every one of `names` is among `longer` with that before it; "" otherwise.
std::string prefix_between(const std::vector<std::string>& names, const std::vector<std::string>& longer) {
  if (names.empty()) return "";
  for (const std::string& candidate : longer) {
    if (!candidate.ends_with("." + names[0])) continue;
    std::string prefix = candidate.substr(0, candidate.size() - names[0].size());
    auto has = [&](const std::string& n) {
      return std::find(longer.begin(), longer.end(), prefix + n) != longer.end();
    };
    if (std::all_of(names.begin(), names.end(), has)) return prefix;
  }
  return "";
}

// Puts the dictionary into the parameters, or says all that is wrong with it. `where` and `file` begin the
// message.
void take_over(const std::vector<NamedParameter>& parameters, StateDict dict, const char* where,
               const std::string& file) {
  std::unordered_map<std::string, Tensor*> given;
  std::vector<std::string> missing, unexpected, misshaped, twice;
  bool transposed = false;
  for (auto& [name, value] : dict)
    if (!given.emplace(name, &value).second) twice.push_back(name);
  std::unordered_map<std::string, bool> known;
  for (const NamedParameter& p : parameters) {
    known[p.name] = true;
    auto at = given.find(p.name);
    if (at == given.end()) missing.push_back(p.name);
    else if (const Shape& own = p.parameter->shape(), &other = at->second->shape(); other != own) {
      transposed = transposed || (own.dims() == 2 && other == Shape{own[1], own[0]});
      misshaped.push_back(fmt::format("{} (module {}, given {})", p.name, own, other));
    }
  }
  for (const auto& [name, value] : dict)
    if (!known.count(name)) unexpected.push_back(name);

  std::string hint = transposed ? "a weight is [out, in]: transposed?" : "";
  if (std::string under = prefix_between(missing, unexpected); !under.empty())
    hint = "they are given under \"" + under + "\"";
  else if (under = prefix_between(unexpected, missing); !under.empty())
    hint = "the module has them under \"" + under + "\"";
  std::string wrong = all_wrong(
      {{"missing", missing}, {"unexpected", unexpected}, {"wrong shape", misshaped}, {"given twice", twice}});
  if (!wrong.empty()) fail(where, file + "the names and shapes must be the module's: " + wrong, hint);
  for (const NamedParameter& p : parameters) {
    Tensor value = std::exchange(*given[p.name], {}).to(p.parameter->value().dtype());
    p.parameter->assign(value.sole_owner() ? value : value.clone());  // the caller may write into his own
  }
}

// The parameters in f64 for the lifetime of this object, then the numbers they had, bit for bit.
class InDouble {
 public:
  explicit InDouble(const ParameterList& parameters)
      : parameters_(parameters), before_(state_dict(parameters)) {
    to(parameters, DType::f64);
  }
  ~InDouble() {
    for (size_t i = 0; i < before_.size(); ++i) parameters_[i].parameter->assign(before_[i].second);
  }
  InDouble(const InDouble&) = delete;

 private:
  ParameterList parameters_;
  StateDict before_;
};

}  // namespace

void ParamVisitor::operator()(const std::string& name, Parameter& parameter) {
  if (!parameter.defined()) return;
  for (const Entry& e : entries_) {
    if (e.parameter->var().node() == parameter.var().node()) return;
    if (e.name == prefix_ + name) fail("params", e.name + " is the name of two parameters");
  }
  entries_.push_back({prefix_ + name, layers_.empty() ? std::string() : layers_.back(), &parameter});
}

size_t ParamVisitor::enter(const std::string& name, std::string_view signature) {
  size_t before = prefix_.size();
  if (!name.empty()) prefix_ += name + ".";
  layers_.push_back(type_of(signature));
  return before;
}

void ParamVisitor::leave(size_t before) {
  prefix_.resize(before);
  layers_.pop_back();
}

std::vector<NamedParameter> named_parameters(const std::vector<ParamVisitor::Entry>& entries) {
  std::vector<NamedParameter> out;
  for (const ParamVisitor::Entry& e : entries) out.push_back({e.name, e.parameter});
  return out;
}

StateDict state_dict(const ConstParameterList& parameters) {
  StateDict out;
  for (const NamedParameter& p : parameters) out.emplace_back(p.name, p.parameter->value());
  return out;
}

void load_state_dict(const ParameterList& parameters, const StateDict& dict) {
  take_over(parameters, dict, "load_state_dict", "");
}

int64_t num_parameters(const ConstParameterList& parameters) {
  int64_t n = 0;
  for (const NamedParameter& p : parameters) n += p.parameter->value().numel();
  return n;
}

void to(const ParameterList& parameters, DType dtype) {
  if (!is_floating(dtype)) refuse("to", "parameters are f32 or f64: {}", dtype);
  for (const NamedParameter& p : parameters) p.parameter->assign(p.parameter->value().to(dtype));
}

void label_parameters(const ParameterList& parameters) {
  for (const NamedParameter& p : parameters) p.parameter->var().node()->label = p.name;
}

void save(const ConstParameterList& parameters, const std::string& path,
          const std::map<std::string, std::string>& metadata) {
  if (parameters.empty()) fail("save", "there are no parameters", "moved from? does params() visit them?");
  save_safetensors(path, {state_dict(parameters), metadata});
}

std::map<std::string, std::string> load(const ParameterList& parameters, const std::string& path) {
  SafetensorsFile file = load_safetensors(path);
  take_over(parameters, std::move(file.tensors), "load", path + ": ");
  return file.metadata;
}

std::string summary(const std::vector<ParamVisitor::Entry>& entries) {
  using Line = std::array<std::string, 4>;
  std::vector<Line> lines{{"name", "layer", "shape", "parameters"}};
  int64_t total = 0, bytes = 0;
  std::vector<std::string> types;
  std::string owner;
  for (const ParamVisitor::Entry& e : entries) {
    const Tensor& value = e.parameter->value();
    size_t dot = e.name.rfind('.');
    std::string of = e.layer + " " + (dot == std::string::npos ? std::string() : e.name.substr(0, dot));
    lines.push_back({e.name, of == owner ? "" : e.layer, value.shape().str(), with_commas(value.numel())});
    owner = of;
    total += value.numel();
    bytes += value.bytes();
    std::string type = name_of(value.dtype());
    if (std::find(types.begin(), types.end(), type) == types.end()) types.push_back(type);
  }
  lines.push_back({"total", "", "", with_commas(total)});
  std::array<size_t, 4> width{};
  for (const Line& l : lines)
    for (size_t i = 0; i < l.size(); ++i) width[i] = std::max(width[i], l[i].size());
  std::string out;
  for (const Line& l : lines)
    out += fmt::format("{:<{}}  {:<{}}  {:<{}}  {:>{}}{}", l[0], width[0], l[1], width[1], l[2], width[2],
                       l[3], width[3], &l == &lines.back() ? "  " : "\n");
  return out + fmt::format("({}, {})\n", readable_bytes(bytes), fmt::join(types, " and "));
}

Var checkable(const std::vector<Var>& parts) {
  std::vector<Var> flat;
  for (const Var& part : parts)
    if (part.defined()) flat.push_back(reshape(part, {-1}));
  if (flat.empty()) fail("gradcheck", "the layer returned nothing that is defined");
  return flat.size() == 1 ? flat[0] : concat(flat, 0);
}

void not_callable_with(size_t inputs, const Caller& caller) {
  fail(caller, "gradcheck",
       fmt::format("the layer cannot be called with {} input{}", inputs, inputs == 1 ? "" : "s"));
}

GradcheckReport gradcheck(const std::vector<NamedParameter>& parameters,
                          const std::function<Var(const std::vector<Var>&)>& f,
                          const std::vector<Tensor>& inputs, const GradcheckOptions& options) {
  InDouble converted(parameters);
  OfParameters of(f, inputs, options.names);
  std::vector<NamedParameter> all = parameters;
  all.insert(all.end(), of.named.begin(), of.named.end());
  return gradus::gradcheck(of.call, all, options);
}

}  // namespace gradus::nn
