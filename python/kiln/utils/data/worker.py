"""What runs in a loader's worker processes."""

from __future__ import annotations

import dataclasses
import os
import random
import sys
import traceback
from multiprocessing.reduction import ForkingPickler
from typing import TYPE_CHECKING, Any

from ... import _C
from ...random import manual_seed
from .collate import default_collate
from .dataset import Dataset, _items

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

_POLL = 5.0  # seconds after which a worker looks whether its loader's process lives
_info = None


class _End:
    """There is one of it in each process."""

    def __reduce__(self):
        return "END"


END = _End()  # an iterable data set has no more samples


@dataclasses.dataclass
class WorkerInfo:
    """What get_worker_info() gives: which of how many workers this is, its seed, its data set."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


def get_worker_info() -> WorkerInfo | None:
    """The WorkerInfo in a worker process; None elsewhere.

    >>> kiln.utils.data.get_worker_info() is None
    True
    """
    return _info


class Failure:
    """An exception of a worker, as it travels to the loader's process."""

    def __init__(self, where: str) -> None:
        kind: Any = sys.exc_info()[0]
        self.kind = kind
        self.text = f"Caught {kind.__name__} {where}.\n{traceback.format_exc()}"

    def reraise(self) -> NoReturn:
        """Raises it again, of the same type where one argument makes one."""
        try:
            error = self.kind(self.text)
        except Exception:
            error = RuntimeError(self.text)
        raise error


class Fetcher:
    """Batches of a data set."""

    def __init__(
        self,
        dataset: Any,
        iterable: bool,
        collate: Callable[[Any], Any],
        drop_last: bool,
        batched: bool,
    ) -> None:
        self.dataset = dataset
        self.collate = collate
        self.drop_last = drop_last
        self.batched = batched
        self.gathers = batched and collate is default_collate and isinstance(dataset, Dataset)
        self.samples = iter(dataset) if iterable else None

    def fetch(self, indices: Any) -> Any:
        """The batch of these numbers; END when an iterable data set has no more."""
        if self.samples is None:
            if self.gathers:
                batch = self.dataset._gathered(indices)
                if batch is not None:
                    return batch
            if self.batched:
                return self.collate(_items(self.dataset, indices))
            return self.collate(self.dataset[indices])
        if not self.batched:
            sample = next(self.samples, END)
            return END if sample is END else self.collate(sample)
        batch = []
        for _ in indices:
            sample = next(self.samples, END)
            if sample is END:
                break
            batch.append(sample)
        if not batch or (self.drop_last and len(batch) < len(indices)):
            return END
        return self.collate(batch)


def work(
    tasks: Any,
    results: Any,
    parent: int,
    dataset: Any,
    iterable: bool,
    collate: Callable[[Any], Any],
    drop_last: bool,
    batched: bool,
    worker: int,
    count: int,
    init: Callable[[int], object] | None,
) -> None:
    """Takes ("epoch", seed), (epoch, number, indices) or None; answers a pickled (epoch, number,
    batch)."""
    global _info
    fetcher: Any = None
    failure: Failure | None = None
    _C.set_num_threads(1)
    try:
        while (task := _next(tasks, parent)) is not None:
            if task[0] == "epoch":
                seed = (task[1] + worker) % 2**63
                _seed(seed)
                is_new, _info = _info is None, WorkerInfo(worker, count, seed, dataset)
                try:
                    if init is not None and is_new:
                        init(worker)
                    fetcher = Fetcher(dataset, iterable, collate, drop_last, batched)
                    failure = None
                except Exception:
                    failure = Failure(f"in initialization of DataLoader worker process {worker}")
                continue
            epoch, number, indices = task
            try:
                batch = fetcher.fetch(indices) if failure is None else failure
                answer = bytes(ForkingPickler.dumps((epoch, number, batch)))
            except Exception:
                batch = Failure(f"in DataLoader worker process {worker}")
                answer = bytes(ForkingPickler.dumps((epoch, number, batch)))
            results.put(answer)
    except KeyboardInterrupt:
        pass  # the loader's process says so
    finally:
        results.cancel_join_thread()
        results.close()


def _next(tasks, parent):
    """The next task; None when the loader's process is no more."""
    while not tasks._reader.poll(_POLL):
        if os.getppid() != parent:
            return None
    return tasks.get()


def _seed(seed):
    random.seed(seed)
    manual_seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed % 2**32)
