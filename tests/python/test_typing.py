"""Types: checkers accept ordinary programs in strict mode and refuse wrong ones."""

import importlib.util
import inspect
import json
import os
import pathlib
import re
import subprocess
import sys
import types

import pytest

import kiln
import kiln.models
import kiln.onnx
import kiln.distributions
import kiln.rl
import kiln.train
import kiln.vision
from test_programs import FOLDER, MODELS, PROGRAMS, with_kiln

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "fuzz"))
from surface_targets import modules  # noqa: E402

pytestmark = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("mypy", "pyright"))
    and not os.environ.get("KILN_CI"),
    reason="mypy or pyright is not installed (script/bootstrap --python)",
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


@pytest.fixture
def pyright(tmp_path):
    """pyright(mode, *files) -> the errors in files of tmp_path, as (file, line, rule).

    It may not look for a newer version of itself in the network.
    """

    def run(mode, *files):
        settings = {"typeCheckingMode": mode, "extraPaths": [str(PACKAGES)], "include": files}
        (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
        done = subprocess.run(
            [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            env={**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},
        )
        assert done.returncode in (0, 1), done.stdout + done.stderr
        report = json.loads(done.stdout)
        assert report["summary"]["filesAnalyzed"] == len(files), report["summary"]
        return [
            (pathlib.Path(e["file"]).name, e["range"]["start"]["line"] + 1, e.get("rule", ""))
            for e in report["generalDiagnostics"]
            if e["severity"] == "error"
        ]

    return run


def test_the_package(mypy, tmp_path):
    code, printed = mypy("-p", "kiln", cwd=tmp_path)
    assert code == 0, printed


def functions_of(space):
    """(name, function) of the functions of Python of a module or a class, those behind decorators."""
    for name, value in vars(space).items():
        if name.startswith("_") and name not in ("__init__", "__call__"):
            continue
        value = getattr(value, "__func__", getattr(value, "fget", value))
        value = inspect.unwrap(value) if callable(value) else value
        if isinstance(value, types.FunctionType) and value.__module__.startswith("kiln"):
            yield f"{space.__name__}.{name}", value


def test_every_public_function_has_types():
    spaces = modules()
    for module in list(spaces):
        values = [v for n, v in vars(module).items() if isinstance(v, type) and n[0] != "_"]
        spaces += [v for v in values if v.__module__.startswith("kiln")]
    functions = {id(f): (name, f) for space in spaces for name, f in functions_of(space)}
    assert len(functions) > 900
    without = []
    for name, function in functions.values():
        code = function.__code__
        # Those that are made of something else have their types in stubs.
        made = code.co_name != function.__name__ or code.co_name == "<lambda>"
        if made or hasattr(function, "__signature__") or not code.co_filename.endswith(".py"):
            continue
        signature = inspect.signature(function)
        parameters = list(signature.parameters.values())
        if "." in function.__qualname__ and parameters[:1]:
            parameters = parameters[parameters[0].name in ("self", "cls") :]
        if any(p.annotation is p.empty for p in parameters) or (
            signature.return_annotation is signature.empty
        ):
            without.append(name)
    assert not without, without


@pytest.fixture
def programs(tmp_path):
    """The names of the ported programs, which are written into tmp_path."""
    names = [*PROGRAMS, *MODELS]
    assert len(names) >= 14
    files = [f"{name.replace('/', '_')}.py" for name in names]
    for name, file in zip(names, files, strict=True):
        (tmp_path / file).write_text(with_kiln((FOLDER / f"{name}.py").read_text()))
    return files


def test_programs_in_strict_mode(mypy, programs, tmp_path):
    # Errors within the package are the other test's.
    code, printed = mypy("--strict", "--follow-imports=silent", *programs, cwd=tmp_path)
    assert code == 0, printed


def test_programs_in_strict_mode_of_pyright(pyright, programs):
    assert pyright("strict", *programs) == []


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


def test_wrong_programs_are_refused_by_pyright(pyright, tmp_path):
    text = WRONG.read_text()
    (tmp_path / WRONG.name).write_text(text)
    expected = {n for n, line in enumerate(text.splitlines(), 1) if "# wrong: " in line}
    assert len(expected) >= 80
    found = pyright("standard", WRONG.name)
    assert {line for _, line, _ in found} == expected, found
