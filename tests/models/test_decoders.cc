#include <cmath>

#include <gradus/nn/search.h>
#include <gradus/nn/module.h>
#include <gradus/nn/search.h>
#include <gradus/nn/seq2seq.h>
#include <gradus/ops.h>

#include "../about.h"
#include "../check.h"
#include "../quick_doctest.h"
#include "shared_output.h"
#include "small_models.h"

using namespace gradus;
using testing::op_error_of;
using nn::Seq2Seq;
using nn::Seq2SeqBatch;
using nn::Seq2SeqConfig;
using small_models::batch, small_models::set_fused, small_models::small, small_models::worst;

namespace {

Seq2SeqConfig with_cell(Seq2SeqConfig c, const std::string& cell) {
  c.rnn.cell = nn::cell_type(cell);
  return c;
}

Seq2SeqConfig maxout(Seq2SeqConfig c) {
  c.readout = "maxout";
  return c;
}

Seq2SeqConfig deep(Seq2SeqConfig c, int64_t layers, bool residual = false) {
  c.decoder_layers = layers;
  c.rnn.residual = residual;
  return c;
}

Seq2SeqConfig tied(Seq2SeqConfig c, bool source) {
  c.embedding_dim = c.hidden_size;
  if (source) c.target_vocabulary = c.source_vocabulary;
  c.tie_embeddings = true;
  c.tie_source = source;
  return c;
}

// Every attention in the order of its paper and in the other one, with and without input feeding and maxout.
// Then deep decoders and tied embeddings. Without hard attention, whose choices have no gradient of their own
// (see test_hard.cc).
std::vector<Seq2SeqConfig> all_models() {
  std::vector<Seq2SeqConfig> out = {small("none"), maxout(small("none"))};
  for (const std::string& name : nn::attention_names()) {
    if (name == "hard") continue;
    out.push_back(small(name, "bahdanau"));
    out.push_back(small(name, "luong", true));
    out.push_back(small(name, "luong", false));
  }
  for (const char* order : {"bahdanau", "luong"}) {
    out.push_back(maxout(small("bahdanau", order)));
    out.push_back(maxout(small("general", order, false)));
  }
  for (auto& c : {with_cell(small("bahdanau"), "lstm"), with_cell(small("general"), "lstm"),
                  with_cell(small("general", "auto", false), "lstm"), with_cell(small("none"), "lstm"),
                  with_cell(small("bahdanau"), "gru-bahdanau"), with_cell(small("dot", "auto", false), "rnn"),
                  with_cell(small("none"), "gru-reset-before")})
    out.push_back(c);
  for (const auto& c :
       {small("bahdanau"), small("general"), small("general", "luong", false), small("dot", "bahdanau"),
        small("none"), small("location-aware"), with_cell(small("bahdanau"), "lstm"),
        with_cell(small("general", "luong", false), "lstm")}) {
    out.push_back(deep(c, 2));
    out.push_back(deep(c, 3, true));
  }
  for (bool source : {false, true})
    for (const auto& c : {small("bahdanau"), small("general"), small("none")}) out.push_back(tied(c, source));
  return out;
}

std::string name_of(const Seq2SeqConfig& c) {
  return c.attention + ", " + nn::cell_name(c.rnn.cell) + ", decoder " + c.decoder +
         (c.input_feeding ? "" : ", no input feeding") + ", " + c.readout + ", " +
         std::to_string(c.decoder_layers) + " layers" + (c.rnn.residual ? ", residual" : "") +
         (c.tie_source       ? ", all tied"
          : c.tie_embeddings ? ", tied"
                             : "");
}

Tensor columns(const Tensor& ids, const std::vector<int64_t>& order) {
  Tensor out({ids.size(0), static_cast<int64_t>(order.size())}, DType::i32);
  for (int64_t t = 0; t < ids.size(0); ++t)
    for (size_t k = 0; k < order.size(); ++k)
      out.i32()[t * out.size(1) + k] = ids.i32()[t * ids.size(1) + order[k]];
  return out;
}

Tensor padded(const Tensor& ids, int64_t steps) {
  Tensor out({ids.size(0) + steps, ids.size(1)}, DType::i32);
  out.fill(nn::kPad);
  for (int64_t i = 0; i < ids.numel(); ++i) out.i32()[i] = ids.i32()[i];
  return out;
}

std::vector<Tensor> gradients(Seq2Seq& model, const Seq2SeqBatch& b) {
  Gradients g = backward(model.loss(b).loss);
  std::vector<Tensor> out;
  for (auto& p : nn::named_parameters(model)) out.push_back(g[*p.parameter]);
  return out;
}

}  // namespace

