// Attentions that state the form of their scores: training and decoding read it (lens:
// tests/lens/test_explain.cc).

#include <cmath>

#include <gradus/nn/attention/additive.h>
#include <gradus/nn/attention/multiplicative.h>
#include <gradus/nn/module.h>
#include <gradus/nn/packed/decoder.h>
#include <gradus/nn/search.h>
#include <gradus/ops.h>
#include <gradus/trace.h>

#include "../about.h"
#include "../check.h"
#include "../quick_doctest.h"
#include "small_models.h"

using namespace gradus;
using nn::Seq2Seq;
using nn::Seq2SeqConfig;
using small_models::batch, small_models::set_fused, small_models::small;
using testing::error_of;
using testing::op_error_of;

namespace {

using Score = nn::ScoreForm::Kind;

// Attentions of one's own that know nothing of the library's but the form: query and key matrix in one.
struct Stacked : nn::FormedAttention {
  Parameter both, v;  // W = [W1 W2]
  int64_t query_size;

  Stacked(const nn::AttentionSizes& s, Rng& rng)
      : FormedAttention(s.options),
        both(Tensor::uniform({s.attention_size, s.query_size + s.annotation_size}, -1, 1, rng)),
        v(Tensor::uniform({s.attention_size}, -1, 1, rng)),
        query_size(s.query_size) {}
  nn::ScoreForm form() const override {
    return {Score::additive, nn::WeightPart::of_columns(both, 0, query_size),
            nn::WeightPart::of_columns(both, query_size, both.shape()[1]), v};
  }
  void params(nn::ParamVisitor& visit) override {
    visit("both", both);
    visit("vector", v);
  }
};

struct OwnGeneral : nn::FormedAttention {
  Parameter between;

  OwnGeneral(const nn::AttentionSizes& s, Rng& rng)
      : FormedAttention(s.options),
        between(Tensor::uniform({s.query_size, s.annotation_size}, -1, 1, rng)) {}
  nn::ScoreForm form() const override { return {Score::dot, {}, between}; }
  void params(nn::ParamVisitor& visit) override { visit("between", between); }
};

// A form that no attention of the library has: both sides projected and multiplied.
struct BothProjected : nn::FormedAttention {
  nn::Linear query, key;

  BothProjected(const nn::AttentionSizes& s, Rng& rng)
      : FormedAttention(s.options),
        query(s.query_size, s.attention_size, rng, {.bias = false}),
        key(s.annotation_size, s.attention_size, rng, {.bias = false}) {}
  nn::ScoreForm form() const override { return {Score::dot, query.weight, key.weight, {}, 0.4}; }
  void params(nn::ParamVisitor& visit) override {
    visit("query", query);
    visit("key", key);
  }
};

// Additive scores, doubled, of a query as it is.
struct BareQuery : nn::FormedAttention {
  nn::Linear key;
  Parameter v;

  BareQuery(const nn::AttentionSizes& s, Rng& rng)
      : FormedAttention(s.options),
        key(s.annotation_size, s.query_size, rng, {.bias = false}),
        v(Tensor::uniform({s.query_size}, -1, 1, rng)) {}
  nn::ScoreForm form() const override { return {Score::additive, {}, key.weight, v, 2}; }
  void params(nn::ParamVisitor& visit) override {
    visit("key", key);
    visit("v", v);
  }
};

// The same scores as those of another one, spelt in elementary ops, and without a form.
struct Unstated : nn::ScoredAttention {
  std::unique_ptr<nn::FormedAttention> stated;

