"""test_toolkits.py PROGRAM: what tools/bench-toolkits makes of stored results, and what it says to wrong ones."""
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

PROGRAM = pathlib.Path(sys.argv.pop())
STORED = pathlib.Path(__file__).parent / "stored.json"
sys.dont_write_bytecode = True
sys.path.insert(0, str(PROGRAM.parent / "toolkits"))
SVG = "{http://www.w3.org/2000/svg}"


def run(*options):
    return subprocess.run([sys.executable, "-B", PROGRAM, *map(str, options)], capture_output=True, text=True, timeout=50)


def pages(results):
    """-> (the table's lines, the chart) of these results"""
    with tempfile.TemporaryDirectory() as scratch:
        source = pathlib.Path(scratch) / "results.json"
        source.write_text(json.dumps(results))
        done = run("--from", source, "--work", scratch)
        if done.returncode != 0:
            raise ValueError(done.stderr.strip().replace(str(source), "FILE"))
        return ((pathlib.Path(scratch) / "toolkits.md").read_text().splitlines(),
                xml.parse(pathlib.Path(scratch) / "toolkits.svg").getroot())


def stored():
    return json.loads(STORED.read_text())


class Table(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lines, cls.chart = pages(stored())

    def test_a_row_for_each_system_in_the_order_of_models_and_toolkits(self):
        rows = [[c.strip() for c in line.split("|")[1:-1]] for line in self.lines if line.startswith("| ")][2:]
        self.assertEqual([row[:3] for row in rows],
                         [["GRU with attention", "Gradus", "8"], ["GRU with attention", "Gradus", "60"],
                          ["GRU with attention", "Marian", "60"], ["GRU with attention", "JoeyNMT", "60"],
                          ["Transformer", "Gradus", "60"], ["Transformer", "JoeyNMT", "60"]])
        self.assertEqual(rows[3], ["GRU with attention", "JoeyNMT", "60", "20.0 / 21.0", "45.0 / 45.0", "21.0 / 21.0",
                                   "4 min", "80.0", "1,400", "1,078", "2.50 M", "1,600", "4", "63"])
        # The short run had 21 after 4 minutes, no run Marian's 33, and the Transformer 33 after half an hour.
        self.assertEqual([row[6] for row in rows], ["", "", "not within 60 min", "4 min", "", "30 min"])

    def test_it_begins_with_the_command_and_the_picture(self):
        self.assertEqual(self.lines[0], "    tools/bench-toolkits --train train.tsv --valid valid.tsv --test test.tsv "
                                        "--minutes 60 --pieces 4000")
        self.assertEqual(self.lines[2], "![What a translator has learnt after so many minutes on two cores](toolkits.svg)")

    def test_it_says_how_many_cores_each_had(self):
        results = stored()
        results["settings"]["cores"] = 1
        lines, chart = pages(results)
        self.assertIn("--minutes 60 --cores 1 --pieces 4000", lines[0])
        self.assertEqual(lines[2], "![What a translator has learnt after so many minutes on one core](toolkits.svg)")
        self.assertIn("Each had one core", "".join(lines))
        self.assertIn("on one core", chart.attrib["aria-label"])

    def test_it_says_where_gradus_is_behind(self):
        behind = [line for line in self.lines if line.startswith("- ")]
        self.assertEqual(behind, [
            "- GRU with attention, Marian: BLEU greedily 31.0 against 33.0; BLEU with five hypotheses 32.0 against 34.0; "
            "chrF2 greedily 53.0 against 54.5; chrF2 with five hypotheses 53.0 against 54.5; BLEU, lower-cased greedily "
            "32.0 against 34.0; BLEU, lower-cased with five hypotheses 32.0 against 34.0.",
            "- Transformer, JoeyNMT: MB at the peak, 605 against 500."])

    def test_it_says_that_gradus_is_behind_in_none(self):
        results = stored()
        results["systems"] = [s for s in results["systems"] if s["kit"] != "Marian" and s["model"] == "gru"]
        lines, _ = pages(results)
        self.assertIn("Gradus is behind in none of these.", lines)

    def test_text_of_the_file_is_no_markup(self):
        text = "\n".join(self.lines)
        self.assertIn("a &lt;b&gt;fast&lt;/b&gt; &#124; machine", text)
        self.assertIn("plateau &amp; &lt;more&gt;", text)
        self.assertNotIn("<", text)

    def test_chart_has_each_curve_in_both_scores_where_its_numbers_say(self):
        curves = [e for e in self.chart.iter(SVG + "polyline")]
        self.assertEqual(sorted(e.get("class") for e in curves),
                         sorted(["Gradus short", "Gradus", "Marian", "JoeyNMT", "Gradus", "JoeyNMT"] * 2))
        for e in curves:
            points = [tuple(map(float, p.split(","))) for p in e.get("points").split()]
            self.assertTrue(all(math.isfinite(c) and 0 <= c <= 760 for p in points for c in p))
            self.assertEqual(points, sorted(points))  # time goes to the right
            self.assertGreater(points[0][1], points[-1][1])  # and scores upward
        # Marian's 33 BLEU of 40: the panel is 200 high and begins at 92, and an hour is its right edge.
        marian = [e for e in curves if e.get("class") == "Marian"][0]
        self.assertEqual(marian.get("points").split()[-1], "358.0,127.0")

    def test_one_system_alone_is_shown(self):
        for one in stored()["systems"]:
            one["curve"] = one["curve"][-1:]
            lines, chart = pages({**stored(), "systems": [one]})
            self.assertEqual(len([line for line in lines if line.startswith("| ")]), 3)
            self.assertEqual(len(list(chart.iter(SVG + "polyline"))), 2)

    def test_what_took_no_time_is_shown(self):
        results = stored()
        results["settings"]["cores"] = ["many"]
        for one in results["systems"]:
            one["curve"] = [{**one["curve"][-1], "seconds": 0}]
        _, chart = pages(results)
        self.assertEqual(len(list(chart.iter(SVG + "polyline"))), 12)


class Messages(unittest.TestCase):
    def rejected(self, change, text):
        results = stored()
        change(results)
        with self.assertRaises(ValueError) as error:
            pages(results)
        self.assertEqual(str(error.exception),
                         f"bench-toolkits: FILE: {text}: give a results.json that bench-toolkits wrote")

    def test_wrong_results_are_named(self):
        def put(field, value):
            return lambda r: r["systems"][0].update({field: value})
        self.rejected(lambda r: r.update(version=2), "not results of version 1")
        self.rejected(lambda r: r.update(systems={}), "no settings or systems")
        self.rejected(put("kit", "<script>"), "a system without a known kit and model")
        self.rejected(put("model", ["gru"]), "a system without a known kit and model")
        for value in (math.nan, -1, "9", None, True, 10**400):
            self.rejected(put("peak_mb", value), "JoeyNMT gru: peak_mb is not a number of 0 or more")
        self.rejected(put("curve", []), "JoeyNMT gru: no curve")
        self.rejected(lambda r: r["systems"][0]["curve"][1].update(bleu=math.inf),
                      "JoeyNMT gru: a point without bleu, chrf, lower_bleu, seconds")
        self.rejected(put("beam", None), "JoeyNMT gru: a point without bleu, chrf, lower_bleu, seconds")
        self.rejected(lambda r: r["systems"][0]["beam"].update(chrf=1e12), "JoeyNMT gru: a score above 100")

    def test_options(self):
        help_text = run("--help")
        self.assertEqual(help_text.returncode, 0)
        for word in ("--train", "--quick", "--only", "gradus-gru-short", "joeynmt-transformer"):
            self.assertIn(word, help_text.stdout)
        for options, message in (
                ([], "--train is missing: a file with a pair a line, source TAB target (see --help)"),
                (["--from", STORED, "--only", "fairseq"], "unknown system 'fairseq': one of gradus-gru-short, "),
                (["--from", STORED, "--minutes", "nan"], "nan is not a number of minutes above 0"),
                (["--from", STORED, "--pieces", "10"], "--pieces 10 is not from 300 to 100000")):
            done = run(*options)
            self.assertEqual(done.returncode, 2)
            self.assertIn(message, done.stderr)
        done = run("--from", STORED.with_name("none.json"))
        self.assertEqual((done.returncode, "No such file or directory: give a results.json" in done.stderr), (1, True))

    def test_a_file_without_pairs_and_a_missing_program(self):
        done = run("--train", STORED, "--valid", STORED, "--test", STORED, "--gradus", STORED)
        self.assertEqual((done.returncode, done.stderr.strip()),
                         (1, f"bench-toolkits: no translator at {STORED}: build it with `meson setup build && "
                             "ninja -C build`, or name it with --gradus"))


class Parts(unittest.TestCase):
    def test_best_so_far_is_by_loss_where_there_is_one_and_else_the_last(self):
        from running import best_so_far
        losses = [(10, "a", 3.0), (20, "b", 2.0), (30, "c", 2.5)]
        self.assertEqual([best_so_far(losses, t) and best_so_far(losses, t)[1] for t in (5, 10, 25, 40)],
                         [None, "a", "b", "b"])
        self.assertEqual(best_so_far([(10, "a", None), (20, "b", None)], 40)[1], "b")

    def test_a_run_is_told_to_stop_and_measured(self):
        import clock
        import signal
        program = ("import signal, sys, time\nx = bytearray(80_000_000)\n"
                   "signal.signal(signal.SIGINT, lambda *a: sys.exit(7))\nprint('here', flush=True)\ntime.sleep(60)")
        with tempfile.TemporaryDirectory() as scratch:
            log = pathlib.Path(scratch) / "log"
            took = clock.run([sys.executable, "-c", program], log, limit=1.5, how=signal.SIGINT)
            self.assertEqual((took["code"], log.read_text()), (7, "here\n"))
        self.assertTrue(1.5 <= took["seconds"] < 40)
        self.assertTrue(80 < took["peak_mb"] < 400)

    def test_a_line_that_is_no_pair_is_named(self):
        import preparing
        with tempfile.TemporaryDirectory() as scratch:
            path = pathlib.Path(scratch) / "pairs"
            for text, what in (("a\tb\nc\n", ":2: a pair is source TAB target, neither empty: put it right or leave it out"),
                               ("", ": holds no pair")):
                path.write_text(text)
                with self.assertRaises(preparing.Failed) as error:
                    preparing.read_pairs(path)
                self.assertEqual(str(error.exception), f"{path}{what}")
            path.write_text("a\tb\tc\n")
            self.assertEqual(preparing.read_pairs(path), [("a", "b")])


unittest.main()