TEST_CASE("shards of a translator may share its output layer, also one that draws") {
  for (const char* attention : {"bahdanau", "general", "none", "hard"}) {
    CAPTURE(attention);
    Rng rng(4);
    Seq2SeqConfig config = small(attention);
    config.rnn.dropout = 0.2;
    Seq2Seq model(config, rng);
    nn::to(model, DType::f64);
    check_shared_output(model, batch());
  }
}

TEST_CASE("the whole translator's loss passes the gradient check, with every attention and decoder") {
  for (const Seq2SeqConfig& c : all_models()) {
    CAPTURE(name_of(c));
    Rng rng(2);
    Seq2Seq model(c, rng);
    auto report = nn::gradcheck(model, [&] { return model.loss(batch(), {.label_smoothing = 0.1}).loss; },
                                {.max_elements = 8, .directions = 3});
    CHECK_MESSAGE(report.ok, report.message);
    CHECK(report.checked > 50);
  }
}

TEST_CASE("the readouts of real steps are those of all steps without the padding") {
  for (const Seq2SeqConfig& c : all_models()) {
    CAPTURE(name_of(c));
    Rng rng(4);
    Seq2Seq model(c, rng);
    Seq2SeqBatch b = batch();
    Tensor lengths = nn::target_lengths(b.target_out, nn::kPad);
    CHECK(std::vector<int32_t>(lengths.i32(), lengths.i32() + 3) == std::vector<int32_t>{3, 4, 2});
    Tensor words = nn::target_words(b.target_out, lengths);
    CHECK(std::vector<int32_t>(words.i32(), words.i32() + words.numel()) ==
          std::vector<int32_t>{5, 6, 4, 7, 5, 3, 3, 4, 3});
    for (bool fused : {true, false}) {
      set_fused(model, fused);
      nn::Encoded source = model.encoder(b.source, b.source_lengths);
      Var all = model.decoder->teacher_forced(b.target_in, source).readout;
      Var real = model.decoder->teacher_forced(b.target_in, source, {.lengths = lengths}).readout;
      Var wanted = gather_rows(reshape(all, {-1, all.size(-1)}), real_rows(lengths, 4));
      CHECK(all_close(real.value(), wanted.value(), 1e-5, 1e-6));
    }
  }
}

TEST_CASE("two encoder layers and a one-directional encoder pass too") {
  for (bool bidirectional : {true, false}) {
    Seq2SeqConfig c = small("bahdanau");
    c.rnn.num_layers = 2;
    c.rnn.bidirectional = bidirectional;
    Rng rng(2);
    Seq2Seq model(c, rng);
    auto report = nn::gradcheck(model, [&] { return model.loss(batch()).loss; });
    CHECK_MESSAGE(report.ok, report.message);
  }
}

TEST_CASE("a deep residual encoder of layer-normalised LSTMs with dropout of every kind passes") {
  Seq2SeqConfig c = with_cell(small("bahdanau"), "lstm");
  c.rnn.num_layers = 3;
  c.rnn.cell.layer_norm = c.rnn.residual = c.rnn.variational = true;
  c.rnn.dropout = c.rnn.recurrent_dropout = 0.2;
  Rng rng(2);
  Seq2Seq model(c, rng);
  auto report = nn::gradcheck(model, [&] {
    Training mode(5);
    return model.loss(batch()).loss;
  });
  CHECK_MESSAGE(report.ok, report.message);
}

