"""kiln.capture and kiln.load_graph: a model as a graph that needs no class, and its files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from . import _C, errors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from ._C import Tensor, dtype
    from ._typing import StrPath


class GraphModel:
    """A captured model: graph(*inputs) computes its outputs, without gradients.

    Inputs have the dtypes that it was captured with, and the shapes, but for free dims.

    >>> graph = kiln.capture(nn.Linear(2, 1), (kiln.zeros(3, 2),))
    >>> graph(kiln.zeros(3, 2)).shape
    kiln.Size([3, 1])
    """

    def __init__(self, captured: Any) -> None:
        self._captured = captured

    def __call__(self, *inputs: Tensor) -> Any:
        for i, x in enumerate(inputs):
            if not isinstance(x, _C.Tensor):
                raise errors.TypeError(
                    f"graph: input {i} is a {type(x).__name__}; expected a tensor"
                )
        outputs = self._captured.run(list(inputs))
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def save(self, path: StrPath) -> None:
        """Writes the graph and its weights to one safetensors file."""
        self._captured.save(os.fspath(path))

    @property
    def inputs(self) -> list[tuple[str, dtype, tuple[int | str, ...]]]:
        """(name, dtype, shape) of each input; a free dim of a shape is its name."""
        return [(name, dtype, tuple(shape)) for name, dtype, shape in self._captured.inputs()]

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs."""
        return list(self._captured.output_names())

    @property
    def constants(self) -> dict[str, Tensor]:
        """The tensors that the graph holds, by name: parameters, buffers, numbers."""
        return dict(self._captured.constants())

    def explain(self) -> str:
        """What was fused, folded and merged in the graph that runs, a line for each; with free dims
        in that of the last call's sizes. After two calls also what each kind of row takes.

        >>> graph = kiln.capture(nn.Sequential(nn.Linear(2, 4), nn.ReLU()), kiln.zeros(3, 2))
        >>> graph.explain()
        'epilogues: 1 rows joined to linear layers\\n'
        """
        return self._captured.explain()

    def to_dot(self) -> str:
        """The graph for Graphviz."""
        return self._captured.to_dot()

    def __len__(self) -> int:
        return self._captured.nodes()

    def __str__(self) -> str:
        return str(self._captured)

    def __repr__(self) -> str:
        names = ", ".join(name for name, _, _ in self.inputs)
        return f"GraphModel({names} -> {', '.join(self.output_names)}; {len(self)} nodes)"


def _tensors_in(value, found):
    """Appends the tensors of a result to a list: those of tuples, lists, dicts and outputs."""
    if isinstance(value, _C.Tensor):
        found.append(value)
    elif isinstance(value, (tuple, list)):
        for item in value:
            _tensors_in(item, found)
    elif isinstance(value, dict):
        for item in value.values():
            _tensors_in(item, found)
    elif hasattr(value, "to_tuple"):  # a language model's
        _tensors_in(value.to_tuple(), found)
    elif value is not None:
        raise errors.TypeError(
            f"capture: a result is a {type(value).__name__}; expected tensors, and lists, tuples"
            " and dicts of them"
        )


def _free_dims(dynamic_shapes, names):
    """{input: {dim: name}} of what torch.export and torch.onnx take for free dims."""
    if dynamic_shapes is None:
        return {}
    if isinstance(dynamic_shapes, (tuple, list)):
        if len(dynamic_shapes) != len(names):
            raise errors.ValueError(
                f"capture: got dynamic_shapes of {len(dynamic_shapes)} inputs; expected"
                f" {len(names)}"
            )
        dynamic_shapes = dict(zip(names, dynamic_shapes))
    if not isinstance(dynamic_shapes, dict):
        raise errors.TypeError(
            f"capture: dynamic_shapes is a {type(dynamic_shapes).__name__}; expected a dict by"
            " input, or a tuple"
        )
    out = {}
    for name, dims in dynamic_shapes.items():
        if not isinstance(dims, (dict, list, tuple, type(None))):
            raise errors.TypeError(
                f"capture: dynamic_shapes of {name!r} is a {type(dims).__name__}; expected"
                " {dim: name}"
            )
        if isinstance(dims, list) and all(isinstance(d, int) for d in dims):  # places without names
            dims = {d: f"{name}_dim_{d}" for d in dims}
        elif isinstance(dims, (list, tuple)):  # a name or None for each dim
            dims = dict(enumerate(dims))
        given = {}
        for dim, free in (dims or {}).items():
            free = getattr(free, "__name__", free)
            if free is None:
                continue
            if not isinstance(dim, int) or not isinstance(free, str):
                raise errors.TypeError(
                    f"capture: dynamic_shapes of {name!r} has {dim!r}: {free!r}; expected a dim"
                    " and a name"
                )
            given[dim] = free
        if given:
            out[str(name)] = given
    return out


def capture(
    model: Callable[..., Any],
    args: Any,
    kwargs: Mapping[str, Any] | None = None,
    *,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    dynamic_shapes: Any = None,
    freeze: bool = False,
    exact: bool = False,
) -> GraphModel:
    """model(*args, **kwargs), called once, as a GraphModel.

    args: a tensor or a tuple; its tensors are the graph's inputs, other arguments keep their
    values. dynamic_shapes: dims of inputs that stay free, by names: {"x": {0: "batch"}}, or a tuple
    of such dicts in the inputs' order; dims of one name have one size. The model is then called at
    several sizes. freeze: parameters and buffers keep the values that they have now; batch norms are
    folded into products, products of one tensor merged, and what depends on weights alone is
    computed beforehand, so that results differ by rounding. exact: with freeze, only what keeps each
    bit is done. A module in training mode draws random numbers and changes its buffers: call
    eval() first. Throws what model throws, and RuntimeError for one that reads values of tensors,
    or in which a size is no expression of the free ones.

    >>> graph = kiln.capture(lambda x: x * 2, (kiln.zeros(2),))
    >>> graph(kiln.tensor([1., 2.]))
    tensor([2., 4.])
    """
    from .nn import Module

    if not callable(model):
        raise errors.TypeError(
            f"capture: expected a function or a module; got {type(model).__name__}"
        )
    args = args if isinstance(args, (tuple, list)) else (args,)
    inputs = [x for x in args if isinstance(x, _C.Tensor)]
    keywords = dict(kwargs or {})
    inputs += [x for x in keywords.values() if isinstance(x, _C.Tensor)]
    names = list(input_names or ()) or [f"input{i}" for i in range(len(inputs))]
    named = []
    if isinstance(model, Module):
        named = [*model.named_parameters(), *model.named_buffers()]

    def call(tensors):
        given = iter(tensors)
        now = [next(given) if isinstance(x, _C.Tensor) else x for x in args]
        named_now = {
            name: next(given) if isinstance(x, _C.Tensor) else x for name, x in keywords.items()
        }
        found = []
        _tensors_in(model(*now, **named_now), found)
        return found

    return GraphModel(
        _C._capture_model(
            call,
            inputs,
            [name for name, _ in named],
            [x for _, x in named],
            list(input_names or ()),
            list(output_names or ()),
            _free_dims(dynamic_shapes, names),
            bool(freeze),
            bool(exact),
        )
    )


def load_graph(path: StrPath) -> GraphModel:
    """The GraphModel that save wrote. No code in the file is ever executed.

    >>> kiln.capture(lambda x: x * 2, (kiln.zeros(2),)).save("double.safetensors")
    >>> kiln.load_graph("double.safetensors")(kiln.tensor([1., 2.]))
    tensor([2., 4.])
    """
    return GraphModel(_C._load_graph_model(os.fspath(path)))
