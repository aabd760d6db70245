#include <gradus/ops/output_loss.h>

#include <algorithm>

#include <gradus/kernels/softmax.h>
#include <gradus/kernels/elementwise.h>
#include <gradus/kernels/products/gemm.h>
#include <gradus/op_case.h>
#include <gradus/ops/arithmetic.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/operands.h>

namespace gradus {
namespace {

// Rows of logits in memory at a time, at most; the chunks are even. For each chunk W is packed twice, and dW
// read and written once: with few rows that is dearer than the products.
constexpr int64_t kChunk = 384;
// A part of the V words begins at a multiple of this: at a cache line of a row of logits, in f32.
constexpr int64_t kUnit = 16;

void check(const Var& hidden, const Var& weight, const Var& bias, const Tensor& targets) {
  const char* op = "linear_cross_entropy";
  if (weight.dims() != 2) refuse(op, "weight must be [V, H]: {}", weight.shape());
  if (hidden.dims() == 0 || hidden.size(-1) != weight.size(1))
    refuse(op, "hidden's last dimension must be weight's: hidden {}, weight {}", hidden.shape(),
           weight.shape());
  if (bias.defined() && bias.shape() != Shape{weight.size(0)})
    refuse(op, "bias must be [V]: bias {}, weight {}", bias.shape(), weight.shape());
  check_targets(op, "hidden's", "hidden", hidden, targets);
  if (weight.dtype() != hidden.dtype() || (bias.defined() && bias.dtype() != hidden.dtype()))
    refuse(op, "element types must agree: hidden {}, weight {}{}", hidden.dtype(), weight.dtype(),
           bias.defined() ? fmt::format(", bias {}", bias.dtype()) : std::string());
}

// Gradients for dloss = 1; undefined where not wanted.
struct Result {
  double loss = 0, nll = 0;  // sums
  Tensor dhidden, dweight, dbias;
};

// How the work is divided into parts: by vocabulary for the matrix products, by rows of hidden for the loss and
// the sum of dhidden. So each row of dW has one writer, and no part needs a dW of its own.
struct Sharing {
  ThreadPool* pool;
  int parts;

  template <class F>
  void each(F&& f) const {
    auto worker = [&](int first, int step) {
      for (int part = first; part < parts; part += step) f(part);
    };
    if (pool && parts > 1) pool->run([&](int thread) { worker(thread, pool->size()); });
    else worker(0, 1);
  }
  struct Range {
    int64_t begin, end;
  };
  // Part `part` of n, beginning at a multiple of `unit`.
  Range range(int part, int64_t n, int64_t unit = 1) const {
    auto at = [&](int64_t k) { return k == parts ? n : n * k / parts / unit * unit; };
    return {at(part), at(part + 1)};
  }
};

template <class T>
class ChunkedLoss {
 public:
  ChunkedLoss(const Tensor& hidden, const Tensor& weight, const Tensor& bias, const Tensor& targets,
              const CrossEntropyOptions& options, int64_t tokens, const Sharing& sharing, Result& out)
      : H_(weight.size(1)),
        V_(weight.size(0)),
        hidden_(data<T>(hidden)),
        weight_(data<T>(weight)),
        bias_(data_or_null<T>(bias)),
        options_(options),
        sharing_(sharing),
        sums_(static_cast<size_t>(sharing.parts)),
        out_(out) {
    for (int64_t r = 0; r < targets.numel(); ++r)
      if (targets.i32()[r] != options.ignore_index) {
        rows_.push_back(r);
        ids_.push_back(targets.i32()[r]);
      }
    scale_ = static_cast<T>(cross_entropy_scale("linear_cross_entropy", tokens, options));
    const int64_t n = static_cast<int64_t>(rows_.size());
    chunks_ = (n + kChunk - 1) / kChunk;
    most_ = chunks_ > 0 ? (n + chunks_ - 1) / chunks_ : 0;
    adjoining_ = n == 0 || rows_.back() - rows_[0] == n - 1;
    if (!adjoining_) {
      gathered_ = Tensor({n, H_}, weight.dtype());
      for (int64_t i = 0; i < n; ++i)
        std::copy_n(hidden_ + rows_[static_cast<size_t>(i)] * H_, H_, data<T>(gathered_) + i * H_);
    }
    // In the memory of the last thread: this one's has dW, and theirs lies idle meanwhile.
    sharing.each([&](int part) {
      if (part == sharing.parts - 1) logits_ = Tensor({most_, V_}, weight.dtype());
    });
    if (out.dhidden.defined() && !in_place()) dhidden_ = Tensor({sharing.parts, most_, H_}, weight.dtype());
    if (out.dbias.defined()) dbias_ = Tensor::zeros({sharing.parts, V_}, weight.dtype());
  }

