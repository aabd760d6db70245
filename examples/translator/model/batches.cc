#include <translator/model/batches.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include <gradus/autograd.h>

namespace translator {
namespace {

namespace nn = gradus::nn;

// [T, B, S]; nothing where no pair has links.
gradus::Tensor alignment_of(const std::vector<EncodedPair>& pairs, const std::vector<size_t>& chosen,
                            int64_t T, int64_t S) {
  int64_t B = static_cast<int64_t>(chosen.size());
  if (std::all_of(chosen.begin(), chosen.end(), [&](size_t i) { return pairs[i].links.empty(); })) return {};
  gradus::Tensor weights = gradus::Tensor::zeros({T, B, S});
  for (int64_t k = 0; k < B; ++k) {
    const EncodedPair& p = pairs[chosen[k]];
    int64_t n = static_cast<int64_t>(p.target.size()), length = static_cast<int64_t>(p.source.size());
    auto row = [&](int64_t t) { return weights.f32() + (t * B + k) * S; };
    for (const Link& link : p.links) row(link.target)[link.source] = 1;
    row(n)[length - 1] = 1;
    for (int64_t t = 0; t <= n; ++t) {
      float sum = std::accumulate(row(t), row(t) + length, 0.0f);
      for (int64_t s = 0; s < length; ++s)
        row(t)[s] = sum > 0 ? row(t)[s] / sum : 1.0f / static_cast<float>(length);
    }
  }
  return weights;
}

// What links between words are between their pieces.
Links links_of_pieces(Links links, const Segmented& source, const Segmented& target) {
  std::sort(links.begin(), links.end());
  Links out;
  for (size_t s = 0; s < source.pieces.size(); ++s)
    for (size_t t = 0; t < target.pieces.size(); ++t)
      if (std::binary_search(links.begin(), links.end(), Link{source.word_of[s], target.word_of[t]}))
        out.push_back({static_cast<int32_t>(s), static_cast<int32_t>(t)});
  return out;
}

}  // namespace

std::vector<int32_t> ids_of(const Vocabulary& vocabulary, const std::vector<std::string>& tokens) {
  std::vector<int32_t> out = vocabulary.encode(tokens);
  for (size_t i = 0; i < out.size(); ++i)
    if (out[i] == Vocabulary::kUnknown) out[i] = vocabulary.id(without_mark(tokens[i]));
  return out;
}

std::vector<EncodedPair> encode(const std::vector<SentencePair>& pairs, const Model& model,
                                const EncodeOptions& options) {
  std::vector<EncodedPair> out;
  out.reserve(pairs.size());
  for (const SentencePair& p : pairs) {
    const Segmented source = model.reads.split(p.source_text, options.dropout),
                    target = model.writes.split(p.target_text, options.dropout);
    EncodedPair e{ids_of(model.source, source.pieces), ids_of(model.target, target.pieces)};
    e.source.push_back(Vocabulary::kEnd);
    if (p.alignment && (options.links || model.takes_alignments()))
      e.links = links_of_pieces(p.alignment->sure, source, target);
    if (!p.tag.empty()) {
      e.source.insert(e.source.begin(), model.source.id(p.tag));
      for (Link& link : e.links) ++link.source;
    }
    e.weight = p.weight;
    out.push_back(std::move(e));
    if (options.on_progress && out.size() % 1000 == 0) options.on_progress(static_cast<int64_t>(out.size()));
  }
  return out;
}

nn::Seq2SeqBatch make_batch(const std::vector<EncodedPair>& pairs, const std::vector<size_t>& chosen) {
  int64_t B = static_cast<int64_t>(chosen.size()), S = 0, T = 0;
  for (size_t i : chosen) {
    S = std::max<int64_t>(S, static_cast<int64_t>(pairs[i].source.size()));
    T = std::max<int64_t>(T, static_cast<int64_t>(pairs[i].target.size()) + 1);
  }
  using gradus::DType;
  nn::Seq2SeqBatch b{
      {{S, B}, DType::i32}, {{B}, DType::i32}, {{T, B}, DType::i32}, {{T, B}, DType::i32}, 0, {}};
  for (const gradus::Tensor* t : {&b.source, &b.target_in, &b.target_out}) t->fill(nn::kPad);
  for (int64_t k = 0; k < B; ++k) {
    const EncodedPair& p = pairs[chosen[k]];
    for (size_t s = 0; s < p.source.size(); ++s) b.source.i32()[s * B + k] = p.source[s];
    b.source_lengths.i32()[k] = static_cast<int32_t>(p.source.size());
    b.target_in.i32()[k] = nn::kBos;
    for (size_t t = 0; t < p.target.size(); ++t) {
      b.target_in.i32()[(t + 1) * B + k] = p.target[t];
      b.target_out.i32()[t * B + k] = p.target[t];
    }
    b.target_out.i32()[p.target.size() * B + k] = nn::kEos;
    b.target_tokens += static_cast<int64_t>(p.target.size()) + 1;
  }
  b.alignment = alignment_of(pairs, chosen, T, S);
  return b;
}

void for_each_batch(const std::vector<EncodedPair>& pairs, size_t size, const Work& work,
                    const std::function<void(size_t k, const std::vector<size_t>& chosen)>& f) {
  std::vector<size_t> order(pairs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return pairs[a].target.size() < pairs[b].target.size(); });
  const size_t batches = (order.size() + size - 1) / size;
  gradus::ThreadPool pool(std::max(1, std::min<int>(work.threads, static_cast<int>(batches))));
  divide(pool, batches, work, [&](size_t k) {
    auto begin = order.begin() + static_cast<long>(k * size);
    auto end = order.begin() + static_cast<long>(std::min(order.size(), (k + 1) * size));
    f(k, {begin, end});
    return end - begin;
  });
}

