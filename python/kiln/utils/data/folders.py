"""Data sets over folders with a folder of files for each class."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ... import _C
from ... import errors as kiln_errors
from .collate import default_collate
from .dataset import Dataset, is_plain, row_numbers
from .tables import check_policy
from .worker import get_worker_info

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..._typing import StrPath

__all__ = ["AudioFolder", "ImageFolder"]


class _ClassFolder(Dataset[Any]):
    """(what a file holds, number of its class). Classes and files are sorted."""

    what = "files"

    def __init__(
        self, root: StrPath, transform: Callable[[Any], Any] | None,
        target_transform: Callable[[int], Any] | None, loader: Callable[[str], Any],
        extensions: Sequence[str], errors: str,
    ) -> None:  # fmt: skip
        op = type(self).__name__
        check_policy(op, errors)
        self.root = os.fspath(root)
        if not os.path.isdir(self.root):
            raise kiln_errors.FileNotFoundError(f"{op}: there is no folder {self.root!r}")
        self.classes = sorted(e.name for e in os.scandir(self.root) if e.is_dir())
        if not self.classes:
            raise kiln_errors.ValueError(
                f"{op}: {self.root!r} has no folders; expected one for each class"
            )
        self.class_to_idx = {name: i for i, name in enumerate(self.classes)}
        extensions = tuple(e.lower() for e in extensions)
        self.samples: list[tuple[str, int]] = []
        for target, name in enumerate(self.classes):
            before = len(self.samples)
            for folder, folders, files in os.walk(os.path.join(self.root, name)):
                folders.sort()
                self.samples += [
                    (os.path.join(folder, f), target)
                    for f in sorted(files)
                    if f.lower().endswith(extensions)
                ]
            if len(self.samples) == before:
                raise kiln_errors.ValueError(
                    f"{op}: {os.path.join(self.root, name)!r} has no {self.what}; expected files that"
                    f" end in {', '.join(extensions)}"
                )
        self.targets = [target for _, target in self.samples]
        self.transform, self.target_transform = transform, target_transform
        self.loader = loader
        self.errors = errors
        self.skipped: set[Any] = set()

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        if not -len(self) <= index < len(self):
            raise kiln_errors.IndexError(
                f"{type(self).__name__}: index {index} is out of range for {len(self)} {self.what}"
            )
        for step in range(len(self)):
            path, target = self.samples[(index + step) % len(self)]
            try:
                value = self.loader(path)
                break
            except (kiln_errors.Error, OSError):
                if self.errors == "raise":
                    raise
                self.skipped.add(path)
        else:
            raise self._nothing()
        if self.transform is not None:
            value = self.transform(value)
        return value, target if self.target_transform is None else self.target_transform(target)

    def _nothing(self) -> kiln_errors.IoError:
        return kiln_errors.IoError(
            f"{type(self).__name__}: {self.root!r} has no {self.what[:-1]} that can be read"
        )


class ImageFolder(_ClassFolder):
    """Images in a folder for each class: (image, number of the class). Classes and files are sorted.

    loader: reads a path; by default kiln.vision.read_image, which reads PNG, JPEG and WebP as uint8
    [3, H, W].
    errors="skip": in the place of an image that cannot be read comes the next one that can; skipped is
    the set of those met so far.

    In a DataLoader, common chains of transforms are done by C++ while it decodes a batch's files:
    RandomResizedCrop, or Resize and CenterCrop; flips; ToDtype(float32, scale=True); Normalize.

    root: the folder of folders. transform: of each image; target_transform: of each number.
    extensions: of the files' names.

    >>> import base64, os
    >>> white = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg=="
    >>> os.makedirs("pictures/cats", exist_ok=True)
    >>> with open("pictures/cats/one.png", "wb") as file:  # one pixel
    ...     _ = file.write(base64.b64decode(white))
    >>> image, label = kiln.utils.data.ImageFolder("pictures")[0]
    >>> image.shape, label
    (kiln.Size([3, 1, 1]), 0)
    """

    what = "images"

    def __init__(
        self, root: StrPath, transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[int], Any] | None = None,
        loader: Callable[[str], Any] | None = None,
        extensions: Sequence[str] = (".png", ".jpg", ".jpeg", ".webp"), errors: str = "raise",
    ) -> None:  # fmt: skip
        loader = _C._vision.read_image if loader is None else loader
        super().__init__(root, transform, target_transform, loader, extensions, errors)

    def _plan(self) -> Any:
        if self.loader is not _C._vision.read_image or not is_plain(self, ImageFolder):
            return None
        from ...vision.transforms.photos import plan_of

        return plan_of(self.transform)

    def _draws(self, indices: Any, generator: Any) -> Any:
        plan = self._plan() if self.target_transform is None else None
        return None if plan is None else [plan.seeds(generator) for _ in indices]

    def _gathered(self, indices: Any, seeds: Any = None) -> Any:
        """Common chains of transforms are done by C++ while it decodes the files of a batch."""
        plan = self._plan()
        if plan is None or row_numbers(indices, len(self)) is None:
            return None
        photos = _C._data.PhotoBatch([self.samples[i][0] for i in indices])
        sizes = [photos.size(k) for k in range(len(indices))]
        no_part = (0, 0, 0, 0)
        given, seeds = seeds, []
        parts: list[Any] = []
        shape: Any = None
        for k, size in enumerate(sizes):
            if size == (0, 0) and self.errors == "raise":
                raise kiln_errors.IoError(photos.error(k))
            seeds.append(plan.seeds() if given is None else given[k])
            parts.append(None if size == (0, 0) else plan.part(*size, seeds[k]))
            if parts[k] is not None:
                if shape is not None and parts[k][8:10] != shape:
                    return None  # default_collate says what is wrong with them
                shape = parts[k][8:10]
            elif size != (0, 0):
                return None
        if shape is None:
            return None
        parts = [(*no_part, *shape, 0, 0, *shape, 0, 0) if p is None else p for p in parts]
        images = photos.read(parts, plan.dtype, plan.mean, plan.std, get_worker_info() is not None)
        targets = []
        for k, index in enumerate(indices):
            target = self.samples[index][1]
            if photos.error(k):
                if self.errors == "raise":
                    raise kiln_errors.IoError(photos.error(k))
                images[k], target = self._next_readable(index, plan, seeds[k])
            targets.append(target if self.target_transform is None else self.target_transform(target))
        return [images, default_collate(targets)]

    def _next_readable(self, index: int, plan: Any, seeds: Any) -> tuple[Any, Any]:
        """What comes in the place of an image that cannot be read."""
        self.skipped.add(self.samples[index][0])
        for step in range(1, len(self)):
            path, target = self.samples[(index + step) % len(self)]
            photo = _C._data.PhotoBatch([path])
            if not photo.error(0):
                part = plan.part(*photo.size(0), seeds)
                if part is None:
                    image = self.loader(path)
                    return image if self.transform is None else self.transform(image), target
                image = photo.read([part], plan.dtype, plan.mean, plan.std, False)[0]
                if not photo.error(0):
                    return image, target
            self.skipped.add(path)
        raise self._nothing()


class AudioFolder(_ClassFolder):
    """Sounds in a folder for each class: (float32 [channels, frames], number of the class).

    sample_rate: what all files must have; None: any. frames: longer sounds lose their end, shorter
    ones get silence; None: as they are. mono: the mean of the channels, [1, frames]. loader: reads a
    path as (samples, sample_rate); by default kiln.audio.load, which reads WAV, and FLAC and others by
    libsndfile. errors, skipped: see ImageFolder.

    root: the folder of folders. transform: of each sound; target_transform: of each number.
    extensions: of the files' names.

    >>> import os
    >>> os.makedirs("sounds/silence", exist_ok=True)
    >>> kiln.audio.save("sounds/silence/one.wav", kiln.zeros(1, 300), 8000)
    >>> samples, label = kiln.utils.data.AudioFolder("sounds", frames=400)[0]
    >>> samples.shape, label
    (kiln.Size([1, 400]), 0)
    """

    what = "sounds"

    def __init__(
        self, root: StrPath, transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[int], Any] | None = None, *, sample_rate: int | None = None,
        frames: int | None = None, mono: bool = False,
        loader: Callable[[str], tuple[_C.Tensor, int]] | None = None,
        extensions: Sequence[str] = (".wav", ".flac", ".ogg"), errors: str = "raise",
    ) -> None:  # fmt: skip
        for name, value in (("sample_rate", sample_rate), ("frames", frames)):
            if value is not None and (not isinstance(value, int) or value < 1):
                raise kiln_errors.ValueError(
                    f"AudioFolder: {name} must be an integer from 1 on, or None; got {value!r}"
                )
        self.sample_rate, self.frames, self.mono = sample_rate, frames, bool(mono)
        self.read = loader
        super().__init__(root, transform, target_transform, self._load, extensions, errors)

    def _load(self, path: str) -> _C.Tensor:
        from ...audio import load

        samples, rate = load(path) if self.read is None else self.read(path)
        if self.sample_rate is not None and rate != self.sample_rate:
            raise kiln_errors.IoError(
                f"AudioFolder: {path!r} has {rate} samples in a second; expected {self.sample_rate}"
            )
        if self.mono and samples.shape[0] != 1:
            samples = samples.mean(0, keepdim=True)
        if self.frames is not None:
            samples = samples[:, : self.frames]
            missing = self.frames - samples.shape[1]
            if missing > 0:
                samples = _C.cat([samples, _C.zeros(samples.shape[0], missing)], 1)
        return samples
