"""What is compared: how each toolkit is installed, told what to train, stopped, and asked to translate.

Sizes are the same: word vectors and states of 256, all embeddings tied, a GRU of one layer on both sides with additive
attention, or a Transformer of 3 + 3 layers, 4 heads and 1,024 in between; Adam, 64 pairs a step. What else a toolkit
recommends is kept: see `schedule` of each, which the table prints. Of Gradus that is its defaults, chosen by the number of
pairs. Published rates and warm-ups of the others are for millions of pairs and large graphics cards, and Marian's 16,000
updates of warm-up would outlast the hour: here the highest rate is 0.001 and the warm-up shorter, for their good. Updates
of some 64 pairs, too, are what an hour on two cores leaves them time for, and one core the more.
"""
import datetime
import os
import signal

SIZE, LAYERS, HEADS, BETWEEN, BATCH, LONGEST = 256, 3, 4, 1024, 64, 100


def text_of(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    except FileNotFoundError:
        return ""


def often(minutes):
    """Updates between checkpoints: some 25 of them in a run of the slower toolkits."""
    return 10 if minutes <= 2 else 200


def log_time(text):
    """Of a toolkit's log, local time, in seconds since the epoch."""
    return datetime.datetime.strptime(text, "%Y-%m-%d %H:%M:%S").timestamp()


class System:
    """A toolkit with a model. `folder` is where its run lies, `data` where the cut text lies."""

    kit, how = "", signal.SIGTERM
    requirements, config, pieces = [], None, True  # pieces: it reads and writes text that is cut already

    def __init__(self, model, folder, data, minutes, work):
        self.model, self.folder, self.data, self.minutes, self.work = model, folder, data, minutes, work

    def at(self, name):
        return os.path.join(self.folder, name)

    def venv(self, program):
        return os.path.join(self.work, "venv", self.kit.lower(), "bin", program)

    def log(self):
        return text_of(self.at("log.txt"))

    def write_config(self):
        if self.config:
            with open(self.at(self.config), "w", encoding="utf-8") as f:
                f.write(self.configuration())

    def config_lines(self):
        return sum(1 for line in text_of(self.at(self.config)).splitlines() if line.strip()) if self.config else 0

    def tick(self):
        """Called while it trains."""

    def check(self):
        """-> what was wrong with the training, or None."""

    def environment(self):
        return None
