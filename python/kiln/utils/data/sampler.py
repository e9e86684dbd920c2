"""Samplers: in which order the samples of a data set come."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Generic, TypeVar

from ... import _C, errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence, Sized
    from typing import Any

    from ..._C import Generator, Tensor

__all__ = [
    "BatchSampler",
    "DistributedSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]


def new_seed(generator: Generator | None = None) -> int:
    """A number drawn from a generator, or from the default one."""
    return int(_C.empty((), dtype=_C.int64).random_(generator=generator).item())


def check_count(name: str, what: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise errors.ValueError(f"{name}: {what} must be a positive integer; got {value!r}")


def check_flag(name: str, what: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise errors.TypeError(f"{name}: {what} must be a bool; got {value!r}")


T_co = TypeVar("T_co", covariant=True)


class Sampler(Generic[T_co]):
    """Numbers of samples, in order. A subclass has __iter__() and, mostly, __len__().

    data_source: not looked at.

    >>> class Backwards(kiln.utils.data.Sampler):
    ...     def __iter__(self):
    ...         return iter([2, 1, 0])
    >>> loader = kiln.utils.data.DataLoader([10, 20, 30], batch_size=3, sampler=Backwards())
    >>> list(loader)
    [tensor([30, 20, 10])]
    """

    def __init__(self, data_source: Any = None) -> None:
        pass

    def __iter__(self) -> Iterator[T_co]:
        raise errors.NotImplementedError(f"{type(self).__name__} has no __iter__()")


class SequentialSampler(Sampler[int]):
    """0, 1, 2 and so on, up to the length of data_source.

    >>> list(kiln.utils.data.SequentialSampler([10, 20, 30]))
    [0, 1, 2]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """All samples of data_source in a random order; with replacement, each drawn from all.

    num_samples: how many; without replacement, more than there are means several orders one after
    another. generator: where the numbers come from; None: a seed of the default generator.

    >>> sorted(kiln.utils.data.RandomSampler([10, 20, 30]))
    [0, 1, 2]
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        check_flag("RandomSampler", "replacement", replacement)
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        check_count("RandomSampler", "num_samples", self.num_samples)

    @property
    def num_samples(self) -> int:
        """How many numbers it gives."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n = len(self.data_source)
        generator = self.generator
        if generator is None:
            generator = _C.Generator()
            generator.manual_seed(new_seed())
        if n == 0:
            return
        if self.replacement:
            for left in range(self.num_samples, 0, -32):
                yield from _C.randint(0, n, (min(left, 32),), generator=generator).tolist()
            return
        for left in range(self.num_samples, 0, -n):
            yield from _C.randperm(n, generator=generator).tolist()[:left]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The numbers indices in a random order.

    >>> sorted(kiln.utils.data.SubsetRandomSampler([5, 7]))
    [5, 7]
    """

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for i in _C.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """num_samples numbers of [0, len(weights)), each with a probability like its weight.

    replacement: whether a number may come twice.

    >>> list(kiln.utils.data.WeightedRandomSampler([0., 1.], 3))
    [1, 1, 1]
    """

    def __init__(
        self,
        weights: Tensor | Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        check_count("WeightedRandomSampler", "num_samples", num_samples)
        check_flag("WeightedRandomSampler", "replacement", replacement)
        self.weights = _C.as_tensor(weights, dtype=_C.float64)
        if self.weights.dim() != 1:
            raise errors.ShapeError(
                f"WeightedRandomSampler: weights must have one dim; got {list(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = _C.multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        return iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of batch_size numbers of another sampler; drop_last leaves out a shorter last one.

    >>> list(kiln.utils.data.BatchSampler([0, 1, 2], batch_size=2, drop_last=False))
    [[0, 1], [2]]
    """

    def __init__(
        self, sampler: Sampler[int] | Iterable[int], batch_size: int, drop_last: bool
    ) -> None:
        check_count("BatchSampler", "batch_size", batch_size)
        check_flag("BatchSampler", "drop_last", drop_last)
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        numbers = iter(self.sampler)
        while batch := list(itertools.islice(numbers, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        n = len(self.sampler)  # type: ignore[arg-type]
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


class DistributedSampler(Sampler[int]):
    """The part of one of num_replicas processes: each has equally many numbers.

    Shuffled by seed + epoch: call set_epoch(epoch) before each epoch. drop_last leaves out what
    does not divide evenly; otherwise some numbers come twice.

    dataset: or anything with a length. rank: which process this is; without it and num_replicas those
    of the process group. shuffle: a new order for each set_epoch().

    >>> sampler = kiln.utils.data.DistributedSampler(range(4), num_replicas=2, rank=1, shuffle=False)
    >>> list(sampler)
    [1, 3]
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            from ... import distributed

            if not distributed.is_initialized():
                raise errors.ValueError(
                    "DistributedSampler: num_replicas and rank must be given: there is no process "
                    "group to ask"
                )
            num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
            rank = distributed.get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise errors.ValueError(
                f"DistributedSampler: rank must be in [0, {num_replicas}); got {rank}"
            )
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        self.shuffle = shuffle
        self.seed = seed
        n = len(dataset)
        self.num_samples = n // num_replicas if drop_last else math.ceil(n / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        n = len(self.dataset)
        order = list(range(n))
        if self.shuffle:
            generator = _C.Generator()
            generator.manual_seed(self.seed + self.epoch)
            order = _C.randperm(n, generator=generator).tolist()
        if order:
            order = list(itertools.islice(itertools.cycle(order), self.total_size))
        return iter(order[self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Which epoch's order comes next."""
        self.epoch = epoch
