"""A short run of tests/fuzz/surface.py; CONTRIBUTING.md says how to make a long one."""

import pathlib
import subprocess
import sys

SURFACE = pathlib.Path(__file__).resolve().parents[1] / "fuzz" / "surface.py"


def run(*arguments):
    return subprocess.run(
        [sys.executable, str(SURFACE), *arguments], capture_output=True, text=True, timeout=600
    )


def test_no_call_ends_the_process():
    # A number of calls, not of seconds: the same ones on every machine.
    done = run("--calls", "10000", "--jobs", "2", "--limit", "30")
    assert done.returncode == 0, done.stdout + done.stderr
    calls = int(done.stdout.rstrip().rsplit("\n", 1)[-1].split()[0])
    assert calls == 10000, done.stdout


def test_the_fuzzer_sees_what_it_looks_for():
    cases = {
        "__import__('os').abort()": "SIGABRT",
        "__import__('ctypes').string_at(0)": "SIGSEGV",
        "__import__('time').sleep(0.0)": "value",
        "all(True for _ in iter(int, 1))": "timeout",
        "[bytearray(b'x') * (1200 << 20), 1 / 0]": "memory",
        "(_ for _ in ()).throw(SystemError('x'))": "SystemError",
        "kiln.ones(2) + kiln.ones(3)": "error",
        "kiln.ones(2)": "value",
    }
    for source, kind in cases.items():
        # A busy machine may need seconds to fill the memory.
        done = run("--run", source, "--limit", "1" if kind == "timeout" else "20")
        assert done.stdout.split()[0] == kind or (
            kind in ("SystemError", "timeout") and done.stdout.startswith(kind)
        ), (source, done.stdout, done.stderr)
        assert done.returncode == (0 if kind in ("value", "error") else 1)
