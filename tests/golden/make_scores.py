#!/usr/bin/env python3
"""Corpora drawn from seeds 1 to N, the same everywhere, and what sacreBLEU says of them: BLEU, chrF2 and chrF2++, a corpus a line.

Several scripts, punctuation, capitals, white space of all kinds, empty sentences, one to four references, a varying number of
them in some. With "paired" two systems on longer corpora, with intervals and the p of the paired bootstrap.
tests/text/test_scores.cc compares with a thousand where python3 has sacreBLEU, and everywhere with
  tests/golden/make_scores.py 48 > tests/golden/scores.json
  tests/golden/make_scores.py 8 paired > tests/golden/paired.json
"""
import json
import sys

from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest

WORDS = [
    ['the', 'The', 'cat', 'sat,', 'on', 'mat.', "it's", '3.5', '1,000', 'U.S.', '(so)', '"no"', '-', 'a-b', '5-6', '...'],
    ["l'été", 'L’homme', 'À', "qu'il", "n'aime", 'pas', 'où', '?', '!', '«', '»', 'œuvre', 'ÇA', 'est-ce', '10:30', '%'],
    ['Straße', 'STRASSE', 'über', 'Äpfel', 'und', '„ja“', 'z.B.', 'der', 'Hund', '&quot;', '&amp;', '<b>', '[x]'],
    ['ΟΔΟΣ', 'οδός', 'ΣΑΣ', 'Σ', 'και', 'ПРИВЕТ', 'мир', 'Ёж', 'не', 'İstanbul', 'ısı', 'I'],
    ['था।', 'हूँ', 'क्या', 'नहीं', '是', '你好。', '世界', '、', 'ありがとう', 'カタカナ', '한국어', 'ก็', 'น้ำ'],
    ['مرحبا', 'سلام،', '؟', 'שלום', '👍🏽', '👩\u200d👩\u200d👧', 'e\u0301', 'n\u0303', 'ﬁ', '①', '½', 'x\u200dy', '\u200b', '_', '~', '\\'],
]
SPACES = [' ', ' ', ' ', ' ', ' ', ' ', '  ', '\u00a0', '\u202f', '\u3000', '\u2003', '\u0085', '\x1c']


class Draw:
    """splitmix64."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = z = (self.state + 0x9E3779B97F4A7C15) % 2**64
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        return (z ^ z >> 31) % n

    def of(self, some):
        return some[self.below(len(some))]

    def sentence(self, words, longest):
        out = ''
        for left in range(self.below(longest + 1), 0, -1):
            out += self.of(words)
            if left > 1 or self.below(8) == 0:
                out += self.of(SPACES)
        return out

    def changed(self, text, words):
        """With words put in, left out or elsewhere, so that some n-grams of each order stay."""
        tokens = text.split(' ')
        for _ in range(self.below(4)):
            at, how = self.below(len(tokens) + 1), self.below(3)
            if how == 0: tokens.insert(at, self.of(words))
            elif how == 1: tokens = tokens[:at] + tokens[at + 1:]
            else: tokens = tokens[at:] + tokens[:at]
        return ' '.join(tokens)

    def corpus(self):
        words = list(self.of(WORDS))
        if self.below(2) == 0: words += self.of(WORDS)
        most = 1 if self.below(2) == 0 else 1 + self.below(4)
        longest, varying = 1 + self.below(25), self.below(3) == 0
        hypotheses, references = [], []
        for _ in range(1 + self.below(12)):
            own = ['' if self.below(12) == 0 else self.sentence(words, longest)
                   for _ in range(1 + self.below(most) if varying else most)]
            kind = self.below(10)
            hypotheses.append('' if kind == 0 else self.sentence(words, longest) if kind < 3 else self.changed(self.of(own), words))
            references.append(own)
        return {'lowercase': self.below(3) == 0, 'hypotheses': hypotheses, 'references': references}


    def systems(self):
        """Of which the second differs from the first in some sentences, for the better or for the worse."""
        words = self.of(WORDS) + self.of(WORDS)
        references = [self.sentence(words, 8) for _ in range(70)]
        first = [self.changed(r, words) for r in references]
        other = 2 + self.below(12)
        second = [a if self.below(other) else self.changed(r, words) for a, r in zip(first, references)]
        return {'lowercase': False, 'a': first, 'b': second, 'references': [[r] for r in references]}


def streams(references):
    """By reference, not by sentence; None where a sentence has fewer."""
    return [[r[i] if i < len(r) else None for r in references] for i in range(max(map(len, references)))]


def metrics(lowercase):
    return BLEU(lowercase=lowercase), CHRF(lowercase=lowercase), CHRF(lowercase=lowercase, word_order=2)


def add_scores(corpus):
    for metric in metrics(corpus['lowercase']):
        score = metric.corpus_score(corpus['hypotheses'], streams(corpus['references']))
        corpus[score.name] = {'score': score.score, 'signature': metric.get_signature().format()}


def add_tests(corpus):
    named = [('a', corpus['a']), ('b', corpus['b'])]
    by_name = {metric.__class__.__name__ + str(n): metric for n, metric in enumerate(metrics(corpus['lowercase']))}
    signatures, results = PairedTest(named, by_name, streams(corpus['references']), test_type='bs', n_samples=1000)()
    for name, signature in signatures.items():
        a, b = results[name]
        corpus[name] = {'score_a': a.score, 'score_b': b.score, 'mean_a': float(a.mean), 'mean_b': float(b.mean),
                        'half_width_a': float(a.ci), 'half_width_b': float(b.ci), 'p': b.p_value, 'signature': signature.format()}


for seed in range(1, int(sys.argv[1]) + 1):
    if sys.argv[2:] == ['paired']: add_tests(corpus := Draw(seed).systems())
    else: add_scores(corpus := Draw(seed).corpus())
    print(json.dumps(corpus, ensure_ascii=False))
