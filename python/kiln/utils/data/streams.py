"""Data that comes one sample after another: shards, shuffle buffers; and what changes data sets."""

from __future__ import annotations

import json
import os
import random
import tarfile
from typing import TYPE_CHECKING, Any, TypeVar

from ... import _C
from ... import errors as kiln_errors
from .dataset import Dataset, IterableDataset
from .tables import check_policy, file_name
from .worker import get_worker_info

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

    from ..._typing import StrPath

__all__ = ["MapDataset", "ShuffleBuffer", "TarShards", "WindowDataset"]

T_co = TypeVar("T_co", covariant=True)


def _decode(name, data):
    """The value of a file in a shard, by the end of its name."""
    kind = name.rpartition(".")[2].lower()
    if kind in ("png", "jpg", "jpeg", "webp"):
        return _C._vision.decode_image(data)
    if kind in ("cls", "id"):
        return int(data)
    if kind in ("txt", "text"):
        return data.decode()
    if kind == "json":
        return json.loads(data)
    return data


class TarShards(IterableDataset[Any]):
    """Samples from tar files in WebDataset's form: neighbouring files with one name up to the first dot.

    A sample is a dict: "__key__" is that name, and each file stands under the rest of its name. decode:
    png, jpg, jpeg and webp become images, cls a number, txt a text, json its value, and the rest stays bytes. Shards are
    dealt out to num_replicas processes and then to their workers. errors="skip": a bad sample is left
    out, and so is what follows the place where a shard is damaged; skipped counts them.

    paths: the files. rank: which process this is. transform: of each sample.

    >>> import io, tarfile
    >>> with tarfile.open("shard.tar", "w") as tar:
    ...     info = tarfile.TarInfo("one.txt")
    ...     info.size = 2
    ...     tar.addfile(info, io.BytesIO(b"hi"))
    >>> list(kiln.utils.data.TarShards("shard.tar"))
    [{'__key__': 'one', 'txt': 'hi'}]
    """

    def __init__(
        self,
        *paths: StrPath,
        decode: bool | Callable[[str, bytes], Any] = True,
        rank: int = 0,
        num_replicas: int = 1,
        errors: str = "raise",
        transform: Callable[[Any], Any] | None = None,
    ) -> None:
        check_policy("TarShards", errors)
        if not 0 <= rank < num_replicas:
            raise kiln_errors.ValueError(
                f"TarShards: rank must be in [0, {num_replicas}); got {rank}"
            )
        self.paths = [file_name("TarShards", p) for p in paths]
        self.decode, self.errors, self.transform = decode, errors, transform
        self.rank, self.num_replicas = rank, num_replicas
        self.skipped = 0

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        worker, workers = (0, 1) if info is None else (info.id, info.num_workers)
        mine = self.paths[self.rank :: self.num_replicas][worker::workers]
        for path in mine:
            for key, files in self._groups(path):
                try:
                    sample = {"__key__": key}
                    for name, data in files.items():
                        sample[name] = _decode(name, data) if self.decode else data
                    if self.transform is not None:
                        sample = self.transform(sample)
                except (kiln_errors.Error, ValueError) as e:
                    self._reject(f"{os.fsdecode(path)!r}, sample {key!r}, {name!r}: {e}")
                else:
                    yield sample

    def _reject(self, what):
        if self.errors == "raise":
            raise kiln_errors.IoError(f"TarShards: {what}") from None
        self.skipped += 1

    def _groups(self, path):
        """(key, files by the rest of their names), one sample after another."""
        key, files = None, {}
        try:
            with tarfile.open(path) as shard:
                for member in shard:
                    if not member.isfile():
                        continue
                    folder, _, base = member.name.rpartition("/")
                    stem, _, kind = base.partition(".")
                    name = f"{folder}/{stem}" if folder else stem
                    if name != key:
                        if files:
                            yield key, files
                        key, files = name, {}
                    files[kind] = shard.extractfile(member).read()
                # tarfile takes what is no header for the end; that is a block of zeros.
                shard.fileobj.seek(shard.offset)
                if shard.fileobj.read(512) != bytes(512):
                    raise tarfile.ReadError("unexpected end of data")
        except (tarfile.TarError, OSError, EOFError) as e:
            place = "at its beginning" if key is None else f"at sample {key!r}"
            self._reject(f"{os.fsdecode(path)!r} is damaged {place}: {e}")
            return
        if files:
            yield key, files


