"""kiln.save and kiln.load."""

import pytest

import kiln


def test_tensors_go_through_a_file(tmp_path):
    path = tmp_path / "t.safetensors"
    state = {
        "a": kiln.arange(6.0).reshape(2, 3).T,
        "b": kiln.tensor([True]),
        "half": kiln.ones(2, dtype=kiln.bfloat16),
        "w": kiln.nn.Parameter(kiln.ones(1)),
    }
    kiln.save(state, path, metadata={"who": "me"})
    back = kiln.load(path)
    assert list(sorted(back)) == ["a", "b", "half", "w"]
    for name, value in state.items():
        assert kiln.equal(back[name], value) and back[name].dtype is value.dtype
    assert not back["w"].requires_grad


def test_errors(tmp_path):
    with pytest.raises(TypeError, match="mapping"):
        kiln.save([kiln.ones(1)], tmp_path / "x")
    with pytest.raises(TypeError, match="'a'"):
        kiln.save({"a": 1}, tmp_path / "x")
    (tmp_path / "bad").write_bytes(b"nonsense")
    with pytest.raises(OSError):
        kiln.load(tmp_path / "bad")
