#!/usr/bin/env python3
"""The translator in PyTorch: rebuilt from a model directory, weights loaded key for key.

  tools/torch_model.py MODEL "she eats apples ."       greedy translation of a tokenised sentence
  tools/torch_model.py MODEL "She eats apples."        of a sentence, by a model of pieces; needs sentencepiece
  tools/torch_model.py MODEL "▁She ▁eats ▁app les ."   of its pieces

    import sys; sys.path.append("tools")
    from torch_model import load
    model = load("model")                              # a torch.nn.Module with the trained weights
    logits = model(source, lengths, target_in)         # [S, B], [B], [T, B] -> [T, B, V]

Both ways: save(model, "model/model.safetensors") writes weights that Gradus reads.
Needs torch only, and for sentences that are to be split into pieces the package sentencepiece.
"""
import argparse
import ctypes
import json
import os
import re
import struct
import sys
import unicodedata

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

UNK, PAD, BOS, EOS = 0, 1, 2, 3
TYPES = {"F16": torch.float16, "F32": torch.float32, "F64": torch.float64, "I32": torch.int32, "U8": torch.uint8}


def read_safetensors(path):
    """@raises ValueError for a file that is not whole, or has numbers of another kind."""
    with open(path, "rb") as f:
        data = bytearray(f.read())
    out = {}
    try:
        size, numbers = struct.unpack_from("<Q", data)[0], torch.frombuffer(data, dtype=torch.uint8)
        for name, e in json.loads(data[8:8 + size]).items():
            if name != "__metadata__":
                begin, end = (8 + size + at for at in e["data_offsets"])
                out[name] = numbers[begin:end].clone().view(TYPES[e["dtype"]]).reshape(e["shape"])
    except (struct.error, ValueError, KeyError, RuntimeError) as error:
        raise ValueError(f"{path}: no safetensors file, or not a whole one ({error})") from error
    return out


def write_safetensors(path, tensors):
    names, header, parts, at = {v: k for k, v in TYPES.items()}, {}, [], 0
    for name, t in tensors.items():
        t = t.detach().contiguous()
        parts.append(ctypes.string_at(t.data_ptr(), t.numel() * t.element_size()))
        header[name] = {"dtype": names[t.dtype], "shape": list(t.shape), "data_offsets": [at, at + len(parts[-1])]}
        at += len(parts[-1])
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(head)) + head + b"".join(parts))


class Additive(nn.Module):
    """e = v . tanh(W1 query + W2 annotation)"""

    def __init__(self, A, Q, D):
        super().__init__()
        self.query, self.key = nn.Linear(Q, A, bias=False), nn.Linear(D, A, bias=False)
        self.v = nn.Parameter(torch.randn(A) / A**0.5)

    def forward(self, query, annotations):  # [B, Q], [S, B, D] -> [S, B]
        return torch.tanh(self.key(annotations) + self.query(query)) @ self.v


class Concat(nn.Module):
    """e = v . tanh(W [query ; annotation])"""

    def __init__(self, A, Q, D):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(A, Q + D) / (Q + D)**0.5)
        self.v = nn.Parameter(torch.randn(A) / A**0.5)

    def forward(self, query, annotations):
        both = torch.cat([query.expand(len(annotations), -1, -1), annotations], 2)
        return torch.tanh(both @ self.weight.t()) @ self.v


class General(nn.Module):
    """e = query . W annotation"""

    def __init__(self, A, Q, D):
        super().__init__()
        self.key = nn.Linear(D, Q, bias=False)

    def forward(self, query, annotations):
        return (self.key(annotations) * query).sum(2)


class Dot(nn.Module):
    def __init__(self, A, Q, D):
        super().__init__()

    def forward(self, query, annotations):
        return (annotations * query).sum(2)


LUONG = {"dot": Dot, "general": General, "luong": General, "concat": Concat}
ATTENTIONS = {"bahdanau": Additive, "additive": Additive, "mlp": Additive, **LUONG}
CELLS = {"gru": (nn.GRU, nn.GRUCell), "lstm": (nn.LSTM, nn.LSTMCell), "rnn": (nn.RNN, nn.RNNCell)}


class Encoder(nn.Module):
    def __init__(self, c, hidden):
        super().__init__()
        self.embedding = nn.Embedding(c["source_vocabulary"], c["embedding_dim"], padding_idx=PAD)
        kind = CELLS[c["cell"]][0]
        self.rnn = kind(c["embedding_dim"], hidden, c["num_layers"], bidirectional=c["bidirectional"])

    def forward(self, source, lengths):
        packed = pack_padded_sequence(self.embedding(source), lengths, enforce_sorted=False)
        states, last = self.rnn(packed)
        states, _ = pad_packed_sequence(states, total_length=len(source))
        return states, last[0] if isinstance(last, tuple) else last  # [S, B, D], [layers * directions, B, H]


