"""Writes data/transformer_*.json: torch.nn's encoder and decoder layers, post- and pre-LN, in double precision.

    python3 make_transformer.py        (needs PyTorch; the files were made with 2.13)

Numbers in, outputs, and the gradients of sum(upstream * output). Batch first. Padding: memory_lengths / lengths.
"""

import json
import pathlib

import torch
from torch import nn

torch.manual_seed(20)
torch.set_default_dtype(torch.float64)
E, HEADS, FFN, B, T, S = 4, 2, 6, 2, 3, 4
LENGTHS = [4, 3]


def tensor(x):
    data = [float(f"{v:.15g}") for v in x.detach().flatten().tolist()]
    return {"shape": list(x.shape), "data": data}


def rounded(*shape):
    return (torch.rand(*shape) * 2 - 1).mul(100).round().div(100)


def write(name, layer, inputs, run):
    for p in layer.parameters():
        p.data = rounded(*p.shape)
    for x in inputs.values():
        x.requires_grad_(True)
    output = run()
    upstream = rounded(*output.shape)
    (output * upstream).sum().backward()
    parameters = dict(layer.named_parameters())
    everything = {**inputs, **parameters}
    file = {
        "name": name,
        "config": {"heads": HEADS, "lengths": LENGTHS},
        "inputs": {k: tensor(v) for k, v in everything.items()},
        "outputs": {"output": tensor(output)},
        "upstream": {"output": tensor(upstream)},
        "grads": {k: tensor(v.grad) for k, v in everything.items()},
    }
    text = json.dumps(file)
    for key in ("config", "inputs", "outputs", "upstream", "grads"):  # a line for each tensor
        text = text.replace(f'"{key}": {{', f'\n "{key}": {{').replace("]}, ", "]},\n  ")
    path = pathlib.Path(__file__).parent / "data" / f"{name}.json"
    path.write_text(text + "\n")


def padding():
    return torch.arange(S)[None, :] >= torch.tensor(LENGTHS)[:, None]


for norm_first in (False, True):
    kind = "pre" if norm_first else "post"
    options = dict(dim_feedforward=FFN, dropout=0.0, batch_first=True, norm_first=norm_first)
    layer = nn.TransformerEncoderLayer(E, HEADS, activation="gelu" if norm_first else "relu", **options)
    x = rounded(B, S, E)
    write(f"transformer_encoder_layer_{kind}", layer, {"x": x}, lambda: layer(x, src_key_padding_mask=padding()))
    layer = nn.TransformerDecoderLayer(E, HEADS, **options)
    y, memory = rounded(B, T, E), rounded(B, S, E)
    causal = torch.ones(T, T).triu(1).bool()
    write(f"transformer_decoder_layer_{kind}", layer, {"x": y, "memory": memory},
          lambda: layer(y, memory, tgt_mask=causal, memory_key_padding_mask=padding()))