TEST_CASE("the fused decoders equal the ones that go step by step, in values, weights and gradients") {
  for (const Seq2SeqConfig& c : all_models()) {
    CAPTURE(name_of(c));
    Rng rng(3);
    Seq2Seq model(c, rng);
    nn::to(model, DType::f64);
    Tensor fused_weights = model.align(batch());
    double fused_loss = model.loss(batch()).loss.item();
    auto fused = gradients(model, batch());
    set_fused(model, false);
    CHECK(model.loss(batch()).loss.item() == about(fused_loss, 1e-13));
    CHECK(worst(gradients(model, batch()), fused) < 1e-12);
    if (c.attention == "none") {
      CHECK_FALSE(fused_weights.defined());
    } else {
      CHECK(max_abs_difference(model.align(batch()), fused_weights) < 1e-13);
    }
  }
}

TEST_CASE("padding changes nothing") {
  for (const Seq2SeqConfig& c : all_models()) {
    CAPTURE(name_of(c));
    Rng rng(4);
    Seq2Seq model(c, rng);
    nn::to(model, DType::f64);
    Seq2SeqBatch more = batch();
    Tensor wider = Tensor::zeros({6, 3, 7});
    for (int64_t i = 0; i < more.alignment.numel(); ++i) wider.set(i / 4 * 7 + i % 4, more.alignment.at(i));
    more.alignment = wider;
    more.source = padded(more.source, 3);
    more.target_in = padded(more.target_in, 2);
    more.target_out = padded(more.target_out, 2);
    CHECK(model.loss(more).loss.item() == about(model.loss(batch()).loss.item(), 1e-13));
    CHECK(worst(gradients(model, more), gradients(model, batch())) < 1e-13);
  }
}

TEST_CASE("permuting a batch permutes the alignments and keeps the loss") {
  for (const Seq2SeqConfig& c : all_models()) {
    CAPTURE(name_of(c));
    Rng rng(5);
    Seq2Seq model(c, rng);
    nn::to(model, DType::f64);
    std::vector<int64_t> order = {2, 0, 1};
    Seq2SeqBatch b = batch(), p = b;
    p.source = columns(b.source, order);
    p.source_lengths = columns(b.source_lengths.reshape({1, 3}), order).reshape({3});
    p.target_in = columns(b.target_in, order);
    p.target_out = columns(b.target_out, order);
    p.alignment =
        transpose(gather_rows(transpose(b.alignment, 0, 1), Tensor::from_ids({3}, {2, 0, 1})), 0, 1).value();
    CHECK(model.loss(p).loss.item() == about(model.loss(b).loss.item(), 1e-13));
    CHECK(worst(gradients(model, p), gradients(model, b)) < 1e-13);
    if (c.attention == "none") continue;
    Tensor x = model.align(b), y = model.align(p);
    for (int64_t t = 0; t < 4; ++t)
      for (int64_t k = 0; k < 3; ++k)
        for (int64_t s = 0; s < 4; ++s)
          CHECK(y.at((t * 3 + k) * 4 + s) == about(x.at((t * 3 + order[k]) * 4 + s)));
  }
}

