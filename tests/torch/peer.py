#!/usr/bin/env python3
"""What PyTorch makes of a translator, for test_torch_model.cc.

  peer.py DIR...          from each directory's weights and its batch.safetensors: numbers.safetensors, and
                          trained.safetensors, the weights after the steps
  peer.py --refusals DIR...  one line for each: why it is not rebuilt, or "rebuilt"
  peer.py --make STORED   the stored models, with weights by PyTorch, and their numbers
"""
import json
import os
import sys

import torch
import torch.nn.functional as F

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(ROOT, "tools"))
from torch_model import (  # noqa: E402
    BOS, EOS, PAD, build, greedy, load, read_safetensors, save, write_safetensors)

BASE = {"embedding_dim": 5, "hidden_size": 6, "attention_size": 4, "num_layers": 1, "bidirectional": True,
        "decoder": "auto", "input_feeding": True, "dropout": 0.0}
STORED = {  # name -> what differs from BASE
    "bahdanau": {"attention": "bahdanau"},
    "luong": {"attention": "general", "num_layers": 2},
    "concat-lstm": {"attention": "concat", "cell": "lstm", "input_feeding": False},
    "none": {"attention": "none"},
}
TRANSFORMER = {"d_model": 8, "num_heads": 2, "num_layers": 2, "dim_feedforward": 12, "dropout": 0.0,
               "norm_first": False, "activation": "relu", "positions": "sinusoidal", "max_positions": 32,
               "tie_embeddings": True}


def numbers(model, batch, steps=20):
    """Logits, greedy translations, the losses of `steps` steps of Adam on it, the logits after them."""
    source, lengths, target_in, target_out = (
        batch[k].long() for k in ("source", "lengths", "target_in", "target_out"))
    with torch.no_grad():
        out = {"logits": model(source, lengths, target_in)}
    out["greedy"] = greedy(model, source, lengths, 12).to(torch.int32)
    adam, losses = torch.optim.Adam(model.parameters(), lr=0.01), []
    for _ in range(steps):
        adam.zero_grad()
        logits = model(source, lengths, target_in)
        loss = F.cross_entropy(logits.flatten(0, 1), target_out.flatten(), ignore_index=PAD)
        loss.backward()
        adam.step()
        losses.append(loss.item())
    out["losses"] = torch.tensor(losses)
    with torch.no_grad():
        out["trained_logits"] = model(source, lengths, target_in)
    return out


def ids(numbers):
    return torch.tensor(numbers, dtype=torch.int32)


def columns(sentences):
    """Sentences of ids as [T, B], padded."""
    longest = max(map(len, sentences))
    return ids([s + [PAD] * (longest - len(s)) for s in sentences]).t().contiguous()


def make(directory):
    sources, targets = 11, 13
    for k, (name, options) in enumerate([*STORED.items(), ("transformer", None)]):
        torch.manual_seed(k + 1)
        place = os.path.join(directory, name)
        os.makedirs(place, exist_ok=True)
        sizes = {"source_vocabulary": sources, "target_vocabulary": targets}
        config = {"format": "gradus-translator", "version": 1}
        if options is None:
            config |= {"model": "transformer", "network": {**sizes, **TRANSFORMER}}
        else:
            config |= {"network": {**sizes, **BASE, **options}}
        model = build(config).eval()
        with torch.no_grad():
            model.output.weight *= 5 if options else 1  # so that the most probable words are clear
        with open(os.path.join(place, "config.json"), "w") as f:
            json.dump(config, f, indent=1)
            f.write("\n")
        for side, size in (("source", sources), ("target", targets)):
            words = ["<unk>", "<pad>", "<s>", "</s>"] + [f"w{i}" for i in range(4, size)]
            with open(os.path.join(place, side + ".vocab"), "w") as f:
                f.write("\n".join(words) + "\n")
        source = [torch.randint(4, sources, (n,)).tolist() + [EOS] for n in (4, 1, 6)]
        target = [torch.randint(4, targets, (n,)).tolist() for n in (5, 2, 3)]
        batch = {"source": columns(source), "lengths": ids([len(s) for s in source]),
                 "target_in": columns([[BOS] + t for t in target]),
                 "target_out": columns([t + [EOS] for t in target])}
        save(model, os.path.join(place, "model.safetensors"))
        write_safetensors(os.path.join(place, "batch.safetensors"), batch)
        write_safetensors(os.path.join(place, "numbers.safetensors"), numbers(model, batch))


def refusals(places):
    for place in places:
        with open(os.path.join(place, "config.json")) as f:
            config = json.load(f)
        try:
            build(config)
            print("rebuilt")
        except ValueError as e:
            print(e)


def main():
    torch.set_num_threads(1)
    if sys.argv[1] == "--make":
        return make(sys.argv[2])
    if sys.argv[1] == "--refusals":
        return refusals(sys.argv[2:])
    for place in sys.argv[1:]:
        batch = read_safetensors(os.path.join(place, "batch.safetensors"))
        model = load(place)
        write_safetensors(os.path.join(place, "numbers.safetensors"), numbers(model, batch))
        save(model, os.path.join(place, "trained.safetensors"))


main()
