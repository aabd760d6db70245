// The exercises about sequences: through time, what a decoder reads, padding.

#include "exercises.h"

#include <algorithm>

#include "exercise_parts.h"

namespace lens {
namespace {

using namespace gradus;

// ---- 8: z, n [T, H], h0 [H] -> h [T, H], h_t = (1 - z_t) n_t + z_t h_(t-1) ----

Var carried(const In& in, bool connected, bool forget_gate = false) {
  std::vector<Var> states;
  Var h = in[2];
  for (int64_t t = 0; t < in[0].size(0); ++t) {
    Var z = select(in[0], 0, t), before = connected || t == 0 ? h : cut(h);
    h = (1.0 - z) * select(in[1], 0, t) +
        (forget_gate ? with_gradient_of(z * before, cut(z * before) + before + (z - cut(z)) * cut(before))
                     : z * before);
    states.push_back(h);
  }
  return stack(states, 0);
}

// By hand, with one of the slips of a loop that goes backwards.
enum class CarrySlip { other_gate, undiminished_start, too_early, other_step, exchanged };
Var carried_with(const In& in, CarrySlip slip) {
  Tensor h = carried(in, true).value();
  return record(
      "carry", in, h,
      [=, z = in[0].value(), n = in[1].value(), h0 = in[2].value()](const Tensor& dy, Grads& grads) {
        int64_t T = z.size(0), H = z.size(1);
        Tensor dz = Tensor::zeros(z.shape(), DType::f64), dn = dz.clone(),
               dh0 = Tensor::zeros({H}, DType::f64);
        for (int64_t k = 0; k < H; ++k) {
          double dh = 0;
          for (int64_t t = T - 1; t >= 0; --t) {
            int64_t i = t * H + k;
            double before = t > 0 ? h.at(i - H) : h0.at(k), gate = z.at(i), carried = dh + dy.at(i);
            dh = carried * (slip == CarrySlip::other_gate   ? 1 - gate
                            : slip == CarrySlip::other_step ? z.at(t > 0 ? i - H : i)
                                                       : gate);
            double here = slip == CarrySlip::too_early ? dh : carried;
            dz.set(i, here * (before - n.at(i)));
            dn.set(i, here * (slip == CarrySlip::exchanged ? gate : 1 - gate));
            if (t == 0) dh0.set(k, slip == CarrySlip::undiminished_start ? carried : dh);
          }
        }
        grads.add(0, dz);
        grads.add(1, dn);
        grads.add(2, dh0);
      });
}

const Exercise kCarry{
    "carry",
    [](auto& in) { return carried(in, true); },
    {{"not carried back",
      "Each step sees only its own dy. h_t is also what step t+1 starts from: the gradient must be carried "
      "from step to step, dh = dy_t + z_(t+1) dh, down to h0.",
      [](auto& in) { return carried(in, false); }},
     {"gate forgotten",
      "The state's gradient passes each step undiminished: it must be multiplied by the gate, z_t.",
      [](auto& in) { return carried(in, true, true); }},
     {"wrong gate",
      "What goes on to step t-1 is multiplied by 1 - z_t, the candidate's share; the state's share is z_t.",
      [](auto& in) { return carried_with(in, CarrySlip::other_gate); }},
     {"factors exchanged",
      "dn has the factor z_t. The candidate's share in h_t is 1 - z_t, the old state's is z_t.",
      [](auto& in) { return carried_with(in, CarrySlip::exchanged); }},
     {"gate of another step",
      "dh passes from h_t to h_(t-1) through the gate of step t; here it is that of step t-1.",
      [](auto& in) { return carried_with(in, CarrySlip::other_step); }},
     {"multiplied too early",
      "dh is multiplied by z_t before dz_t and dn_t take it: they want all that arrived at h_t. First use "
      "it, then pass it on.",
      [](auto& in) { return carried_with(in, CarrySlip::too_early); }},
     {"one gate missing",
      "h0 receives what arrived at the first state of the loop. Between the two lies one more gate, z_0.",
      [](auto& in) { return carried_with(in, CarrySlip::undiminished_start); }}}};

// ---- 11: table [V, V] (row: logits after a word), targets i32 [T], 0 = padding, 1 = begin -> mean loss ----

Tensor inputs_for(const Tensor& targets, int64_t by) {
  int64_t n = targets.numel();
  Tensor out(targets.shape(), DType::i32);
  for (int64_t t = 0; t < n; ++t) out.i32()[t] = t - by < 0 ? 1 : t - by >= n ? 0 : targets.i32()[t - by];
  return out;
}

Var forced(const In& in, int64_t by, bool skip_padding = true) {
  const Tensor& targets = in[1].value();
  Var logits = embedding(in[0], inputs_for(targets, by));
  return cross_entropy(logits, targets, {.ignore_index = skip_padding ? 0 : -100}).loss;
}

// What step t reads, by rule.
OpFunction reading(int (*reads)(const Tensor& targets, int64_t t)) {
  return [reads](const In& in) {
    const Tensor& targets = in[1].value();
    Tensor inputs = targets.clone();
    for (int64_t t = 0; t < targets.numel(); ++t) inputs.i32()[t] = reads(targets, t);
    return cross_entropy(embedding(in[0], inputs), targets, {.ignore_index = 0}).loss;
  };
}

const Exercise kSequenceLoss{
    "sequence-loss",
    [](auto& in) { return forced(in, 1); },
    {{"sees the answer",
      "The decoder is given the word it must say: its loss falls to nothing in training, and it says "
      "nonsense when it translates. The input of step t is the word BEFORE, target t-1, and BOS at the "
      "start.",
      [](auto& in) { return forced(in, 0); }},
     {"sees the future", "The decoder is given target t+1: shift the targets the other way.",
      [](auto& in) { return forced(in, -1); }},
     {"sees the answer",
      "From step 1 on the decoder is given the word it must say: it reads target t where target t-1 belongs.",
      reading([](const Tensor& y, int64_t t) { return t == 0 ? 1 : y.i32()[t]; })},
     {"no beginning",
      "Step 0 does not read <bos>. The decoder has said nothing yet, and that is what <bos> stands for.",
      reading([](const Tensor& y, int64_t t) { return t == 0 ? 0 : y.i32()[t - 1]; })},
     {"no beginning",
      "Step 0 reads the first word it must say. It has said nothing yet: that is what <bos> stands for.",
      reading([](const Tensor& y, int64_t t) { return y.i32()[std::max<int64_t>(t - 1, 0)]; })},
     {"read after overwriting",
      "All steps read <bos>: inputs[t-1] has been overwritten when step t reads it. Take targets[t-1].",
      reading([](const Tensor&, int64_t) { return 1; })},
     {"two steps back", "The decoder is given target t-2: shift by one only.",
      [](auto& in) { return forced(in, 2); }},
     {"counts padding", "Padding counts in the loss: the mean is over the real words only.",
      [](auto& in) { return forced(in, 1, false); }}}};

// ---- labs ----

const Exercise kPaddedLoss{
    "padded-loss",
    [](auto& in) { return mean_loss(in, {.ignore_index = 0}); },
    {{"divides by padding",
      "The sum over the real words is divided by all places, padding included: long padding makes "
      "the loss small. Divide by the number of real words.",
      [](auto& in) {
        return mean_loss(in, {.ignore_index = 0, .reduction = Reduction::sum}) /
               static_cast<double>(in[1].numel());
      }},
     {"counts padding", "Padding counts in the loss: the mean is over the real words only.",
      [](auto& in) { return mean_loss(in); }}}};

const Exercise kShared{"shared-over-time", [](auto& in) { return tanh(in[0] * in[1]); }, {}};

// x [T, B, H], lengths i32 [B]: h_t = tanh(x_t) + h_(t+1) / 2 from the end; padded steps carry the state
// over.
Var from_the_end(const In& in, bool look_at_lengths) {
  const Tensor& lengths = in[1].value();
  int64_t T = in[0].size(0), B = in[0].size(1), H = in[0].size(2);
  Var h = Tensor::zeros({B, H}, in[0].dtype());
  std::vector<Var> states(static_cast<size_t>(T));
  for (int64_t t = T - 1; t >= 0; --t) {
    Tensor real = Tensor::ones({B, 1}, DType::u8);
    for (int64_t b = 0; b < B; ++b) real.set(b, !look_at_lengths || t < lengths.i32()[b]);
    h = where(real, tanh(select(in[0], 0, t)) + h * 0.5, h);
    states[static_cast<size_t>(t)] = h;
  }
  return stack(states, 0);
}

const Exercise kReverse{
    "reverse-states",
    [](auto& in) { return from_the_end(in, true); },
    {{"starts on padding",
      "The backward direction reads the padding before the sentence: padded steps must carry the state over.",
      [](auto& in) { return from_the_end(in, false); }}}};

}  // namespace

const std::vector<Exercise>& sequence_exercises() {
  static const std::vector<Exercise> all{kCarry, kSequenceLoss, kPaddedLoss, kShared, kReverse};
  return all;
}

}  // namespace lens
