"""Pruning: elements of a parameter that stay zero, by a mask.

A pruned parameter `weight` becomes the parameter `weight_orig` and the buffer `weight_mask`; `weight`
is their product, computed before each forward. Pruning again acts on what is left.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ... import _C, errors
from . import _forward_hook
from .convert_parameters import parameters_to_vector

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from ..._C import Tensor
    from ..._typing import M
    from ..module import Module


class BasePruningMethod(ABC):
    """A way to choose what is pruned. A class of one's own has PRUNING_TYPE ("unstructured": element
    by element; "structured": along `dim`; "global") and compute_mask().

    >>> issubclass(nn.utils.prune.L1Unstructured, nn.utils.prune.BasePruningMethod)
    True
    """

    PRUNING_TYPE: str
    _tensor_name: Any = None

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask for a tensor of importances; default_mask is what earlier pruning left."""

    def apply_mask(self, module: Module) -> Tensor:
        """The product of mask and original."""
        if self._tensor_name is None:
            raise errors.AssertionError(f"Module {module} has to be pruned")
        original = getattr(module, self._tensor_name + "_orig")
        return getattr(module, self._tensor_name + "_mask").to(original.dtype) * original

    @classmethod
    def apply(
        cls,
        module: Module,
        name: str,
        *args: Any,
        importance_scores: Tensor | None = None,
        **kwargs: Any,
    ) -> BasePruningMethod:
        """Prunes a module's parameter; earlier pruning of it stays."""
        method = cls(*args, **kwargs)
        method._tensor_name = name
        key, before = _forward_hook.find(module, BasePruningMethod, name, "_tensor_name")
        again = before is not None
        if again:
            if not isinstance(before, PruningContainer):
                before = PruningContainer(before)
            before.add_pruning_method(method)
            method = before
        value = getattr(module, name)
        if importance_scores is not None and importance_scores.shape != value.shape:
            raise errors.AssertionError(
                f"importance_scores should have the same shape as parameter {name}; got"
                f" {importance_scores.shape} vs {value.shape}"
            )
        scores = value if importance_scores is None else importance_scores
        left = getattr(module, name + "_mask").detach().clone() if again else _C.ones_like(value)
        # Nothing of the module is changed before this has worked.
        mask = method.compute_mask(scores.detach(), default_mask=left)
        if again:
            _forward_hook.drop(module, key)
        else:
            del module._parameters[name]
            module.register_parameter(name + "_orig", value)
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(
        self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None
    ) -> Tensor:
        """A tensor times its mask, without a module."""
        if importance_scores is not None and importance_scores.shape != t.shape:
            raise errors.AssertionError(
                "importance_scores should have the same shape as tensor t; got"
                f" {importance_scores.shape} vs {t.shape}"
            )
        scores = t if importance_scores is None else importance_scores
        left = _C.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=left)

    def remove(self, module: Module) -> None:
        """Makes the pruning permanent: the parameter is an ordinary one, with its zeros."""
        value = self.apply_mask(module)
        name = self._tensor_name
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters[name + "_orig"]
        original.data = value.data
        del module._parameters[name + "_orig"]
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Several methods, of which the newest acts on what the others left.

    >>> layer = nn.Linear(2, 2)
    >>> _ = nn.utils.prune.l1_unstructured(layer, "weight", 1)
    >>> _ = nn.utils.prune.l1_unstructured(layer, "weight", 1)
    >>> layer.weight_mask.sum().item()
    2.0
    """

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[Any, ...] = ()
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod | None) -> None:
        """One method more, for the same parameter."""
        if method is not None and not isinstance(method, BasePruningMethod):
            raise errors.TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise errors.ValueError(
                "Can only add pruning methods acting on the parameter named"
                f" '{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: int) -> BasePruningMethod:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask so far, with what the newest method takes away."""
        method = self._pruning_methods[-1]
        out = default_mask.to(t.dtype, copy=True)
        place = _place(method, t, default_mask)
        out[place] = method.compute_mask(t[place], default_mask=default_mask[place]).to(out.dtype)
        return out


