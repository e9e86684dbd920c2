"""kiln.save and kiln.load, in every format, and beside PyTorch and NumPy."""

import io
import os
import pickle
import struct
import zipfile
import zlib
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
    # Only PyTorch's format knows what a parameter is.
    is_torch = name not in ("t.safetensors", "t.npz")
    assert isinstance(back["w"], kiln.nn.Parameter) == is_torch == back["w"].requires_grad


def kinds_of_value(lib):
    """A checkpoint in which it matters of what kind the values are."""
    return {
        "parameter": lib.nn.Parameter(lib.ones(2)),
        "frozen": lib.nn.Parameter(lib.ones(2), requires_grad=False),
        "leaf": lib.ones(2, requires_grad=True),
        "result": lib.ones(2, requires_grad=True) * 2,
        "plain": lib.ones(2),
        "dict": {"a": 1},
        "ordered": OrderedDict(b=1, a=lib.zeros(1)),
    }


def check_kinds(lib, back):
    parameters = {key for key, value in back.items() if isinstance(value, lib.nn.Parameter)}
    assert parameters == {"parameter", "frozen"}
    wanting = {key for key, v in back.items() if isinstance(v, lib.Tensor) and v.requires_grad}
    assert wanting == {"parameter", "leaf", "result"}
    assert back["result"].is_leaf and back["result"].tolist() == [2, 2]
    assert type(back["dict"]) is type(back) is dict and type(back["ordered"]) is OrderedDict
    assert list(back["ordered"]) == ["b", "a"]


def test_parameters_and_kinds_of_dicts_come_back(tmp_path):
    kiln.save(kinds_of_value(kiln), tmp_path / "k.pt")
    check_kinds(kiln, kiln.load(tmp_path / "k.pt"))
    back = kiln.load(tmp_path / "k.pt", map_location=lambda value, place: value)
    check_kinds(kiln, back)
    back["parameter"].sum().backward()
    assert back["parameter"].grad.tolist() == [1, 1]
    assert list(kiln.nn.ParameterDict({"p": back["parameter"]}).parameters())[0] is not None


@needs_torch
def test_kinds_of_values_are_the_same_in_pytorch(tmp_path):
    import torch

    kiln.save(kinds_of_value(kiln), tmp_path / "k.pt")
    check_kinds(torch, torch.load(tmp_path / "k.pt", weights_only=True))
    torch.save(kinds_of_value(torch), tmp_path / "t.pt")
    check_kinds(kiln, kiln.load(tmp_path / "t.pt"))


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
    with pytest.raises(TypeError, match="names must be texts; got 5"):
        kiln.save({5: kiln.ones(1)}, tmp_path / "x.safetensors")
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


# ---- Names, extensions and file objects


