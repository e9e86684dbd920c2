"""Programs in PyTorch's plain API, run as they are and with `import kiln as torch`."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

from conftest import HAS_TORCH

FOLDER = pathlib.Path(__file__).parent / "programs"
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.py"))
# Models as public repositories have them, trained for 20 steps and more.
MODELS = sorted(f"models/{path.stem}" for path in (FOLDER / "models").glob("*.py"))


def with_kiln(text):
    """The program with its imports of torch renamed, and nothing else."""
    text = re.sub(r"^import torch$", "import kiln as torch", text, flags=re.M)
    return re.sub(r"^(import|from) torch\b", r"\1 kiln", text, flags=re.M)


def rows_of(output):
    """What a program prints, as words and numbers."""
    rows = [line.split() for line in output.splitlines()]
    return [word for word, *_ in rows], [float(x) for _, *row in rows for x in row]


def outputs_with_kiln(name, folder):
    path = folder / "program.py"
    path.write_text(with_kiln((FOLDER / f"{name}.py").read_text()))
    done = subprocess.run(
        [sys.executable, str(path), str(folder)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return rows_of(done.stdout)


# Imports PyTorch once, which takes longer than the programs, and runs each in a process of its own.
RUNNER = """
import contextlib, io, os, pathlib, runpy, sys
import torch, torch.nn.utils.rnn, torch.optim.lr_scheduler, torch.utils.data
torch.optim.SGD([torch.zeros(1, requires_grad=True)], 0.1)
root, out, *names = sys.argv[1:]
for name in names:
    folder = pathlib.Path(out) / name
    folder.mkdir(parents=True)
    if os.fork() == 0:
        sys.argv = [name, str(folder)]
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            runpy.run_path(f"{root}/{name}.py", run_name="__main__")
        (folder / "printed").write_text(printed.getvalue())
        os._exit(0)
    os.wait()
"""


@pytest.fixture(scope="module")
def outputs_with_torch(tmp_path_factory):
    """What PyTorch's programs print, by name; None without PyTorch."""
    if not HAS_TORCH:
        return None
    out = tmp_path_factory.mktemp("torch")
    done = subprocess.run(
        [sys.executable, "-c", RUNNER, str(FOLDER), str(out), *PROGRAMS, *MODELS],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "OMP_NUM_THREADS": "1"},  # its threads wait by spinning
    )
    printed = {}
    for name in PROGRAMS + MODELS:
        file = out / name / "printed"
        assert file.exists(), f"{name}: {done.stderr}"
        printed[name] = rows_of(file.read_text())
    return printed


def compare(name, folder, outputs_with_torch, rel, abs_):
    words, numbers = outputs_with_kiln(name, folder)
    assert len(words) > 10 and all(abs(x) < 1e6 for x in numbers)
    if outputs_with_torch is not None:
        expected_words, expected = outputs_with_torch[name]
        assert words == expected_words
        assert numbers == pytest.approx(expected, rel=rel, abs=abs_)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, tmp_path, outputs_with_torch):
    compare(name, tmp_path, outputs_with_torch, 1e-5, 1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_model(name, tmp_path, outputs_with_torch):
    compare(name, tmp_path, outputs_with_torch, 1e-4, 1e-4)
