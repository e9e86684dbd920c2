"""How samples become a batch."""

from __future__ import annotations

import collections.abc
import copy
from typing import TYPE_CHECKING

from ... import _C, errors

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["default_collate", "default_convert"]

_TEXT = (str, bytes)


def _is_numpy(x):
    return type(x).__module__ == "numpy"


def _like(container, values):
    """The values in a container of the same kind; a plain one where that cannot be made."""
    try:
        if isinstance(container, collections.abc.Mapping):
            if isinstance(container, collections.abc.MutableMapping):
                out = copy.copy(container)
                out.update(values)
                return out
            return type(container)(values)
        if hasattr(container, "_fields"):
            return type(container)(*values)
        return type(container)(values)
    except TypeError:
        return values


def default_convert(data: Any) -> Any:
    """NumPy's arrays and numbers within `data` become tensors; all else stays.

    >>> import numpy as np
    >>> kiln.utils.data.default_convert({"x": np.array([1, 2]), "name": "a"})
    {'x': tensor([1, 2]), 'name': 'a'}
    """
    if isinstance(data, _C.Tensor) or isinstance(data, _TEXT):
        return data
    if _is_numpy(data):
        return data if data.dtype.kind in "SUO" else _C.as_tensor(data)
    if isinstance(data, collections.abc.Mapping):
        return _like(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, collections.abc.Sequence):
        return _like(data, [default_convert(value) for value in data])
    return data


def default_collate(batch: Sequence[Any]) -> Any:
    """A list of samples as one: tensors, arrays and numbers become a tensor with a new first dim.

    Mappings, named tuples and sequences are collated part by part; strings stay a list. Raises
    TypeError for anything else, ShapeError for tensors of different shapes, and ValueError for
    sequences of different lengths.

    >>> kiln.utils.data.default_collate([(kiln.tensor([1, 2]), 5), (kiln.tensor([3, 4]), 6)])
    [tensor([[1, 2],
            [3, 4]]), tensor([5, 6])]
    """
    if len(batch) == 0:
        raise errors.ValueError("default_collate: there are no samples")
    first = batch[0]
    if isinstance(first, _C.Tensor):
        return _C.stack(list(batch), 0)
    if _is_numpy(first):
        if first.dtype.kind in "SUO":
            raise errors.TypeError(f"default_collate: arrays of {first.dtype} are no tensors")
        return _C.stack([_C.as_tensor(x) for x in batch], 0)
    if isinstance(first, float):
        return _C.tensor(list(batch), dtype=_C.float64)
    if isinstance(first, (bool, int, complex)):
        return _C.tensor(list(batch))
    if isinstance(first, _TEXT):
        return batch
    if isinstance(first, collections.abc.Mapping):
        parts: Any = {key: default_collate([sample[key] for sample in batch]) for key in first}
        return _like(first, parts)
    if isinstance(first, collections.abc.Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise errors.ValueError(
                "default_collate: each sample of the batch must have equally many parts; got"
                f" {sorted({len(sample) for sample in batch})}"
            )
        parts = [default_collate(column) for column in zip(*batch)]
        # A batch of pairs is a list, as PyTorch's.
        return parts if type(first) is tuple else _like(first, parts)
    raise errors.TypeError(
        "default_collate: samples must be tensors, arrays, numbers, strings, mappings or sequences"
        f" of them; got {type(first).__name__}"
    )
