#include <gradus/kernels/optimizer.h>
#include <gradus/nn/optimizer.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <numeric>

#include <gradus/nn/check.h>
#include <gradus/ops/operands.h>

namespace gradus::nn {
namespace {

// f(worker, workers) on every thread of the pool, or here alone.
template <class F>
void share(ThreadPool* pool, F&& f) {
  if (pool && pool->size() > 1) pool->run([&](int worker) { f(worker, pool->size()); });
  else f(0, 1);
}

// Elements a thread takes at a time: fixed, so that sums do not depend on the number of threads.
constexpr int64_t kBlock = 1 << 16;
// Fewer elements than this are updated before a second thread has begun.
constexpr int64_t kWorthSharing = 1 << 13;

// Rewrites row gradients so that no id occurs twice: one RowGradient, ids in the order of first occurrence,
// rows of equal ids summed in the order they came. Entries with a dense part are left alone.
void sum_repeated_rows(Gradients::Entry& entry) {
  if (entry.dense.defined() || entry.rows.empty()) return;
  Tensor places = Tensor::full({entry.node->shape[0]}, -1, DType::i32);  // id -> row of the result
  std::vector<int32_t> once;
  int64_t given = 0;
  for (const RowGradient& part : entry.rows)
    for (int64_t i = 0; i < part.ids.numel(); ++i, ++given) {
      const int32_t id = part.ids.i32()[i];
      if (places.i32()[id] >= 0) continue;
      places.i32()[id] = static_cast<int32_t>(once.size());
      once.push_back(id);
    }
  const auto count = static_cast<int64_t>(once.size());
  if (count == given && entry.rows.size() == 1) return;
  Tensor sum = Tensor::zeros({count, entry.node->shape.stride(0)}, entry.node->dtype);
  for (const RowGradient& part : entry.rows) {
    Tensor rows = part.ids.clone();
    for (int64_t i = 0; i < rows.numel(); ++i) rows.i32()[i] = places.i32()[rows.i32()[i]];
    add_rows_into({rows, part.rows}, sum);
  }
  entry.rows = {{Tensor::from_ids({count}, once), sum}};
}

// f(entry) for the gradient of every parameter, its repeated rows summed.
template <class F>
void for_each_gradient(Gradients& grads, F&& f) {
  for (Gradients::Entry& entry : grads.entries()) {
    if (!entry.node->inputs.empty()) continue;  // an intermediate value that was kept
    sum_repeated_rows(entry);
    if (entry.dense.defined() || !entry.rows.empty()) f(entry);
  }
}

}  // namespace

double grad_norm(Gradients& grads, ThreadPool* pool) {
  std::vector<Tensor> blocks;
  for_each_gradient(grads, [&](const Gradients::Entry& entry) {
    const Tensor g = entry.dense.defined() ? densify(entry) : entry.rows[0].rows,
                 flat = g.reshape({g.numel()});
    for (int64_t begin = 0; begin < g.numel(); begin += kBlock)
      blocks.push_back(flat.rows(begin, std::min(begin + kBlock, g.numel())));
  });
  std::vector<double> sums(blocks.size());
  share(pool, [&](int worker, int workers) {
    for (size_t i = static_cast<size_t>(worker); i < blocks.size(); i += static_cast<size_t>(workers))
      visit_floating(blocks[i], "grad_norm",
                     [&](const auto* p) { sums[i] = kernels::sum_squares(p, blocks[i].numel()); });
  });
  return std::sqrt(std::accumulate(sums.begin(), sums.end(), 0.0));
}

double clip_factor(double norm, double max_norm) {
  must_be_positive("clip_factor", "max_norm", max_norm);
  return std::isfinite(norm) && norm > max_norm ? max_norm / norm : 1;
}

double clip_grad_norm(Gradients& grads, double max_norm) {
  must_be_positive("clip_grad_norm", "max_norm", max_norm);
  double norm = grad_norm(grads), factor = clip_factor(norm, max_norm);
  if (factor != 1) grads.scale(factor);
  return norm;
}

double clip_grad_value(Gradients& grads, double max_value) {
  must_be_positive("clip_grad_value", "max_value", max_value);
  double largest = 0;
  for_each_gradient(grads, [&](Gradients::Entry& entry) {
    if (entry.dense.defined()) entry.make_dense();
    Tensor& g = entry.dense.defined() ? entry.dense : entry.rows[0].rows;
    double most = 0;
    visit_floating(g, "clip_grad_value", [&](const auto* x) {
      for (int64_t i = 0; i < g.numel(); ++i) most = worse(most, std::abs(static_cast<double>(x[i])));
    });
    largest = worse(largest, most);
    if (most <= max_value) return;
    // A copy: closures of a retained graph may share the numbers.
    g = map(g, [max_value](auto v) {
      auto limit = static_cast<decltype(v)>(max_value);
      return v > limit ? limit : v < -limit ? -limit : v;
    });
  });
  return largest;
}

// ---- what all optimisers share ----

Optimizer::Optimizer(const char* name, double lr, double weight_decay, const Caller& caller)
    : name_(name), groups_{{lr, weight_decay}} {
  At at(caller);
  must_not_be_negative(name, "lr", lr);
  must_not_be_negative(name, "weight_decay", weight_decay);
}

size_t Optimizer::checked(int group) const {
  if (group < 0 || group >= num_groups())
    refuse(name_, "group {} does not exist: {} group{}", group, num_groups(), num_groups() == 1 ? "" : "s");
  return static_cast<size_t>(group);
}

void Optimizer::set_lr(double lr, int group) {
  must_not_be_negative(name_, "lr", lr);
  groups_[checked(group)].lr = lr;
}

void Optimizer::step(const ParameterList& parameters, const Gradients& grads, double grad_scale,
                     ThreadPool* pool) {
  if (!std::isfinite(grad_scale)) refuse(name_, "grad_scale must be finite: {}", grad_scale);
  std::vector<std::pair<const NamedParameter*, const Gradients::Entry*>> given;
  for (const NamedParameter& p : parameters) {
    const Gradients::Entry* entry = grads.find(*p.parameter);
    if (!entry) continue;
    given.emplace_back(&p, entry);
    DType type = entry->dense.defined() ? entry->dense.dtype() : entry->rows.at(0).rows.dtype();
    if (type != p.parameter->value().dtype())
      fail(name_, fmt::format("{} is {} and its gradient {}", p.name, p.parameter->value().dtype(), type),
           "was the module converted in between?");
  }
  if (given.empty())
    fail(name_, fmt::format("the gradients have none of the {} parameters", parameters.size()),
         parameters.empty() ? "does params() visit them?" : "does the loss come from this module?");
  std::vector<std::function<void()>> whole;
  for (const auto& [p, entry] : given) {
    State& state = prepare(*p->parameter);
    ++state.step;
    auto member = memberships_.find(p->parameter->var().node());
    Update update = groups_[member == memberships_.end() ? 0 : member->second];
    update.grad_scale = grad_scale;
    auto own = matrices_.find(p->parameter->var().node());
    const int64_t matrices = own == matrices_.end() ? 0 : own->second;
    auto change = [&, this, p = p, entry = entry, update, matrices] {
      p->parameter->update([&](const Tensor& value) {
        if (!entry->dense.defined() && lazy(update)) return apply_rows(update, *entry, value, state);
        const Tensor grad = densify(*entry);
        if (matrices == 0) return apply_shared(update, grad, value, state, pool);
        for (int64_t k = 0, rows = grad.size(0) / matrices; k < grad.size(0); k += rows)
          apply_matrix(update, grad.rows(k, k + rows), value.rows(k, k + rows),
                       state.slots[0].rows(k, k + rows));
      });
    };
    matrices > 0 ? whole.push_back(change) : change();
  }
  std::atomic<size_t> next = 0;
  share(pool, [&](int, int) {
    for (size_t i; (i = next++) < whole.size();) whole[i]();
  });
}

std::vector<std::string> Optimizer::slots_of(const Parameter& p) const {
  std::vector<std::string> names = slot_names();
  if (matrices_.count(p.var().node())) names.resize(1);
  return names;
}

Optimizer::State& Optimizer::prepare(const Parameter& p) {
  auto [at, is_new] = states_.try_emplace(p.var().node());
  State& state = at->second;
  for (size_t left = is_new ? slots_of(p).size() : 0; left > 0; --left)
    state.slots.push_back(Tensor::full(p.shape(), slot_start(), p.value().dtype()));
  for (Tensor& slot : state.slots) {
    slot = slot.to(p.value().dtype());
    if (!slot.sole_owner()) slot = slot.clone();  // a state dictionary holds it: that one is a snapshot
  }
  return state;
}

void Optimizer::apply_shared(const Update& update, const Tensor& grad, const Tensor& value, State& state,
                             ThreadPool* pool) {
  int64_t n = grad.numel();
  if (n < kWorthSharing) pool = nullptr;
  Tensor flat = grad.reshape({n});
  share(pool, [&](int worker, int workers) {
    int64_t begin = n * worker / workers, end = n * (worker + 1) / workers;
    apply(update, {flat.rows(begin, end), value, begin, state});
  });
}

void Optimizer::apply_rows(const Update& update, Gradients::Entry once, const Tensor& value, State& state) {
  sum_repeated_rows(once);
  const RowGradient& given = once.rows.at(0);
  for (int64_t i = 0, width = value.shape().stride(0); i < given.ids.numel(); ++i)
    apply(update, {given.rows.row(i), value, given.ids.i32()[i] * width, state});
}

int Optimizer::add_group(const ParameterList& parameters, const ParamGroupOptions& options) {
  must_not_be_negative(name_, "lr", options.lr.value_or(0));
  must_not_be_negative(name_, "weight_decay", options.weight_decay.value_or(0));
  for (const NamedParameter& p : parameters)
    if (memberships_.count(p.parameter->var().node()))
      refuse(name_, "a parameter can be in one group only: {}", p.name);
  for (const NamedParameter& p : parameters) memberships_[p.parameter->var().node()] = groups_.size();
  groups_.push_back(
      {options.lr.value_or(groups_[0].lr), options.weight_decay.value_or(groups_[0].weight_decay)});
  return num_groups() - 1;
}

StateDict Optimizer::state_dict(const ConstParameterList& parameters) const {
  StateDict out;
  for (const NamedParameter& p : parameters) {
    auto at = states_.find(p.parameter->var().node());
    if (at == states_.end()) continue;
    const std::vector<std::string> slots = slots_of(*p.parameter);
    for (size_t i = 0; i < slots.size(); ++i) out.emplace_back(slots[i] + "." + p.name, at->second.slots[i]);
    out.emplace_back("step." + p.name, Tensor::scalar(static_cast<double>(at->second.step), DType::f64));
  }
  std::vector<double> rates;
  for (const Update& group : groups_) rates.push_back(group.lr);
  out.emplace_back("lr", Tensor::from({num_groups()}, rates, DType::f64));
  return out;
}

void Optimizer::load_state_dict(const ParameterList& parameters, const StateDict& dict) {
  std::unordered_map<std::string, Tensor> given(dict.begin(), dict.end());
  std::vector<std::string> missing, misshaped, unexpected;
  auto take = [&](const std::string& name, const Shape& shape, const std::string& whose) {
    auto found = given.extract(name);
    if (found.empty()) missing.push_back(name);
    else if (found.mapped().shape() != shape)
      misshaped.push_back(fmt::format("{} ({}, given {})", name, whose, found.mapped().shape().str()));
    else return found.mapped();
    return Tensor();
  };
  ByParameter<State> states;
  for (const NamedParameter& p : parameters) {
    const std::vector<std::string> slots = slots_of(*p.parameter), all = slot_names();
    bool any = given.count("step." + p.name) > 0;
    for (const std::string& slot : slots) any = any || given.count(slot + "." + p.name);
    if (!any) continue;
    State& state = states[p.parameter->var().node()];
    for (const std::string& slot : slots)
      state.slots.push_back(
          take(slot + "." + p.name, p.parameter->shape(), "parameter " + p.parameter->shape().str()));
    // A matrix of Muon's once had Adam's second one, too.
    for (size_t i = slots.size(); i < all.size(); ++i) given.erase(all[i] + "." + p.name);
    Tensor step = take("step." + p.name, {}, "parameter []");
    if (step.defined()) state.step = saved_count(name_, "step." + p.name, step.item());
  }
  Tensor rates;
  if (given.count("lr")) rates = take("lr", {num_groups()}, fmt::format("groups {}", num_groups()));
  for (const auto& [name, value] : dict)
    if (given.count(name)) unexpected.push_back(name);
  std::string wrong =
      all_wrong({{"missing", missing}, {"unexpected", unexpected}, {"wrong shape", misshaped}});
  if (!wrong.empty()) fail(name_, "the saved state must be one of these parameters: " + wrong);
  for (int g = 0; rates.defined() && g < num_groups(); ++g) must_not_be_negative(name_, "lr", rates.at(g));
  for (const NamedParameter& p : parameters) states_.erase(p.parameter->var().node());
  states_.merge(states);
  for (int g = 0; rates.defined() && g < num_groups(); ++g) set_lr(rates.at(g), g);
}

SGD::SGD(const SGDOptions& options, Caller caller)
    : Optimizer("SGD", options.lr, options.weight_decay, caller), options_(options) {
  At at(caller);
  must_not_be_negative("SGD", "momentum", options.momentum);
  if (options.nesterov && (options.momentum == 0 || options.dampening != 0))
    fail("SGD", "nesterov needs a momentum, and no dampening");
}

void SGD::apply(const Update& update, const Elements& part) {
  part.visit("SGD", [&](auto* g, auto* p, int64_t n) {
    kernels::sgd({update.lr, update.grad_scale, update.weight_decay},
                 {options_.momentum, options_.dampening, options_.nesterov, part.state.step == 1}, g, p,
                 options_.momentum != 0 ? part.slot(0, p) : nullptr, n);
  });
}

Adam::Adam(const AdamOptions& options, Caller caller) : Adam("Adam", options, false, caller) {}

Adam::Adam(const char* name, const AdamOptions& options, bool decoupled, const Caller& caller)
    : Optimizer(name, options.lr, options.weight_decay, caller), options_(options), decoupled_(decoupled) {
  At at(caller);
  must_not_be_negative(name, "eps", options.eps);
  for (double beta : {options.beta1, options.beta2}) must_be_probability(name, "betas", beta);
}

void Adam::apply(const Update& update, const Elements& part) {
  double t = static_cast<double>(part.state.step);
  kernels::AdamStep step{.lr = update.lr,
                         .beta1 = options_.beta1,
                         .beta2 = options_.beta2,
                         .eps = options_.eps,
                         .correction1 = 1 - std::pow(options_.beta1, t),
                         .correction2 = 1 - std::pow(options_.beta2, t),
                         .grad_scale = update.grad_scale,
                         .weight_decay = decoupled_ ? 0 : update.weight_decay,
                         .shrink = decoupled_ ? update.lr * update.weight_decay : 0};
  part.visit("Adam", [&](auto* g, auto* p, int64_t n) {
    kernels::adam(step, g, p, part.slot(0, p), part.slot(1, p), n);
  });
}

}  // namespace gradus::nn
