"""From the results of tools/bench-toolkits, and nothing else: a Markdown table, ready for docs/measured.md, and a chart."""
import json
import math
import sys
from html import escape

VERSION = 1
MODELS = {"gru": "GRU with attention", "transformer": "Transformer"}
KITS = ("Gradus", "Marian", "JoeyNMT")
SCORES = {"bleu": "BLEU", "chrf": "chrF2", "lower_bleu": "BLEU, lower-cased"}
NUMBERS = ("minutes", "parameters", "pieces_per_s", "passes", "peak_mb", "install_mb", "config_lines")


def cores(settings):
    n = cell(settings.get("cores", 2))
    return {"1": "one core", "2": "two cores"}.get(n, f"{n} cores")


def title(settings):
    return f"What a translator has learnt after so many minutes on {cores(settings)}"


def read(path):
    """The results of a file, or the program's end with what is wrong in it."""
    def bad(what):
        sys.exit(f"bench-toolkits: {path}: {what}: give a results.json that bench-toolkits wrote")

    def number(value):
        return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e15  # not NaN either

    try:
        with open(path, encoding="utf-8") as f:
            results = json.load(f)
    except OSError as error:
        bad(error.strerror)
    except ValueError as error:
        bad(f"not JSON ({error})")
    if not isinstance(results, dict) or results.get("version") != VERSION:
        bad(f"not results of version {VERSION}")
    if not isinstance(results.get("settings"), dict) or not isinstance(results.get("systems"), list):
        bad("no settings or systems")
    for s in results["systems"]:
        if not isinstance(s, dict) or s.get("kit") not in KITS or s.get("model") not in list(MODELS):
            bad("a system without a known kit and model")
        where = f"{s['kit']} {s['model']}"
        for field in NUMBERS:
            if not number(s.get(field)):
                bad(f"{where}: {field} is not a number of 0 or more")
        if not isinstance(s.get("commands"), list) or not isinstance(s.get("schedule"), str):
            bad(f"{where}: no commands or schedule")
        curve = s.get("curve")
        if not isinstance(curve, list) or not curve:
            bad(f"{where}: no curve")
        for point in [*curve, s.get("beam")]:
            fields = [*SCORES, "seconds"]
            if not isinstance(point, dict) or not all(number(point.get(f)) for f in fields):
                bad(f"{where}: a point without {', '.join(fields)}")
            if max(point[f] for f in SCORES) > 100:
                bad(f"{where}: a score above 100")
    return results


def ordered(results):
    return sorted(results["systems"], key=lambda s: (list(MODELS).index(s["model"]), KITS.index(s["kit"]), s["minutes"]))


def minutes_text(seconds):
    return f"{seconds / 60:.1f}".removesuffix(".0") + " min"


def own_runs(systems, other):
    """Gradus's runs of another toolkit's model."""
    return [s for s in systems if s["kit"] == "Gradus" and s["model"] == other["model"]]


def catches_up(systems, other, score):
    """Seconds after which a run of Gradus with the same model is as good as another's end; None where none is."""
    wanted = other["curve"][-1][score]
    times = [p["seconds"] for s in own_runs(systems, other) for p in s["curve"] if p[score] >= wanted]
    return min(times, default=None)


def losses(systems):
    """Where Gradus's longest run of a model is behind another toolkit's, in sentences."""
    out = []
    for other in systems:
        runs = own_runs(systems, other)
        if other["kit"] == "Gradus" or not runs:
            continue
        own, behind = max(runs, key=lambda s: s["minutes"]), []
        for field, label in SCORES.items():
            for what, end in (("greedily", lambda s: s["curve"][-1]), ("with five hypotheses", lambda s: s["beam"])):
                theirs, ours = (f"{end(s)[field]:.1f}" for s in (other, own))
                if float(theirs) > float(ours):
                    behind.append(f"{label} {what} {ours} against {theirs}")
        late = [minutes_text(p["seconds"]) for p in other["curve"][:-1] if not any(
            q["seconds"] <= p["seconds"] and q["chrf"] >= p["chrf"] for q in own["curve"])]
        if late:
            behind.append(f"chrF2 after {', '.join(late)}")
        for field, label, sign in (("pieces_per_s", "pieces a second", 1), ("peak_mb", "MB at the peak", -1),
                                   ("install_mb", "MB to install", -1)):
            if sign * other[field] > sign * own[field]:
                behind.append(f"{label}, {own[field]:,.0f} against {other[field]:,.0f}")
        if len(other["commands"]) < len(own["commands"]):
            behind.append(f"commands, {len(own['commands'])} against {len(other['commands'])}")
        if behind:
            out.append(f"{MODELS[other['model']]}, {other['kit']}: {'; '.join(behind)}.")
    return out


