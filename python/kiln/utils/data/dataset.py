"""Data sets: what gives samples by number, or one after another."""

from __future__ import annotations

import bisect
import itertools
import math
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ... import _C, errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..._C import Generator, Tensor
    from ..._typing import Samples, T

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]

T_co = TypeVar("T_co", covariant=True)


# Errors that PyTorch raises as other types, too.


class _AssertedShape(errors.ShapeError, AssertionError):
    pass


class _AssertedValue(errors.ValueError, AssertionError):
    pass


class _IndexValue(errors.IndexError, ValueError):
    pass


class Dataset(Generic[T_co]):
    """Samples by number. A subclass has __getitem__(index) and, for most samplers, __len__().

    __getitems__(indices), where it is defined, gives the samples of a batch as a list.

    >>> class Squares(kiln.utils.data.Dataset):
    ...     def __len__(self):
    ...         return 3
    ...     def __getitem__(self, index):
    ...         return index**2
    >>> list(kiln.utils.data.DataLoader(Squares(), batch_size=3))
    [tensor([0, 1, 4])]
    """

    def __getitem__(self, index: Any) -> T_co:
        raise errors.NotImplementedError(f"{type(self).__name__} has no __getitem__()")

    def __add__(self, other: Dataset[T_co]) -> ConcatDataset[T_co]:
        """The samples of this and then of the other."""
        return ConcatDataset([self, other])

    def _gathered(self, indices: Any, seeds: Any = None) -> Any:
        """What default_collate would make of these samples, made at once; None: there is no such way.

        seeds: what _draws() gave for them; None: they are drawn now.
        """
        return None

    def _draws(self, indices: Any, generator: Any) -> Any:
        """What decides the random choices for these samples, where C++ alone makes them: threads do
        then, in the place of processes. None: processes must."""
        return None


class IterableDataset(Dataset[T_co]):
    """Samples one after another: a subclass has __iter__().

    With several workers each has a copy of the data set and iterates over it: __iter__() asks
    get_worker_info() which part is its own.

    >>> class Squares(kiln.utils.data.IterableDataset):
    ...     def __iter__(self):
    ...         return (i**2 for i in range(3))
    >>> list(kiln.utils.data.DataLoader(Squares(), batch_size=3))
    [tensor([0, 1, 4])]
    """

    def __add__(self, other: Dataset[T_co]) -> ChainDataset[T_co]:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset["tuple[Tensor, ...]"]):
    """Sample i is (tensors[0][i], tensors[1][i], ...). All have the same first dim.

    >>> kiln.utils.data.TensorDataset(kiln.tensor([1, 2]), kiln.tensor([3, 4]))[1]
    (tensor(2), tensor(4))
    """

    if TYPE_CHECKING:  # by numbers, until there is none

        def __iter__(self) -> Iterator[tuple[Tensor, ...]]: ...

    def __init__(self, *tensors: Tensor) -> None:
        if not tensors:
            raise errors.ValueError("TensorDataset: expected at least one tensor")
        for x in tensors:
            if x.dim() == 0 or x.shape[0] != tensors[0].shape[0]:
                raise _AssertedShape(
                    "TensorDataset: all tensors must have the same first dim; got shapes"
                    f" {', '.join(str(list(t.shape)) for t in tensors)}"
                )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(x[index] for x in self.tensors)

    def _gathered(self, indices: Any, seeds: Any = None) -> Any:
        if not is_plain(self, TensorDataset):
            return None
        rows = row_numbers(indices, len(self))
        if rows is None or not all(isinstance(x, _C.Tensor) for x in self.tensors):
            return None
        return [x.index_select(0, rows.to(x.device)) for x in self.tensors]

    def __len__(self) -> int:
        return self.tensors[0].shape[0]


