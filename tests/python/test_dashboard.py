"""Learner(progress="dashboard"): a run on the whole terminal, here one of 80x24 that the test holds."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time

import pytest

PROGRAM = """
import sys, time, kiln
from kiln import nn
from kiln.train import Interrupted, Learner
kiln.manual_seed(1)
net = nn.Linear(4, 2)
x = kiln.randn(64, 4)
y = (x[:, 0] > 0).long()
batches = [(x, y)] * 50
learner = Learner(net, kiln.optim.SGD(net.parameters(), lr=0.1), loss="classification", metrics="accuracy",
                  folder=sys.argv[1], progress="dashboard", title="a small run", log_every=5)
learner.on("batch_start", lambda *_: time.sleep(0.004))
try:
    learner.fit(batches, batches[:2], epochs=int(sys.argv[2]))
    print("came to its end", learner.step)
except Interrupted as stop:
    print("was stopped by", stop, learner.step)
"""


class Terminal:
    """A program in a terminal of its own."""

    def __init__(self, *arguments):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *map(str, arguments)], stdin=slave, stdout=slave,
            stderr=slave, start_new_session=True, env={**os.environ, "TERM": "xterm", "LANG": "C.UTF-8"},
        )  # fmt: skip
        self.seen = ""

    def read(self, seconds=0.05):
        end = time.monotonic() + seconds
        while select.select([self.master], [], [], max(end - time.monotonic(), 0))[0]:
            try:
                self.seen += os.read(self.master, 65536).decode(errors="replace")
            except OSError:
                return
            if time.monotonic() > end:
                return

    def wait_for(self, text):
        end = time.monotonic() + 60
        while text not in self.seen:
            assert time.monotonic() < end and self.process.poll() is None, self.seen[-3000:]
            self.read()

    def press(self, keys):
        os.write(self.master, keys.encode())

    def finish(self):
        while self.process.poll() is None:
            self.read()
        self.read(0.2)
        assert termios.tcgetattr(self.slave) == self.before  # as it was
        os.close(self.slave)
        os.close(self.master)
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.seen.rpartition("\x1b[?1049l")[2])


def test_a_run_to_its_end(tmp_path):
    terminal = Terminal(tmp_path / "run", 3)
    terminal.wait_for("a small run")
    for text in ("loss", "accuracy", "epoch 2/3"):
        terminal.wait_for(text)
    after = terminal.finish()
    assert terminal.process.returncode == 0
    # The lines of the log stand there when the screen is given back.
    assert "epoch 3" in after and "came to its end 150" in after


def test_keys(tmp_path):
    terminal = Terminal(tmp_path / "run", 200)
    terminal.wait_for("running")
    terminal.press("p")
    terminal.wait_for("paused")
    terminal.read(0.3)
    log = (tmp_path / "run" / "log.jsonl").read_text()
    time.sleep(0.3)
    terminal.read()
    assert (tmp_path / "run" / "log.jsonl").read_text() == log  # no step was taken
    terminal.press("p2")
    terminal.press("s")
    terminal.wait_for("A checkpoint is saved after the next step.")
    terminal.press("q")
    after = terminal.finish()
    assert "was stopped by the key q" in after and "Go on with: fit(..., resume=True)" in after
    assert list((tmp_path / "run" / "checkpoints").glob("step-*.pt"))


def test_without_a_terminal(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "run"), "2"], capture_output=True, text=True,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "came to its end 100" in done.stdout and "\x1b" not in done.stdout


def test_one_dashboard_is_closed_by_an_error(tmp_path):
    global PROGRAM
    before = PROGRAM
    PROGRAM = PROGRAM.replace('learner.on("batch_start", lambda', 'learner.on("step_end", lambda l: l.step == 7 and 1 / 0)\nlearner.on("batch_start", lambda')
    try:
        terminal = Terminal(tmp_path / "run", 3)
        after = terminal.finish()
    finally:
        PROGRAM = before
    assert terminal.process.returncode == 1 and "ZeroDivisionError" in after


if not hasattr(pty, "openpty"):
    pytest.skip("no terminals here", allow_module_level=True)
