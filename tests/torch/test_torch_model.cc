// The translator here and in PyTorch (tools/torch_model.py): the same logits, translations and training, from
// one set of weights, whichever side they come from. The stored models have weights by PyTorch; where PyTorch
// is installed, models of this library are handed to it as well.

#include <cstdlib>
#include <map>

#include <gradus/io/safetensors.h>
#include <gradus/nn/optimizer.h>
#include <gradus/nn/search.h>
#include <translator/inference/translation.h>
#include <translator/model/model.h>

#include "../io/scratch.h"
#include "../pieces.h"
#include "../quick_doctest.h"
#include "../skip.h"

using namespace gradus;
using translator::Model;
using Tensors = std::map<std::string, Tensor>;

namespace {

Tensors read(const std::string& path) {
  SafetensorsFile file = load_safetensors(path);
  return {file.tensors.begin(), file.tensors.end()};
}

nn::Seq2SeqBatch batch_of(const Tensors& t) {
  nn::Seq2SeqBatch b{t.at("source"), t.at("lengths"), t.at("target_in"), t.at("target_out"), 0};
  for (int64_t i = 0; i < b.target_out.numel(); ++i) b.target_tokens += b.target_out.i32()[i] != nn::kPad;
  return b;
}

// Largest difference of the logits of all real target words, as decoding makes them: [T, B, V].
double difference(const Model& model, const nn::Seq2SeqBatch& b, const Tensor& expected) {
  NoGrad guard;
  auto generator = model.network->generator();
  auto decoder = generator->start(b.source, b.source_lengths);
  double worst = 0;
  for (int64_t t = 0; t < b.target_in.size(0); ++t) {
    const Tensor& logits = decoder->step(b.target_in.row(t));
    for (int64_t s = 0; s < b.target_in.size(1); ++s)
      if (b.target_in.row(t).i32()[s] != nn::kPad)
        worst = worse(worst, max_abs_difference(logits.row(s), expected.row(t).row(s)));
  }
  return worst;
}

// The model in a directory against the numbers that PyTorch made of the same weights and batch.
void compare(const std::string& directory) {
  CAPTURE(directory);
  Model model = Model::load(directory);
  Tensors numbers = read(directory + "/numbers.safetensors");
  nn::Seq2SeqBatch b = batch_of(read(directory + "/batch.safetensors"));
  CHECK(difference(model, b, numbers.at("logits")) < 1e-5);

  const Tensor& greedy = numbers.at("greedy");
  auto found = nn::translate(*model.network, b.source, b.source_lengths, {.max_length = greedy.size(0)});
  for (int64_t s = 0; s < greedy.size(1); ++s) {
    std::vector<int32_t> expected;
    for (int64_t t = 0; t < greedy.size(0) && greedy.row(t).i32()[s] != nn::kEos; ++t)
      expected.push_back(greedy.row(t).i32()[s]);
    CHECK(found[static_cast<size_t>(s)][0].tokens == expected);
  }

  nn::Adam adam({.lr = 0.01});
  for (int64_t step = 0; step < numbers.at("losses").numel(); ++step) {
    CAPTURE(step);
    CrossEntropy loss = model.network->loss(b);
    CHECK(std::abs(loss.loss.item() - numbers.at("losses").at(step)) < (step == 0 ? 1e-5 : 1e-4));
    adam.step(*model.network, backward(loss.loss));
  }
  CHECK(difference(model, b, numbers.at("trained_logits")) < 1e-3);
}

translator::Vocabulary words(int64_t count) {
  translator::TokenCounts counts;
  for (int64_t i = 0; i < count; ++i) counts.add("w" + std::to_string(i));
  return translator::Vocabulary::build(counts, {});
}

Tensor random_ids(const Shape& shape, int64_t vocabulary, Rng& rng) {
  Tensor t(shape, DType::i32);
  for (int64_t i = 0; i < t.numel(); ++i) t.i32()[i] = static_cast<int32_t>(4 + rng.below(vocabulary - 4));
  return t;
}

// A model directory with random weights and a batch, as `translator train` would leave it.
void make(const std::string& directory, const translator::ModelConfig& config, uint64_t seed) {
  const bool one_vocabulary = config.network.tie_source || config.transformer.tie_source;
  Model model(config, words(one_vocabulary ? 25 : 20), words(25), seed);
  Rng rng(seed);
  for (const NamedParameter& p : nn::named_parameters(*model.network))
    if (p.name == "output.weight")  // so that the most probable words are clear
      p.parameter->update([](const Tensor& w) {
        for (int64_t i = 0; i < w.numel(); ++i) w.set(i, 5 * w.at(i));
      });
  model.save_description(directory);
  model.save_weights(directory);
  Tensor source = random_ids({7, 4}, 24, rng), lengths = Tensor::from_ids({4}, {3, 7, 1, 5});
  Tensor in = random_ids({6, 4}, 29, rng), out({6, 4}, DType::i32);
  const int64_t ends[] = {4, 2, 6, 5};
  for (int64_t b = 0; b < 4; ++b) {
    for (int64_t s = 0; s < 7; ++s)
      if (s >= lengths.i32()[b] - 1)
        source.i32()[s * 4 + b] = s == lengths.i32()[b] - 1 ? nn::kEos : nn::kPad;
    in.i32()[b] = nn::kBos;
    for (int64_t t = 0; t < 6; ++t) {
      if (t >= ends[b]) in.i32()[t * 4 + b] = nn::kPad;
      out.i32()[t * 4 + b] = t + 1 < ends[b]    ? in.i32()[(t + 1) * 4 + b]
                             : t + 1 == ends[b] ? nn::kEos
                                                : nn::kPad;
    }
  }
  save_safetensors(directory + "/batch.safetensors",
                   {{{"source", source}, {"lengths", lengths}, {"target_in", in}, {"target_out", out}}, {}});
}

translator::ModelConfig gru(const nn::Seq2SeqConfig& network) {
  translator::ModelConfig c;
  c.trained_on.corpus = "own";
  c.network = network;
  c.network.embedding_dim = 10;
  c.network.hidden_size = 12;
  return c;
}

translator::ModelConfig transformer(const nn::TransformerConfig& network) {
  translator::ModelConfig c;
  c.model = "transformer";
  c.transformer = network;
  c.transformer.d_model = 16;
  return c;
}

translator::ModelConfig tied(translator::ModelConfig c) {
  c.network.embedding_dim = c.network.hidden_size;
  return c;
}

std::vector<std::pair<std::string, translator::ModelConfig>> models() {
  return {{"bahdanau", gru({.rnn = {.num_layers = 2}, .attention = "bahdanau"})},
          {"bahdanau-lstm", gru({.rnn = {.cell = nn::cell_type("lstm")}, .attention = "bahdanau"})},
          {"bahdanau-maxout",
           gru({.rnn = {.bidirectional = false}, .attention = "bahdanau", .readout = "maxout"})},
          {"general", gru({.attention = "general"})},
          {"general-unfed", gru({.attention = "general", .input_feeding = false})},
          {"general-early", gru({.attention = "general", .decoder = "bahdanau"})},
          {"dot-rnn", gru({.rnn = {.cell = nn::cell_type("rnn")}, .attention = "dot"})},
          {"concat", gru({.attention_size = 7, .attention = "concat"})},
          {"none", gru({.attention = "none"})},
          {"none-lstm", gru({.rnn = {.cell = nn::cell_type("lstm")}, .attention = "none"})},
          {"bahdanau-deep", gru({.decoder_layers = 2, .attention = "bahdanau"})},
          {"general-deep-lstm",
           gru({.rnn = {.cell = nn::cell_type("lstm")}, .decoder_layers = 3, .attention = "general"})},
          {"tied", tied(gru({.attention = "bahdanau", .tie_embeddings = true}))},
          {"all-tied", tied(gru({.attention = "general", .tie_embeddings = true, .tie_source = true}))},
          {"transformer", transformer({.num_heads = 4, .num_layers = 2})},
          {"transformer-all-tied", tied(transformer({.num_heads = 4, .num_layers = 2, .tie_source = true}))},
          {"transformer-post", transformer({.num_heads = 2,
                                            .num_layers = 1,
                                            .dim_feedforward = 20,
                                            .norm_first = false,
                                            .activation = "gelu",
                                            .positions = "learned",
                                            .tie_embeddings = false})}};
}

bool has(const std::string& packages) {
  return std::system(("python3 -c 'import " + packages + "' >/dev/null 2>&1").c_str()) == 0;
}
bool has_torch() { return has("torch"); }

}  // namespace