class ShuffleBuffer(IterableDataset[T_co]):
    """The samples of a stream in a random order: each is drawn from a buffer of so many.

    The order is a function of seed and epoch (and of the worker). Each pass is the next epoch, unless
    set_epoch(epoch) says otherwise.

    >>> class Numbers(kiln.utils.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter([1, 2, 3])
    >>> sorted(kiln.utils.data.ShuffleBuffer(Numbers(), 2))
    [1, 2, 3]
    """

    def __init__(self, dataset: Dataset[T_co], buffer_size: int, seed: int = 0) -> None:
        if isinstance(buffer_size, bool) or not isinstance(buffer_size, int) or buffer_size < 1:
            raise kiln_errors.ValueError(
                f"ShuffleBuffer: buffer_size must be a positive integer; got {buffer_size!r}"
            )
        self.dataset, self.buffer_size, self.seed, self.epoch = dataset, buffer_size, seed, 0

    def set_epoch(self, epoch: int) -> None:
        """Another order for another epoch."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[T_co]:
        info = get_worker_info()
        rng = random.Random(f"{self.seed}/{self.epoch}/{0 if info is None else info.id}")
        self.epoch += 1
        buffer: list[T_co] = []
        for sample in self.dataset:  # type: ignore[attr-defined]
            if len(buffer) < self.buffer_size:
                buffer.append(sample)
                continue
            place = rng.randrange(self.buffer_size)
            yield buffer[place]
            buffer[place] = sample
        rng.shuffle(buffer)
        yield from buffer

    def __len__(self) -> int:
        return len(self.dataset)  # type: ignore[arg-type]


class MapDataset(Dataset[T_co]):
    """The samples of a data set, each changed by a function. A stream becomes a stream.

    >>> kiln.utils.data.MapDataset([1, 2], lambda x: x * 10)[1]
    20
    """

    def __new__(cls, dataset: Dataset[Any], function: Callable[[Any], T_co]) -> Self:
        if cls is MapDataset and isinstance(dataset, IterableDataset):
            cls = _MapStream  # type: ignore[assignment]
        return object.__new__(cls)

    def __init__(self, dataset: Dataset[Any], function: Callable[[Any], T_co]) -> None:
        if not callable(function):
            raise kiln_errors.TypeError(
                f"MapDataset: function must be callable; got {type(function).__name__}"
            )
        self.dataset, self.function = dataset, function

    def __reduce__(self) -> Any:
        return MapDataset, (self.dataset, self.function)

    def __getitem__(self, index: Any) -> T_co:
        return self.function(self.dataset[index])

    def __len__(self) -> int:
        return len(self.dataset)  # type: ignore[arg-type]


class _MapStream(MapDataset[T_co], IterableDataset[T_co]):
    def __iter__(self):
        return map(self.function, self.dataset)


class WindowDataset(Dataset[Any]):
    """Windows of `size` neighbours of a sequence, `stride` apart: a tensor's rows [size, ..], or lists.

    horizon: so many that follow come as a second part, (window, what follows).

    >>> kiln.utils.data.WindowDataset(kiln.tensor([1, 2, 3, 4]), 2)[1]
    tensor([2, 3])
    """

    def __init__(self, sequence: Any, size: int, stride: int = 1, horizon: int = 0) -> None:
        for name, value, least in (("size", size, 1), ("stride", stride, 1), ("horizon", horizon, 0)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise kiln_errors.ValueError(
                    f"WindowDataset: {name} must be an integer of {least} or more; got {value!r}"
                )
        self.sequence, self.size, self.stride, self.horizon = sequence, size, stride, horizon

    def __len__(self) -> int:
        return max(0, (len(self.sequence) - self.size - self.horizon) // self.stride + 1)

    def __getitem__(self, index: int) -> Any:
        if not -len(self) <= index < len(self):
            raise kiln_errors.IndexError(
                f"WindowDataset: index {index} is out of range for {len(self)} windows"
            )
        begin = index % len(self) * self.stride
        end = begin + self.size
        window = self._part(begin, end)
        return (window, self._part(end, end + self.horizon)) if self.horizon else window

    def _part(self, begin, end):
        if isinstance(self.sequence, _C.Tensor):
            return self.sequence[begin:end]
        return [self.sequence[i] for i in range(begin, end)]
