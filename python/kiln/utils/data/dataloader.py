"""DataLoader: batches of a data set, made in this process or ahead of time in others."""

from __future__ import annotations

import collections
import collections.abc
import concurrent.futures
import multiprocessing
import os
import pickle
import queue
from typing import TYPE_CHECKING, Generic, TypeVar

from ... import _C, errors
from ...random import get_rng_state, manual_seed, set_rng_state
from . import collate as _collate
from .collate import default_collate, default_convert  # noqa: F401  PyTorch has them here
from .dataset import Dataset, IterableDataset, _items
from .sampler import BatchSampler, RandomSampler, SequentialSampler, new_seed
from .worker import END, Failure, Fetcher, work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from ..._C import Generator
    from ..._typing import Samples
    from .sampler import Sampler

__all__ = ["DataLoader"]

# Attributes that others are made from: a change would do nothing, or half of what it says.
_FIXED = frozenset(
    ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
)
_POLL = 5.0  # seconds after which a loader looks whether its workers live


class _Endless:
    """The numbers of an iterable data set, which needs none."""

    def __iter__(self):
        while True:
            yield None


T_co = TypeVar("T_co", covariant=True)


def _pinned(batch, device):
    """The batch with its tensors in pinned memory; other objects as they are."""
    if isinstance(batch, _C.Tensor):
        return batch.pin_memory(device) if batch.device.type == "cpu" else batch
    if hasattr(batch, "pin_memory"):
        return batch.pin_memory()
    if isinstance(batch, (str, bytes)):
        return batch
    if isinstance(batch, collections.abc.Mapping):
        parts = {key: _pinned(value, device) for key, value in batch.items()}
        return parts if type(batch) is dict else type(batch)(parts)  # type: ignore[call-arg]
    if isinstance(batch, tuple) and hasattr(batch, "_make"):
        return batch._make(_pinned(part, device) for part in batch)
    if isinstance(batch, (list, tuple)):
        return type(batch)(_pinned(part, device) for part in batch)
    return batch


class _Iterator:
    """What iter(loader) gives: its batches, as many as len() says."""

    def __init__(self, loader: DataLoader[Any], batches: Iterator[Any]) -> None:
        self._loader = loader
        self._batches = batches
        self._next = batches.__next__

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self._next()

    def __len__(self) -> int:
        return len(self._loader)