class Decoder(nn.Module):
    """Bahdanau's order: the context enters the cell. Luong's: it comes after it. Without attention: the final
    states of the encoder stand where the context would be."""

    def __init__(self, c, order, D, summary):
        super().__init__()
        E, H = c["embedding_dim"], c["hidden_size"]
        self.order, self.feeds, self.maxout = order, c["input_feeding"], c["readout"] == "maxout"
        self.embedding = nn.Embedding(c["target_vocabulary"], E, padding_idx=PAD)
        if order != "none":
            self.attention = ATTENTIONS[c["attention"]](c["attention_size"] or H, H, D)
        self.bridge = nn.Linear(summary, H)
        kind = CELLS[c["cell"]][1]
        self.cell = kind(E + (H * self.feeds if order == "luong" else D), H)
        self.above = nn.ModuleList([kind(H, H) for _ in range(1, c["decoder_layers"])])
        R = 2 * H if self.maxout else H
        if order == "luong":
            self.attention_vector = nn.Linear(D + H, R)
        else:
            self.readout = nn.Linear(H + D + E, R)

    def start(self, last):
        h = torch.tanh(self.bridge(last))
        zero = torch.zeros_like(h)
        return [(h, zero)] * (1 + len(self.above)), zero  # hidden and cell state of each layer, what is fed back

    def advance(self, x, layers):
        out = []
        for cell, (h, c) in zip([self.cell, *self.above], layers):
            out.append(cell(x, (h, c)) if isinstance(cell, nn.LSTMCell) else (cell(x, h), c))
            x = out[-1][0]
        return out

    def context(self, h, annotations, padding):
        weights = self.attention(h, annotations).masked_fill(padding, float("-inf")).softmax(0)
        return (weights.unsqueeze(2) * annotations).sum(0)

    def read(self, x):
        return x.unflatten(1, (-1, 2)).amax(2) if self.maxout else torch.tanh(x)

    def step(self, word, state, annotations, padding, summary):
        y, (layers, fed) = self.embedding(word), state
        if self.order == "luong":
            layers = self.advance(torch.cat([y, fed], 1) if self.feeds else y, layers)
            h = layers[-1][0]
            out = self.read(self.attention_vector(torch.cat([self.context(h, annotations, padding), h], 1)))
            return out, (layers, out)
        context = summary if self.order == "none" else self.context(layers[0][0], annotations, padding)
        layers = self.advance(torch.cat([y, context], 1), layers)
        return self.read(self.readout(torch.cat([layers[-1][0], context, y], 1))), (layers, fed)


class Translator(nn.Module):
    def __init__(self, c):  # config.json's "network"
        super().__init__()
        c = {"cell": "gru", "readout": "tanh", "decoder_layers": 1, **c}
        order = "luong" if c["attention"] in LUONG else "bahdanau"
        order = "none" if c["attention"] == "none" else order if c["decoder"] == "auto" else c["decoder"]
        directions = 2 if c["bidirectional"] else 1
        # Dot attention compares states with annotations: both directions together have the decoder's size.
        H = c["hidden_size"] // directions if c["attention"] == "dot" else c["hidden_size"]
        self.read_of_last = directions if order == "none" else 1  # final states that the decoder starts from
        self.encoder = Encoder(c, H)
        self.decoder = Decoder(c, order, directions * H, self.read_of_last * H)
        self.output = nn.Linear(c["hidden_size"], c["target_vocabulary"])
        if c.get("tie_source"):
            self.encoder.embedding.weight = self.decoder.embedding.weight
        if c.get("tie_embeddings"):
            self.output.weight = self.decoder.embedding.weight

    def encode(self, source, lengths):
        annotations, last = self.encoder(source, lengths)
        padding = torch.arange(len(source)).unsqueeze(1) >= lengths
        summary = torch.cat(list(last[-self.read_of_last:]), 1)
        return self.decoder.start(summary), (annotations, padding, summary)

    def forward(self, source, lengths, target_in):
        state, memory = self.encode(source, lengths)
        out = []
        for word in target_in:
            readout, state = self.decoder.step(word, state, *memory)
            out.append(readout)
        return self.output(torch.stack(out))


