"""The Python that the pages show runs."""

import pathlib
import pkgutil
import re
import subprocess
import sys

import pytest

from kiln._command import program

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Pages whose blocks build on one another, and the files that they leave.
IN_ORDER = {"tutorial-deployment.md": ["stripes.kiln", "stripes.onnx", "scores.npy", "small.safetensors"]}


def blocks():
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        if path.name in IN_ORDER:
            continue
        text = path.read_text()
        page = path.relative_to(ROOT)
        for i, block in enumerate(re.findall(r"^```python\n(.*?)^```", text, re.S | re.M)):
            yield pytest.param(block, id=f"{page}-{i}")


@pytest.mark.parametrize("block", list(blocks()))
def test_block_runs(block, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", IN_ORDER)
def test_page_runs_in_order(page, tmp_path):
    """Python blocks become the files that their first lines name; shell blocks run them and kiln."""
    try:
        found = program()
    except FileNotFoundError:
        pytest.skip("the program was not built")
    text = (ROOT / "docs" / page).read_text()
    commands = f"set -e\npython() {{ '{sys.executable}' \"$@\"; }}\nkiln() {{ '{found}' \"$@\"; }}\n"
    for kind, block in re.findall(r"^```(python|sh)\n(.*?)^```", text, re.S | re.M):
        if kind == "python":
            name = re.match(r"# (\w+\.py)\n", block)
            assert name, block
            (tmp_path / name[1]).write_text(block)
            continue
        done = subprocess.run(
            ["bash", "-c", commands + block], cwd=tmp_path, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, block + done.stdout + done.stderr
    assert all((tmp_path / name).exists() for name in IN_ORDER[page])


def test_names_of_the_page_for_users_of_pytorch_exist():
    text = (ROOT / "docs" / "coming-from-pytorch.md").read_text()
    names = set(re.findall(r"`(kiln(?:\.\w+)+)[`(]", text))
    assert len(names) > 15
    missing = []
    for name in sorted(names):
        try:
            pkgutil.resolve_name(name)
        except (ImportError, AttributeError):
            missing.append(name)
    assert missing == []
