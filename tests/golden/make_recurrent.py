#!/usr/bin/env python3
"""Writes data/torch_*.json: what PyTorch's recurrent modules make of small fixed inputs, with all gradients.

    python3 tests/golden/make_recurrent.py        (needs torch; the files in data/ were made by torch 2.13.0)

In double. Same layout as the other golden files, but time first, and the parameters stand under "state_dict" with
their gradients under "parameter_grads": the names are PyTorch's own, which Gradus's modules are loaded with.
Lengths are 4, 1, 3 on a packed sequence. The numbers that go in have three digits, so the files stay readable; the
results have fifteen.
"""
import json
import pathlib

import torch
from torch import nn

T, B, I, H = 4, 3, 2, 3
LENGTHS = [4, 1, 3]
MODULES = {
    "torch_gru": lambda: nn.GRU(I, H, num_layers=2, bidirectional=True),
    "torch_lstm": lambda: nn.LSTM(I, H, num_layers=2, bidirectional=True),
    "torch_lstm_no_bias": lambda: nn.LSTM(I, H, bias=False),
    "torch_rnn_tanh": lambda: nn.RNN(I, H, num_layers=2, bidirectional=True),
    "torch_rnn_relu": lambda: nn.RNN(I, H, nonlinearity="relu"),
}


def tensor(x):
    return {"shape": list(x.shape), "data": [float(f"{v:.15g}") for v in x.detach().flatten().tolist()]}


def rounded(*shape):
    return (torch.rand(*shape, dtype=torch.float64) * 2 - 1).mul(1000).round().div(1000)


def run(name, make):
    torch.manual_seed(7)
    module = make().double()
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(rounded(*p.shape))
    states = module.num_layers * (2 if module.bidirectional else 1)
    inputs = {"x": rounded(T, B, I), "h0": rounded(states, B, H)}
    if isinstance(module, nn.LSTM):
        inputs["c0"] = rounded(states, B, H)
    for v in inputs.values():
        v.requires_grad_()
    packed = nn.utils.rnn.pack_padded_sequence(inputs["x"], torch.tensor(LENGTHS), enforce_sorted=False)
    start = (inputs["h0"], inputs["c0"]) if "c0" in inputs else inputs["h0"]
    packed_output, last = module(packed, start)
    output, _ = nn.utils.rnn.pad_packed_sequence(packed_output, total_length=T)
    outputs = {"output": output}
    outputs.update({"h_n": last[0], "c_n": last[1]} if "c0" in inputs else {"h_n": last})
    upstream = {key: rounded(*value.shape) for key, value in outputs.items()}
    loss = sum((upstream[key] * value).sum() for key, value in outputs.items())
    loss.backward()
    document = {
        "name": name,
        "made_by": f"torch {torch.__version__.split('+')[0]}, tests/golden/make_recurrent.py",
        "config": {"lengths": LENGTHS},
        "inputs": {k: tensor(v) for k, v in inputs.items()},
        "state_dict": {k: tensor(v) for k, v in module.state_dict().items()},
        "outputs": {k: tensor(v) for k, v in outputs.items()},
        "upstream": {k: tensor(v) for k, v in upstream.items()},
        "loss_value": loss.item(),
        "grads": {k: tensor(v.grad) for k, v in inputs.items()},
        "parameter_grads": {k: tensor(p.grad) for k, p in module.named_parameters()},
    }
    path = pathlib.Path(__file__).parent / "data" / f"{name}.json"
    # One tensor a line.
    out = ["{"]
    for i, (key, value) in enumerate(document.items()):
        comma = "," if i + 1 < len(document) else ""
        if isinstance(value, dict) and key != "config":
            out.append(f' "{key}": {{')
            items = list(value.items())
            for j, (k, v) in enumerate(items):
                out.append(f'  "{k}": {json.dumps(v)}' + ("," if j + 1 < len(items) else ""))
            out.append(" }" + comma)
        else:
            out.append(f' "{key}": {json.dumps(value)}' + comma)
    path.write_text("\n".join(out + ["}"]) + "\n")


for name, make in MODULES.items():
    run(name, make)
