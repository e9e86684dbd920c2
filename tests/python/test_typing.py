"""Types: checkers accept ordinary programs in strict mode and refuse wrong ones."""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import pytest

import kiln
from test_programs import FOLDER, MODELS, PROGRAMS, with_kiln

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("mypy") is None and not os.environ.get("KILN_CI"),
    reason="mypy is not installed (script/bootstrap --python)",
)
PACKAGES = pathlib.Path(kiln.__file__).parents[1]
WRONG = pathlib.Path(__file__).parent / "wrong_types.py"


@pytest.fixture(scope="module")
def mypy(tmp_path_factory):
    """mypy(*arguments, cwd) -> its return code and what it printed. All calls share a cache."""
    cache = tmp_path_factory.mktemp("cache")

    def run(*arguments, cwd):
        command = [sys.executable, "-m", "mypy", "--cache-dir", str(cache), "--no-color-output"]
        done = subprocess.run(
            [*command, "--no-error-summary", *arguments],
            cwd=cwd,
            capture_output=True,
            text=True,
            env={**os.environ, "MYPYPATH": str(PACKAGES)},
        )
        return done.returncode, done.stdout + done.stderr

    return run


def test_the_package(mypy, tmp_path):
    code, printed = mypy("-p", "kiln", cwd=tmp_path)
    assert code == 0, printed


def test_programs_in_strict_mode(mypy, tmp_path):
    names = [*PROGRAMS, *MODELS]
    assert len(names) >= 14
    files = [f"{name.replace('/', '_')}.py" for name in names]
    for name, file in zip(names, files, strict=True):
        (tmp_path / file).write_text(with_kiln((FOLDER / f"{name}.py").read_text()))
    # Errors within the package are the other test's.
    code, printed = mypy("--strict", "--follow-imports=silent", *files, cwd=tmp_path)
    assert code == 0, printed


def test_wrong_programs_are_refused(mypy, tmp_path):
    expected = {}
    for number, line in enumerate(WRONG.read_text().splitlines(), 1):
        if match := re.search(r"# wrong: (.*)$", line):
            expected[number] = sorted(match[1].split(", "))
    assert len(expected) >= 80
    _, printed = mypy("--strict", "--follow-imports=silent", str(WRONG), cwd=tmp_path)
    found = {}
    for match in re.finditer(r"^.*?wrong_types\.py:(\d+): error: .*\[([a-z-]+)\]$", printed, re.M):
        found.setdefault(int(match[1]), []).append(match[2])
    assert {number: sorted(codes) for number, codes in found.items()} == expected, printed
