"""Which samples go together: stratified splits, folds, batches of equal lengths."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ... import _C
from ... import errors as kiln_errors
from .dataset import Subset
from .sampler import Sampler, check_count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from ..._C import Generator, Tensor
    from ..._typing import Samples, T

__all__ = ["BucketBatchSampler", "k_fold", "stratified_split"]


def _shuffled(items, generator):
    return [items[i] for i in _C.randperm(len(items), generator=generator).tolist()]


def _by_label(op, labels, count):
    """The places of each label, in the labels' order."""
    labels = labels.tolist() if isinstance(labels, _C.Tensor) else list(labels)
    if len(labels) != count:
        raise kiln_errors.ValueError(f"{op}: {count} samples need as many labels; got {len(labels)}")
    places = {}
    for i, label in enumerate(labels):
        places.setdefault(label, []).append(i)
    return [places[label] for label in sorted(places)]


def stratified_split(
    dataset: Samples[T], labels: Any, fractions: Sequence[float], generator: Generator | None = None
) -> list[Subset[T]]:
    """Subsets with these fractions of the samples of each label, at random; none is in two.

    fractions: numbers that sum to 1, or to less. Of each label a subset gets the floor of its part, and
    those that are left go to the subsets that lack most.

    labels: one for each sample of the dataset.

    >>> parts = kiln.utils.data.stratified_split(range(4), [0, 0, 1, 1], [0.5, 0.5])
    >>> [len(part) for part in parts]
    [2, 2]
    """
    if not fractions or any(f < 0 for f in fractions) or sum(fractions) > 1 + 1e-9:
        raise kiln_errors.ValueError(
            f"stratified_split: fractions must not be negative and sum to 1 or less; got {fractions}"
        )
    parts: list[list[int]] = [[] for _ in fractions]
    for places in _by_label("stratified_split", labels, len(dataset)):  # type: ignore[arg-type]
        wanted = [f * len(places) for f in fractions]
        sizes = [math.floor(w + 1e-9) for w in wanted]
        spare = min(round(sum(wanted)), len(places)) - sum(sizes)
        lacking = sorted(range(len(parts)), key=lambda k: (sizes[k] - wanted[k], k))
        for k in lacking[:spare]:
            sizes[k] += 1
        places = _shuffled(places, generator)
        for part, size in zip(parts, sizes):
            part += places[:size]
            places = places[size:]
    return [Subset(dataset, sorted(part)) for part in parts]


def k_fold(
    dataset: Samples[T],
    k: int,
    shuffle: bool = False,
    labels: Any = None,
    generator: Generator | None = None,
) -> list[tuple[Subset[T], Subset[T]]]:
    """k pairs of (training subset, validation subset). Each sample is in one validation subset.

    shuffle: at random, not in order. labels: each fold gets its share of each label.

    >>> [(len(train), len(valid)) for train, valid in kiln.utils.data.k_fold(range(6), 3)]
    [(4, 2), (4, 2), (4, 2)]
    """
    n = len(dataset)  # type: ignore[arg-type]
    if isinstance(k, bool) or not isinstance(k, int) or not 2 <= k <= n:
        raise kiln_errors.ValueError(f"k_fold: k must be an integer from 2 to {n} samples; got {k!r}")
    folds: list[list[int]] = [[] for _ in range(k)]
    if labels is None:
        order = _shuffled(list(range(n)), generator) if shuffle else list(range(n))
        begin = 0
        for i, fold in enumerate(folds):
            size = n // k + (i < n % k)
            fold += order[begin : begin + size]
            begin += size
    else:
        next_fold = 0
        for places in _by_label("k_fold", labels, n):
            for place in _shuffled(places, generator) if shuffle else places:
                folds[next_fold % k].append(place)
                next_fold += 1
    pairs = []
    for fold in folds:
        held = set(fold)
        train = [i for i in range(n) if i not in held]
        pairs.append((Subset(dataset, train), Subset(dataset, sorted(fold))))
    return pairs


class BucketBatchSampler(Sampler[list[int]]):
    """Batches of samples of nearly equal length, which need little padding.

    Samples in random order are cut into buckets of `buckets` batches, each is sorted by length, and
    the batches come in random order. lengths: of each sample.

    batch_size: of the lists. shuffle: batches in random order. drop_last: leave out a shorter last
    one.

    >>> sampler = kiln.utils.data.BucketBatchSampler([1, 9, 1, 9], batch_size=2, shuffle=False)
    >>> sorted(sorted(batch) for batch in sampler)
    [[0, 2], [1, 3]]
    """

    def __init__(
        self,
        lengths: Tensor | Iterable[int],
        batch_size: int,
        buckets: int = 50,
        shuffle: bool = True,
        drop_last: bool = False,
        generator: Generator | None = None,
    ) -> None:
        check_count("BucketBatchSampler", "batch_size", batch_size)
        check_count("BucketBatchSampler", "buckets", buckets)
        self.lengths = lengths.tolist() if isinstance(lengths, _C.Tensor) else list(lengths)
        self.batch_size, self.buckets, self.shuffle = batch_size, buckets, shuffle
        self.drop_last, self.generator = drop_last, generator

    def __iter__(self) -> Iterator[list[int]]:
        n = len(self.lengths)
        order = _shuffled(list(range(n)), self.generator) if self.shuffle else list(range(n))
        size = self.batch_size * (self.buckets if self.shuffle else max(n, 1))
        batches = []
        for begin in range(0, n, size):
            bucket = sorted(order[begin : begin + size], key=self.lengths.__getitem__)
            batches += [
                bucket[i : i + self.batch_size] for i in range(0, len(bucket), self.batch_size)
            ]
        if self.drop_last:
            batches = [b for b in batches if len(b) == self.batch_size]
        yield from _shuffled(batches, self.generator) if self.shuffle else batches

    def __len__(self) -> int:
        n = len(self.lengths)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)
