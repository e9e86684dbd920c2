"""The Python that the pages show runs."""

import pathlib
import pkgutil
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def blocks():
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
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
