"""Model files between Kiln and PyTorch, safetensors and NumPy, both ways.

Run by tests/peer/run.sh as: files.py KILN_PROGRAM PEER_PROGRAM FIXTURES
"""

import collections
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import safetensors
import safetensors.torch
import torch

KILN, PEER, FIXTURES = (pathlib.Path(p) for p in sys.argv[1:4])


class Net(torch.nn.Module):
    """The same network as in files.cpp."""

    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(3, 8, 3)
        self.norm = torch.nn.BatchNorm2d(8)
        self.conv2 = torch.nn.Conv2d(8, 4, 3, stride=2)
        self.fc = torch.nn.Linear(4 * 6 * 6, 10)

    def forward(self, x):
        x = torch.relu(self.norm(self.conv1(x)))
        return self.fc(torch.nn.functional.gelu(self.conv2(x)).flatten(1))


def run(program, *arguments):
    subprocess.run([str(program), *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


def trained():
    torch.manual_seed(1)
    net = Net()
    for _ in range(3):
        net(torch.randn(16, 3, 16, 16))
    return net.eval()


def same(a, b):
    assert list(a) == list(b), (list(a), list(b))
    for key in a:
        assert a[key].dtype == b[key].dtype and torch.equal(a[key], b[key]), key


def close(a, b, what):
    difference = float(np.abs(a - b).max())
    print(f"  {what}: largest difference {difference:.2g}")
    assert difference < 1e-5, what


def network_to_kiln(folder, x):
    net = trained()
    with torch.no_grad():
        expected = net(torch.from_numpy(x)).numpy()
    state = net.state_dict()
    torch.save(state, folder / "zip.pt")
    torch.save(state, folder / "legacy.pt", _use_new_zipfile_serialization=False)
    torch.save({"model": state, "epoch": 3}, folder / "checkpoint.pth")
    safetensors.torch.save_file(state, folder / "net.safetensors", metadata={"format": "pt"})
    np.savez(folder / "net.npz", **{k: v.numpy() for k, v in state.items()})
    for name in ("zip.pt", "legacy.pt", "checkpoint.pth", "net.safetensors", "net.npz"):
        run(PEER, "load", folder / name, folder / "x.npy", folder / "y.npy")
        close(np.load(folder / "y.npy"), expected, f"PyTorch's network in Kiln, {name}")


def outputs_of(state, x):
    net = Net()
    net.load_state_dict(state, strict=True)
    with torch.no_grad():
        return net.eval()(torch.from_numpy(x)).numpy()


def network_from_kiln(folder, x):
    states = {}
    for name in ("kiln.pt", "kiln.safetensors", "kiln.npz"):
        run(PEER, "save", folder / name, folder / "x.npy", folder / "y.npy")
    expected = np.load(folder / "y.npy")
    states["weights_only"] = torch.load(folder / "kiln.pt", weights_only=True)
    states["mmap"] = torch.load(folder / "kiln.pt", weights_only=True, mmap=True)
    assert type(states["mmap"]) is collections.OrderedDict
    assert states["mmap"]._metadata == Net().state_dict()._metadata, states["mmap"]._metadata
    states["safetensors"] = safetensors.torch.load_file(folder / "kiln.safetensors")
    with np.load(folder / "kiln.npz", allow_pickle=False) as arrays:
        states["npz"] = {k: torch.from_numpy(arrays[k]) for k in arrays}
    for what, state in states.items():
        close(outputs_of(state, x), expected, f"Kiln's network in PyTorch, {what}")


def every_dtype(folder):
    original = torch.load(FIXTURES / "torch/dtypes.pt", weights_only=True)
    run(KILN, "convert", FIXTURES / "torch/dtypes.pt", folder / "d.pt")
    same(original, torch.load(folder / "d.pt", weights_only=True))
    run(KILN, "convert", folder / "d.pt", folder / "d.safetensors")
    back = safetensors.torch.load_file(folder / "d.safetensors")
    same(original, {k: back[k] for k in original})
    safetensors.torch.save_file(original, folder / "peer.safetensors")
    run(KILN, "convert", folder / "peer.safetensors", folder / "again.pt")
    back = torch.load(folder / "again.pt", weights_only=True)
    same(original, {k: back[k] for k in original})
    run(KILN, "convert", folder / "d.pt", folder / "d.npz", "--compress")
    with np.load(folder / "d.npz") as arrays:
        for key, value in original.items():
            expected = value.float().numpy() if value.dtype == torch.bfloat16 else value.numpy()
            assert arrays[key].dtype == expected.dtype and np.array_equal(arrays[key], expected)
    print("  every dtype through .pt, .safetensors and .npz: equal")


def views(folder):
    original = torch.load(FIXTURES / "torch/views.pt", weights_only=True)
    for name in ("views.pt", "views_legacy.pt"):
        run(KILN, "convert", FIXTURES / "torch" / name, folder / "v.pt", "--force")
        for mmap in (False, True):
            copy = torch.load(folder / "v.pt", weights_only=True, mmap=mmap)
            same(original, copy)
            for key in ("row", "transposed", "strided", "expanded", "tail"):
                assert copy[key].stride() == original[key].stride(), key
                storage = copy[key].untyped_storage().data_ptr()
                assert storage == copy["base"].untyped_storage().data_ptr(), key
    print("  views and shared storages: kept")


def checkpoint(folder):
    original = torch.load(FIXTURES / "torch/checkpoint.pt", weights_only=True)
    run(PEER, "copy", FIXTURES / "torch/checkpoint_protocol5.pt", folder / "c.pt")
    copy = torch.load(folder / "c.pt", weights_only=True)
    assert list(copy) == list(original)
    for key in original:
        if key in ("model", "optimizer", "parameter", "shared"):
            continue
        assert tuple(copy[key]) == tuple(original[key]) if key == "sizes" else (
            copy[key] == original[key]), key
    same(original["model"], copy["model"])
    assert copy["model"]._metadata == original["model"]._metadata
    optimizer = torch.optim.Adam(torch.nn.Linear(3, 2).parameters())
    optimizer.load_state_dict(copy["optimizer"])
    assert optimizer.param_groups[0]["lr"] == 0.01
    print("  a whole checkpoint, with PyTorch's optimizer state: loads")


def shards(folder):
    state = collections.OrderedDict((f"layer.{i}", torch.full((100, 10), float(i))) for i in range(7))
    safetensors.torch.save_file(state, folder / "big.safetensors")
    target = folder / "sharded" / "model.safetensors"
    target.parent.mkdir()
    run(KILN, "convert", folder / "big.safetensors", target, "--max-shard-size", "9kB")
    index = json.loads((target.parent / "model.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == 7 * 4000
    files = sorted(set(index["weight_map"].values()))
    assert files == [f"model-{i:05}-of-00004.safetensors" for i in range(1, 5)], files
    for key, file in index["weight_map"].items():
        with safetensors.safe_open(target.parent / file, "pt") as shard:
            assert torch.equal(shard.get_tensor(key), state[key])
    run(KILN, "convert", f"{target}.index.json", folder / "joined.pt")
    same(state, torch.load(folder / "joined.pt", weights_only=True))
    print("  shards with their index: read by safetensors, joined by Kiln")


def arrays(folder):
    x = np.asfortranarray(np.arange(24.0).reshape(2, 3, 4)).astype(">f8", order="K")
    np.save(folder / "f.npy", x)
    run(KILN, "convert", folder / "f.npy", folder / "c.npy")
    back = np.load(folder / "c.npy", mmap_mode="r")
    assert np.array_equal(back, x) and back.flags.c_contiguous
    print("  .npy of Fortran order and the other byte order: equal, and maps")


def main():
    print(f"PyTorch {torch.__version__}, safetensors {safetensors.__version__}, "
          f"NumPy {np.__version__}")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        x = np.random.default_rng(0).standard_normal((2, 3, 16, 16), dtype=np.float32)
        np.save(folder / "x.npy", x)
        network_to_kiln(folder, x)
        network_from_kiln(folder, x)
        every_dtype(folder)
        views(folder)
        checkpoint(folder)
        shards(folder)
        arrays(folder)
    print("all of it agrees")


if __name__ == "__main__":
    main()
