"""What needs packages: cutting text into pieces, and scores. Runs in the virtual environment `score`.

  text.py pieces MODEL < LINES > PIECES     cut as Gradus cuts: see pieces_of
  text.py tokens MODEL                      the tokens of MODEL, a line each
  text.py undo MODEL < PIECES > LINES
  text.py score REFERENCES LANGUAGE HYPOTHESES...     a JSON object for each file
"""
import json
import sys


def processor(path):
    import sentencepiece
    return sentencepiece.SentencePieceProcessor(model_file=path)


def pieces_of(model, line):
    """Gradus puts a space before a sentence's first word, as before all others; written as SentencePiece's own
    character, since it drops a plain one there."""
    return model.encode("▁" + " ".join(line.split()).replace(" ", "▁"), out_type=str)


def plain(model, i):
    return not (model.is_control(i) or model.is_unknown(i) or model.is_unused(i))


def lower_tokens(lines, language):
    """As published figures of Multi30k have them: Moses's tokens, lower-cased."""
    from sacremoses import MosesTokenizer
    moses = MosesTokenizer(lang=language)
    return [moses.tokenize(line, return_str=True, escape=False).lower() for line in lines]


def scores(hypotheses, references, language):
    from sacrebleu.metrics import BLEU, CHRF
    bleu, chrf, lower = BLEU(), CHRF(), BLEU(tokenize="none", force=True)
    tokens = lower_tokens(references, language)
    return {"bleu": round(bleu.corpus_score(hypotheses, [references]).score, 2),
            "chrf": round(chrf.corpus_score(hypotheses, [references]).score, 2),
            "lower_bleu": round(lower.corpus_score(lower_tokens(hypotheses, language), [tokens]).score, 2),
            "signatures": [str(m.get_signature()) for m in (bleu, chrf, lower)]}


def lines_of(path):
    with open(path, encoding="utf-8", newline="\n") as f:
        return f.read().removesuffix("\n").split("\n")


def main():
    what, *rest = sys.argv[1:]
    for stream in (sys.stdin, sys.stdout):
        stream.reconfigure(encoding="utf-8", newline="\n")
    if what == "pieces":
        model = processor(rest[0])
        for line in sys.stdin:
            print(" ".join(pieces_of(model, line.rstrip("\n"))))
    elif what == "tokens":
        model = processor(rest[0])
        for i in range(model.get_piece_size()):
            if plain(model, i):
                print(model.id_to_piece(i))
    elif what == "undo":
        model = processor(rest[0])
        for line in sys.stdin:
            print(" ".join(model.decode_pieces(line.split()).replace("▁", " ").split()))
    elif what == "score":
        references = lines_of(rest[0])
        for path in rest[2:]:
            hypotheses = lines_of(path)
            if len(hypotheses) != len(references):
                sys.exit(f"{path}: {len(hypotheses)} translations of {len(references)} sentences")
            print(json.dumps(scores(hypotheses, references, rest[1])), flush=True)


main()
