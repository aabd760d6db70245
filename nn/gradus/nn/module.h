#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gradus/autograd.h>
#include <gradus/gradcheck.h>

// A module is a struct with Parameters, a const call operator, and one function that names its parts:
//
//   struct Mlp {                                              // [N, in] -> [N, out]
//     nn::Linear up, down;
//     Mlp(int64_t in, int64_t hidden, int64_t out, Rng& rng) : up(in, hidden, rng), down(hidden, out, rng) {}
//     Var operator()(const Var& x) const { return down(relu(up(x))); }
//     void params(nn::ParamVisitor& visit) { visit("up", up); visit("down", down); }
//   };
//
// It holds no batch state, so threads may call one model at a time, and it can be moved but not copied.

namespace gradus::nn {

class ParamVisitor;

/// A struct with `void params(ParamVisitor& visit)`.
template <class M>
concept Module = requires(M& m, ParamVisitor& visit) { m.params(visit); };

/// Collects parameters under dotted names: "encoder.gru.weight_ih_l0", "layers.0.bias". A Parameter seen a
/// second time (tied weights) keeps its first name only; undefined ones (no bias) are skipped.
class ParamVisitor {
 public:
  struct Entry {
    std::string name;
    /// Type of the module that holds it, as it is visited: "Linear", and of any attention "Attention"
    std::string layer;
    Parameter* parameter;
  };

  void operator()(const std::string& name, Parameter& parameter);

  template <Module M>
  void operator()(const std::string& name, M& module) {
    size_t before = enter(name, __PRETTY_FUNCTION__);  // which holds "[with M = gradus::nn::Linear]"
    module.params(*this);
    leave(before);
  }
  /// name.0, name.1, ...
  template <class T>
  void operator()(const std::string& name, std::vector<T>& modules) {
    for (size_t i = 0; i < modules.size(); ++i) (*this)(name + "." + std::to_string(i), modules[i]);
  }
  template <class T>
  void operator()(const std::string& name, std::unique_ptr<T>& module) {
    if (module) (*this)(name, *module);
  }
  template <class T>
  void operator()(const std::string& name, std::optional<T>& module) {
    if (module) (*this)(name, *module);
  }

  const std::vector<Entry>& entries() const { return entries_; }

 private:
  size_t enter(const std::string& name, std::string_view signature);
  void leave(size_t before);

