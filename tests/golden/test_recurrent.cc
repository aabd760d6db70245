#include <gradus/ops/arithmetic.h>
#include <gradus/ops/attention.h>
#include <gradus/ops/gru.h>
#include <gradus/ops/lstm.h>
#include <gradus/ops/shape.h>

#include "../quick_doctest.h"
#include "golden.h"

using namespace gradus;
using golden::File;
using golden::Values;

namespace {

using Cell = Var (*)(const Input&, const Var&, const RecurrentWeights&, const GruOptions&);
using Sequence = Cell;

RecurrentWeights weights_of(const Values& in) {
  return {in.at("W_ih"), in.at("W_hh"), in.at("b_ih"), in.at("b_hh")};
}

auto one_step(Cell cell, bool reset_after) {
  return [=](const Values& in, const File&) -> Values {
    return {{"h_next", cell(in.at("x"), in.at("h"), weights_of(in), {.reset_after = reset_after})}};
  };
}

// A step as a sequence of one.
auto sequence_of_one(bool reset_after) {
  return [=](const Values& in, const File&) -> Values {
    Var all = gru(reshape(in.at("x"), {1, 2, 3}), in.at("h"), weights_of(in), {.reset_after = reset_after});
    return {{"h_next", select(all, 0, 0)}};
  };
}

// Bahdanau's z is 1 minus the other one, which is what the z block with its sign turned gives.
auto with_z_turned(Cell cell) {
  return [=](const Values& in, const File&) -> Values {
    Tensor sign =
        Tensor::from({12, 1}, {1, 1, 1, 1, -1, -1, -1, -1, 1, 1, 1, 1}, in.at("x").dtype());
    auto turned = [&](const char* name) { return in.at(name) * sign; };
    auto turned_bias = [&](const char* name) { return in.at(name) * sign.reshape({12}); };
    return {{"h_next", cell(in.at("x"), in.at("h"),
                            {turned("W_ih"), turned("W_hh"), turned_bias("b_ih"), turned_bias("b_hh")},
                            {.reset_after = false, .update_selects_new = true})}};
  };
}

using LstmCell = LstmState (*)(const Input&, const LstmState&, const RecurrentWeights&, const LstmOptions&);

auto lstm_step(LstmCell cell) {
  return [=](const Values& in, const File&) -> Values {
    LstmState y = cell(in.at("x"), {in.at("h"), in.at("c")}, weights_of(in), {});
    return {{"h_next", y.h}, {"c_next", y.c}};
  };
}

auto both_directions(Sequence sequence) {
  return [=](const Values& in, const File& file) -> Values {
    Var x = transpose(in.at("x"), 0, 1);
    Tensor lengths = golden::ids(file, "lengths");
    auto direction = [&](const std::string& d, bool reverse) {
      return sequence(x, Var(),
                      {in.at("W" + d + "_ih"), in.at("W" + d + "_hh"), in.at("b" + d + "_ih"),
                       in.at("b" + d + "_hh")},
                      {.reverse = reverse, .lengths = lengths});
    };
    Var forward = direction("f", false), backward = direction("b", true);
    int64_t S = x.size(0);
    Var mask = length_mask(lengths, S).to(x.dtype()).reshape(Shape{x.size(1), S, 1});
    return {{"annotations", transpose(concat({forward, backward}, 2), 0, 1) * mask},
            {"forward_final", select(forward, 0, S - 1)},
            {"backward_final", select(backward, 0, 0)}};
  };
}

}  // namespace

TEST_CASE("golden: a GRU step, reset after") {
  CHECK_GOLDEN("gru_cell_reset_after", one_step(gru_cell, true));
  CHECK_GOLDEN("gru_cell_reset_after", one_step(reference::gru_cell, true));
  CHECK_GOLDEN("gru_cell_reset_after", sequence_of_one(true));
}

TEST_CASE("golden: a GRU step, reset before") {
  CHECK_GOLDEN("gru_cell_reset_before", one_step(gru_cell, false));
  CHECK_GOLDEN("gru_cell_reset_before", one_step(reference::gru_cell, false));
  CHECK_GOLDEN("gru_cell_reset_before", sequence_of_one(false));
}

TEST_CASE("golden: a GRU step in Bahdanau's form") {
  CHECK_GOLDEN("gru_cell_reset_before", with_z_turned(gru_cell));
  CHECK_GOLDEN("gru_cell_reset_before", with_z_turned(reference::gru_cell));
}

TEST_CASE("golden: an LSTM step, alone and as a sequence of one") {
  CHECK_GOLDEN("lstm_cell", lstm_step(lstm_cell));
  CHECK_GOLDEN("lstm_cell", lstm_step(reference::lstm_cell));
  CHECK_GOLDEN("lstm_cell", [](const Values& in, const File&) -> Values {
    LstmStates y = lstm(reshape(in.at("x"), {1, 2, 3}), {in.at("h"), in.at("c")}, weights_of(in));
    return {{"h_next", select(y.h, 0, 0)}, {"c_next", y.c_n}};
  });
}

TEST_CASE("golden: the two variants are not the same function") {
  CHECK(golden::differences("gru_cell_reset_after", one_step(gru_cell, false)).size() > 2);
}

TEST_CASE("golden: a bidirectional GRU over a padded batch") {
  CHECK_GOLDEN("bigru_masked_sequence", both_directions(gru));
  CHECK_GOLDEN("bigru_masked_sequence", both_directions(reference::gru));
}
