// Chapter 18: a tiny GPT, put together of your own chapters 13 to 17. Text: `lens lesson 18`.
#include <gradus/nn/data_parallel.h>
#include <gradus/nn/embedding.h>
#include <gradus/nn/linear.h>
#include <gradus/nn/optimizer.h>
#include <gradus/parallel.h>
#include <lens/lesson.h>

#include <cstdio>

namespace scaled_dot {
#include "13-scaled-dot.cc"
}
namespace heads {
#include "14-heads.cc"
}
namespace causal {
#include "15-causal-mask.cc"
}
namespace norm {
#include "16-layer-norm.cc"
}
namespace residual {
#include "17-residual.cc"
}

using namespace gradus;

const std::string kAlphabet = " .abcdefghijklmnopqrstuvwxyz";

// "the old cat sees two dogs. ": the verb agrees with who does it.
std::string sentence(Rng& rng) {
  auto one = [&](std::vector<const char*> of) {
    return std::string(of[static_cast<size_t>(rng.below(static_cast<int64_t>(of.size())))]);
  };
  auto thing = [&](bool many) {
    return (many ? one({"two ", "many "}) : one({"a ", "the "})) + one({"", "old ", "red ", "small "}) +
           one({"cat", "dog", "bird"}) + (many ? "s" : "");
  };
  bool many = rng.below(2) == 0;
  return thing(many) + one({" see", " like", " hear"}) + (many ? " " : "s ") + thing(rng.below(2) == 0) +
         ". ";
}

struct Layer {
  struct Seen {
    Var keys, values;  // [H, t, d] of the characters that it has written
  };
  int64_t H;
  Parameter gamma, beta;
  nn::Linear query, key, value, out, up, down;
  Layer(int64_t D, int64_t heads, Rng& r)
      : H(heads),
        gamma(Tensor::ones({D}), "gamma"),
        beta(Tensor::zeros({D}), "beta"),
        query(D, D, r, {.bias = false}),
        key(D, D, r, {.bias = false}),
        value(D, D, r, {.bias = false}),
        out(D, D, r, {.bias = false}),
        up(D, 2 * D, r, {.bias = false}),
        down(2 * D, D, r, {.bias = false}) {}
  void params(nn::ParamVisitor& visit) {
    visit("gamma", gamma), visit("beta", beta), visit("query", query), visit("key", key);
    visit("value", value), visit("out", out), visit("up", up), visit("down", down);
  }
  // x [T, D] -> [T, D]. While it is trained, words come all at once; while it writes, one row behind `seen`.
  Var operator()(const Var& x, Seen* seen = nullptr) const {
    Var n = norm::row_norm(x, gamma, beta);
    Var q = heads::split_heads(query(n), H), k = heads::split_heads(key(n), H),
        v = heads::split_heads(value(n), H);
    if (seen && seen->keys.defined()) k = concat({seen->keys, k}, 1), v = concat({seen->values, v}, 1);
    if (seen) *seen = {k, v};
    std::vector<Var> found;
    for (int64_t h = 0; h < H; ++h) {
      Var qh = select(q, 0, h), kh = select(k, 0, h), vh = select(v, 0, h);
      found.push_back(seen ? scaled_dot::attention(qh, kh, vh) : causal::causal_attention(qh, kh, vh));
    }
    return residual::block(x + heads::join_heads(stack(found, 0), out.weight), up.weight, down.weight);
  }
};

Tensor ids_of(const std::string& text) {
  Tensor ids({std::ssize(text)}, DType::i32);
  for (size_t t = 0; t < text.size(); ++t) ids.i32()[t] = static_cast<int32_t>(kAlphabet.find(text[t]));
  return ids;
}

