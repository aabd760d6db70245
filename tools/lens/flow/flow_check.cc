// Finite differences for `lens flow`: many moved states at once, each in a column of one batch.

#include <algorithm>
#include <array>

#include <gradus/differences.h>
#include <gradus/ops.h>

#include "sentence/dissection.h"
#include "flow_check.h"
#include "norms.h"

namespace lens {
namespace {

using namespace gradus;

constexpr int64_t kItems = 96;  // lengths that share a batch
// Of differences, the larger first: they keep more digits of a small gradient. The smaller ones are for kinks
// and for gradients that explode. The first whose doubt is small counts, else the one that agrees best with
// itself and the next; what the engine says plays no part in it.
constexpr double kSteps[] = {5e-2, 2e-2, 1e-2, 4e-3, 1e-3, 3e-4, 1e-4, 1e-5, 1e-6};
constexpr double kEnough = 1e-8;  // doubt, as a part of the slope
// Of the loss: what is smaller is compared with that. Where a kink forces small steps, rounding of the loss
// (1e-16 of it, over the step) leaves six digits only to larger slopes.
constexpr double kSmallest = 1e-7, kRounding = 5e-10;
// Where no step between kinks is wide enough to tell six digits, neighbouring ones disagree by more than this.
constexpr double kApart = 1e-7;
// f(k h) - f(-k h), k = 1 .. 4, with these weights: eight points, error of order h^8; six, of order h^6.
constexpr std::array<double, 4> kEight = {4.0 / 5, -1.0 / 5, 4.0 / 105, -1.0 / 280};
constexpr std::array<double, 4> kSix = {3.0 / 4, -3.0 / 20, 1.0 / 60, 0};

class Batch {
 public:
  Batch(const nn::Seq2Seq& network, FlowMode mode, const std::vector<int32_t>& source,
        const std::vector<int32_t>& target)
      : network_(network), mode_(mode), source_(source), target_(target) {
    NoGrad guard;
    still_ = read_source(network.encoder, source);
    // What the last layer reads: [S, 1, I]. No state below it moves.
    const nn::RecurrentStack& rnn = network.encoder.rnn;
    below_ = network.encoder.embedding(Tensor::from_ids({static_cast<int64_t>(source.size()), 1}, source));
    for (int64_t layer = 0; layer + 1 < rnn.options.num_layers; ++layer)
      below_ = rnn.joined(layer, below_, rnn.states(layer, below_));
  }

  /// L_t of each column, [columns][T].
  std::vector<std::vector<double>> losses(const std::vector<Column>& columns) const {
    NoGrad guard;
    nn::Encoded encoded;
    Var values = read(columns, encoded);
    int64_t B = static_cast<int64_t>(columns.size());
    nn::DecoderState state = network_.decoder->start(encoded);
    if (mode_ == FlowMode::with) {
      const nn::Attention& attention = *nn::as_recurrent(*network_.decoder)->attention;
      state.memory = Anatomy(attention).mixing(state.memory, values);
    }
    std::vector<std::vector<double>> out(columns.size());
    int32_t previous = nn::kBos;
    for (int32_t word : target_) {
      Tensor in = Tensor::from_ids({B}, std::vector<int32_t>(columns.size(), previous));
      Tensor logits = network_.output(network_.decoder->step(in, state).readout).value();
      for (int64_t b = 0; b < B; ++b) out[static_cast<size_t>(b)].push_back(exact_loss(logits.row(b), word));
      previous = word;
    }
    return out;
  }

 private:
  // The states of one direction at one word, moved in the columns that are seen this way.
  static Var moved(const Var& h, const std::vector<Column>& columns, size_t word, int64_t d, Seen way) {
    Tensor shift;
    int64_t H = h.size(1);
    for (size_t b = 0; b < columns.size(); ++b) {
      const Column& c = columns[b];
      if (c.item->word != word || (c.item->seen != way && c.item->seen != Seen::everywhere)) continue;
      if (!shift.defined()) shift = Tensor::zeros(h.shape(), DType::f64);
      for (int64_t k = 0; k < H; ++k)
        shift.f64()[static_cast<int64_t>(b) * H + k] =
            c.by * c.item->direction[static_cast<size_t>(d * H + k)];
    }
    return shift.defined() ? h + shift : h;
  }

  // Reads the source in all columns: `encoded` is as scores see it, what is returned as mixtures see it.
  Var read(const std::vector<Column>& columns, nn::Encoded& encoded) const {
    const nn::RecurrentStack& rnn = network_.encoder.rnn;
    int64_t B = static_cast<int64_t>(columns.size()), S = static_cast<int64_t>(source_.size());
    int64_t last_layer = rnn.options.num_layers - 1;
    Var below = expand(below_, {S, B, below_.size(2)});
    std::array<Var, 2> last;
    nn::LayerStates value(static_cast<size_t>(rnn.directions()), std::vector<Var>(source_.size()));
    auto score = rnn.states(last_layer, below, [&](const Var& h, int64_t d, int64_t j) {
      size_t side = static_cast<size_t>(d), word = static_cast<size_t>(j);
      auto as = [&](Seen way) { return moved(h, columns, word, d, way); };
      Var& of_value = value[side][word];
      of_value = as(Seen::value);
      nn::StateUse use{as(Seen::score), as(Seen::recurrent)};
      last[side] = use.next;
      if (mode_ == FlowMode::cut && j != (rnn.in_reverse(d) ? 0 : S - 1)) {  // the annotation keeps still
        const Var& still = (d ? still_.backward : still_.forward)[word];
        use.out = of_value = expand(still, {B, still.size(1)});
      }
      return use;
    });
    std::vector<int32_t> lengths(columns.size(), static_cast<int32_t>(S));
    encoded = {rnn.joined(last_layer, below, score), last[0], last[1],
               length_mask(Tensor::from_ids({B}, lengths), S)};
    return rnn.joined(last_layer, below, value);
  }

