#include "sentence.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <gradus/differences.h>
#include <gradus/ops.h>

#include "jobs.h"
#include "norms.h"

namespace lens {
namespace {

using namespace gradus;

constexpr int64_t kElements = 16;   // of scores and weights, in steps that are not shown
constexpr int64_t kDirections = 2;  // of all else there
constexpr int64_t kBlocks = 64;     // of columns, where each costs a run from the first word on

// A score's gradient is alpha (g.h - g.c): where the two are nearly equal (one word has nearly all the weight)
// 16 digits hold this part of them to 6.
constexpr double kCancelled = 1e-9;

using Job = std::function<std::vector<Compared>()>;

// Somewhere in a [rows, columns] grid: elements and how far each goes for a shift by 1.
struct Direction {
  int64_t row = 0, column = 0;  // as in Compared
  std::vector<std::pair<int64_t, double>> parts;

  double along(const Tensor& gradient) const {
    double sum = 0;
    for (auto [i, by] : parts) sum += gradient.f64()[i] * by;
    return sum;
  }
  Tensor shifted(const Tensor& x, double by) const {
    Tensor y = x.clone();
    for (auto [i, part] : parts) y.f64()[i] += by * part;
    return y;
  }
};

Direction element(int64_t row, int64_t column, int64_t columns) {
  return {row, column, {{row * columns + column, 1.0}}};
}

// A row, or `count` columns from one on (-1: all), each element by one size, with random signs.
Direction block(int64_t row, int64_t column, int64_t rows, int64_t columns, Rng& rng, int64_t count = 1) {
  Direction d{row, column, {}};
  int64_t top = row < 0 ? 0 : row, bottom = row < 0 ? rows : row + 1;
  int64_t left = column < 0 ? 0 : column, right = column < 0 ? columns : column + count;
  double size = 1 / std::sqrt(static_cast<double>((bottom - top) * (right - left)));
  for (int64_t r = top; r < bottom; ++r)
    for (int64_t c = left; c < right; ++c)
      d.parts.emplace_back(r * columns + c, rng.next_u32() & 1 ? size : -size);
  return d;
}

Compared compared(const std::string& station, int64_t step, const Direction& where, double engine,
                  double floor, const Function& f) {
  double numeric = careful_difference(f, floor).value;
  return {station, step, where.row, where.column, engine, numeric, relative_error(engine, numeric, floor)};
}

// Everything about one step's loss.
class StepChecks {
 public:
  StepChecks(const Dissection& d, const SentenceTrace& trace, size_t t, std::vector<Job>& jobs)
      : d_(d),
        step_(trace.steps[t]),
        grads_(trace.gradients[t]),
        shown_(trace.shown == static_cast<int64_t>(t)),
        rng_(t),
        jobs_(jobs) {}

  // Weight goes to each word from the one that has most, of which the slope is 0: differences of the loss.
  void prepare() {
    auto place = [](Step& s) -> Var& { return s.attending.weights; };
    Tensor w = step_.attending.weights.value();
    int64_t columns = w.size(-1);
    slopes_ = Tensor::zeros(w.shape(), DType::f64);
    for (int64_t m = 0; m < w.size(0); ++m) {
      const double* row = w.f64() + m * columns;
      int64_t most = std::max_element(row, row + columns) - row;
      for (int64_t j = 0; j < columns; ++j) {
        if (j == most) continue;
        Direction move{m, j, {{m * columns + j, 1.0}, {m * columns + most, -1.0}}};
        slopes_.f64()[m * columns + j] =
            careful_difference(losses(place, move, w, position(Stage::context)), 0, 0).value;
      }
    }
  }

  void add() {
    vector("s_prev", grads_.at("s_prev"), 0, [](Step& s) -> Var& { return s.state_before; });
    for (const StationInfo& info : stations_made()) {
      Tensor g = grads_.at(info.name);
      if (!g.defined()) continue;
      size_t after = position(info.made) + 1;
      if (info.made == Stage::probabilities)
        probabilities(g);
      else if (info.by_word)
        matrix(info.name, g, after, info.place);
      else
        vector(info.name, g, after, info.place);
    }
    if (grads_.score_path)
      matrix("h, score path", grads_.score, position(Stage::keys),
             [](Step& s) -> Var& { return s.score_annotations; });
    matrix("h, value path", grads_.value, position(Stage::context),
           [](Step& s) -> Var& { return s.value_annotations; });
  }

 private:
  using Place = Var& (*)(Step&);

  size_t position(Stage stage) const {
    return static_cast<size_t>(std::find(d_.stages().begin(), d_.stages().end(), stage) -
                               d_.stages().begin());
  }

