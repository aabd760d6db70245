"""JoeyNMT 2.3, on PyTorch."""
import json
import os
import re
import signal

import clock
from system import BATCH, BETWEEN, HEADS, LAYERS, LONGEST, SIZE, System, log_time, often, text_of

TORCH = "2.13.0"


class JoeyNMT(System):
    kit, config, how = "JoeyNMT", "joeynmt.yaml", signal.SIGINT
    # Of PyTorch's two builds the smaller where the index has it. importlib_metadata it forgets to ask for.
    requirements = [[f"torch=={TORCH}+cpu", "joeynmt==2.3.0", "importlib_metadata"],
                    [f"torch=={TORCH}", "joeynmt==2.3.0", "importlib_metadata"]]

    @property
    def schedule(self):
        return {"gru": "constant, times 0.7 once 5 validations brought nothing, as its examples with GRUs",
                "transformer": "warm-up of 1,000 updates and inverse square root, label smoothing 0.1, as its IWSLT "
                               "example"}[self.model]

    def configuration(self):
        def side(name):
            return f"""\
    lang: {name}
    level: word
    max_length: {LONGEST}
    voc_file: {json.dumps(self.data + "/joeynmt.vocabulary")}
    tokenizer_type: none
    tokenizer_cfg: {{pretokenizer: none}}
"""
        n = often(self.minutes)
        schedule = {"gru": "  scheduling: plateau\n  patience: 5\n  decrease_factor: 0.7\n",
                    "transformer": "  scheduling: warmupinversesquareroot\n  learning_rate_warmup: 1000\n"
                                   "  label_smoothing: 0.1\n"}[self.model]
        layers = {"gru": [f"""\
    type: recurrent
    rnn_type: gru
    embeddings: {{embedding_dim: {SIZE}, dropout: 0.2}}
    hidden_size: {SIZE}
    num_layers: 1
    dropout: 0.2
""" + more for more in ("    bidirectional: true\n", """\
    hidden_dropout: 0.2
    input_feeding: true
    init_hidden: bridge
    attention: bahdanau
""")], "transformer": [f"""\
    type: transformer
    num_layers: {LAYERS}
    num_heads: {HEADS}
    embeddings: {{embedding_dim: {SIZE}, scale: true, dropout: 0.2}}
    hidden_size: {SIZE}
    ff_size: {BETWEEN}
    dropout: 0.2
    layer_norm: pre
"""] * 2}[self.model]
        start = {"gru": "  embed_initializer: normal\n  embed_init_weight: 0.1\n  init_rnn_orthogonal: true\n",
                 "transformer": "  embed_initializer: xavier_uniform\n"}[self.model]
        return f"""\
name: {self.model}
joeynmt_version: 2.3.0
model_dir: {json.dumps(self.at("model"))}
use_cuda: false
fp16: false
random_seed: 42
num_workers: 0
data:
  train: {json.dumps(self.data + "/train")}
  dev: {json.dumps(self.data + "/valid200")}
  dataset_type: plain
  src:
{side("source")}  trg:
{side("target")}training:
  optimizer: adam
  adam_betas: [0.9, 0.999]
  learning_rate: 0.001
  learning_rate_min: 1.0e-08
{schedule}  clip_grad_norm: 1.0
  normalization: tokens
  loss: crossentropy
  batch_size: {BATCH}
  batch_type: sentence
  early_stopping_metric: ppl
  epochs: 100000
  validation_freq: {n}
  logging_freq: 10
  shuffle: true
  overwrite: true
  keep_best_ckpts: -1
  print_valid_sents: [0]
testing:
  batch_size: 64
  batch_type: sentence
  beam_size: 1
  max_output_length: {LONGEST}
  eval_metrics: [bleu]
  sacrebleu_cfg: {{tokenize: none}}
model:
  initializer: xavier_uniform
  bias_initializer: zeros
{start}  tied_embeddings: true
  tied_softmax: true
  encoder:
{layers[0]}  decoder:
{layers[1]}"""

    @staticmethod
    def mend(site):
        """Its scheduler `plateau` gives PyTorch an option that this one has no more."""
        path = os.path.join(site, "joeynmt", "builders.py")
        text = text_of(path)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text.replace('            "verbose": False,\n', ""))

    def environment(self):
        # Its threads sleep while they wait: where anything else runs, spinning ones stop each other for seconds.
        return {**os.environ, "OMP_NUM_THREADS": str(clock.CORES), "OMP_WAIT_POLICY": "PASSIVE"}

    def train(self, tsv, pieces):
        return [self.venv("python"), "-m", "joeynmt", "train", "--skip-test", self.at(self.config)]

    def limit(self):
        return self.minutes * 60

    def checkpoints(self, started):
        rows = re.findall(r"^Steps: (\d+)\b.*?\bppl: ([\d.]+)", text_of(self.at("model/validations.txt")), re.M)
        losses, found = {int(step): float(loss) for step, loss in rows}, []
        for name in os.listdir(self.at("model")) if os.path.isdir(self.at("model")) else []:
            n = re.fullmatch(r"(\d+)\.ckpt", name)
            if n:  # the one that the signal made it save is not validated
                path = self.at(f"model/{name}")
                found.append((os.stat(path).st_mtime - started, path, losses.get(int(n[1]))))
        return sorted(found, key=lambda c: c[0])

    def progress(self, started):
        rows = re.findall(r"^(\S+ \S+),\d+ .*?(?:Epoch +\d+, Step: +|Interrupt at epoch \d+, step )(\d+)", self.log(), re.M)
        when, step = rows[-1]
        return int(step) * BATCH, log_time(when) - started

    def parameters(self):
        return int(re.search(r"Total params: (\d+)", self.log())[1])

    def translate(self, checkpoint, beam):
        config = self.at(f"translate-{beam}.yaml")
        with open(config, "w", encoding="utf-8") as f:
            f.write(self.configuration().replace(
                "  beam_size: 1\n", f"  beam_size: {beam}\n  beam_alpha: 1.0\n  load_model: {json.dumps(checkpoint)}\n"))
        return [self.venv("python"), "-m", "joeynmt", "translate", config]

    def commands(self):
        return ["pip install joeynmt importlib_metadata", "spm_train --input train.txt --model_prefix pieces",
                "python -m joeynmt train joeynmt.yaml", "python -m joeynmt translate joeynmt.yaml < test.txt"]
