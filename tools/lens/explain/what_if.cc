// What a page needs to compute a step anew when scores, temperature, mask or target change. What does not
// depend on the weights is multiplied out here: a context is a mixture, so whatever is linear in it is the same
// mixture of products made once, and a page needs no large matrix but the output layer.

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gradus/ops.h>

#include "explain.h"

namespace lens {
namespace {

using namespace gradus;

constexpr int64_t kMaxOutputNumbers = 150000;  // of the output matrix; a page stays under 2 MB
const Numbers kNumbers{11};

// 9 digits: a page's numbers must come out as the engine's to 10^-6.
json array(const Tensor& x) { return Numbers{.bytes = 5}.array(x); }

// One row for each step.
template <class F>
Tensor over_steps(const SentenceTrace& trace, F&& f) {
  std::vector<Var> out;
  for (const Step& s : trace.steps) out.push_back(f(s));
  return concat(out, 0).value();
}

// The words whose logits a page computes: all, or the likeliest ones at any step where that would be too much.
std::vector<int32_t> shown_words(const std::vector<Tensor>& logits, const std::vector<int32_t>& targets,
                                 int64_t columns) {
  std::vector<int32_t> ids(static_cast<size_t>(logits[0].numel()));
  std::iota(ids.begin(), ids.end(), 0);
  size_t most = static_cast<size_t>(std::max<int64_t>(64, kMaxOutputNumbers / columns));
  if (ids.size() <= most) return ids;
  std::vector<double> highest(ids.size());
  for (const Tensor& z : logits) {
    const Tensor p = softmax(z).value();
    for (size_t i = 0; i < ids.size(); ++i) highest[i] = std::max(highest[i], p.f64()[i]);
  }
  for (int32_t id : targets) highest[static_cast<size_t>(id)] = 2;
  std::stable_sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) {
    return highest[static_cast<size_t>(a)] > highest[static_cast<size_t>(b)];
  });
  ids.resize(most);
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace

json output_json(const translator::Model& model, const std::vector<Tensor>& logits,
                 const std::vector<int32_t>& targets, const Var& weight, const Var& bias) {
  NoGrad guard;
  std::vector<int32_t> ids = shown_words(logits, targets, weight.size(1));
  Tensor which = Tensor::from_ids({static_cast<int64_t>(ids.size())}, ids);
  json words = json::array(), rest = json::array();
  std::vector<bool> shown(static_cast<size_t>(logits[0].numel()));
  for (int32_t id : ids) {
    words.push_back(model.target.token(id));
    shown[static_cast<size_t>(id)] = true;
  }
  for (const Tensor& row : logits) {
    const double* z = row.f64();
    double top = -HUGE_VAL, sum = 0;
    for (size_t i = 0; i < shown.size(); ++i)
      if (!shown[i]) top = std::max(top, z[i]);
    for (size_t i = 0; i < shown.size(); ++i)
      if (!shown[i]) sum += std::exp(z[i] - top);
    rest.push_back(sum > 0 ? kNumbers(top + std::log(sum)) : json(nullptr));
  }
  return {{"words", words},
          {"ids", ids},
          {"vocabulary", shown.size()},
          {"size", weight.size(1)},
          {"weight", base64_f32(gather_rows(weight, which).value())},
          {"bias", kNumbers(gather_rows(bias, which).value())},
          {"rest", rest}};
}

json what_if_json(const Subject& subject, const Dissection& d, const SentenceTrace& trace) {
  NoGrad guard;
  const nn::RecurrentCell& cell = d.decoder().cell;
  const nn::Readout& readout = d.decoder().readout;
  Anatomy::Contributions parts = d.anatomy().contributions(trace.reading.annotations.value());
  int64_t D = parts.each.size(2), H = cell.hidden_size();
  bool luong = d.luong_order();
  json out = {{"luong", luong}};

  auto of_offset = [&](const Var& weight, const Var& y) {
    return parts.offset.defined() ? y + linear(Var(parts.offset.reshape({1, D})), weight) : y;
  };

  // The context on its way through the cell.
  if (!luong) {
    if (cell.type.layer_norm) return {{"unavailable", "the decoder's cell is layer-normalised"}};
    const nn::InputColumns in = d.decoder().cell_columns();
    Var of_word = in.word.var(), of_context = in.context.var();
    json unit = {{"type", nn::cell_name(cell.type)}, {"hidden", H}};
    unit["context"] = array(linear(Var(parts.each), of_context).value());
    unit["word"] = array(over_steps(
        trace, [&](const Step& s) { return of_offset(of_context, linear(s.word, of_word, cell.bias_ih)); }));
    unit["state"] = array(over_steps(
        trace, [&](const Step& s) { return linear(s.state_before, cell.weight_hh, cell.bias_hh); }));
    bool reset_before = cell.type.kind == nn::CellKind::gru && (!cell.type.reset_after || cell.type.bahdanau);
    if (reset_before) {
      unit["weight_hn"] = base64_f32(slice(cell.weight_hh, 0, 2 * H, 3 * H).value());
      unit["bias_hn"] =
          cell.bias_hh.defined() ? kNumbers(slice(cell.bias_hh, 0, 2 * H, 3 * H).value()) : json(nullptr);
    }
    unit["state_before"] = array(over_steps(trace, [](const Step& s) { return s.state_before; }));
    if (cell.type.kind == nn::CellKind::lstm)
      unit["cell_before"] = array(over_steps(trace, [&](const Step& s) {
        return s.cell_before.defined() ? s.cell_before : Var(Tensor::zeros({1, H}, DType::f64));
      }));
    out["cell"] = unit;
  }

  // And through the readout.
  const nn::InputColumns in = d.decoder().readout_columns();
  Var of_context = in.context.var(), of_state = in.state.var();
  json read = {{"maxout", readout.kind == nn::ReadoutKind::maxout},
               {"size", readout.linear.weight.shape()[0]}};
  read["context"] = array(linear(Var(parts.each), of_context).value());
  read["rest"] = array(over_steps(trace, [&](const Step& s) {
    return of_offset(of_context, luong ? linear(s.state, of_state, readout.linear.bias)
                                       : linear(s.word, in.word.var(), readout.linear.bias));
  }));
  read["state"] = luong ? json(nullptr) : json(base64_f32(of_state.value()));
  out["readout"] = read;
  std::vector<Tensor> logits;
  for (const Step& s : trace.steps) logits.push_back(s.logits.value());
  out["output"] =
      output_json(subject.model, logits, d.target(), d.network().output.weight, d.network().output.bias);
  return out;
}

}  // namespace lens
