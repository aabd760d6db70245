"""One system: its training, and after that the translations of what it saved."""
import json
import os
import shutil
import sys
import time

import clock
from preparing import Failed, checked, install_mb, last_lines, say, text_work

PARTS = (1 / 60, 2 / 60, 4 / 60, 8 / 60, 15 / 60, 30 / 60, 45 / 60, 1)  # of the minutes: where the curve has points
QUICK = (1 / 2, 1)
BEAM = 5


def best_so_far(checkpoints, seconds):
    """What the toolkit's user would have at that time: the best validated of all that were there, or the last of those
    that were not; None where there is none."""
    there = [c for c in checkpoints if c[0] <= seconds]
    validated = [c for c in there if c[2] is not None]
    return min(validated, key=lambda c: c[2]) if validated else there[-1] if there else None


def translated(system, a, checkpoint, beam, name):
    """The test's translations by one checkpoint, as text, in the file that is returned, and the seconds they took."""
    data, out, log = system.data, system.at(f"{name}.txt"), system.at(f"{name}.log")
    source = os.path.join(data, "test.source" if system.pieces else "raw.test.source")
    raw = out + ".pieces" if system.pieces else out
    with open(source, "rb") as given, open(raw, "wb") as taken:
        took = checked("translating", system.translate(checkpoint, beam), log, stdin=given, stdout=taken,
                       env=system.environment())["seconds"]
    if system.pieces:
        text_work(system.work, "undo", os.path.join(data, "learnt", "pieces.model"), source=raw, into=out)
    return out, took


def scored(system, a, files):
    references = os.path.join(system.data, "raw.test.target")
    out = text_work(system.work, "score", references, a.languages.split("-")[-1], *files)
    return [json.loads(line) for line in out.splitlines()]


def progress(system):
    """A function for clock.run: tells how far it is, on a terminal all the time, in a file ten times."""
    begin, told, live = time.monotonic(), 0, sys.stderr.isatty()

    def tick():
        nonlocal told
        system.tick()
        minutes = (time.monotonic() - begin) / 60
        now = int(minutes * 60) if live else int(10 * minutes / system.minutes)
        if now > told:
            told = now
            print(f"{chr(13) if live else ''}  trained for {minutes:.1f} of {system.minutes:g} minutes",
                  end="" if live else "\n", file=sys.stderr, flush=True)
    return tick


def run_system(system, tsv, a, facts):
    """-> what results.json has of it"""
    system.write_config()
    log = system.at("log.txt")
    command = system.train(tsv, a.pieces)
    took = clock.run(command, log, limit=system.limit(), how=system.how, tick=progress(system),
                     env=system.environment())
    if sys.stderr.isatty():
        say("")
    if took["code"] != 0 and took["seconds"] < system.minutes * 60:
        raise Failed(f"{os.path.basename(system.folder)} ended with {took['code']} after {took['seconds']:.0f} s: "
                     f"`{' '.join(command)}`; {log} ends in{last_lines(log)}")
    checkpoints = system.checkpoints(took["started"])
    if not checkpoints:
        raise Failed(f"{os.path.basename(system.folder)} saved nothing in {system.minutes:g} minutes (it ended with "
                     f"{took['code']}): give it more --minutes if it was slow; {log} ends in{last_lines(log)}")
    if complaint := system.check():
        raise Failed(f"{os.path.basename(system.folder)}: {complaint}")
    wanted = [round(part * system.minutes * 60) for part in (QUICK if a.quick else PARTS)]
    points, files, chosen = [], [], {}
    for seconds in wanted:
        # What is saved as the time runs out belongs to the end, and is shown at the time when it was there.
        best = best_so_far(checkpoints, seconds + (clock.GRACE if seconds == wanted[-1] else 0))
        if best and best[1] not in chosen:
            chosen[best[1]] = len(files)
            say(f"  translating what was saved after {best[0]:.0f} s")
            files.append(translated(system, a, best[1], 1, f"greedy-{len(files)}")[0])
        if best:
            points.append((max(seconds, best[0]), best))
    say(f"  translating the last with {BEAM} hypotheses")
    wide, seconds = translated(system, a, points[-1][1][1], BEAM, f"beam-{BEAM}")
    *greedy, beam = scored(system, a, [*files, wide])
    sentences, at = system.progress(took["started"])
    result = {"kit": system.kit, "model": system.model, "minutes": system.minutes, "schedule": system.schedule,
              "parameters": system.parameters(), "pieces_per_s": sentences * facts["pieces_a_pair"] / at,
              "passes": sentences / facts["train_pairs"], "peak_mb": took["peak_mb"], "cpu_s": took["cpu_s"],
              "wall_s": took["seconds"], "install_mb": install_mb(system.work, system),
              "commands": system.commands(), "config_lines": system.config_lines(), "command": command,
              "curve": [{"seconds": at, "saved": saved, **greedy[chosen[path]]} for at, (saved, path, _) in points],
              "beam": {**beam, "seconds": seconds}}
    tidy(system)
    return result


def tidy(system):
    """Checkpoints take gigabytes, and are translated."""
    for name in os.listdir(system.folder):
        path = system.at(name)
        if name in ("model", "kept"):
            shutil.rmtree(path)
        elif ".npz" in name:
            os.remove(path)
