"""Data sets over files that hold tensors or lines of text."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ... import _C
from ... import errors as kiln_errors
from .dataset import Dataset, TensorDataset
from .tables import check_policy, file_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..._typing import StrPath

__all__ = ["CIFAR10", "CIFAR100", "IDXDataset", "NumPyDataset", "TextLinesDataset"]


class NumPyDataset(TensorDataset):
    """Row i of each array of .npy files, or of an .npz file's arrays with these names (all, in order).

    >>> import numpy as np
    >>> np.save("x.npy", np.array([[1, 2], [3, 4]]))
    >>> kiln.utils.data.NumPyDataset("x.npy")[1]
    (tensor([3, 4]),)
    """

    def __init__(self, *paths: StrPath, names: Sequence[str] | None = None) -> None:
        from ..._io import load

        tensors = []
        for path in paths:
            value = load(file_name("NumPyDataset", path))
            if isinstance(value, _C.Tensor):
                tensors.append(value)
                continue
            for name in value if names is None else names:
                if name not in value:
                    raise kiln_errors.KeyError(
                        f"NumPyDataset: {os.fsdecode(path)!r} has no array {name!r}; there are"
                        f" {', '.join(value)}"
                    )
                tensors.append(value[name])
        super().__init__(*tensors)


class IDXDataset(TensorDataset):
    """Row i of each IDX file, gzipped or not, such as MNIST's images and labels.

    >>> with open("labels.idx", "wb") as file:  # type uint8, one dim of 2 elements
    ...     _ = file.write(bytes([0, 0, 8, 1, 0, 0, 0, 2, 5, 7]))
    >>> kiln.utils.data.IDXDataset("labels.idx")[1]
    (tensor(7, dtype=kiln.uint8),)
    """

    def __init__(self, *paths: StrPath) -> None:
        super().__init__(*(_C._vision._read_idx(file_name("IDXDataset", p)) for p in paths))


class _CIFAR(Dataset[Any]):
    def __init__(self, root, train, transform, files, labels, column, classes):
        op = type(self).__name__
        self.transform = transform
        images, targets = [], []
        record = labels + 3072
        for name in files[0] if train else files[1]:
            path = file_name(op, os.path.join(root, name))
            with open(path, "rb") as file:
                data = file.read()
            if not data or len(data) % record:
                raise kiln_errors.IoError(
                    f"{op}: {path!r} is malformed; got {len(data)} bytes; expected a multiple of"
                    f" {record}"
                )
            rows = _C.frombuffer(bytearray(data), dtype=_C.uint8).reshape(-1, record)
            target = rows[:, column].to(_C.int64)
            if (target >= classes).any().item():
                row = int((target >= classes).to(_C.int64).argmax().item())
                raise kiln_errors.IoError(
                    f"{op}: {path!r}, record {row + 1}: a bad label; got {target[row].item()};"
                    f" expected 0 to {classes - 1}"
                )
            images.append(rows[:, labels:].reshape(-1, 3, 32, 32))
            targets.append(target)
        self.data = _C.cat(images)
        self.targets = _C.cat(targets)

    def __len__(self) -> int:
        return self.targets.shape[0]

    def __getitem__(self, index: int) -> tuple[Any, int]:
        image = self.data[index]
        if self.transform is not None:
            image = self.transform(image)
        return image, int(self.targets[index].item())


class CIFAR10(_CIFAR):
    """CIFAR-10 from the folder that its binary version unpacks to: uint8 [3, 32, 32], 0 to 9.

    root: the folder. train: the 50,000 images to train on, or the 10,000 others. transform: of each
    image.

    >>> import os
    >>> os.makedirs("cifar", exist_ok=True)
    >>> with open("cifar/test_batch.bin", "wb") as file:  # one image of class 3
    ...     _ = file.write(bytes([3]) + bytes(3072))
    >>> image, label = kiln.utils.data.CIFAR10("cifar", train=False)[0]
    >>> image.shape, int(label)
    (kiln.Size([3, 32, 32]), 3)
    """

    def __init__(
        self, root: StrPath, train: bool = True, transform: Callable[[Any], Any] | None = None
    ) -> None:
        files = [f"data_batch_{i}.bin" for i in range(1, 6)], ["test_batch.bin"]
        super().__init__(root, train, transform, files, 1, 0, 10)


class CIFAR100(_CIFAR):
    """CIFAR-100 likewise, with its 100 fine classes, or its 20 coarse ones.

    root: the folder. train: the 50,000 images to train on, or the 10,000 others. transform: of each
    image.

    >>> import os
    >>> os.makedirs("cifar", exist_ok=True)
    >>> with open("cifar/test.bin", "wb") as file:  # one image of coarse class 2, fine class 7
    ...     _ = file.write(bytes([2, 7]) + bytes(3072))
    >>> image, label = kiln.utils.data.CIFAR100("cifar", train=False)[0]
    >>> int(label)
    7
    """

    def __init__(
        self,
        root: StrPath,
        train: bool = True,
        transform: Callable[[Any], Any] | None = None,
        coarse: bool = False,
    ) -> None:
        super().__init__(
            root, train, transform, (["train.bin"], ["test.bin"]), 2, 0 if coarse else 1,
            20 if coarse else 100,
        )  # fmt: skip


class TextLinesDataset(Dataset[Any]):
    """The lines of text files, without their ends. Of the files only the places of lines are kept.

    errors: what is not in the encoding is an error that names file and line, or with "skip" left out.

    paths: the files. transform: of each line.

    >>> with open("lines.txt", "w") as file:
    ...     _ = file.write("one\\ntwo\\n")
    >>> kiln.utils.data.TextLinesDataset("lines.txt")[1]
    'two'
    """

    def __init__(
        self,
        *paths: StrPath,
        encoding: str = "utf-8",
        errors: str = "raise",
        transform: Callable[[Any], Any] | None = None,
    ) -> None:
        op = "TextLinesDataset"
        check_policy(op, errors)
        self.paths = [file_name(op, p) for p in paths]
        self.encoding, self.transform, self.skipped = encoding, transform, 0
        self._files, self._begins, self._sizes = [], [], []
        for which, path in enumerate(self.paths):
            with open(path, "rb") as file:
                begin = 0
                for number, line in enumerate(file, 1):
                    try:
                        line.decode(encoding)
                    except UnicodeDecodeError as e:
                        if errors == "raise":
                            raise kiln_errors.ValueError(
                                f"{op}: {os.fsdecode(path)!r}, row {number}, byte {e.start + 1}: the"
                                f" text is not {encoding}"
                            ) from None
                        self.skipped += 1
                    else:
                        self._files.append(which)
                        self._begins.append(begin)
                        self._sizes.append(len(line))
                    begin += len(line)

    def __len__(self) -> int:
        return len(self._begins)

    def __getitem__(self, index: int) -> Any:
        with open(self.paths[self._files[index]], "rb") as file:
            file.seek(self._begins[index])
            line = file.read(self._sizes[index]).decode(self.encoding).rstrip("\r\n")
        return line if self.transform is None else self.transform(line)
