"""Weights in 8 or 4 bits a value, with scales."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from ... import _C, errors
from ...autograd.grad_mode import no_grad
from ..module import Module
from ..._C import Parameter
from .computed import (
    base_value,
    computed_names,
    layers_with_weights,
    part,
    set_computed,
    targets_of,
    _matcher,
)

if TYPE_CHECKING:
    from ..._C import Tensor
    from ..._typing import Targets


class Quantized(Module):
    """A weight as integers `values` with `scales`, both buffers; the dtype that it had stays known.

    It is not trained; gradients flow through it to a layer's input.

    bits: 8 or 4. level: one scale for the "tensor", each "channel" or each "block" of so many
    numbers. activations: "float", or "dynamic": inputs become integers, too.

    >>> nn.Quantized(kiln.tensor([[1., 127.]])).values
    tensor([[  1, 127]], dtype=kiln.int8)
    """

    def __init__(
        self,
        weight: Tensor,
        *,
        bits: int = 8,
        level: str = "channel",
        block: int = 32,
        activations: str = "float",
    ) -> None:
        options: dict[str, Any] = {"bits": bits, "level": level, "block": block, "activations": activations}
        self._hold(_C.quantize(weight.detach(), **options), weight)

    @classmethod
    def of(cls, tensor: Tensor, like: Tensor) -> Self:
        """Holds a quantized tensor; `like` has the dtype and device of the weight that it stands for."""
        new = cls.__new__(cls)
        new._hold(tensor, like)
        return new

    def _hold(self, tensor, like):
        super().__init__()
        self.scheme = _C.quant_scheme(tensor)
        self.shape = tuple(tensor.shape)
        self.register_buffer("values", _C.quantized_values(tensor))
        self.register_buffer("scales", _C.quantized_scales(tensor))
        self._scales_dtype = self.scales.dtype
        # In no state dict: it has the dtype of the weight, and is cast with the module.
        self.register_buffer("_like", like.detach().new_empty(0), persistent=False)

    def tensor(self) -> Tensor:
        """The quantized tensor, which shares the buffers' memory."""
        scales = self.scales
        if scales.dtype != self._scales_dtype:  # a cast of the module
            scales = scales.to(self._scales_dtype)
        return _C.make_quantized(self.values, scales, self.shape, **self.scheme)

    def dequantized(self) -> Tensor:
        """The weight as an ordinary tensor."""
        return self.tensor().dequantize(dtype=self._like.dtype)

    def nbytes(self) -> int:
        """Of values and scales."""
        return sum(x.numel() * x.element_size() for x in (self.values, self.scales))

    def extra_repr(self) -> str:
        level = self.scheme["level"]
        of = f"block of {self.scheme['block']}" if level == "block" else level
        inputs = ", inputs in 8 bits" if self.scheme["activations"] == "dynamic" else ""
        return f"{self.scheme['bits']} bits, shape={list(self.shape)}, scale per {of}{inputs}"


@dataclass
class QuantizeReport:
    """What quantize_ did: (path, shape, bytes before, bytes after, largest error) of each weight.

    >>> report = nn.quantize_(nn.Sequential(nn.Linear(64, 64)))
    >>> report.bytes_before
    16384
    """

    entries: list[tuple[Any, ...]] = field(default_factory=list)

    @property
    def bytes_before(self) -> int:
        """The bytes of all weights before."""
        return sum(entry[2] for entry in self.entries)

    @property
    def bytes_after(self) -> int:
        """The bytes of all weights after."""
        return sum(entry[3] for entry in self.entries)

    def __str__(self) -> str:
        lines = [
            f"{path} {list(shape)}: {_bytes(before, after)}, largest error {error:.3g}"
            for path, shape, before, after, error in self.entries
        ]
        total = _bytes(self.bytes_before, self.bytes_after)
        return "\n".join([*lines, f"{len(lines)} weights: {total}"])


def _bytes(before, after):
    return f"{before} -> {after} bytes ({100 * after / max(before, 1):.1f} %)"


def quantize_(
    module: Module,
    *,
    bits: int = 8,
    level: str = "channel",
    block: int = 32,
    activations: str = "float",
    targets: Targets | None = None,
) -> QuantizeReport:
    """Keeps the weights of Linear and convolution layers in 8 or 4 bits; a QuantizeReport.

    level: what shares a scale: "tensor", "channel" (an output) or "block" (neighbours in a row).
    activations: "dynamic" makes Linear layers multiply integers, with the input in 8 bits.
    targets: patterns of the paths of other weights, of two dims or more, or of their layers.
    State dicts hold values and scales; a model that loads them is quantized in the same way first.

    >>> net = nn.Sequential(nn.Linear(64, 64))
    >>> report = nn.quantize_(net, bits=8)
    >>> report.bytes_after < report.bytes_before
    True
    """
    report = QuantizeReport()
    options: dict[str, Any] = {"bits": bits, "level": level, "block": block, "activations": activations}
    made = []
    with no_grad():
        for path, layer, name in targets_of(module, targets, "quantize_", True):
            weight = layer._parameters.get(name)
            if name in computed_names(layer) or not weight.is_floating_point():
                continue
            new = Quantized(weight, **options).train(layer.training)
            error = (new.dequantized() - weight).abs().amax().item() if weight.numel() else 0.0
            sizes = (weight.numel() * weight.element_size(), new.nbytes())
            report.entries.append((path, tuple(weight.shape), *sizes, error))
            made.append((layer, name, new))
    if not made:
        raise errors.ValueError(
            f"quantize_: the weights of {type(module).__name__} that match are computed or not "
            "floating point; expected ordinary ones"
        )
    # Only now, so that an error above has changed nothing.
    for layer, name, new in made:
        replace_weight(layer, name, new)
    return report


def replace_weight(layer: Module, name: str, quantized: Quantized) -> None:
    """Puts a Quantized in the place of a parameter."""
    del layer._parameters[name]
    layer.add_module(f"{name}_quantized", quantized)
    set_computed(layer, {*computed_names(layer), name})


def dequantize_(module: Module, targets: Targets | None = None) -> None:
    """Makes the quantized weights (that match) ordinary ones, frozen.

    >>> net = nn.Sequential(nn.Linear(64, 64))
    >>> report = nn.quantize_(net)
    >>> nn.dequantize_(net)
    >>> net[0].weight.dtype
    kiln.float32
    """
    matches = (lambda path: True) if targets is None else _matcher(targets, "dequantize_")
    count = 0
    for path, layer, name in list(layers_with_weights(module)):
        if part(layer, name, "quantized") is None:
            continue
        if matches(path) or matches(path.rpartition(".")[0]):
            to_dense(layer, name)
            count += 1
    if count == 0:
        raise errors.ValueError(
            f"dequantize_: no quantized weight of {type(module).__name__} matches {targets!r}"
        )


def to_dense(layer: Module, name: str) -> None:
    """Puts an ordinary, frozen parameter in the place of a quantized weight."""
    with no_grad():
        dense = base_value(layer, name)
    delattr(layer, f"{name}_quantized")
    if part(layer, name, "lora") is None:
        set_computed(layer, set(computed_names(layer)) - {name})
    layer._parameters[name] = Parameter(dense, requires_grad=False)
