#!/usr/bin/env python3
"""Random graphs of ops with what PyTorch makes of them, a JSON object a line: graphs.py SEED COUNT

    {"inputs": [{"shape", "values", "learned"}], "steps": [{"op", "of": [numbers of values], options}],
     "out": number, "seed": its gradient, "value": of out, "gradients": of learned inputs,
     "keep": [numbers], "kept": their gradients}

Values are numbered: inputs first, then one for each step. All in double. Recent operands are drawn more often, so that
values are used several times, and views of views arise.
"""
import json
import random
import sys

import torch
from torch.nn import functional as F

torch.set_num_threads(1)
kSteps, kLargest = (3, 20), 400  # numbers in a value


def axis(rng, a, *_):
    return {"axis": rng.randrange(a.dim())}


def two_axes(rng, a, *_):
    return {"axis": rng.randrange(a.dim()), "other": rng.randrange(a.dim())}


def part(rng, a, *_):
    along = rng.randrange(a.dim())
    begin = rng.randrange(a.shape[along])
    return {"axis": along, "begin": begin, "end": rng.randint(begin + 1, a.shape[along])}


def place(rng, a, *_):
    along = rng.randrange(a.dim())
    return {"axis": along, "at": rng.randrange(a.shape[along])}


def new_axis(rng, a, *_):
    return {"axis": rng.randint(0, a.dim())}


def mask(rng, a, *_):
    return {"mask": [rng.randint(0, 1) for _ in range(a.numel())]}


def masked(a, o):
    return torch.tensor(o["mask"], dtype=torch.bool).reshape(a.shape)


def attention(q, v, o):
    if q.dim() != 3 or v.dim() != 3 or q.shape[:2] != v.shape[:2]:
        return None
    q, v = (x.transpose(0, 1) for x in (q, v))
    return F.scaled_dot_product_attention(q, q, v, is_causal=o["causal"]).transpose(0, 1)


def nothing(*_):
    return {}


# op: how many operands, its options, PyTorch
OPS = {
    "add": (2, nothing, lambda a, b, o: a + b),
    "sub": (2, nothing, lambda a, b, o: a - b),
    "mul": (2, nothing, lambda a, b, o: a * b),
    "div": (2, nothing, lambda a, b, o: a / (b * b + 1)),
    "maximum": (2, nothing, lambda a, b, o: torch.maximum(a, b)),
    "minimum": (2, nothing, lambda a, b, o: torch.minimum(a, b)),
    "scale": (1, lambda rng, a: {"by": rng.choice([-2, -0.5, 0, 3])}, lambda a, o: a * o["by"]),
    "neg": (1, nothing, lambda a, o: -a),
    "abs": (1, nothing, lambda a, o: a.abs()),
    "square": (1, nothing, lambda a, o: a**2),
    "exp": (1, nothing, lambda a, o: a.exp()),
    "tanh": (1, nothing, lambda a, o: a.tanh()),
    "sigmoid": (1, nothing, lambda a, o: a.sigmoid()),
    "relu": (1, nothing, lambda a, o: a.relu()),
    "gelu": (1, nothing, lambda a, o: F.gelu(a)),
    "softplus": (1, nothing, lambda a, o: F.softplus(a, threshold=1000)),
    "sum": (1, axis, lambda a, o: a.sum(o["axis"])),
    "mean": (1, axis, lambda a, o: a.mean(o["axis"], keepdim=True)),
    "max": (1, axis, lambda a, o: a.amax(o["axis"])),
    "logsumexp": (1, axis, lambda a, o: a.logsumexp(o["axis"])),
    "softmax": (1, axis, lambda a, o: a.softmax(o["axis"])),
    "log_softmax": (1, axis, lambda a, o: a.log_softmax(o["axis"])),
    "matmul": (2, nothing, lambda a, b, o: a @ b if min(a.dim(), b.dim()) > 1 else None),
    "linear": (2, nothing, lambda a, b, o: F.linear(a, b) if b.dim() == 2 else None),
    "layer_norm": (2, nothing, lambda a, b, o: F.layer_norm(a, (a.shape[-1],), b, b) if a.shape[-1] > 2 else None),
    "attention": (2, lambda rng, *_: {"causal": rng.random() < 0.5}, lambda q, v, o: attention(q, v, o)),
    "flatten": (1, nothing, lambda a, o: a.reshape(-1)),
    "transpose": (1, two_axes, lambda a, o: a.transpose(o["axis"], o["other"])),
    "slice": (1, part, lambda a, o: a.narrow(o["axis"], o["begin"], o["end"] - o["begin"])),
    "select": (1, place, lambda a, o: a.select(o["axis"], o["at"])),
    "split": (1, place, lambda a, o: a.split([o["at"], a.shape[o["axis"]] - o["at"]], o["axis"])[1]),
    "concat": (2, axis, lambda a, b, o: torch.cat([a, b], o["axis"])),
    "stack": (2, new_axis, lambda a, b, o: torch.stack([a, b], o["axis"])),
    "expand": (1, lambda rng, a: {"count": rng.randint(1, 3)}, lambda a, o: a.expand(o["count"], *a.shape)),
    "gather_rows": (1, lambda rng, a: {"ids": [rng.randrange(a.shape[0]) for _ in range(rng.randint(1, 5))]},
                    lambda a, o: a[torch.tensor(o["ids"])]),
    "where": (2, mask, lambda a, b, o: torch.where(masked(a, o), a, b) if a.shape == b.shape else None),
    "masked_fill": (1, mask, lambda a, o: a.masked_fill(masked(a, o), 0.5)),
    "tap": (1, nothing, lambda a, o: a * 1),
    "stop_gradient": (1, nothing, lambda a, o: a.detach()),
}


