"""The base of all distributions."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import kiln

from .. import errors
from . import constraints
from ._shapes import expanded
from .utils import inherit_words, lazy_property

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Self

    from .._C import Tensor
    from .constraints import Constraint

__all__ = ["Distribution"]


class Distribution:
    """A distribution, or a batch of independent ones of one kind.

    batch_shape: the shape of the batch. event_shape: the shape of one draw from one of them.
    validate_args: whether parameters and values are checked; None takes the setting of
    set_default_validate_args, which is True at first.

    Draws have the shape sample_shape + batch_shape + event_shape, and log_prob(value) has the shape
    of value without event_shape. A subclass gives arg_constraints, support, and what it can of
    rsample or sample, log_prob, mean, variance, entropy, cdf and icdf.

    >>> normal = kiln.distributions.Normal(kiln.zeros(2), 1.)
    >>> normal.batch_shape, normal.event_shape, normal.sample((3,)).shape
    (kiln.Size([2]), kiln.Size([]), kiln.Size([3, 2]))
    """

    has_rsample: bool = False
    has_enumerate_support: bool = False
    _validate_args: bool = __debug__

    def __init__(
        self,
        batch_shape: Sequence[int] = (),
        event_shape: Sequence[int] = (),
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape = kiln.Size(batch_shape)
        self._event_shape = kiln.Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        inherit_words(cls)

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Sets whether distributions check parameters and values, where they are not told.

        value: True or False.

        >>> kiln.distributions.Distribution.set_default_validate_args(True)
        """
        if value not in (True, False):
            raise errors.ValueError(
                f"set_default_validate_args: expected True or False; got {value!r}"
            )
        Distribution._validate_args = value

    # ---- Shapes

    @property
    def batch_shape(self) -> kiln.Size:
        """How many distributions there are, as a shape."""
        return self._batch_shape

    @property
    def event_shape(self) -> kiln.Size:
        """The shape of one draw from one distribution."""
        return self._event_shape

    def _extended_shape(self, sample_shape: Sequence[int] = ()) -> kiln.Size:
        """The shape of draws: sample_shape + batch_shape + event_shape."""
        return kiln.Size(sample_shape) + self._batch_shape + self._event_shape

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        """The same distributions with a larger batch_shape; parameters are expanded, not copied.

        >>> kiln.distributions.Normal(0., 1.).expand((2, 3)).batch_shape
        kiln.Size([2, 3])
        """
        new: Self = self._get_checked_instance(type(self), _instance)
        batch_shape = kiln.Size(batch_shape)
        for name, value in self.__dict__.items():
            constraint = self._expanded_parameters.get(name)
            if constraint is not None and isinstance(value, kiln.Tensor):
                event = value.shape[value.dim() - constraint.event_dim :]
                new.__dict__[name] = expanded(value, batch_shape + event)
            elif not isinstance(getattr(type(self), name, None), lazy_property):
                new.__dict__[name] = value
        new._batch_shape = batch_shape
        return new

    @property
    def _expanded_parameters(self) -> Mapping[str, Constraint]:
        """The attributes that expand expands, with the sets that tell the dims of their events."""
        return self.arg_constraints

    def _get_checked_instance(self, cls: type[Any], _instance: Any = None) -> Any:
        """The object that expand fills: a new one unless one was given."""
        return type(self).__new__(type(self)) if _instance is None else _instance

    # ---- What it is

    if TYPE_CHECKING:
        # Subclasses replace them by attributes or by properties.
        arg_constraints: Mapping[str, Constraint]
        support: Any
    else:

        @property
        def arg_constraints(self) -> Mapping[str, Constraint]:
            """The set of allowed values of each parameter, by its name."""
            raise errors.NotImplementedError(f"{type(self).__name__} has no arg_constraints")

        @property
        def support(self) -> Any:
            """The set of values that draws can have."""
            raise errors.NotImplementedError(f"{type(self).__name__} has no support")

    @property
    def mean(self) -> Tensor:
        """The mean; NaN or infinite where there is none."""
        raise errors.NotImplementedError(f"{type(self).__name__} has no mean")

    @property
    def mode(self) -> Tensor:
        """The value with the largest probability or density; NaN where there is none."""
        raise errors.NotImplementedError(f"{type(self).__name__} has no mode")

    @property
    def variance(self) -> Tensor:
        """The variance; NaN or infinite where there is none."""
        raise errors.NotImplementedError(f"{type(self).__name__} has no variance")

    @property
    def stddev(self) -> Tensor:
        """The square root of the variance."""
        return self.variance.sqrt()

    # ---- What it does

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draws of shape sample_shape + batch_shape + event_shape, without gradients."""
        with kiln.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draws like those of sample, as a differentiable function of the parameters."""
        raise errors.NotImplementedError(
            f"{type(self).__name__} has no rsample(); expected a distribution with has_rsample"
        )

    def sample_n(self, n: int) -> Tensor:
        """sample((n,)): an old name."""
        warnings.warn("use .sample((n,)) instead", FutureWarning, stacklevel=2)
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """The log of the probability, or of the density, at value."""
        raise errors.NotImplementedError(f"{type(self).__name__} has no log_prob()")

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of draws <= value."""
        raise errors.NotImplementedError(f"{type(self).__name__} has no cdf()")

    def icdf(self, value: Tensor) -> Tensor:
        """The quantiles: the inverse of cdf at probabilities."""
        raise errors.NotImplementedError(f"{type(self).__name__} has no icdf()")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution, along a new first dim.

        expand: False leaves the dims of the batch at 1.
        """
        raise errors.NotImplementedError(f"{type(self).__name__} has no enumerate_support()")

    def entropy(self) -> Tensor:
        """The entropy of each distribution of the batch, in nats."""
        raise errors.NotImplementedError(f"{type(self).__name__} has no entropy()")

    def perplexity(self) -> Tensor:
        """exp(entropy())."""
        return self.entropy().exp()

    # ---- Checks

    def _check_parameters(self) -> None:
        try:
            sets = self.arg_constraints
        except NotImplementedError:
            warnings.warn(
                f"{type(self).__name__} has no arg_constraints; set arg_constraints = {{}}, or"
                " validate_args=False",
                stacklevel=3,
            )
            return
        for name, constraint in sets.items():
            # What is not there was not given, and is computed from what was.
            value = self.__dict__.get(name)
            if isinstance(getattr(type(self), name, None), property):
                value = getattr(self, name)
            if value is None or constraints.is_dependent(constraint):
                continue
            if not constraint.check(value).all():
                raise errors.ValueError(
                    f"{type(self).__name__}: parameter {name} must be in {constraint!r}; got a"
                    f" {type(value).__name__} of shape {list(value.shape)} with values outside:"
                    f" {value}"
                )

    def _validate_sample(self, value: Tensor) -> None:
        """Raises unless value is a tensor of a fitting shape with values in the support."""
        name = type(self).__name__
        if not isinstance(value, kiln.Tensor):
            raise errors.ValueError(f"{name}: value must be a Tensor; got {type(value).__name__}")
        start = value.dim() - len(self._event_shape)
        if start < 0 or value.shape[start:] != self._event_shape:
            raise errors.ValueError(
                f"{name}: the last dims of value must be event_shape {list(self._event_shape)}; got"
                f" a value of shape {list(value.shape)}"
            )
        wanted = self._batch_shape + self._event_shape
        for mine, theirs in zip(reversed(value.shape), reversed(wanted), strict=False):
            if mine != 1 and theirs != 1 and mine != theirs:
                raise errors.ValueError(
                    f"{name}: value must broadcast with batch_shape {list(self._batch_shape)} and"
                    f" event_shape {list(self._event_shape)}; got shape {list(value.shape)}"
                )
        support = self.support
        if not support.check(value).all():
            raise errors.ValueError(
                f"{name}: value must be in the support {support!r}; got values outside: {value}"
            )

    def __repr__(self) -> str:
        names = [name for name in self.arg_constraints if name in self.__dict__]

        def shown(value: Any) -> Any:
            if not isinstance(value, kiln.Tensor):
                return value
            return value.item() if value.numel() == 1 else value.shape

        arguments = ", ".join(f"{name}: {shown(self.__dict__[name])}" for name in names)
        return f"{type(self).__name__}({arguments})"


def check_distribution(owner: str, name: str, value: object) -> None:
    """Raises unless the value is a distribution."""
    if not isinstance(value, Distribution):
        raise errors.TypeError(
            f"{owner}: {name} must be a Distribution; got {type(value).__name__}"
        )