@pytest.mark.parametrize("name", ["ckpt", "ckpt.tar", "a.b/ckpt", "x.pt", "x.bin", "x.anything"])
def test_checkpoints_under_any_name(tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    for f in (path, str(path), os.fsencode(path)):
        kiln.save({"epoch": 3, "model": {"w": kiln.ones(2)}}, f)
        back = kiln.load(f)
        assert back["epoch"] == 3 and back["model"]["w"].tolist() == [1, 1]
    assert zipfile.is_zipfile(path)
    kiln.save(kiln.ones(3), path)
    assert kiln.load(path).tolist() == [1, 1, 1]
    kiln.save({"w": kiln.ones(1)}, tmp_path / "n.SAFETENSORS")
    assert not zipfile.is_zipfile(tmp_path / "n.SAFETENSORS")
    assert kiln.load(tmp_path / "n.SAFETENSORS")["w"].item() == 1


def test_options_of_another_format_are_refused(tmp_path):
    with pytest.raises(ValueError, match="max_shard_size"):
        kiln.save({"w": kiln.ones(1)}, tmp_path / "x", max_shard_size=100)
    with pytest.raises(ValueError, match="compressed"):
        kiln.save({"w": kiln.ones(1)}, tmp_path / "x", compressed=True)


def test_file_objects(tmp_path):
    checkpoint = {"epoch": 3, "w": kiln.arange(4.0)}
    buffer = io.BytesIO()
    kiln.save(checkpoint, buffer)
    buffer.seek(0)
    back = kiln.load(buffer)
    assert back["epoch"] == 3 and back["w"].tolist() == [0, 1, 2, 3]
    assert kiln.load(io.BytesIO(buffer.getvalue()))["epoch"] == 3
    # From where the object stands, and behind what is there.
    shifted = io.BytesIO(b"head" + buffer.getvalue())
    shifted.seek(4)
    assert kiln.load(shifted)["epoch"] == 3
    for name in ("a.pt", "a.safetensors", "a.npz"):
        with open(tmp_path / name, "wb") as f:
            kiln.save({"w": kiln.ones(2)}, f)
        with open(tmp_path / name, "rb") as f:
            assert kiln.load(f)["w"].tolist() == [1, 1]
    assert (tmp_path / "a.safetensors").read_bytes()[8:9] == b"{"
    assert np.load(tmp_path / "a.npz")["w"].tolist() == [1, 1]
    with open(tmp_path / "t.npy", "wb") as f:
        np.save(f, np.arange(3))
    with open(tmp_path / "t.npy", "rb") as f:
        assert kiln.load(f)["array"].tolist() == [0, 1, 2]
    with pytest.raises(OSError, match="<BytesIO>"):
        kiln.load(io.BytesIO(b"nonsense"))
    with pytest.raises(OSError, match="empty"):
        kiln.load(io.BytesIO())
    with pytest.raises(TypeError, match="text"):
        kiln.load(io.StringIO("abc"))
    with pytest.raises(ValueError, match="paths"):
        kiln.save({"w": kiln.ones(1)}, io.BytesIO(), max_shard_size=3)


@needs_torch
def test_file_objects_between_torch_and_kiln():
    import torch

    value = {"epoch": 3, "w": kiln.arange(4.0), "who": "me", "list": [1, (2.5, None)]}
    buffer = io.BytesIO()
    kiln.save(value, buffer)
    buffer.seek(0)
    theirs = torch.load(buffer, weights_only=True)
    assert theirs["w"].tolist() == [0, 1, 2, 3] and theirs["list"] == [1, (2.5, None)]
    buffer = io.BytesIO()
    torch.save({"epoch": 4, "w": torch.arange(3.0)}, buffer)
    buffer.seek(0)
    mine = kiln.load(buffer)
    assert mine["epoch"] == 4 and mine["w"].tolist() == [0, 1, 2]


def test_map_location(tmp_path):
    kiln.save({"a": kiln.ones(2), "n": {"b": kiln.zeros(1)}}, tmp_path / "a.pt")
    kiln.save({"a": kiln.ones(2)}, tmp_path / "a.safetensors")
    reference = kiln.device("reference")
    for name in ("a.pt", "a.safetensors"):
        path = tmp_path / name
        for place in (None, "cpu", kiln.device("cpu"), {}, {"cuda:0": "cpu"}, lambda s, l: s):
            assert kiln.load(path, map_location=place)["a"].device == kiln.device("cpu")
        for place in (
            "reference",
            reference,
            {"cpu": "reference"},
            lambda values, location: values.to(reference),
        ):
            back = kiln.load(path, place)
            assert back["a"].device == reference and back["a"].tolist() == [1, 1]
    seen = []
    kiln.load(tmp_path / "a.pt", map_location=lambda s, location: seen.append(location))
    assert seen == ["cpu", "cpu"]
    with pytest.raises(TypeError, match="map_location"):
        kiln.load(tmp_path / "a.pt", map_location=lambda s, location: 5)
    with pytest.raises(RuntimeError):
        kiln.load(tmp_path / "a.pt", map_location="no such device")


def test_places_in_a_file_are_told(tmp_path):
    # As a machine with a GPU writes it.
    write_pickle(
        tmp_path / "gpu.pt",
        b"ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storagectorch\nFloatStorage\n"
        b"X\1\0\0\0" + b"0X\6\0\0\0cuda:1K\1tQK\0K\1\x85K\1\x85\x89}tR",
        {"0": b"\0\0\x80\x3f"},
    )
    assert kiln.load(tmp_path / "gpu.pt").tolist() == [1]
    seen = []
    kiln.load(tmp_path / "gpu.pt", lambda values, location: seen.append(location))
    assert seen == ["cuda:1"]
    moved = kiln.load(tmp_path / "gpu.pt", {"cuda:1": "reference"})
    assert moved.device == kiln.device("reference")


def test_weights_only_and_other_arguments_of_torch(tmp_path):
    kiln.save({"epoch": 1}, tmp_path / "a.pt")
    assert kiln.load(tmp_path / "a.pt", "cpu", weights_only=True, mmap=True)["epoch"] == 1
    with pytest.warns(UserWarning, match="never executes"):
        assert kiln.load(tmp_path / "a.pt", weights_only=False)["epoch"] == 1
    with pytest.raises(TypeError, match="pickle_module"):
        kiln.load(tmp_path / "a.pt", pickle_module=pickle)


def test_plain_values_of_numpy_and_kiln(tmp_path):
    value = {
        "a": np.float32(0.5),
        "b": np.int64(7),
        "c": np.bool_(True),
        "d": kiln.device("cpu"),
        "e": kiln.Size([2, 3]),
        "f": frozenset([1, 2]),
        "g": {(1, "x"): 2, frozenset([3]): 4, None: 5, True: 6, 2.5: 7},
        "h": 2**8000,
    }
    kiln.save(value, tmp_path / "a.pt")
    back = kiln.load(tmp_path / "a.pt")
    assert back["a"] == 0.5 and back["b"] == 7 and back["c"] is True
    assert back["d"] == kiln.device("cpu") and tuple(back["e"]) == (2, 3)
    # PyTorch reads no frozensets: they are sets, but where they must be hashable.
    assert back["f"] == {1, 2}
    assert back["g"] == value["g"] and back["h"] == 2**8000
    with pytest.raises(ValueError, match="too large"):
        kiln.save({"x": 2**8192}, tmp_path / "a.pt")
    with pytest.raises(TypeError, match="ndarray"):
        kiln.save({"x": np.ones(3)}, tmp_path / "a.pt")


# ---- Names with odd characters


@pytest.mark.parametrize("name", ["n.safetensors", "n.pt"])
def test_names_with_zero_bytes_come_back(tmp_path, name):
    state = {"a\0b": kiln.ones(1), "a\0c": kiln.zeros(1), "a": kiln.full((1,), 5.0)}
    kiln.save(state, tmp_path / name)
    back = kiln.load(tmp_path / name)
    assert {k: v.item() for k, v in back.items()} == {"a\0b": 1, "a\0c": 0, "a": 5}


def test_names_that_a_format_cannot_hold_are_refused_before_anything_is_written(tmp_path):
    for name, key in [("n.npz", ""), ("n.npz", "a\0b"), ("n.npz", "../a"), ("n.safetensors", "")]:
        with pytest.raises(ValueError):
            kiln.save({key: kiln.ones(1)}, tmp_path / name)
    for name in ("n.safetensors", "n.pt", "n.npz"):
        with pytest.raises(kiln.errors.ValueError, match="surrogate"):
            kiln.save({"\ud800": kiln.ones(1)}, tmp_path / name)
    with pytest.raises(kiln.errors.ValueError, match="surrogate"):
        kiln.save({"who": "\udfff"}, tmp_path / "n.pt")
    with pytest.raises(kiln.errors.ValueError, match="surrogate"):
        kiln.save({"a": kiln.ones(1)}, tmp_path / "n.safetensors", metadata={"x": "\udfff"})
    assert not list(tmp_path.iterdir())


def test_paths_that_are_no_unicode_or_hold_a_zero_byte(tmp_path):
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.pt")
    kiln.save({"a": 1}, odd)
    assert kiln.load(odd) == {"a": 1} and os.path.exists(odd)
    with open(odd, "wb") as f:
        f.write(b"nonsense")
    with pytest.raises(kiln.errors.IoError, match="caf"):
        kiln.load(odd)
    with pytest.raises((ValueError, OSError)):
        kiln.save({"a": 1}, str(tmp_path / "x\0y.pt"))
    with pytest.raises((ValueError, OSError)):
        kiln.load(str(tmp_path / "x\0y.pt"))
    assert not (tmp_path / "x").exists()


# ---- Files that are none, and hostile ones


def png(width, height):
    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    rows = (b"\0" + bytes(range(200, 200 + width))) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize(
    "content",
    [
        png(8, 8),
        b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\xc3\x28" + bytes(range(256)),
        b"MZ\x90\x00\x03\xff\xfe\xfd" + bytes(range(255, 0, -1)),
        b"\x7fELF\x02\x01\x01" + b"\xc0" * 100,
        "caf\u00e9 \u4e2d".encode() * 5,
        b"\xf0\x9f\x98" * 30,
    ],
)
def test_other_files_are_io_errors(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(kiln.errors.IoError, match="expected"):
        kiln.load(tmp_path / "x")


def write_pickle(path, body, storages=None):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("m/data.pkl", b"\x80\x02" + body + b".")
        archive.writestr("m/version", "3\n")
        for name, data in (storages or {}).items():
            archive.writestr("m/data/" + name, data)


HOSTILE = {
    "a list as a key": b"}]K\1s",
    "a dict as a key": b"}}K\1s",
    "a tuple of a list as a key": b"}]\x85K\1s",
    "a set of lists": b"\x8f(]\x90",
    "a frozenset of lists": b"(]\x91",
    "a set of lists by its name": b"c__builtin__\nset\n(](]eltR",
    "a class as an attribute": b"}}X\x09\0\0\0__class__K\1sb",
    "a dict as an attribute": b"}}X\x08\0\0\0__dict__K\1sb",
    "items as an attribute": b"}}X\5\0\0\0itemsK\1sb",
    "keys as an attribute": b"}}X\4\0\0\0keysK\1sb",
    "an attribute that is no name": b"}}X\3\0\0\0a bK\1sb",
    "an attribute with a zero byte": b"}}X\3\0\0\0a\0bK\1sb",
    "an attribute that is no text": b"}}K\1K\1sb",
    "a lone surrogate": b"X\3\0\0\0\xed\xa0\x80",
    "an overlong character": b"X\2\0\0\0\xc0\x80",
    "a cut character": b"X\2\0\0\0\xe4\xb8",
    "a device that is a list": b"ctorch\ndevice\n](K\1e\x85R",
    "a device that is a number": b"ctorch\ndevice\nK\1\x85R",
    "a size of texts": b"ctorch\nSize\n](X\1\0\0\0ae\x85R",
    "one key as a number and as True": b"}(K\1N\x88Nu",
    "one key as a number and as 1.0": b"}(K\1NG\x3f\xf0\0\0\0\0\0\0Nu",
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_pickles_are_io_errors(tmp_path, what):
    write_pickle(tmp_path / "h.pt", HOSTILE[what])
    with pytest.raises(kiln.errors.IoError, match="h.pt"):
        kiln.load(tmp_path / "h.pt")


def test_unknown_devices_are_their_names(tmp_path):
    write_pickle(tmp_path / "d.pt", b"ctorch\ndevice\nX\4\0\0\0cudaK\1\x86R")
    assert kiln.load(tmp_path / "d.pt") == "cuda:1"


def test_compressed_zeros(tmp_path):
    np.savez_compressed(tmp_path / "z.npz", a=np.zeros(16 << 20, np.float32))
    with pytest.raises(kiln.errors.IoError, match="max_ratio"):
        kiln.load(tmp_path / "z.npz")
    assert kiln.load(tmp_path / "z.npz", max_ratio=1100)["a"].shape == (16 << 20,)
    with pytest.raises(ValueError, match="max_ratio"):
        kiln.load(tmp_path / "z.npz", max_ratio=0)
    kiln.save({"a": kiln.zeros(16 << 20)}, tmp_path / "k.npz", compressed=True)
    assert kiln.load(tmp_path / "k.npz")["a"].shape == (16 << 20,)
    assert np.load(tmp_path / "k.npz")["a"].shape == (16 << 20,)
    assert (tmp_path / "k.npz").stat().st_size < (64 << 20) / 30


def peak_of_child(path):
    """Bytes that loading the file adds to a process, and whether it could be loaded."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        before = resource_peak()
        try:
            kiln.load(path)
            loaded = 1
        except kiln.errors.IoError:
            loaded = 0
        finally:
            os.write(write, struct.pack("qq", resource_peak() - before, loaded))
            os._exit(0)
    data = os.read(read, 16)
    os.waitpid(child, 0)
    os.close(read)
    os.close(write)
    assert len(data) == 16, "the child ended with another exception"
    return struct.unpack("qq", data)


def resource_peak():
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.parametrize("op", [b"N", b"}", b"]", b")", b"\x8f", b"2", b"\x94", b"(", b"K\7", b"\x88"])
def test_what_python_makes_of_a_small_file_is_small_too(tmp_path, op):
    # Python's objects are part of the cost: 64 times the file and 16 MiB, and room for the rest.
    count = (4 << 20) // len(op)
    write_pickle(tmp_path / "b.pt", (b"N" if op in b"2\x94" else b"(") + op * count + b"l")
    size = (tmp_path / "b.pt").stat().st_size
    peak, _ = peak_of_child(tmp_path / "b.pt")
    assert peak <= 64 * size + (32 << 20)


# ---- Pickle of tensors


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("level", ["tensor", "channel", "block"])
def test_quantized_tensors_are_pickled_and_copied(bits, level):
    import copy

    x = kiln.quantize(kiln.randn(4, 64), bits=bits, level=level)
    for back in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), copy.copy(x)):
        assert back.dtype is x.dtype and back.shape == x.shape
        assert kiln.quant_scheme(back) == kiln.quant_scheme(x)
        assert kiln.equal(back.dequantize(), x.dequantize())
    holder = {"x": x, "again": x}
    back = pickle.loads(pickle.dumps(holder))
    assert back["x"] is back["again"]
