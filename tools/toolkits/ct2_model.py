#!/usr/bin/env python3
"""A Transformer of Gradus as a model of CTranslate2, with the same weights.

  tools/toolkits/ct2_model.py MODEL OUT          needs ctranslate2 (PyPI) and numpy

Gradus's layers are PyTorch's: in_proj_weight [3E, E] has the rows of queries, keys and values; CTranslate2 wants those of
self-attention together, too, and of attention on the source the queries apart. Models with GELU, of 8 bits or with a
temperature of their own are not known here: it says so.
"""
import argparse
import json
import os
import struct
import sys

import numpy as np
from ctranslate2.specs import common_spec, transformer_spec

MOST_POSITIONS = 1024
KNOWN = {"positions": ("sinusoidal", "learned"), "activation": ("relu",), "temperature": (1,)}


def read_safetensors(path):
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    out = {}
    for name, e in header.items():
        if name == "__metadata__":
            continue
        if e["dtype"] != "F32":
            raise ValueError(f"{path}: {name} is {e['dtype']}: only a model of floats can be converted")
        begin, end = e["data_offsets"]
        out[name] = np.frombuffer(data[begin:end], np.float32).reshape(e["shape"]).copy()
    return out


def sinusoids(n, size):
    """Row t: sin of t / 10000^(i / size) for even i, cos of that of i - 1 for odd i."""
    at = np.arange(size)
    angle = np.arange(n)[:, None] / 10000.0**((at - at % 2) / size)
    return np.where(at % 2 == 0, np.sin(angle), np.cos(angle)).astype(np.float32)


class Conversion:
    def __init__(self, network, weights):
        self.c, self.w = network, weights

    def linear(self, to, weight, bias):
        to.weight, to.bias = weight, bias

    def whole(self, to, name):
        self.linear(to, self.w[name + ".weight"], self.w[name + ".bias"])

    def norm(self, to, name):
        to.gamma, to.beta = self.w[name + ".weight"], self.w[name + ".bias"]

    def attention(self, to, name, on_source):
        weight, bias = self.w[name + ".in_proj_weight"], self.w[name + ".in_proj_bias"]
        size = self.c["d_model"]
        if on_source:
            self.linear(to.linear[0], weight[:size], bias[:size])
            self.linear(to.linear[1], weight[size:], bias[size:])
        else:
            self.linear(to.linear[0], weight, bias)
        self.whole(to.linear[-1], name + ".out_proj")

    def stack(self, to, side, words):
        embeddings = to.embeddings[0] if isinstance(to.embeddings, list) else to.embeddings
        embeddings.weight = self.w[words]
        to.scale_embeddings = True
        positions = self.w.get(words.replace("embedding", "positions"))
        to.position_encodings.encodings = sinusoids(MOST_POSITIONS, self.c["d_model"]) if positions is None else positions
        if self.c["norm_first"]:
            self.norm(to.layer_norm, side + ".norm")
        for i, layer in enumerate(to.layer):
            name = f"{side}.layers.{i}"
            self.attention(layer.self_attention, name + ".self_attn", False)
            self.norm(layer.self_attention.layer_norm, name + ".norm1")
            if side == "decoder":
                self.attention(layer.attention, name + ".multihead_attn", True)
                self.norm(layer.attention.layer_norm, name + ".norm2")
            self.norm(layer.ffn.layer_norm, name + (".norm3" if side == "decoder" else ".norm2"))
            self.whole(layer.ffn.linear_0, name + ".linear1")
            self.whole(layer.ffn.linear_1, name + ".linear2")


def convert(model, out):
    """@raises ValueError for a model that CTranslate2 would not compute alike."""
    with open(os.path.join(model, "config.json"), encoding="utf-8") as f:
        config = json.load(f)
    if config.get("model") != "transformer":
        raise ValueError(f"{model} is no Transformer: CTranslate2 has no recurrent translators")
    c = config["network"]
    for key, known in KNOWN.items():
        if c.get(key, known[0]) not in known:
            raise ValueError(f"{model}: {key} {c[key]} is not known: only {', '.join(map(str, known))}")
    w = read_safetensors(os.path.join(model, "model.safetensors"))
    # Tied matrices are stored once, under the first name.
    w.setdefault("target_embedding.weight", w["source_embedding.weight"])
    w.setdefault("output.weight", w["target_embedding.weight"])
    spec = transformer_spec.TransformerSpec.from_config(c["num_layers"], c["num_heads"], pre_norm=c["norm_first"],
                                                        activation=common_spec.Activation.RELU)
    conversion = Conversion(c, w)
    conversion.stack(spec.encoder, "encoder", "source_embedding.weight")
    conversion.stack(spec.decoder, "decoder", "target_embedding.weight")
    conversion.linear(spec.decoder.projection, w["output.weight"], w["output.bias"])
    for side in ("source", "target"):
        with open(os.path.join(model, side + ".vocab"), encoding="utf-8") as f:
            words = f.read().split("\n")[:c[side + "_vocabulary"]]
        getattr(spec, f"register_{side}_vocabulary")(words)
    spec.config.add_source_eos = True
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = "<unk>", "<s>", "</s>"
    spec.config.decoder_start_token = "<s>"
    spec.validate()
    spec.optimize()
    os.makedirs(out, exist_ok=True)
    spec.save(out)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model")
    p.add_argument("out")
    a = p.parse_args()
    try:
        convert(a.model, a.out)
    except ValueError as error:
        sys.exit(f"ct2_model: {error}")


if __name__ == "__main__":
    main()
