"""The command ``kiln`` of the package."""

import os
import subprocess
import sys

import kiln
from kiln import _command


def test_a_build_without_the_program_says_so():
    done = subprocess.run(
        [sys.executable, "-m", "kiln", "info"], capture_output=True, text=True, env=dict(os.environ)
    )
    try:
        _command.program()
    except FileNotFoundError:
        assert done.returncode == 1
        assert os.path.join(os.path.dirname(kiln.__file__), "bin", "kiln") in done.stderr
    else:
        assert done.returncode == 0, done.stderr
        assert kiln.__version__ in done.stdout


def test_the_program_gets_the_arguments(tmp_path, monkeypatch):
    program = tmp_path / "bin" / "kiln"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "$@"\n')
    program.chmod(0o755)
    child = f"""
import sys
from kiln import _command
_command.__file__ = {str(tmp_path / "_command.py")!r}
sys.argv = ["kiln", "inspect", "a b.onnx"]
_command.main()
"""
    done = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True)
    assert done.stdout == "inspect a b.onnx\n", done.stderr
    assert callable(_command.main)
