"""The programs of examples/python run, for a few steps."""

import pathlib
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"
# How each is run, what it prints, and what it leaves behind.
EXAMPLES = {
    "cartpole_dqn": (["--steps", "3000"], "solved\n", None),
    "cartpole_ppo": (["--steps", "60000"], "solved\n", None),
    "char_gpt": (
        ["--steps", "3", "--width", "32", "--layers", "1", "--save", "net.safetensors"],
        "nats per character",
        "net.safetensors",
    ),
    "custom_layer": ([], "loss after 0.", None),
    "diffusion_shapes": (["--steps", "2"], "wrote shapes.png\n", "shapes.png"),
    "digits_by_hand": (["--epochs", "2"], "% of new digits are right\n", None),
    "distributed_digits": (["--epochs", "1"], "% of new digits are right\n", None),
    "gpt2_text": (["--tokens", "4"], "drawn: 'Once' + ", None),
    "linear_regression": ([], "y = 3.0", None),
    "lora": ([], "second task: loss 0.0", None),
    "mixed_precision": ([], "logits are kiln.float16", None),
    "onnx_finetuning": ([], "wrote tuned.onnx\n", "tuned.onnx"),
    "per_sample_gradients": ([], "% right\n", None),
    "quantized": ([], "4 bits: ", None),
    "vision_filters": ([], "4 discs\n", None),
    "weights_from_pytorch": ([], "moved there and back\n", "back.pt"),
}


def test_every_example_is_here():
    assert sorted(path.stem for path in FOLDER.glob("*.py")) == sorted(EXAMPLES)
    readme = (FOLDER.parents[1] / "README.md").read_text()
    for path in FOLDER.parent.rglob("*.*"):
        if path.suffix in (".py", ".cpp"):
            assert str(path.relative_to(FOLDER.parents[1])) in readme


def test_processes_train_together(tmp_path):
    launcher = [sys.executable, "-m", "kiln.distributed.run", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*launcher, str(FOLDER / "distributed_digits.py"), "--epochs", "1"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("epoch 1: ") == 1 and "\n2 ranks: " in done.stdout


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name, tmp_path):
    arguments, printed, file = EXAMPLES[name]
    done = subprocess.run(
        [sys.executable, str(FOLDER / f"{name}.py"), *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert printed in done.stdout
    assert file is None or (tmp_path / file).stat().st_size > 100
