#!/usr/bin/env python3
"""The translator of `bench train`, in PyTorch: same layers, batches, loss, clipping and Adam, timed alike.

One JSON line for one size, variant and number of threads. tools/bench-peers calls it, after it has seen that
the losses of both are equal when they start from the same weights.

  peer_torch.py --size small --variant luong --threads 2
  peer_torch.py --write-weights w.safetensors --write-batches b.safetensors    and nothing else
  peer_torch.py --load w.safetensors --batches b.safetensors --losses 20       a loss a line

Modes. Without an option: what a good PyTorch user writes. --tuned: what an expert writes (one product over all
steps for the embedding's part of the decoder's input projection, the GRU cell written out, logits for real
target words only, fused Adam). --compile: decoder and loss under torch.compile.
"""
import argparse
import json
import os
import resource
import statistics
import sys
import time

SIZES = {  # vocabulary, embedding, state, batch, length
    "toy": (2000, 64, 128, 32, 10),
    "small": (8000, 256, 256, 64, 16),
    "base": (16000, 512, 512, 64, 24),
}
STEPS = {"toy": 40, "small": 30, "base": 20}
PAD, BOS, FIRST_WORD = 0, 1, 3


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--size", choices=list(SIZES), default="small")
    p.add_argument("--variant", choices=["bahdanau", "luong"], default="bahdanau")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--steps", type=int, default=0, help="timed steps (default 40 toy, 30 small, 20 base)")
    p.add_argument("--warmup", type=int, default=4)
    p.add_argument("--tuned", action="store_true")
    p.add_argument("--compile", action="store_true")
    p.add_argument("--no-train", action="store_true", help="decode only")
    p.add_argument("--no-decode", action="store_true", help="train only")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--load", help="start from these weights")
    p.add_argument("--batches", help="batches from this file")
    p.add_argument("--write-weights")
    p.add_argument("--write-batches")
    p.add_argument("--losses", type=int, default=0, help="print the losses of so many steps")
    return p.parse_args()


args = arguments()
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = str(args.threads)  # read when torch is loaded
try:
    import torch
except ImportError:
    sys.exit("peer_torch.py: no PyTorch here: pip install torch==2.13.0")
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from torch_model import read_safetensors, write_safetensors

torch.set_num_threads(args.threads)


# ---- the model; steps first, [T, B, ...], but annotations [B, S, 2H] ----


def context_of(scores, annotations, padding):
    """scores [B, n, S] -> [B, n, 2H]"""
    return torch.bmm(scores.masked_fill(padding.unsqueeze(1), float("-inf")).softmax(-1), annotations)


class BahdanauDecoder(nn.Module):
    """Query s_{t-1}; the context enters the cell; readout tanh(W_c [s; c; e])."""

    def __init__(self, E, H, tuned):
        super().__init__()
        self.E, self.tuned = E, tuned
        self.w1 = nn.Linear(H, H, bias=False)
        self.w2 = nn.Linear(2 * H, H, bias=False)
        self.v = nn.Parameter(torch.randn(H) / H**0.5)
        self.cell = nn.GRUCell(E + 2 * H, H)
        self.bridge = nn.Linear(H, H)
        self.wc = nn.Linear(3 * H + E, H)

    def start(self, annotations, summary):
        return self.w2(annotations), torch.tanh(self.bridge(summary))

    def context(self, s, keys, annotations, padding):
        scores = torch.tanh(keys + self.w1(s).unsqueeze(1)) @ self.v
        return context_of(scores.unsqueeze(1), annotations, padding).squeeze(1)

    def step(self, e, s, keys, annotations, padding):
        c = self.context(s, keys, annotations, padding)
        s = self.cell(torch.cat([e, c], 1), s)
        return torch.tanh(self.wc(torch.cat([s, c, e], 1))), s

    def written_out(self, gi, s):
        gh = F.linear(s, self.cell.weight_hh, self.cell.bias_hh)
        i_r, i_z, i_n = gi.chunk(3, 1)
        h_r, h_z, h_n = gh.chunk(3, 1)
        z = torch.sigmoid(i_z + h_z)
        n = torch.tanh(i_n + torch.sigmoid(i_r + h_r) * h_n)
        return n + z * (s - n)

    def forward(self, emb, annotations, summary, padding):
        keys, s = self.start(annotations, summary)
        states, contexts = [], []
        if self.tuned:
            w = self.cell.weight_ih
            of_words, of_context = w[:, : self.E], w[:, self.E :]
            gi = F.linear(emb, of_words, self.cell.bias_ih)
        for t in range(emb.size(0)):
            c = self.context(s, keys, annotations, padding)
            if self.tuned:
                s = self.written_out(gi[t] + F.linear(c, of_context), s)
            else:
                s = self.cell(torch.cat([emb[t], c], 1), s)
            states.append(s)
            contexts.append(c)
        return torch.tanh(self.wc(torch.cat([torch.stack(states), torch.stack(contexts), emb], 2)))