  const nn::Seq2Seq& network_;
  FlowMode mode_;
  const std::vector<int32_t>&source_, &target_;
  Reading still_;
  Var below_;
};

}  // namespace

double Item::floor() const { return loss * std::max(kSmallest, kRounding / taken.step); }

// Beside a kink the two orders of one step may agree by chance; not with the step before as well.
bool Item::sure(bool kinks) const {
  double enough = kEnough * std::max(std::abs(taken.slope), kSmallest * loss);
  if (!kinks) return taken.doubt <= enough;
  return tried.size() > 1 && taken.doubt <= enough &&
         std::abs(taken.slope - tried[tried.size() - 2].slope) <= 10 * enough;
}

// No step was sure: of the two neighbours that agree best, the one that agrees best with itself. How far they
// are apart tells what the result is worth.
void Item::choose() {
  least = HUGE_VAL;
  for (size_t i = 0; i + 1 < tried.size(); ++i) {
    const Tried &a = tried[i], &b = tried[i + 1];
    double apart = gradus::worse(gradus::worse(a.doubt, b.doubt), std::abs(a.slope - b.slope));
    if (i > 0 && !(apart < least)) continue;
    least = apart;
    taken = b.doubt < a.doubt ? b : a;
  }
}

Item item_of(const Tensor& rows, size_t word, Seen seen, int64_t step, double loss) {
  Tensor row = rows.row(static_cast<int64_t>(word));
  Item out{word, seen, step, row.to_vector(), norm(row), loss};
  // Where there is no gradient the loss must be level along any direction.
  for (double& x : out.direction)
    x = out.engine > 0 ? x / out.engine : 1 / std::sqrt(static_cast<double>(out.direction.size()));
  return out;
}

void FlowChecks::add(const FlowChecks& other) {
  count += other.count;
  small += other.small;
  undecided += other.undecided;
  worst = gradus::worse(worst, other.worst);
}

FlowChecks check_flow(const nn::Seq2Seq& network, FlowMode mode, const std::vector<int32_t>& source,
                      const std::vector<int32_t>& target, const FlowGradients& g,
                      const std::vector<size_t>& words) {
  double loss = 0;
  for (double x : g.losses) loss += x;
  std::vector<Item> items;
  Tensor whole = g.whole();
  for (size_t j : words) {
    items.push_back(item_of(whole, j, Seen::everywhere, -1, loss));
    for (size_t t = 0; t < g.steps.size(); ++t)
      items.push_back(item_of(g.steps[t], j, Seen::everywhere, static_cast<int64_t>(t), g.losses[t]));
    if (mode != FlowMode::with) continue;
    items.push_back(item_of(g.value, j, Seen::value, -1, loss));
    items.push_back(item_of(g.score, j, Seen::score, -1, loss));
    items.push_back(item_of(g.recurrent, j, Seen::recurrent, -1, loss));
  }
  Batch batch(network, mode, source, target);
  bool kinks = network.encoder.rnn.options.cell.nonlinearity == nn::Nonlinearity::relu;
  return check_items(items, kinks, [&](const std::vector<Column>& columns) { return batch.losses(columns); });
}

FlowChecks check_items(std::vector<Item>& items, bool kinks, const ColumnLosses& losses_of) {
  std::vector<Item*> open;
  for (Item& item : items) open.push_back(&item);
  for (double h : kSteps) {
    for (size_t begin = 0; begin < open.size(); begin += kItems) {
      size_t n = std::min<size_t>(kItems, open.size() - begin);
      std::vector<Column> columns;
      for (size_t i = 0; i < n; ++i)
        for (int k = 1; k <= 4; ++k)
          for (int sign : {1, -1}) columns.push_back({open[begin + i], sign * k * h});
      auto losses = losses_of(columns);
      for (size_t i = 0; i < n; ++i) {
        Item& item = *open[begin + i];
        double eight = 0, six = 0;
        for (size_t k = 0; k < 4; ++k) {
          const auto &up = losses[8 * i + 2 * k], &down = losses[8 * i + 2 * k + 1];
          double across = 0;
          for (size_t t = 0; t < up.size(); ++t)
            if (item.step < 0 || item.step == static_cast<int64_t>(t)) across += up[t] - down[t];
          eight += kEight[k] * across / h;
          six += kSix[k] * across / h;
        }
        item.tried.push_back({h, eight, std::abs(eight - six)});
      }
    }
    std::erase_if(open, [kinks](Item* item) {
      item->taken = item->tried.back();
      return item->sure(kinks);
    });
    if (open.empty()) break;
  }
  for (Item* item : open) item->choose();
  FlowChecks out;
  for (const Item& item : items) {
    if (kinks && item.least > kApart * std::max(std::abs(item.taken.slope), item.floor())) {
      ++out.undecided;
      continue;
    }
    double error = relative_error(item.engine, item.taken.slope, item.floor());
    out.add({.count = 1, .small = item.engine < item.floor(), .worst = error});
  }
  return out;
}

}  // namespace lens
