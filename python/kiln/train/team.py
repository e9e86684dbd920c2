"""The processes that train one model together, as a Learner sees them."""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING, Any

from .. import _C, errors
from ..distributed._objects import _all_of, broadcast_object_list
from ..nn.parallel import DistributedDataParallel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .._C import Tensor
    from .running import Means


def team_of(model: Any) -> Team | None:
    """The team of a model that several processes have."""
    if not isinstance(model, DistributedDataParallel) or model.process_group.size() == 1:
        return None
    return Team(model.process_group)


class Team:
    """A process group in a Learner's words. All processes call its methods in the same order."""

    def __init__(self, group: Any) -> None:
        self._group = group
        self.rank: int = group.rank()
        self.size: int = group.size()
        self.is_main = self.rank == 0
        self.seed = 0

    def all_of(self, value: Any) -> list[Any]:
        """The values of all processes."""
        return _all_of(value, self._group)

    def of_main(self, value: Any) -> Any:
        """The value of the first process."""
        box = [value]
        broadcast_object_list(box, group=self._group, group_src=0)
        return box[0]

    def any(self, truth: bool) -> bool:
        """Whether it is true in any process."""
        flag = _C.tensor([int(truth)])
        self._group._group.all_reduce(flag, "max", False)
        return bool(flag)

    def mean(self, number: float) -> float:
        """Of the numbers of all processes."""
        x = _C.tensor([number], dtype=_C.float64)
        self._group._group.all_reduce(x, "avg", False)
        return float(x)

    def rows(self, value: Any) -> Any:
        """The rows of all processes, in the order of their ranks; of a tensor, or within a list or dict."""
        if isinstance(value, dict):
            return {key: self.rows(part) for key, part in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(self.rows(part) for part in value)
        if not isinstance(value, _C.Tensor):
            return value
        return self._rows_of(value)

    def _rows_of(self, x: Tensor) -> Tensor:
        own = (x.detach().reshape(1) if x.dim() == 0 else x.detach()).contiguous()
        counts = [_C.zeros(1, dtype=_C.int64) for _ in range(self.size)]
        self._group._group.all_gather(counts, _C.tensor([own.shape[0]]), False)
        found = [own.new_empty([int(n), *own.shape[1:]]) for n in counts]
        self._group._group.all_to_all(found, [own] * self.size, False)
        return _C.cat(found)

    def add_means(self, means: Means) -> None:
        """Makes sums and weights those of all processes, which count numbers of the same names."""
        names = sorted(means.sums)
        numbers = _C.tensor([number for name in names for number in means.sums[name]], dtype=_C.float64)
        self._group._group.all_reduce(numbers, "sum", False)
        found = numbers.tolist()
        means.sums = {name: found[2 * i : 2 * i + 2] for i, name in enumerate(names)}

    def check_lengths(self, name: str, batches: int | None) -> None:
        """All must take as many steps."""
        lengths = self.all_of(batches)
        if len(set(lengths)) > 1:
            raise errors.ValueError(
                f"Learner.fit: the processes need as many batches of {name!r}; got {lengths}; expected "
                "a DistributedSampler in each loader"
            )

    def batches(self, learner: Any, batches: Any) -> Iterator[Any]:
        """An epoch's batches. What each draws is a function of the seed, the rank, the epoch and its
        number, so that a run goes on with the same numbers in every process."""
        iterator = iter(batches)
        while True:
            number = _C._distributed.batch_seed(
                self.seed % 2**64, self.rank, self.size, learner.epoch, learner.batch
            )
            _C.manual_seed(number)
            random.seed(number)
            numpy = sys.modules.get("numpy")
            if numpy is not None:
                numpy.random.seed(number % 2**32)
            try:
                batch = next(iterator)
            except StopIteration:
                return
            yield batch
