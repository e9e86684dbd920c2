"""``inspect.signature`` for the functions of the compiled module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _C

if TYPE_CHECKING:
    import ast
    import inspect


class _Annotation:
    """A type that is shown as it was written."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _shown(node: ast.expr | None):
    import ast
    import inspect

    return inspect.Parameter.empty if node is None else _Annotation(ast.unparse(node))


def _parse(text: str, defaults: tuple | None) -> inspect.Signature:
    """The signature of ``def name(..)``; ``\\0``, ``\\1`` in it are indices of defaults."""
    import ast  # here, for few programs ask and all import kiln
    import inspect

    for i in range(len(defaults or ())):
        text = text.replace(f" = \\{i}", f" = _{i}")
    tree = ast.parse(text + ": ...").body[0]
    assert isinstance(tree, ast.FunctionDef)
    arguments = tree.args

    def value(node: ast.expr | None):
        if node is None:
            return inspect.Parameter.empty
        if isinstance(node, ast.Name) and node.id[1:].isdigit():
            return (defaults or ())[int(node.id[1:])]
        return ast.literal_eval(node)

    parameters = []

    def add(argument: ast.arg, kind, default: ast.expr | None = None) -> None:
        parameters.append(
            inspect.Parameter(
                argument.arg, kind, default=value(default), annotation=_shown(argument.annotation)
            )
        )

    plain = arguments.posonlyargs + arguments.args
    first_default = len(plain) - len(arguments.defaults)
    for i, argument in enumerate(plain):
        kind = (
            inspect.Parameter.POSITIONAL_ONLY
            if i < len(arguments.posonlyargs)
            else inspect.Parameter.POSITIONAL_OR_KEYWORD
        )
        add(argument, kind, arguments.defaults[i - first_default] if i >= first_default else None)
    if arguments.vararg:
        add(arguments.vararg, inspect.Parameter.VAR_POSITIONAL)
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        add(argument, inspect.Parameter.KEYWORD_ONLY, default)
    if arguments.kwarg:
        add(arguments.kwarg, inspect.Parameter.VAR_KEYWORD)
    return inspect.Signature(parameters, return_annotation=_shown(tree.returns))


def _signature(function) -> inspect.Signature:
    """The first form of a function; its docstring has all of them."""
    text, _, defaults = function.__nb_signature__[0]
    try:
        return _parse(text, defaults)
    except (SyntaxError, ValueError, IndexError) as error:
        raise AttributeError(f"no signature of {text!r}") from error


def _bound_signature(method) -> inspect.Signature:
    whole = _signature(method)
    return whole.replace(parameters=list(whole.parameters.values())[1:])


_C._set_signatures(_signature, _bound_signature)
