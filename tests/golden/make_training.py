#!/usr/bin/env python3
"""Writes training.json: what PyTorch makes of the losses, optimisers, schedules and clippings of Gradus.

Run with PyTorch 2.13 (any from 2.9 on gives the same numbers):
  tests/golden/make_training.py > tests/golden/training.json
Everything in double. The problem of the optimisers: p starts at `start`, and step k (from 0) has the gradient
g_k = gradients[k] + 0.5 p, so that an error in one step shows in all later ones.
"""
import json
import math

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
STEPS, N = 12, 5


def numbers(t):
    return {"shape": list(t.shape), "data": t.detach().flatten().tolist()}


def wave(*shape, phase=0.0, scale=1.0):
    n = math.prod(shape)
    return torch.tensor([scale * math.sin(1.7 * i + phase) for i in range(n)]).reshape(shape)


def losses():
    x, t = wave(3, 4), wave(3, 4, phase=1.0)
    p = torch.softmax(wave(3, 4, phase=2.0, scale=2), 1)
    unit = (wave(3, 4, phase=3.0) + 1) / 2
    log_p = F.log_softmax(3 * x, 1)
    ids, weight = torch.tensor([2, 0, 3]), torch.tensor([0.5, 1, 2, 3])
    cases = {}

    def case(name, f, arguments):
        arguments = [a.clone().requires_grad_() for a in arguments]
        y = f(*arguments)
        seed = wave(*y.shape, phase=0.5) if y.dim() else torch.tensor(1.0)
        y.backward(seed)
        cases[name] = {"inputs": [numbers(a) for a in arguments], "output": numbers(y), "seed": numbers(seed),
                       "grads": [numbers(a.grad) for a in arguments]}

    for r in ("mean", "sum", "none"):
        case(f"mse {r}", lambda a, b: F.mse_loss(a, b, reduction=r), [x, t])
        case(f"bce {r}", lambda a, b: F.binary_cross_entropy_with_logits(a, b, reduction=r), [40 * x, unit])
        case(f"bce pos_weight {r}", lambda a, b: F.binary_cross_entropy_with_logits(
            a, b, reduction=r, pos_weight=torch.tensor(3.0)), [x, unit])
        case(f"nll {r}", lambda a: F.nll_loss(a, ids, reduction=r), [log_p])
        case(f"nll weight {r}", lambda a: F.nll_loss(a, ids, weight, ignore_index=0, reduction=r), [log_p])
        case(f"cross_entropy {r}", lambda a: F.cross_entropy(
            a, ids, label_smoothing=0.1, ignore_index=3, reduction=r), [3 * x])
    for r in ("mean", "sum", "none", "batchmean"):
        case(f"kl {r}", lambda a, b: F.kl_div(a, b, reduction=r), [log_p, p])
        case(f"kl log {r}", lambda a, b: F.kl_div(a, b, reduction=r, log_target=True), [log_p, p.log()])
    return {"ids": ids.tolist(), "weight": weight.tolist(), "cases": cases}


O = torch.optim
OPTIMIZERS = {  # name -> (class, options)
    "sgd": (O.SGD, dict(lr=0.1)),
    "sgd momentum": (O.SGD, dict(lr=0.1, momentum=0.9, weight_decay=0.1)),
    "sgd dampening": (O.SGD, dict(lr=0.1, momentum=0.9, dampening=0.3)),
    "sgd nesterov": (O.SGD, dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1)),
    "adagrad": (O.Adagrad, dict(lr=0.5)),
    "adagrad all": (O.Adagrad, dict(
        lr=0.5, lr_decay=0.1, weight_decay=0.1, initial_accumulator_value=0.2, eps=1e-3)),
    "rmsprop": (O.RMSprop, dict(lr=0.05)),
    "rmsprop all": (O.RMSprop, dict(
        lr=0.05, alpha=0.9, eps=1e-4, weight_decay=0.1, momentum=0.8, centered=True)),
    "adadelta": (O.Adadelta, dict()),
    "adadelta bahdanau": (O.Adadelta, dict(rho=0.95, eps=1e-6)),
    "adadelta all": (O.Adadelta, dict(lr=0.5, rho=0.8, eps=1e-3, weight_decay=0.1)),
    "adam": (O.Adam, dict(lr=0.05)),
    "adam all": (O.Adam, dict(lr=0.05, betas=(0.8, 0.95), eps=1e-4, weight_decay=0.1)),
    "adamw": (O.AdamW, dict(lr=0.05)),
    "adamw all": (O.AdamW, dict(lr=0.05, betas=(0.8, 0.95), eps=1e-4, weight_decay=0.3)),
}


