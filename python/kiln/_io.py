"""kiln.save and kiln.load: tensors and checkpoints in files that hold nothing to execute.

The format is that of the name's extension when writing (.safetensors; NumPy's .npz and .npy;
anything else is PyTorch's, as with torch.save), and what the file holds when reading.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING

from . import _C, errors

if TYPE_CHECKING:
    from typing import IO, Any

    from ._typing import StrPath


def save(
    obj: Any,
    f: StrPath | bytes | IO[bytes],
    *,
    metadata: Mapping[str, str] | None = None,
    max_shard_size: int = 0,
    compressed: bool = False,
) -> None:
    """Writes obj to f: a path, or a file object that is open for writing bytes.

    PyTorch's format takes tensors, numbers, texts and nested dicts, lists, tuples and sets, as
    torch.save does; torch.load(f, weights_only=True) reads it. The others (.safetensors, .npz,
    .npy) take a mapping of names to tensors, such as a state dict. An existing file is replaced
    only when the new one is complete. A file object without a name that says otherwise gets
    PyTorch's format.

    metadata: texts by name, which safetensors and PyTorch's format keep. max_shard_size: bytes in
    one .safetensors file; more go to several with an index. compressed: for .npz.

    >>> kiln.save({"x": kiln.tensor([1., 2.])}, "x.safetensors")
    >>> kiln.load("x.safetensors")
    {'x': tensor([1., 2.])}
    """
    if not _is_path(f) and hasattr(f, "write"):
        _save_to_object(obj, f, metadata, max_shard_size, compressed)
        return
    path = os.fspath(f)  # type: ignore[arg-type]
    if _C._is_torch_name(path) and metadata is None and not max_shard_size and not compressed:
        _C._save_torch(obj, path)
        return
    if not isinstance(obj, Mapping):
        raise TypeError(
            f"save: {os.fsdecode(path)!r} takes a mapping of names to tensors; got"
            f" {type(obj).__name__} (PyTorch's format, .pt, takes other values)"
        )
    for name, value in obj.items():
        if not isinstance(name, str):
            raise TypeError(f"save: names must be texts; got {name!r}, a {type(name).__name__}")
        if not isinstance(value, _C.Tensor):
            raise TypeError(
                f"save: {name!r} must be a tensor; got {type(value).__name__}"
                " (PyTorch's format, .pt, takes other values)"
            )
        if value.layout != "strided":
            raise TypeError(
                f"save: {name!r} is a sparse tensor, which the format has no place for; try to_dense()"
                " or PyTorch's format, .pt"
            )
    _C._save_tensors(dict(obj), path, dict(metadata or {}), max_shard_size, compressed)


def _is_path(f):
    return isinstance(f, (str, bytes, os.PathLike))


def _save_to_object(obj, f, metadata, max_shard_size, compressed):
    if max_shard_size:
        raise ValueError("save: max_shard_size is for paths; got a file object")
    name = getattr(f, "name", "")
    extension = os.path.splitext(name)[1] if isinstance(name, str) else ""
    known = extension.lower() in (".safetensors", ".npz", ".npy")
    with tempfile.TemporaryDirectory(prefix="kiln-save-") as folder:
        path = os.path.join(folder, "file" + (extension if known else ".pt"))
        save(obj, path, metadata=metadata, compressed=compressed)
        with open(path, "rb") as written:
            shutil.copyfileobj(written, f, 1 << 20)


def load(
    f: StrPath | bytes | IO[bytes],
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool = True,
    mmap: bool | None = None,
    key: str | None = None,
    max_ratio: int = 64,
) -> Any:
    """What a file holds: of a PyTorch file everything, of others the tensors by name.

    f: a path, or a file object that is open for reading bytes. Files of any of the formats are
    recognized by what they hold; a malformed one is an IoError (an OSError).

    map_location: where tensors go, as torch.load takes it: None (all to the CPU), a device, a dict
    from the places in the file to devices, or a function of the values and their place that
    returns them on the device that is wanted.
    weights_only: nothing from a file is ever executed, whatever is given here; False warns.
    mmap: accepted and without effect. pickle_module: must be None.
    key: the state dict at this place of a PyTorch checkpoint ("model", "ema.state_dict") instead
    of everything.
    max_ratio: the most bytes of memory that a compressed file may take for each of its own. Raise
    it for a file that you trust.

    >>> kiln.save({"x": kiln.tensor([1., 2.]), "epoch": 3}, "x.pt")
    >>> kiln.load("x.pt")["epoch"]
    3
    """
    if pickle_module is not None:
        raise TypeError("load: nothing is unpickled by Python here; expected pickle_module=None")
    if weights_only is not None and not weights_only:
        warnings.warn(
            "kiln.load never executes anything from a file: weights_only=False reads what"
            " weights_only=True reads",
            stacklevel=2,
        )
    if key is not None and not isinstance(key, str):
        raise TypeError(f"load: key must be a text; got {type(key).__name__}")
    if not 1 <= max_ratio < 2**32:
        raise ValueError(f"load: max_ratio must be from 1 to 2**32; got {max_ratio!r}")
    place = _placer(map_location)
    if not _is_path(f) and hasattr(f, "read"):
        return _load_object(f, key, int(max_ratio), place)
    path = os.fspath(f)  # type: ignore[arg-type]
    if not os.path.exists(path):
        raise errors.FileNotFoundError(f"load: there is no file {os.fsdecode(path)!r}")
    return _load_path(path, key, int(max_ratio), place)


def _load_path(path, key, max_ratio, place):
    if key is None and _C._is_gguf(path):
        return _C._load_gguf(path, max_ratio, place)[0]
    if key is None and _C._is_torch_file(path, max_ratio):
        return _C._load_torch(path, max_ratio, place)
    return _C._load_tensors(path, key or "", max_ratio, place)


def _load_object(f, key, max_ratio, place):
    """The rest of a file object, by way of a file without a name."""
    with tempfile.TemporaryFile(prefix="kiln-load-") as copy:
        while piece := f.read(1 << 24):
            if isinstance(piece, str):
                raise TypeError("load: the file object gives text; expected one of bytes")
            copy.write(piece)
        copy.flush()
        path = f"/proc/self/fd/{copy.fileno()}"
        try:
            return _load_path(path, key, max_ratio, place)
        except errors.Error as error:
            shown = getattr(f, "name", None)
            shown = f"<{type(f).__name__}>" if not isinstance(shown, str) else shown
            raise type(error)(str(error).replace(path, shown)) from None


def _placer(map_location):
    """What makes of a tensor on the CPU and its place in the file the tensor that load gives."""
    if map_location is None:
        return None
    if callable(map_location):

        def by_function(tensor, location):
            there = map_location(tensor.detach(), location)
            if there is None:
                return tensor
            if not isinstance(there, _C.Tensor):
                raise TypeError(
                    "load: map_location must return values on a device, or None; got"
                    f" {type(there).__name__}"
                )
            return _moved(tensor, there.device)

        return by_function
    if isinstance(map_location, Mapping):
        devices = {str(place): _C._device(device) for place, device in map_location.items()}

        def by_place(tensor, location):
            return _moved(tensor, devices[location]) if location in devices else tensor

        return by_place
    device = _C._device(map_location)
    if device == _C._device("cpu"):
        return None
    return lambda tensor, location: _moved(tensor, device)


def _moved(tensor, device):
    if tensor.device == device:
        return tensor
    moved = tensor.detach().to(device)
    return moved.requires_grad_() if tensor.requires_grad else moved