def _place(method, t, mask):
    """The index of what a method may prune: what is not pruned yet."""
    if method.PRUNING_TYPE == "unstructured":
        return mask == 1
    everything = [slice(None)] * t.dim()
    if method.PRUNING_TYPE == "global":
        return tuple(everything)
    if method.PRUNING_TYPE != "structured":
        raise errors.ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
    if not hasattr(method, "dim"):
        raise errors.AttributeError(
            'Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` defined.'
        )
    dim = method.dim + (t.dim() if method.dim < 0 else 0)
    if dim < 0:
        raise errors.IndexError(f"Index is out of bounds for tensor with dimensions {t.dim()}")
    others = [d for d in range(t.dim()) if d != dim]
    everything[dim] = mask.sum(dim=others) != 0
    return tuple(everything)


# ---- The methods


def _check_amount(amount):
    if not isinstance(amount, numbers.Real):
        raise errors.TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    whole = isinstance(amount, numbers.Integral)
    if amount < 0 or (not whole and amount > 1.0):
        raise errors.ValueError(
            f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer"
        )
    return amount


def _count(amount, size):
    """How many of `size` to prune."""
    if not isinstance(amount, numbers.Integral):
        return round(amount * size)
    if amount > size:
        raise errors.ValueError(
            f"amount={amount} should be smaller than the number of parameters to prune={size}"
        )
    return amount


def _check_structure(t, dim):
    if t.dim() <= 1:
        raise errors.ValueError(
            "Structured pruning can only be applied to multidimensional tensors. Found tensor of"
            f" shape {t.shape} with {t.dim()} dims"
        )
    if dim >= t.dim():
        raise errors.IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _without(default_mask, flat_indices):
    out = default_mask.clone()
    flat = out.reshape(-1)
    flat[flat_indices] = 0
    return flat.view(out.shape)


def _channels(t, dim, kept, default_mask):
    """The mask in which of dim only `kept` (an index) is left."""
    out = _C.zeros_like(t)
    place = [slice(None)] * t.dim()
    place[dim] = kept
    out[tuple(place)] = 1
    return out * default_mask.to(out.dtype)