def optimizers():
    start = wave(N, phase=0.3)
    gradients = [wave(N, phase=0.7 * k) for k in range(STEPS)]
    out = {}
    for name, (make, options) in OPTIMIZERS.items():
        p = start.clone().requires_grad_()
        optimizer = make([p], **options)
        path = []
        for g in gradients:
            p.grad = g + 0.5 * p.detach()
            optimizer.step()
            path.append(p.detach().tolist())
        out[name] = path
    # Two groups: the second has its own learning rate and weight decay.
    p, q = start.clone().requires_grad_(), (start + 1).clone().requires_grad_()
    optimizer = O.AdamW([{"params": [p]}, {"params": [q], "lr": 0.01, "weight_decay": 0.5}], lr=0.05)
    schedule = O.lr_scheduler.StepLR(optimizer, 3, 0.5)
    path = []
    for g in gradients:
        p.grad, q.grad = g + 0.5 * p.detach(), g - 0.5 * q.detach()
        optimizer.step()
        schedule.step()
        path.append([p.detach().tolist(), q.detach().tolist()])
    return {"start": start.tolist(), "gradients": [g.tolist() for g in gradients], "paths": out,
            "groups": path}


def muon():
    """Of matrices, wide and tall, little and much. PyTorch orthogonalises in bfloat16; here in double, as all of this."""
    torch.Tensor.bfloat16 = lambda self: self
    out = {}
    for shape in ((3, 5), (5, 3), (3, 7), (7, 3)):
        p = wave(*shape, phase=0.3).requires_grad_()
        start = numbers(p)
        optimizer = O.Muon([p], lr=0.05, weight_decay=0.3, momentum=0.9, adjust_lr_fn="match_rms_adamw")
        gradients, path = [], []
        for k in range(STEPS):
            gradients.append(wave(*shape, phase=0.7 * k))
            p.grad = gradients[-1] + 0.5 * p.detach()
            optimizer.step()
            path.append(numbers(p))
        out[f"{shape[0]}x{shape[1]}"] = {"start": start, "gradients": [numbers(g) for g in gradients],
                                         "path": path}
    return out


def schedules():
    S = O.lr_scheduler
    cases = {
        "step": lambda o: S.StepLR(o, 3, 0.5),
        "exponential": lambda o: S.ExponentialLR(o, 0.9),
        "cosine": lambda o: S.CosineAnnealingLR(o, 8, 0.01),
        "linear": lambda o: S.LinearLR(o, 1.0, 0.1, 10),
        "linear warm-up": lambda o: S.LinearLR(o, 0.25, 1.0, 4),
        "multi step": lambda o: S.MultiStepLR(o, [2, 5, 6], 0.3),
    }
    out = {}
    for name, make in cases.items():
        o = O.SGD([torch.zeros(1, requires_grad=True)], lr=0.2)
        s, rates = make(o), []
        for _ in range(21):
            rates.append(o.param_groups[0]["lr"])
            o.step()
            s.step()
        out[name] = rates
    metrics = [1.0, 0.9, 0.95, 0.9, 0.89999, 0.9, 0.9, 0.5] + 8 * [0.6] + [0.4] + 4 * [0.7]
    plateau = {
        "default": dict(factor=0.5, patience=2),
        "cooldown": dict(factor=0.5, patience=1, cooldown=2, min_lr=0.02),
        "absolute": dict(factor=0.1, patience=1, threshold=0.05, threshold_mode="abs"),
        "max": dict(mode="max", factor=0.5, patience=3),
    }
    out_plateau = {}
    for name, options in plateau.items():
        o = O.SGD([torch.zeros(1, requires_grad=True)], lr=0.2)
        s, rates = S.ReduceLROnPlateau(o, **options), []
        for m in metrics:
            s.step(m)
            rates.append(o.param_groups[0]["lr"])
        out_plateau[name] = rates
    return {"lr": 0.2, "rates": out, "metrics": metrics, "plateau": out_plateau}


def ema():
    recipe = O.swa_utils.get_ema_multi_avg_fn(0.8)
    average = O.swa_utils.AveragedModel(torch.nn.Linear(2, 1), multi_avg_fn=recipe)
    model, values, averages = torch.nn.Linear(2, 1), [], []
    for k in range(5):
        with torch.no_grad():
            model.weight.copy_(wave(1, 2, phase=k))
            model.bias.copy_(wave(1, phase=2 * k))
        average.update_parameters(model)
        values.append([numbers(model.weight), numbers(model.bias)])
        averages.append([numbers(average.module.weight), numbers(average.module.bias)])
    return {"decay": 0.8, "values": values, "averages": averages}


def gains():
    names = ["linear", "conv2d", "sigmoid", "tanh", "relu", "leaky_relu", "selu"]
    out = {n.replace("conv2d", "conv"): torch.nn.init.calculate_gain(n) for n in names}
    return out | {"leaky_relu 0.2": torch.nn.init.calculate_gain("leaky_relu", 0.2)}


def floats(x):
    """Shorter numbers: 15 digits are below every tolerance."""
    if isinstance(x, float):
        return float(f"{x:.15g}")
    if isinstance(x, dict):
        return {k: floats(v) for k, v in x.items()}
    return [floats(v) for v in x] if isinstance(x, list) else x


PARTS = {"losses": losses, "optimizers": optimizers, "muon": muon, "schedules": schedules, "ema": ema,
         "gains": gains}
lines = [json.dumps("made_by") + ": " + json.dumps(f"tests/golden/make_training.py, PyTorch {torch.__version__}")]
lines += [json.dumps(name) + ": " + json.dumps(floats(part())) for name, part in PARTS.items()]
print("{" + ",\n".join(lines) + "}")