  std::vector<Step> variants(Place place, const Direction& where, const Tensor& x,
                             const std::vector<double>& by) const {
    std::vector<Step> out(by.size(), step_);
    for (size_t i = 0; i < by.size(); ++i) place(out[i]) = where.shifted(x, by[i]);
    return out;
  }

  Function losses(Place place, const Direction& where, const Tensor& x, size_t from) const {
    return [this, place, where, x, from](const std::vector<double>& by) {
      std::vector<Step> all = variants(place, where, x, by);
      if (from <= position(Stage::logits)) d_.compute_all(all, from, Stage::logits);
      std::vector<double> out;
      for (const Step& s : all) out.push_back(exact_loss(s.logits.value(), s.target));
      return out;
    };
  }

  // sum over heads and words of what moving weight to the word does to the loss, times the weight. That is all
  // of the loss that depends on the scores, and it keeps the digits of the smallest weights, which a loss has
  // no room for: where all but 10^-12 of the weight is on one word, so is all but 10^-12 of the loss. The
  // slopes are differences, too.
  Function worths(Place place, const Direction& where, const Tensor& x, size_t from) const {
    return [this, place, where, x, from](const std::vector<double>& by) {
      std::vector<double> out;
      for (Step& s : variants(place, where, x, by)) {
        if (from <= position(Stage::weights)) d_.compute(s, from, Stage::weights);
        Tensor w = s.attending.weights.value();
        double sum = 0;
        for (int64_t i = 0; i < w.numel(); ++i) sum += slopes_.f64()[i] * w.f64()[i];
        out.push_back(sum);
      }
      return out;
    };
  }

  // Of the largest gradient of scores, and of what it is passed on to.
  double score_floor() const {
    Tensor w = step_.attending.weights.value(), g = grads_.at("alpha"), e = grads_.at("e");
    if (!g.defined() || !e.defined() || largest(e) == 0) return kFloor;
    double terms = 0;
    for (int64_t i = 0; i < w.numel(); ++i) terms = worse(terms, std::abs(w.f64()[i] * g.f64()[i]));
    return std::max(kFloor, kCancelled * terms / largest(e));
  }

  void compare(const std::string& name, const Tensor& g, size_t from, Place place,
               const std::vector<Direction>& directions) {
    Step own = step_;
    Tensor x = place(own).value();
    bool by_weights = from <= position(Stage::weights) && name != "s_prev" && name != "s";
    double size = largest(g);
    // The query's gradient is the sum over words of the keys', which cancel where the words are alike.
    if (name == "q" && grads_.at("u").defined()) size = worse(size, largest(grads_.at("k")));
    double floor = size * (by_weights ? score_floor() : kFloor);
    if (!by_weights) floor = worse(floor, kOfLoss * exact_loss(step_.logits.value(), step_.target));
    for (const Direction& where : directions)
      jobs_.push_back([this, name, g, from, place, x, floor, where, by_weights]() -> std::vector<Compared> {
        return {compared(name, step_.t, where, where.along(g), floor,
                         by_weights ? worths(place, where, x, from) : losses(place, where, x, from))};
      });
  }

  // [1, n], of scores and weights [M, S]
  void vector(const std::string& name, const Tensor& g, size_t from, Place place) {
    int64_t n = g.numel(), columns = g.size(-1);
    std::vector<Direction> all;
    if (shown_ || name == "e" || name == "alpha") {
      int64_t count = shown_ ? n : std::min(n, kElements);
      for (int64_t i = 0; i < count; ++i)
        all.push_back(element(i * n / count / columns, i * n / count % columns, columns));
    } else if (name == "z") {
      for (int32_t id : likeliest(step_.logits.value(), step_.target)) all.push_back(element(0, id, n));
    } else {
      all = directions(1, n);
    }
    compare(name, g, from, place, all);
  }

  std::vector<Direction> directions(int64_t rows, int64_t columns) {
    std::vector<Direction> out;
    for (int64_t k = 0; k < kDirections; ++k) out.push_back(block(-1, -1, rows, columns, rng_));
    return out;
  }

  // [S, 1, n]
  void matrix(const std::string& name, const Tensor& g, size_t from, Place place) {
    int64_t columns = g.size(-1), rows = g.numel() / columns;
    if (!shown_) return compare(name, g, from, place, directions(rows, columns));
    std::vector<Direction> all;
    if (g.numel() <= kMatrixElements) {
      for (int64_t i = 0; i < g.numel(); ++i) all.push_back(element(i / columns, i % columns, columns));
    } else {
      for (int64_t j = 0; j < rows; ++j) all.push_back(block(j, -1, rows, columns, rng_));
      for (int64_t c = 0; c < columns; ++c) all.push_back(block(-1, c, rows, columns, rng_));
    }
    compare(name, g, from, place, all);
  }