TEST_CASE("weights from PyTorch: its logits, its translations, its training") {
  for (const char* name : {"bahdanau", "luong", "concat-lstm", "none", "transformer"})
    compare(std::string(TORCH_TESTS "/stored/") + name);
}

TEST_CASE("weights to PyTorch and back") {
  if (!has_torch())
    return gradus::testing::skipped("python3 has no PyTorch here: only the stored numbers were compared");
  scratch::Directory scratch;
  std::string command = "python3 " TORCH_TESTS "/peer.py";
  uint64_t seed = 0;
  for (const auto& [name, config] : models()) {
    make(scratch.file(name), config, ++seed);
    command += " '" + scratch.file(name) + "'";
  }
  REQUIRE(std::system(command.c_str()) == 0);
  for (const auto& [name, config] : models()) {
    std::string directory = scratch.file(name);
    compare(directory);
    // And what PyTorch made of the weights, read back here.
    Model model = Model::load_description(directory);
    nn::load(*model.network, directory + "/trained.safetensors");
    CHECK(difference(model, batch_of(read(directory + "/batch.safetensors")),
                     read(directory + "/numbers.safetensors").at("trained_logits")) < 1e-5);
  }
}

TEST_CASE("what would be rebuilt wrongly is refused, and said by name") {
  if (!has_torch()) return gradus::testing::skipped("python3 has no PyTorch here: nothing to ask");
  auto options = [](const nn::AttentionOptions& o) {
    return gru({.attention = "general", .attention_options = o});
  };
  const std::string one_of_the_attentions =
      R"("bahdanau", "additive", "mlp", "dot", "general", "luong", "concat", "none")";
  const std::vector<std::pair<translator::ModelConfig, std::string>> cases = {
      {gru({.attention = "general"}), "rebuilt"},
      {gru({.rnn = {.dropout = 0.3}, .attention = "none"}), "rebuilt"},
      {options({.heads = 2, .window = 7}), "rebuilt"},
      {options({.temperature = 0.5}), "temperature 0.5 is not known: only 1"},
      {options({.top_k = 2}), "top_k 2 is not known: only 0"},
      {gru({.attention = "multihead"}),
       "attention \"multihead\" is not known: only " + one_of_the_attentions},
      {gru({.attention = "local-p"}), "attention \"local-p\" is not known: only " + one_of_the_attentions},
      {gru({.rnn = {.cell = nn::cell_type("gru-reset-before")}}),
       R"(cell "gru-reset-before" is not known: only "gru", "lstm", "rnn")"},
      {gru({.rnn = {.cell = nn::cell_type("gru-bahdanau")}}),
       R"(cell "gru-bahdanau" is not known: only "gru", "lstm", "rnn")"},
      {gru({.rnn = {.cell = nn::cell_type("rnn-relu")}}),
       R"(cell "rnn-relu" is not known: only "gru", "lstm", "rnn")"},
      {gru({.rnn = {.cell = {.layer_norm = true}}}), "layer_norm true is not known: only false"},
      {gru({.rnn = {.residual = true}}), "residual true is not known: only false"},
      {gru({.rnn = {.bidirectional = false, .reverse = true}}),
       "reverse_source true is not known: only false"},
      {gru({.rnn = {.variational = true, .recurrent_dropout = 0.25}}), "rebuilt"},  // dropout is for training
      {transformer({.num_heads = 4, .num_layers = 1}), "rebuilt"},
      {transformer({.num_heads = 4, .num_layers = 1, .positions = "none"}), "rebuilt"},
      {transformer({.num_heads = 4, .num_layers = 1, .temperature = 0.5}),
       "temperature 0.5 is not known: only 1"},
  };
  scratch::Directory scratch;
  std::string command = "python3 " TORCH_TESTS "/peer.py --refusals", expected;
  for (size_t i = 0; i < cases.size(); ++i) {
    std::string directory = scratch.file(std::to_string(i));
    Model(cases[i].first, words(20), words(25), 1).save_description(directory);
    command += " '" + directory + "'";
    expected += cases[i].second + "\n";
  }
  // A later version's option, of the network and of the whole.
  for (const char* place : {"network", "whole"}) {
    std::string directory = scratch.file(place);
    Model(cases[0].first, words(20), words(25), 1).save_description(directory);
    std::string text = scratch::read(directory + "/config.json");
    std::string before = std::string(place) == "whole" ? "\"version\"" : "\"hidden_size\"";
    text.replace(text.find(before), before.size(), "\"highway\": false, " + before);
    scratch::write(directory + "/config.json", text);
    command += " '" + directory + "'";
    expected += "highway is not known: this model would not be rebuilt as it is\n";
  }
  REQUIRE(std::system((command + " > '" + scratch.file("said") + "'").c_str()) == 0);
  CHECK(scratch::read(scratch.file("said")) == expected);

  const std::string broken = scratch.file("0");
  scratch::write(broken + "/model.safetensors", "");
  CHECK(std::system(("python3 " TORCH_TESTS "/../../tools/torch_model.py '" + broken + "' x 2> '" +
                     scratch.file("said") + "'")
                        .c_str()) != 0);
  const std::string said = scratch::read(scratch.file("said"));
  CHECK(said.find("model.safetensors: no safetensors file") != std::string::npos);
}