  // Two barriers a chunk are enough: a part uses only its own columns of the logits in steps 3 and 1, so the
  // gradients of one chunk and the logits of the next go together.
  void run() {
    if (chunks_ == 0 && out_.dweight.defined()) out_.dweight.fill(0);
    for (int64_t k = 0; k < chunks_ + (wanted() ? 1 : 0); ++k) {
      sharing_.each([&](int part) {
        if (k > 0) find_gradients(chunk(k - 1), part);
        if (k < chunks_) find_logits(chunk(k), part);
      });
      sharing_.each([&](int part) {
        if (k > 0) add_dhidden(chunk(k - 1), part);
        if (k < chunks_) find_losses(chunk(k), part);
      });
    }
    for (const kernels::CrossEntropySums& part : sums_) {
      out_.loss += part.loss;
      out_.nll += part.nll;
    }
    if (!out_.dbias.defined()) return;
    T* db = data<T>(out_.dbias);
    for (int part = 0; part < sharing_.parts; ++part) kernels::add_into(data<T>(dbias_) + part * V_, db, V_);
    for (int64_t k = 0; k < V_; ++k) db[k] *= scale_;
  }

 private:
  // Rows first .. first + count - 1 of those that count.
  struct Chunk {
    int64_t first, count;
  };
  Chunk chunk(int64_t k) const {
    return {k * most_, std::min(most_, static_cast<int64_t>(rows_.size()) - k * most_)};
  }

  // 1. logits = h W^T, without the bias
  void find_logits(const Chunk& c, int part) {
    auto [v, end] = words(part);
    kernels::gemm(false, true, c.count, end - v, H_, T(1), rows_of(c), H_, weight_ + v * H_, H_, T(0),
                  data<T>(logits_) + v, V_);
  }
  // 2. the bias, the loss, d = p - q in the place of the logits, and d's sum over the rows
  void find_losses(const Chunk& c, int part) {
    auto [r, end] = sharing_.range(part, c.count);
    kernels::CrossEntropySums found = kernels::cross_entropy_of_layer(
        data<T>(logits_) + r * V_, bias_, ids_.data() + c.first + r, end - r, V_,
        static_cast<T>(options_.label_smoothing), wanted(),
        dbias_.defined() ? data<T>(dbias_) + part * V_ : nullptr);
    sums_[static_cast<size_t>(part)].loss += found.loss;
    sums_[static_cast<size_t>(part)].nll += found.nll;
  }
  // 3. the other gradients; the division by the tokens rides along in the products
  void find_gradients(const Chunk& c, int part) {
    auto [v, end] = words(part);
    const T* d = data<T>(logits_) + v;
    if (out_.dweight.defined())
      kernels::gemm(true, false, end - v, H_, c.count, scale_, d, V_, rows_of(c), H_, T(c.first > 0),
                    data<T>(out_.dweight) + v * H_, H_);
    if (out_.dhidden.defined())
      kernels::gemm(false, false, c.count, H_, end - v, scale_, d, V_, weight_ + v * H_, H_, T(0),
                    in_place() ? data<T>(out_.dhidden) + row(c, 0) * H_ : dhidden_of(part), H_);
  }
  // 4. what each part's words give to dhidden, added in the order of the parts
  void add_dhidden(const Chunk& c, int part) {
    if (!dhidden_.defined()) return;
    auto [r, end] = sharing_.range(part, c.count);
    for (; r < end; ++r) {
      T* to = data<T>(out_.dhidden) + row(c, r) * H_;
      std::copy_n(dhidden_of(0) + r * H_, H_, to);
      for (int other = 1; other < sharing_.parts; ++other)
        kernels::add_into(dhidden_of(other) + r * H_, to, H_);
    }
  }

  bool wanted() const { return out_.dhidden.defined() || out_.dweight.defined() || out_.dbias.defined(); }
  bool in_place() const { return adjoining_ && sharing_.parts == 1; }
  int64_t row(const Chunk& c, int64_t i) const { return rows_[static_cast<size_t>(c.first + i)]; }
  const T* rows_of(const Chunk& c) const {
    return adjoining_ ? hidden_ + row(c, 0) * H_ : data<T>(gathered_) + c.first * H_;
  }
  T* dhidden_of(int part) const { return data<T>(dhidden_) + part * most_ * H_; }
  Sharing::Range words(int part) const { return sharing_.range(part, V_, kUnit); }

