#include <translator/model/model_config.h>

#include <common/error.h>
#include <common/json_text.h>
#include <fmt/core.h>
#include <gradus/error.h>
#include <gradus/nn/attention/attention.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <translator/model/fields_json.h>

namespace translator {
namespace {

using json = nlohmann::ordered_json;
namespace nn = gradus::nn;

constexpr const char* kModelFormat = "gradus-translator";
constexpr int kModelVersion = 1;

// In the order of config.json.
Fields fields_of(nn::Seq2SeqConfig& n) {
  nn::AttentionOptions& a = n.attention_options;
  n.rnn.bidirectional = n.bidirectional();
  return {
      {"", Whole{&n.source_vocabulary, 1, kMostWords}, "", "source_vocabulary", kRequired},
      {"", Whole{&n.target_vocabulary, 1, kMostWords}, "", "target_vocabulary", kRequired},
      {"--embedding,--embedding-dim,--d-model", Whole{&n.embedding_dim, 1, kMostUnits},
       "Size of the word vectors; of everything in a transformer (default: as --hidden; 128 of a "
       "transformer)",
       "embedding_dim", kRequired},
      {"--hidden", Whole{&n.hidden_size, 1, kMostUnits},
       "Size of the states (default: as --embedding, else by the pairs, 128 to 384; 128 for the embedded "
       "corpus)",
       "hidden_size", kRequired},
      {"", Whole{&n.attention_size, 0, kMostUnits}, "", "attention_size", kRequired},
      {"--layers,--num-layers", Whole{&n.rnn.num_layers, 1, kMostLayers},
       "Layers of the encoder (default: 1); of both sides of a transformer (default: 4; 2 for the embedded "
       "corpus)",
       "num_layers", kRequired},
      {"--decoder-layers", Whole{&n.decoder_layers, 1, kMostLayers}, "Layers of a recurrent decoder",
       "decoder_layers"},
      {"--bidirectional,!--unidirectional", Switch{&*n.rnn.bidirectional},
       "Read the source both ways (default), or from its beginning only", "bidirectional", kRequired},
      {"--reverse-source", Switch{&n.rnn.reverse},
       "With --unidirectional: read the source from its end only (Sutskever et al. 2014)", "reverse_source"},
      {"-a,--attention", attention_name(n.attention),
       "How the decoder looks at the source: a name from the list below (default: concat; bahdanau for the "
       "embedded corpus)",
       "attention", kRequired},
      {"--decoder", Word{&n.decoder, {"auto", "bahdanau", "luong"}},
       "Order of the decoder; auto: by attention", "decoder", kRequired},
      {"--input-feeding,!--no-input-feeding", Switch{&n.input_feeding},
       "Luong's order: each attention vector goes into the next step (default: yes)", "input_feeding",
       kRequired},
      {"--dropout", Number{&n.rnn.dropout, 0, kMostDropout},
       "On embeddings, readout and between layers; a transformer's after each part, too (default: by the "
       "pairs, 0.5 to 0.1; 0 for the embedded corpus)",
       "dropout", kRequired},
      {"--readout", Word{&n.readout, {"tanh", "maxout"}},
       "What sums a step up: tanh, or maxout as Bahdanau's paper", "readout"},
      {"--cell", Cell{&n.rnn.cell}, "Unit of encoder and decoder (default: gru)", "cell"},
      {"--layer-norm", Switch{&n.rnn.cell.layer_norm},
       "Layer-normalised cells; the decoder then goes step by step", "layer_norm"},
      {"--residual", Switch{&n.rnn.residual}, "Recurrent layers but the first add their input", "residual"},
      {"--variational", Switch{&n.rnn.variational},
       "The encoder's dropout: one mask for all words of a sentence (default: below 20,000 pairs)",
       "variational"},
      {"--recurrent-dropout", Number{&n.rnn.recurrent_dropout, 0, kMostDropout},
       "On the encoder's states (default: 0.2 below 20,000 pairs, else 0)", "recurrent_dropout"},
      {"--tie-embeddings,!--no-tie-embeddings", Switch{&n.tie_embeddings},
       "One matrix for target words going in and coming out, and with joint pieces for source words "
       "(default: where --embedding and --hidden are alike)",
       "tie_embeddings"},
      {"", Switch{&n.tie_source}, "", "tie_source"},
      {"--temperature", Number{&a.temperature, 1e-6, 1e6},
       "Attention scores are divided by it, a transformer's by sqrt(d) too: below 1 sharper, above 1 flatter",
       "attention_options.temperature"},
      {"--top-k", Whole{&a.top_k, 0, kMostPositions},
       "Once trained, look at so many source words at a time at most; 0: all", "attention_options.top_k"},
      {"--heads", Whole{&a.heads, 1, kMostUnits}, "Of multihead, and of a transformer",
       "attention_options.heads"},
      {"--window", Whole{&a.window, 1, kMostPositions},
       "Of local-m and local-p: source words on either side of the centre", "attention_options.window"},
      {"", Whole{&a.max_positions, 1, kMostPositions}, "", "attention_options.max_positions"},
      {"", Whole{&a.filters, 1, kMostUnits}, "", "attention_options.filters"},
      {"", Whole{&a.filter_width, 1, kMostUnits}, "", "attention_options.filter_width"}};
}

Fields fields_of(nn::TransformerConfig& n) {
  return {
      {"", Whole{&n.source_vocabulary, 1, kMostWords}, "", "source_vocabulary", kRequired},
      {"", Whole{&n.target_vocabulary, 1, kMostWords}, "", "target_vocabulary", kRequired},
      {"--embedding", Whole{&n.d_model, 1, kMostUnits}, "", "d_model", kRequired},
      {"--heads", Whole{&n.num_heads, 1, kMostUnits}, "", "num_heads", kRequired},
      {"--layers", Whole{&n.num_layers, 1, kMostLayers}, "", "num_layers", kRequired},
      {"--ffn", Whole{&n.dim_feedforward, 1, 4 * kMostUnits, kOrZero},
       "Hidden size of a transformer's feed-forward parts (default: 4 times --d-model)", "dim_feedforward",
       kRequired},
      {"--dropout", Number{&n.dropout, 0, kMostDropout}, "", "dropout", kRequired},
      {"--norm-first,!--norm-last", Switch{&n.norm_first},
       "Transformer: normalise before each part (default), or after it as in the paper", "norm_first",
       kRequired},
      {"--temperature", Number{&n.temperature, 1e-6, 1e6}, "", "temperature"},
      {"", Word{&n.activation}, "", "activation", kRequired},
      {"--positions", Word{&n.positions, {"sinusoidal", "learned", "none"}}, "How a transformer sees order",
       "positions", kRequired},
      {"", Whole{&n.max_positions, 1, kMostPositions}, "", "max_positions", kRequired},
      {"--tie-embeddings,!--no-tie-embeddings", Switch{&n.tie_embeddings}, "", "tie_embeddings", kRequired},
      {"", Switch{&n.tie_source}, "", "tie_source"},
      {"--causal-mask,!--no-causal-mask", Switch{&n.causal},
       "Transformer: in training, words do not see those after them (default); without it a lesson in what "
       "goes wrong (see lens explain)",
       "causal"}};
}

Fields fields_of(TrainingData& d) {
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  return {{"", Word{&d.corpus}, "", "corpus"},
          {"", Whole{&d.version, 0, kAny}, "", "version"},
          {"", Whole{&d.pairs, 0, kAny}, "", "pairs"},
          {"", Whole{&d.seed, 0, kAny}, "", "seed"},
          {"", Whole{&d.max_length, 0, kAny}, "", "max_length"},
          {"", Switch{&d.verb_final}, "", "verb_final"}};
}

FieldsFile kind_of_file(const std::string& path) {
  return {path, "is not a translator's configuration", "describes no network that can be built"};
}

// Of the texts that are one of some names; the networks look at theirs themselves.
void must_be_known(const std::string& path, const Fields& fields) {
  for (const Field& f : fields)
    if (const Word* word = std::get_if<Word>(&f.value);
        word && !word->names.empty() && f.option() != "--model" &&
        std::find(word->names.begin(), word->names.end(), *word->value) == word->names.end())
      throw InputError(path, 0,
                       fmt::format("is of a model whose \"{}\" is {}, which this program does not know",
                                   f.name, *word->value));
}

}  // namespace

Word attention_name(std::string& value) {
  Word word{&value, nn::attention_names()};
  word.names.push_back("none");
  for (const nn::AttentionKind& kind : nn::attention_kinds())
    for (const std::string& alias : kind.aliases) word.aliases[alias] = kind.name;
  return word;
}

std::string attention_of(const ModelConfig& c) {
  const std::string& name = c.network.attention;
  return name == "none" ? name : nn::attention_kind(name).name;
}

Fields common_fields(ModelConfig& c) {
  return {
      {"-m,--model", Word{&c.model, {"gru", "transformer"}}, "gru is recurrent, with attention", "model"},
      {"", Word{&c.source_language}, "", "source_language"},
      {"", Word{&c.target_language}, "", "target_language"},
      {"--case", Word{&c.letter_case, {"keep", "first", "lower"}},
       "keep: as it is; first: a sentence's first word as it is spelt inside, its capital given back; lower "
       "(default: first; lower for the embedded corpus)",
       "case"},
      {"", Switch{&c.source_folded}, "", "source_folded"},
      {"", Switch{&c.target_folded}, "", "target_folded"},
      {"", Switch{&c.french}, "", "french_typography"},
      {"--subwords", Word{&c.subwords, {"bpe", "unigram", "char", "none"}},
       "What tokens are: pieces of words, learnt by SentencePiece, characters, or words (default: bpe; none "
       "for the embedded corpus)",
       "subwords"},
      {"--subword-model", Word{&c.subword_model, {"joint", "separate"}},
       "Pieces of both languages together, or of each (default: joint)", "subword_model"},
      {"", Word{&c.source_pieces}, "", "source_pieces"},
      {"", Word{&c.target_pieces}, "", "target_pieces"}};
}

Fields network_fields(ModelConfig& c, const std::string& model) {
  return model == "transformer" ? fields_of(c.transformer) : fields_of(c.network);
}

std::set<std::string> options_only_of(const std::string& model) {
  ModelConfig c;
  std::set<std::string> out;
  for (const Field& f : network_fields(c, model)) out.insert(f.option());
  const char* other = model == "transformer" ? "gru" : "transformer";
  for (const Field& f : network_fields(c, other)) out.erase(f.option());
  return out;
}

std::string to_json(const ModelConfig& config) {
  ModelConfig c = config;  // lists point into what they list
  json j = {{"format", kModelFormat}, {"version", kModelVersion}};
  write_fields(j, "", common_fields(c));
  write_fields(j, "network.", network_fields(c, c.model));
  if (c.trained_on.corpus == "embedded")
    write_fields(j, "trained_on.", fields_of(c.trained_on));
  else if (!c.trained_on.corpus.empty()) j["trained_on"] = {{"corpus", c.trained_on.corpus}};
  return json_text::dump(j, 2);
}

ModelConfig read_config(const std::string& path) {
  std::ifstream file(path);
  std::error_code ignored;
  if (!file || std::filesystem::is_directory(path, ignored)) {
    const auto first = std::filesystem::path(path).parent_path() / "1";
    const bool several = std::filesystem::exists(first / "config.json", ignored);  // of train --together
    throw InputError(path, 0,
                     several ? "is of one model, and here are several: name one of them, " + first.string()
                             : "cannot be read: is this a model directory?");
  }
  return read_config(file, path);
}

ModelConfig read_config(std::istream& file, const std::string& path) {
  try {
    json j = json_text::parse(file);
    auto is_other = [&](const char* key, const json& own) { return j.contains(key) && j[key] != own; };
    if (is_other("format", kModelFormat) || is_other("version", kModelVersion))
      throw InputError(path, 0, "is of a newer program, or of none: its format or version is another");
    ModelConfig c;
    c.letter_case = "";
    read_fields(j, kind_of_file(path), "", common_fields(c));
    if (c.letter_case.empty()) {  // of before there were three
      bool lowercase = true;
      read_fields(j, kind_of_file(path), "", {{"", Switch{&lowercase}, "", "lowercase"}});
      c.letter_case = lowercase ? "lower" : "keep";
    }
    must_be_known(path, common_fields(c));
    read_fields(j, kind_of_file(path), "trained_on.", fields_of(c.trained_on));
    read_fields(j, kind_of_file(path), "network.", network_fields(c, c.model));
    return c;
  } catch (const json::exception& e) {
    std::string_view what = e.what();  // "[json.exception.parse_error.101] parse error at line 1, ..."
    throw InputError(path, 0,
                     fmt::format("is not a translator's configuration: {}", what.substr(what.find("] ") + 2)));
  } catch (const gradus::Error& e) {  // an unknown cell
    throw InputError(path, 0, "describes no network that can be built: " + e.message());
  }
}

}  // namespace translator
