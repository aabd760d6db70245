"""Before any training: virtual environments, and the same pieces for all."""
import json
import os
import platform
import subprocess
import sys
import time

import clock

HERE = os.path.dirname(os.path.abspath(__file__))
# Cuts text and scores. Versions are part of a score.
SCORING = ["sacrebleu==2.6.0", "sacremoses==0.2.0", "sentencepiece==0.2.3"]
SIDES = ("source", "target")


class Failed(Exception):
    """A step that did not work, in words that say what to do."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def write_json(path, value):
    """Whole or not at all: an interrupted write leaves what was there."""
    with open(path + ".new", "w", encoding="utf-8") as f:
        json.dump(value, f, indent=1, ensure_ascii=False)
        f.write("\n")
    os.replace(path + ".new", path)


def last_lines(path, n=12):
    with open(path, encoding="utf-8", errors="replace") as f:
        lines = ["".join(c if c.isprintable() else "?" for c in line.rstrip("\n")) for line in f]
    return "".join(f"\n  {line[:200]}" for line in lines[-n:])


def checked(what, command, log, **more):
    result = clock.run(command, log, **more)
    if result["code"] != 0:
        raise Failed(f"{what} ended with {result['code']}: `{' '.join(command)}`; {log} ends in{last_lines(log)}")
    return result


def make_venv(work, name, choices, mend=None):
    """`choices`: what to install, and what instead where that is not to be had."""
    folder = os.path.join(work, "venv", name)
    done = os.path.join(folder, "installed")
    if os.path.exists(done):
        return
    log = os.path.join(work, f"install-{name}.txt")
    start = time.monotonic()
    say(f"installing {' '.join(choices[0])} into {folder}: up to some minutes; {log} tells more")
    checked("making a virtual environment (Debian: `apt-get install python3-venv`)",
            [sys.executable, "-m", "venv", "--clear", folder], log)
    for number, packages in enumerate(choices, 1):
        command = [os.path.join(folder, "bin", "pip"), "install", *packages]
        if clock.run(command, log)["code"] == 0:
            break
        if number == len(choices):
            raise Failed(f"pip could not install {' '.join(packages)} (is there a network?); "
                         f"{log} ends in{last_lines(log)}")
        say(f"  not to be had so; trying {' '.join(choices[number])}")
    if mend:
        site = subprocess.run([os.path.join(folder, "bin", "python"), "-c",
                               "import sysconfig; print(sysconfig.get_paths()['purelib'])"],
                              capture_output=True, text=True, check=True).stdout.strip()
        mend(site)
    with open(done, "w", encoding="utf-8") as f:
        f.write(f"{time.monotonic() - start:.0f} s\n")


def install(work, kits):
    make_venv(work, "score", [SCORING])
    for kit in kits:
        if kit.requirements:
            make_venv(work, kit.kit.lower(), kit.requirements, getattr(kit, "mend", None))


def text_work(work, what, *rest, source=None, into=None):
    """text_work.py in its environment; -> what it printed, or None where that went into a file."""
    command = [os.path.join(work, "venv", "score", "bin", "python"), os.path.join(HERE, "text_work.py"), what, *rest]
    out = into or os.path.join(work, "text_work.out")
    log = os.path.join(work, "text_work.txt")
    with open(source or os.devnull, "rb") as given, open(out, "wb") as taken:
        checked(f"text_work.py {what}", command, log, stdin=given, stdout=taken)
    if into:
        return None
    with open(out, encoding="utf-8", newline="\n") as f:
        return f.read()


def read_pairs(path):
    pairs = []
    with open(path, encoding="utf-8", newline="\n") as f:
        try:
            for number, line in enumerate(f, 1):
                columns = line.rstrip("\n").split("\t")
                if len(columns) < 2 or not columns[0].strip() or not columns[1].strip():
                    raise Failed(f"{path}:{number}: a pair is source TAB target, neither empty: put it right or leave "
                                 "it out")
                pairs.append((columns[0], columns[1]))
        except UnicodeDecodeError as error:
            raise Failed(f"{path}: not UTF-8 ({error.reason}): convert it first") from error
    if not pairs:
        raise Failed(f"{path}: holds no pair")
    return pairs


def write_lines(path, lines):
    with open(path, "w", encoding="utf-8", newline="\n") as f:
        f.writelines(line + "\n" for line in lines)


def prove(work, binary, model, sources, cut):
    """Gradus cuts these sentences just as they were cut for the others, or this ends."""
    log, out = os.path.join(work, "prove.txt"), os.path.join(work, "prove.jsonl")
    with open(sources, "rb") as given, open(out, "wb") as taken:
        checked("translator translate", [binary, "translate", model, "--json", "--attention-map", "--pieces",
                                         "--max-length", "1"], log, stdin=given, stdout=taken)
    with open(out, encoding="utf-8") as own, open(cut, encoding="utf-8") as others:
        for number, (a, b) in enumerate(zip(own, others), 1):
            mine = json.loads(a)["attention"]["source"][:-1]
            if mine != b.split():
                raise Failed(f"sentence {number} of {sources} is cut otherwise by Gradus ({mine}) than for the others "
                             f"({b.split()}): not the same work")
    return number


def cut(work, tsv, gradus, pieces):
    """Gradus learns the pieces, as it does at the start of each training; the others are given text that is cut into
    them. -> facts about the data"""
    data = os.path.join(work, "data")
    done = os.path.join(data, "facts.json")
    if os.path.exists(done):
        with open(done, encoding="utf-8") as f:
            return json.load(f)
    os.makedirs(data, exist_ok=True)
    say(f"learning {pieces} pieces, and cutting the text into them")
    learnt = os.path.join(data, "learnt")
    checked("learning the pieces", [gradus.binary, "train", "--data", tsv["train"], "--valid", tsv["valid"],
                                    *gradus.reading(pieces), "--embedding", "8", "--hidden", "8",
                                    "--max-minutes", "0.001", "--out", learnt, "--force"],
            os.path.join(data, "pieces.txt"))
    model = os.path.join(learnt, "pieces.model")
    facts = {}
    for name in ("train", "valid", "test"):
        pairs = read_pairs(tsv[name])
        for side in SIDES:
            raw, ready = os.path.join(data, f"raw.{name}.{side}"), os.path.join(data, f"{name}.{side}")
            write_lines(raw, [pair[SIDES.index(side)] for pair in pairs])
            text_work(work, "pieces", model, source=raw, into=ready)
        facts[f"{name}_pairs"] = len(pairs)
    with open(os.path.join(data, "train.target"), encoding="utf-8") as f:
        facts["pieces_a_pair"] = sum(len(line.split()) + 1 for line in f) / facts["train_pairs"]  # </s> is one
    for side in SIDES:  # JoeyNMT translates them at each validation
        with open(os.path.join(data, f"valid.{side}"), encoding="utf-8") as f:
            write_lines(os.path.join(data, f"valid200.{side}"), f.read().splitlines()[:200])
    tokens = text_work(work, "tokens", model).splitlines()
    write_lines(os.path.join(data, "joeynmt.vocabulary"), ["<unk>", "<pad>", "<s>", "</s>", *tokens])
    write_lines(os.path.join(data, "marian.yml"),
                [f"{json.dumps(token, ensure_ascii=False)}: {i}" for i, token in enumerate(["</s>", "<unk>", *tokens])])
    same = prove(work, gradus.binary, learnt, os.path.join(data, "raw.valid.source"), os.path.join(data, "valid.source"))
    say(f"  {same} sentences are cut alike by Gradus and for the others")
    write_json(done, facts)
    return facts


def megabytes(folder):
    size = 0
    for where, _, names in os.walk(folder):
        size += sum(os.lstat(os.path.join(where, n)).st_blocks * 512 for n in names)
    return size / 1e6


def install_mb(work, system):
    """A virtual environment; of Gradus the program and the libraries that it loads, without the system's C and C++."""
    if system.requirements:
        return megabytes(os.path.join(work, "venv", system.kit.lower()))
    loads = subprocess.run(["ldd", system.binary], capture_output=True, text=True, check=False).stdout
    files = {system.binary}
    for line in loads.splitlines():
        words = line.split()
        if "=>" in words and len(words) > 2 and words[2].startswith("/"):
            files.add(os.path.realpath(words[2]))
    system_own = ("libc.", "libm.", "libstdc++", "libgcc_s", "libpthread", "libdl", "libgomp", "ld-linux")
    return sum(os.path.getsize(f) for f in files if not os.path.basename(f).startswith(system_own)) / 1e6


def machine():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            names = [line.split(":", 1)[1].strip() for line in f if line.startswith("model name")]
    except OSError:
        names = []
    return {"machine": names[0] if names else platform.machine(), "date": time.strftime("%Y-%m-%d")}