class DataLoader(Generic[T_co]):
    """Batches of a data set, in order or shuffled.

    batch_size: samples in a batch; None: samples alone. shuffle: a new random order each time.
    sampler: an order of numbers; batch_sampler: lists of them, instead of batch_size, shuffle,
    sampler and drop_last. collate_fn(list of samples) makes a batch; see default_collate.
    drop_last leaves out a last batch with fewer samples.

    num_workers: processes that make batches ahead of time, prefetch_factor each (2); 0: none, this
    process makes them. The batches come in the same order either way. worker_init_fn(id) is called
    in each worker first, get_worker_info() says there which one it is. A worker's generators are
    seeded with a seed from `generator` plus its number. persistent_workers keeps the processes from
    one iteration to the next. timeout: seconds to wait for a batch; 0: no limit.
    multiprocessing_context: "fork" (the default), "spawn", "forkserver". Where C++ alone makes the
    batches, of ImageFolder's photographs, workers are threads unless a context is named. in_order=False gives
    batches as they come. pin_memory: tensors of batches, also within lists, dicts and objects that have a method
    pin_memory, come in pinned memory of the driver of pin_memory_device ("cuda", "opencl"; "": of the first GPU, and
    nothing changes where there is none), from which to(device, non_blocking=True) does not wait.

    Raises ValueError for options that exclude each other. An exception of the data set comes out of
    the loop, from a worker with the worker's traceback in its message.

    >>> loader = kiln.utils.data.DataLoader(kiln.utils.data.TensorDataset(kiln.arange(5)), batch_size=2)
    >>> [batch.tolist() for (batch,) in loader]
    [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self,
        dataset: Samples[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[Any] | Iterable[Sequence[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[T_co]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], object] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        if num_workers < 0:
            raise errors.ValueError(f"DataLoader: num_workers must be >= 0; got {num_workers}")
        if timeout < 0:
            raise errors.ValueError(f"DataLoader: timeout must be >= 0; got {timeout}")
        if num_workers == 0 and prefetch_factor is not None:
            raise errors.ValueError("DataLoader: prefetch_factor needs num_workers > 0")
        if prefetch_factor is not None and prefetch_factor < 1:
            raise errors.ValueError(
                f"DataLoader: prefetch_factor must be >= 1; got {prefetch_factor}"
            )
        if persistent_workers and num_workers == 0:
            raise errors.ValueError("DataLoader: persistent_workers needs num_workers > 0")
        if multiprocessing_context is not None and num_workers == 0:
            raise errors.ValueError("DataLoader: multiprocessing_context needs num_workers > 0")
        self._iterable = isinstance(dataset, IterableDataset)
        if self._iterable and (shuffle or sampler is not None or batch_sampler is not None):
            raise errors.ValueError(
                "DataLoader: an IterableDataset gives its samples in its own order; expected no"
                " shuffle, sampler or batch_sampler"
            )
        if sampler is not None and shuffle:
            raise errors.ValueError("DataLoader: sampler and shuffle exclude each other")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise errors.ValueError(
                    "DataLoader: batch_sampler excludes batch_size, shuffle, sampler and drop_last"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise errors.ValueError("DataLoader: drop_last needs a batch_size")
        if sampler is None:
            if self._iterable:
                sampler = _Endless()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)  # type: ignore[arg-type]
            else:
                sampler = SequentialSampler(dataset)  # type: ignore[arg-type]
        if batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        if collate_fn is None:
            batched = batch_sampler is not None
            collate_fn = _collate.default_collate if batched else _collate.default_convert
        self.dataset: Any = dataset
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.num_workers = num_workers
        self.collate_fn = collate_fn
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.generator = generator
        self.prefetch_factor = 2 if prefetch_factor is None and num_workers > 0 else prefetch_factor
        self.persistent_workers = persistent_workers
        self.in_order = in_order
        self._kept: Any = None
        self._is_made = True

    _is_made = False

    def __setattr__(self, name: str, value: Any) -> None:
        if self._is_made and name in _FIXED:
            raise errors.ValueError(
                f"{name} attribute should not be set after {type(self).__name__} is initialized"
            )
        super().__setattr__(name, value)

    def _numbers(self):
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def __len__(self) -> int:
        """How many batches there are. Raises TypeError where the data set has no length."""
        if not self._iterable:
            return len(self._numbers())
        n = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return n
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        batches = self._batches()
        if self.pin_memory:
            batches = (_pinned(batch, self.pin_memory_device or None) for batch in batches)
        return _Iterator(self, batches)

    def _batches(self):
        if self.num_workers == 0:
            return self._here()
        seed = new_seed(self.generator)
        if self._may_thread():
            return _ThreadBatches(self, seed)
        if not self.persistent_workers:
            return _Batches(self, _Workers(self), seed)
        if self._kept is None or self._kept.is_ended:
            self._kept = _Workers(self)
        return _Batches(self, self._kept, seed)

    def _may_thread(self) -> bool:
        """Whether batches need no Python of the user's: then workers are threads."""
        return (
            self.batch_sampler is not None
            and self.collate_fn is _collate.default_collate
            and self.worker_init_fn is None
            and self.multiprocessing_context is None
            and isinstance(self.dataset, Dataset)
            and self.dataset._draws([], None) is not None
        )

    def _here(self, numbers=None):
        """The batches of these numbers of samples (all), made in this process."""
        fetcher = Fetcher(
            self.dataset, self._iterable, self.collate_fn, self.drop_last,
            self.batch_sampler is not None,
        )  # fmt: skip
        for indices in self._numbers() if numbers is None else numbers:
            batch = fetcher.fetch(indices)
            if batch is END:
                return
            yield batch

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": None}


class _ThreadBatches:
    """One iteration over batches that C++ makes, on threads of this process.

    Worker w makes every num_workers-th batch, and its random choices are drawn from a generator of
    its own, as in processes: batches are the same.
    """

    def __init__(self, loader: Any, seed: int) -> None:
        self._dataset, self._timeout = loader.dataset, loader.timeout
        self._numbers = iter(loader._numbers())
        self._generators = [_C.Generator() for _ in range(loader.num_workers)]
        for worker, generator in enumerate(self._generators):
            generator.manual_seed((seed + worker) % 2**63)
        self._pool = concurrent.futures.ThreadPoolExecutor(loader.num_workers, "kiln-data")
        self._asked = 0
        self._waiting: Any = collections.deque()
        for _ in range(loader.num_workers * loader.prefetch_factor):
            self._ask()

    def _ask(self) -> None:
        indices = next(self._numbers, None)
        if indices is None:
            return
        generator = self._generators[self._asked % len(self._generators)]
        self._asked += 1
        seeds = self._dataset._draws(indices, generator)
        future = self._pool.submit(self._dataset._gathered, indices, seeds)
        self._waiting.append((indices, generator, future))

    def __iter__(self) -> _ThreadBatches:
        return self

    def __next__(self) -> Any:
        if not self._waiting:
            self._end()
            raise StopIteration
        indices, generator, future = self._waiting.popleft()
        try:
            batch = future.result(self._timeout or None)
            if batch is None:
                batch = self._one_by_one(indices, generator)
        except concurrent.futures.TimeoutError:
            self._end()
            raise errors.RuntimeError(
                f"DataLoader: no batch came within timeout={self._timeout} seconds"
            ) from None
        except BaseException:
            self._end()
            raise
        self._ask()
        return batch

    def _one_by_one(self, indices: Any, generator: Any) -> Any:
        """A batch that C++ does not make alone, by this thread."""
        before = get_rng_state()
        try:
            manual_seed(new_seed(generator))
            return _collate.default_collate(_items(self._dataset, indices))
        finally:
            set_rng_state(before)

    def _end(self) -> None:
        self._waiting.clear()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def __del__(self) -> None:
        if hasattr(self, "_pool"):
            self._end()


