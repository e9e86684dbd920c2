"""summary: the layers of a model with their shapes, parameters, multiply-adds and memory."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from typing import TYPE_CHECKING

from .. import _C, errors, nn
from ..nn.module import Module
from ..nn.module_cast import _C_no_grad

if TYPE_CHECKING:
    from typing import Any

__all__ = ["Layer", "Summary", "summary"]


@dataclasses.dataclass
class Layer:
    """A module that was called. parameters, trainable: of its own, without its parts'."""

    name: str
    kind: str
    depth: int
    input_shape: Any
    output_shape: Any
    parameters: int
    trainable: int
    multiply_adds: int
    is_leaf: bool


@dataclasses.dataclass
class Summary:
    """The layers in the order of their calls, and sums. Memory is in bytes."""

    layers: list[Layer]
    parameters: int
    trainable: int
    multiply_adds: int
    input_bytes: int
    activation_bytes: int  # the outputs of all layers without parts
    parameter_bytes: int

    def __str__(self) -> str:
        rows = [("layer", "output", "parameters", "multiply-adds")]
        for layer in self.layers:
            name = "  " * layer.depth + (
                f"{layer.name} ({layer.kind})" if layer.name else layer.kind
            )
            rows.append((
                name, _shape_text(layer.output_shape), f"{layer.parameters:,}" if layer.parameters else "-",
                f"{layer.multiply_adds:,}" if layer.multiply_adds else "-",
            ))  # fmt: skip
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        lines = [
            "  ".join(
                cell.ljust(w) if i < 2 else cell.rjust(w)
                for i, (cell, w) in enumerate(zip(row, widths))
            ).rstrip()
            for row in rows
        ]
        lines.insert(1, "-" * max(map(len, lines)))
        lines.append(lines[1])
        lines.append(f"parameters: {self.parameters:,}, of which {self.trainable:,} are trained")
        lines.append(f"multiply-adds: {self.multiply_adds:,}")
        lines.append(
            f"memory: input {_bytes_text(self.input_bytes)}, activations"
            f" {_bytes_text(self.activation_bytes)}, parameters {_bytes_text(self.parameter_bytes)}"
        )
        return "\n".join(lines)


def _shape_text(shape):
    if shape and isinstance(shape[0], list):
        return ", ".join(_shape_text(s) for s in shape)
    return "[" + ", ".join(map(str, shape)) + "]"


def _bytes_text(count):
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


def _tensors(value):
    if isinstance(value, _C.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        value = list(vars(value).values()) if hasattr(value, "__dict__") else ()
    return [
        t
        for item in value
        for t in (_tensors(item) if not isinstance(item, (str, bytes, int)) else ())
    ]


def _shapes(value):
    shapes = [list(t.shape) for t in _tensors(value)]
    return shapes[0] if len(shapes) == 1 else shapes


# They multiply by weights of their own, whatever parts they have.
WHOLE = (nn.LSTM, nn.GRU, nn.RNN, nn.MultiheadAttention)


def multiply_adds_of(module: Module, inputs: Any, outputs: Any) -> int:
    """Products of a layer without parts: of those with a weight; others count nothing."""
    found = _tensors(outputs)
    if not found:
        return 0
    out = found[0]
    weight = getattr(module, "weight", None)
    if isinstance(module, (nn.LSTM, nn.GRU, nn.RNN)):
        steps = math.prod(_tensors(inputs)[0].shape[:-1])
        return steps * sum(p.numel() for p in module.parameters() if p.dim() == 2)
    if isinstance(module, nn.MultiheadAttention):
        query, key, value = (_tensors(inputs) * 3)[:3]
        rows = query.numel() // query.shape[-1]
        width, keys = module.embed_dim, key.shape[1 if module.batch_first or key.dim() == 2 else 0]
        keys = key.shape[0] if key.dim() == 2 else keys
        projections = width * (query.numel() + key.numel() + value.numel())
        return projections + 2 * rows * keys * width
    if isinstance(module, (nn.Embedding, nn.EmbeddingBag)) or not isinstance(weight, _C.Tensor):
        return 0
    if isinstance(module, (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)):
        # Each element of the input meets all weights of its channel.
        return _tensors(inputs)[0].numel() * math.prod(weight.shape[1:])
    if isinstance(module, (nn.Conv1d, nn.Conv2d, nn.Conv3d)):
        return out.numel() * math.prod(weight.shape[1:])
    if isinstance(module, nn.Bilinear):
        return out.numel() * weight.shape[1] * weight.shape[2]
    if weight.dim() == 2:
        return out.numel() * weight.shape[1]
    return out.numel()  # norms: one product for each element


def summary(model: Module, input: Any) -> Summary:
    """What happens when the model is called with `input`: a tensor, or a tuple or dict of arguments.

    A parameter that several layers share counts once in the sums. The call is in eval mode and
    without gradients. Returns a Summary, which prints as a table.

    >>> kiln.train.summary(nn.Linear(3, 2), kiln.zeros(1, 3)).parameters
    8
    """
    if not isinstance(model, Module):
        raise errors.TypeError(f"summary: model must be a Module; got {type(model).__name__}")
    args, kwargs = (), {}
    if isinstance(input, dict):
        kwargs = input
    else:
        args = tuple(input) if isinstance(input, (list, tuple)) else (input,)
    names = {id(m): name for name, m in model.named_modules()}
    layers: list[Layer] = []
    sizes: list[int] = []
    open_layers: list[Any] = []

    def before(module, inputs):
        name = names.get(id(module), "")
        own = list(module.parameters(recurse=False))
        layer = Layer(
            name.rpartition(".")[2], type(module).__name__, len(open_layers), _shapes(inputs), [],
            sum(p.numel() for p in own), sum(p.numel() for p in own if p.requires_grad), 0,
            not list(module.children()),
        )  # fmt: skip
        layers.append(layer)
        open_layers.append(layer)

    def after(module, inputs, outputs):
        layer = open_layers.pop()
        layer.output_shape = _shapes(outputs)
        if layer.is_leaf or isinstance(module, WHOLE):
            layer.multiply_adds = multiply_adds_of(module, inputs, outputs)
            sizes.append(sum(t.numel() * t.element_size() for t in _tensors(outputs)))

    handles = []
    for module in model.modules():
        handles += [module.register_forward_pre_hook(before), module.register_forward_hook(after)]
    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(_C_no_grad())
            model(*args, **kwargs)
    finally:
        for handle in handles:
            handle.remove()
        for module, training in modes:
            module.training = training
    parameters = list({id(p): p for p in model.parameters()}.values())
    return Summary(
        layers,
        sum(p.numel() for p in parameters),
        sum(p.numel() for p in parameters if p.requires_grad),
        sum(layer.multiply_adds for layer in layers),
        sum(t.numel() * t.element_size() for t in _tensors((args, kwargs))),
        sum(sizes),
        sum(p.numel() * p.element_size() for p in parameters),
    )