struct Gpt {
  nn::Embedding letter, place;
  std::vector<Layer> layers;
  Parameter gamma, beta;
  nn::Linear answer;
  Gpt(int64_t T, int64_t D, int64_t H, Rng& r)
      : letter(std::ssize(kAlphabet), D, r),
        place(T, D, r),
        gamma(Tensor::ones({D}), "gamma"),
        beta(Tensor::zeros({D}), "beta"),
        answer(D, std::ssize(kAlphabet), r, {.bias = false}) {
    for (int l = 0; l < 2; ++l) layers.emplace_back(D, H, r);
    nn::to(*this, DType::f64);
  }
  void params(nn::ParamVisitor& visit) {
    visit("letter", letter), visit("place", place), visit("layers", layers), visit("gamma", gamma);
    visit("beta", beta), visit("answer", answer);
  }
  // ids i32 [T], the first one in place `from` -> [T, V], of what comes after each
  Var logits(const Tensor& ids, int64_t from = 0, Layer::Seen* seen = nullptr) const {
    Var x = letter(ids) + slice(place.weight, 0, from, from + ids.numel());
    // ---- your turn: x goes through layers[0], layers[1], ...; layer l has seen[l], where there is one ----
#ifdef ANSWER
    for (size_t l = 0; l < layers.size(); ++l) x = layers[l](x, seen ? seen + l : nullptr);
#else
    (void)seen;  // delete this line
#endif
    // ---- end ----
    return answer(norm::row_norm(x, gamma, beta));
  }
  // Chapter 11: at each character it shall say the next.
  Var loss(const std::string& text) const {
    return cross_entropy(logits(ids_of(text.substr(0, text.size() - 1))), ids_of(text.substr(1))).loss;
  }
  // Character after character, each drawn by its probability; apart: how far its logits are from all at once.
  std::string write(Rng& rng, double* apart = nullptr) const {
    NoGrad guard;
    std::string text = " ";
    std::vector<Layer::Seen> seen(layers.size());
    for (int64_t t = 0; t < place.weight.shape()[0]; ++t) {
      Var z = logits(ids_of(text.substr(text.size() - 1)), t, seen.data());
      if (apart)
        *apart = worse(*apart, max_abs_difference(z.value(), logits(ids_of(text)).value().rows(t, t + 1)));
      double u = rng.uniform();
      size_t c = 0;
      for (Tensor p = softmax(z).value(); c + 1 < kAlphabet.size() && u > p.at(c); ++c) u -= p.at(c);
      text += kAlphabet[c];
    }
    return text.substr(1);
  }
};

int main() {
  Rng rng(1);
  Gpt small(6, 4, 2, rng), model(32, 24, 3, rng);
  auto f = [&] { return small.loss("a bird."); };
  int wrong = lens::check_model("A tiny GPT", f, nn::named_parameters(small));
  nn::Adam adam({.lr = 0.01});
  ThreadPool pool(2);
  double loss = 0;
  for (int step = 0; step <= 320; ++step) {
    std::vector<std::string> lines(4, " ");
    for (std::string& line : lines) {
      while (line.size() <= 32) line += sentence(rng);
      line.resize(33);
    }
    auto out =
        nn::parallel_gradients(pool, 4, [&](int i) { return model.loss(lines[static_cast<size_t>(i)]) / 4; });
    double now = 0;
    for (double part : out.losses) now += part;
    loss = step ? 0.9 * loss + 0.1 * now : now;
    if (step % 40 == 0) std::printf("  step %3d   loss %.2f   %s\n", step, loss, model.write(rng).c_str());
    std::fflush(stdout);
    adam.step(model, out.gradients);
  }
  double apart = 0;
  model.write(rng, &apart);
  wrong += lens::expect(
      apart < 1e-9, "one by one (13) it says what it learnt all at once (15)",
      "Chapter 13's attention to all that was written and the last row of chapter 15's are one.");
  return wrong + lens::expect(loss < 0.6, "it writes: the loss is below 0.6",
                              "It has not learnt to write: ln 28 = 3.33 is what guessing gives.");
}
