#!/usr/bin/env python3
"""Writes bleu.json: what sacreBLEU makes of a few corpora, with every option that Gradus's BLEU has.

Run with sacreBLEU 2 (the version that was used stands in the file; Gradus's BLEU claims to be sacreBLEU's):
  tests/golden/make_bleu.py > tests/golden/bleu.json
"""
import json
import platform

import sacrebleu
from sacrebleu.metrics import BLEU
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a


def drawn(seed, sentences, words, length):
    """Sentences of few words, so that n-grams repeat within them and agree by chance."""
    out = []
    for _ in range(sentences):
        seed = (seed * 1103515245 + 12345) % 2**31
        count = seed // 65536 % length
        sentence = []
        for _ in range(count):
            seed = (seed * 1103515245 + 12345) % 2**31
            sentence.append(words[seed // 65536 % len(words)])
        out.append(' '.join(sentence))
    return out


def changed(sentences, every):
    """The same with every n-th word of the corpus replaced or left out."""
    out, n = [], 0
    for sentence in sentences:
        kept = []
        for word in sentence.split():
            n += 1
            if n % every == 0:
                if n % 2: kept.append('x')
            else: kept.append(word)
        out.append(' '.join(kept))
    return out


WORDS = ['a', 'the', 'cat', 'sat', 'on', 'mat,', 'Mat', 'is.', "it's", '3.5', 'du', '«', '»', '!']
WORDY = drawn(7, 60, WORDS, 23)
# hypotheses, and for each of them its references
CORPORA = {
    'sentences': (["Il n'aime pas les pommes.", 'the cat sat on on the mat', 'He said "3.14, or 22/7" (twice).', 'a b', 'no match'],
                  [["Il n'aime pas les pommes."], ['the cat sat on the mat today'], ['He said "3.14 or 22/7" two times.'], ['a b c'],
                   ['quite different words there']]),
    'orders without a match': (['the cat sat on', 'a b', 'no match'], [['the cat sat'], ['a b c'], ['quite different words']]),
    'no match at all': (['a b c d e'], [['v w x y z']]),
    'all of it': (['one two three four five', 'six seven eight nine'], [['one two three four five'], ['six seven eight nine']]),
    'too short for an order': (['a b', 'c d'], [['a b'], ['c d']]),
    'empty lines': (['', 'a b c d', '', ' '], [['a b'], ['a b c d'], [''], ['\t']]),
    'letters of either case': (['LE Chat dort ICI .', "L'ÉTÉ À Noël, Œuvre", 'STRASSE Straße', 'ПРИВЕТ Мир', 'ΟΔΟΣ ΣΑΣ Σ ΑΣ. ΑΣ\'Α 日Σ', 'İstanbul ISPARTA'],
                               [['le chat dort ici .'], ["l'été à noël, œuvre"], ['strasse straße'], ['привет мир'], ['οδος σας σ ας. ας\'α 日σ'], ['i\u0307stanbul isparta']]),
    'punctuation': (['He paid $3.50, i.e. 1,000 (or so).', "a-b 3-4 c'est &quot;oui&quot; &lt;b&gt; A&amp;B", 'x<skipped>y end- less',
                     'a..b ,,c .5 5. 1.000.000,00 -7 --', 'dit\u202f: «\u00a0oui\u00a0» — “non”…', 'था। हूँ? 你好。', '[x]{y}~`^_=+|\\/@#%*;:!?',
                     'tab\there\u2003and\u3000there\u001cend\u0085of\u2028it'],
                    [['He paid $3.50, i.e. 1,000 (or so) .'], ["a-b 3 - 4 c'est \"oui\" <b> A&B"], ['xy end- less'],
                     ['a..b ,, c .5 5 . 1.000.000,00 - 7 --'], ['dit : « oui » — “ non ” …'], ['था । हूँ ? 你好 。'],
                     ['[ x ] { y } ~ ` ^ _ = + | \\ / @ # % * ; : ! ?'], ['tab here and there end of it']]),
    'several references': (['the the cat', 'Un chat dort là .', 'a b c', 'a b c d e f'],
                           [['the cat sat', 'the the dog runs', 'the the'], ['Le chat dort ici .', 'Un chat dort là .', 'x'],
                            ['a b c d', 'a b', 'a b'], ['b c d e', 'a b c x d e f', 'a b']]),
    'references in varying number': (['the the cat sat', 'a b c d'], [['the cat sat', 'the the dog'], ['a b c e']]),
    'drawn': (changed(WORDY, 5), [[s] for s in WORDY]),
    'drawn, two references': (changed(WORDY, 4), [[a, b] for a, b in zip(changed(WORDY, 7), drawn(9, 60, WORDS, 23))]),
}
OPTIONS = [
    {}, {'smooth_method': 'floor'}, {'smooth_method': 'floor', 'smooth_value': 0.5}, {'smooth_method': 'add-k'},
    {'smooth_method': 'add-k', 'smooth_value': 2}, {'smooth_method': 'none'}, {'lowercase': True}, {'tokenize': 'none'},
    {'tokenize': 'none', 'lowercase': True, 'smooth_method': 'add-k'}, {'effective_order': True},
    {'effective_order': True, 'smooth_method': 'floor'}, {'max_ngram_order': 2}, {'max_ngram_order': 6, 'effective_order': True},
]


def streams(references):
    return [[r[i] if i < len(r) else None for r in references] for i in range(max(map(len, references)))]


def scored(options, hypotheses, references):
    bleu = BLEU(**options)
    score = bleu.corpus_score(hypotheses, streams(references))
    return {'options': options, 'score': score.score, 'text': str(score), 'correct': score.counts, 'total': score.totals,
            'precisions': score.precisions, 'brevity_penalty': score.bp, 'hypothesis_length': score.sys_len,
            'reference_length': score.ref_len, 'signature': bleu.get_signature().format()}


def main():
    corpora = []
    tokenize = Tokenizer13a()
    for name, (hypotheses, references) in CORPORA.items():
        assert len(hypotheses) == len(references)
        corpora.append({
            'name': name, 'hypotheses': hypotheses, 'references': references,
            'tokens': [tokenize(h.rstrip()) for h in hypotheses],
            'sentence_scores': [BLEU(effective_order=True).sentence_score(h, r).score for h, r in zip(hypotheses, references)],
            'scores': [scored(o, hypotheses, references) for o in OPTIONS]})
    print(json.dumps({'made_by': f'make_bleu.py with sacreBLEU {sacrebleu.__version__}, Python {platform.python_version()}',
                      'corpora': corpora}, indent=None))


if __name__ == '__main__':
    main()