TEST_CASE(
    "a source read in reverse is the flipped source read, and weights stand in the order of its words") {
  Seq2SeqBatch b = batch(), flipped = b;
  const std::vector<int32_t> lengths = {4, 2, 3};
  flipped.source = b.source.clone();
  for (int64_t k = 0; k < 3; ++k)
    for (int64_t s = 0, n = lengths[static_cast<size_t>(k)]; s < n; ++s)
      flipped.source.i32()[s * 3 + k] = b.source.i32()[(n - 1 - s) * 3 + k];
  for (const char* attention : {"bahdanau", "general", "none"}) {
    CAPTURE(attention);
    Seq2SeqConfig c = small(attention);
    c.rnn.bidirectional = false;
    Rng rng(7), again(7);
    Seq2Seq forward(c, rng);
    c.rnn.reverse = true;
    Seq2Seq model(c, again);
    for (DType type : {DType::f32, DType::f64}) {  // packed, and composed
      nn::to(forward, type);
      nn::to(model, type);
      const double near = type == DType::f32 ? 1e-5 : 1e-13;
      CHECK(std::abs(model.loss(b).nll - forward.loss(flipped).nll) < near);
      if (c.attention != "none") {
        Tensor x = model.align(b), y = forward.align(flipped);
        for (int64_t t = 0; t < 4; ++t)
          for (int64_t k = 0; k < 3; ++k)
            for (int64_t s = 0, n = lengths[static_cast<size_t>(k)]; s < n; ++s)
              CHECK(std::abs(x.at((t * 3 + k) * 4 + s) - y.at((t * 3 + k) * 4 + n - 1 - s)) < near);
      }
      const nn::SearchOptions search{.beam_size = 2, .max_length = 6, .weights = true};
      auto found = nn::translate(model, b.source, b.source_lengths, search),
           same = nn::translate(forward, flipped.source, b.source_lengths, search);
      for (size_t k = 0; k < 3; ++k) {
        CHECK(found[k][0].tokens == same[k][0].tokens);
        const auto n = static_cast<size_t>(lengths[k]);
        REQUIRE(found[k][0].weights.size() == same[k][0].weights.size());
        for (size_t t = 0; t < found[k][0].weights.size(); ++t)
          for (size_t s = 0; s < n; ++s)
            CHECK(std::abs(found[k][0].weights[t][s] - same[k][0].weights[t][n - 1 - s]) < near);
      }
    }
  }
}

TEST_CASE("loss: tokens are the real ones, perplexity comes from the unsmoothed loss") {
  Rng rng(6);
  Seq2Seq model(small("bahdanau"), rng);
  CrossEntropy plain = model.loss(batch()), smooth = model.loss(batch(), {.label_smoothing = 0.1});
  CHECK(plain.tokens == 9);
  CHECK(plain.nll == about(9 * plain.loss.item(), 1e-6));
  CHECK(smooth.nll == about(plain.nll, 1e-6));
  CHECK(smooth.loss.item() != about(plain.loss.item()));
}

TEST_CASE("parameter names are PyTorch's and load back") {
  Rng rng(7);
  Seq2Seq model(small("bahdanau"), rng);
  std::vector<std::string> names;
  for (auto& p : nn::named_parameters(model)) names.push_back(p.name);
  CHECK(names == std::vector<std::string>{"encoder.embedding.weight",
                                          "encoder.rnn.weight_ih_l0",
                                          "encoder.rnn.weight_hh_l0",
                                          "encoder.rnn.bias_ih_l0",
                                          "encoder.rnn.bias_hh_l0",
                                          "encoder.rnn.weight_ih_l0_reverse",
                                          "encoder.rnn.weight_hh_l0_reverse",
                                          "encoder.rnn.bias_ih_l0_reverse",
                                          "encoder.rnn.bias_hh_l0_reverse",
                                          "decoder.embedding.weight",
                                          "decoder.attention.query.weight",
                                          "decoder.attention.key.weight",
                                          "decoder.attention.v",
                                          "decoder.cell.weight_ih",
                                          "decoder.cell.weight_hh",
                                          "decoder.cell.bias_ih",
                                          "decoder.cell.bias_hh",
                                          "decoder.bridge.weight",
                                          "decoder.bridge.bias",
                                          "decoder.readout.weight",
                                          "decoder.readout.bias",
                                          "output.weight",
                                          "output.bias"});
  Rng other_rng(8);
  Seq2Seq other(small("bahdanau"), other_rng);
  CHECK(other.loss(batch()).loss.item() != model.loss(batch()).loss.item());
  nn::load_state_dict(other, nn::state_dict(model));
  CHECK(other.loss(batch()).loss.item() == model.loss(batch()).loss.item());
}

