"""Derivatives of functions: Jacobians, Hessians and their products with vectors.

A function takes one tensor or several and gives one or a tuple; results have the same structure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _C

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .._C import Tensor

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _listed(op, name, tensors):
    """A list, and whether it was one tensor."""
    if isinstance(tensors, _C.Tensor):
        return [tensors], True
    if not isinstance(tensors, (tuple, list)):
        raise TypeError(f"{op}: {name} must be a tensor or a tuple of them; got {type(tensors)}")
    for x in tensors:
        if not isinstance(x, _C.Tensor):
            raise TypeError(f"{op}: {name} must hold tensors; got {type(x)}")
    return list(tensors), False


class _Watched:
    """Calls a function and remembers whether it gave one tensor or several."""

    def __init__(self, function):
        self.function = function
        self.single = True

    def __call__(self, *inputs):
        result = self.function(*inputs)
        self.single = isinstance(result, _C.Tensor)
        return result

    def structured(self, results):
        return results[0] if self.single else results


def jacobian(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Tensor],
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """d func(inputs)_i / d input_j, of shape [*output.shape, *input.shape].

    A tuple for several inputs, a tuple of those for several outputs. strategy "forward-mode" goes
    column by column: for functions of few inputs and many outputs. vectorize changes nothing.

    >>> kiln.autograd.functional.jacobian(lambda x: x * x, kiln.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if strategy not in ("reverse-mode", "forward-mode"):
        raise ValueError(
            f"jacobian: expected strategy 'reverse-mode' or 'forward-mode'; got {strategy!r}"
        )
    x, one = _listed("jacobian", "inputs", inputs)
    f = _Watched(func)
    rows = _C._jacobian(f, x, create_graph, strict, strategy == "forward-mode")
    return f.structured(tuple(row[0] if one else row for row in rows))


def hessian(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Tensor],
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of a function with one element: [*input.shape, *input.shape].

    func: takes the inputs, tensors or a tuple of them. create_graph: whether the result has
    gradients. strict: raise an error where the output does not depend on an input. vectorize,
    outer_jacobian_strategy: change nothing in the values.

    >>> kiln.autograd.functional.hessian(lambda x: (x**3).sum(), kiln.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    x, one = _listed("hessian", "inputs", inputs)
    rows = _C._hessian(func, x, create_graph, strict)
    return rows[0][0] if one else rows


def _product(op, compute, func, inputs, v, create_graph, strict):
    x, one = _listed(op, "inputs", inputs)
    vectors = [] if v is None else _listed(op, "v", v)[0]
    f = _Watched(func)
    results, products = compute(f, x, vectors, create_graph, strict)
    return f, one, results, products


def vjp(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Tensor],
    v: Tensor | Sequence[Tensor] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """func(inputs) and the gradients of sum(v * func(inputs)); v may be None for one element.

    >>> kiln.autograd.functional.vjp(lambda x: x * x, kiln.tensor([1., 2.]), kiln.tensor([1., 1.]))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    f, one, results, products = _product("vjp", _C._vjp, func, inputs, v, create_graph, strict)
    return f.structured(results), products[0] if one else products


def jvp(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Tensor],
    v: Tensor | Sequence[Tensor] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """func(inputs) and its derivative along v; v may be None for an input of one element.

    >>> kiln.autograd.functional.jvp(lambda x: x * x, kiln.tensor([1., 2.]), kiln.tensor([1., 0.]))
    (tensor([1., 4.]), tensor([2., 0.]))
    """
    if v is None:
        x, one = _listed("jvp", "inputs", inputs)
        if len(x) != 1 or x[0].numel() != 1:
            raise ValueError("jvp: v may be left out for one input of one element only")
        v = _C.ones_like(x[0])
    f, _, results, products = _product("jvp", _C._jvp, func, inputs, v, create_graph, strict)
    return f.structured(results), f.structured(products)


def hvp(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Tensor],
    v: Tensor | Sequence[Tensor] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """func(inputs), of one element, and the product of its Hessian with v.

    >>> kiln.autograd.functional.hvp(lambda x: (x**3).sum(), kiln.tensor([1.]), kiln.tensor([1.]))
    (tensor(1.), tensor([6.]))
    """
    if v is None:
        x, one = _listed("hvp", "inputs", inputs)
        if len(x) != 1 or x[0].numel() != 1:
            raise ValueError("hvp: v may be left out for one input of one element only")
        v = _C.ones_like(x[0])
    f, one, results, products = _product("hvp", _C._hvp, func, inputs, v, create_graph, strict)
    return f.structured(results), products[0] if one else products


def vhp(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Tensor],
    v: Tensor | Sequence[Tensor] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """As hvp: a Hessian is symmetric.

    func: takes the inputs. v: a vector in the inputs' shapes. create_graph: whether the result has
    gradients. strict: raise an error where the output does not depend on an input.

    >>> kiln.autograd.functional.vhp(lambda x: (x**3).sum(), kiln.tensor([1.]), kiln.tensor([1.]))
    (tensor(1.), tensor([6.]))
    """
    return hvp(func, inputs, v, create_graph, strict)
