// Training, saving, loading, searching: what goes wrong names the line of the call, and a file its path as
// well.

#include <gradus/io/npy.h>
#include <gradus/io/safetensors.h>
#include <gradus/nn/data_parallel.h>
#include <gradus/nn/ema.h>
#include <gradus/nn/gru.h>
#include <gradus/nn/init.h>
#include <gradus/nn/optimizer.h>
#include <gradus/nn/scheduled_sampling.h>
#include <gradus/nn/scheduler.h>
#include <gradus/nn/search.h>
#include <gradus/nn/seq2seq.h>
#include <gradus/nn/transformer_seq2seq.h>
#include <gradus/ops.h>

#include <fstream>

#include "../scratch.h"
#include "caller.h"

using namespace gradus;
using namespace gradus::testing;

namespace caller_calls_test {
namespace {

constexpr int64_t E = 8, V = 10, S = 4, B = 2;

// A file of these bytes, or none, removed at the end.
struct File {
  scratch::Directory directory;
  std::string path;
  explicit File(const std::string& name, const std::string& bytes = "") : path(directory.file(name)) {
    if (!bytes.empty()) std::ofstream(path, std::ios::binary) << bytes;
  }
};

struct Model {
  nn::Linear up, down;
  explicit Model(Rng& rng) : up(2, 3, rng), down(3, 1, rng) {}
  Var operator()(const Var& x) const { return down(tanh(up(x))); }
  void params(nn::ParamVisitor& visit) {
    visit("up", up);
    visit("down", down);
  }
};

Tensor x() { return Tensor::ones({4, 2}); }
Tensor ids(int64_t rows, int32_t id) {
  return Tensor::from_ids({rows, B}, std::vector<int32_t>(static_cast<size_t>(rows * B), id));
}
Tensor lengths() { return Tensor::from_ids({B}, {4, 2}); }

}  // namespace

TEST_CASE("an optimiser's step, groups and state") {
  Rng rng(1);
  Model model(rng), other(rng);
  Gradients grads = backward(sum(model(x())));
  nn::Adam adam;
  CHECK_TEXT(
      "[Adam] the gradients have none of the 4 parameters; hint: does the loss come from this module?",
      adam.step(other, grads));
  CHECK_TEXT("[Adam] the gradients have none of the 0 parameters; hint: does params() visit them?",
             adam.step(nn::ParameterList(), grads));
  CHECK_TEXT("[Adam] grad_scale must be finite: nan", adam.step(model, grads, kNaN));
  CHECK_TEXT("[Adam] lr must not be negative: -1", adam.set_lr(-1));
  CHECK_TEXT("[Adam] lr must be finite: nan", adam.set_lr(kNaN));
  CHECK(adam.lr() == 1e-3);
  CHECK_TEXT("[Adam] group 1 does not exist: 1 group", adam.lr(1));
  CHECK_TEXT("[Adam] group -1 does not exist: 1 group", adam.set_lr(0.1, -1));
  CHECK(adam.add_group(model.up, {.lr = 0.1}) == 1);
  CHECK_TEXT("[Adam] group 2 does not exist: 2 groups", adam.set_lr(0.1, 2));
  CHECK_TEXT("[Adam] a parameter can be in one group only: up.weight", adam.add_group(model, {.lr = 0.2}));
  CHECK_TEXT("[Adam] lr must not be negative: -1", adam.add_group(model.down, {.lr = -1}));
  CHECK(adam.num_groups() == 2);
  adam.step(model, grads);
  nn::StateDict state = adam.state_dict(model);
  CHECK_TEXT("[Adam] the saved state must be one of these parameters: wrong shape lr (groups 1, given [2])",
              nn::Adam().load_state_dict(model, state));
  state.emplace_back("m.gone", x());
  CHECK_TEXT("[Adam] the saved state must be one of these parameters: unexpected m.gone",
              adam.load_state_dict(model, state));
  CHECK_REFUSES(adam.load_state_dict(nn::named_parameters(model), state));
  CHECK_REFUSES(adam.step(nn::named_parameters(other), grads));
  CHECK_REFUSES(adam.add_group(nn::named_parameters(model), {}));
  nn::to(model, DType::f64);
  CHECK_TEXT("[Adam] up.weight is f64 and its gradient f32; hint: was the module converted in between?",
              adam.step(model, grads));
}

TEST_CASE("clipping, schedules, averages, initialisers") {
  Rng rng(1);
  Model model(rng);
  nn::GRU other(2, 3, rng);
  Gradients grads = backward(sum(model(x())));
  nn::SGD sgd;
  CHECK_TEXT("[clip_grad_norm] max_norm must be positive: -1", nn::clip_grad_norm(grads, -1));
  CHECK_TEXT("[clip_factor] max_norm must be positive: 0", nn::clip_factor(3, 0));
  CHECK_TEXT("[clip_grad_value] max_value must be positive: 0", nn::clip_grad_value(grads, 0));
  CHECK_TEXT("[step_lr] step_size must be positive: 0", nn::step_lr(0));
  CHECK_TEXT("[cosine_annealing_lr] T_max must be positive: -1", nn::cosine_annealing_lr(-1));
  CHECK_TEXT("[noam_lr] model_size must be positive: 0", nn::noam_lr(0));
  CHECK_TEXT("[noam_lr] warmup must be positive: 0", nn::noam_lr(64, 0));
  CHECK_TEXT("[with_warmup] steps must be positive: 0", nn::with_warmup(0, nn::exponential_lr(0.9)));
  CHECK_TEXT("[with_warmup] needs a schedule to go on with", nn::with_warmup(5, nullptr));
  nn::Scheduler scheduler(sgd, nn::exponential_lr(0.9));
  CHECK_TEXT("[Scheduler] the saved state is not a scheduler's: missing base_lrs",
              scheduler.load_state_dict({{"t", Tensor::scalar(0)}}));
  CHECK_TEXT("[Scheduler] the saved state has 2 groups, the optimizer 1",
              scheduler.load_state_dict({{"t", Tensor::scalar(0)}, {"base_lrs", Tensor::ones({2})}}));
  nn::ReduceLROnPlateau plateau(sgd);
  CHECK_TEXT("[ReduceLROnPlateau] the saved state is not a scheduler's: unexpected t",
              plateau.load_state_dict({{"t", Tensor::scalar(0)}}));
  nn::ExponentialMovingAverage ema;
  ema.update(model);
  CHECK_TEXT(
      "[ExponentialMovingAverage] the module must be the same: average of up.weight [3, 2], parameter "
      "weight_ih_l0 [9, 2]",
      ema.update(other));
  CHECK_TEXT("[ExponentialMovingAverage] has averages of 4 parameters, the module has 2",
              ema.update(model.up));
  CHECK_REFUSES(ema.swap(nn::named_parameters(other)));
  CHECK_REFUSES(nn::EMAWeights(ema, other));
  CHECK_TEXT("[ExponentialMovingAverage] the saved state has no \"updates\"",
              ema.load_state_dict({{"weight", x()}}));
  Parameter vector(Tensor::zeros({4}), "v"), weight(Tensor::zeros({4, 3}), "w"), none;
  CHECK_ERROR("[xavier_uniform_] needs a weight [out, in, ...]: [4]", nn::init::xavier_uniform_(vector, rng));
  CHECK_ERROR("[kaiming_normal_] the first axis must divide into the blocks: [4, 3], 3 blocks",
              nn::init::kaiming_normal_(weight, rng, {.blocks = 3}));
  CHECK_TEXT(
      "[calculate_gain] unknown nonlinearity \"thanh\": one of linear, sigmoid, tanh, relu, leaky_relu, selu; "
      "hint: tanh?",
      nn::init::calculate_gain("thanh"));
  CHECK_TEXT("[update] the parameter is undefined", nn::init::zeros_(none));
  CHECK_REFUSES(nn::init::constant_(none, 1));
  CHECK_NAMES_THIS_LINE(nn::init::uniform_(none, 0, 1, rng));
  CHECK_NAMES_THIS_LINE(nn::init::normal_(none, 0, 1, rng));
}

TEST_CASE("a module that was moved from says so, and where it was called") {
  Rng rng(1);
  const Tensor rows = Tensor::ones({4, 3}), words = Tensor::ones({S, B, 3});
  const std::string gone = "[parameter] has no numbers any more", hint = "; hint: moved from?";
  auto left = [](auto& module) { auto elsewhere = std::move(module); };
  nn::Linear linear(3, 2, rng);
  nn::Embedding embedding(V, 3, rng);
  nn::LayerNorm norm(3);
  nn::GRUCell cell(3, 2, rng);
  nn::GRU gru(3, 2, rng);
  nn::LSTM lstm(3, 2, rng);
  nn::RNN rnn(3, 2, rng);
  left(linear), left(embedding), left(norm), left(cell), left(gru), left(lstm), left(rnn);
  CHECK_TEXT(gone + hint, linear(rows));
  CHECK_TEXT(gone + hint, norm(rows));
  CHECK_ERROR(gone + hint, embedding(ids(S, 1)));
  CHECK_ERROR(gone + hint, cell(rows, Tensor::zeros({4, 2})));
  CHECK_ERROR("[GRU] has no weights any more" + hint, gru(words));
  CHECK_ERROR("[LSTM] has no weights any more" + hint, lstm(words));
  CHECK_ERROR("[RNN] has no weights any more" + hint, rnn(words));
  nn::TransformerEncoder encoder(1, 4, 2, rng);
  nn::TransformerDecoder decoder(1, 4, 2, rng);
  left(encoder), left(decoder);
  const Tensor wide = Tensor::ones({S, B, 4});
  CHECK_ERROR("[TransformerEncoder] has no layers any more" + hint, encoder(wide));
  CHECK_ERROR("[TransformerDecoder] has no layers any more" + hint, decoder(wide, wide));
}

TEST_CASE("files: their path and the line of the call") {
  Rng rng(1);
  Model model(rng), other(rng);
  nn::Linear part(2, 3, rng), turned(3, 2, rng);
  File gone("gone"), good("good"), of_part("part"), torch("torch.pt", "PK\3\4 and so on"),
      text("text", "no tensors in here"), json("json", std::string("\x0d\0\0\0\0\0\0\0{\"a\": nonsense", 22));
  CHECK_TEXT("[safetensors] " + gone.path + ": cannot be opened: No such file or directory",
              load_safetensors(gone.path));
  CHECK_TEXT("[safetensors] " + gone.path + ": cannot be opened: No such file or directory",
              nn::load(model, gone.path));
  CHECK_TEXT(
      "[safetensors] " + torch.path +
          ": is a zip archive, no safetensors file; hint: from torch.save? Use safetensors.torch.save_file",
      nn::load(model, torch.path));
  CHECK_REFUSES(load_safetensors(json.path));
  CHECK_REFUSES(nn::load(model, "/tmp"));
  CHECK_REFUSES(nn::save(model, "/nowhere/model.safetensors"));
  CHECK_REFUSES(save_safetensors(good.path, {{{"a", Tensor()}}, {}}));
  nn::save(model, good.path);
  nn::save(part, of_part.path);
  CHECK_TEXT("[load] " + good.path +
                 ": the names and shapes must be the module's: missing weight, bias; unexpected up.weight, "
                 "up.bias, down.weight, down.bias; hint: they are given under \"up.\"",
             nn::load(part, good.path));
  CHECK_TEXT("[load] " + of_part.path +
                 ": the names and shapes must be the module's: wrong shape weight (module [2, 3], given [3, "
                 "2]), bias (module [2], given [3]); hint: a weight is [out, in]: transposed?",
             nn::load(turned, of_part.path));
  nn::StateDict prefixed;
  for (const auto& [name, value] : nn::state_dict(model)) prefixed.emplace_back("module." + name, value);
  CHECK_TEXT(
      "[load_state_dict] the names and shapes must be the module's: missing up.weight, up.bias, down.weight, "
      "down.bias; unexpected module.up.weight, module.up.bias, module.down.weight, module.down.bias; hint: "
      "they are given under \"module.\"",
      nn::load_state_dict(model, prefixed));
  CHECK_REFUSES(nn::load_state_dict(nn::named_parameters(model), prefixed));
  CHECK_TEXT("[to] parameters are f32 or f64: i32", nn::to(model, DType::i32));
  CHECK_REFUSES(nn::to(nn::named_parameters(model), DType::u8));

  CHECK_TEXT("[npy] " + gone.path + ": cannot be opened: No such file or directory", load_npy(gone.path));
  CHECK_TEXT("[npy] " + text.path + ": is no npy file", load_npy(text.path));
  CHECK_TEXT("[npy] " + torch.path +
                 ": is no npy file; hint: an .npz archive: numpy.load it and write its arrays by "
                 "safetensors.numpy.save_file",
             load_npy(torch.path));
  CHECK_TEXT("[npy] /nowhere/x.npy: cannot be written: No such file or directory",
              save_npy("/nowhere/x.npy", x()));
  CHECK_TEXT("[npy] " + good.path + ": an undefined tensor cannot be written",
              save_npy(good.path, Tensor()));
}

TEST_CASE("translating, searching, sampling") {
  Rng rng(1);
  nn::Seq2Seq gru({.source_vocabulary = V, .target_vocabulary = V, .embedding_dim = E, .hidden_size = E},
                  rng);
  nn::Seq2Seq composed(
      {.source_vocabulary = V, .target_vocabulary = V, .embedding_dim = E, .hidden_size = E,
       .rnn = {.cell = nn::cell_type("lstm")}},
      rng);
  nn::TransformerSeq2Seq transformer(
      {.source_vocabulary = V, .target_vocabulary = V, .d_model = E, .num_layers = 1}, rng);
  ThreadPool pool(2);
  for (const nn::TranslationModel* model :
       {static_cast<nn::TranslationModel*>(&gru), static_cast<nn::TranslationModel*>(&composed),
        static_cast<nn::TranslationModel*>(&transformer)}) {
    auto generator = model->generator();
    CHECK_ERROR("[translate] beam_size must be at least 1: 0",
                nn::translate(*generator, ids(S, 4), lengths(), {.beam_size = 0}));
    CHECK_ERROR("[translate] sources must be i32 [S, B] and lengths i32 [B]: [4, 2] and [1]",
                nn::translate(*model, ids(S, 4), Tensor::from_ids({1}, {4})));
    CHECK_NAMES_THIS_LINE(nn::translate(*generator, ids(S, V), lengths()));
    CHECK_NAMES_THIS_LINE(nn::translate(*generator, ids(S, 4), Tensor::from_ids({B}, {S + 1, 1})));
    CHECK_NAMES_THIS_LINE(nn::translate(*generator, ids(S, V), lengths(), {.beam_size = 8, .pool = &pool}));
    CHECK_REFUSES(generator->start(ids(S, V), lengths()));
    auto decoder = generator->start(ids(S, 4), lengths());
    CHECK_REFUSES(decoder->step(Tensor::from_ids({B}, {V, 2})));
    CHECK_TEXT("[select] rows are 0 .. 1: 2", decoder->select({2}));
    CHECK_TEXT("[select] at most 2 rows were planned for: 3", decoder->select({0, 0, 1}));
    CHECK_TEXT("[select] rows are 0 .. 1: -1", decoder->select({-1}));
    CHECK_TEXT("[translate] beam_size must be at least 1: 0",
                nn::search(*decoder, lengths(), {.beam_size = 0}));
    nn::Seq2SeqBatch batch{ids(S, 4), lengths(), ids(3, 4), ids(3, 4), 6};
    CHECK_ERROR("[scheduled_sampling] the probability must be in [0, 1]: 2",
                nn::scheduled_sampling(*generator, batch, 2, rng));
    batch.source = ids(S, V);
    CHECK_NAMES_THIS_LINE(nn::scheduled_sampling(*generator, batch, 1, rng));
  }
  CHECK_REFUSES(nn::target_lengths(x(), 1));
  CHECK_REFUSES(nn::target_words(ids(S, 4), Tensor::from_ids({B}, {9, 9})));
  Tensor beyond = Tensor::from_ids({1}, {B});
  nn::AttentionMemory memory{Tensor::zeros({S, B, E}), Tensor::zeros({S, B, E})};
  CHECK_TEXT("[rows] must be in 0 .. 1: 2", memory.rows(beyond));
  CHECK_REFUSES(nn::AttentionState{.weights = Tensor::zeros({B, S})}.rows(beyond));
  nn::DecoderState state{Tensor::zeros({B, E}), {}, memory, {}};
  CHECK_REFUSES(state.rows(beyond));
  CHECK_REFUSES(state.reordered(beyond));
  nn::Encoded encoded{Tensor::zeros({S, B, E}), Tensor::zeros({B, E}), Tensor::zeros({B + 1, E}), {}};
  CHECK_REFUSES(encoded.final_states());
  nn::KeyValueCache cache;
  cache.append(Tensor::zeros({1, B, E}));
  CHECK_TEXT("[KeyValueCache] a word's keys and values must be as those before: [1, 2, 8], given [1, 3, 8]",
              cache.append(Tensor::zeros({1, B + 1, E})));
  CHECK_TEXT("[KeyValueCache] keys and values of a word must be [1, B, 2E]: [2, 8]",
              cache.append(Tensor::zeros({B, E})));
  CHECK_TEXT("[KeyValueCache] sentences are 0 .. 1: 2", cache.select({2}));
  nn::TransformerDecoder decoder(2, E, 2, rng);
  std::vector<nn::TransformerLayerCache> one(1);
  CHECK_ERROR("[TransformerDecoder] needs what start() returned, a cache for each of 2 layers: 1",
              decoder.step(Tensor::zeros({1, B, E}), one));
  CHECK_REFUSES(nn::LearnedPositions(3, E, rng).rows(0, 4, DType::f32));
}

TEST_CASE("gradient checks, and jobs of several threads") {
  Rng rng(1);
  nn::Linear linear(2, 3, rng);
  nn::Embedding words(V, E, rng);
  CHECK_ERROR("[gradcheck] the layer cannot be called with 2 inputs", nn::gradcheck(linear, {x(), x()}));
  CHECK_NAMES_THIS_LINE(nn::gradcheck(linear, {Tensor::zeros({4, 5})}));
  CHECK_ERROR("[embedding] ids must be in 0 .. 9: 10", nn::gradcheck(words, {ids(S, V)}));
  CHECK_REFUSES(nn::checkable(std::vector<Var>{}));
  ThreadPool pool(2);
  CHECK_TEXT("[backward] the loss must be a scalar, or BackwardOptions::seed given: shape [4, 3]",
             nn::parallel_gradients(pool, 1, [&](int) { return linear(x()); }));
  CHECK_TEXT("[parallel_gradients] needs at least one shard: 0",
              nn::parallel_gradients(pool, 0, [](int) { return Var(); }));
  CHECK_TEXT("[parallel_output_gradients] needs at least one shard: 0",
              nn::parallel_output_gradients(pool, 0, [](int) { return nn::ShardOutput(); }, {}));
  CHECK_REFUSES(nn::parallel_output_gradients(
      pool, 2, [](int) { return nn::ShardOutput{Tensor::zeros({4, 5}), Tensor::from_ids({4}, {0, 0, 0, 0})}; },
      {linear.weight}));
  // A job's own lines are nearer, and named on every thread.
  int line = 0;
  std::string text = text_of([&] {
    nn::parallel_gradients(pool, 2, [&](int shard) {
      if (shard == 1) line = __LINE__, linear(Tensor::zeros({4, 5}));
      return Var();
    });
  });
  CHECK(text.find(place(__FILE__, line)) != std::string::npos);
  // Where a place is in force, a thread's errors name it.
  CHECK_NAMES_THIS_LINE([&](Caller caller = Caller::current()) {
    At at(caller);
    pool.run([&](int worker) {
      if (worker == 1) linear(Tensor::zeros({4, 5}));
    });
  }());
}

}  // namespace caller_calls_test
