"""What the distributions share: numbers become tensors of one shape; probabilities and logits."""

from __future__ import annotations

import functools
import numbers
from typing import TYPE_CHECKING, TypeVar

import kiln

from .. import errors
from ._shapes import expanded, sum_rightmost

if TYPE_CHECKING:
    from typing import Any, Self, overload

    from .._C import Tensor

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "euler_constant",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

T = TypeVar("T")

euler_constant = 0.57721566490153286060


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """The values as tensors of one shape.

    values: tensors or numbers. A number gets the dtype and device of the first tensor if that is of
    floating point, else the default dtype.

    >>> kiln.distributions.utils.broadcast_all(1., kiln.tensor([2., 3.]))
    (tensor([1., 1.]), tensor([2., 3.]))
    """
    first = None
    for value in values:
        if isinstance(value, kiln.Tensor):
            first = value if first is None else first
        elif not isinstance(value, numbers.Number):
            raise errors.ValueError(
                f"broadcast_all: expected tensors or numbers; got {type(value).__name__}"
            )
    dtype = kiln.get_default_dtype()
    if first is not None and first.dtype.is_floating_point:
        dtype = first.dtype
    device = None if first is None else first.device
    tensors = [
        v if isinstance(v, kiln.Tensor) else kiln.tensor(float(v), dtype=dtype, device=device)
        for v in values
    ]
    shape = kiln.broadcast_shapes(*(tensor.shape for tensor in tensors))
    return tuple(expanded(tensor, shape) for tensor in tensors)


def clamp_probs(probs: Tensor) -> Tensor:
    """probs, moved away from 0 and 1 by the smallest step of their dtype, so that logs are finite.

    >>> kiln.distributions.utils.clamp_probs(kiln.tensor([0., 0.5])) > 0
    tensor([True, True])
    """
    eps = kiln.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """The probabilities that belong to logits.

    is_binary: each element of logits is the log-odds of one event; else the last dim holds the
    classes.

    >>> kiln.distributions.utils.logits_to_probs(kiln.zeros(2))
    tensor([0.5000, 0.5000])
    """
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """The logits that belong to probabilities; 0 and 1 give large finite numbers.

    is_binary: each element of probs is the probability of one event; else the last dim holds the
    classes.

    >>> kiln.distributions.utils.probs_to_logits(kiln.tensor([0.5]), is_binary=True)
    tensor([0.])
    """
    clamped = clamp_probs(probs)
    return clamped.log() - (-clamped).log1p() if is_binary else clamped.log()


class lazy_property(functools.cached_property[T]):
    """A property that is computed at its first use, with gradients, and kept.

    func: what computes it.

    >>> class Box:
    ...     @kiln.distributions.utils.lazy_property
    ...     def size(self):
    ...         return 3
    >>> box = Box()
    >>> "size" in box.__dict__, box.size, "size" in box.__dict__
    (False, 3, True)
    """

    if TYPE_CHECKING:

        @overload
        def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...
        @overload
        def __get__(self, instance: object, owner: type[Any] | None = None) -> T: ...
        def __get__(self, instance: object, owner: type[Any] | None = None) -> Any: ...
    else:

        def __get__(self, instance, owner=None):
            # What was first asked for within no_grad may later be differentiated.
            with kiln.enable_grad():
                return super().__get__(instance, owner)


def inherit_words(cls: type) -> None:
    """Gives properties that say nothing of their own the docstrings of what they replace."""
    for name, member in vars(cls).items():
        if isinstance(member, property) and not member.__doc__:
            member.__doc__ = getattr(getattr(super(cls, cls), name, None), "__doc__", None)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The elements of the lower triangles of matrices, row by row.

    mat: [..., N, N]. diag: up to which diagonal, as in tril.

    >>> kiln.distributions.utils.tril_matrix_to_vec(kiln.tensor([[1., 0.], [2., 3.]]))
    tensor([1., 2., 3.])
    """
    n = mat.shape[-1]
    if not -n < diag < n:
        raise errors.ValueError(f"tril_matrix_to_vec: diag must be within ({-n}, {n}); got {diag}")
    rows, columns = kiln.tril_indices(n, n, diag).unbind()
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Matrices with zeros above a diagonal, and the elements of vectors below, row by row.

    vec: [..., D]. diag: up to which diagonal, as in tril.

    >>> kiln.distributions.utils.vec_to_tril_matrix(kiln.tensor([1., 2., 3.]))
    tensor([[1., 0.],
            [2., 3.]])
    """
    count, n = vec.shape[-1], max(1 - diag, 1)
    while sum(min(row + 1 + diag, n) for row in range(max(-diag, 0), n)) < count:
        n += 1
    rows, columns = kiln.tril_indices(n, n, diag).unbind()
    if len(rows) != count:
        raise errors.ValueError(
            f"vec_to_tril_matrix: {count} elements fill no lower triangle with diag={diag}"
        )
    flat = vec.new_zeros((*vec.shape[:-1], n * n))
    places = (rows * n + columns).expand(vec.shape)
    return flat.scatter(-1, places, vec).reshape((*vec.shape[:-1], n, n))


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Tensor:
    """Numbers of the standard normal distribution."""
    return kiln.empty(shape, dtype=dtype, device=device).normal_()


_sum_rightmost = sum_rightmost
