"""Sets of vectors and matrices, and sets that are joined along a dim."""

from __future__ import annotations

from typing import TYPE_CHECKING

import kiln

from .. import errors
from ._constraint import Constraint
from ._scalar_constraints import _Boolean
from ._shapes import diagonal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._C import Tensor

# How far sums and mirrored elements may be off; float32 has about seven digits.
_CLOSE = 1e-6


class _Simplex(Constraint):
    """Vectors of numbers >= 0 with sum 1."""

    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < _CLOSE)


class _OneHot(Constraint):
    """Vectors with a single 1 and else zeros."""

    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return _Boolean().check(value).all(-1) & (value.sum(-1) == 1)


class _Multinomial(Constraint):
    """Vectors of whole numbers >= 0 with a sum of at most upper_bound.

    >>> kiln.distributions.constraints.multinomial(3).check(kiln.tensor([[1, 2], [2, 2]]))
    tensor([ True, False])
    """

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: int | Tensor) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        counts = ((value >= 0) & (value % 1 == 0)).all(-1)
        return counts & (value.sum(-1) <= self.upper_bound)


class _LowerTriangular(Constraint):
    """Square matrices with zeros above the diagonal."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return (value.tril() == value).all(-1).all(-1)


class _LowerCholesky(_LowerTriangular):
    """Lower triangular matrices with a positive diagonal."""

    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & (diagonal(value) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    """Lower triangular matrices with a positive diagonal and rows of length 1: the Cholesky factors
    of correlation matrices."""

    def check(self, value: Tensor) -> Tensor:
        # The rounding of a sum of squares grows with the number of its terms.
        close = kiln.finfo(value.dtype).eps * value.size(-1) * 10
        unit = ((value * value).sum(-1).sqrt() - 1).abs() <= close
        return super().check(value) & unit.all(-1)


class _Square(Constraint):
    """Square matrices."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        square = value.dim() >= 2 and value.shape[-2] == value.shape[-1]
        return kiln.full(value.shape[:-2], square, dtype=kiln.bool, device=value.device)


class _Symmetric(_Square):
    """Symmetric matrices."""

    def check(self, value: Tensor) -> Tensor:
        square = super().check(value)
        if not square.all():
            return square
        return kiln.isclose(value, value.mT, atol=_CLOSE).all(-1).all(-1)


class _PositiveSemidefinite(_Symmetric):
    """Symmetric matrices without negative eigenvalues."""

    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        if not symmetric.all():
            return symmetric
        return (kiln.linalg.eigvalsh(value) >= 0).all(-1)


class _PositiveDefinite(_Symmetric):
    """Symmetric matrices with positive eigenvalues."""

    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        if not symmetric.all():
            return symmetric
        return kiln.linalg.cholesky_ex(value)[1] == 0


class _Cat(Constraint):
    """Tensors that consist of parts along a dim, each with a set of its own.

    cseq: the constraints of the parts. dim: along which they are joined. lengths: the sizes of the
    parts; all 1 unless given.

    >>> c = kiln.distributions.constraints
    >>> c.cat([c.real, c.positive], dim=-1, lengths=[1, 2]).check(kiln.tensor([-1., 2., -3.]))
    tensor([ True,  True, False])
    """

    def __init__(
        self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        self.cseq = list(cseq)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        self.dim = dim
        if not all(isinstance(c, Constraint) for c in self.cseq):
            raise errors.TypeError("cat: cseq must hold constraints")
        if len(self.lengths) != len(self.cseq):
            raise errors.ValueError(
                f"cat: expected {len(self.cseq)} lengths; got {len(self.lengths)}"
            )

    @property
    def is_discrete(self) -> bool:
        """Whether one of the sets is countable."""
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> int:
        """The largest of the parts."""
        return max(int(c.event_dim) for c in self.cseq)

    def check(self, value: Tensor) -> Tensor:
        parts = value.split(self.lengths, self.dim)
        checks = [c.check(part) for c, part in zip(self.cseq, parts, strict=True)]
        return kiln.cat(checks, self.dim)


class _Stack(Constraint):
    """Tensors whose slices along a dim each have a set of their own.

    cseq: the constraints of the slices. dim: along which they are stacked.

    >>> c = kiln.distributions.constraints
    >>> c.stack([c.real, c.positive], dim=-1).check(kiln.tensor([-1., -2.]))
    tensor([ True, False])
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        self.cseq = list(cseq)
        self.dim = dim
        if not all(isinstance(c, Constraint) for c in self.cseq):
            raise errors.TypeError("stack: cseq must hold constraints")

    @property
    def is_discrete(self) -> bool:
        """Whether one of the sets is countable."""
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> int:
        """The largest of the slices, and one more where the dim is one of the event's."""
        dim = max(int(c.event_dim) for c in self.cseq)
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value: Tensor) -> Tensor:
        slices = [value.select(self.dim, i) for i in range(value.size(self.dim))]
        checks = [c.check(part) for c, part in zip(self.cseq, slices, strict=True)]
        return kiln.stack(checks, self.dim)