class Transformer(nn.Module):
    """The layers are PyTorch's own. Everything is time-major."""

    def __init__(self, c):  # config.json's "network"
        super().__init__()
        E, vocabulary = c["d_model"], c["target_vocabulary"]
        self.scale, self.positions = E**0.5, c["positions"]
        self.source_embedding = nn.Embedding(c["source_vocabulary"], E, padding_idx=PAD)
        self.target_embedding = nn.Embedding(vocabulary, E, padding_idx=PAD)
        for side in ("source", "target"):
            if c["positions"] == "learned":
                setattr(self, side + "_positions", nn.Embedding(c["max_positions"], E))
        options = dict(dim_feedforward=c["dim_feedforward"] or 4 * E, dropout=0.0, activation=c["activation"],
                       norm_first=c["norm_first"])
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(E, c["num_heads"], **options), c["num_layers"],
            nn.LayerNorm(E) if c["norm_first"] else None, enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(
            nn.TransformerDecoderLayer(E, c["num_heads"], **options), c["num_layers"],
            nn.LayerNorm(E) if c["norm_first"] else None)
        self.output = nn.Linear(E, vocabulary)
        if c.get("tie_source"):
            self.source_embedding.weight = self.target_embedding.weight
        if c["tie_embeddings"]:
            self.output.weight = self.target_embedding.weight

    def embed(self, ids, side):
        words = getattr(self, side + "_embedding")
        x, (T, E) = words(ids) * self.scale, (len(ids), words.embedding_dim)
        if self.positions == "learned":
            x = x + getattr(self, side + "_positions").weight[:T].unsqueeze(1)
        elif self.positions == "sinusoidal":
            at = torch.arange(E)
            angle = torch.arange(T).double().unsqueeze(1) / 10000.0**((at - at % 2).double() / E)
            x = x + torch.where(at % 2 == 0, angle.sin(), angle.cos()).float().unsqueeze(1)
        return x

    def forward(self, source, lengths, target_in):
        padding = torch.arange(len(source)) >= lengths.unsqueeze(1)  # [B, S]
        memory = self.encoder(self.embed(source, "source"), src_key_padding_mask=padding)
        ahead = torch.ones(len(target_in), len(target_in), dtype=torch.bool).triu(1)
        words = self.embed(target_in, "target")
        return self.output(self.decoder(words, memory, tgt_mask=ahead, memory_key_padding_mask=padding))


@torch.no_grad()
def greedy(model, source, lengths, steps):
    """[S, B], [B] -> [steps, B], padded behind </s>; <pad> and <s> are never said. Each word is worked out from
    the start again: slow, and short."""
    words, done = torch.full((1, source.size(1)), BOS), torch.zeros(source.size(1), dtype=torch.bool)
    for _ in range(steps):
        logits = model(source, lengths, words)[-1]
        logits[:, [PAD, BOS]] = float("-inf")
        word = logits.argmax(1).masked_fill(done, PAD)
        done |= word == EOS
        words = torch.cat([words, word.unsqueeze(0)])
    return words[1:]


def save(model, path):
    write_safetensors(path, dict(model.named_parameters()))  # tied ones are named, and stored, once


# What config.json may hold, with the values that are rebuilt here; None: any. Dropout is for training alone: a model
# goes on without it.
CONFIG = dict.fromkeys(["network", "source_language", "target_language", "french_typography", "trained_on", "case",
                        "source_folded", "target_folded", "subwords", "subword_model",
                        "source_pieces", "target_pieces", "lowercase"]) | {  # of files before there was "case"
    "format": ["gradus-translator"], "version": [1], "model": ["gru", "transformer"]}
TRANSLATOR = dict.fromkeys(["source_vocabulary", "target_vocabulary", "embedding_dim", "hidden_size", "attention_size",
                            "num_layers", "decoder_layers", "bidirectional", "input_feeding", "dropout",
                            "tie_embeddings", "tie_source", "attention_options"]) | {
    "attention": [*ATTENTIONS, "none"], "decoder": ["auto", "bahdanau", "luong"], "cell": [*CELLS],
    "readout": ["tanh", "maxout"], "layer_norm": [False], "residual": [False], "variational": [False, True],
    "recurrent_dropout": None, "reverse_source": [False]}
# The sizes of attentions that are not rebuilt play no part.
OPTIONS = dict.fromkeys(["heads", "window", "max_positions", "filters", "filter_width"]) | {
    "temperature": [1], "top_k": [0]}
TRANSFORMER = dict.fromkeys(["source_vocabulary", "target_vocabulary", "d_model", "num_heads", "num_layers",
                             "dim_feedforward", "dropout", "norm_first", "max_positions", "tie_embeddings",
                             "tie_source"]) | {
    "temperature": [1], "causal": [True], "activation": ["relu", "gelu"], "positions": ["sinusoidal", "learned", "none"]}


def must_know(known, given):
    for key, value in given.items():
        if key not in known:
            raise ValueError(f"{key} is not known: this model would not be rebuilt as it is")
        if known[key] is not None and value not in known[key]:
            raise ValueError(f"{key} {json.dumps(value)} is not known: only {', '.join(map(json.dumps, known[key]))}")


def build(config):
    """A model from what config.json holds, with PyTorch's own random weights. What is not rebuilt is refused: ValueError."""
    must_know(CONFIG, config)
    network = config["network"]
    if config.get("model") == "transformer":
        must_know(TRANSFORMER, network)
        return Transformer(network)
    must_know(TRANSLATOR, network)
    must_know(OPTIONS, network.get("attention_options", {}))
    return Translator(network)


