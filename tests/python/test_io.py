"""kiln.save and kiln.load, in every format, and beside PyTorch and NumPy."""

from collections import OrderedDict

import numpy as np
import pytest

import kiln
from conftest import HAS_TORCH

needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not in this environment")


def some_tensors():
    return {
        "a": kiln.arange(6.0).reshape(2, 3).T,
        "b": kiln.tensor([True]),
        "c": kiln.ones(2, dtype=kiln.float16),
        "w": kiln.nn.Parameter(kiln.ones(1)),
    }


@pytest.mark.parametrize("name", ["t.safetensors", "t.pt", "t.pth", "t.npz", "anything"])
def test_tensors_go_through_a_file(tmp_path, name):
    state = some_tensors()
    kiln.save(state, tmp_path / name)
    back = kiln.load(tmp_path / name)
    assert sorted(back) == sorted(state)
    for key, value in state.items():
        assert kiln.equal(back[key], value) and back[key].dtype is value.dtype
    assert not back["w"].requires_grad


def test_metadata_bfloat16_and_shards(tmp_path):
    state = {"h": kiln.ones(2, dtype=kiln.bfloat16), "x": kiln.ones(100), "y": kiln.ones(100)}
    kiln.save(state, tmp_path / "m.safetensors", metadata={"who": "me"})
    assert kiln.load(tmp_path / "m.safetensors")["h"].dtype is kiln.bfloat16
    kiln.save(state, tmp_path / "s.safetensors", max_shard_size=500)
    files = list(tmp_path.glob("s*"))
    assert len(files) > 2
    index = next(f for f in files if f.name.endswith(".json"))
    assert kiln.equal(kiln.load(index)["y"], state["y"])


def test_checkpoints_of_any_shape(tmp_path):
    checkpoint = {
        "epoch": 3,
        "lr": 0.1,
        "name": "net",
        "big": 2**70,
        "flags": (True, None, b"raw"),
        "model": kiln.nn.Linear(2, 2).state_dict(),
        "list": [kiln.ones(1), {"x": kiln.zeros(2)}],
        "set": {1, 2},
        "dtype": kiln.float16,
        5: "int key",
    }
    kiln.save(checkpoint, tmp_path / "c.pt")
    back = kiln.load(tmp_path / "c.pt")
    for key in ("epoch", "lr", "name", "big", "flags", "set", "dtype", 5):
        assert back[key] == checkpoint[key]
    assert isinstance(back["flags"], tuple) and back["list"][1]["x"].tolist() == [0, 0]
    assert isinstance(back["model"], OrderedDict) and back["model"]._metadata[""]["version"] == 1
    kiln.nn.Linear(2, 2).load_state_dict(back["model"])
    assert sorted(kiln.load(tmp_path / "c.pt", key="model")) == ["bias", "weight"]
    with pytest.raises(TypeError, match="object"):
        kiln.save({"x": object()}, tmp_path / "d.pt")
    deep = []
    for _ in range(300):
        deep = [deep]
    with pytest.raises(ValueError, match="deep"):
        kiln.save(deep, tmp_path / "d.pt")


@needs_torch
def test_torch_reads_what_kiln_writes(tmp_path):
    import torch

    net = kiln.nn.Sequential(kiln.nn.Linear(3, 2), kiln.nn.BatchNorm2d(2))
    kiln.save({"model": net.state_dict(), "epoch": 4}, tmp_path / "m.pt")
    back = torch.load(tmp_path / "m.pt", weights_only=True)
    assert back["epoch"] == 4
    theirs = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm2d(2))
    theirs.load_state_dict(back["model"])
    x = np.ones((1, 3), np.float32)
    np.testing.assert_allclose(
        theirs[0](torch.tensor(x)).detach().numpy(), net[0](kiln.tensor(x)).detach().numpy(), 1e-5
    )


@needs_torch
def test_kiln_reads_what_torch_writes(tmp_path):
    import torch

    theirs = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm2d(2))
    optimizer = torch.optim.Adam(theirs.parameters())
    theirs[0](torch.ones(1, 3)).sum().backward()
    optimizer.step()
    saved = {"model": theirs.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 4}
    for legacy in (False, True):
        torch.save(saved, tmp_path / "t.pt", _use_new_zipfile_serialization=not legacy)
        back = kiln.load(tmp_path / "t.pt")
        assert back["epoch"] == 4
        net = kiln.nn.Sequential(kiln.nn.Linear(3, 2), kiln.nn.BatchNorm2d(2))
        assert str(net.load_state_dict(back["model"])) == "<All keys matched successfully>"
        x = np.ones((1, 3), np.float32)
        np.testing.assert_allclose(
            theirs[0](torch.tensor(x)).detach().numpy(),
            net[0](kiln.tensor(x)).detach().numpy(),
            1e-5,
        )
        mine = kiln.optim.Adam(net[0].parameters())
        state = back["optimizer"]["state"]
        assert state[0]["exp_avg"].shape == (2, 3) and mine is not None


def test_numpy_reads_what_kiln_writes(tmp_path):
    kiln.save({"x": kiln.eye(2)}, tmp_path / "a.npz", compressed=True)
    assert np.load(tmp_path / "a.npz")["x"].tolist() == [[1, 0], [0, 1]]
    np.savez(tmp_path / "b.npz", y=np.arange(3))
    assert kiln.load(tmp_path / "b.npz")["y"].tolist() == [0, 1, 2]


def test_errors(tmp_path):
    with pytest.raises(TypeError, match="mapping"):
        kiln.save([kiln.ones(1)], tmp_path / "x.safetensors")
    with pytest.raises(TypeError, match="'a'"):
        kiln.save({"a": 1}, tmp_path / "x.safetensors")
    (tmp_path / "bad").write_bytes(b"nonsense")
    with pytest.raises(OSError):
        kiln.load(tmp_path / "bad")
    with pytest.raises(OSError):
        kiln.load(tmp_path / "missing.pt")


def test_code_in_a_pickle_is_refused(tmp_path):
    import os
    import pickle
    import zipfile

    class Evil:
        def __reduce__(self):
            return os.system, ("touch " + str(tmp_path / "pwned"),)

    with zipfile.ZipFile(tmp_path / "evil.pt", "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({"x": Evil()}, protocol=2))
        archive.writestr("archive/version", "3\n")
    with pytest.raises(OSError, match="system"):
        kiln.load(tmp_path / "evil.pt")
    assert not (tmp_path / "pwned").exists()