  explicit Unstated(std::unique_ptr<nn::FormedAttention> other)
      : ScoredAttention(other->options), stated(std::move(other)) {}
  nn::AttentionMemory prepare(const Input& annotations, const Tensor& mask) const override {
    nn::ScoreForm f = stated->form();
    return {annotations, f.key.defined() ? linear(annotations, f.key.var()) : annotations.var(), mask};
  }
  Var scores(const Input& query, const nn::AttentionMemory& memory, const nn::AttentionState&) const override {
    nn::ScoreForm f = stated->form();
    Var u = f.query.defined() ? linear(query, f.query.var()) : query.var();
    Var each = f.kind == Score::additive ? tanh(memory.keys + u) * f.v : memory.keys * u;
    return transpose(sum(each, {.axes = {-1}}), 0, 1) * f.scale;
  }
  void params(nn::ParamVisitor& visit) override { stated->params(visit); }
};

nn::RecurrentDecoder& decoder_of(Seq2Seq& model) { return dynamic_cast<nn::RecurrentDecoder&>(*model.decoder); }

const nn::AttentionSizes kSizes{4, 8, 5};  // of small models

// The model of an attention's name with another attention in its place.
Seq2Seq with(std::unique_ptr<nn::Attention> attention, const Seq2SeqConfig& config) {
  Rng rng(5);
  Seq2Seq model(config, rng);
  decoder_of(model).attention = std::move(attention);
  return model;
}

struct Way {
  const char* order;
  bool feeding;
  double temperature;
};
const Way kWays[] = {{"bahdanau", false, 1}, {"bahdanau", false, 0.7}, {"luong", true, 1},
                     {"luong", true, 0.7},   {"luong", false, 1},      {"luong", false, 0.7}};

Seq2SeqConfig config_of(const char* attention, const Way& way) {
  Seq2SeqConfig c = small(attention, way.order, way.feeding);
  c.attention_options.temperature = way.temperature;
  return c;
}

nn::AttentionSizes sizes_of(const Way& way) {
  nn::AttentionSizes s = kSizes;
  s.options.temperature = way.temperature;
  return s;
}

bool in_one_op(Seq2Seq& model) {
  return testing::contains(tape(model.loss(batch()).loss), "attention_decoder");
}

// Whether decoding has kernels for the attention's form; one without takes its own steps.
bool is_packed(Seq2Seq& model) {
  REQUIRE(nn::packed::DecoderWeights::fits(*model.decoder, model.output));
  return nn::packed::DecoderWeights(decoder_of(model), model.output, {8}).form.has_value();
}

// The loss, where it looks, and the gradients of all but the attention, which has other names.
void check_same_bits(Seq2Seq& a, Seq2Seq& b) {
  auto x = a.loss(batch()), y = b.loss(batch());
  CHECK(x.loss.item() == y.loss.item());
  CHECK(max_abs_difference(a.align(batch()), b.align(batch())) == 0);
  Gradients dx = backward(x.loss), dy = backward(y.loss);
  size_t compared = 0;
  for (auto& p : nn::named_parameters(a))
    for (auto& q : nn::named_parameters(b))
      if (p.name == q.name && p.name.find(".attention.") == std::string::npos) {
        CAPTURE(p.name);
        CHECK(max_abs_difference(dx[*p.parameter], dy[*q.parameter]) == 0);
        ++compared;
      }
  CHECK(compared == 20);
}

void check_same_translations(Seq2Seq& a, Seq2Seq& b) {
  auto x = nn::translate(a, batch().source, batch().source_lengths, {.beam_size = 2}),
       y = nn::translate(b, batch().source, batch().source_lengths, {.beam_size = 2});
  REQUIRE(x.size() == y.size());
  for (size_t i = 0; i < x.size(); ++i)
    for (size_t k = 0; k < x[i].size(); ++k) {
      CHECK(x[i][k].tokens == y[i][k].tokens);
      CHECK(x[i][k].log_probability == y[i][k].log_probability);
    }
}

}  // namespace

TEST_CASE("an attention that states an additive form is the library's, bit for bit, in training and decoding") {
  for (const Way& way : kWays) {
    CAPTURE(way.order);
    CAPTURE(way.feeding);
    CAPTURE(way.temperature);
    Rng rng(2), other(3);
    auto library = std::make_unique<nn::AdditiveAttention>(sizes_of(way), rng);
    auto own = std::make_unique<Stacked>(sizes_of(way), other);
    own->both.assign(concat({library->query.weight, library->key.weight}, 1).value());
    own->v.assign(library->v.value().clone());
    const nn::AdditiveAttention& theirs = *library;
    const Stacked& ours = *own;
    Seq2SeqConfig c = config_of("bahdanau", way);
    Seq2Seq a = with(std::move(library), c), b = with(std::move(own), c);
    CHECK(in_one_op(b) == (std::string(way.order) == "bahdanau"));
    CHECK(is_packed(b));
    for (bool fused : {true, false}) {
      set_fused(a, fused);
      set_fused(b, fused);
      check_same_bits(a, b);
      Gradients dx = backward(a.loss(batch()).loss), dy = backward(b.loss(batch()).loss);
      Tensor halves = concat({dx[theirs.query.weight], dx[theirs.key.weight]}, 1).value();
      CHECK(max_abs_difference(halves, dy[ours.both]) == 0);
      CHECK(max_abs_difference(dx[theirs.v], dy[ours.v]) == 0);
    }
    check_same_translations(a, b);
  }
}

