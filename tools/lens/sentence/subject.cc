#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include <common/error.h>
#include <common/utf8.h>

#include "explain/explain.h"
#include <translator/inference/translation.h>

namespace lens {
namespace {

using translator::Segmented;

constexpr size_t kMaxPieces = 60;

void require_short(size_t pieces, const char* what, const char* tokens) {
  if (pieces > kMaxPieces)
    throw translator::InputError(
        what, 0, fmt::format("has {} {}; {} at most can be looked at", pieces, tokens, kMaxPieces));
}

Segmented read_side(const translator::Segmenter& side, const std::string& text, const char* what,
                    const char* tokens) {
  if (auto bad = translator::utf8::describe_invalid_byte(text); !bad.empty())
    throw translator::InputError(what, 0, bad);
  Segmented out = side.split(text);
  if (out.pieces.empty()) throw translator::InputError(what, 0, "has no words");
  require_short(out.pieces.size(), what, tokens);
  return out;
}

void mark_unknown(std::string& text) {
  if (!text.ends_with("<unk>")) text += " <unk>";
}

// Without </s>. Where an id is <unk> its token is the source word that is copied in its place.
struct Said {
  std::vector<std::string> tokens;
  std::vector<int32_t> ids;
};

// What the model says if it begins with `first`.
Said said_by(const translator::Model& m, const Segmented& source, const std::vector<int32_t>& first) {
  Said out;
  gradus::nn::SearchOptions options;
  options.sentences = {{.prefix = first}};
  options.watch = [&](const gradus::nn::SearchStep& step) {
    const int32_t token = step.considered.at(0).token;
    if (token != gradus::nn::kEos) out.ids.push_back(token);
    return true;
  };
  out.tokens = translator::translate(m, {source}, options)[0].at(0).tokens;
  return out;
}

// A side as it is shown. Words are those of the vocabulary, with a mark that it may have of their spacing.
Segmented labelled(Segmented side, const std::vector<int32_t>& ids, const translator::Vocabulary& vocabulary,
                   bool whole_words, bool pieces) {
  for (size_t i = 0; i < side.pieces.size(); ++i) {
    std::string& word = side.words[static_cast<size_t>(side.word_of[i])];
    const bool known = ids[i] != gradus::nn::kUnk;
    if (whole_words) side.pieces[i] = known ? vocabulary.token(ids[i]) : word;
    if (known) continue;
    mark_unknown(side.pieces[i]);
    mark_unknown(word);
  }
  if (whole_words || pieces) {
    side.words = side.pieces;
    std::iota(side.word_of.begin(), side.word_of.end(), 0);
  }
  side.word_of.push_back(static_cast<int32_t>(side.words.size()));
  side.words.push_back("</s>");
  side.pieces.push_back("</s>");
  return side;
}

// Both sides read, the target's ids known.
Sentence labelled(Sentence s, const translator::Model& m, bool pieces) {
  s.source_ids = translator::ids_of(m.source, s.source.pieces);
  s.source = labelled(std::move(s.source), s.source_ids, m.source, !m.reads.subwords(), pieces);
  s.target = labelled(std::move(s.target), s.target_ids, m.target, !m.writes.subwords(), pieces);
  s.source_ids.push_back(gradus::nn::kEos);
  return s;
}

}  // namespace

const gradus::nn::Seq2Seq& network_to_dissect(const translator::Model& model) {
  if (model.recurrent() && model.config.network.decoder_layers > 1)
    gradus::fail("lens",
                 fmt::format("this model's decoder has {} layers; only decoders of one layer are taken apart",
                             model.config.network.decoder_layers));
  if (const gradus::nn::Seq2Seq* found = model.recurrent()) return *found;
  gradus::fail(
      "lens",
      "this model is a Transformer: it looks at the source once a layer, several heads at a time, and "
      "its decoder looks at itself; this command takes recurrent translators, with one attention a step; "
      "hint: `lens explain` and `lens graph` take a Transformer apart, `lens report` shows its training; "
      "`translator train --model gru --attention multihead --out DIR` trains a recurrent one with attention in "
      "heads");
}

Subject make_subject(const std::string& directory, const std::string& source, const std::string& target,
                     bool pieces) {
  return make_subject(translator::Model::load(directory), name_of_model(directory), source, target, pieces);
}

Subject make_subject(translator::Model model, const std::string& name, const std::string& source,
                     const std::string& target, bool pieces) {
  Sentence sentence = read_sentence(model, source, target, pieces);
  return make_subject(std::move(model), name, std::move(sentence));
}

Subject make_subject(translator::Model model, const std::string& name, Sentence sentence) {
  Subject s{std::move(sentence), std::move(model), name};
  gradus::nn::to(*s.model.network, gradus::DType::f64);
  return s;
}

Sentence read_sentence(const translator::Model& m, const std::string& source, const std::string& target,
                       bool pieces) {
  Sentence s;
  s.has_reference = !target.empty();
  s.source = read_side(m.reads, source, "the source sentence", m.config.tokens());
  if (s.has_reference) {
    s.target = read_side(m.writes, target, "the target sentence", m.config.tokens());
    s.target_ids = translator::ids_of(m.target, s.target.pieces);
  } else {
    Said said = said_by(m, s.source, {});
    // An untrained model may not know where to stop.
    const size_t count = std::min(said.ids.size(), kMaxPieces);
    said.tokens.resize(count);
    said.ids.resize(count);
    s.target = m.writes.words_of(std::move(said.tokens));
    s.target_ids = std::move(said.ids);
  }
  return labelled(std::move(s), m, pieces);
}

Sentence read_said(const translator::Model& m, const std::string& source, const std::vector<int32_t>& said) {
  Sentence s;
  s.source = read_side(m.reads, source, "the source sentence", m.config.tokens());
  require_short(said.size(), "the target sentence", m.config.tokens());
  if (auto fault = m.length_fault(said.size()); !fault.empty())
    throw translator::InputError("the target sentence", 0, fault);
  s.has_reference = said_by(m, s.source, {}).ids != said;  // some words were forced on it, or drawn
  std::vector<int32_t> all = said;
  all.push_back(gradus::nn::kEos);
  s.target = m.writes.words_of(said_by(m, s.source, all).tokens);
  s.target_ids = said;
  return labelled(std::move(s), m, false);
}

std::vector<std::string> piece_names(const Segmented& side) {
  std::vector<std::string> out;
  for (size_t i = 0; i < side.pieces.size(); ++i) {
    const std::string& word = side.words[static_cast<size_t>(side.word_of[i])];
    const bool alone = std::count(side.word_of.begin(), side.word_of.end(), side.word_of[i]) == 1;
    // A space alone, which has no letters or is a piece by itself, would hardly be seen.
    const bool space = word.empty() || word == "▁";
    out.push_back(!alone ? side.pieces[i] + " of " + word : space ? "▁ (space)" : word);
  }
  return out;
}

void add_pieces(json& trace, const Subject& subject) {
  if (!subject.model.reads.subwords()) return;
  trace["pieces"] = subject.in_words() ? "added" : "shown";
  if (!subject.in_words()) return;
  auto side = [](const Segmented& s) -> json { return {{"words", s.words}, {"word_of", s.word_of}}; };
  trace["words"] = {{"source", side(subject.source)}, {"target", side(subject.target)}};
}

}  // namespace lens
