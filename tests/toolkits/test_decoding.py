"""test_decoding.py PROGRAM: what tools/bench-decoding says to what it cannot do. The bench itself needs a network."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(sys.argv.pop()).resolve()


class Decoding(unittest.TestCase):
    def said(self, *options):
        with tempfile.TemporaryDirectory() as scratch:
            run = subprocess.run([sys.executable, PROGRAM, "model", "text", "--work", scratch, *options],
                                 capture_output=True, text=True, timeout=60, check=False)
        return run.returncode, run.stderr.strip().splitlines()[-1]

    def test_an_unknown_mode_is_told_with_those_there_are(self):
        code, text = self.said("--modes", "batch-9")
        self.assertEqual(code, 2)
        self.assertTrue(text.endswith("unknown mode 'batch-9': one of batch-64, batch-1, one"), text)

    def test_a_translator_that_is_not_built(self):
        code, text = self.said("--gradus", "nowhere")
        self.assertEqual(code, 1)
        self.assertTrue(text.startswith("bench-decoding: no translator at nowhere: build it with"), text)

    def test_sentences_that_are_not_there(self):
        code, text = self.said("--gradus", sys.executable)
        self.assertEqual((code, text), (1, "bench-decoding: [Errno 2] No such file or directory: 'text'"))


unittest.main()