class LuongDecoder(nn.Module):
    """Query h_t, "general" scores, no input feeding; readout tanh(W_c [c; h])."""

    def __init__(self, E, H):
        super().__init__()
        self.gru = nn.GRU(E, H)
        self.wa = nn.Linear(2 * H, H, bias=False)
        self.bridge = nn.Linear(H, H)
        self.wc = nn.Linear(3 * H, H)

    def start(self, annotations, summary):
        return self.wa(annotations), torch.tanh(self.bridge(summary))

    def read(self, h, keys, annotations, padding):  # h [B, n, H]
        c = context_of(torch.bmm(h, keys.transpose(1, 2)), annotations, padding)
        return torch.tanh(self.wc(torch.cat([c, h], 2)))

    def step(self, e, s, keys, annotations, padding):
        h, s = self.gru(e.unsqueeze(0), s.unsqueeze(0))
        return self.read(h.transpose(0, 1), keys, annotations, padding).squeeze(1), s.squeeze(0)

    def forward(self, emb, annotations, summary, padding):
        keys, s = self.start(annotations, summary)
        h, _ = self.gru(emb, s.unsqueeze(0))
        return self.read(h.transpose(0, 1), keys, annotations, padding).transpose(0, 1)


class Translator(nn.Module):
    # The names of the parameters are the interface to `bench --load`, see tools/bench/workload.cc.
    def __init__(self, V, E, H, variant, tuned):
        super().__init__()
        self.tuned = tuned
        self.src = nn.Embedding(V, E, padding_idx=PAD)
        self.tgt = nn.Embedding(V, E, padding_idx=PAD)
        self.enc = nn.GRU(E, H, bidirectional=True)
        self.dec = BahdanauDecoder(E, H, tuned) if variant == "bahdanau" else LuongDecoder(E, H)
        self.out = nn.Linear(H, V)

    def encode(self, source, lengths):
        states, last = self.enc(pack_padded_sequence(self.src(source), lengths))
        states, _ = pad_packed_sequence(states, total_length=source.size(0))
        return states.transpose(0, 1).contiguous(), last[1]

    def decoder_loss(self, target_in, target_out, annotations, summary, padding):
        readout = self.dec(self.tgt(target_in), annotations, summary, padding)
        if self.tuned:
            real = target_out != PAD
            return F.cross_entropy(self.out(readout[real]), target_out[real])
        return F.cross_entropy(self.out(readout).flatten(0, 1), target_out.flatten(), ignore_index=PAD)

    def loss(self, b):
        annotations, summary = self.encode(b.source, b.lengths)
        return self.decoder_loss(b.target_in, b.target, annotations, summary, b.padding)

    @torch.no_grad()
    def greedy(self, source, lengths, padding):
        annotations, summary = self.encode(source, lengths)
        keys, s = self.dec.start(annotations, summary)
        word = torch.full((source.size(1),), BOS)
        words = []
        for _ in range(source.size(0)):
            readout, s = self.dec.step(self.tgt(word), s, keys, annotations, padding)
            word = self.out(readout).argmax(1)
            words.append(word)
        return torch.stack(words)


# ---- batches ----


class Batch:
    def __init__(self, source, lengths, target):
        self.source, self.lengths, self.target = source.long(), lengths.long(), target.long()
        T, B = target.shape
        self.padding = (torch.arange(T).unsqueeze(1) >= self.lengths).t().contiguous()
        self.target_in = torch.cat([torch.full((1, B), BOS), self.target[:-1]])
        self.target_tokens = int((self.target != PAD).sum())
        self.tokens = self.target_tokens + int(self.lengths.sum())


