"""Samples kept on disk."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from ... import errors as kiln_errors
from .dataset import Dataset

if TYPE_CHECKING:
    from ..._typing import StrPath

__all__ = ["DiskCache"]


class DiskCache(Dataset[Any]):
    """A data set's samples, which are made once and read from a folder from then on.

    Samples are tensors, numbers, texts, and tuples, lists and dicts of them: what kiln.save takes. Several
    workers and programs may fill one folder. key: a text that says what the samples are made by; a folder
    of another key, or of a data set of another length, is a ValueError. What is drawn at random belongs
    behind the cache, not into it. A file that is damaged is made again.

    >>> squares = kiln.utils.data.MapDataset([1, 2, 3], lambda x: kiln.tensor(x * x))
    >>> cached = kiln.utils.data.DiskCache(squares, "squares", key="squares")
    >>> cached[2], cached[2]
    (tensor(9), tensor(9))
    """

    def __init__(self, dataset: Dataset[Any], folder: StrPath, key: str = "") -> None:
        self.dataset, self.folder, self.key = dataset, os.fspath(folder), key
        self._length = len(dataset)  # type: ignore[arg-type]
        about = {"length": self._length, "key": key}
        path = os.path.join(self.folder, "about.json")
        os.makedirs(self.folder, exist_ok=True)
        try:
            with open(path, encoding="utf-8") as file:
                found = json.load(file)
        except FileNotFoundError:
            # Another program may be about to write it.
            if any(not name.startswith("about.json") for name in os.listdir(self.folder)):
                raise kiln_errors.ValueError(
                    f"DiskCache: the folder {self.folder!r} holds something else; expected an empty one"
                ) from None
            with open(f"{path}.{os.getpid()}", "w", encoding="utf-8") as file:
                json.dump(about, file)
            os.replace(f"{path}.{os.getpid()}", path)
            found = about
        except ValueError:
            found = None
        if found != about:
            raise kiln_errors.ValueError(
                f"DiskCache: the folder {self.folder!r} is of other samples; got {found}; expected"
                f" {about}, or an empty folder"
            )

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Any:
        from ..._io import load, save

        if not -self._length <= index < self._length:
            raise kiln_errors.IndexError(
                f"DiskCache: index {index} is out of range for {self._length} samples"
            )
        index %= self._length
        # Not too many files in one folder.
        folder = os.path.join(self.folder, f"{index // 1000:06d}")
        path = os.path.join(folder, f"{index:09d}.pt")
        try:
            return load(path)["sample"]
        except (kiln_errors.Error, OSError):
            pass
        sample = self.dataset[index]
        os.makedirs(folder, exist_ok=True)
        save({"sample": sample}, path)
        return sample
