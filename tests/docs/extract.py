"""extract.py PAGE DIR [FILE...]: writes the listings of a page, ```cpp file=NAME, into DIR.

With --run PROGRAM BLOCK: runs PROGRAM and looks for the lines of ```text output=BLOCK in what it prints, in order;
... stands for anything.
"""

import pathlib
import re
import subprocess
import sys
import tempfile


def blocks(page, key):
    text = pathlib.Path(page).read_text()
    found = {}
    for name, body in re.findall(r"^```\w+ " + key + r"=(\S+)\n(.*?)^```$", text, re.M | re.S):
        found[name] = found.get(name, "") + body
    return found


def main():
    if sys.argv[2] == "--run":
        page, _, program, block = sys.argv[1:]
        wanted = blocks(page, "output")[block].splitlines()
        with tempfile.TemporaryDirectory() as scratch:
            run = subprocess.run([pathlib.Path(program).resolve()], capture_output=True, text=True, cwd=scratch)
        printed = iter(run.stdout.splitlines())
        for line in wanted:
            pattern = ".*".join(re.escape(part) for part in line.split("..."))
            if not any(re.fullmatch(pattern, got) for got in printed):
                sys.exit(f"{page} promises\n  {line}\nbut {block} printed\n{run.stdout}{run.stderr}")
        sys.exit(run.returncode)
    page, directory, *names = sys.argv[1:]
    found = blocks(page, "file")
    if sorted(found) != sorted(names):
        sys.exit(f"{page} has {sorted(found)}: enter them in tests/docs/meson.build, which has {sorted(names)}")
    for name in names:
        (pathlib.Path(directory) / name).write_text(found[name])


main()
