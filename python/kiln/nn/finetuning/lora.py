"""LoRA: fine-tuning by updates of low rank (Hu et al., 2021), and QLoRA, the same over a quantized
base (Dettmers et al., 2023). The model's code stays as it is: the weights are computed.

    kiln.nn.lora(model, rank=8, alpha=16, targets=["*.query", "*.value"])
    adam = kiln.optim.AdamW([p for p in model.parameters() if p.requires_grad])  # A and B alone
    ...
    updates = kiln.nn.lora_parameters(model)
    kiln.save({name: p.detach() for name, p in updates.items()}, "adapter.safetensors")
    kiln.nn.merge_and_unload(model)  # an ordinary model again
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ... import _C, errors
from ...autograd.grad_mode import no_grad
from .. import functional as F
from .. import init
from ..module import Module
from ..._C import Parameter
from .computed import computed_names, layers_with_weights, part, set_computed, targets_of, value
from .quantized import quantize_, to_dense

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..._C import Tensor
    from ..._typing import Targets


class Lora(Module):
    """alpha / rank B A, with A [rank, in] and B [out, rank], where a weight of more than two dims is
    seen as [dim 0, the rest]. A starts as a Linear layer's weight would, B as zeros, so that nothing
    changes at first. `merged` says whether the update is in the weight already.

    shape: the weight's. like: a tensor that has its dtype and device.

    >>> layer = nn.Linear(4, 4)
    >>> nn.lora(layer, rank=2)
    1
    >>> sorted(name.split(".")[-1] for name in nn.lora_parameters(layer))
    ['A', 'B']
    """

    def __init__(
        self, shape: Sequence[int], rank: int, alpha: float, dropout: float, like: Tensor
    ) -> None:
        super().__init__()
        self.rank, self.alpha, self.dropout = rank, alpha, dropout
        self.shape = tuple(shape)
        place: dict[str, Any] = {"dtype": like.dtype, "device": like.device}
        self.A = Parameter(_C.empty(rank, math.prod(self.shape[1:]), **place))
        self.B = Parameter(_C.zeros(self.shape[0], rank, **place))
        init.kaiming_uniform_(self.A, math.sqrt(5))
        self.register_buffer("merged", _C.tensor(False, device=like.device))

    def is_merged(self) -> bool:
        """Whether the update is in the weight."""
        return bool(self.merged)

    def delta(self) -> Tensor:
        """The update, in the weight's shape."""
        return ((self.B @ self.A) * (self.alpha / self.rank)).reshape(self.shape)

    def forward(self, input: Tensor) -> Tensor:
        """What the update adds to a Linear layer's output; the sum of weights is never made."""
        inner = F.linear(F.dropout(input, self.dropout, self.training), self.A)
        return F.linear(inner, self.B) * (self.alpha / self.rank)

    def extra_repr(self) -> str:
        dropout = f", dropout={self.dropout}" if self.dropout else ""
        return f"rank={self.rank}, alpha={self.alpha}{dropout}"


def _check(op, rank, dropout):
    if not isinstance(rank, int) or rank < 1:
        raise errors.ValueError(f"{op}: expected a rank of 1 or more; got {rank!r}")
    if not 0 <= dropout < 1:
        raise errors.ValueError(f"{op}: expected a dropout in [0, 1); got {dropout!r}")


def lora(
    module: Module,
    *,
    rank: int = 8,
    alpha: float = 16.0,
    dropout: float = 0.0,
    targets: Targets | None = None,
    freeze_others: bool = True,
) -> int:
    """Attaches updates to the weights that `targets` means; returns how many there were.

    alpha: the update counts alpha / rank times. dropout: of the update's input, in training.
    targets: patterns of the paths of weights of two dims or more, or of their layers; None: the
    weights of all Linear layers. freeze_others: of the whole module, only A and B are trained.

    module: whose weights. rank: of the updates. alpha: they are scaled by alpha / rank. dropout: of
    their inputs in training. targets: which weights, None for those of linear layers.
    freeze_others: whether all else is frozen.

    >>> nn.lora(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)), rank=2)
    2
    """
    _check("lora", rank, dropout)
    found = targets_of(module, targets, "lora", False)
    twice = [path for path, layer, name in found if part(layer, name, "lora") is not None]
    if twice:
        raise errors.ValueError(f"lora: {twice[0]} has an update already; try merge_and_unload()")
    if freeze_others:
        module.requires_grad_(False)
    for _, layer, name in found:
        base = layer._parameters.get(name)
        if base is None:
            quantized = part(layer, name, "quantized")
            base, shape = quantized._like, quantized.shape
        else:
            base.requires_grad_(False)
            shape = base.shape
        update = Lora(shape, rank, alpha, dropout, base)
        layer.add_module(f"{name}_lora", update.train(layer.training))
        set_computed(layer, {*computed_names(layer), name})
    return len(found)


