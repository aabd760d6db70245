"""What tools/new-layer and tools/new-attention share: names, and entries in meson.build files."""

import argparse
import os
import pathlib
import re
import sys


def arguments(what, example):
    parser = argparse.ArgumentParser(description=f"Writes header, source, test and build entries of a new {what}.")
    parser.add_argument("name", help=f"in lower case with _ between words, such as {example}")
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parent.parent, type=pathlib.Path,
                        help="source tree of Gradus (default: the one this tool lies in)")
    given = parser.parse_args()
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", given.name):
        sys.exit(f"{given.name}: a name has lower-case words with _ between them, such as {example}")
    if not (given.root / "nn/gradus/nn/meson.build").is_file():
        sys.exit(f"{given.root}: is no source tree of Gradus: there is no nn/gradus/nn/meson.build")
    return given.name, given.root


def type_name(name):
    return "".join(word.capitalize() for word in name.split("_"))


def must_be_free(root, name, type):
    """Exits where the library has a type of that name: the files written would not compile beside it."""
    named = re.compile(rf"^ *(template <.*> )?(class|struct|concept|enum class|using) {type}\b", re.MULTILINE)
    for part in "lib/gradus", "nn/gradus":
        for header in sorted((root / part).rglob("*.h")):
            if named.search(header.read_text()):
                sys.exit(f"{name}: {header.relative_to(root)} has a type {type} already; choose another name")


def write_all(root, files, entries):
    """files: {path: text}; entries: [(path of a meson.build, anchor, line)]. Changes nothing unless all will do."""
    for path in files:
        if (root / path).exists():
            sys.exit(f"{path} exists already")
    changed = {}
    for path, anchor, line in entries:
        text = changed.get(path) or (root / path).read_text()
        if anchor not in text:
            sys.exit(f"{path} has no line {anchor!r} to put {line!r} behind")
        changed[path] = text.replace(anchor, anchor + line, 1)
    for place in [(root / path).parent for path in files] + [root / path for path in changed]:
        while not place.exists():
            place = place.parent
        if not os.access(place, os.W_OK):
            sys.exit(f"{place}: cannot be written")
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text.lstrip("\n"))
        print(f"wrote   {path}")
    for path, text in changed.items():
        (root / path).write_text(text)
        print(f"entered {path}")
