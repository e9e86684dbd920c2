"""Layers that `fuse_` makes of several, for inference."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from ... import _C
from .. import functional, layers
from ..container import Sequential

if TYPE_CHECKING:
    from typing import Any

    from ..._C import Tensor
    from ..module import Module


class _Activated:
    """The layer before it in the order of methods, with an activation of what it returns."""

    activation = "none"

    def extra_repr(self) -> str:
        """The options of the layer, and the activation."""
        return f"{super().extra_repr()}, activation={self.activation}"  # type: ignore[misc]


class LinearActivation(_Activated, layers.Linear):
    """activation(linear(x)) in one pass over memory: what `fuse_` makes of a Linear and the activation
    behind it. The attribute `activation` is a name that `functional.linear` takes.

    in_features, out_features, bias: as of Linear.

    >>> net = nn.Sequential(nn.Linear(2, 3), nn.GELU()).eval()
    >>> nn.utils.fuse_(net)[0]
    LinearActivation(in_features=2, out_features=3, bias=True, activation=gelu)
    """

    def forward(self, input: Tensor) -> Tensor:
        """x W^T + b, with the activation applied to it."""
        return layers.Linear.forward(self, input, activation=self.activation)


class ConvActivation1d(_Activated, layers.Conv1d):
    """activation(conv(x)) in one pass over memory: what `fuse_` makes of a Conv1d and the activation
    behind it. The attribute `activation` is a name that `functional.conv1d` takes.

    in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode: as
    of Conv1d.

    >>> net = nn.Sequential(nn.Conv1d(1, 2, 1), nn.ReLU()).eval()
    >>> type(nn.utils.fuse_(net)[0]).__name__
    'ConvActivation1d'
    """

    def forward(self, input: Tensor) -> Tensor:
        """The convolution of the input, with the activation applied to it."""
        return layers.Conv1d.forward(self, input, activation=self.activation)


class ConvActivation2d(_Activated, layers.Conv2d):
    """activation(conv(x)) in one pass over memory: what `fuse_` makes of a Conv2d and the activation
    behind it. The attribute `activation` is a name that `functional.conv2d` takes.

    in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode: as
    of Conv2d.

    >>> net = nn.Sequential(nn.Conv2d(1, 2, 1), nn.ReLU6()).eval()
    >>> nn.utils.fuse_(net)[0].activation
    'relu6'
    """

    def forward(self, input: Tensor) -> Tensor:
        """The convolution of the input, with the activation applied to it."""
        return layers.Conv2d.forward(self, input, activation=self.activation)


class ConvTransposeActivation2d(_Activated, layers.ConvTranspose2d):
    """activation(conv(x)) in one pass over memory: what `fuse_` makes of a ConvTranspose2d and the
    activation behind it. The attribute `activation` is a name that `functional.conv_transpose2d`
    takes.

    in_channels, out_channels, kernel_size, stride, padding, output_padding, groups, bias, dilation,
    padding_mode: as of ConvTranspose2d.

    >>> net = nn.Sequential(nn.ConvTranspose2d(1, 2, 1), nn.Sigmoid()).eval()
    >>> nn.utils.fuse_(net)[0].activation
    'sigmoid'
    """

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        """The transposed convolution of the input, with the activation applied to it.

        output_size: the height and width of the result, one of those that the stride allows.
        """
        return layers.ConvTranspose2d.forward(self, input, output_size, activation=self.activation)


_ACTIVATED: dict[type, type] = {
    layers.Linear: LinearActivation,
    layers.Conv1d: ConvActivation1d,
    layers.Conv2d: ConvActivation2d,
    layers.ConvTranspose2d: ConvTransposeActivation2d,
}

_ACTIVATIONS = {
    layers.ReLU: "relu",
    layers.ReLU6: "relu6",
    layers.Hardswish: "hardswish",
    layers.Hardsigmoid: "hardsigmoid",
    layers.SiLU: "silu",
    layers.Sigmoid: "sigmoid",
    layers.Tanh: "tanh",
}


def hooked(module: Module) -> bool:
    """Whether somebody sees what goes into the module or out of it."""
    return _C._any_hooks((module,))


def _activation_of(module):
    """The name of an activation that layers can compute themselves, or None."""
    if hooked(module):
        return None
    if type(module) is layers.GELU:
        return "gelu_tanh" if module.approximate == "tanh" else "gelu"
    return _ACTIVATIONS.get(type(module))


def with_activation(layer: Module, activation: Module) -> Module | None:
    """A layer that computes the activation, too; None where it does not."""
    kind, name = _ACTIVATED.get(type(layer)), _activation_of(activation)
    if kind is None or name is None or getattr(layer, "padding_mode", "zeros") != "zeros":
        return None
    fused = copy.copy(layer)
    fused.__dict__["_parameters"] = dict(layer._parameters)
    fused.__class__ = kind
    fused.activation = name
    return fused


class SeparableSequential(Sequential):
    """A Sequential in which a depthwise convolution runs together with those of 1 x 1 beside it: what
    `fuse_` makes of one that has them. The layers and their keys stay as they were, and the numbers
    are the same. A layer with hooks runs alone.

    args: modules, or an OrderedDict of them, as of Sequential.

    >>> net = nn.Sequential(nn.Conv2d(2, 2, 3, groups=2), nn.ReLU(), nn.Conv2d(2, 4, 1)).eval()
    >>> type(nn.utils.fuse_(net)).__name__
    'SeparableSequential'
    """

    def forward(self, input: Any) -> Any:
        """What the layers make of the input one after another."""
        plan = self.__dict__.get("_plan")
        if plan is None or _C._any_hooks(plan.layers) or not _C._facts_hold(plan.facts):
            plan = _Plan(self)
            self.__dict__["_plan"] = None if _C._any_hooks(plan.layers) else plan
        for step in plan.steps:
            input = step(input)
        return input

    def __getstate__(self):
        state = super().__getstate__()
        state.pop("_plan", None)
        return state


class _Plan:
    """The steps of a Sequential. They stay the same while none of `layers` has hooks and `facts`, about
    the places and options of layers, hold."""

    def __init__(self, sequential):
        places: list[Any] = []
        flat = _flattened(sequential, places)
        self.steps = _steps(flat)
        self.layers = tuple(layer for place in places for layer in place._modules.values())
        self.facts = tuple(_facts(flat, places))


def _facts(flat, places):
    for place in places:
        modules = place._modules
        yield from (modules, None, len(modules))
        for name, layer in modules.items():
            yield from (modules, name, layer)
    for layer in flat:
        if _may_be_of_block(layer):
            own = vars(layer)
            for option in _OPTIONS:
                yield from (own, option, own[option])


class _Block:
    """A depthwise convolution with those of 1 x 1 around it, one of which may be None."""

    def __init__(self, expand, depthwise, project):
        self.layers = expand, depthwise, project

    def __call__(self, input):
        expand, conv, project = self.layers
        widen, widen_bias, widened = _pointwise(expand)
        narrow, narrow_bias, narrowed = _pointwise(project)
        return functional.separable_conv2d(
            input, conv.weight, conv.bias, conv.stride, conv.padding, conv.dilation,
            activation=getattr(conv, "activation", "none"),
            expand_weight=widen, expand_bias=widen_bias, expand_activation=widened,
            project_weight=narrow, project_bias=narrow_bias, project_activation=narrowed,
        )  # fmt: skip


def _pointwise(conv):
    """The weight, bias and activation of a convolution of 1 x 1, or of none."""
    if conv is None:
        return None, None, "none"
    return conv.weight, conv.bias, getattr(conv, "activation", "none")


def _flattened(module, places):
    """The layers of a Sequential, those of others inside in their places; these go to `places`."""
    places.append(module)
    out = []
    for layer in module._modules.values():
        if isinstance(layer, Sequential) and type(layer).forward is Sequential.forward:
            if not hooked(layer):
                out += _flattened(layer, places)
                continue
        elif type(layer) is layers.Identity and not hooked(layer):
            continue
        out.append(layer)
    return out


# What decides whether a layer goes into a block.
_OPTIONS = (
    "groups", "padding", "stride", "kernel_size", "in_channels", "out_channels", "padding_mode"
)  # fmt: skip


def _may_be_of_block(layer):
    return type(layer) is layers.Conv2d or type(layer) is ConvActivation2d


def _kind(layer):
    """ "pointwise", "depthwise", or None for every other layer."""
    if not _may_be_of_block(layer):
        return None
    own, kind = vars(layer), None
    groups, padding = own["groups"], own["padding"]
    if own["kernel_size"] == (1, 1):
        if groups == 1 and own["stride"] == (1, 1) and padding == (0, 0):
            kind = "pointwise"
    elif groups == own["in_channels"] == own["out_channels"] and not isinstance(padding, str):
        kind = "depthwise"
    return None if kind is None or own["padding_mode"] != "zeros" or hooked(layer) else kind


def _steps(flat):
    """The layers, blocks of them as one."""
    kinds = [_kind(layer) for layer in flat]
    out, at = [], 0
    while at < len(flat):
        expand = kinds[at : at + 2] == ["pointwise", "depthwise"]
        middle = at + expand
        if kinds[middle] != "depthwise":
            out.append(flat[at])
            at += 1
            continue
        project = kinds[middle + 1 : middle + 2] == ["pointwise"]
        if not expand and not project:
            out.append(flat[at])
        else:
            out.append(
                _Block(flat[at] if expand else None, flat[middle], flat[middle + 1] if project else None)
            )
        at = middle + 1 + project
    return out


def has_blocks(module: Sequential) -> bool:
    """Whether a Sequential has layers that run as one block."""
    return any(isinstance(step, _Block) for step in _steps(_flattened(module, [])))
