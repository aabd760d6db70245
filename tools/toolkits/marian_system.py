"""Marian 1.12, as its package for Python brings it along."""
import ast
import json
import os
import re
import zipfile

import clock
from system import BATCH, BETWEEN, HEADS, LAYERS, LONGEST, SIZE, System, log_time, often


class Marian(System):
    kit, config = "Marian", "marian.yml"
    requirements = [["pymarian==1.12.42"]]

    @property
    def schedule(self):
        # Synchronous: asynchronous workers do some more updates, but are not averaged ("TODO" in its log).
        return {"gru": "warm-up of 300 updates and inverse square root, layer normalisation and dropouts as its basic "
                       "example, synchronous, average of weights",
                "transformer": "warm-up of 1,000 updates and inverse square root, label smoothing 0.1 and Adam as its "
                               "Transformer example, synchronous, average of weights"}[self.model]

    def configuration(self):
        d = self.data
        sizes = {"gru": f"""\
type: s2s
enc-type: bidirectional
enc-cell: gru
dec-cell: gru
enc-depth: 1
dec-depth: 1
dim-emb: {SIZE}
dim-rnn: {SIZE}
layer-normalization: true
dropout-rnn: 0.2
dropout-src: 0.1
dropout-trg: 0.1
lr-warmup: 300u
lr-decay-inv-sqrt: [300u]
""", "transformer": f"""\
type: transformer
enc-depth: {LAYERS}
dec-depth: {LAYERS}
dim-emb: {SIZE}
transformer-heads: {HEADS}
transformer-dim-ffn: {BETWEEN}
transformer-postprocess-emb: d
transformer-postprocess: dan
transformer-dropout: 0.2
label-smoothing: 0.1
optimizer-params: [0.9, 0.98, 1e-09]
clip-norm: 5
lr-warmup: 1000u
lr-decay-inv-sqrt: [1000u]
"""}[self.model]
        n = often(self.minutes)
        return f"""\
train-sets: {json.dumps([d + "/train.source", d + "/train.target"])}
valid-sets: {json.dumps([d + "/valid.source", d + "/valid.target"])}
vocabs: {json.dumps([d + "/marian.yml"] * 2)}
{sizes}tied-embeddings-all: true
max-length: {LONGEST}
mini-batch: {BATCH}
sync-sgd: true
learn-rate: 0.001
exponential-smoothing: 0.001
cost-type: ce-mean-words
valid-metrics: [ce-mean-words]
valid-mini-batch: 64
valid-freq: {n}u
save-freq: {n}u
early-stopping: 0
disp-freq: 10u
disp-first: 1
cpu-threads: {clock.CORES}
workspace: 1024
shuffle-in-ram: true
seed: 42
"""

    def train(self, tsv, pieces):
        return [self.venv("pymarian"), "train", "-c", self.at(self.config), "-m", self.at("model.npz")]

    def limit(self):
        return self.minutes * 60

    def checkpoints(self, started):
        losses = dict(re.findall(r"\[valid\].*?Up\. (\d+) : ce-mean-words : ([\d.]+)", self.log()))
        found = []
        for name in os.listdir(self.folder):
            n = re.fullmatch(r"model\.iter(\d+)\.npz", name)
            if n:  # the signal may come between saving and validating
                loss = float(losses[n[1]]) if n[1] in losses else None
                found.append((os.stat(self.at(name)).st_mtime - started, self.at(name), loss))
        return sorted(found, key=lambda c: c[0])

    def progress(self, started):
        """It counts the sentences of a pass; a new one begins at 0."""
        rows = re.findall(r"^\[(\S+ \S+)\] Ep\. (\d+) : Up\. \d+ : Sen\. ([\d,]+)", self.log(), re.M)
        when, epoch, sentences = rows[-1]
        done = (int(epoch) - 1) * sum(1 for _ in open(self.data + "/train.source", "rb"))
        return (done + int(sentences.replace(",", "")),
                log_time(when) - started)

    def parameters(self):
        numbers = 0
        with zipfile.ZipFile(self.checkpoints(0)[-1][1]) as z:
            for name in z.namelist():
                with z.open(name) as f:
                    head = f.read(10)
                    shape = ast.literal_eval(f.read(int.from_bytes(head[8:10], "little")).decode())["shape"]
                size = 1
                for n in shape:
                    size *= n
                numbers += 0 if name.startswith("special:") else size
        return numbers

    def translate(self, checkpoint, beam):
        vocabulary = self.data + "/marian.yml"
        return [self.venv("pymarian"), "decode", "-m", checkpoint, "-v", vocabulary, vocabulary, "--cpu-threads",
                str(clock.CORES),
                "-b", str(beam), "--normalize", "1", "--mini-batch", "64", "--maxi-batch", "100", "--maxi-batch-sort",
                "src", "-w", "512", "--quiet-translation"]

    def commands(self):
        return ["pip install pymarian", "pymarian train -c marian.yml -m model.npz",
                "pymarian decode -m model.npz -v vocabulary.spm vocabulary.spm < test.txt"]
