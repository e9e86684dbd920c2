"""How the other side of a benchmark is set up: script/bench says it in the environment."""

import os
import pathlib


def processor():
    """"AMD EPYC 9654", or "unknown processor"."""
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown processor"


def environment_of(library):
    """The variables with which a process that serves this library is started."""
    preload = os.environ.get("KILN_BENCH_PRELOAD", "")
    return {"LD_PRELOAD": preload} if library == "torch" and preload else {}


def described(before=""):
    """What PyTorch is set up with, as "jemalloc" behind `before`; "" when nothing."""
    names = os.environ.get("KILN_BENCH_PEER", "")
    return before + names if names else ""
