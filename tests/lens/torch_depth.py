#!/usr/bin/env python3
"""torch_depth.py DIR...: what PyTorch makes of the stacks of `lens flow --depth`, for test_depth.cc.

From each directory's kind.json and stack.safetensors (weights, x and target) gradients.safetensors: the loss, dL/dx at what
each layer reads and the last one makes, and dL/dW of each layer's linear2. With residuals and a norm the layers are
torch.nn.TransformerEncoderLayer as they are; the others are put together from its parts.
"""
import json
import os
import sys

import torch
from torch import nn

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
from torch_model import read_safetensors, write_safetensors  # noqa: E402


def part(kind, x, norm, f):
    y = f(norm(x) if kind["norm"] == "first" else x)
    y = x + y if kind["residual"] else y
    return norm(y) if kind["norm"] == "last" else y


def forward(kind, layer, x):
    if kind["residual"] and kind["norm"] != "none":
        return layer(x)
    x = part(kind, x, layer.norm1, lambda v: layer.self_attn(v, v, v, need_weights=False)[0])
    return part(kind, x, layer.norm2, lambda v: layer.linear2(layer.activation(layer.linear1(v))))


def main():
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    for place in sys.argv[1:]:
        with open(os.path.join(place, "kind.json")) as f:
            kind = json.load(f)
        given = read_safetensors(os.path.join(place, "stack.safetensors"))
        x, target = given.pop("x").requires_grad_(), given.pop("target").long()
        E = x.shape[2]
        stack = nn.Module()
        stack.encoder = nn.Module()
        stack.encoder.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(E, kind["heads"], kind["hidden"], 0.0, kind["activation"], norm_first=kind["norm"] == "first")
            for _ in range(kind["layers"]))
        stack.encoder.norm = nn.LayerNorm(E) if kind["norm"] == "first" else None
        stack.output = nn.Linear(E, len(given["output.bias"]))
        stack.load_state_dict(given)
        states = [x]
        for layer in stack.encoder.layers:
            states.append(forward(kind, layer, states[-1]))
        for state in states[1:]:
            state.retain_grad()
        top = stack.encoder.norm(states[-1]) if stack.encoder.norm else states[-1]
        loss = nn.functional.cross_entropy(stack.output(top)[:, 0], target, reduction="sum")
        loss.backward()
        out = {"loss": loss.detach().reshape(1)}
        out |= {"states.%d" % i: state.grad for i, state in enumerate(states)}
        out |= {"weights.%d" % i: layer.linear2.weight.grad for i, layer in enumerate(stack.encoder.layers)}
        write_safetensors(os.path.join(place, "gradients.safetensors"), out)


main()
