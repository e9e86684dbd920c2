"""Processes that do different things, come late, fail or are killed, and what the others get to know."""

import os
import re
import signal
import subprocess
import time

import pytest

from process_runs import command, found_by, launch, results

THREE = ["--nproc-per-node", "3"]


def test_different_operations_name_each_other(tmp_path):
    found = results("failures.py", 3, tmp_path, arguments=["mistakes"])
    expected = [
        ("rank 0 did all_reduce (sum) of float32", "did broadcast of float32 with root 0"),
        ("with 12 bytes", "with 16 bytes"),
        ("of float32", "of int32"),
        ("all_reduce (sum)", "all_reduce (max)"),
    ]
    for i, texts in enumerate(expected):
        said = found[1][f"mistake {i}"]
        assert all(text in said for text in texts), said


def test_a_late_process_is_named(tmp_path):
    found = results("failures.py", 3, tmp_path, arguments=["late"])
    assert [one.get("late", "").endswith("for rank 2") for one in found] == [True, True, False]


@pytest.mark.parametrize("how, status", [("killed", 128 + 9), ("raises", 1), ("exits", 7)])
def test_a_process_that_ends_ends_all(how, status, tmp_path):
    began = time.monotonic()
    done = launch(THREE, "failures.py", "kiln", tmp_path, how)
    assert done.returncode == status, done.stderr
    assert time.monotonic() - began < 20
    for rank in (0, 1):
        # The other survivor may have left the group before this one saw that the last process had.
        said = found_by(rank, tmp_path)["error"]
        assert re.search(r"lost the process of rank 2:|lost the processes of ranks [01], 2:", said), said
    assert ("ZeroDivisionError" in done.stderr) is (how == "raises")
    assert not (tmp_path / "kiln-2.json").exists()


def test_restarts(tmp_path):
    done = launch(THREE, "failures.py", "kiln", tmp_path, "restart")
    assert done.returncode == 3 and not list(tmp_path.iterdir())
    done = launch([*THREE, "--max-restarts", "1"], "failures.py", "kiln", tmp_path, "restart")
    assert done.returncode == 0 and len(list(tmp_path.iterdir())) == 3, done.stderr


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_all(number, tmp_path, ctrl_c_counts):
    launcher = subprocess.Popen(
        command(THREE, "failures.py", "kiln", tmp_path, "wait"),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    pids = [int(launcher.stdout.readline()) for _ in range(3)]
    assert all(is_running(pid) for pid in pids)
    launcher.send_signal(number)
    assert launcher.wait(timeout=20) == 128 + number
    assert not any(is_running(pid) for pid in pids)
    launcher.stdout.close()