def cell(text):
    """Text of a stored file, which must not end a cell nor begin markup."""
    return escape(" ".join(str(text).split())).replace("|", "&#124;").replace("`", "'")


def table(results):
    systems, settings = ordered(results), results["settings"]
    head = ["model", "toolkit", "minutes", "BLEU", "chrF2", "BLEU, lower-cased", "Gradus there after", "passes",
            "pieces/s", "peak MB", "parameters", "MB to install", "commands", "lines of configuration"]
    lines = ["| " + " | ".join(head) + " |", "| --- | --- |" + " ---: |" * (len(head) - 2)]
    for s in systems:
        end, beam = s["curve"][-1], s["beam"]
        if s["kit"] == "Gradus":
            there = ""
        else:
            when = catches_up(systems, s, "bleu")
            tried = max((own["minutes"] for own in own_runs(systems, s)), default=0)
            there = minutes_text(when) if when is not None else f"not within {tried:g} min" if tried else "not run"
        row = [MODELS[s["model"]], s["kit"], f"{s['minutes']:g}",
               *(f"{end[f]:.1f} / {beam[f]:.1f}" for f in SCORES), there, f"{s['passes']:.1f}",
               f"{s['pieces_per_s']:,.0f}", f"{s['peak_mb']:,.0f}", f"{s['parameters'] / 1e6:.2f} M",
               f"{s['install_mb']:,.0f}", str(len(s["commands"])), f"{s['config_lines']:.0f}"]
        lines.append("| " + " | ".join(row) + " |")
    behind = losses(systems)
    schedules = {f"{s['kit']}, {MODELS[s['model']]}": s["schedule"] for s in systems}
    facts = [cell(settings[k]) for k in ("machine", "date") if k in settings]
    notes = [
        "Scores of the test's raw text once pieces are undone, greedily / with five hypotheses, at the end of the minutes, "
        "by the model that each toolkit had found best on the validation set; lower-cased: of Moses's tokens, as published "
        "figures. *Gradus there after*: when the same model in Gradus first had that BLEU, greedily. Pieces a second are "
        "of the target, over all of the time; the peak is of resident memory while training; to install: the virtual "
        "environment, and of Gradus the program with its libraries.",
        "All read the same pieces of words" + (f" ({cell(settings['pieces'])}, of both languages)" if "pieces" in settings else "")
        + f": Gradus cuts the text itself, within its time; the others got it cut. Each had {cores(settings)}"
        + (f": {', '.join(facts)}." if facts else "."),
        "Schedules: " + "; ".join(f"{name}: {cell(text)}" for name, text in schedules.items()) + "."]
    options = [f"--{name} {cell(settings[name])}" for name in ("minutes", "short", "cores", "pieces", "languages")
               if name in settings]
    text = f"    {' '.join(['tools/bench-toolkits --train train.tsv --valid valid.tsv --test test.tsv', *options])}\n\n"
    text += f"![{title(settings)}](toolkits.svg)\n\n" + "\n".join(lines) + "\n\n" + "\n\n".join(notes) + "\n\n"
    both = len({s["kit"] for s in systems}) > 1
    if behind:
        text += "Where Gradus is behind:\n\n" + "".join(f"- {line}\n" for line in behind)
    elif both:
        text += "Gradus is behind in none of these.\n"
    return text


STYLE = """\
text { font: 14px system-ui, sans-serif; fill: #18202b; } .quiet { fill: #566071; } .small { font-size: 12px; }
.title { font-size: 17px; font-weight: 600; } .back { fill: #ffffff; } .grid { stroke: #d5dae2; }
polyline { fill: none; stroke-width: 2.5; }
.Gradus { stroke: #08519c; fill: #08519c; } .Marian { stroke: #b85000; fill: #b85000; stroke-dasharray: 9 5; }
.JoeyNMT { stroke: #8a3fa0; fill: #8a3fa0; stroke-dasharray: 2 4; } .short { stroke-width: 1.5; stroke-dasharray: 5 3; }
polyline.Gradus, polyline.Marian, polyline.JoeyNMT { fill: none; } .mark { stroke: none; }
@media (prefers-color-scheme: dark) { .back { fill: #181d25; } text { fill: #e8ebf0; } .quiet { fill: #9aa5b5; }
  .grid { stroke: #343c49; } .Gradus { stroke: #7db8f7; fill: #7db8f7; } .Marian { stroke: #ff9a3d; fill: #ff9a3d; }
  .JoeyNMT { stroke: #d79bea; fill: #d79bea; } }
"""
WIDTH, PANEL_W, PANEL_H, TOP = 760, 302, 200, 92
LEFTS = (56, 438)