  // L = -log p_target, whatever the others are: their gradients are 0. That of p_target is compared in parts of
  // it, as the logarithm bends at a distance of p: dL/dlog p = -1.
  void probabilities(const Tensor& g) {
    jobs_.push_back([this, g]() -> std::vector<Compared> {
      std::vector<Compared> out;
      double p = step_.probabilities.value().f64()[step_.target];
      for (int64_t i = 0; i < g.numel(); ++i) {
        if (i != step_.target && !shown_) continue;
        Function f = [&](const std::vector<double>& by) {
          std::vector<double> y;
          for (double x : by) y.push_back(-std::log(i == step_.target ? p * (1 + x) : p));
          return y;
        };
        Compared c = compared("p", step_.t, element(0, i, g.numel()), g.f64()[i] * p, kFloor, f);
        c.engine /= p;
        c.numeric /= p;
        out.push_back(c);
      }
      return out;
    });
  }

  const Dissection& d_;
  const Step& step_;
  const StepGradients& grads_;
  bool shown_;
  Rng rng_;
  Tensor slopes_;  // [M, S]
  std::vector<Job>& jobs_;
};

// The whole gradients by h: the states are shifted as the encoder makes them, and what comes after is computed
// anew, which gives all steps' losses at once. Words' rows in every step, in the shown one columns, too.
void add_annotations(const Dissection& d, const SentenceTrace& trace, std::vector<Job>& jobs) {
  auto add = [&](const Direction& where, size_t begin, size_t end) {
    jobs.push_back([&d, &trace, where, begin, end] {
      std::map<double, std::vector<double>> losses;  // by how far, for all steps at once
      Tensor nowhere = Tensor::zeros(trace.gradients[0].full.shape(), DType::f64);
      std::vector<Compared> out;
      for (size_t t = begin; t < end; ++t) {
        Function loss = [&](const std::vector<double>& by) {
          if (!losses.contains(by[0])) {
            std::vector<Tensor> shifts;
            for (double x : by) shifts.push_back(where.shifted(nowhere, x));
            auto all = d.shifted_losses(shifts, end);
            for (size_t i = 0; i < by.size(); ++i) losses[by[i]] = std::move(all[i]);
          }
          std::vector<double> y;
          for (double x : by) y.push_back(losses[x][t]);
          return y;
        };
        const Tensor& full = trace.gradients[t].full;
        const Step& step = trace.steps[t];
        const double floor =
            worse(kFloor * largest(full), kOfLoss * exact_loss(step.logits.value(), step.target));
        out.push_back(compared("h", static_cast<int64_t>(t), where, where.along(full), floor, loss));
      }
      return out;
    });
  };
  Rng rng(0, 1);
  int64_t rows = trace.reading.annotations.size(0), columns = trace.gradients[0].full.size(1);
  for (int64_t j = 0; j < rows; ++j) add(block(j, -1, rows, columns, rng), 0, trace.steps.size());
  int64_t blocks = std::min(columns, kBlocks);
  size_t t = static_cast<size_t>(trace.shown);
  for (int64_t b = 0; b < blocks; ++b) {
    int64_t begin = b * columns / blocks, end = (b + 1) * columns / blocks;
    add(block(-1, begin, rows, columns, rng, end - begin), t, t + 1);
  }
}

}  // namespace

std::vector<Compared> check_trace(const Dissection& d, const SentenceTrace& trace,
                                  const std::string& bar_name) {
  auto everywhere = [&](size_t count, auto job) {
    auto computed = [&](size_t k, int) {
      NoGrad guard;
      job(k);
    };
    run_jobs(count, computed, bar_name);
  };
  std::vector<Job> jobs;
  add_annotations(d, trace, jobs);
  std::vector<StepChecks> steps;
  for (size_t t = 0; t < trace.steps.size(); ++t) steps.emplace_back(d, trace, t, jobs);
  everywhere(steps.size(), [&](size_t t) { steps[t].prepare(); });
  for (StepChecks& s : steps) s.add();
  std::vector<std::vector<Compared>> found(jobs.size());
  everywhere(jobs.size(), [&](size_t k) { found[k] = jobs[k](); });
  std::vector<Compared> out;
  for (const auto& some : found) out.insert(out.end(), some.begin(), some.end());
  return out;
}

}  // namespace lens