  std::string prefix_;
  std::vector<std::string> layers_;
  std::vector<Entry> entries_;
};

/// What a visit of the module finds, in the order of its `params`. It changes nothing, hence the cast.
template <Module M>
std::vector<ParamVisitor::Entry> visited(const M& module) {
  ParamVisitor visit;
  visit("", const_cast<M&>(module));
  return visit.entries();
}

/// Names and numbers, in the order of the module. Sharing is safe: a parameter that is updated while a
/// dictionary holds its numbers is copied first, so a dictionary is a snapshot.
using StateDict = std::vector<std::pair<std::string, Tensor>>;

std::vector<NamedParameter> named_parameters(const std::vector<ParamVisitor::Entry>& entries);
std::string summary(const std::vector<ParamVisitor::Entry>& entries);

/// Pointers to the parameters, under their dotted names. Valid until the module moves.
template <Module M>
std::vector<NamedParameter> named_parameters(M& module) {
  return named_parameters(visited(module));
}

/// What functions take that change parameters: a module, for all of its own, or some that were listed.
struct ParameterList : std::vector<NamedParameter> {
  using std::vector<NamedParameter>::vector;
  ParameterList(std::vector<NamedParameter> listed) : vector(std::move(listed)) {}
  template <Module M>
  ParameterList(M& module) : vector(named_parameters(module)) {}
};

/// The same of functions that only read them.
struct ConstParameterList : std::vector<NamedParameter> {
  using std::vector<NamedParameter>::vector;
  ConstParameterList(std::vector<NamedParameter> listed) : vector(std::move(listed)) {}
  template <Module M>
  ConstParameterList(const M& module) : vector(named_parameters(visited(module))) {}
};

StateDict state_dict(const ConstParameterList& parameters);

/// Takes copies of the numbers, converted to each parameter's element type; changes nothing unless all fit.
/// @throws Error "[load_state_dict] the names and shapes must be the module's: missing a, b; unexpected c;
/// wrong shape d (module [2, 3], given [3, 2]); given twice e", whichever apply, each with all its names.
void load_state_dict(const ParameterList& parameters, const StateDict& dict);

int64_t num_parameters(const ConstParameterList& parameters);

/// A table with one line per parameter (name, layer, shape, count), and the totals in parameters and bytes.
template <Module M>
std::string summary(const M& module) {
  return summary(visited(module));
}

/// Converts all parameters: f64 to check gradients, f32 to train. @throws Error for another element type.
void to(const ParameterList& parameters, DType dtype);

/// Gives every parameter's graph node its dotted name, which error messages, tapes and traces then show.
void label_parameters(const ParameterList& parameters);

/// Writes a safetensors file; the previous one survives a crash. @throws Error naming the file.
void save(const ConstParameterList& parameters, const std::string& path,
          const std::map<std::string, std::string>& metadata = {});

/// Reads a safetensors file into the module; returns the file's metadata. @throws Error as load_state_dict,
/// or for a damaged file.
std::map<std::string, std::string> load(const ParameterList& parameters, const std::string& path);

// ---- gradient check of a whole module ----

/// What a layer returns, as one Var to differentiate: a Var itself, or a struct with `std::vector<Var> vars()
/// const`, whose members are flattened and joined (undefined ones left out).
inline const Var& checkable(const Var& y) { return y; }
/// @throws Error when no part is defined.
Var checkable(const std::vector<Var>& parts);
template <class T>
requires requires(const T& y) { y.vars(); }
Var checkable(const T& y) { return checkable(y.vars()); }

/// An input of gradcheck(layer, inputs), which the layer may take as a Var or a Tensor (ids, lengths, masks).
class CheckInput {
 public:
  explicit CheckInput(const Var& x) : x_(x) {}
  operator Input() const { return Input(x_); }
  operator const Var&() const { return x_; }
  operator const Tensor&() const { return x_.value(); }

 private:
  const Var& x_;
};

/// Checks all parameters in f64 (they get their own numbers back afterwards), and all floating inputs of f.
GradcheckReport gradcheck(const std::vector<NamedParameter>& parameters,
                          const std::function<Var(const std::vector<Var>&)>& f,
                          const std::vector<Tensor>& inputs, const GradcheckOptions& options = {});
[[noreturn]] void not_callable_with(size_t inputs, const Caller& caller);

/// gradcheck(model, [&] { return loss(model, batch); }): all parameters. Floating constants of f must be f64.
template <Module M>
GradcheckReport gradcheck(M& module, const std::function<Var()>& f, const GradcheckOptions& options = {}) {
  return gradcheck(named_parameters(module), [&f](const std::vector<Var>&) { return f(); }, {}, options);
}

/// gradcheck(layer, {x, lengths}): all parameters of the layer and all floating inputs (f32 ones are
/// converted), which are passed to its call operator, up to 6. An undefined Tensor is passed on as undefined.
/// @throws Error when the layer cannot be called so, or throws itself.
template <Module M>
GradcheckReport gradcheck(M& layer, const std::vector<Tensor>& inputs, const GradcheckOptions& options = {},
                          Caller caller = Caller::current()) {
  auto call = [&layer, &caller](const std::vector<Var>& in) {
    At at(caller);
    Var y;
    auto with = [&]<size_t... i>(std::index_sequence<i...>) {
      if constexpr (requires(const M& l) { checkable(l(CheckInput(in[i])...)); }) {
        if (in.size() != sizeof...(i)) return false;
        y = checkable(std::as_const(layer)(CheckInput(in[i])...));
        return true;
      }
      return false;
    };
    bool called = with(std::make_index_sequence<1>()) || with(std::make_index_sequence<2>()) ||
                  with(std::make_index_sequence<3>()) || with(std::make_index_sequence<4>()) ||
                  with(std::make_index_sequence<5>()) || with(std::make_index_sequence<6>());
    if (!called) not_callable_with(in.size(), caller);
    return y;
  };
  return gradcheck(named_parameters(layer), call, inputs, options);
}

}  // namespace gradus::nn
