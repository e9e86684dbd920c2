"""kiln.save and kiln.load: tensors by name, in files that hold nothing to execute."""

import os
from collections.abc import Mapping

from . import _C


def save(obj, f, metadata=None):
    """Writes a mapping of names to tensors (such as a state dict) to the file f.

    The file is in the safetensors format. An existing file is replaced only when the new one is
    complete. metadata: strings by name, kept in the file.
    """
    if not isinstance(obj, Mapping):
        raise TypeError(f"save: expected a mapping of names to tensors; got {type(obj).__name__}")
    tensors = {}
    for name, value in obj.items():
        if not isinstance(value, _C.Tensor):
            raise TypeError(f"save: {name!r} must be a tensor; got {type(value).__name__}")
        tensors[name] = value.detach()
    _C._save_safetensors(tensors, os.fspath(f), dict(metadata or {}))


def load(f):
    """The tensors of a file that save() wrote, or any safetensors file, as a dict by name."""
    tensors, _ = _C._load_safetensors(os.fspath(f))
    return tensors
