"""Types that the package's annotations name. Only type checkers import this file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ParamSpec, Protocol, TypeAlias, TypeVar

from ._C import Tensor, device, dtype
from .nn.module import Module
from .utils.data.dataset import Dataset

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
M = TypeVar("M", bound=Module)
M_co = TypeVar("M_co", covariant=True)

# A device, or its name.
DeviceLike: TypeAlias = device | str
# kiln.float32, or Python's float, int, bool and complex.
DTypeLike: TypeAlias = dtype | type[complex]
StrPath: TypeAlias = str | os.PathLike[str]
Number: TypeAlias = int | float
# One number for all dims, or one for each.
Ints: TypeAlias = int | Sequence[int]
Floats: TypeAlias = float | Sequence[float]
# What an optimizer takes: tensors, (name, tensor) pairs, or groups with options.
Params: TypeAlias = Iterable[Tensor | tuple[str, Tensor] | dict[str, Any]]
# Computes the loss anew, with gradients.
Closure: TypeAlias = Callable[[], Any]
# A class of modules, or a function that makes one.
ModuleFactory: TypeAlias = Callable[..., Any]
# Samples by number: a data set, or any sequence.
Samples: TypeAlias = "Dataset[T] | Sequence[T]"
# Which weights: patterns of their paths, or a function of a path.
Targets: TypeAlias = str | Iterable[str] | Callable[[str], bool]
# Hooks, by how many arguments they take.
Hook1: TypeAlias = Callable[[Any], Any]
Hook2: TypeAlias = Callable[[Any, Any], Any]
Hook3: TypeAlias = Callable[[Any, Any, Any], Any]
Hook4: TypeAlias = Callable[[Any, Any, Any, Any], Any]


class Builder(Protocol[M_co]):
    """A function that builds a model, such as kiln.models.resnet18."""

    def __call__(
        self, *, weights: Any = None, progress: bool = True, **options: Any
    ) -> M_co: ...
