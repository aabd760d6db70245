#!/usr/bin/env python3
"""Plants damage in a file of pairs and asks `translator doctor` what is wrong with it.

    tests/doctor/plant.py TRANSLATOR pairs.tsv [--each 200] [--block 1000] [--seed 1] [--harder foreign.tsv]
    tests/doctor/plant.py TRANSLATOR --embedded

--harder adds what is harder to see: half a target, two targets in one, and targets of foreign.tsv. Prints for
each kind of damage how many of its lines the doctor would leave out, how many of the lines that
are as they were it would, and where it sees the shifted block. Exit status 1 below 95 % of all planted lines,
above 1 % of the others, or when the block's ends are told wrong by more than ten lines.
"""

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile


def changed_number(pair, rng):
    """One of the numbers that both sides have, another one in the target."""
    both = [n for n in re.findall(r"\d+", pair[0]) if n in re.findall(r"\d+", pair[1])]
    if not both:
        return None
    old = rng.choice(both)
    new = old
    while new.strip("0") == old.strip("0") or abs(int(new) - int(old)) == 12:
        new = str(rng.randint(1, 10 ** len(old)))
    return pair[0], re.sub(rf"(?<!\d){old}(?!\d)", new, pair[1])


def cut(pair, part, least):
    words = pair[1].split(" ")
    return (pair[0], " ".join(words[: len(words) // part])) if len(words) >= least else None


def planted(pairs, each, block, foreign, rng):
    """The damaged pairs; of each line the kind of its damage or None; where the block begins."""
    pairs = [tuple(p) for p in pairs]
    kinds = [None] * len(pairs)
    begin = rng.randrange(len(pairs) // 4, len(pairs) // 2)
    shift = 3
    targets = [p[1] for p in pairs[begin : begin + block]]
    for i in range(block):
        pairs[begin + i] = (pairs[begin + i][0], targets[(i - shift) % block])
        kinds[begin + i] = "shifted"
    damage = {
        "duplicate": lambda p: rng.choice(pairs[: len(pairs) // 4]),
        "copy": lambda p: (p[0], p[0]) if len(p[0].split()) > 2 else None,
        "empty": lambda p: (p[0], rng.choice(["", " "])),
        "swapped": lambda p: (p[1], p[0]),
        "numbers": lambda p: changed_number(p, rng),
        "markup": lambda p: (p[0], rng.choice(["<b>{}</b>", "{} &nbsp;", "%s {}", "<br/>{}"]).format(p[1])),
        "wrong": lambda p: (p[0], rng.choice(pairs)[1]),
        "cut": lambda p: cut(p, 4, 8),
    }
    if foreign:
        damage["half"] = lambda p: cut(p, 2, 4)
        damage["appended"] = lambda p: (p[0], p[1] + " " + rng.choice(pairs)[1])
        damage["foreign"] = lambda p: (p[0], rng.choice(foreign)[1])
    for kind, change in damage.items():
        # Lines that are damaged stand behind those that are repeated.
        lines = list(range(len(pairs) // 4, len(pairs)))
        rng.shuffle(lines)
        done = 0
        for i in lines:
            if done == each:
                break
            new = change(pairs[i]) if kinds[i] is None else None
            if new is None or new == pairs[i]:
                continue
            pairs[i], kinds[i] = new, kind
            done += 1
    return pairs, kinds, begin, shift


def diagnosis(translator, path):
    command = [translator, "doctor", path, "--json", "--seconds", "0"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 1) or not done.stdout:
        sys.exit(done.stderr)
    found = json.loads(done.stdout)
    reasons = {}
    for finding in found["findings"]:
        if finding["left_out"]:
            for line in finding["lines"]:
                reasons.setdefault(line, finding["kind"])
    return found, reasons


def read(path):
    with open(path, encoding="utf8", newline="\n") as file:
        return [line.rstrip("\n").split("\t")[:2] for line in file]


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("translator")
    options.add_argument("pairs", nargs="?")
    options.add_argument("--embedded", action="store_true", help="sentences of the built-in grammar")
    options.add_argument("--each", type=int, default=200, help="lines of each kind of damage")
    options.add_argument("--block", type=int, default=1000, help="lines whose targets are moved by 3")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--harder", metavar="FILE", help="harder kinds, too; targets of FILE among them")
    options.add_argument("--show", action="store_true", help="print what was not found")
    o = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        if o.embedded:
            o.pairs = scratch + "/sound.tsv"
            subprocess.run([o.translator, "corpus", "-n", "4000", "-o", o.pairs], check=True)
        foreign = read(o.harder) if o.harder else []
        pairs, kinds, begin, shift = planted(read(o.pairs), o.each, o.block, foreign, random.Random(o.seed))
        _, before = diagnosis(o.translator, o.pairs)
        with open(scratch + "/damaged.tsv", "w", encoding="utf8", newline="\n") as file:
            file.writelines(f"{s}\t{t}\n" for s, t in pairs)
        found, reasons = diagnosis(o.translator, scratch + "/damaged.tsv")

    total = hits = 0
    for kind in sorted(set(k for k in kinds if k)):
        lines = [i + 1 for i, k in enumerate(kinds) if k == kind]
        seen = [line for line in lines if line in reasons]
        total, hits = total + len(lines), hits + len(seen)
        print(f"{kind:10} {len(lines):6} planted, {100 * len(seen) / len(lines):6.1f} % found")
        if o.show:
            for line in [line for line in lines if line not in reasons][:15]:
                print("     missed", line, pairs[line - 1])
    clean = [i + 1 for i, k in enumerate(kinds) if k is None]
    blamed = [line for line in clean if line in reasons]
    print(f"{'all':10} {total:6} planted, {100 * hits / total:6.1f} % found")
    print(f"{'unharmed':10} {len(clean):6} lines, {100 * len(blamed) / len(clean):.2f} % blamed, "
          f"{sum(line in before for line in blamed)} of these {len(blamed)} in the file as it was, too")
    told = [(b["first"], b["last"], b["shift"]) for b in found["shifted"]]
    print(f"block: lines {begin + 1} to {begin + o.block}, targets {shift} lines down; told: {told}")
    named = len(told) == 1 and told[0][2] == shift
    near = named and abs(told[0][0] - begin - 1) <= 10 and abs(told[0][1] - begin - o.block) <= 10
    good = hits >= 0.95 * total and len(blamed) <= 0.01 * len(clean) and near
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
