#pragma once

#include <cstdint>
#include <vector>

#include <translator/text/parallel.h>

/// The data the translator learns from when nobody gives it any: English and French sentences made by a
/// grammar, with the words that translate each other.
namespace translator {

/// English and French: lower-case tokens as translator::tokenize() cuts them (`l'`, `n'`, `qu'` apart,
/// `doesn't` whole), the same as text, and links, all sure and sorted. A French word without an English word
/// of its own belongs to the word that calls for it, so that every token of both sides is linked:
///   ate - a mangé; will eat - mangera; is eating - mange; want to eat: want - veux, to eat - manger;
///   doesn't - n' pas; didn't - n' a pas; won't - n' pas mangera; never - n' jamais;
///   do, does, did in a question - est-ce que (did - a as well); what - que (of qu' est-ce que);
///   apples - des pommes, les pommes, pommes; bread - du pain, de l' eau; the - l'; some - du; any - de;
///   many - beaucoup de;
///   of the teacher's book: the - du (de + le), teacher's - du professeur, book - le livre;
///   because - parce que; every - tous les, day - jours; there is: there - il y, is - a;
///   listens to - écoute; talks to him: talks - parle, to him - lui; at home: at - à, home - la maison.
struct Corpus {
  std::vector<SentencePair> train, valid, test;
};

struct CorpusOptions {
  uint64_t seed = 1;
  int train = 30000;
  int valid = 1000;
  int test = 1000;
  /// tokens, on either side, the final stop included
  int max_length = 40;
  /// The French words in the order of a language that puts heads last, as Japanese or Turkish do: objects
  /// before verbs, nouns before their adjectives and articles, relative clauses before nouns, prepositions and
  /// conjunctions behind what they lead, later clauses before earlier ones, and what asks at the end:
  ///   paul ate the red apple because he was hungry - il avait faim parce que paul pomme rouge la a mangé
  /// Links are as exact. No form depends on the word behind it: nothing is elided, and de le is always du.
  bool verb_final = false;
};

/// Which part a sentence belongs to changed last with this version; a model's config.json keeps the one of its
/// corpus.
constexpr int64_t kCorpusVersion = 2;

/// The same for the same options everywhere; valid and test stay the same when train grows. The sentence itself
/// decides which part it belongs to, whatever the seed, the sizes and the lengths: none that is in valid or
/// test of one corpus, in English or in French, is in train of another. Both orders have the same sentences,
/// but for those that max_length leaves out of one.
///
/// Each English sentence has one French one. None comes twice, not even with and without its full stop:
/// statements are written either way, both languages alike, because people who try a translator often leave
/// the stop away. "he doesn't like apples" is in none of the parts, not even inside a longer sentence.
///
/// Throws std::invalid_argument for negative sizes, and when 20000 draws in a row bring no new sentence, as
/// happens with a very small max_length.
Corpus generate_corpus(const CorpusOptions& options);

/// "he doesn't like apples" / "il n'aime pas les pommes", or the same in the order that the options name.
SentencePair held_out_pair(const CorpusOptions& options = {});

}  // namespace translator
