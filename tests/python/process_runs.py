"""Programs of the folder programs/processes, run as several processes with Kiln and with PyTorch."""

import json
import operator
import os
import pathlib
import subprocess
import sys

from conftest import HAS_TORCH

FOLDER = pathlib.Path(__file__).parent / "programs" / "processes"
LAUNCHER = [sys.executable, "-m", "kiln.distributed.run"]
LIBRARIES = ["kiln", "torch"] if HAS_TORCH else ["kiln"]


def command(options, program, *arguments):
    return [*LAUNCHER, *options, str(FOLDER / program), *map(str, arguments)]


def launch(options, program, *arguments, **variables):
    """The launcher's end, with what the processes printed."""
    return subprocess.run(
        command(options, program, *arguments),
        capture_output=True,
        text=True,
        timeout=60,
        # PyTorch's threads wait by spinning.
        env={**os.environ, "OMP_NUM_THREADS": "1", **variables},
    )


def found_by(rank, folder, library="kiln"):
    return json.loads((folder / f"{library}-{rank}.json").read_text())


def results(program, size, folder, library="kiln", arguments=()):
    """What each of size processes found, by rank."""
    done = launch(["--nproc-per-node", str(size)], program, library, folder, *arguments)
    assert done.returncode == 0, done.stderr
    return [found_by(rank, folder, library) for rank in range(size)]


def both(program, size, folder, arguments=()):
    """results() of Kiln and of PyTorch; without PyTorch Kiln's in its place, too."""
    found = [results(program, size, folder, library, arguments) for library in LIBRARIES]
    return found[0], found[-1]


def is_close(got, expected, tolerance=1e-5):
    """Whether numbers in lists in lists are about the same, and all else the same."""
    if isinstance(got, list):
        same_length = isinstance(expected, list) and len(got) == len(expected)
        return same_length and all(
            is_close(x, y, tolerance) for x, y in zip(got, expected, strict=True)
        )
    if isinstance(got, float):
        return abs(got - expected) <= tolerance * max(1.0, abs(expected))
    return got == expected


def differences(got, expected, same=operator.eq):
    """What the processes found with one library and not with the other."""
    out = []
    for rank, (mine, theirs) in enumerate(zip(got, expected, strict=True)):
        assert list(mine) == list(theirs)
        for name, value in mine.items():
            if not same(value, theirs[name]):
                out.append((rank, name, value, theirs[name]))
    return out
