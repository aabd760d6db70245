#include <translator/model/shortlist.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <unordered_map>

#include <common/error.h>
#include <fmt/core.h>
#include <gradus/io/safetensors.h>
#include <gradus/ops/matmul.h>
#include <gradus/ops/softmax.h>
#include <translator/doctor/aligner.h>

namespace translator {
namespace {

namespace nn = gradus::nn;
using gradus::DType;
using gradus::Tensor;
using Ids = std::vector<int32_t>;

// Of a vocabulary of so many entries, target words that a source word brings along, and that every sentence
// has: of a small one fewer, or there would be no choice.
int64_t most_linked(int64_t entries) { return std::min<int64_t>(50, 1 + entries / 16); }
size_t most_usual(int64_t entries) { return static_cast<size_t>(std::min<int64_t>(500, 1 + entries / 8)); }
constexpr size_t kPairs = 40'000;  // that are learnt from

std::vector<std::string> as_words(const Ids& ids) {
  std::vector<std::string> out;
  for (int32_t id : ids) out.push_back(std::to_string(id));
  return out;
}

// The ids counted most often; of equal ones the smallest first.
Ids most_frequent(const std::unordered_map<int32_t, int64_t>& counts, size_t most) {
  std::vector<std::pair<int64_t, int32_t>> order;
  for (const auto& [id, n] : counts) order.emplace_back(-n, id);
  std::sort(order.begin(), order.end());
  Ids out;
  for (size_t i = 0; i < std::min(most, order.size()); ++i) out.push_back(order[i].second);
  return out;
}

// Decoding with some rows of the output layer, other ones for each sentence.
class ListedDecoder : public nn::IncrementalDecoder {
 public:
  ListedDecoder(std::unique_ptr<nn::IncrementalDecoder> decoder, const nn::OutputLayer& all,
                std::vector<Ids> lists, int64_t rows_per_sentence, bool remembers)
      : decoder_(std::move(decoder)),
        all_(all),
        lists_(std::move(lists)),
        sentences_(static_cast<int64_t>(lists_.size()), rows_per_sentence),
        remembers_(remembers) {
    const Tensor weight = all_.weight.value(), bias = all_.bias.value();
    for (const Ids& words : lists_) {
      const auto n = static_cast<int64_t>(words.size());
      Rows rows{Tensor({n, weight.size(1)}, DType::f32), Tensor({n}, DType::f32)};
      for (int64_t i = 0; i < n; ++i) {
        rows.weight.row(i).copy_from(weight.row(words[static_cast<size_t>(i)]));
        rows.bias.f32()[i] = bias.f32()[words[static_cast<size_t>(i)]];
      }
      rows_.push_back(std::move(rows));
    }
    const auto most = static_cast<int64_t>(lists_.size()) * rows_per_sentence;
    logits_ = Tensor({most, weight.size(0)}, DType::f32);
    logits_.fill(-std::numeric_limits<double>::infinity());
    written_.assign(static_cast<size_t>(most), 0);
  }

  const Tensor& step(const Tensor& previous) override {
    gradus::NoGrad guard;
    const Tensor x = decoder_->readouts(previous);
    const std::vector<int64_t>& of = sentences_.of_rows();
    // Rows of a sentence stand together; a product of theirs alone has its bits whoever stands beside them.
    for (size_t first = 0, end; first < of.size(); first = end) {
      for (end = first; end < of.size() && of[end] == of[first];) ++end;
      const auto b = static_cast<size_t>(of[first]);
      const Tensor own = linear(x.rows(static_cast<int64_t>(first), static_cast<int64_t>(end)),
                                gradus::Var(rows_[b].weight), gradus::Var(rows_[b].bias))
                             .value();
      for (size_t r = first; r < end; ++r)
        write(r, b, own.f32() + static_cast<int64_t>(r - first) * own.size(1));
    }
    if (remembers_) steps_.push_back({x.clone(), previous.clone(), std::exchange(parents_, {})});
    view_ = logits_.rows(0, static_cast<int64_t>(of.size()));
    return view_;
  }

  const Tensor& weights() const override { return decoder_->weights(); }

  void select(const std::vector<int64_t>& rows) override {
    decoder_->select(rows);
    sentences_.select(rows);
    parents_ = rows;
  }

