#include <translator/inference/steering.h>

#include <algorithm>

#include <common/error.h>
#include <common/utf8.h>
#include <fmt/core.h>
#include <gradus/random.h>

namespace translator {

namespace nn = gradus::nn;

namespace {

constexpr int kMostSpellings = 50;  // that are tried, one after the other, of what must not come

bool is_in(const std::vector<nn::Phrase>& phrases, const nn::Phrase& phrase) {
  return std::find(phrases.begin(), phrases.end(), phrase) != phrases.end();
}

// As it stands in a sentence, or as it begins one.
bool says(const std::vector<std::string>& words, std::vector<std::string> phrase) {
  for (int spelling = 0; spelling < 2; ++spelling) {
    if (std::search(words.begin(), words.end(), phrase.begin(), phrase.end()) != words.end()) return true;
    phrase[0] = utf8::capitalize(phrase[0]);
  }
  return false;
}

}  // namespace

Steering::Steering(const SteeringOptions& options, const Model& model) : options_(options), model_(model) {
  if (!options.prefix.empty()) all_.prefix = tokens_of("--prefix", options.prefix);
  for (const std::string& phrase : options.require) {
    all_.required.push_back(tokens_of("--require", phrase));
    required_.push_back(told("--require", phrase).words);
  }
  for (const std::string& phrase : options.forbid) {
    // As it stands in a sentence and as it would begin one. What the model does not have it cannot say.
    for (const std::string& spelt : {phrase, utf8::capitalize(phrase)}) {
      const std::vector<std::string> pieces = told("--forbid", spelt).pieces;
      if (std::all_of(pieces.begin(), pieces.end(), [&](auto& p) { return model.target.contains(p); }))
        all_.forbidden.push_back(model.target.encode(pieces));
      forbidden_.push_back(model.writes.words_of(pieces).words);
    }
  }
}

Segmented Steering::told(const std::string& what, const std::string& text) const {
  if (const std::string fault = utf8::describe_invalid_byte(text); !fault.empty())
    throw InputError(what, 0, fault);
  Segmented split = model_.writes.split(text);
  if (split.pieces.empty()) throw InputError(what, 0, "is empty");
  if (const std::string fault = model_.length_fault(split.pieces.size()); !fault.empty())
    throw InputError(what, 0, fault);
  return split;
}

std::vector<int32_t> Steering::tokens_of(const std::string& what, const std::string& text) const {
  const Segmented split = told(what, text);
  for (size_t i = 0; i < split.pieces.size(); ++i)
    if (!model_.target.contains(split.pieces[i]))
      throw InputError(what, 0,
                       fmt::format("the model cannot write \"{}\": it is not among its words",
                                   split.words[static_cast<size_t>(split.word_of[i])]));
  return model_.target.encode(split.pieces);
}

nn::SentenceSearch Steering::of(int64_t line, const std::string& prefix) const {
  nn::SentenceSearch own = all_;
  if (!prefix.empty()) own.prefix = tokens_of("the prefix", prefix);
  if (options_.sample) own.seed = gradus::Rng(options_.seed).split(static_cast<uint64_t>(line)).next_u64();
  return own;
}

nn::Phrase Steering::forbidden_pieces(const Translation& t, size_t told) const {
  const auto free = t.tokens.begin() + static_cast<long>(std::min(told, t.tokens.size()));
  const Segmented said = model_.writes.words_of({free, t.tokens.end()});
  for (const auto& phrase : forbidden_) {
    const auto at = std::search(said.words.begin(), said.words.end(), phrase.begin(), phrase.end());
    if (at == said.words.end()) continue;
    const auto first = static_cast<int32_t>(at - said.words.begin());
    const auto last = first + static_cast<int32_t>(phrase.size()) - 1;
    std::vector<std::string> pieces;
    for (size_t i = 0; i < said.pieces.size(); ++i)
      if (said.word_of[i] >= first && said.word_of[i] <= last) pieces.push_back(said.pieces[i]);
    return model_.target.encode(pieces);
  }
  return {};
}

std::vector<nn::Phrase> Steering::longer_words(const Translation& t) const {
  std::vector<nn::Phrase> out;
  const std::vector<std::string> words = model_.writes.words_of(t.tokens).words;
  const nn::Phrase said = model_.target.encode(t.tokens);
  for (size_t i = 0; i < required_.size(); ++i) {
    if (says(words, required_[i])) continue;
    const nn::Phrase& phrase = all_.required[i];
    const auto at = std::search(said.begin(), said.end(), phrase.begin(), phrase.end());
    const auto length = static_cast<std::ptrdiff_t>(phrase.size());
    if (said.end() - at > length) out.emplace_back(at, at + length + 1);
  }
  return out;
}

std::vector<std::vector<Translation>> Steering::translate(const nn::Generator& generator,
                                                          const std::vector<Segmented>& sources,
                                                          nn::SearchOptions options, const Work& work) const {
  if (options_.alternatives) {
    std::vector<std::vector<Translation>> out(sources.size());
    for (size_t i = 0; i < sources.size(); ++i) {
      nn::SearchOptions own = options;
      own.sentences = {options.sentences.at(i)};
      add_alternatives(generator, sources[i], own, work, out[i]);
    }
    return out;
  }
  std::vector<std::vector<Translation>> out =
      translator::translate(model_, generator, sources, options, work);
  for (size_t i = 0; i < out.size() && !(forbidden_.empty() && required_.empty()); ++i) {
    nn::SentenceSearch& sentence = options.sentences.at(i);
    keep_whole(generator, sources[i], options, sentence, work, out[i]);
    if (!forbidden_.empty())
      keep_allowed(generator, sources[i], options, sentence, sentence.prefix.size(), work, out[i]);
  }
  return out;
}

void Steering::keep_whole(const nn::Generator& generator, const Segmented& source,
                          const nn::SearchOptions& options, nn::SentenceSearch& sentence, const Work& work,
                          std::vector<Translation>& found) const {
  for (int round = 0; round < kMostSpellings; ++round) {
    const size_t known = sentence.forbidden.size();
    for (const Translation& t : found)
      for (nn::Phrase& p : longer_words(t))
        if (!is_in(sentence.forbidden, p)) sentence.forbidden.push_back(std::move(p));
    if (sentence.forbidden.size() == known) break;
    nn::SearchOptions own = options;
    own.sentences = {sentence};
    found = translator::translate(model_, generator, {source}, own, work)[0];
  }
  for (Translation& t : found) t.complete = t.complete && longer_words(t).empty();
}

void Steering::keep_allowed(const nn::Generator& generator, const Segmented& source,
                            const nn::SearchOptions& options, const nn::SentenceSearch& sentence, size_t told,
                            const Work& work, std::vector<Translation>& found) const {
  nn::SearchOptions own = options;
  own.sentences = {sentence};
  std::vector<nn::Phrase>& forbidden = own.sentences[0].forbidden;
  for (int spelling = 0; spelling < kMostSpellings; ++spelling) {
    const std::vector<nn::Phrase> known = forbidden;
    bool is_forced = false;  // what is forbidden already comes only where the prefix has a part of it
    for (const Translation& t : found) {
      nn::Phrase p = forbidden_pieces(t, told);
      if (p.empty()) continue;
      if (is_in(known, p)) p = {nn::kUnk};  // a copied source word, which the model knows as well
      is_forced = is_forced || is_in(known, p);
      if (!is_in(forbidden, p)) forbidden.push_back(std::move(p));
    }
    if (is_forced) break;
    if (forbidden.size() == known.size()) return;
    found = translator::translate(model_, generator, {source}, own, work)[0];
  }
  std::erase_if(found, [&](const Translation& t) { return !forbidden_pieces(t, told).empty(); });
}

void Steering::add_alternatives(const nn::Generator& generator, const Segmented& source,
                                const nn::SearchOptions& options, const Work& work,
                                std::vector<Translation>& out) const {
  const auto begun = static_cast<int64_t>(options.sentences[0].prefix.size());
  std::vector<int32_t> next;
  nn::SearchOptions look = options;
  look.watch = [&](const nn::SearchStep& step) {
    if (step.step < begun) return true;
    for (const auto& c : step.considered)
      if (static_cast<int64_t>(next.size()) < options.beam_size) next.push_back(c.token);
    return false;
  };
  translator::translate(model_, generator, {source}, look, work);
  nn::SearchOptions each = options;
  each.sentences.assign(next.size(), options.sentences[0]);
  for (size_t i = 0; i < next.size(); ++i) each.sentences[i].prefix.push_back(next[i]);
  const std::vector<Segmented> sources(next.size(), source);
  auto found = translator::translate(model_, generator, sources, each, work);
  for (size_t i = 0; i < found.size(); ++i) {
    keep_whole(generator, source, options, each.sentences[i], work, found[i]);
    if (!forbidden_.empty())
      keep_allowed(generator, source, options, each.sentences[i], static_cast<size_t>(begun), work, found[i]);
    if (!found[i].empty()) out.push_back(std::move(found[i][0]));
  }
}

}  // namespace translator
