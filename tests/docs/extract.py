"""extract.py PAGE DIR [FILE...]: writes the listings of a page, ```cpp file=NAME, into DIR.

extract.py PAGE DIR --all: those of build files as well, ```meson file=NAME and so on.
extract.py PAGE --commands BLOCK: prints the lines of ```sh commands=BLOCK.

With --run PROGRAM BLOCK: runs PROGRAM and looks for the lines of ```text output=BLOCK in what it prints, in order;
... stands for anything.
"""

import pathlib
import re
import subprocess
import sys
import tempfile


def blocks(page, key, language=r"\w+"):
    text = pathlib.Path(page).read_text()
    found = {}
    for name, body in re.findall(r"^```" + language + " " + key + r"=(\S+)\n(.*?)^```$", text, re.M | re.S):
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
    if sys.argv[2] == "--commands":
        print(blocks(sys.argv[1], "commands")[sys.argv[3]], end="")
        return
    page, directory, *names = sys.argv[1:]
    found = blocks(page, "file", r"\w+" if names == ["--all"] else "cpp")
    if names == ["--all"]:
        names = list(found)
    if sorted(found) != sorted(names):
        sys.exit(f"{page} has {sorted(found)}: enter them in tests/docs/meson.build, which has {sorted(names)}")
    for name in names:
        path = pathlib.Path(directory) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(found[name])


main()