  int64_t H_, V_;
  const T *hidden_, *weight_, *bias_;
  const CrossEntropyOptions& options_;
  const Sharing& sharing_;
  // Of each part.
  std::vector<kernels::CrossEntropySums> sums_;
  Result& out_;
  // Those that count, and their targets.
  std::vector<int64_t> rows_;
  std::vector<int32_t> ids_;
  // How many, and the rows of each but the last.
  int64_t chunks_, most_;
  // The rows are neighbours.
  bool adjoining_;
  T scale_;
  // [most, V], [parts, most, H] and [parts, V]; [N, H], where the rows are not neighbours
  Tensor logits_, dhidden_, dbias_, gathered_;
};

}  // namespace

CrossEntropy linear_cross_entropy(const Input& hidden, const Var& weight, const Var& bias,
                                  const Tensor& targets, const CrossEntropyOptions& options, ThreadPool* pool,
                                  int parts) {
  At at(hidden.caller());
  check(hidden, weight, bias, targets);
  if (parts < 0) refuse("linear_cross_entropy", "parts must not be negative: {}", parts);
  if (options.reduction == Reduction::none)
    fail("linear_cross_entropy", "reduction none needs the logits: use cross_entropy(linear(...))");
  int64_t tokens = count_targets("linear_cross_entropy", targets, weight.size(0), options);
  if (parts == 0) parts = pool ? pool->size() : 1;
  const Sharing sharing{pool, static_cast<int>(std::clamp<int64_t>(weight.size(0) / kUnit, 1, parts))};
  Result result;
  auto wanted = [](const Var& x) { return x.requires_grad() && !NoGrad::active(); };
  auto zeros_for = [&](const Var& x) { return wanted(x) ? Tensor::zeros(x.shape(), x.dtype()) : Tensor(); };
  result.dhidden = zeros_for(hidden);
  if (wanted(weight))
    result.dweight = Tensor(weight.shape(), weight.dtype());  // the first chunk overwrites it
  result.dbias = zeros_for(bias);
  with_type(hidden.dtype(), "linear_cross_entropy", [&]<class T>(T) {
    ChunkedLoss<T>(hidden.value(), weight.value(), bias.value(), targets, options, tokens, sharing, result)
        .run();
  });
  std::vector<Var> inputs = {hidden, weight};
  if (bias.defined()) inputs.push_back(bias);
  std::vector<Tensor> saved = {result.dhidden, result.dweight, result.dbias};
  double value = result.loss * cross_entropy_scale("linear_cross_entropy", tokens, options);
  Var loss = record("linear_cross_entropy", inputs, Tensor::scalar(value, hidden.dtype()),
                    [saved](const Tensor& dy, Grads& dx) {
                      for (size_t i = 0; i < 3; ++i)
                        if (saved[i].defined()) dx.add(static_cast<int>(i), scaled(saved[i], dy.item()));
                    });
  return {loss, result.nll, tokens};
}

namespace {

OpCase loss_case(const std::string& name, std::vector<OpCase::Input> inputs, const Tensor& targets,
                 const CrossEntropyOptions& options) {
  auto bias = [](const std::vector<Var>& in) { return in.size() > 2 ? in[2] : Var(); };
  return {"linear_cross_entropy" + name, inputs,
          [=](auto& in) { return linear_cross_entropy(in[0], in[1], bias(in), targets, options).loss; },
          [=](auto& in) { return cross_entropy(linear(in[0], in[1], bias(in)), targets, options).loss; }};
}

// More rows than a chunk holds, every third of them padding.
Tensor many_targets() {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < 1200; ++i) ids.push_back(i % 3);
  return Tensor::from_ids({1200}, ids);
}

}  // namespace

GRADUS_OP_CASES(
    loss_case("", {{4, 3}, {5, 3}, {5}}, Tensor::from_ids({4}, {2, 0, 4, 2}), {}),
    loss_case(": smoothed, padding between", {{2, 3, 2}, {4, 2}, {4}},
              Tensor::from_ids({2, 3}, {3, 0, 1, 0, 2, 2}), {.ignore_index = 0, .label_smoothing = 0.1}),
    loss_case(": no bias, padding at the end", {{4, 3}, {3, 3}}, Tensor::from_ids({4}, {2, 1, 9, 9}),
              {.ignore_index = 9, .weight = 0.7}),
    loss_case(": sum", {{4, 3}, {5, 3}, {5}}, Tensor::from_ids({4}, {2, 0, 4, 2}),
              {.reduction = Reduction::sum}),
    loss_case(": nothing counts", {{2, 3}, {4, 3}, {4}}, Tensor::from_ids({2}, {0, 0}), {.ignore_index = 0}),
    loss_case(": several chunks", {{1200, 2}, {3, 2}, {3}}, many_targets(), {.ignore_index = 1}),
    {"linear_cross_entropy: scaled",
     {{2, 3}, {5, 3}, {5}},
     [](auto& in) {
       return 0.5 * linear_cross_entropy(in[0], in[1], in[2], Tensor::from_ids({2}, {2, 0})).loss;
     },
     [](auto& in) {
       return 0.5 * cross_entropy(linear(in[0], in[1], in[2]), Tensor::from_ids({2}, {2, 0})).loss;
     }});

}  // namespace gradus
