"""ONNX files: export writes a model as one, load reads one as a module."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from . import _C, errors, nn
from ._graph_model import GraphModel, capture
from ._read_model import place

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from ._C import Tensor
    from ._typing import StrPath
    from .nn.module import Module


def export(
    model: Module | Callable[..., Any],
    args: Any,
    path: StrPath,
    kwargs: Mapping[str, Any] | None = None,
    *,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    dynamic_axes: Any = None,
    dynamic_shapes: Any = None,
    opset_version: int = 20,
) -> None:
    """Writes model(*args, **kwargs) as an ONNX file of opset 20, the only one that is written.

    model: a module (call eval() first), a function, or a GraphModel, for which args is None. The
    graph has the shapes of args, but for the dims that dynamic_axes or dynamic_shapes leave free:
    {"x": {0: "batch"}}, as kiln.capture takes them. Raises NotImplementedError, which names the
    row, for what ONNX has no operators for.

    path: the file. input_names, output_names: what the file calls them. opset_version: 20.

    >>> kiln.onnx.export(nn.ReLU(), (kiln.zeros(2),), "relu.onnx")
    >>> kiln.onnx.load("relu.onnx")(kiln.tensor([-1., 2.]))
    tensor([0., 2.])
    """
    if opset_version not in (None, 20):
        raise errors.NotImplementedError(
            f"onnx.export: opset_version {opset_version!r} is not written; expected 20"
        )
    if isinstance(model, GraphModel):
        if args is not None or any(
            (kwargs, input_names, output_names, dynamic_axes, dynamic_shapes)
        ):
            raise errors.ValueError("onnx.export: a GraphModel has its inputs and names already")
        graph = model
    else:
        if dynamic_axes is not None and dynamic_shapes is not None:
            raise errors.ValueError("onnx.export: got dynamic_axes and dynamic_shapes")
        if isinstance(dynamic_axes, dict):  # PyTorch's has the outputs' too, which follow
            outputs = set(output_names or ())
            dynamic_axes = {n: dims for n, dims in dynamic_axes.items() if n not in outputs}
        graph = capture(
            model,
            args,
            kwargs,
            input_names=input_names,
            output_names=output_names,
            dynamic_shapes=dynamic_shapes if dynamic_axes is None else dynamic_axes,
        )
    _C._save_onnx(graph._captured, os.fspath(path))


class Model(nn.Module):
    """A model that was read from a file: model(*inputs) computes its outputs, with gradients.

    Its weights are parameters under their names in the file, where dots make modules.

    >>> kiln.onnx.export(nn.ReLU(), (kiln.zeros(2),), "relu.onnx")
    >>> isinstance(kiln.onnx.load("relu.onnx"), kiln.onnx.Model)
    True
    """

    def __init__(self, read: Any) -> None:
        super().__init__()
        object.__setattr__(self, "_read", read)
        places = []
        for name, value in read.named_parameters():
            module, key = place(self, name)
            module.register_parameter(key, nn.Parameter(value))
            places.append((module, key))
        object.__setattr__(self, "_places", places)

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs, in order."""
        return list(self._read.input_names())

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs, in order."""
        return list(self._read.output_names())

    def forward(self, *inputs: Tensor) -> Any:
        """The output, or a tuple of several.

        Inputs and outputs are tensors; a list of tensors where the file has a sequence, None where
        it has an optional value that is absent.
        """
        for name, x in zip(self.input_names, inputs):
            tensors = x if isinstance(x, (list, tuple)) else () if x is None else (x,)
            for one in tensors:
                if not isinstance(one, _C.Tensor):
                    raise errors.TypeError(
                        f"onnx: input {name!r} must be a tensor; got {type(one).__name__}"
                    )
        weights = [getattr(module, key) for module, key in self._places]
        outputs = self._read.run(list(inputs), weights)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)


def load(path: StrPath) -> Model:
    """The model in an ONNX file (opset 7 to 28). No code in the file is ever executed.

    Throws IoError for a malformed file, and NotImplementedError, which names the node and its
    operator, for what Kiln lacks.

    >>> kiln.onnx.export(nn.ReLU(), (kiln.zeros(2),), "relu.onnx")
    >>> kiln.onnx.load("relu.onnx")(kiln.tensor([-1., 2.]))
    tensor([0., 2.])
    """
    return Model(_C._load_onnx(os.fspath(path)))


def operators() -> list[str]:
    """The names of the operators that load takes.

    >>> "Relu" in kiln.onnx.operators()
    True
    """
    return _C._onnx_operators()