class _Workers:
    """The processes of a loader and the queues to and from them."""

    def __init__(self, loader):
        context = loader.multiprocessing_context
        if context is None or isinstance(context, str):
            context = multiprocessing.get_context(context or "fork")
        self.results = context.Queue()
        self._pid = os.getpid()
        self.tasks = []
        self.processes = []
        self.epoch = 0
        self.is_ended = False
        try:
            for worker in range(loader.num_workers):
                tasks = context.SimpleQueue()
                process = context.Process(
                    target=work,
                    args=(
                        tasks, self.results, self._pid, loader.dataset, loader._iterable, loader.collate_fn,
                        loader.drop_last, loader.batch_sampler is not None, worker,
                        loader.num_workers, loader.worker_init_fn,
                    ),  # fmt: skip
                    daemon=True,
                )
                process.start()
                self.tasks.append(tasks)
                self.processes.append(process)
        except BaseException:
            self.end()
            raise

    def begin(self, seed):
        self.epoch += 1
        for tasks in self.tasks:
            tasks.put(("epoch", seed))

    def ask(self, worker, number, indices):
        self.tasks[worker].put((self.epoch, number, indices))

    def answer(self, timeout):
        """The next (number, batch) of this epoch, whichever worker made it."""
        waited = 0.0
        while True:
            step = min(_POLL, timeout - waited) if timeout else _POLL
            try:
                epoch, number, batch = pickle.loads(self.results.get(timeout=step))
            except queue.Empty:
                waited += step
                dead = [p for p in self.processes if not p.is_alive()]
                if dead:
                    ids = ", ".join(f"{p.pid} (exit code {p.exitcode})" for p in dead)
                    self.end()
                    raise errors.RuntimeError(
                        f"DataLoader: worker process {ids} ended unexpectedly"
                    ) from None
                if timeout and waited >= timeout:
                    self.end()
                    raise errors.RuntimeError(
                        f"DataLoader: no batch came within timeout={timeout} seconds"
                    ) from None
                continue
            if epoch == self.epoch:  # not of an iteration that was left early
                return number, batch

    def end(self):
        if self.is_ended:
            return
        self.is_ended = True
        for tasks, process in zip(self.tasks, self.processes):
            if process.is_alive():
                tasks.put(None)
        # What workers still send must be taken, or they wait for ever.
        for process in self.processes:
            for _ in range(50):
                process.join(0.1)
                if not process.is_alive():
                    break
                while True:
                    try:
                        self.results.get_nowait()
                    except (queue.Empty, OSError, EOFError):
                        break
            else:
                process.terminate()
                process.join()
        self.results.cancel_join_thread()
        self.results.close()

    def __del__(self):
        if os.getpid() == self._pid:  # not in a process that was forked from the loader's
            self.end()


class _Batches:
    """One iteration over the batches that workers make."""

    def __init__(self, loader, workers, seed):
        self._workers = workers
        self._keep = loader.persistent_workers
        self._timeout = loader.timeout
        self._in_order = loader.in_order
        self._numbers = iter(loader._numbers())
        self._asked = 0  # batches asked for
        self._given = 0  # the next one in order
        self._ready = {}
        self._waiting = {}  # number: worker
        self._live = list(range(loader.num_workers))
        self._turn = 0
        workers.begin(seed)
        for _ in range(loader.num_workers * loader.prefetch_factor):
            self._ask()

    def __iter__(self):
        return self

    def _ask(self):
        """Asks the next live worker for the next batch."""
        if not self._live:
            return
        indices = next(self._numbers, END)
        if indices is END:
            return
        worker = self._live[self._turn % len(self._live)]
        self._turn += 1
        self._workers.ask(worker, self._asked, indices)
        self._waiting[self._asked] = worker
        self._asked += 1

    def __next__(self):
        while True:
            if self._in_order:
                number = self._given
                while number in self._ready or number in self._waiting:
                    if number in self._ready:
                        break
                    self._take()
                if number not in self._ready:
                    break
            else:
                while self._waiting and not self._ready:
                    self._take()
                if not self._ready:
                    break
                number = next(iter(self._ready))
            batch = self._ready.pop(number)
            self._given = number + 1
            if batch is END:
                continue
            if isinstance(batch, Failure):
                self._finish()
                batch.reraise()
            self._ask()
            return batch
        self._finish()
        raise StopIteration

    def _take(self):
        number, batch = self._workers.answer(self._timeout)
        worker = self._waiting.pop(number)
        if batch is END and worker in self._live:
            self._live.remove(worker)
        self._ready[number] = batch

    def _finish(self):
        self._waiting.clear()
        self._ready.clear()
        if not self._keep:
            self._workers.end()

    def __del__(self):
        if not getattr(self, "_keep", True):
            self._workers.end()
