"""Whether a derivative is that of the function: gradients beside finite differences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _C
from .grad_mode import enable_grad, no_grad

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .._C import Tensor

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(RuntimeError):
    """What a check found.

    >>> from kiln.autograd.gradcheck import GradcheckError
    >>> issubclass(GradcheckError, RuntimeError)
    True
    """


def _outputs(func, inputs):
    result = func(*inputs)
    result = result if isinstance(result, (tuple, list)) else (result,)
    return [y for y in result if isinstance(y, _C.Tensor)]


def _steps(x, eps):
    """Every direction in which an element may move, as (place in the flat x, step)."""
    for i in range(x.numel()):
        yield i, eps
        if x.is_complex():
            yield i, 1j * eps


def _real(x):
    """As real numbers in one row."""
    return _C.view_as_real(x.resolve_conj()).flatten() if x.is_complex() else x.flatten()


def _numerical(func, inputs, x, eps, count):
    """d output_k / d x for each output: [directions of x, numbers of the output]."""
    columns = [[] for _ in range(count)]
    with no_grad():
        flat = x.data.view(-1)
        for i, step in _steps(x, eps):
            kept = flat[i].clone()
            ends = []
            for sign in (1, -1):
                flat[i] = kept + sign * step
                ends.append([_real(y.clone()) for y in _outputs(func, inputs)])
            flat[i] = kept
            for k, (after, before) in enumerate(zip(*ends)):
                columns[k].append((after - before) / (2 * eps))
    return [_C.stack(c) if c else None for c in columns]


def _analytical(y, x):
    """The same of one output, from its gradients."""
    rows = []
    for j in range(_real(y.detach()).numel()):
        weight = _C.zeros_like(y).detach()
        parts = _C.view_as_real(weight).view(-1) if y.is_complex() else weight.view(-1)
        parts[j] = 1
        (g,) = _C.grad((y,), (x,), (weight,), True, False, True)
        rows.append(_real(_C.zeros_like(x) if g is None else g).detach())
    return _C.stack(rows, 1)


def gradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """True when the gradients of func at the inputs that require them equal central differences.

    inputs: a tensor or a tuple, float64 or complex128 for the default tolerances. Raises
    GradcheckError, or gives False without raise_exception, where |difference| > atol + rtol |value|,
    or where the gradient of a repeated pass differs by more than nondet_tol.

    eps: the step of the differences. fast_mode and masked, and the checks of undefined gradients,
    dtypes, batches and forward mode (check_undefined_grad, check_grad_dtypes, check_batched_grad,
    check_batched_forward_grad, check_forward_ad, check_backward_ad) are PyTorch's names, and change
    nothing.

    >>> x = kiln.tensor([1., 2.], dtype=kiln.float64, requires_grad=True)
    >>> kiln.autograd.gradcheck(kiln.exp, (x,))
    True
    """
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    try:
        _check(func, inputs, eps, atol, rtol, nondet_tol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check(func, inputs, eps, atol, rtol, nondet_tol):
    differentiable = [
        x for x in inputs if isinstance(x, _C.Tensor) and x.requires_grad and
        (x.is_floating_point() or x.is_complex())
    ]  # fmt: skip
    if not differentiable:
        raise ValueError("gradcheck: expected at least one input that requires a gradient")
    for x in differentiable:
        if not x.is_contiguous():
            raise ValueError(
                f"gradcheck: expected contiguous inputs; got strides {tuple(x.stride())}"
            )
    outputs = [y for y in _outputs(func, inputs) if y.is_floating_point() or y.is_complex()]
    if not outputs:
        raise ValueError("gradcheck: expected a function that gives a floating point tensor")

    def floats(*args):
        return [y for y in _outputs(func, args) if y.is_floating_point() or y.is_complex()]

    for i, x in enumerate(differentiable):
        numerical = _numerical(floats, inputs, x, eps, len(outputs))
        outputs = floats(*inputs)  # what was saved before was written over
        for k, y in enumerate(outputs):
            if numerical[k] is None or y.numel() == 0:
                continue
            if not y.requires_grad:
                analytical = _C.zeros_like(numerical[k])
            else:
                analytical = _analytical(y, x)
                again = _analytical(y, x)
                if not _C.allclose(analytical, again, rtol=0, atol=nondet_tol):
                    raise GradcheckError(
                        f"the gradient of output {k} for input {i} differs between two passes"
                    )
            if not _C.allclose(analytical, numerical[k].to(analytical.dtype), rtol=rtol, atol=atol):
                raise GradcheckError(
                    f"Jacobian mismatch for output {k} with respect to input {i},\n"
                    f"numerical:{numerical[k]}\nanalytical:{analytical}"
                )


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    grad_outputs: Tensor | Sequence[Tensor] | None = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool | None = False,
) -> bool:
    """As gradcheck, of the gradients of func; also with respect to grad_outputs (random ones).

    inputs: float64 tensors. eps, atol, rtol, raise_exception, nondet_tol: as in gradcheck.
    gen_non_contig_grad_outputs, fast_mode, masked and the other checks (check_undefined_grad,
    check_grad_dtypes, check_batched_grad, check_fwd_over_rev,
    check_rev_over_rev) change nothing.

    >>> x = kiln.tensor([1., 2.], dtype=kiln.float64, requires_grad=True)
    >>> kiln.autograd.gradgradcheck(kiln.exp, (x,))
    True
    """
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    if grad_outputs is None:
        grad_outputs = tuple(
            _C.randn_like(y.detach()).requires_grad_()
            for y in _outputs(func, inputs)
            if y.requires_grad
        )
    elif isinstance(grad_outputs, _C.Tensor):
        grad_outputs = (grad_outputs,)
    count = len(inputs)

    def gradients(*args):
        given = args[:count]
        outputs = [y for y in _outputs(func, given) if y.requires_grad]
        wanted = [x for x in given if isinstance(x, _C.Tensor) and x.requires_grad]
        found = _C.grad(tuple(outputs), tuple(wanted), tuple(args[count:]), True, True, True)
        return tuple(g for g in found if g is not None)

    return gradcheck(
        _recording(gradients),
        (*inputs, *grad_outputs),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
    )


def _recording(func):
    """func, recorded also where the differences are taken."""

    def wrapped(*args):
        with enable_grad():
            return func(*args)

    return wrapped