def random_batch(V, B, T, generator):
    def lengths():
        return torch.randint(T // 2, T + 1, (B,), generator=generator)

    def words(lengths):
        ids = torch.randint(FIRST_WORD, V, (T, B), generator=generator)
        return ids.masked_fill(torch.arange(T).unsqueeze(1) >= lengths, PAD)

    source_lengths, target_lengths = lengths().sort(descending=True).values, lengths()
    return Batch(words(source_lengths), source_lengths, words(target_lengths))


def write_batches(path, batches):
    tensors = {}
    for k, b in enumerate(batches):
        for name, t in (("source", b.source), ("source_lengths", b.lengths), ("target", b.target)):
            tensors[f"{k}.{name}"] = t.to(torch.int32)
    write_safetensors(path, tensors)


def read_batches(path):
    t = read_safetensors(path)
    count = sum(name.endswith(".source") for name in t)
    return [Batch(t[f"{k}.source"], t[f"{k}.source_lengths"], t[f"{k}.target"]) for k in range(count)]


# ---- measuring ----


def rss_mb():
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def page_faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


class Trainer:
    def __init__(self, model):
        self.model = model
        self.parameters = list(model.parameters())
        self.adam = torch.optim.Adam(self.parameters, lr=1e-3, **({"fused": True} if args.tuned else {}))
        self.phases = {"forward": [], "backward": [], "clip": [], "adam": []}

    def step(self, b):
        at = [time.perf_counter()]
        self.adam.zero_grad(set_to_none=True)
        loss = self.model.loss(b)
        at.append(time.perf_counter())
        loss.backward()
        at.append(time.perf_counter())
        nn.utils.clip_grad_norm_(self.parameters, 1.0)
        at.append(time.perf_counter())
        self.adam.step()
        loss = loss.item()
        at.append(time.perf_counter())
        for k, phase in enumerate(self.phases.values()):
            phase.append((at[k + 1] - at[k]) * 1e3)
        return loss


def train(model, batches, report):
    trainer = Trainer(model)
    report["base_rss_mb"] = rss_mb()
    for k in range(args.warmup):
        trainer.step(batches[k % len(batches)])
    n = args.steps or STEPS[args.size]
    ms, rate, both, faults = [], [], [], page_faults()
    for k in range(n):
        b = batches[k % len(batches)]
        start = time.perf_counter()
        loss = trainer.step(b)
        seconds = time.perf_counter() - start
        ms.append(seconds * 1e3)
        rate.append(b.target_tokens / seconds)
        both.append(b.tokens / seconds)
    ordered = sorted(ms)
    report.update({
        "steps": n,
        "tokens_per_s": round(statistics.median(rate), 1),
        "src_plus_tgt_tokens_per_s": round(statistics.median(both), 1),
        "ms_per_step": round(statistics.median(ms), 3),
        "ms_p10": round(ordered[n // 10], 3),
        "ms_p90": round(ordered[n - 1 - n // 10], 3),
        "phase_ms": {k: round(statistics.median(v[-n:]), 3) for k, v in trainer.phases.items()},
        "page_faults_per_step": (page_faults() - faults) // n,
        "peak_rss_mb": rss_mb(),
        "loss": round(loss, 4),
    })


def decode(model, V, T, generator, report):
    model.eval()
    for B, repeats in ((1, 30), (64, 8)):
        source = torch.randint(FIRST_WORD, V, (T, B), generator=generator)
        lengths, padding = torch.full((B,), T), torch.zeros(B, T, dtype=torch.bool)
        seconds = []
        for _ in range(repeats + 2):
            start = time.perf_counter()
            model.greedy(source, lengths, padding)
            seconds.append(time.perf_counter() - start)
        report[f"decode_b{B}_sentences_per_s"] = round(B / statistics.median(seconds[2:]), 2)


def main():
    V, E, H, B, T = SIZES[args.size]
    torch.manual_seed(args.seed)
    generator = torch.Generator().manual_seed(args.seed)
    model = Translator(V, E, H, args.variant, args.tuned)
    if args.load:
        model.load_state_dict(read_safetensors(args.load))
    if args.batches:
        batches = read_batches(args.batches)
    else:
        batches = [random_batch(V, B, T, generator) for _ in range(8)]
    if args.write_weights:
        write_safetensors(args.write_weights, model.state_dict())
    if args.write_batches:
        write_batches(args.write_batches, batches)
    if args.write_weights or args.write_batches:
        return
    if args.compile:
        model.decoder_loss = torch.compile(model.decoder_loss)
    if args.losses:
        trainer = Trainer(model)
        for k in range(args.losses):
            print(f"{trainer.step(batches[k % len(batches)]):.9f}")
        return
    report = {"framework": "torch", "version": torch.__version__,
              "mode": ("compile" if args.compile else "eager") + (", tuned" if args.tuned else ""),
              "size": args.size, "variant": args.variant, "threads": args.threads,
              "params": sum(p.numel() for p in model.parameters())}
    if not args.no_train:
        train(model, batches, report)
    if not args.no_decode:
        decode(model, V, T, generator, report)
    print(json.dumps(report), flush=True)


main()
