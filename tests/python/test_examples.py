"""The programs of examples/python run, for a few steps."""

import pathlib
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"
ARGUMENTS = {
    "cartpole_ppo": ["--updates", "60"],
    "char_gpt": ["--steps", "3", "--width", "32", "--layers", "1", "--save", "net.safetensors"],
    "diffusion_shapes": ["--steps", "2"],
}
# What each prints at its end, and what it leaves behind.
RESULTS = {
    "cartpole_ppo": ("solved\n", None),
    "char_gpt": ("nats per character", "net.safetensors"),
    "diffusion_shapes": ("wrote shapes.png\n", "shapes.png"),
}


def test_every_example_is_here():
    assert sorted(path.stem for path in FOLDER.glob("*.py")) == sorted(ARGUMENTS)
    readme = (FOLDER.parents[1] / "README.md").read_text()
    for path in FOLDER.parent.rglob("*.*"):
        if path.suffix in (".py", ".cpp"):
            assert str(path.relative_to(FOLDER.parents[1])) in readme


@pytest.mark.parametrize("name", ARGUMENTS)
def test_example(name, tmp_path):
    done = subprocess.run(
        [sys.executable, str(FOLDER / f"{name}.py"), *ARGUMENTS[name]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    printed, file = RESULTS[name]
    assert printed in done.stdout
    assert file is None or (tmp_path / file).stat().st_size > 100
