"""torch.jit's names, so that programs which mark functions with them run.

Kiln compiles without a scripting language: kiln.compile captures what a function computes, and
kiln.capture makes a file of a model. So script() and trace() give back what they are given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from . import errors
from .nn.module import Module

if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "Final", "ScriptFunction", "ScriptModule", "annotate", "export", "fork", "freeze", "ignore",
    "interface", "is_scripting", "is_tracing", "isinstance", "load", "optimize_for_inference",
    "save", "script", "script_if_tracing", "script_method", "trace", "trace_module", "unused",
    "wait",
]  # fmt: skip
_isinstance = isinstance


class ScriptModule(Module):
    """The class of PyTorch's scripted modules, of which there are none here.

    >>> isinstance(nn.Linear(1, 1), kiln.jit.ScriptModule)
    False
    """


class ScriptFunction:
    """The class of PyTorch's scripted functions, of which there are none here.

    >>> isinstance(kiln.jit.script(abs), kiln.jit.ScriptFunction)
    False
    """


def script(obj: Any, *args: Any, **kwargs: Any) -> Any:
    """obj itself: a function, a class or a module. kiln.compile makes it faster.

    >>> kiln.jit.script(abs)(-1)
    1
    """
    return obj


def trace(func: Any, example_inputs: Any = None, *args: Any, **kwargs: Any) -> Any:
    """func itself, a function or a module; example_inputs are not looked at. kiln.capture(model, *inputs)
    makes a graph of it.

    >>> kiln.jit.trace(abs, (1,))(-1)
    1
    """
    return func


def trace_module(mod: Any, inputs: Any = None, *args: Any, **kwargs: Any) -> Any:
    """mod itself, a module; inputs are not looked at.

    >>> kiln.jit.trace_module(abs, {})(-1)
    1
    """
    return mod


def script_method(fn: Any) -> Any:
    """fn itself, a function.

    >>> kiln.jit.script_method(abs)(-1)
    1
    """
    return fn


def script_if_tracing(fn: Any) -> Any:
    """fn itself, a function.

    >>> kiln.jit.script_if_tracing(abs)(-1)
    1
    """
    return fn


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """The function itself, also as a decorator with arguments, such as drop.

    >>> kiln.jit.ignore(abs)(-1), kiln.jit.ignore(drop=True)(abs)(-1)
    (1, 1)
    """
    return drop if callable(drop) else lambda function: function


def unused(fn: Any) -> Any:
    """fn itself, a function.

    >>> kiln.jit.unused(abs)(-1)
    1
    """
    return fn


def export(fn: Any) -> Any:
    """fn itself, a function.

    >>> kiln.jit.export(abs)(-1)
    1
    """
    return fn


def interface(obj: Any) -> Any:
    """obj itself, a class.

    >>> kiln.jit.interface(int)(3)
    3
    """
    return obj


def freeze(mod: Any, *args: Any, **kwargs: Any) -> Any:
    """mod itself, a module. kiln.compile(module, options={"freeze": True}) folds its weights.

    >>> kiln.jit.freeze(abs)(-1)
    1
    """
    return mod


def optimize_for_inference(mod: Any, *args: Any, **kwargs: Any) -> Any:
    """mod itself, a module.

    >>> kiln.jit.optimize_for_inference(abs)(-1)
    1
    """
    return mod


def annotate(the_type: Any, the_value: Any) -> Any:
    """the_value, whatever the_type is.

    >>> kiln.jit.annotate(int, 3)
    3
    """
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:  # noqa: A001  PyTorch's name
    """Python's isinstance of obj and target_type.

    >>> kiln.jit.isinstance(3, int)
    True
    """
    return _isinstance(obj, target_type)


def is_scripting() -> bool:
    """False.

    >>> kiln.jit.is_scripting()
    False
    """
    return False


def is_tracing() -> bool:
    """False.

    >>> kiln.jit.is_tracing()
    False
    """
    return False


def fork(func: Any, *args: Any, **kwargs: Any) -> Any:
    """The result of func, computed at once.

    >>> kiln.jit.wait(kiln.jit.fork(abs, -1))
    1
    """
    return func(*args, **kwargs)


def wait(future: Any) -> Any:
    """future, which is what fork() gave.

    >>> kiln.jit.wait(1)
    1
    """
    return future


def save(m: Any, f: Any, *args: Any, **kwargs: Any) -> None:
    """Raises RuntimeError, whatever m and f are: kiln.capture(model, *inputs).save(path) writes a model
    as a program.

    >>> kiln.jit.save(abs, "abs.pt")
    Traceback (most recent call last):
        ...
    kiln.errors.RuntimeError: jit.save: there are no scripted modules; kiln.capture(model, *inputs).save(path) writes a model with its program
    """
    raise errors.RuntimeError(
        "jit.save: there are no scripted modules; kiln.capture(model, *inputs).save(path) writes a "
        "model with its program"
    )


def load(f: Any, *args: Any, **kwargs: Any) -> Any:
    """Raises RuntimeError, whatever f is: TorchScript's files hold code of PyTorch's. kiln.export.load reads programs
    of torch.export, kiln.onnx.load ONNX files, kiln.load_graph those of kiln.capture.

    >>> kiln.jit.load("net.pt")
    Traceback (most recent call last):
        ...
    kiln.errors.RuntimeError: jit.load: files of TorchScript cannot be read; export the model by torch.export.save (kiln.export.load) or as ONNX (kiln.onnx.load)
    """
    raise errors.RuntimeError(
        "jit.load: files of TorchScript cannot be read; export the model by torch.export.save "
        "(kiln.export.load) or as ONNX (kiln.onnx.load)"
    )


# Names that libraries take from inside PyTorch's module. An overload is a declaration for its compiler.
_script_if_tracing = script_if_tracing
_overload = script_method
_overload_method = script_method