uint64_t checksum_of(const std::vector<SentencePair>& pairs, uint64_t begun) {
  Fnv1a texts{begun};
  for (const SentencePair& p : pairs)
    for (const std::string* text : {&p.source_text, &p.target_text}) {
      for (char c : *text) texts.mix(c);
      texts.mix(-1000);
    }
  return texts.hash;
}

std::map<std::string, std::string> fingerprints(const std::vector<EncodedPair>& train,
                                                const std::vector<SentencePair>& valid) {
  Fnv1a data, links;
  for (const EncodedPair& p : train) {
    for (int32_t id : p.source) data.mix(id);
    for (int32_t id : p.target) data.mix(id);
    data.mix(-1);
    if (p.weight != 1) {
      const auto bits = std::bit_cast<uint64_t>(p.weight);
      data.mix(static_cast<int32_t>(bits));
      data.mix(static_cast<int32_t>(bits >> 32));
    }
    for (const Link& link : p.links) {
      links.mix(static_cast<int32_t>(link.source));
      links.mix(static_cast<int32_t>(link.target));
    }
    links.mix(-1);
  }
  return {{"data", std::to_string(data.hash)},
          {"links", std::to_string(links.hash)},
          {"valid", std::to_string(checksum_of(valid))}};
}

SourceBatch make_source_batch(const std::vector<std::vector<int32_t>>& sentences) {
  int64_t B = static_cast<int64_t>(sentences.size()), S = 0;
  for (const auto& s : sentences) S = std::max<int64_t>(S, static_cast<int64_t>(s.size()));
  SourceBatch batch{{{S, B}, gradus::DType::i32}, {{B}, gradus::DType::i32}};
  batch.ids.fill(nn::kPad);
  for (int64_t b = 0; b < B; ++b) {
    for (size_t s = 0; s < sentences[b].size(); ++s) batch.ids.i32()[s * B + b] = sentences[b][s];
    batch.lengths.i32()[b] = static_cast<int32_t>(sentences[b].size());
  }
  return batch;
}

void divide(gradus::ThreadPool& pool, size_t count, const Work& work,
            const std::function<int64_t(size_t k)>& f) {
  std::atomic<int64_t> done{0};
  std::atomic<size_t> next{0};
  pool.run([&](int thread) {
    gradus::NoGrad guard;
    for (size_t k; (k = next++) < count;) {
      if (work.stop && *work.stop) throw Interrupted();
      done += f(k);
      if (thread == 0 && k + 1 < count && work.on_progress) work.on_progress(done);
    }
  });
  if (count > 0 && work.on_progress) work.on_progress(done);  // another thread may have had the last, or all
}

}  // namespace translator