TEST_CASE("tied embeddings are one parameter under its first name, and stay one") {
  for (bool source : {false, true}) {
    Rng rng(6);
    Seq2Seq model(tied(small("bahdanau"), source), rng);
    const nn::StateDict before = nn::state_dict(model);
    auto has = [&](const std::string& name) {
      return std::any_of(before.begin(), before.end(), [&](auto& e) { return e.first == name; });
    };
    CHECK(has("encoder.embedding.weight"));
    CHECK(has("decoder.embedding.weight") != source);
    CHECK_FALSE(has("output.weight"));
    CHECK(has("output.bias"));
    model.output.weight.update([](const Tensor& w) { w.fill(0.25); });  // a copy is made: `before` holds it
    CHECK(as_recurrent(*model.decoder)->embedding.weight.value().at(7) == 0.25);
    CHECK((model.encoder.embedding.weight.value().at(7) == 0.25) == source);
    nn::load_state_dict(model, before);
    CHECK(max_abs_difference(model.output.weight.value(),
                             as_recurrent(*model.decoder)->embedding.weight.value()) == 0);
    CHECK(max_abs_difference(nn::state_dict(model)[0].second, before[0].second) == 0);
  }
}

TEST_CASE("ties of what has not one size are refused") {
  Rng rng(6);
  Seq2SeqConfig narrow = small("bahdanau");
  narrow.tie_embeddings = true;
  CHECK(op_error_of([&] { Seq2Seq(narrow, rng); }) ==
        "[Seq2Seq] tied embeddings have the size of the states: embedding_dim 3, hidden_size 4");
  Seq2SeqConfig other = tied(small("bahdanau"), true);
  other.target_vocabulary = 8;
  CHECK(op_error_of([&] { Seq2Seq(other, rng); }) ==
        "[Seq2Seq] tie_source needs one vocabulary for both sides: 9 source words, 8 target words");
}

TEST_CASE("an unknown decoder is refused") {
  Rng rng(1);
  Seq2SeqConfig foo = small("bahdanau");
  foo.readout = "foo";
  CHECK(op_error_of([&] { Seq2Seq(foo, rng); }) ==
        "[Seq2Seq] unknown readout \"foo\": one of tanh, maxout");
  for (const char* attention : {"bahdanau", "none"})
    CHECK(op_error_of([&] { Seq2Seq(small(attention, "foo"), rng); }) ==
          "[Seq2Seq] unknown decoder \"foo\": one of auto, bahdanau, luong");
}

TEST_CASE("maxout takes the larger of each pair") {
  Rng rng(10);
  nn::Readout readout(3, 2, nn::ReadoutKind::maxout, rng);
  Tensor x = Tensor::uniform({5, 3}, -1, 1, rng), y = readout.linear(x).value(), z = readout(x).value();
  REQUIRE(y.shape() == Shape{5, 4});
  REQUIRE(z.shape() == Shape{5, 2});
  for (int64_t i = 0; i < 10; ++i) CHECK(z.at(i) == std::max(y.at(2 * i), y.at(2 * i + 1)));
}

TEST_CASE("a decoder's state gives up rows and doubles them: each row goes on as it was") {
  for (const Seq2SeqConfig& c : all_models()) {
    CAPTURE(name_of(c));
    Rng rng(11);
    Seq2Seq model(c, rng);
    Seq2SeqBatch b = batch();
    nn::Encoded source = model.encoder(b.source, b.source_lengths);
    source.alignment = b.alignment;
    nn::DecoderState state = model.decoder->start(source);
    model.decoder->step(b.target_in.row(0), state);
    Tensor rows = Tensor::from_ids({4}, {2, 0, 2, 1}), words({4}, DType::i32);
    for (int64_t i = 0; i < 4; ++i) words.i32()[i] = b.target_in.row(1).i32()[rows.i32()[i]];
    nn::DecoderState chosen = state.rows(rows);
    Tensor x = model.decoder->step(words, chosen).readout.value();
    Tensor y = model.decoder->step(b.target_in.row(1), state).readout.value();
    CHECK(max_abs_difference(x, gather_rows(y, rows).value()) < 1e-6);
  }
}

TEST_CASE("an untrained model's loss is near ln V") {
  Seq2SeqConfig c = small("bahdanau");
  c.target_vocabulary = 50;
  c.hidden_size = 32;
  Rng rng(9);
  Seq2Seq model(c, rng);
  CHECK(model.loss(batch()).loss.item() == about(std::log(50.0), 0.1));
}