TEST_CASE("an attention that states a form of products is the library's too") {
  for (const Way& way : kWays) {
    CAPTURE(way.order);
    CAPTURE(way.feeding);
    CAPTURE(way.temperature);
    Rng rng(2), other(3);
    auto library = std::make_unique<nn::GeneralAttention>(sizes_of(way), rng);
    auto own = std::make_unique<OwnGeneral>(sizes_of(way), other);
    own->between.assign(library->key.weight.value().clone());
    const nn::GeneralAttention& theirs = *library;
    const OwnGeneral& ours = *own;
    Seq2SeqConfig c = config_of("general", way);
    Seq2Seq a = with(std::move(library), c), b = with(std::move(own), c);
    bool at_once = std::string(way.order) == "luong" && !way.feeding;
    CHECK(testing::contains(tape(b.loss(batch()).loss), "scaled_dot_product_attention") == at_once);
    CHECK(is_packed(b));
    check_same_bits(a, b);
    Gradients dx = backward(a.loss(batch()).loss), dy = backward(b.loss(batch()).loss);
    CHECK(max_abs_difference(dx[theirs.key.weight], dy[ours.between]) == 0);
    check_same_translations(a, b);
  }
}

TEST_CASE("every attention of the library that states a form is packed, in both orders") {
  int found = 0;
  for (const std::string& name : nn::attention_names())
    for (const char* order : {"bahdanau", "luong"}) {
      CAPTURE(name);
      CAPTURE(order);
      Rng rng(5);
      Seq2Seq model(small(name, order), rng);
      bool stated = nn::as_formed(*decoder_of(model).attention) != nullptr;
      CHECK(is_packed(model) == stated);
      found += stated;
      auto fast = nn::translate(model, batch().source, batch().source_lengths, {.beam_size = 2}),
           slow = nn::translate(*nn::composed_generator(model.encoder, *model.decoder, model.output),
                                batch().source, batch().source_lengths, {.beam_size = 2});
      for (size_t i = 0; i < fast.size(); ++i)
        CHECK(fast[i][0].log_probability == about(slow[i][0].log_probability, 1e-5));
    }
  CHECK(found >= 12);
}

TEST_CASE("without a form an attention trains and decodes step by step, and to the same ends") {
  for (const Way& way : kWays)
    for (int which : {0, 1, 2, 3}) {
      CAPTURE(way.order);
      CAPTURE(way.feeding);
      CAPTURE(way.temperature);
      CAPTURE(which);
      auto make = [&]() -> std::unique_ptr<nn::FormedAttention> {
        Rng rng(2);
        if (which == 0) return std::make_unique<Stacked>(sizes_of(way), rng);
        if (which == 1) return std::make_unique<OwnGeneral>(sizes_of(way), rng);
        if (which == 2) return std::make_unique<BothProjected>(sizes_of(way), rng);
        return std::make_unique<BareQuery>(sizes_of(way), rng);
      };
      Seq2SeqConfig c = config_of("bahdanau", way);
      Seq2Seq stated = with(make(), c), unstated = with(std::make_unique<Unstated>(make()), c);
      CHECK(is_packed(stated));
      CHECK_FALSE(is_packed(unstated));
      CHECK_FALSE(in_one_op(unstated));
      auto x = nn::translate(stated, batch().source, batch().source_lengths),
           y = nn::translate(unstated, batch().source, batch().source_lengths);
      for (size_t i = 0; i < x.size(); ++i) {
        CHECK(x[i][0].tokens == y[i][0].tokens);
        CHECK(x[i][0].log_probability == about(y[i][0].log_probability, 1e-5));
      }
      nn::to(stated, DType::f64);
      nn::to(unstated, DType::f64);
      auto a = stated.loss(batch()), b = unstated.loss(batch());
      CHECK(a.loss.item() == about(b.loss.item(), 1e-13));
      CHECK(max_abs_difference(stated.align(batch()), unstated.align(batch())) < 1e-13);
      Gradients dx = backward(a.loss), dy = backward(b.loss);
      auto ours = nn::named_parameters(stated), theirs = nn::named_parameters(unstated);
      REQUIRE(ours.size() == theirs.size());
      for (size_t i = 0; i < ours.size(); ++i) {
        CAPTURE(ours[i].name);
        REQUIRE(ours[i].name == theirs[i].name);
        CHECK(max_abs_difference(dx[*ours[i].parameter], dy[*theirs[i].parameter]) < 1e-12);
      }
    }
}

