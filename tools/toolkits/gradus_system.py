"""Gradus: reads text as it stands, and learns its pieces itself."""
import json
import os
import pathlib

import clock
from system import BATCH, BETWEEN, HEADS, LAYERS, SIZE, System, text_of


def precision():
    """Products in bfloat16, where this processor has them."""
    return ["--precision", "bf16"] if "avx512_bf16" in text_of("/proc/cpuinfo") else []


class Gradus(System):
    kit, pieces, config = "Gradus", False, None
    binary = "translator"

    @property
    def schedule(self):
        rise = 400 if self.model == "transformer" else 100
        return (f"its defaults, highest rate {self.events('start')[-1]['lr']:g}, {rise} updates of warm-up or a quarter of "
                "the minutes, then linear to a twentieth of it at their end" + (", products in bfloat16" if precision() else ""))

    @staticmethod
    def reading(pieces):
        return ["--case", "keep", "--subwords", "bpe", "--subword-model", "joint", "--subword-size", str(pieces)]

    def own_options(self, tsv, pieces):
        sizes = {"gru": ["--embedding", str(SIZE), "--hidden", str(SIZE), "--layers", "1", "--dropout", "0.4",
                        "--tie-embeddings"],
                 "transformer": ["--model", "transformer", "--d-model", str(SIZE), "--layers", str(LAYERS), "--heads",
                                 str(HEADS), "--ffn", str(BETWEEN)]}
        return ["--data", tsv["train"], "--valid", tsv["valid"], *self.reading(pieces), *sizes[self.model], *precision(),
                "--batch-size", str(BATCH), "--max-minutes", f"{self.minutes:g}"]

    def train(self, tsv, pieces):
        return [self.binary, "train", *self.own_options(tsv, pieces), "--validate-every",
                str(100 if self.minutes <= 2 else 300), "--threads", str(clock.CORES), "--out", self.at("model"), "--force"]

    def limit(self):
        return self.minutes * 60 + 300  # it ends by itself

    def tick(self):
        """Keeps each model that was the best: one is put in the place of the last with a rename, so that a link to the
        file is a copy."""
        model = self.at("model/model.safetensors")
        try:
            when = os.stat(model)
        except FileNotFoundError:
            return
        kept = self.at(f"kept/{when.st_ino}-{when.st_mtime_ns}")
        if not os.path.exists(kept):
            os.makedirs(kept)
            os.link(model, os.path.join(kept, "model.safetensors"))

    def check(self):
        models = self.at("model/pieces.model"), os.path.join(self.data, "learnt/pieces.model")
        same = [pathlib.Path(p).read_bytes() for p in models]
        return None if same[0] == same[1] else "it learnt other pieces than the others were given: use another --work"

    def events(self, kind):
        rows = [json.loads(line) for line in text_of(self.at("model/train.log")).splitlines() if line.endswith("}")]
        return [r for r in rows if r.get("event") == kind]

    def checkpoints(self, started):
        """[(seconds, path, loss)]: all are the best so far. The untrained model, which is there from the beginning, is
        none of them."""
        folder, first = self.at("kept"), min((e["seconds"] for e in self.events("validation")), default=0)
        found = []
        for name in os.listdir(folder) if os.path.isdir(folder) else []:
            path = os.path.join(folder, name)
            found.append((os.stat(os.path.join(path, "model.safetensors")).st_mtime - started, path, None))
        return sorted((c for c in found if c[0] >= first), key=lambda c: c[0])

    def progress(self, started):
        """Sentences learnt from, after how many seconds."""
        last = self.events("validation")[-1]
        return last["step"] * BATCH, last["seconds"]

    def parameters(self):
        return self.events("start")[-1]["parameters"]

    def translate(self, checkpoint, beam):
        for name in os.listdir(self.at("model")):  # all but the weights is the same in all
            own, there = self.at(f"model/{name}"), os.path.join(checkpoint, name)
            if os.path.isfile(own) and name not in ("last.safetensors", "train.log") and not os.path.exists(there):
                os.link(own, there)
        return [self.binary, "translate", checkpoint, "-k", str(beam), "--threads", str(clock.CORES)]

    def commands(self):
        return ["tools/setup && meson setup build && ninja -C build",
                "translator train --data train.tsv --valid valid.tsv --max-minutes N --out model",
                "translator translate model < test.txt"]