class Identity(BasePruningMethod):
    """Prunes nothing, but makes the parameter a pruned one.

    >>> layer = nn.utils.prune.Identity.apply(nn.Linear(2, 2), "weight")
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask

    @classmethod
    def apply(cls, module: Module, name: str) -> BasePruningMethod:  # type: ignore[override]
        """For a parameter of a module."""
        return super().apply(module, name)


class RandomUnstructured(BasePruningMethod):
    """Elements at random: `amount` of them, or that part of all.

    >>> method = nn.utils.prune.RandomUnstructured(1)
    >>> method.prune(kiln.ones(4)).sum()
    tensor(3.)
    """

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: int | float) -> None:
        self.amount = _check_amount(amount)

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = _count(self.amount, t.numel())
        if count == 0:
            return default_mask.clone()
        return _without(default_mask, _C.topk(_C.rand_like(t).reshape(-1), k=count)[1])

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Module, name: str, amount: int | float
    ) -> BasePruningMethod:  # type: ignore[override]
        """For a parameter of a module."""
        return super().apply(module, name, amount=amount)


class L1Unstructured(BasePruningMethod):
    """The elements of the smallest magnitude: `amount` of them, or that part of all.

    >>> method = nn.utils.prune.L1Unstructured(1)
    >>> method.prune(kiln.tensor([3., -1., 2.]))
    tensor([3., -0., 2.])
    """

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: int | float) -> None:
        self.amount = _check_amount(amount)

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = _count(self.amount, t.numel())
        if count == 0:
            return default_mask.clone()
        return _without(default_mask, _C.topk(t.abs().reshape(-1), k=count, largest=False)[1])

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Module, name: str, amount: int | float, importance_scores: Tensor | None = None
    ) -> BasePruningMethod:
        """For a parameter of a module."""
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class RandomStructured(BasePruningMethod):
    """Whole channels along dim, at random.

    >>> method = nn.utils.prune.RandomStructured(1, dim=0)
    >>> method.prune(kiln.ones(3, 2)).sum()
    tensor(4.)
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: int | float, dim: int = -1) -> None:
        self.amount = _check_amount(amount)
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        _check_structure(t, self.dim)
        size = t.shape[self.dim]
        count = _count(self.amount, size)
        if count == 0:
            return default_mask
        chance = _C.rand(size)
        kept = chance > _C.kthvalue(chance, k=count)[0]
        return _channels(t, self.dim, kept, default_mask)

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Module, name: str, amount: int | float, dim: int = -1
    ) -> BasePruningMethod:
        """For a parameter of a module."""
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(BasePruningMethod):
    """The channels along dim of the smallest n-norm.

    >>> method = nn.utils.prune.LnStructured(1, n=2, dim=0)
    >>> method.prune(kiln.tensor([[3., 3.], [1., 1.]]))
    tensor([[3., 3.],
            [0., 0.]])
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: int | float, n: int | float | str, dim: int = -1) -> None:
        self.amount = _check_amount(amount)
        self.n = n
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        _check_structure(t, self.dim)
        size = t.shape[self.dim]
        count = _count(self.amount, size)
        if count == 0:
            return default_mask
        others = [d for d in range(t.dim()) if d != self.dim % t.dim()]
        norms = _C.norm(t, self.n, others)
        return _channels(t, self.dim, _C.topk(norms, k=size - count)[1], default_mask)

    @classmethod
    def apply(  # type: ignore[override]
        cls,
        module: Module,
        name: str,
        amount: int | float,
        n: int | float | str,
        dim: int,
        importance_scores: Tensor | None = None,
    ) -> BasePruningMethod:
        """For a parameter of a module."""
        return super().apply(
            module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores
        )


class CustomFromMask(BasePruningMethod):
    """What a given mask says.

    >>> method = nn.utils.prune.CustomFromMask(kiln.tensor([1., 0.]))
    >>> method.prune(kiln.tensor([3., 4.]))
    tensor([3., 0.])
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if default_mask.shape != self.mask.shape:
            raise errors.AssertionError(
                f"the mask must have the parameter's shape; got {self.mask.shape}, expected"
                f" {default_mask.shape}"
            )
        return default_mask * self.mask.to(default_mask.dtype)

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Module, name: str, mask: Tensor
    ) -> BasePruningMethod:  # type: ignore[override]
        """For a parameter of a module."""
        return super().apply(module, name, mask=mask)


# ---- The same as functions, which return the module