def mark(kit, x, y):
    """Each toolkit its own shape: colours alone do not reach everyone."""
    if kit == "Gradus":
        return f'<circle class="mark {kit}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>'
    if kit == "Marian":
        return f'<rect class="mark {kit}" x="{x - 3.5:.1f}" y="{y - 3.5:.1f}" width="7" height="7"/>'
    return f'<path class="mark {kit}" d="M{x:.1f} {y - 4.5:.1f}l4.5 8h-9z"/>'


def is_short(s, systems):
    return any(o["kit"] == s["kit"] and o["model"] == s["model"] and o["minutes"] > s["minutes"] for o in systems)


def time_ticks(low, high):
    steps = [1 / 60, 1 / 30, 1 / 12, 1 / 6, 1 / 4, 1 / 2, 1, 2, 4, 8, 15, 30, 60, 120, 240, 480, 960, 2880, 10080, 100800]
    inside = [m for m in steps if low <= m * 60 * 1.001 and m * 60 <= high * 1.001]
    return inside[::-1][::max(1, math.ceil(len(inside) / 7))][::-1]


def panel(left, top, model, score, systems, span, highest):
    """One model's curves of one score: minutes to the right, on a logarithmic scale."""
    low, high = span
    most = max(10, math.ceil(highest / 10) * 10)

    def x(seconds):
        return left + PANEL_W * math.log(max(seconds, low) / low) / math.log(high / low)

    def y(value):
        return top + PANEL_H * (1 - value / most)

    out = [f'<text class="small" x="{left}" y="{top - 10}">{SCORES[score]}, {MODELS[model]}</text>']
    for value in range(0, most + 1, 20 if most > 60 else 10 if most > 20 else 5):
        out.append(f'<line class="grid" x1="{left}" x2="{left + PANEL_W}" y1="{y(value):.1f}" y2="{y(value):.1f}"/>'
                   f'<text class="quiet small" x="{left - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{value}</text>')
    for m in time_ticks(low, high):
        label = f"{m:g}" if m >= 1 else f"{m * 60:g} s"
        out.append(f'<text class="quiet small" x="{x(m * 60):.1f}" y="{top + PANEL_H + 18}" text-anchor="middle">'
                   f'{label}</text>')
    for s in systems:
        if s["model"] != model:
            continue
        points = [(x(p["seconds"]), y(p[score])) for p in s["curve"]]
        kind = s["kit"] + (" short" if is_short(s, systems) else "")
        out.append(f'<polyline class="{kind}" points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in points)}"/>')
        out += [mark(s["kit"], a, b) for a, b in points]
    return out


def legend(systems):
    out, left = [], 18
    shown = {}
    for s in systems:
        short = is_short(s, systems)
        label = s["kit"] + (f", {s['minutes']:g} minutes planned" if short else "")
        shown.setdefault((s["kit"], short), label)
    for (kit, short), label in sorted(shown.items(), key=lambda item: (KITS.index(item[0][0]), item[0][1])):
        out.append(f'<line class="{kit}{" short" if short else ""}" stroke-width="2.5" x1="{left}" x2="{left + 34}" '
                   f'y1="52" y2="52"/>{mark(kit, left + 17, 52)}'
                   f'<text class="small" x="{left + 42}" y="56">{escape(label)}</text>')
        left += 66 + 7 * len(label)
    return out


def chart(results):
    systems, heading = ordered(results), title(results["settings"])
    models = [m for m in MODELS if any(s["model"] == m for s in systems)]
    times = [p["seconds"] for s in systems for p in s["curve"]]
    low, high = (max(1, f(times, default=60)) for f in (min, max))
    span = (low, high) if high > low else (high / 2, high)
    rows = ("bleu", "chrf")
    height = TOP + len(rows) * (PANEL_H + 68) + 2
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
           f'role="img" aria-label="{escape(heading)}: {escape(", ".join(describe(s) for s in systems))}">',
           f"<style>\n{STYLE}</style>", f'<rect class="back" width="{WIDTH}" height="{height}"/>',
           f'<text class="title" x="18" y="28">{escape(heading)}</text>', *legend(systems)]
    for i, score in enumerate(rows):
        highest = max((p[score] for s in systems for p in s["curve"]), default=0)
        for left, model in zip(LEFTS, models):
            out += panel(left, TOP + i * (PANEL_H + 68), model, score, systems, span, highest)
    out.append(f'<text class="quiet small" x="{WIDTH - 18}" y="{height - 10}" text-anchor="end">'
               'minutes of training, on a logarithmic scale; greedy translations of the test set</text>')
    return "\n".join(out) + "\n</svg>\n"


def describe(s):
    end = s["curve"][-1]
    return f"{s['kit']} {MODELS[s['model']]} BLEU {end['bleu']:.1f} after {minutes_text(end['seconds'])}"
