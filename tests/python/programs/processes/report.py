"""What the programs of this folder begin and end with. They are started as several processes, with the
name of the library (kiln or torch) and a folder, to which each process writes what it found."""

import importlib
import json
import os
import pathlib
import sys
import warnings

import numpy as np

warnings.simplefilter("ignore")  # PyTorch says of some functions that they are old
NAME, FOLDER, *ARGUMENTS = sys.argv[1:]
lib = importlib.import_module(NAME)
dist = lib.distributed
RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
found = {}


def plain(value):
    """value in JSON's types: of a tensor its dtype, shape and numbers."""
    if isinstance(value, lib.Tensor):
        parts = lib.view_as_real(value) if value.is_complex() else value
        return [str(value.dtype).split(".")[-1], list(value.shape), parts.detach().tolist()]
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    return value.decode() if isinstance(value, bytes) else value


def note(name, value):
    assert name not in found, name
    found[name] = plain(value)


def refused(kind, text, function):
    """That Kiln raises an error of this kind, with text in its words."""
    if NAME != "kiln":
        return
    try:
        function()
    except kind as error:
        assert text in str(error), repr(error)
    else:
        raise AssertionError(f"no {kind.__name__}: {text}")


def small(count, rank=RANK, dtype="float32"):
    """Small integers that differ among the processes."""
    return ((lib.arange(count) * 3 + rank * 7) % 5).to(getattr(lib, dtype))


def normal(seed, *shape):
    """The same numbers in both libraries."""
    return lib.from_numpy(np.random.default_rng(seed).normal(size=shape).astype("float32"))


def write():
    path = pathlib.Path(FOLDER, f"{NAME}-{RANK}.json")
    path.write_text(json.dumps(found))


def finish():
    write()
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()