def identity(module: M, name: str) -> M:
    """Makes a parameter a pruned one, of which nothing is pruned.

    module: whose parameter. name: what it is called.

    >>> layer = nn.utils.prune.identity(nn.Linear(2, 2), "weight")
    >>> layer.weight_mask.sum()
    tensor(4.)
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: M, name: str, amount: int | float) -> M:
    """Prunes elements at random: `amount` of them (int), or that part of all (float).

    module: whose parameter. name: what it is called.

    >>> layer = nn.utils.prune.random_unstructured(nn.Linear(2, 2), "weight", 1)
    >>> layer.weight_mask.sum()
    tensor(3.)
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(
    module: M, name: str, amount: int | float, importance_scores: Tensor | None = None
) -> M:
    """Prunes the elements of the smallest magnitude, or of the smallest importance.

    module: whose parameter. name: what it is called. amount: how many elements (int), or what part
    of all (float). importance_scores: of the parameter's shape, in place of magnitudes.

    >>> layer = nn.utils.prune.l1_unstructured(nn.Linear(2, 2), "weight", 0.5)
    >>> layer.weight_mask.sum()
    tensor(2.)
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: M, name: str, amount: int | float, dim: int) -> M:
    """Prunes whole channels along dim, at random.

    module: whose parameter. name: what it is called. amount: how many channels (int), or what part
    of all (float).

    >>> layer = nn.utils.prune.random_structured(nn.Linear(2, 2), "weight", 1, dim=0)
    >>> layer.weight_mask.sum()
    tensor(2.)
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: M,
    name: str,
    amount: int | float,
    n: int | float | str,
    dim: int,
    importance_scores: Tensor | None = None,
) -> M:
    """Prunes the channels along dim of the smallest n-norm.

    module: whose parameter. name: what it is called. amount: how many channels (int), or what part
    of all (float). importance_scores: of the parameter's shape, in place of its values.

    >>> layer = nn.utils.prune.ln_structured(nn.Linear(2, 2), "weight", 1, n=2, dim=0)
    >>> layer.weight_mask.sum()
    tensor(2.)
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: M, name: str, mask: Tensor) -> M:
    """Prunes where a mask is 0.

    module: whose parameter. name: what it is called.

    >>> layer = nn.utils.prune.custom_from_mask(nn.Linear(1, 2), "weight", kiln.tensor([[1.], [0.]]))
    >>> layer.weight[1].item()
    0.0
    """
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: Mapping[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prunes several parameters as if they were one: (module, name) pairs, by a class of methods.

    pruning_method: a class such as L1Unstructured; more keywords go to it. importance_scores: by
    (module, name).

    >>> a, b = nn.Linear(2, 2), nn.Linear(2, 2)
    >>> parameters = [(a, "weight"), (b, "weight")]
    >>> nn.utils.prune.global_unstructured(parameters, nn.utils.prune.L1Unstructured, amount=4)
    >>> (a.weight_mask.sum() + b.weight_mask.sum()).item()
    4.0
    """
    if not isinstance(parameters, Iterable):
        raise errors.TypeError("global_unstructured(): parameters is not an Iterable")
    parameters = list(parameters)
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise errors.TypeError("global_unstructured(): importance_scores must be of type dict")
    values = [getattr(module, name) for module, name in parameters]
    importance = [scores.get(key, value) for key, value in zip(parameters, values)]
    left = [
        getattr(module, name + "_mask", _C.ones_like(value))
        for (module, name), value in zip(parameters, values)
    ]
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise errors.TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method'
            f" {pruning_method} of type {method.PRUNING_TYPE}"
        )
    mask = PruningContainer(method).compute_mask(
        parameters_to_vector(importance).detach(), parameters_to_vector(left)
    )
    at = 0
    for (module, name), value in zip(parameters, values):
        custom_from_mask(module, name, mask[at : at + value.numel()].view_as(value))
        at += value.numel()


def remove(module: M, name: str) -> M:
    """Makes the pruning of a parameter permanent: it is an ordinary one, with its zeros.

    module: whose parameter. name: what it is called.

    >>> layer = nn.utils.prune.l1_unstructured(nn.Linear(2, 2), "weight", 1)
    >>> layer = nn.utils.prune.remove(layer, "weight")
    >>> nn.utils.prune.is_pruned(layer), layer.weight.count_nonzero().item()
    (False, 3)
    """
    key, method = _forward_hook.find(module, BasePruningMethod, name, "_tensor_name")
    if method is None:
        raise errors.ValueError(
            f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
        )
    method.remove(module)
    _forward_hook.drop(module, key)
    return module


def is_pruned(module: Module) -> bool:
    """Whether a parameter of the module or of its parts is pruned.

    >>> nn.utils.prune.is_pruned(nn.Linear(2, 2))
    False
    """
    return any(
        isinstance(hook, BasePruningMethod)
        for part in module.modules()
        for hook in _forward_hook.hooks_of(part).values()
    )
