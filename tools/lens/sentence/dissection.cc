#include "dissection.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include <fmt/core.h>
#include <gradus/ops.h>

namespace lens {
namespace {

using namespace gradus;

const nn::RecurrentDecoder& attending_decoder(const nn::Seq2Seq& network) {
  const nn::RecurrentDecoder* decoder = nn::as_recurrent(*network.decoder);
  if (!decoder || !decoder->attention)
    fail("lens", "this model has no attention to look at (it was trained with attention \"none\")");
  // Of other attentions it comes out only when the losses are compared.
  if (dynamic_cast<const nn::BorrowingAttention*>(decoder->attention.get()))
    fail("lens", fmt::format("attention {} cannot be taken apart: its weights are more than a softmax of "
                             "scores; hint: `lens serve` and `translator translate --attention-map` show where "
                             "it looks, `lens report` how it learned to; "
                             "`translator train --attention general` makes a model that can be",
                             network.config.attention));
  return *decoder;
}

}  // namespace

Dissection::Dissection(const nn::Seq2Seq& network, std::vector<int32_t> source,
                       const std::vector<int32_t>& target)
    : network_(network),
      decoder_(attending_decoder(network)),
      source_(std::move(source)),
      target_(target),
      anatomy_(*decoder_.attention) {
  target_.push_back(nn::kEos);
  stages_ = {Stage::projected, Stage::keys, Stage::hidden, Stage::scores, Stage::weights, Stage::context};
  stages_.insert(luong_order() ? stages_.begin() : stages_.end(), Stage::state);
  for (Stage s : {Stage::readout, Stage::logits, Stage::probabilities, Stage::loss}) stages_.push_back(s);
}

// What one step hands on to the next.
struct Dissection::Walk {
  Var state, cell, feed;
  nn::AttentionState attention;
};

void Dissection::start(Walk& w, const Reading& reading) const {
  {
    Scope scope("start");
    w.state = tanh(decoder_.bridge(reading.encoded.summary()));
  }
  if (decoder_.input_feeding) w.feed = Tensor::zeros({1, w.state.size(1)}, DType::f64);
  w.attention = decoder_.attention->start(decoder_.attention->prepare(reading.annotations, {}));
}

void Dissection::enter(Walk& w, Step& s, const Reading& reading, size_t t) const {
  s.t = static_cast<int64_t>(t);
  s.previous = t == 0 ? nn::kBos : target_[t - 1];
  s.target = target_[t];
  s.word = decoder_.embedding(Tensor::from_ids({1}, {s.previous}));
  // Taps give this step's uses gradients of their own.
  s.state_before = tap(w.state, "state before");
  s.cell_before = w.cell;
  s.feed = w.feed;
  s.attention_before = w.attention;
  Scope attention_scope("attention");
  s.value_annotations = tap(reading.annotations, "annotations to mix");
  s.score_annotations = tap(reading.annotations, "annotations to score");
}

void Dissection::leave(Walk& w, const Step& s) const {
  w.state = s.state;
  w.cell = s.cell;
  if (w.feed.defined()) w.feed = s.readout;
  w.attention = anatomy_.next(s.attending, w.attention);
}

void Dissection::run(Reading& reading, std::vector<Step>& steps) const {
  reading = read_source(network_.encoder, source_);
  Scope scope("decoder");
  Walk walk;
  start(walk, reading);
  steps.assign(target_.size(), {});
  for (size_t t = 0; t < steps.size(); ++t) {
    Scope step_scope("t" + std::to_string(t));
    enter(walk, steps[t], reading, t);
    compute(steps[t]);
    leave(walk, steps[t]);
  }
}

std::vector<std::vector<double>> Dissection::shifted_losses(const std::vector<Tensor>& shifts,
                                                            size_t count) const {
  NoGrad guard;
  std::vector<Reading> readings;
  std::vector<Walk> walks(shifts.size());
  for (size_t i = 0; i < shifts.size(); ++i) {
    readings.push_back(read_source(network_.encoder, source_, shifts[i]));
    start(walks[i], readings[i]);
  }
  std::vector<std::vector<double>> losses(shifts.size());
  std::vector<Step> steps(shifts.size());
  for (size_t t = 0; t < count; ++t) {
    for (size_t i = 0; i < steps.size(); ++i) enter(walks[i], steps[i], readings[i], t);
    compute_all(steps, 0, Stage::logits);
    for (size_t i = 0; i < steps.size(); ++i) {
      leave(walks[i], steps[i]);
      losses[i].push_back(exact_loss(steps[i].logits.value(), steps[i].target));
    }
  }
  return losses;
}

void Dissection::compute(Step& step, size_t from, Stage last) const {
  for (size_t k = from; k < stages_.size(); ++k) {
    compute_stage(step, stages_[k]);
    if (stages_[k] == last) return;
  }
}

void Dissection::compute_all(std::vector<Step>& variants, size_t from, Stage last) const {
  auto together = [&](auto member) {
    std::vector<Var> all;
    for (const Step& s : variants) {
      const Var& x = std::invoke(member, s);
      if (!x.defined()) return Var();
      all.push_back(x);
    }
    return concat(all, 0);
  };
  auto apart = [&](const Step& all, Var Step::*member) {
    for (size_t i = 0; i < variants.size() && (all.*member).defined(); ++i)
      variants[i].*member = slice(all.*member, 0, static_cast<int64_t>(i), static_cast<int64_t>(i) + 1);
  };
  for (size_t k = from; k < stages_.size(); ++k) {
    Stage stage = stages_[k];
    if (stage == Stage::state || stage == Stage::readout || stage == Stage::logits) {
      Step all;
      for (Var Step::*member :
           {&Step::word, &Step::state_before, &Step::cell_before, &Step::feed, &Step::state, &Step::readout})
        all.*member = together(member);
      all.attending.context = together([](const Step& s) -> const Var& { return s.attending.context; });
      compute_stage(all, stage);
      apart(all, stage == Stage::state     ? &Step::state
                 : stage == Stage::readout ? &Step::readout
                                           : &Step::logits);
      if (stage == Stage::state) apart(all, &Step::cell);
    } else {
      for (Step& s : variants) compute_stage(s, stage);
    }
    if (stage == last) return;
  }
}

void Dissection::compute_stage(Step& s, Stage stage) const {
  Attending& a = s.attending;
  std::optional<Scope> scope;
  if (stage <= Stage::context) scope.emplace("attention");
  else if (stage >= Stage::logits) scope.emplace("output");
  else scope.emplace(stage == Stage::state ? "cell" : "readout");
  if (stage == Stage::projected) a.query = luong_order() ? s.state : s.state_before;
  switch (stage) {
    case Stage::state: {
      nn::RecurrentState next = decoder_.cell.step(decoder_.cell_input(s.word, a.context, s.feed),
                                                   {s.state_before, s.cell_before});
      s.state = next.h;
      s.cell = next.c;
      return;
    }
    case Stage::readout:
      s.readout = decoder_.readout(decoder_.readout_input(s.state, a.context, s.word));
      return;
    case Stage::logits: s.logits = network_.output(s.readout); return;
    case Stage::probabilities: s.probabilities = softmax(s.logits); return;
    case Stage::loss: s.loss = -log(select(s.probabilities, 1, s.target)); return;
    default: return anatomy_.compute(stage, a, s.score_annotations, s.value_annotations, s.attention_before);
  }
}

double Dissection::network_loss() const {
  NoGrad guard;
  return network_.loss(batch_of(source_, target_)).nll;
}

double exact_loss(const Tensor& logits, int64_t target) {
  NoGrad guard;
  Tensor others = logits.clone();
  others.set(target, -HUGE_VAL);
  const double above = logsumexp(others).item() - logits.at(target);
  return std::max(above, 0.0) + std::log1p(std::exp(-std::abs(above)));
}

std::vector<std::vector<double>> exact_losses(const Tensor& logits, const std::vector<int32_t>& target) {
  std::vector<std::vector<double>> out(static_cast<size_t>(logits.size(1)));
  for (size_t b = 0; b < out.size(); ++b)
    for (size_t t = 0; t < target.size(); ++t)
      out[b].push_back(
          exact_loss(logits.row(static_cast<int64_t>(t)).row(static_cast<int64_t>(b)), target[t]));
  return out;
}

}  // namespace lens