  // Of each sentence, the least probability that its list had together before any word of its best translation
  // but the first given[b]; 0 where nothing was found. Rows go through all of the output layer so many at a
  // time, be there fewer or not: then a row's bits are its own.
  std::vector<double> least_mass(const std::vector<std::vector<nn::Hypothesis>>& found,
                                 const std::vector<size_t>& given) const {
    constexpr int64_t kTogether = 64;
    gradus::NoGrad guard;
    std::vector<double> least(found.size(), 1);
    std::vector<size_t> of;
    Tensor x = Tensor::zeros({kTogether, all_.weight.value().size(1)});
    auto ask = [&] {
      const Tensor logits = linear(x, all_.weight, all_.bias).value();
      for (size_t i = 0; i < of.size(); ++i)
        least[of[i]] = std::min(least[of[i]], listed_mass(of[i], logits.row(static_cast<int64_t>(i))));
      of.clear();
    };
    for (size_t b = 0; b < found.size(); ++b) {
      if (found[b].empty()) least[b] = 0;
      if (found[b].empty()) continue;
      const nn::Hypothesis& h = found[b][0];
      for (size_t t = 0, row = b; t < h.tokens.size() + h.finished; ++t) {
        if (t > 0) row = continued(t, row, h.tokens[t - 1]);
        if (t < given[b]) continue;
        x.row(static_cast<int64_t>(of.size())).copy_from(steps_[t].readouts.row(static_cast<int64_t>(row)));
        of.push_back(b);
        if (static_cast<int64_t>(of.size()) == kTogether) ask();
      }
    }
    ask();
    return least;
  }

 private:
  struct Rows {
    Tensor weight, bias;
  };
  struct Step {
    Tensor readouts, previous;
    std::vector<int64_t> parents;  // rows of the step before
  };

  // The row of step t that goes on with `word` from that row of the step before.
  size_t continued(size_t t, size_t row, int32_t word) const {
    const Step& s = steps_[t];
    size_t next = 0;
    while (s.parents[next] != static_cast<int64_t>(row) || s.previous.i32()[next] != word) ++next;
    return next;
  }

  double listed_mass(size_t b, const Tensor& logits) const {
    const Tensor p = softmax(logits).value();
    double mass = 0;
    for (int32_t v : lists_[b]) mass += p.f32()[v];
    return mass;
  }

  // The others stay minus infinity, whosever row it was before.
  void write(size_t row, size_t sentence, const float* own) {
    float* out = logits_.f32() + static_cast<int64_t>(row) * logits_.size(1);
    if (written_[row] != sentence)
      for (int32_t v : lists_[written_[row]]) out[v] = -std::numeric_limits<float>::infinity();
    written_[row] = sentence;
    for (int32_t v : lists_[sentence]) out[v] = *own++;
  }

