#include <algorithm>
#include <cmath>
#include <map>

#include <gradus/differences.h>
#include <gradus/ops.h>

#include "jobs.h"
#include "norms.h"
#include "sentence/sentence.h"
#include "trace.h"

namespace lens::transformer {
namespace {

using namespace gradus;

// Scores are moved so much farther than other numbers: a softmax is smooth, and in a head that is sure of
// itself small steps change nothing that a loss could show.
constexpr double kScoreStep = 10;

// Elements of a field's numbers, and how far each goes for a shift by 1.
using Direction = std::vector<std::pair<int64_t, double>>;

// Elements begin .. begin + count - 1 of a [.., 1, ..] tensor by one size, with random signs.
Direction block(int64_t begin, int64_t count, Rng& rng) {
  Direction d;
  const double size = 1 / std::sqrt(static_cast<double>(count));
  for (int64_t i = begin; i < begin + count; ++i) d.emplace_back(i, rng.next_u32() & 1 ? size : -size);
  return d;
}

double along(const Tensor& gradient, const Direction& direction) {
  double sum = 0;
  for (auto [i, by] : direction) sum += gradient.f64()[i] * by;
  return sum;
}

// The numbers x [R, 1, E], or [1, H, R, C], moved by so much: [R, n, E], or [n, H, R, C].
Tensor moved(const Tensor& x, const Direction& direction, const std::vector<double>& by) {
  const int64_t n = static_cast<int64_t>(by.size());
  const bool heads = x.dims() == 4;
  const int64_t columns = heads ? x.numel() : x.size(2), rows = x.numel() / columns;
  Tensor out(heads ? Shape{n, x.size(1), x.size(2), x.size(3)} : Shape{rows, n, columns}, DType::f64);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t k = 0; k < n; ++k)
      std::copy_n(x.f64() + r * columns, columns, out.f64() + (r * n + k) * columns);
  for (auto [i, part] : direction)
    for (int64_t k = 0; k < n; ++k)
      out.f64()[(i / columns * n + k) * columns + i % columns] += by[static_cast<size_t>(k)] * part;
  return out;
}

std::vector<double> scaled(std::vector<double> all, double by) {
  for (double& x : all) x *= by;
  return all;
}

// One direction in some fields of a part: every step's loss comes of the same runs.
struct Job {
  size_t part;
  std::string name;
  std::vector<Field> fields;
  int64_t head, row, column;
  Direction direction;
  int64_t only;  // this step's loss alone; -1: each one's
};

struct Checks {
  const Dissection& d;
  const Trace& trace;
  std::vector<Job> jobs = {};
  Rng rng{0, 2};

  void list() {
    for (size_t p = 0; p < trace.run.parts.size(); ++p) {
      const Sublayer& s = trace.run.parts[p];
      const bool chosen = p == trace.spot.part;
      for (const Station& station : d.stations(s)) {
        const Tensor& x = s[station.fields[0]].value();
        if (x.dims() == 4) {
          scores(p, station, x);
          continue;
        }
        add(p, station.name, station.fields, block(0, x.numel(), rng));
        const int64_t E = x.size(2);
        for (int64_t r = 0; chosen && r < x.size(0); ++r)
          add(p, station.name, station.fields, block(r * E, E, rng), trace.shown, -1, r);
        const int64_t row = std::min(row_of(trace, trace.shown, trace.spot), x.size(0) - 1);
        for (int64_t c = 0; chosen && c < E; ++c)
          add(p, station.name, station.fields, {{row * E + c, 1.0}}, trace.shown, -1, row, c);
      }
      if (s.part == Part::output) continue;
      const bool crossing = s.part == Part::cross;
      way(p, "x, residual", kResidual);
      way(p, attends(s.part) ? "x, query" : "x, through", kToQuery);
      if (!attends(s.part)) continue;
      way(p, crossing ? "m, key" : "x, key", kToKey);
      way(p, crossing ? "m, value" : "x, value", kToValue);
    }
  }

  void way(size_t p, const std::string& name, Field field) {
    add(p, name, {field}, block(0, trace.run.parts[p][field].numel(), rng));
  }

