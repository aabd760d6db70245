"""One training under the clock: its time, its peak memory, and a signal when the time is over."""
import os
import signal
import subprocess
import time

CORES = 2  # that all have, and so many threads; bench-toolkits --cores
GRACE = 180  # seconds in which a toolkit must save and end once it was told to


def in_child():
    """The same processors for all, and Ctrl-C as the system has it: a shell's & has it ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])


class Process:
    """A command in a process group of its own, so that Ctrl-C is ours to pass on."""

    def __init__(self, command, **more):
        self.child = subprocess.Popen(command, preexec_fn=in_child, start_new_session=True, **more)
        self.code, self.usage = None, None

    def wait(self, seconds):
        """Whether it has ended, after so many seconds at most."""
        end = time.monotonic() + seconds
        while self.code is None:
            # wait4 and not Popen.wait: it tells the memory of this child alone.
            pid, status, usage = os.wait4(self.child.pid, os.WNOHANG)
            if pid:
                self.code = self.child.returncode = os.waitstatus_to_exitcode(status)
                self.usage = usage
            elif time.monotonic() >= end:
                return False
            else:
                time.sleep(0.05)
        return True

    def stop(self):
        """Ends it and all that it started."""
        for what in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.child.pid, what)
            except ProcessLookupError:
                pass
            if self.wait(10):
                return


def run(command, log, limit=None, how=signal.SIGTERM, tick=lambda: None, **more):
    """Runs command with its standard error, and its output unless `stdout` says otherwise, in the file log; after
    `limit` seconds it gets the signal `how`. tick() is called twice a second. Keywords as of subprocess.Popen.
    -> {"code", "seconds", "cpu_s", "peak_mb", "started": since the epoch}"""
    with open(log, "wb") as out:
        started, begin, told = time.time(), time.monotonic(), None
        process = Process(command, **{"stdin": subprocess.DEVNULL, "stdout": out, "stderr": out, **more})
        try:
            while not process.wait(0.5):
                tick()
                seconds = time.monotonic() - begin
                if told is None and limit and seconds >= limit:
                    process.child.send_signal(how)
                    told = seconds
                elif told is not None and seconds > told + GRACE:
                    process.stop()
        finally:
            if process.code is None:
                process.stop()
    tick()
    usage = process.usage
    return {"code": process.code, "seconds": time.monotonic() - begin, "cpu_s": usage.ru_utime + usage.ru_stime,
            "peak_mb": usage.ru_maxrss / 1024, "started": started}
