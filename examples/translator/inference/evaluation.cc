#include <translator/inference/evaluation.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include <gradus/nn/seq2seq.h>
#include <gradus/ops/reduce.h>
#include <translator/inference/ensemble.h>
#include <translator/inference/translation.h>
#include <translator/model/shortlist.h>
#include <translator/text/alignment.h>
#include <translator/text/python_text.h>
#include <translator/text/word_picture.h>

namespace translator {
namespace {

namespace nn = gradus::nn;

constexpr size_t kAtOnce = 64;  // sentences

// What add(part, chosen) adds up, of each batch and then of all: the same to the bit whoever does which.
template <class Add>
Total total(const std::vector<EncodedPair>& pairs, const Work& work, const Add& add) {
  std::vector<Total> parts((pairs.size() + kAtOnce - 1) / kAtOnce);
  for_each_batch(pairs, kAtOnce, work,
                 [&](size_t k, const std::vector<size_t>& chosen) { add(parts[k], chosen); });
  Total sum;
  for (const Total& p : parts) {
    sum.nats += p.nats;
    sum.tokens += p.tokens;
  }
  return sum;
}

// - sum_s p_s log p_s, p = w / sum w (local-p's weights sum to less than 1).
double entropy_of(const std::vector<float>& weights) {
  double sum = std::accumulate(weights.begin(), weights.end(), 0.0), h = 0;
  for (float w : weights)
    if (w > 0) h -= w / sum * std::log(w / sum);
  return h;
}

// Entropy and links of words under teacher forcing: row t of the weights belongs to target word t in
// Bahdanau's order (the state before it looked) as in Luong's with the new state; </s> is no word on either
// side.
void look_at_attention(Evaluation& out, const Model& model, const std::vector<SentencePair>& pairs,
                       const std::vector<EncodedPair>& encoded, const Work& work) {
  std::vector<Links> links(encoded.size());
  Total entropy = total(encoded, work, [&](Total& part, const std::vector<size_t>& chosen) {
    gradus::Tensor weights = model.network->align(make_batch(encoded, chosen));  // [T, B, S]
    int64_t B = weights.size(1), S = weights.size(2);
    for (int64_t b = 0; b < B; ++b) {
      const size_t i = chosen[b];
      const Segmented source = model.reads.split(pairs[i].source_text),
                      target = model.writes.split(pairs[i].target_text);
      std::vector<std::vector<float>> own;
      for (size_t t = 0; t < target.pieces.size(); ++t) {
        const float* w = weights.f32() + (static_cast<int64_t>(t) * B + b) * S;
        own.emplace_back(w, w + encoded[i].source.size());
      }
      const WordPicture words = picture_of(source, target, own);
      for (const std::vector<float>& row : words.weights) part.nats += entropy_of(row);
      part.tokens += static_cast<int64_t>(target.words.size());
      if (pairs[i].alignment) links[i] = links_of(words);
    }
  });
  if (entropy.tokens) out.entropy = entropy.nats / static_cast<double>(entropy.tokens);
  std::optional<AlignmentScore> score;
  for (size_t i = 0; i < encoded.size(); ++i) {
    const std::optional<GoldAlignment>& gold = pairs[i].alignment;
    if (!gold || (gold->sure.empty() && gold->possible.empty())) continue;  // says nothing of any word
    if (!score) score.emplace();
    score->add(links[i], *gold, {.ignore_unaligned_targets = true});
  }
  if (score) out.aer = score->error_rate();
}

// Greedy, step by step, with the gold alignment of each reference: only a model that is given alignments needs
// it, and there search would not know whose row comes next.
std::vector<std::vector<std::string>> translate_aligned(const Model& model,
                                                        const std::vector<EncodedPair>& pairs,
                                                        const Work& work) {
  std::vector<std::vector<std::string>> out(pairs.size());
  const nn::Seq2Seq& network = *model.recurrent();
  for_each_batch(pairs, kAtOnce, work, [&](size_t, const std::vector<size_t>& chosen) {
    nn::Seq2SeqBatch batch = make_batch(pairs, chosen);
    nn::Encoded source = network.encoder(batch.source, batch.source_lengths);
    source.alignment = batch.alignment;
    nn::DecoderState state = network.decoder->start(source);
    int64_t B = static_cast<int64_t>(chosen.size()), limit = 2 * batch.source.size(0) + 10, going = B;
    gradus::Tensor words({B}, gradus::DType::i32);
    words.fill(nn::kBos);
    for (int64_t t = 0; t < limit && going > 0; ++t) {
      gradus::Tensor logits = network.output(network.decoder->step(words, state).readout).value();
      gradus::Tensor best = gradus::argmax(logits);
      for (int64_t b = 0; b < B; ++b) {
        int32_t& word = words.i32()[b];
        if (word == nn::kEos) continue;
        word = best.i32()[b];
        if (word == nn::kEos)
          --going;
        else
          out[chosen[static_cast<size_t>(b)]].push_back(model.target.token(word));
      }
    }
  });
  return out;
}

}  // namespace

Total total_loss(const Model& model, const std::vector<EncodedPair>& pairs, const Work& work) {
  return total(pairs, work, [&](Total& part, const std::vector<size_t>& chosen) {
    gradus::CrossEntropy loss = model.network->loss(make_batch(pairs, chosen));
    part.nats += loss.nll;
    part.tokens += loss.tokens;
  });
}

std::vector<std::string> references_of(const SentencePair& pair) {
  std::vector<std::string> out = {pair.target_text};
  out.insert(out.end(), pair.further_targets.begin(), pair.further_targets.end());
  return out;
}

std::vector<size_t> LengthRange::chosen(const std::vector<SentencePair>& pairs) const {
  std::vector<size_t> out;
  for (size_t i = 0; i < pairs.size(); ++i)
    if (pairs[i].source.size() >= from && pairs[i].source.size() <= to) out.push_back(i);
  return out;
}

const std::vector<LengthRange>& length_ranges() {
  static const std::vector<LengthRange> kRanges = {
      {"1 .. 5", 1, 5},     {"6 .. 10", 6, 10},     {"11 .. 15", 11, 15},      {"16 .. 20", 16, 20},
      {"21 .. 30", 21, 30}, {"> 30", 31, SIZE_MAX}, {"all > 20", 21, SIZE_MAX}};
  return kRanges;
}

std::vector<std::string> translate_pairs(const Model& model, const nn::Generator& generator,
                                         const std::vector<SentencePair>& pairs, size_t count,
                                         const nn::SearchOptions& search, const Work& work) {
  std::vector<std::vector<std::string>> best(count);
  if (model.takes_alignments()) {
    best = translate_aligned(model, encode({pairs.begin(), pairs.begin() + static_cast<long>(count)}, model),
                             work);
  } else {
    std::vector<Segmented> sources;
    for (size_t i = 0; i < count; ++i) sources.push_back(model.reads.split(pairs[i].source_text));
    nn::SearchOptions how = search;
    how.scores = false;  // nobody looks at them
    auto translations = translate(model, generator, sources, how, work);
    for (size_t i = 0; i < count; ++i)
      if (!translations[i].empty()) best[i] = translations[i][0].tokens;
  }
  std::vector<std::string> out;
  for (const auto& tokens : best) out.push_back(model.writes.join(tokens));
  return out;
}

std::vector<std::vector<double>> token_losses(const Model& model, const std::vector<EncodedPair>& pairs,
                                              const Work& work) {
  constexpr size_t kLogits = 16;  // sentences: all logits of a batch are held at once
  std::vector<std::vector<double>> out(pairs.size());
  for_each_batch(pairs, kLogits, work, [&](size_t, const std::vector<size_t>& chosen) {
    gradus::Tensor losses = model.network->word_losses(make_batch(pairs, chosen));  // [T, B]
    for (size_t b = 0; b < chosen.size(); ++b)
      for (size_t t = 0; t <= pairs[chosen[b]].target.size(); ++t)
        out[chosen[b]].push_back(losses.at(static_cast<int64_t>(t * chosen.size() + b)));
  });
  return out;
}

bool is_exact(const std::string& hypothesis, const std::vector<std::string>& references, bool lowercase) {
  auto spelling = [&](const std::string& text) { return lowercase ? python_text::lower(text) : text; };
  return std::any_of(references.begin(), references.end(), [&](const std::string& reference) {
    return spelling(hypothesis) == spelling(reference);
  });
}

Evaluation evaluate(const Model& model, const std::vector<SentencePair>& pairs,
                    const EvaluationOptions& options) {
  auto start = std::chrono::steady_clock::now();
  Evaluation out;
  out.sentences = static_cast<int64_t>(pairs.size());
  std::vector<EncodedPair> encoded = encode(pairs, model);
  auto work_on = [&](const char* what, size_t count) {
    Work work{.threads = options.threads, .stop = options.stop};
    if (options.on_progress)
      work.on_progress = [&options, what, total = static_cast<int64_t>(count)](int64_t done) {
        options.on_progress(what, done, total);
      };
    return work;
  };
  const Ensemble* together = options.ensemble && options.ensemble->size() > 1 ? options.ensemble : nullptr;
  Total loss;
  if (!together) {
    loss = total_loss(model, encoded, work_on("loss", pairs.size()));
  } else if (together->space() == nn::EnsembleSpace::probability) {
    for (const auto& pair : together->token_losses(encoded, work_on("loss", pairs.size()))) {
      loss.nats += std::accumulate(pair.begin(), pair.end(), 0.0);
      loss.tokens += static_cast<int64_t>(pair.size());
    }
  }
  out.tokens = loss.tokens;
  out.nll = loss.tokens ? unsigned_nan(loss.nats / static_cast<double>(loss.tokens)) : 0;
  out.perplexity = std::exp(out.nll);

  size_t n = pairs.size();
  if (options.translate_at_most > 0) n = std::min(n, static_cast<size_t>(options.translate_at_most));
  for (size_t i = 0; i < n; ++i) out.references.push_back(references_of(pairs[i]));
  const auto generator = together ? together->generator() : model.generator();
  out.hypotheses = translate_pairs(model, *generator, pairs, n, options.search, work_on("translating", n));
  const bool lowercase = model.config.lowercase();  // no capitals are asked of a model that writes none
  int64_t exact = 0, exact_in_own_spelling = 0;
  for (size_t i = 0; i < n; ++i) {
    exact += is_exact(out.hypotheses[i], out.references[i], lowercase);
    const std::vector<std::string>& given = out.references[i];
    exact_in_own_spelling += std::any_of(given.begin(), given.end(), [&](const std::string& reference) {
      return out.hypotheses[i] == model.writes.join(model.writes.split(reference).pieces);
    });
  }
  out.translated = static_cast<int64_t>(n);
  if (model.least_mass && model.shortlist->searched > 0)
    out.searched_anew =
        static_cast<double>(model.shortlist->anew) / static_cast<double>(model.shortlist->searched);
  if (n > 0) {
    out.bleu = corpus_bleu(out.hypotheses, out.references, {.lowercase = lowercase});
    out.exact_match = static_cast<double>(exact) / static_cast<double>(n);
    out.exact_in_own_spelling = static_cast<double>(exact_in_own_spelling) / static_cast<double>(n);
  }
  if (options.alignment && !together && model.network->attends()) {
    if (options.align_at_most > 0)
      encoded.resize(std::min(encoded.size(), static_cast<size_t>(options.align_at_most)));
    look_at_attention(out, model, pairs, encoded, work_on("aligning", encoded.size()));
  }
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return out;
}

}  // namespace translator