def read_config(directory):
    path = os.path.join(directory, "config.json")
    with open(path, encoding="utf-8") as f:
        try:
            return json.load(f)
        except ValueError as error:
            raise ValueError(f"{path}: not JSON ({error})") from error


def load(directory):
    model = build(read_config(directory))
    weights = read_safetensors(os.path.join(directory, "model.safetensors"))
    own = dict(model.named_parameters()).keys()  # tied ones once, under their first name, as the file has them
    if own != weights.keys():
        raise ValueError(f"the weights are not this network's: {', '.join(sorted(own ^ weights.keys()))[:300]}")
    model.load_state_dict(weights, strict=False)
    return model.eval()


def vocabulary(directory, side):
    with open(os.path.join(directory, side + ".vocab"), encoding="utf-8") as f:
        return f.read().splitlines()


def first_word(text):
    """Where the first word begins and ends, or None. What French elides (C'), and what English contracts (I'll), are of it."""
    word = re.search(r"\w[\w-]*", text)
    if not word or not word[0][0].isalpha():
        return None
    end = word.start() + len(word[0].rstrip("-"))
    if text[end:end + 1] in tuple("'\u2018\u2019\u201b\u2032\u02bc\uff07\u00b4`"):
        stem, suffix = word[0].lower().rsplit("-", 1)[-1], re.match(r"[^\W\d_]*", text[end + 1:])[0].lower()
        elided = stem in tuple("cçdjlmnst") or stem.endswith("qu")
        contracted = (suffix in ("s", "d", "ll", "re", "ve") or (suffix == "t" and stem.endswith("n")) or
                      (suffix == "m" and stem == "i")) and not (elided and stem + suffix != "nt")
        end += 1 + (len(suffix) if contracted else 0)
    return word.start(), end


def pieces_of(directory, config, sentence):
    """A sentence as Gradus splits it, but for characters that it drops, and rare cases of what the first word is."""
    from sentencepiece import SentencePieceProcessor
    text = " ".join(unicodedata.normalize("NFC", sentence).split())
    if config["case"] == "lower":
        text = text.lower()
    first = first_word(text) if config["case"] == "first" and config.get("source_folded", True) else None
    if first:
        begin, end = first
        word = text[begin:end]
        with open(os.path.join(directory, "source.truecase"), encoding="utf-8") as f:
            keeps_its_capital = word.lower() in f.read().splitlines()
        if word[1:] == word[1:].lower() and not keeps_its_capital:
            text = text[:begin] + word[0].lower() + text[begin + 1:]
    name = "pieces.model" if config["subword_model"] == "joint" else "source.model"
    return SentencePieceProcessor(model_file=os.path.join(directory, name)).encode(" " + text, out_type=str)


def text_of(config, pieces):
    """The text that pieces are; <0xE2> is a byte."""
    raw = b"".join(bytes([int(p[3:5], 16)]) if re.fullmatch("<0x[0-9A-F]{2}>", p) else p.encode() for p in pieces)
    text = " ".join(raw.decode(errors="replace").replace("▁", " ").split())
    if config["case"] != "first" or not config.get("target_folded", True):
        return text
    # Tags in front keep their letters.
    tag = "<[A-Za-z/!?][^<>]*>"
    return re.sub(rf"^((?:{tag}|(?!{tag})[\W_])*)([^\W\d_])", lambda m: m[1] + m[2].upper(), text)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model")
    p.add_argument("sentence", help="tokens with spaces between them, and the answer is such; or, where the model's "
                   "tokens are pieces of words and none of these begins with ▁, a sentence, answered by one")
    a = p.parse_args()
    try:
        config, model = read_config(a.model), load(a.model)
    except (OSError, ValueError) as e:
        sys.exit(f"torch_model: {a.model}: {e}")
    whole = config.get("subwords", "none") != "none" and "▁" not in a.sentence
    try:
        tokens = pieces_of(a.model, config, a.sentence) if whole else a.sentence.split()
    except ImportError:
        sys.exit("torch_model: this model reads pieces of words: `pip install sentencepiece`, or give the pieces with "
                 "spaces between them (`lens explain --json` has them, source)")
    ids = {w: i for i, w in enumerate(vocabulary(a.model, "source"))}
    source = torch.tensor([[ids.get(w, UNK)] for w in tokens] + [[EOS]])
    words = greedy(model, source, torch.tensor([len(source)]), 2 * len(source) + 10)[:, 0].tolist()
    target = vocabulary(a.model, "target")
    said = [target[w] for w in words if w not in (EOS, PAD)]
    print(text_of(config, said) if whole else " ".join(said))


if __name__ == "__main__":
    main()
