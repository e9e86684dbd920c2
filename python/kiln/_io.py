"""kiln.save and kiln.load: tensors in files that hold nothing to execute.

The format is that of the name's extension when writing (.pt, .pth, .bin and .ckpt: PyTorch's; .npz
and .npy: NumPy's; anything else: safetensors), and what the file holds when reading.
"""

import os
from collections.abc import Mapping

from . import _C, errors


def save(obj, f, *, metadata=None, max_shard_size=0, compressed=False):
    """Writes a mapping of names to tensors (such as a state dict) to the file f.

    PyTorch's format also takes numbers, texts and nested dicts, lists, tuples and sets, as
    torch.save does; torch.load(f, weights_only=True) reads it. An existing file is replaced only
    when the new one is complete. metadata: texts by name, which safetensors and PyTorch's format
    keep. max_shard_size: bytes in one safetensors file; more go to several with an index.
    compressed: for .npz.
    """
    path = os.fspath(f)
    if _C._is_torch_name(path) and metadata is None:
        _C._save_torch(obj, path)
        return
    if not isinstance(obj, Mapping):
        raise TypeError(f"save: expected a mapping of names to tensors; got {type(obj).__name__}")
    for name, value in obj.items():
        if not isinstance(value, _C.Tensor):
            raise TypeError(f"save: {name!r} must be a tensor; got {type(value).__name__}")
    _C._save_tensors(dict(obj), path, dict(metadata or {}), max_shard_size, compressed)


def load(f, *, key=None):
    """What a file holds: of a PyTorch file everything, of others the tensors by name.

    Files of any of the formats are recognized by what they hold; nothing in them is executed, and
    a malformed one is an IoError (an OSError). key: the state dict at this place of a PyTorch
    checkpoint ("model", "ema.state_dict") instead of everything.
    """
    path = os.fspath(f)
    if not os.path.exists(path):
        raise errors.FileNotFoundError(f"load: there is no file {path!r}")
    if key is None and _C._is_torch_file(path):
        return _C._load_torch(path)
    tensors, _ = _C._load_tensors(path, key or "")
    return tensors
