"""GGUF files: what the package gguf wrote and read (tests/fixtures/make_gguf.py)."""

import pathlib

import numpy as np
import pytest

import kiln
from kiln import models

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "fixtures" / "gguf"


def test_tensors_equal_those_of_the_package():
    tensors, metadata = models.load_gguf(FOLDER / "small.gguf")
    with np.load(FOLDER / "small.npz") as expected:
        assert set(tensors) == set(expected.files)
        for name, values in expected.items():
            x = tensors[name]
            if x.is_quantized:
                x = x.dequantize()
            assert tuple(x.shape) == values.shape
            np.testing.assert_array_equal(x.numpy(), values, err_msg=name)
    assert tensors["q8_0"].is_quantized and tensors["q4_0"].is_quantized
    assert not tensors["q8_0 lowest"].is_quantized and not tensors["q4_k"].is_quantized
    assert metadata["general.architecture"] == "llama"
    assert metadata["test.words"] == ["a", "bc", "d\u00e9"]
    assert metadata["test.numbers"] == [1, -2, 3]
    assert (metadata["test.integer"], metadata["test.float"], metadata["test.flag"]) == (
        7,
        0.5,
        True,
    )


def test_load_knows_the_format():
    tensors = kiln.load(FOLDER / "small.gguf")
    with open(FOLDER / "small.gguf", "rb") as file:
        again = kiln.load(file)
    assert list(tensors) == list(again)
    assert kiln.equal(tensors["f16"], again["f16"])
    x = kiln.randn(2, 64)
    weight = tensors["q8_0"]
    y = kiln.nn.functional.linear(x, weight)
    np.testing.assert_allclose(y.numpy(), (x @ weight.dequantize().T).numpy(), atol=1e-4)


def test_bad_files(tmp_path):
    good = (FOLDER / "small.gguf").read_bytes()
    path = tmp_path / "x.gguf"
    path.write_bytes(good[:200])
    with pytest.raises(OSError, match="load_gguf: .*x.gguf"):
        kiln.load(path)
    path.write_bytes(b"GGUF" + b"\xff" * 64)
    with pytest.raises(kiln.errors.IoError, match="version is not read"):
        models.load_gguf(path)
    with pytest.raises(FileNotFoundError):
        models.load_gguf(tmp_path / "none.gguf")
