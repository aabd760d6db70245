#!/usr/bin/env python3
"""Does a change leave every number as it was? Compares two builds of the translator, bit for bit.

  tests/unchanged/compare.py OLD NEW            both are `translator` programs; some two minutes
  tests/unchanged/compare.py OLD NEW --starts   only names and first values of parameters
  tests/unchanged/compare.py OLD NEW --runs     only the trainings

1. Starts: every attention x order x cell after one step that moves nothing to speak of (a learning rate of 1e-30): the
   saved models must agree in the names, shapes and values of all parameters, which are all the random numbers drawn.
2. Runs: 200 steps of each configuration below, with one thread and with two: the losses of all steps as the log has
   them, and after them every weight, must agree to the last bit.

For refactoring: build the commit before in another directory and give both. Exit status 1 where something differs.
"""
import argparse
import hashlib
import itertools
import json
import os
import subprocess
import sys
import tempfile

ATTENTIONS = ("bahdanau dot scaled-dot general concat concat-identity location location-aware local-m local-p "
              "coverage multihead hard uniform oracle").split()
CELLS = "gru gru-reset-before gru-bahdanau lstm rnn rnn-relu".split()
RUNS = {
    "additive": "--attention bahdanau",
    "additive, LSTM, two layers": "--attention bahdanau --cell lstm --layers 2 --residual",
    "additive, maxout, the paper's GRU": "--attention bahdanau --cell gru-bahdanau --readout maxout",
    "general before the cell": "--attention general --decoder bahdanau",
    "general, input feeding": "--attention general --dropout 0.3",
    "general, no feeding": "--attention general --no-input-feeding",
    "dot, layer-normalised LSTM": "--attention dot --cell lstm --layer-norm",
    "concat, layer-normalised GRU": "--attention concat --layer-norm --recurrent-dropout 0.2 --variational",
    "local-p, ReLU RNN": "--attention local-p --cell rnn-relu --layers 2",
    "hard": "--attention hard",
    "none": "--attention none --layer-norm --cell rnn",
    "Transformer": "--model transformer --heads 2",
}
STEPS, BATCH, PAIRS = 200, 8, 160


def pairs():
    """Sentences of 1 to 9 words and their reversal, from a fixed congruence: nobody's data."""
    state, lines = 1, []
    for _ in range(PAIRS):
        state = (state * 1103515245 + 12345) % 2**31
        words = []
        for _ in range(1 + (state >> 16) % 9):
            state = (state * 1103515245 + 12345) % 2**31
            words.append("abcdefghijkl"[(state >> 16) % 12] * 2)
        lines.append(" ".join(words) + "\t" + " ".join(w.upper() for w in reversed(words)) + "\n")
    return "".join(lines)


class Scratch:
    def __init__(self, directory):
        self.directory = directory
        self.data = os.path.join(directory, "pairs.tsv")
        with open(self.data, "w", encoding="utf-8") as f:
            f.write(pairs())

    def train(self, program, options, threads, epochs, batch=BATCH):
        out = os.path.join(self.directory, "model")
        hidden = [] if "transformer" in options else ["--hidden", "16"]
        command = [program, "train", "--data", self.data, "--valid", self.data, *hidden, "--embedding", "12",
                   "--batch-size", str(batch), "--epochs", str(epochs), "--threads", str(threads), "--seed", "7",
                   "--quiet", "--out", out, "--force", *options.split()]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            return "exit %d: %s" % (done.returncode, done.stderr.strip().splitlines()[-1:])
        return self.read(out)

    @staticmethod
    def read(out):
        """Losses as logged; a hash of the model's parameters, names, shapes and numbers."""
        losses = []
        with open(os.path.join(out, "train.log"), encoding="utf-8") as log:
            for line in log:
                entry = json.loads(line)
                losses += [str(v) for k, v in sorted(entry.items()) if "loss" in k]
        with open(os.path.join(out, "model.safetensors"), "rb") as f:
            size = int.from_bytes(f.read(8), "little")
            header = json.loads(f.read(size))
            header.pop("__metadata__", None)
            rest = f.read()
        digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode() + rest).hexdigest()
        return losses, digest


def check(name, old, new):
    if old == new and not isinstance(old, str):
        return True
    if isinstance(old, str) or isinstance(new, str):
        print("failed   %s: %s | %s" % (name, old if isinstance(old, str) else "trained",
                                        new if isinstance(new, str) else "trained"))
        return False
    step = next((i for i, (a, b) in enumerate(zip(old[0], new[0])) if a != b), None)
    print("differs  %s: %s" % (name, "weights" if step is None else "loss %d of the log: %s, %s" %
                               (step, old[0][step], new[0][step])))
    return False


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("old")
    p.add_argument("new")
    p.add_argument("--starts", action="store_true", help="only names and first values")
    p.add_argument("--runs", action="store_true", help="only the trainings")
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        scratch = Scratch(directory)
        same = total = 0
        if not a.runs:
            starts = list(itertools.product(ATTENTIONS, ("bahdanau", "luong"), CELLS))
            starts += [("none", "auto", cell) for cell in CELLS]
            for attention, order, cell in starts:
                options = "--attention %s --decoder %s --cell %s --lr 1e-30" % (attention, order, cell)
                if attention == "oracle":
                    continue  # needs data with links; has no parameters of its own
                both = [scratch.train(program, options, 1, 1, PAIRS) for program in (a.old, a.new)]
                same += check("start: " + options, *both)
                total += 1
        if not a.starts:
            for name, options in RUNS.items():
                for threads in (1, 2):
                    both = [scratch.train(program, options, threads, STEPS * BATCH // PAIRS)
                            for program in (a.old, a.new)]
                    same += check("%s, %d thread(s)" % (name, threads), *both)
                    total += 1
    print("%d of %d are the same, bit for bit" % (same, total))
    return 0 if same == total else 1


if __name__ == "__main__":
    sys.exit(main())