def inputs(rng):
    full = [rng.choice([1, 2, 3, 4]) for _ in range(rng.randint(1, 3))]
    out = []
    for i in range(rng.randint(1, 4)):
        shape = [1 if rng.random() < 0.2 else n for n in full]
        values = torch.tensor([rng.gauss(0, 1) for _ in range(torch.Size(shape).numel())], dtype=torch.double)
        out.append(values.reshape(shape).requires_grad_(i == 0 or rng.random() < 0.9))
    return out


def step(rng, values):
    """A step that can be made, and its value; None where what was drawn does not fit."""
    op = rng.choice(list(OPS))
    operands, options, compute = OPS[op]
    recent = range(max(0, len(values) - 5), len(values))
    of = [rng.choice(recent) if rng.random() < 0.6 else rng.randrange(len(values)) for _ in range(operands)]
    given = [values[i] for i in of]
    try:
        o = options(rng, *given)
        y = compute(*given, o)
    except (RuntimeError, IndexError, ValueError):
        return None
    if y is None or y.dim() > 5 or not 0 < y.numel() <= kLargest or not y.abs().max() < 1e3:
        return None
    return {"op": op, "of": of, **o}, y


def flat(x):
    return x.detach().reshape(-1).tolist()


def graph(rng):
    values = inputs(rng)
    given, steps = list(values), []
    wanted = rng.randint(*kSteps)
    while len(steps) < wanted:
        made = step(rng, values)
        if made:
            steps.append(made[0])
            values.append(made[1])
    out = values[-1]
    if not out.requires_grad:
        return None
    seed = torch.tensor([rng.gauss(0, 1) for _ in range(out.numel())], dtype=torch.double).reshape(out.shape)
    learned = [x for x in given if x.requires_grad]
    keep = sorted({k for k in (rng.randrange(len(values)) for _ in range(3)) if values[k].requires_grad})
    asked = learned + [values[k] for k in keep]
    found = torch.autograd.grad(out, asked, seed, allow_unused=True)
    found = [flat(torch.zeros_like(x) if g is None else g) for g, x in zip(found, asked)]
    if not any(any(g) for g in found[:len(learned)]):
        return None
    return {
        "inputs": [{"shape": list(x.shape), "values": flat(x), "learned": x.requires_grad} for x in given],
        "steps": steps, "out": len(values) - 1, "seed": flat(seed), "value": flat(out),
        "gradients": found[:len(learned)], "keep": keep, "kept": found[len(learned):],
    }


def main():
    seed, count = (int(x) for x in sys.argv[1:])
    rng = random.Random(seed)
    while count > 0:
        made = graph(rng)
        if made:
            print(json.dumps(made))
            count -= 1


if __name__ == "__main__":
    main()
