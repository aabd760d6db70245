"""zoo.py OUTPUT LENS_FOLDER [together]: writes one C++ file with all chapters' starters and solutions and all labs in it,
each in a namespace of its own, so that the tests need compile one file and not a hundred. And all solutions with one of
their `+=` set to `=`: lessons/01-chain-rule/set-0, set-1, ... And the mistakes of mistakes.txt in their holes: mistakes/0,
1, ... With `together`: instead the chapters that are put together of other chapters, with the solutions of those."""
import pathlib
import re
import sys

output, root, together = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), len(sys.argv) > 3


def solution(text):
    """What lens hands out with --solution."""
    text = re.sub(r"#ifndef ANSWER\n.*?#endif\n", "", text, flags=re.S)
    return re.sub(r"#ifdef ANSWER\n(.*?)(#else\n.*?)?#endif\n", r"\1", text, flags=re.S)


def with_parts(text):
    """#include "13-scaled-dot.cc" is that chapter's solution."""
    return re.sub(r'#include "(.*?)\.cc"\n', lambda m: solution((root / "lessons" / m[1] / "unit.cc").read_text()), text)


def names(course):
    lines = (root / course / "list.txt").read_text().splitlines()
    all = [line.split()[0] for line in lines if line and not line.startswith("#")]
    return [name for name in all if ('#include "' in (root / course / name / "unit.cc").read_text()) == together]


headers, bodies, programs = {"<cstring>", "<cstdio>", "<lens/lesson.h>"}, [], []
for course, files in (("lessons", ("starter", "solution")), ("labs", ("broken", "fixed"))):
    for name in names(course):
        path = root / course / name / "unit.cc"
        for file in files:
            space = f"{course}_{name}_{file}".replace("-", "_")
            parts = [path] + ([root / course / name / "verify.cc"] if course == "labs" else [])
            for part in parts:
                headers.update(re.findall(r"#include (<.*?>)", with_parts(part.read_text())))
            answer = "#define ANSWER\n" if file in ("solution", "fixed") else "#undef ANSWER\n"
            text = with_parts(path.read_text()) if together else "".join(f'#include "{p}"\n' for p in parts)
            bodies.append(f"{answer}namespace {space} {{\n{text}}}\n")
            programs.append((f"{course}/{name}/{file}", f"{space}::program"))
            if course == "labs":
                programs.append((f"{course}/{name}/{file}/verify", f"{space}::verify"))
for name in names("lessons"):
    text = solution((root / "lessons" / name / "unit.cc").read_text())
    hole, end = text.index("---- your turn"), text.index("---- end ----")
    for k, sum in enumerate(re.finditer(r"\+=", text[hole:end])):
        space = f"lessons_{name}_set_{k}".replace("-", "_")
        at = hole + sum.start()
        bodies.append(f"namespace {space} {{\n{text[:at]}={text[at + 2:]}}}\n")
        programs.append((f"lessons/{name}/set-{k}", f"{space}::program"))
for warning in ("conversion", "unused-parameter", "unused-variable"):  # learners are warned less
    bodies.append(f'#pragma GCC diagnostic ignored "-W{warning}"\n')
lines = (pathlib.Path(__file__).parent / "mistakes.txt").read_text().replace("\\\n", "").splitlines()
for k, line in enumerate(line for line in lines if line and not line.startswith("#") and not together):
    name, code, _ = line.split(" | ")
    text = solution((root / "lessons" / name / "unit.cc").read_text())
    right, arrow, wrong = code.partition(" => ")
    holes = re.split(r"(---- your turn.*?\n)(.*?)(// ---- end ----)", text, flags=re.S)
    for i in range(2, len(holes), 4) if arrow else (2,):
        holes[i] = holes[i].replace(right, wrong) if arrow else code + "\n"
    bodies.append(f"namespace mistake_{k} {{\n{''.join(holes)}}}\n")
    programs.append((f"mistakes/{k}", f"mistake_{k}::program"))
# The files' own includes are done before the namespaces open, and do nothing within them.
text = "".join(f"#include {h}\n" for h in sorted(headers)) + "\n#define main program\n" + "".join(bodies) + "#undef main\n"
text += "\nint main(int argc, char** argv) {\n"
for name, call in programs:
    text += f'  if (argc == 2 && !std::strcmp(argv[1], "{name}")) return {call}();\n'
text += '  std::fprintf(stderr, "no such program\\n");\n  return 99;\n}\n'
output.write_text(text)