def qlora(
    module: Module,
    *,
    rank: int = 8,
    alpha: float = 16.0,
    dropout: float = 0.0,
    targets: Targets | None = None,
    freeze_others: bool = True,
    bits: int = 4,
    level: str = "block",
    block: int = 64,
    activations: str = "float",
) -> int:
    """lora over weights that are quantized first: the base then takes an eighth of its memory in
    training too, since Linear layers keep the quantized weight for their gradient.

    module: whose weights. rank: of the updates. alpha: they are scaled by alpha / rank. dropout: of
    their inputs in training. targets: which weights. freeze_others: whether all else is frozen.
    bits, level, block, activations: as quantize_ takes them.

    >>> nn.qlora(nn.Sequential(nn.Linear(64, 64)), rank=2)
    1
    """
    _check("qlora", rank, dropout)
    found = targets_of(module, targets, "qlora", False)
    quantize_(
        module,
        bits=bits,
        level=level,
        block=block,
        activations=activations,
        targets={path for path, *_ in found}.__contains__,
    )
    return lora(
        module,
        rank=rank,
        alpha=alpha,
        dropout=dropout,
        targets={path for path, *_ in found}.__contains__,
        freeze_others=freeze_others,
    )


def _updates(module, op):
    found = [
        (path, layer, name, part(layer, name, "lora"))
        for path, layer, name in layers_with_weights(module)
        if part(layer, name, "lora") is not None
    ]
    if not found:
        raise errors.ValueError(f"{op}: {type(module).__name__} has no updates; expected lora() before")
    return found


def merge(module: Module) -> None:
    """Adds all updates to their weights: the same outputs, faster. ValueError for quantized weights.

    >>> layer = nn.Sequential(nn.Linear(4, 2))
    >>> x, before = kiln.ones(1, 4), layer(kiln.ones(1, 4))
    >>> _ = nn.lora(layer, rank=2)
    >>> nn.merge(layer)
    >>> kiln.allclose(layer(x), before)  # B begins as zeros
    True
    """
    found = _updates(module, "merge")
    for path, layer, name, _ in found:
        if part(layer, name, "quantized") is not None:
            raise errors.ValueError(
                f"merge: {path} is quantized and cannot take the update in; try merge_and_unload(), "
                "which makes it dense"
            )
    for _, layer, name, update in found:
        if not update.is_merged():
            _add(layer, name, update, 1)
            update.merged.fill_(True)


def unmerge(module: Module) -> None:
    """Takes merged updates out of their weights again.

    >>> layer = nn.Sequential(nn.Linear(4, 2))
    >>> _ = nn.lora(layer, rank=2)
    >>> nn.merge(layer)
    >>> nn.unmerge(layer)
    """
    for _, layer, name, update in _updates(module, "unmerge"):
        if update.is_merged():
            _add(layer, name, update, -1)
            update.merged.fill_(False)


def _add(layer, name, update, sign):
    with no_grad():
        layer._parameters[name].add_(update.delta(), alpha=sign)


def merge_and_unload(module: Module) -> None:
    """Makes the weights ordinary parameters with the updates in them, frozen.

    >>> layer = nn.Sequential(nn.Linear(4, 2))
    >>> _ = nn.lora(layer, rank=2)
    >>> _ = nn.merge_and_unload(layer)
    >>> [name for name, _ in layer.named_parameters()]
    ['0.weight', '0.bias']
    """
    for _, layer, name, update in _updates(module, "merge_and_unload"):
        with no_grad():
            new = value(layer, name)
        if part(layer, name, "quantized") is not None:
            to_dense(layer, name)
        layer._parameters[name].data = new.detach()
        _remove(layer, name)


def unload(module: Module) -> None:
    """Removes all updates; a quantized weight stays quantized.

    >>> layer = nn.Sequential(nn.Linear(4, 2))
    >>> _ = nn.lora(layer, rank=2)
    >>> _ = nn.unload(layer)
    >>> [name for name, _ in layer.named_parameters()]
    ['0.weight', '0.bias']
    """
    unmerge(module)
    for _, layer, name, _ in _updates(module, "unload"):
        _remove(layer, name)


def _remove(layer, name):
    delattr(layer, f"{name}_lora")
    if part(layer, name, "quantized") is None:
        set_computed(layer, set(computed_names(layer)) - {name})


def lora_parameters(module: Module) -> dict[str, Parameter]:
    """{path: parameter} of all A and B: what is trained and what an adapter's file holds.

    >>> layer = nn.Sequential(nn.Linear(4, 2))
    >>> _ = nn.lora(layer, rank=2)
    >>> sorted(p.shape for p in nn.lora_parameters(layer).values())
    [kiln.Size([2, 2]), kiln.Size([2, 4])]
    """
    return {
        f"{path}_lora.{letter}": getattr(update, letter)
        for path, _, _, update in _updates(module, "lora_parameters")
        for letter in "AB"
    }
