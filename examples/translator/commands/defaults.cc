// What a training that was told nothing does. Why it is so: docs/defaults.md.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include <fmt/core.h>

#include <common/error.h>
#include <translator/commands/commands.h>

namespace translator {
namespace {

struct Passes {
  int64_t epochs;
  double dropout;
  double rise;  // of dropout, in passes: what was read once cannot be known by heart
};
// Few pairs are learnt by heart sooner than they are understood: they want fewer pieces, much dropout of every
// kind, and small batches, so that there are steps enough.
struct BySize {
  int64_t pairs;  // fewer than so many
  const char* why;
  int64_t pieces, batch, units;
  double recurrent_dropout, subword_dropout;
  Passes gru, transformer;  // gru: of so many units
};
constexpr const char* kByHeart = "so few can only be learnt by heart";
constexpr const char* kFew = "few are learnt by heart before they are understood";
constexpr const char* kSome = "so many are learnt by heart without much dropout";
constexpr const char* kMany = "so many are not soon learnt by heart";
constexpr std::array<BySize, 5> kBySize = {
    {{kFewestJudged, kByHeart, 2000, 8, 128, 0.2, 0.1, {80, 0.3, 10}, {80, 0.1, 10}},
     {5'000, kFew, 2000, 32, 256, 0.2, 0.1, {80, 0.4, 10}, {80, 0.3, 10}},
     {20'000, kFew, 2000, 32, 256, 0.2, 0.1, {30, 0.4, 4}, {60, 0.3, 12}},
     {60'000, kSome, 6000, 64, 384, 0, 0, {18, 0.5, 2}, {40, 0.2, 12}},
     {INT64_MAX, kMany, 8000, 64, 256, 0, 0, {12, 0.2, 1.5}, {24, 0.1, 7}}}};

// The first row's passes are those of 200 pairs: fewer go on until they have had as many steps, and are looked
// at every so often, not every few steps.
constexpr int64_t kStepsByHeart = 2000, kStepsToLook = 100;

// With --from, and dropout that is the trained model's. A third of the usual rate: much of it forgets.
constexpr const char* kMostBehind = "a trained model has most of it behind it";
constexpr BySize kFurther = {5'000, kMostBehind, 0, 32, 256, 0, 0, {20, 0, 0}, {20, 0, 0}};
constexpr double kRateFurther = 1.0 / 3;

// A narrow Transformer's pass takes less time than a GRU's, and it learns for more of them. Its rate is high
// and rises slowly.
constexpr int64_t kWarmup = 1000, kWarmupMuon = 400;

// Of fewer pairs more is learnt by Muon than ever is by Adam, though its products take their time whatever the
// batch. Of more, a GRU translates as well after the passes of Adam that take as long (docs/muon.md). A
// Transformer so wide learns more by Muon in the same minutes, and soon by heart: its dropout rises sooner.
constexpr int64_t kFewForMuon = 20'000, kWideForMuon = 256, kNarrow = 128;

const BySize& of_size(int64_t pairs) {
  size_t i = 0;
  while (pairs >= kBySize[i].pairs) ++i;
  return kBySize[i];
}

bool by_heart(const BySize& own) { return own.why == kByHeart; }

// A GRU of fewer units than its pairs would have it learns less by heart: a tenth less for each halving.
double dropout_of(const BySize& own, int64_t units) {
  const double halvings = std::log2(static_cast<double>(own.units) / static_cast<double>(units));
  return std::clamp(std::round(10 * own.gru.dropout - halvings) / 10, 0.0, own.gru.dropout);
}

bool one_vocabulary(const ModelConfig& c) { return c.subwords != "none" && c.subword_model == "joint"; }

// How wide and deep the network is, and what is one table with what.
void fill_sizes(TrainCommand& o, int64_t units) {
  gradus::nn::Seq2SeqConfig& n = o.model.network;
  gradus::nn::TransformerConfig& t = o.model.transformer;
  const bool transformer = o.model.model == "transformer";
  if (o.open("--hidden")) n.hidden_size = o.open("--embedding") ? units : n.embedding_dim;
  if (o.open("--embedding")) {
    n.embedding_dim = n.hidden_size;
    t.d_model = kNarrow;
  }
  if (o.open("--layers")) {
    n.rnn.num_layers = 1;
    t.num_layers = o.data.embedded() ? 2 : 4;
  }
  if (o.open("--tie-embeddings")) n.tie_embeddings = n.embedding_dim == n.hidden_size;
  if (!transformer && n.tie_embeddings && n.embedding_dim != n.hidden_size)
    throw UsageError(fmt::format("--tie-embeddings needs --embedding and --hidden alike: {} and {}",
                                 n.embedding_dim, n.hidden_size));
  if (!transformer && n.rnn.reverse && n.bidirectional())
    throw UsageError(
        "--reverse-source needs --unidirectional: both ways, a source is read from its end as well");
  if (!o.from.empty()) return;  // of which a trained model may have none
  n.tie_source = n.tie_embeddings && one_vocabulary(o.model);
  t.tie_source = t.tie_embeddings && one_vocabulary(o.model);
}

// The rate that the network's width wants; a trained model, narrow or not, is tuned at that of the usual width.
double rate_of(const TrainCommand& o, const BySize& own) {
  const bool transformer = o.model.model == "transformer";
  const int64_t width = transformer      ? o.model.transformer.d_model
                        : o.from.empty() ? o.model.network.hidden_size
                                         : own.units;
  return default_lr(o.train.optimizer, o.model.model, width, o.data.embedded());
}

void fill_optimizer(TrainCommand& o, const BySize& own, bool few) {
  TrainOptions& run = o.train;
  const bool wide = !o.data.embedded() && o.model.model == "transformer" &&
                    o.model.transformer.d_model >= kWideForMuon;
  if (o.open("--optimizer")) run.optimizer = o.from.empty() && (few || wide) ? "muon" : "adam";
  if (o.open("--lr")) run.lr = rate_of(o, own);
  if (o.open("--weight-decay"))
    run.weight_decay = run.optimizer == "muon" ? 0.1 : run.optimizer == "adamw" ? 0.01 : 0;
  if (o.open("--clip-norm")) run.clip = run.clip_value > 0 ? 0 : 1;
}

void fill_embedded(TrainCommand& o) {
  if (o.open("--dropout")) o.model.network.rnn.dropout = o.model.transformer.dropout = 0;
  if (o.open("--batch-size")) o.train.batch_size = 32;
  if (o.open("--epochs")) o.train.epochs = o.train.max_minutes > 0 ? 0 : 6;
}

// What goes by the number of pairs, which it says; "": nothing.
std::string fill_by_size(TrainCommand& o, const BySize& own, int64_t pairs) {
  const bool transformer = o.model.model == "transformer", fresh = o.from.empty();
  const bool further = own.why == kMostBehind;
  gradus::nn::Seq2SeqConfig& n = o.model.network;
  gradus::nn::TransformerConfig& t = o.model.transformer;
  TrainOptions& run = o.train;
  std::string chosen;
  auto choose = [&](const char* option, auto& value, auto by_size, const std::string& text) {
    if (!o.open(option)) return;
    value = by_size;
    chosen += (chosen.empty() ? "" : ", ") + text;
  };
  auto [epochs, most, rise] = transformer ? own.transformer : own.gru;
  if (by_heart(own)) {
    const int64_t passes = kStepsByHeart / ((pairs + own.batch - 1) / own.batch);
    rise *= static_cast<double>(passes) / static_cast<double>(epochs);
    epochs = passes;
    if (o.open("--validate-every")) run.validate_every = kStepsToLook;
  }
  if (transformer && t.d_model > kNarrow)
    rise *= static_cast<double>(kNarrow) / static_cast<double>(t.d_model);
  run.usual_epochs = static_cast<double>(epochs);
  if (transformer) run.usual_warmup = run.optimizer == "muon" ? kWarmupMuon : kWarmup;
  const bool learnt_pieces = o.model.subwords == "bpe" || o.model.subwords == "unigram";
  if (learnt_pieces && fresh && o.open("--subword-size")) chosen = fmt::format("{} pieces", own.pieces);
  if (!transformer && fresh)
    choose("--hidden", n.hidden_size, n.hidden_size, fmt::format("{} units", n.hidden_size));
  const double dropout = transformer ? most : dropout_of(own, n.hidden_size);
  double& dropped = transformer ? t.dropout : n.rnn.dropout;
  choose("--dropout", dropped, dropout, fmt::format("dropout {}", dropout));
  if (dropped > 0 && fresh)
    choose("--dropout-warmup", run.dropout_warmup, rise,
           fmt::format("{}rising over {:.3g} of the usual {} epochs", o.open("--dropout") ? "" : "dropout ",
                       rise, epochs));
  const double usual = default_lr(run.optimizer, o.model.model, own.units, false);
  if (further || (!transformer && rate_of(o, own) != usual)) {
    const double rate = run.lr * (further ? kRateFurther : 1);
    choose("--lr", run.lr, rate, fmt::format("learning rate {:.2g}", rate));
  }
  if (run.batch_tokens == 0)
    choose("--batch-size", run.batch_size, own.batch, fmt::format("batches of {}", own.batch));
  if (run.max_minutes > 0 && o.open("--epochs"))
    run.epochs = 0;
  else
    choose("--epochs", run.epochs, epochs, fmt::format("{} epochs", epochs));
  if (run.optimizer == "muon") choose("--optimizer", run.optimizer, "muon", "optimizer muon");
  if (own.recurrent_dropout > 0 && !transformer) {
    choose("--recurrent-dropout", n.rnn.recurrent_dropout, own.recurrent_dropout,
           fmt::format("recurrent dropout {}", own.recurrent_dropout));
    if (o.open("--variational")) n.rnn.variational = true;
  }
  if (own.subword_dropout > 0 && learnt_pieces)
    choose("--subword-dropout", run.subword_dropout, own.subword_dropout,
           fmt::format("subword dropout {}", own.subword_dropout));
  if (o.open("--ema")) run.ema = 0.999;
  return chosen;
}

}  // namespace

int64_t default_pieces(int64_t pairs) { return of_size(pairs).pieces; }

void fill_text_defaults(TrainCommand& o) {
  const bool embedded = o.data.embedded();
  if (o.data.read.swap_columns && embedded)
    throw UsageError("--swap needs --data or --source: the embedded corpus is English to French");
  if (o.given.count("--verb-final") && !embedded)
    throw UsageError("--verb-final is of the embedded corpus: --data and --source are as they are");
  if (o.data.read.max_length == 0 && !embedded) o.data.read.max_length = 50;
  if (o.open("--case")) o.model.letter_case = embedded ? "lower" : "first";
  if (o.open("--subwords")) o.model.subwords = embedded || !Subwords::available() ? "none" : "bpe";
  if (o.open("--subword-model")) o.model.subword_model = "joint";
  o.data.read.text = {.lowercase = o.model.lowercase(), .plain = o.model.subwords == "none"};
  if (o.open("--min-count")) o.min_count = embedded ? 1 : 2;
  if (o.open("--attention")) o.model.network.attention = embedded ? "bahdanau" : "concat";
}

std::string fill_defaults(TrainCommand& o, const Data& data) {
  const bool linked = std::any_of(data.train.begin(), data.train.end(),
                                  [](const SentencePair& p) { return p.alignment.has_value(); });
  return fill_defaults(o, data.given, linked);
}

std::string fill_defaults(TrainCommand& o, int64_t pairs, bool linked) {
  const bool embedded = o.data.embedded();
  const bool further = !o.from.empty() && !embedded && pairs < kFurther.pairs;
  const BySize& own = further ? kFurther : of_size(pairs);
  TrainOptions& run = o.train;
  fill_sizes(o, embedded ? 128 : own.units);
  fill_optimizer(o, own, !embedded && !by_heart(own) && pairs < kFewForMuon);
  if (o.open("--label-smoothing")) run.label_smoothing = 0.1;
  if (o.open("--links")) run.links = linked || run.guided_alignment == 0 ? "given" : "learnt";
  std::string chosen;
  if (embedded)
    fill_embedded(o);
  else
    chosen = fill_by_size(o, own, pairs);
  if (run.epochs == 0 && run.max_minutes <= 0)
    throw UsageError("--epochs 0 needs --max-minutes: the run would never end");
  if (chosen.empty()) return "";
  return fmt::format("For {} pair{}: {}; {} (docs/recipes.md).", pairs, pairs == 1 ? "" : "s", chosen, own.why);
}

}  // namespace translator