namespace {

struct Wrong : BothProjected {
  nn::ScoreForm stated;
  Wrong(const nn::AttentionSizes& s, Rng& rng) : BothProjected(s, rng), stated(BothProjected::form()) {}
  nn::ScoreForm form() const override { return stated; }
};

std::string said(Rng& rng, const std::function<void(Wrong&)>& change) {
  auto attention = std::make_unique<Wrong>(kSizes, rng);
  change(*attention);
  Seq2Seq model = with(std::move(attention), small("bahdanau", "bahdanau"));
  std::string training = error_of([&] { model.loss(batch()); });
  CHECK(op_error_of([&] { nn::translate(model, batch().source, batch().source_lengths); }) == training);
  return training;
}

}  // namespace

TEST_CASE("a form that does not fit together is refused in training and in decoding alike") {
  Rng rng(4);
  CHECK(said(rng, [](Wrong& a) { a.stated.kind = Score::additive; }) ==
        "[ScoreForm] additive scores need a vector v [A]");
  CHECK(said(rng, [](Wrong& a) { a.stated.v = Tensor::ones({5}); }) ==
        "[ScoreForm] dot scores have no vector v");
  CHECK(said(rng, [](Wrong& a) { a.stated.scale = 0; }) == "[ScoreForm] scale must be finite and not 0: 0");
  std::string sizes = said(rng, [](Wrong& a) { a.stated.key = {}; });
  CHECK_MESSAGE(sizes.find("[multiplicative_attention]") == 0, sizes);
}

TEST_CASE("a part of a weight is the weight itself, or a slice of its rows and columns") {
  Rng rng(4);
  Parameter w(Tensor::uniform({4, 3}, -1, 1, rng)), nothing;
  CHECK_FALSE(nn::WeightPart().defined());
  CHECK_FALSE(nn::WeightPart(nothing).defined());
  nn::WeightPart all(w), rows = nn::WeightPart::of_rows(w, 1, 3), columns = nn::WeightPart::of_columns(w, 2, 3);
  CHECK(all.var().value().raw() == w.value().raw());
  CHECK(max_abs_difference(rows.var().value(), w.value().rows(1, 3)) == 0);
  REQUIRE(columns.var().shape() == Shape{4, 1});
  for (int64_t i = 0; i < 4; ++i) CHECK(columns.var().value().at(i) == w.value().at(3 * i + 2));
}

TEST_CASE("a decoder's columns are the parts that it puts side by side") {
  for (bool feeding : {true, false})
    for (const char* name : {"bahdanau luong", "bahdanau bahdanau", "multihead luong", "none auto"}) {
      CAPTURE(name);
      std::string attention(name), order = attention.substr(attention.find(' ') + 1);
      Rng rng(6);
      Seq2SeqConfig c = small(attention.substr(0, attention.find(' ')), order, feeding);
      Seq2Seq model(c, rng);
      nn::to(model, DType::f64);
      nn::RecurrentDecoder& d = decoder_of(model);
      bool after = d.order == nn::Order::after_cell;
      auto numbers = [&](int64_t n) { return Var(Tensor::uniform({2, n}, -1, 1, rng, DType::f64)); };
      Var word = numbers(3), context = numbers(d.context_size), state = numbers(4),
          feed = d.input_feeding ? numbers(4) : Var();
      auto product = [](const nn::WeightPart& part, const Var& x) {
        return part.defined() ? linear(x, part.var()) : Var(Tensor::scalar(0, DType::f64));
      };
      nn::InputColumns in = d.cell_columns(), out = d.readout_columns();
      Var beside = after && feed.defined() ? concat({word, feed}, -1) : word;
      Var into_cell = product(in.word, beside) + product(in.context, context);
      CHECK(max_abs_difference(linear(d.cell_input(word, context, feed), d.cell.weight_ih).value(),
                               into_cell.value()) < 1e-14);
      CHECK(in.context.defined() == !after);
      CHECK_FALSE(in.state.defined());
      Var into_readout = product(out.word, word) + product(out.context, context) + product(out.state, state);
      CHECK(max_abs_difference(
                linear(d.readout_input(state, context, word), d.readout.linear.weight).value(),
                into_readout.value()) < 1e-14);
      CHECK(out.word.defined() == !after);
    }
}
