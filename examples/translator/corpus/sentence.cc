#include <translator/corpus/sentence.h>

#include <translator/text/detokenizer.h>

#include <algorithm>

namespace translator::corpus {
namespace {

void number(Clause& clause, int& next);

void number(NounPhrase& phrase, int& next) {
  phrase.id = next++;
  for (NounPhrase& inner : phrase.possessor) number(inner, next);
  for (NounPhrase& inner : phrase.second) number(inner, next);
  for (Clause& inner : phrase.relative) number(inner, next);
}

void number(Clause& clause, int& next) {
  clause.id = next;
  next += 8;  // adjuncts use the ids after the clause's for their prepositions
  number(clause.subject, next);
  for (NounPhrase& inner : clause.object) number(inner, next);
  for (NounPhrase& inner : clause.recipient) number(inner, next);
  for (Adjunct& inner : clause.adjuncts) number(inner.phrase, next);
  for (Clause& inner : clause.that) number(inner, next);
}

bool share_key(const Word& a, const Word& b) {
  return std::any_of(a.keys.begin(), a.keys.end(),
                     [&b](int k) { return std::find(b.keys.begin(), b.keys.end(), k) != b.keys.end(); });
}

}  // namespace

Agreement agreement(const NounPhrase& phrase) {
  switch (phrase.pronoun) {
    case Pronoun::i: return {0, Gender::masculine, false};
    case Pronoun::he: return {1, Gender::masculine, false};
    case Pronoun::she: return {1, Gender::feminine, false};
    case Pronoun::it: return {1, phrase.gender, false};
    case Pronoun::we: return {2, Gender::masculine, true};
    case Pronoun::they: return {3, phrase.gender, true};
    case Pronoun::none: break;
  }
  if (phrase.noun == nullptr) return {};
  Agreement result{phrase.plural ? 3 : 1, phrase.noun->gender, phrase.plural};
  if (!phrase.second.empty()) {
    const bool feminine =
        result.gender == Gender::feminine && agreement(phrase.second[0]).gender == Gender::feminine;
    result = {3, feminine ? Gender::feminine : Gender::masculine, true};
  }
  return result;
}

SentencePair realise(Sentence sentence, WordOrder order) {
  int next = 1;
  for (Part& part : sentence.parts) number(part.clause, next);
  std::vector<Word> english = to_english(sentence), french = to_french(sentence, order);
  const bool asks = sentence.mood != Mood::statement;
  if (asks || sentence.stop) {
    for (std::vector<Word>* words : {&english, &french}) words->push_back({asks ? "?" : ".", {0}});
  }
  SentencePair result;
  for (const Word& word : english) result.source.push_back(word.text);
  for (const Word& word : french) result.target.push_back(word.text);
  Links& links = result.alignment.emplace().sure;
  for (size_t i = 0; i < english.size(); ++i)
    for (size_t j = 0; j < french.size(); ++j)
      if (share_key(english[i], french[j]))
        links.push_back({static_cast<int32_t>(i), static_cast<int32_t>(j)});
  return result;
}

SentencePair with_texts(SentencePair pair) {
  pair.source_text = detokenize(pair.source);
  pair.target_text = detokenize(pair.target, Typography::french);
  return pair;
}

}  // namespace translator::corpus
