"""Programs in PyTorch's plain API, run as they are and with `import kiln as torch`."""

import pathlib
import re
import subprocess
import sys

import pytest

from conftest import HAS_TORCH

FOLDER = pathlib.Path(__file__).parent / "programs"
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.py"))


def with_kiln(text):
    """The program with its imports of torch renamed, and nothing else."""
    text = re.sub(r"^import torch$", "import kiln as torch", text, flags=re.M)
    return re.sub(r"^(import|from) torch\b", r"\1 kiln", text, flags=re.M)


def outputs_of(program, folder):
    """The rows that it prints: a word, and numbers."""
    folder.mkdir()
    path = folder / "program.py"
    path.write_text(program)
    done = subprocess.run(
        [sys.executable, str(path), str(folder)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    return [word for word, *_ in rows], [float(x) for _, *row in rows for x in row]


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, tmp_path):
    text = (FOLDER / f"{name}.py").read_text()
    words, numbers = outputs_of(with_kiln(text), tmp_path / "kiln")
    assert len(words) > 10 and all(abs(x) < 1e6 for x in numbers)
    if HAS_TORCH:
        expected_words, expected = outputs_of(text, tmp_path / "torch")
        assert words == expected_words
        assert numbers == pytest.approx(expected, rel=1e-5, abs=1e-6)
