#include <gradus/nn/optimizer.h>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include <gradus/error.h>
#include <gradus/kernels/elementwise.h>
#include <gradus/kernels/optimizer.h>
#include <gradus/nn/gradient_rows.h>
#include <gradus/numeric.h>

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

}  // namespace

double grad_norm(Gradients& grads, ThreadPool* pool) {
  std::vector<Tensor> parts;
  for (Gradients::Entry& entry : grads.entries()) {
    if (!entry.node->inputs.empty()) continue;  // an intermediate value that was kept
    sum_repeated_rows(entry);
    if (entry.dense.defined()) parts.push_back(entry.rows.empty() ? entry.dense : densify(entry));
    else
      for (const RowGradient& part : entry.rows) parts.push_back(part.rows);
  }
  struct Block {
    const Tensor* tensor;
    int64_t begin, count;
    double sum;
  };
  std::vector<Block> blocks;
  for (const Tensor& t : parts)
    for (int64_t begin = 0; begin < t.numel(); begin += kBlock)
      blocks.push_back({&t, begin, std::min(kBlock, t.numel() - begin), 0});
  share(pool, [&](int worker, int workers) {
    for (size_t i = static_cast<size_t>(worker); i < blocks.size(); i += static_cast<size_t>(workers)) {
      Block& b = blocks[i];
      visit_floating(*b.tensor, "grad_norm", [&](const auto* p) { b.sum = kernels::sum_squares(p + b.begin, b.count); });
    }
  });
  double sum = 0;
  for (const Block& b : blocks) sum += b.sum;
  return std::sqrt(sum);
}

double clip_factor(double norm, double max_norm) {
  return std::isfinite(norm) && norm > max_norm ? max_norm / norm : 1;
}

double clip_grad_norm(Gradients& grads, double max_norm) {
  double norm = grad_norm(grads), factor = clip_factor(norm, max_norm);
  if (factor != 1) grads.scale(factor);
  return norm;
}

// ---- what all optimisers share ----

void Optimizer::step(const std::vector<NamedParameter>& parameters, const Gradients& grads, double grad_scale,
                     ThreadPool* pool) {
  bool any = false;
  for (const NamedParameter& p : parameters) {
    const Gradients::Entry* entry = grads.find(*p.parameter);
    if (!entry) continue;
    any = true;
    DType type = entry->dense.defined() ? entry->dense.dtype() : entry->rows.at(0).rows.dtype();
    if (type != p.parameter->value().dtype())
      fail(name_, fmt::format("{} is {} and its gradient {}: was the module converted in between?", p.name,
                              name_of(p.parameter->value().dtype()), name_of(type)));
  }
  if (!any && !parameters.empty())
    fail(name_, fmt::format("the gradients have none of the {} parameters: does the loss come from this module?",
                            parameters.size()));
  for (const NamedParameter& p : parameters) {
    const Gradients::Entry* entry = grads.find(*p.parameter);
    if (!entry) continue;
    State& state = prepare(*p.parameter);
    ++state.step;
    p.parameter->update([&](const Tensor& value) {
      if (!entry->dense.defined()) apply_rows(*entry, grad_scale, value, state, pool);
      else apply_shared(entry->rows.empty() ? entry->dense : densify(*entry), grad_scale, value, state, pool);
    });
  }
}

Optimizer::State& Optimizer::prepare(const Parameter& p) {
  State& state = states_[p.var().node().get()];
  if (!state.node) {
    state.node = p.var().node();
    for (size_t i = 0; i < slot_names().size(); ++i)
      state.slots.push_back(Tensor::zeros(p.shape(), p.value().dtype()));
  }
  for (Tensor& slot : state.slots) {
    if (slot.dtype() != p.value().dtype()) slot = slot.to(p.value().dtype());
    if (!slot.sole_owner()) slot = slot.clone();  // a state dictionary holds it: that one is a snapshot
  }
  return state;
}

void Optimizer::apply_shared(const Tensor& grad, double grad_scale, const Tensor& value, State& state, ThreadPool* pool) {
  int64_t n = grad.numel();
  if (n < kBlock) pool = nullptr;  // waking a thread costs more
  Tensor flat = grad.reshape({n});
  share(pool, [&](int worker, int workers) {
    int64_t begin = n * worker / workers, end = n * (worker + 1) / workers;
    apply(flat.rows(begin, end), grad_scale, value, begin, state);
  });
}

void Optimizer::apply_rows(const Gradients::Entry& entry, double grad_scale, const Tensor& value, State& state,
                           ThreadPool* pool) {
  int64_t width = value.shape().stride(0);
  if (lazy()) {
    Gradients::Entry once = entry;
    sum_repeated_rows(once);
    for (const RowGradient& part : once.rows)
      for (int64_t i = 0; i < part.ids.numel(); ++i)
        apply(part.rows.row(i), grad_scale, value, part.ids.i32()[i] * width, state);
    return;
  }
  // Dense, for what the algorithm says: a row that did not occur has gradient 0 and still moves by its
  // momentum. The buffer is zero between calls, so that only the rows that occurred must be written and
  // wiped.
  if (!scratch_.defined() || scratch_.numel() < value.numel() || scratch_.dtype() != value.dtype())
    scratch_ = Tensor::zeros({value.numel()}, value.dtype());
  visit_floating(scratch_, name_, [&](auto* to) {
    using T = std::remove_pointer_t<decltype(to)>;
    for (const RowGradient& part : entry.rows)
      for (int64_t i = 0; i < part.ids.numel(); ++i)
        kernels::add_into(data<T>(part.rows) + i * width, to + part.ids.i32()[i] * width, width);
    apply_shared(scratch_.rows(0, value.numel()), grad_scale, value, state, pool);
    for (const RowGradient& part : entry.rows)
      for (int64_t i = 0; i < part.ids.numel(); ++i) std::fill_n(to + part.ids.i32()[i] * width, width, T{0});
  });
}