class StackDataset(Dataset[Any]):
    """Samples of several data sets side by side: tuples, or dicts for data sets given by name.

    >>> kiln.utils.data.StackDataset([1, 2], [3, 4])[1]
    (2, 4)
    """

    def __init__(self, *args: Samples[Any], **kwargs: Samples[Any]) -> None:
        if args and kwargs:
            raise errors.ValueError(
                "StackDataset: data sets must be given all by place or all by name"
            )
        if not args and not kwargs:
            raise errors.ValueError("StackDataset: expected at least one data set")
        self.datasets = args or kwargs
        lengths = [len(d) for d in (args or kwargs.values())]  # type: ignore[arg-type]
        if len(set(lengths)) != 1:
            raise errors.ValueError(f"StackDataset: the data sets differ in length; got {lengths}")
        self._length = lengths[0]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: d[index] for name, d in self.datasets.items()}
        return tuple(d[index] for d in self.datasets)

    def __getitems__(self, indices: Sequence[Any]) -> list[Any]:
        if isinstance(self.datasets, dict):
            columns = {name: _items(d, indices) for name, d in self.datasets.items()}
            return [{n: c[i] for n, c in columns.items()} for i in range(len(indices))]
        return list(zip(*(_items(d, indices) for d in self.datasets)))

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T_co]):
    """The samples of several data sets, one after another.

    >>> data = kiln.utils.data.ConcatDataset([[1, 2], [3]])
    >>> len(data), data[2]
    (3, 3)
    """

    if TYPE_CHECKING:  # by numbers, until there is none

        def __iter__(self) -> Iterator[T_co]: ...

    def __init__(self, datasets: Iterable[Dataset[T_co]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise _AssertedValue("ConcatDataset: expected at least one data set")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise errors.ValueError(
                "ConcatDataset: an IterableDataset has no samples by number; try ChainDataset"
            )
        sizes = [len(d) for d in self.datasets]  # type: ignore[arg-type]
        self.cumulative_sizes = list(itertools.accumulate(sizes))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> T_co:
        size = len(self)
        if not -size <= index < size:
            kind = _IndexValue if index < 0 else errors.IndexError
            raise kind(f"ConcatDataset: index {index} is out of range for {size} samples")
        index %= size
        which = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[which][index - (self.cumulative_sizes[which - 1] if which else 0)]


class ChainDataset(IterableDataset[T_co]):
    """The samples of several iterable data sets, one after another.

    >>> class Numbers(kiln.utils.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter([1, 2])
    >>> list(kiln.utils.data.ChainDataset([Numbers(), Numbers()]))
    [1, 2, 1, 2]
    """

    def __init__(self, datasets: Iterable[Dataset[T_co]]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[T_co]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise errors.TypeError(
                    "ChainDataset: expected data sets of the kind IterableDataset; got"
                    f" {type(dataset).__name__}"
                )
            yield from dataset  # type: ignore[misc]

    def __len__(self) -> int:
        return sum(len(d) for d in self.datasets)  # type: ignore[arg-type, misc]


class Subset(Dataset[T_co]):
    """The samples of a data set with these numbers.

    >>> data = kiln.utils.data.Subset([10, 20, 30], [2, 0])
    >>> len(data), data[0]
    (2, 30)
    """

    if TYPE_CHECKING:  # by numbers, until there is none

        def __iter__(self) -> Iterator[T_co]: ...

    def __init__(self, dataset: Samples[T_co], indices: Sequence[int]) -> None:
        self.dataset: Any = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> T_co:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: Sequence[int]) -> list[T_co]:
        return _items(self.dataset, [self.indices[i] for i in indices])

    def _gathered(self, indices: Any, seeds: Any = None) -> Any:
        if type(self) is not Subset or not isinstance(self.dataset, Dataset):
            return None
        return self.dataset._gathered([self.indices[i] for i in indices], seeds)

    def _draws(self, indices: Any, generator: Any) -> Any:
        if type(self) is not Subset or not isinstance(self.dataset, Dataset):
            return None
        return self.dataset._draws([self.indices[i] for i in indices], generator)

    def __len__(self) -> int:
        return len(self.indices)


def is_plain(dataset: Any, kind: Any) -> bool:
    """Whether its samples are those of this class of ours, and not of a class derived from it."""
    own = type(dataset)
    return own.__getitem__ is kind.__getitem__ and not hasattr(own, "__getitems__")


def row_numbers(indices: Any, size: int) -> _C.Tensor | None:
    """A batch's indices as a tensor; None where they are no integers from 0 to size - 1."""
    if not isinstance(indices, list) or not all(type(i) is int for i in indices):
        return None
    if not indices or min(indices) < 0 or max(indices) >= size:
        return None
    return _C.tensor(indices)


def _items(dataset, indices):
    """The samples of a batch."""
    if callable(getattr(dataset, "__getitems__", None)):
        items = dataset.__getitems__(indices)
        if len(items) != len(indices):
            raise errors.ValueError(
                f"{type(dataset).__name__}: __getitems__ gave {len(items)} samples for"
                f" {len(indices)} indices"
            )
        return items
    return [dataset[i] for i in indices]


def random_split(
    dataset: Samples[T], lengths: Sequence[int | float], generator: Generator | None = None
) -> list[Subset[T]]:
    """Subsets of these lengths with no sample in common, at random.

    lengths: whole numbers that sum to len(dataset), or fractions that sum to 1: then each gets
    floor(fraction len(dataset)) samples, and what is left goes to the first ones, one each.

    >>> parts = kiln.utils.data.random_split(range(10), [7, 3])
    >>> [len(part) for part in parts]
    [7, 3]
    """
    total = len(dataset)  # type: ignore[arg-type]
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1 + 1e-9 and max(lengths) <= 1:
        if total != 1 or any(isinstance(n, float) for n in lengths):
            for fraction in lengths:
                if not 0 <= fraction <= 1:
                    raise errors.ValueError(
                        f"random_split: a fraction must be in [0, 1]; got {fraction}"
                    )
            sizes = [math.floor(total * fraction) for fraction in lengths]
            for i in range(total - sum(sizes)):
                sizes[i % len(sizes)] += 1
            lengths = sizes
    if sum(lengths) != total:
        raise errors.ValueError(
            f"random_split: lengths must sum to the data set's {total} samples; got {list(lengths)}"
        )
    order = _C.randperm(total, generator=generator).tolist()
    ends = itertools.accumulate(lengths)
    return [Subset(dataset, order[end - n : end]) for end, n in zip(ends, lengths)]
