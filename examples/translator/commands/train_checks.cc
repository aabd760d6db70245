#include <translator/commands/train_checks.h>

#include <algorithm>
#include <filesystem>

#include <fmt/core.h>

#include <common/error.h>
#include <gradus/kernels/products/gemm.h>
#include <translator/inference/ensemble.h>
#include <translator/model/files.h>
#include <translator/training/training_forecast.h>

namespace translator {

void refuse_options_of_the_other(const TrainCommand& o) {
  const bool transformer = o.model.model == "transformer";
  const char *own = "recurrent model", *other = "transformer";
  if (transformer) std::swap(own, other);
  for (const std::string& option : options_only_of(transformer ? "gru" : "transformer"))
    if (o.given.count(option))
      throw UsageError(fmt::format("{} is of a {}: a {} has nothing for it", option, other, own));
}

void refuse_what_does_nothing(const TrainCommand& o) {
  auto refuse = [&](const char* option, bool used, const char* why) {
    if (o.given.count(option) && !used) throw UsageError(fmt::format("{} {}", option, why));
  };
  const TrainOptions& t = o.train;
  refuse("--momentum", t.optimizer == "sgd" || t.optimizer == "rmsprop", "is of --optimizer sgd and rmsprop");
  refuse("--links", t.guided_alignment > 0, "needs --guided-alignment, which learns from them");
  refuse("--corpus-size", o.data.embedded(), "is of the embedded corpus: --data and --source are taken whole");
  refuse("--average", t.kept() != 1, "needs --keep 2 or more: the mean of one model is itself");
  if (t.precision == "bf16" && !gradus::kernels::bf16_ready())
    throw UsageError(
        "--precision bf16 needs a CPU with AVX512_BF16, which this one has not: --precision f32");
  if (o.resume || o.model.model == "transformer") return;  // compared with the run; told of above
  const gradus::nn::Seq2SeqConfig& n = o.model.network;
  const std::string attention = attention_of(o.model);
  const bool luong = attention != "none" &&
                     (n.decoder == "luong" ||
                      (n.decoder == "auto" && gradus::nn::attention_kind(attention).luong_order));
  for (const char* option : {"--decoder", "--temperature", "--top-k"})
    refuse(option, attention != "none", "is of an attention, and --attention none has none");
  refuse("--heads", attention == "multihead", "is of attention multihead, and of a transformer");
  refuse("--window", attention == "local-m" || attention == "local-p",
         "is of the attentions local-m and local-p");
  refuse("--input-feeding", luong, "is of Luong's order: --decoder luong, or an attention published with it");
  refuse("--residual", n.rnn.num_layers > 1 || n.decoder_layers > 1,
         "needs --layers or --decoder-layers of 2 or more: the first has none below it");
}

void must_go_with_defaults(const TrainCommand& o) {
  const gradus::nn::Seq2SeqConfig& n = o.model.network;
  const gradus::nn::TransformerConfig& t = o.model.transformer;
  const bool transformer = o.model.model == "transformer";
  const double dropout = transformer ? t.dropout : std::max(n.rnn.dropout, n.rnn.recurrent_dropout);
  if (o.given.count("--dropout-warmup") && o.train.dropout_warmup > 0 && dropout == 0)
    throw UsageError("--dropout-warmup needs --dropout: there is none to rise");
  if (!transformer && attention_of(o.model) != "multihead") return;
  const int64_t heads = transformer ? t.num_heads : n.attention_options.heads;
  const int64_t width = transformer ? t.d_model : n.hidden_size;
  if (width % heads != 0)
    throw UsageError(fmt::format("--heads {} does not divide --{} {}: each head has an equal part of it", heads,
                                 transformer ? "d-model" : "hidden", width));
}

void must_be_guidable(const TrainCommand& o) {
  if (o.train.guided_alignment == 0) return;
  const std::string attention = attention_of(o.model);
  const bool recurrent = o.model.model != "transformer";
  for (const char* other : {"none", "uniform", "oracle", "hard", "multihead"})
    if (recurrent && attention == other)
      throw UsageError("--guided-alignment has nothing to teach to attention " + attention);
  if (!recurrent) throw UsageError("--guided-alignment is for recurrent models, with one attention");
}

void must_fit_this_machine(const ModelConfig& config, const TrainCommand& o, const Data& data) {
  if (std::string why = why_training_is_too_large(config, o.train, data.train); !why.empty())
    throw UsageError("train: " + why);
}

std::string vocabulary_complaint(const TrainCommand& o, const Data& data, const Model& model) {
  std::string options;
  for (const char* option : {"--min-count", "--max-vocabulary", "--subword-size"})
    if (o.given.count(option)) options += std::string(options.empty() ? "" : " and ") + option;
  if (options.empty() || !o.from.empty()) return "";  // with --from others would take another model
  const LearntText others = learn_text(o, data);
  if (others.source.size() == model.source.size() && others.target.size() == model.target.size()) return "";
  return fmt::format(
      "the model in {} knows {} and {} {}, {} would make it {} and {}: --resume cannot change them",
      o.train.out, model.source.size(), model.target.size(), model.config.tokens(), options,
      others.source.size(), others.target.size());
}

void must_be_readable(const Model& model, const Data& data) {
  for (const auto* part : {&data.train, &data.valid})
    for (const SentencePair& p : *part) {
      std::string fault = model.length_fault(model.reads, p.source_text);
      if (fault.empty() && !p.tag.empty() && model.most_positions() > 0)
        fault = model.length_fault(model.reads.split(p.source_text).pieces.size() + 1);
      if (fault.empty()) fault = model.length_fault(model.writes, p.target_text);
      if (!fault.empty())
        throw UsageError("a sentence " + fault + "; a smaller --max-length leaves such pairs out");
    }
}

void must_be_there_or_not(const TrainCommand& o) {
  const std::string& out = o.train.out;
  if (!o.resume && !o.from.empty()) must_not_replace(out, {o.from});
  if (!o.resume) must_be_makeable(out);
  auto has = [&](const char* file) {
    std::error_code ignored;
    return std::filesystem::exists(in(out, file), ignored);
  };
  if (o.resume && !has("last.safetensors"))
    throw InputError(out, 0, "holds no run to go on with: " + in(out, "last.safetensors") + " is missing");
  if (!o.resume && !members_in(out).empty())
    throw InputError(out, 0, "holds several models, 1 and on: --out names another place, or one of them");
  if (o.resume || o.force) return;
  if (has("model.safetensors") || has("last.safetensors"))
    throw InputError(
        out, 0,
        "holds a model already: --resume goes on with it, --force replaces it, --out names another place");
  for (const char* file : {"config.json", "training.json"})  // of something else
    if (has(file))
      throw InputError(in(out, file), 0,
                       "is there, of no model: --force writes over it, --out names another place");
}

void must_have_validation(const TrainCommand& o, const Data& data) {
  const TrainOptions& t = o.train;
  if (!data.valid.empty() ||
      (t.metric == "loss" && t.patience == 0 && t.kept() == 0 && t.schedule != "plateau"))
    return;
  throw UsageError(
      "--metric, --patience, --keep, --average and --schedule plateau look at validation pairs, and none could "
      "be held out: --valid names some");
}

}  // namespace translator