StateDict Optimizer::state_dict(const std::vector<NamedParameter>& parameters) const {
  StateDict out;
  std::vector<std::string> slots = slot_names();
  for (const NamedParameter& p : parameters) {
    auto at = states_.find(p.parameter->var().node().get());
    if (at == states_.end()) continue;
    for (size_t i = 0; i < slots.size(); ++i) out.emplace_back(slots[i] + "." + p.name, at->second.slots[i]);
    out.emplace_back("step." + p.name, Tensor::scalar(static_cast<double>(at->second.step), DType::f64));
  }
  return out;
}

void Optimizer::load_state_dict(const std::vector<NamedParameter>& parameters, const StateDict& dict) {
  std::unordered_map<std::string, Tensor> given(dict.begin(), dict.end());
  std::vector<std::string> slots = slot_names(), missing, misshaped;
  std::unordered_map<std::string, bool> used;
  std::vector<State> states(parameters.size());
  for (size_t k = 0; k < parameters.size(); ++k) {
    const NamedParameter& p = parameters[k];
    bool any = given.count("step." + p.name) > 0;
    for (const std::string& slot : slots) any = any || given.count(slot + "." + p.name);
    if (!any) continue;
    auto take = [&](const std::string& name, const Shape& shape) {
      used[name] = true;
      auto at = given.find(name);
      if (at == given.end()) missing.push_back(name);
      else if (at->second.shape() != shape)
        misshaped.push_back(fmt::format("{} (parameter {}, given {})", name, shape.str(), at->second.shape().str()));
      else return at->second;
      return Tensor();
    };
    states[k].node = p.parameter->var().node();
    for (const std::string& slot : slots) states[k].slots.push_back(take(slot + "." + p.name, p.parameter->shape()));
    Tensor step = take("step." + p.name, {});
    if (step.defined()) states[k].step = static_cast<int64_t>(step.item());
  }
  std::vector<std::string> unexpected, wrong;
  for (const auto& [name, value] : dict)
    if (!used.count(name)) unexpected.push_back(name);
  auto list = [&](const char* what, const std::vector<std::string>& names) {
    if (!names.empty()) wrong.push_back(fmt::format("{} {}", what, fmt::join(names, ", ")));
  };
  list("missing", missing);
  list("unexpected", unexpected);
  list("wrong shape", misshaped);
  if (!wrong.empty())
    fail(name_, fmt::format("the saved state must be one of these parameters: {}", fmt::join(wrong, "; ")));
  for (size_t k = 0; k < parameters.size(); ++k) {
    const Node* key = parameters[k].parameter->var().node().get();
    if (states[k].node) states_[key] = std::move(states[k]);
    else states_.erase(key);
  }
}

// ---- SGD ----

SGD::SGD(const SGDOptions& options) : Optimizer("SGD", options.lr), options_(options) {
  if (options.nesterov && options.momentum == 0) fail("SGD", "nesterov needs a momentum");
}

std::vector<std::string> SGD::slot_names() const {
  return options_.momentum != 0 ? std::vector<std::string>{"momentum"} : std::vector<std::string>{};
}

void SGD::apply(const Tensor& grad, double grad_scale, const Tensor& value, int64_t begin, State& state) {
  visit_floating(value, "SGD", [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    const T* g = data<T>(grad);
    T* u = state.slots.empty() ? nullptr : data<T>(state.slots[0]) + begin;
    p += begin;
    T rate = static_cast<T>(lr()), scale = static_cast<T>(grad_scale), decay = static_cast<T>(options_.weight_decay),
      momentum = static_cast<T>(options_.momentum);
    for (int64_t i = 0, n = grad.numel(); i < n; ++i) {
      T d = g[i] * scale + decay * p[i];
      if (u) {
        u[i] = momentum * u[i] + d;
        d = options_.nesterov ? d + momentum * u[i] : u[i];
      }
      p[i] -= rate * d;
    }
  });
}

// ---- Adam ----

Adam::Adam(const AdamOptions& options) : Optimizer("Adam", options.lr), options_(options) {
  for (double beta : {options.beta1, options.beta2})
    if (!(beta >= 0 && beta < 1)) fail("Adam", fmt::format("betas must be in [0, 1): {}", beta));
}

std::vector<std::string> Adam::slot_names() const { return {"m", "v"}; }

void Adam::apply(const Tensor& grad, double grad_scale, const Tensor& value, int64_t begin, State& state) {
  double t = static_cast<double>(state.step);
  kernels::AdamStep step{.lr = lr(), .beta1 = options_.beta1, .beta2 = options_.beta2, .eps = options_.eps,
                         .correction1 = 1 - std::pow(options_.beta1, t), .correction2 = 1 - std::pow(options_.beta2, t),
                         .grad_scale = grad_scale, .weight_decay = options_.weight_decay};
  visit_floating(value, "Adam", [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    kernels::adam(step, data<T>(grad), p + begin, data<T>(state.slots[0]) + begin, data<T>(state.slots[1]) + begin,
                  grad.numel());
  });
}

}  // namespace gradus::nn