  void scores(size_t p, const Station& station, const Tensor& x) {
    const int64_t H = x.size(1), R = x.size(2), C = x.size(3);
    for (int64_t h = 0; h < H; ++h) {
      add(p, station.name, station.fields, block(h * R * C, R * C, rng), -1, h);
      if (p != trace.spot.part || h != trace.spot.head) continue;
      const int64_t row = row_of(trace, trace.shown, trace.spot);
      for (int64_t j = 0; j < C; ++j)
        add(p, station.name, station.fields, {{(h * R + row) * C + j, 1.0}}, trace.shown, h, row, j);
    }
  }

  void add(size_t p, const std::string& name, const std::vector<Field>& fields, Direction direction,
           int64_t only = -1, int64_t head = -1, int64_t row = -1, int64_t column = -1) {
    jobs.push_back({p, name, fields, head, row, column, std::move(direction), only});
  }

  std::vector<Compared> run(const Job& job) const {
    const Tensor& x = trace.run.parts[job.part][job.fields[0]].value();
    // A unit direction over many numbers moves each of them by little.
    const double many = std::max(1.0, 0.3 * std::sqrt(static_cast<double>(job.direction.size())));
    const double step = job.fields[0] == kScores ? kScoreStep : many;
    std::map<double, std::vector<double>> known;  // by how far, for all steps at once
    std::vector<Compared> out;
    for (size_t t = 0; t < trace.steps.size(); ++t) {
      if (job.only >= 0 && job.only != static_cast<int64_t>(t)) continue;
      Function loss = [&](const std::vector<double>& by) {
        if (!known.contains(by[0])) {
          auto all =
              d.losses(trace.run, job.part, job.fields, moved(x, job.direction, scaled(by, step)), true);
          for (size_t i = 0; i < by.size(); ++i) known[by[i]] = std::move(all[i]);
        }
        std::vector<double> y;
        for (double b : by) y.push_back(known[b][t]);
        return y;
      };
      Tensor g = trace.steps[t].parts[job.part].of({"", "", job.fields});
      const double floor = std::max(kFloor * largest(job.head < 0 ? g : head_of(g, job.head)),
                                    kOfLoss * trace.run.losses[t].item());
      const double engine = along(g, job.direction);
      const double numeric = careful_difference(loss, floor * step).value / step;
      out.push_back({job.part, job.name, static_cast<int64_t>(t), job.head, job.row, job.column, engine,
                     numeric, relative_error(engine, numeric, floor)});
    }
    return out;
  }

  // dL/dz of the likeliest words of a step.
  void logits(size_t t, std::vector<Compared>& out) const {
    const int64_t V = trace.run.logits.size(2);
    const Tensor z =
        trace.run.logits.value().reshape({trace.run.logits.size(0), V}).row(static_cast<int64_t>(t));
    const Tensor g =
        trace.steps[t].logits.reshape({trace.run.logits.size(0), V}).row(static_cast<int64_t>(t));
    const double floor = kFloor * largest(g);
    for (int32_t id : likeliest(z, d.target()[t])) {
      Function loss = pointwise([&](double by) {
        Tensor other = z.clone();
        other.f64()[id] += by;
        return exact_loss(other, d.target()[t]);
      });
      const double engine = g.f64()[id], numeric = careful_difference(loss, floor).value;
      out.push_back({trace.run.parts.size() - 1, "z", static_cast<int64_t>(t), -1, 0, id, engine, numeric,
                     relative_error(engine, numeric, floor)});
    }
  }
};

}  // namespace

void check(const Dissection& d, Trace& trace, const std::string& bar_name) {
  Checks checks{d, trace};
  checks.list();
  std::vector<std::vector<Compared>> found(checks.jobs.size());
  auto computed = [&](size_t k, int) {
    NoGrad guard;
    found[k] = checks.run(checks.jobs[k]);
  };
  run_jobs(checks.jobs.size(), computed, bar_name);
  trace.checks.clear();
  for (const auto& some : found) trace.checks.insert(trace.checks.end(), some.begin(), some.end());
  for (size_t t = 0; t < trace.steps.size(); ++t) checks.logits(t, trace.checks);
}

}  // namespace lens::transformer