TEST_CASE("a sentence is split into the pieces that are read here, and what comes back is text") {
  if (gradus::testing::no_pieces()) return;
  if (!has("torch, sentencepiece"))
    return gradus::testing::skipped(
        "python3 has no PyTorch or no sentencepiece here: no sentence was split there");
  scratch::Directory scratch;
  auto translated = [&](const std::string& directory, const std::string& sentence) {
    const std::string said = scratch.file("said");
    REQUIRE(std::system(("python3 " TORCH_TESTS "/../../tools/torch_model.py '" + directory + "' \"" +
                         sentence + "\" > '" + said + "'")
                            .c_str()) == 0);
    return scratch::read(said);
  };
  auto spaced = [](const std::vector<std::string>& pieces) {
    std::string out;
    for (const std::string& piece : pieces) out += (out.empty() ? "" : " ") + piece;
    return out;
  };
  translator::TokenCounts counts;
  auto truecaser = std::make_shared<translator::Truecaser>();
  const translator::Segmenter counting({.letter_case = "keep"});
  for (const char* line :
       {"the cats eat the fish , don't they ?", "she and Tom eat", "O\u00f9 est-elle ? Et l\u00e0 ?"}) {
    counting.count_words(line, counts);
    truecaser->count(translator::split_tokens(line));
  }
  truecaser->decide();
  translator::TextModels text;
  text.source = text.target = std::make_shared<translator::Subwords>(
      translator::Subwords::learn(counts, {.size = 320, .quiet = true}));
  text.source_case = text.target_case = truecaser;
  // NFD, several spaces, a name in front, a character that no piece has.
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"first", "The cats  eat fish, don't they?"},
      {"first", "Tom eats."},
      {"first", "C\u2019est Tom."},
      {"first", "They'll eat the cats."},
      {"first", "3D cats eat."},
      {"keep", "The Ou\u0300 est-elle ? \U0001F408"},
      {"lower", "The Fish"}};
  for (const auto& [letter_case, sentence] : cases) {
    CAPTURE(letter_case);
    CAPTURE(sentence);
    translator::ModelConfig config = gru({.attention = "bahdanau"});
    config.letter_case = letter_case;
    config.subwords = "bpe";
    config.subword_model = "joint";
    Model model(config, text.source->vocabulary(), text.source->vocabulary(), 3, text);
    for (const NamedParameter& p : nn::named_parameters(*model.network))
      if (p.name == "output.bias")  // so that no <unk> and no bytes are said, of which few make text
        p.parameter->update([](const Tensor& b) {
          for (int64_t i = 0; i < 4 + 256; ++i)
            if (i != nn::kEos) b.set(i, -50);
        });
    const std::string directory = scratch.file(letter_case);
    model.save_description(directory);
    model.save_weights(directory);
    const translator::Segmented source = model.reads.split(sentence);
    const auto found = translator::translate(model, {source})[0].at(0);
    CHECK(translated(directory, sentence) == model.writes.join(found.tokens) + "\n");
    if (sentence == "Tom eats.")
      CHECK(translated(directory, spaced(source.pieces)) == spaced(found.tokens) + "\n");
  }
}