  std::unique_ptr<nn::IncrementalDecoder> decoder_;
  nn::OutputLayer all_;
  std::vector<Ids> lists_;
  std::vector<Rows> rows_;
  nn::RowSentences sentences_;
  bool remembers_;
  Tensor logits_, view_;
  std::vector<size_t> written_;  // whose words stand in a row of logits_
  std::vector<int64_t> parents_;
  std::vector<Step> steps_;
};

Ids source_of(const SourceBatch& batch, int64_t b) {
  Ids out;
  for (int64_t s = 0; s < batch.lengths.i32()[b]; ++s)
    out.push_back(batch.ids.i32()[s * batch.ids.size(1) + b]);
  return out;
}

}  // namespace

Shortlist Shortlist::learn(const std::vector<EncodedPair>& pairs, int64_t source_entries,
                           int64_t target_entries, gradus::ThreadPool& pool,
                           const std::function<void(double share)>& on_progress) {
  std::unordered_map<int32_t, int64_t> counts;
  std::vector<SentencePair> chosen;
  std::vector<const EncodedPair*> of;
  const size_t every = 1 + pairs.size() / (kPairs + 1);
  for (size_t i = 0; i < pairs.size(); i += every) {
    of.push_back(&pairs[i]);
    chosen.emplace_back();
    chosen.back().source = as_words(pairs[i].source);
    chosen.back().target = as_words(pairs[i].target);
    for (int32_t v : pairs[i].target) ++counts[v];
  }
  std::vector<std::unordered_map<int32_t, int64_t>> linked(static_cast<size_t>(source_entries));
  const std::vector<Links> links = doctor::align_words(chosen, pool, {.on_progress = on_progress});
  for (size_t i = 0; i < links.size(); ++i)
    for (const Link& link : links[i])
      ++linked[static_cast<size_t>(of[i]->source[static_cast<size_t>(link.source)])]
              [of[i]->target[static_cast<size_t>(link.target)]];
  Shortlist out;
  out.linked_ = Tensor({source_entries, most_linked(target_entries)}, DType::i32);
  out.linked_.fill(-1);
  for (int64_t s = 0; s < source_entries; ++s) {
    const Ids best = most_frequent(linked[static_cast<size_t>(s)], static_cast<size_t>(out.linked_.size(1)));
    std::copy(best.begin(), best.end(), out.linked_.row(s).i32());
  }
  const Ids usual = most_frequent(counts, most_usual(target_entries));
  out.usual_ = Tensor::from_ids({static_cast<int64_t>(usual.size())}, usual);
  return out;
}

Shortlist Shortlist::load(const std::string& path, int64_t source_entries, int64_t target_entries) {
  Shortlist out;
  for (auto& [name, tensor] : gradus::load_safetensors(path).tensors)
    (name == "linked" ? out.linked_ : out.usual_) = tensor;
  auto is_list = [&](const Tensor& t, int64_t dims) {
    return t.defined() && t.dtype() == DType::i32 && t.dims() == dims &&
           std::all_of(t.i32(), t.i32() + t.numel(),
                       [&](int32_t v) { return v >= -1 && v < target_entries; });
  };
  if (!is_list(out.linked_, 2) || !is_list(out.usual_, 1) || out.linked_.size(0) != source_entries)
    throw InputError(
        path, 0,
        fmt::format("is no shortlist of {} source and {} target words: train writes it beside the "
                    "weights it belongs to",
                    source_entries, target_entries));
  return out;
}

void Shortlist::save(const std::string& path) const {
  gradus::save_safetensors(path, {{{"linked", linked_}, {"usual", usual_}}, {}});
}

Ids Shortlist::words_for(const Ids& source, Ids more) const {
  more.insert(more.end(), {nn::kUnk, nn::kPad, nn::kBos, nn::kEos});
  more.insert(more.end(), usual_.i32(), usual_.i32() + usual_.numel());
  for (int32_t s : source)
    more.insert(more.end(), linked_.row(s).i32(), linked_.row(s).i32() + linked_.size(1));
  std::sort(more.begin(), more.end());
  more.erase(std::unique(more.begin(), more.end()), more.end());
  more.erase(more.begin(), std::lower_bound(more.begin(), more.end(), 0));
  return more;
}

std::vector<std::vector<nn::Hypothesis>> translate_listed(const Model& model, const nn::Generator& generator,
                                                          const SourceBatch& batch,
                                                          const nn::SearchOptions& options) {
  const Shortlist& shortlist = *model.shortlist;
  const int64_t B = batch.lengths.numel();
  std::vector<Ids> sources, lists;
  for (int64_t b = 0; b < B; ++b) {
    sources.push_back(source_of(batch, b));
    Ids more;
    if (!options.sentences.empty()) {
      more = options.sentences[static_cast<size_t>(b)].prefix;
      for (const nn::Phrase& p : options.sentences[static_cast<size_t>(b)].required)
        more.insert(more.end(), p.begin(), p.end());
    }
    lists.push_back(shortlist.words_for(sources.back(), std::move(more)));
  }
  const bool sure = *model.least_mass > 0;
  ListedDecoder decoder(generator.start(batch.ids, batch.lengths,
                                        {.rows_per_sentence = options.beam_size,
                                         .weights = options.weights || options.coverage_penalty != 0,
                                         .pool = options.pool}),
                        model.network->output_layer(), std::move(lists), options.beam_size, sure);
  std::vector<std::vector<nn::Hypothesis>> found = nn::search(decoder, batch.lengths, options);
  shortlist.searched += B;
  std::vector<size_t> again;
  std::vector<Ids> again_sources;
  nn::SearchOptions how = options;
  how.sentences.clear();
  std::vector<size_t> given(found.size(), 0);
  for (size_t b = 0; b < options.sentences.size(); ++b) given[b] = options.sentences[b].prefix.size();
  const std::vector<double> mass =
      sure ? decoder.least_mass(found, given) : std::vector<double>(found.size(), 1);
  for (size_t b = 0; b < found.size(); ++b) {
    if (mass[b] >= *model.least_mass) continue;
    again.push_back(b);
    again_sources.push_back(sources[b]);
    if (!options.sentences.empty()) how.sentences.push_back(options.sentences[b]);
  }
  shortlist.anew += static_cast<int64_t>(again.size());
  if (again.empty()) return found;
  const SourceBatch rest = make_source_batch(again_sources);
  auto results = nn::translate(generator, rest.ids, rest.lengths, how);
  for (size_t i = 0; i < again.size(); ++i) found[again[i]] = std::move(results[i]);
  return found;
}

}  // namespace translator
