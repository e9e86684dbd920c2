"""kiln.compile: functions and modules that are captured in their first call, and replayed."""

from __future__ import annotations

import functools
import types
import warnings
import weakref
from typing import TYPE_CHECKING

from . import _C, errors
from ._size import Size

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .nn.module import Module

__all__ = ["compile", "is_compiling"]

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type, types.FunctionType, Size)


def is_compiling() -> bool:
    """Whether this thread captures a graph.

    >>> kiln.compiler.is_compiling()
    False
    """
    return _C._is_capturing()


# ---- Arguments and results: tensors, and what stands around them


def _flatten(value, tensors):
    """The structure of a value, which _CallGuard compares; its tensors are added to the list."""
    if isinstance(value, _C.Tensor):
        tensors.append(value)
        return _TENSOR
    kind = type(value)
    if kind is tuple or kind is list or (isinstance(value, tuple) and hasattr(kind, "_fields")):
        return (kind, tuple([_flatten(item, tensors) for item in value]))
    if isinstance(value, dict):
        return (kind, tuple([(key, _flatten(item, tensors)) for key, item in value.items()]))
    return (_Plain if isinstance(value, _PLAIN) else _Object, value)


def _unflatten(structure, tensors):
    if structure is _TENSOR:
        return next(tensors)
    kind = structure[0]
    if kind is _Plain or kind is _Object:
        return structure[1]
    if kind is tuple or kind is list:
        return kind([_unflatten(item, tensors) for item in structure[1]])
    if issubclass(kind, tuple):
        return kind(*[_unflatten(item, tensors) for item in structure[1]])
    items = [(key, _unflatten(item, tensors)) for key, item in structure[1]]
    if kind is dict:
        return dict(items)
    try:
        return kind(items)
    except TypeError:
        return kind(**dict(items))


class _Tensor:
    pass


class _Plain:
    """A value that another with the same type and value may stand for."""


class _Object:
    """Something that only itself stands for."""


_TENSOR = _Tensor()


# ---- What a function uses beside its arguments


class _Surroundings:
    """The modules, tensors and plain values that a function finds in its closure and globals."""

    def __init__(self, function):
        self.cells = []
        self.globals = []
        self.owners = []
        self._look(function, set(), 0)

    def _look(self, function, seen, depth):
        from .nn import Module

        if id(function) in seen or depth > 4:
            return
        seen.add(id(function))
        if isinstance(function, Module):
            self.owners.append(function)
            return
        if isinstance(function, functools.partial):
            self._look(function.func, seen, depth)
            for value in (*function.args, *function.keywords.values()):
                self._look(value, seen, depth + 1)
            return
        if isinstance(function, types.MethodType):
            if isinstance(function.__self__, Module):
                self.owners.append(function.__self__)
            self._look(function.__func__, seen, depth)
            return
        function = getattr(function, "__wrapped__", function)
        if not isinstance(function, types.FunctionType):
            return
        for cell in function.__closure__ or ():
            self.cells.append(cell)
            try:
                self._look_inside(cell.cell_contents, seen, depth)
            except ValueError:
                pass  # not filled yet
        space = function.__globals__
        if space.get("__name__", "").partition(".")[0] == "kiln":
            return
        for name in _names_of(function.__code__):
            if name in space and not isinstance(space[name], types.ModuleType):
                self.globals.append((space, name))
                self._look_inside(space[name], seen, depth)

    def _look_inside(self, value, seen, depth):
        from .nn import Module

        if not isinstance(value, Module):  # the module itself is among the values
            self._look(value, seen, depth + 1)

    def now(self):
        """The values: modules first, then those of the closure and of the globals."""
        if not self.cells and not self.globals:
            return self.owners
        values = list(self.owners)
        for cell in self.cells:
            try:
                values.append(cell.cell_contents)
            except ValueError:
                values.append(None)
        for space, name in self.globals:
            values.append(space.get(name))
        for i, value in enumerate(values):
            if type(value) is CompiledModule:
                values[i] = value._orig_mod
        return values


def _names_of(code):
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names.update(_names_of(constant))
    return sorted(names)


# ---- The compiled function


class CompiledFunction:
    """A function that is captured when it is called first, and replayed from then on.

    What it computes, the gradients that it lets through, and the random numbers that it draws are
    those of the function itself.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        fullgraph: bool = False,
        max_variants: int = 8,
        freeze: bool = False,
        exact: bool = False,
        memory_budget: float = 1.0,
        passes: bool = True,
    ) -> None:
        self._function = function
        self._fullgraph = fullgraph
        self._max_variants = max_variants
        self._freeze = freeze
        self._exact = exact
        self._memory_budget = memory_budget
        self._passes = passes
        self._variants: list[_Variant] = []
        self._surroundings: _Surroundings | None = None
        self._eager = 0
        self._said = False
        functools.update_wrapper(self, function, updated=())
        if not hasattr(function, "__name__"):
            self.__name__ = type(function).__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if _C._is_capturing():
            return self._function(*args, **kwargs)
        if self._surroundings is None:
            self._surroundings = _Surroundings(self._function)
        values = self._surroundings.now()
        for variant in self._variants:
            tensors = variant.guard.match(args, kwargs, values)
            if tensors is not None:
                return variant(tensors)
        if len(self._variants) >= self._max_variants:
            return self._call_eagerly(args, kwargs)
        given: list[Any] = []
        variant = _Variant(self, _flatten((args, kwargs), given), args, kwargs, values)
        self._variants.append(variant)
        return variant(given)

    def _call_eagerly(self, args, kwargs):
        self._eager += 1
        if not self._said:
            self._said = True
            warnings.warn(
                f"compile: {self.__name__} has {len(self._variants)} variants, and none fits this"
                " call: further ones are computed eagerly",
                stacklevel=3,
            )
        return self._function(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        bound = self.__dict__.setdefault("_bound", weakref.WeakKeyDictionary())
        if instance not in bound:
            method = types.MethodType(self._function, instance)
            bound[instance] = CompiledFunction(method, *self._options())
        return bound[instance]

    def explain(self) -> str:
        """What was captured, what the passes made of it, and what is computed eagerly, and why.

        After a few replays also what each kind of row and each fused group takes.
        """
        text = "".join(variant.compiled.explain() for variant in self._variants)
        if self._eager:
            text += f"{self._eager} calls were eager: no variant fits them\n"
        return text

    def graphs(self) -> str:
        """The graphs as text."""
        return "".join(variant.compiled.graphs() for variant in self._variants)

    def to_dot(self) -> str:
        """The graph that was captured last, for Graphviz."""
        return [v.compiled.to_dot() for v in self._variants][-1] if self._variants else ""

    def counts(self) -> dict[str, int]:
        """{"variants", "captured", "replayed", "eager"}: how many calls were which."""
        total = [0, 0, 0, self._eager]
        for variant in self._variants:
            total = [a + b for a, b in zip(total, variant.compiled.counts(), strict=True)]
        return dict(zip(("variants", "captured", "replayed", "eager"), total, strict=True))

    def reset(self) -> None:
        """Forgets what was captured."""
        self._variants.clear()
        self._surroundings = None
        self._eager = 0

    def _options(self):
        return (
            *(self._fullgraph, self._max_variants, self._freeze, self._exact),
            *(self._memory_budget, self._passes),
        )

    def __reduce__(self) -> Any:
        return CompiledFunction, (self._function, *self._options())

    def __deepcopy__(self, memo: dict[int, Any]) -> CompiledFunction:
        import copy

        return CompiledFunction(copy.deepcopy(self._function, memo), *self._options())


class _Variant:
    """The calls with one structure of arguments and one state of what the function uses."""

    def __init__(self, owner, structure, args, kwargs, values):
        from .nn.module_hooks import _global

        watched = tuple(_global.values())
        self.guard = guard = _C._CallGuard(structure, watched, args, kwargs, values)
        self.result = result = []
        self.written = written = _Written(guard)
        function, surroundings = owner._function, owner._surroundings

        def call(tensors):
            args, kwargs = _unflatten(structure, iter(tensors))
            written.begin()
            results = []
            result[:] = [_flatten(function(*args, **kwargs), results)]
            results.extend(written.values(args, kwargs, surroundings))
            return results

        def make(tensors):
            return _C._compiled(
                call,
                owner.__name__,
                owner._fullgraph,
                owner._max_variants,
                tensors,
                owner._freeze,
                owner._exact,
                owner._memory_budget,
                owner._passes,
            )

        self.make = make
        self.compiled = make(self.guard.state())

    def __call__(self, tensors):
        written = self.written
        if written.inputs:
            tensors.extend(written.given())
        try:
            results = self.compiled(tensors)
        except errors.RuntimeError as error:
            _add_line(error)
            raise
        if written.places:
            written.write(results)
            if written.before and written.find_inputs(self.compiled):
                self.compiled = self.make(self.guard.state())
        structure = self.result[0]
        return results[0] if structure is _TENSOR else _unflatten(structure, iter(results))


class _Written:
    """The attributes that a function gives other tensors, which are further results of its graph.

    Those that it reads, too, are further inputs, from the call after the one that showed it.
    """

    def __init__(self, guard):
        self.guard = guard
        self.places = None  # dicts and keys
        self.inputs = []  # numbers of places
        self.before = []  # what a captured call found there; emptied when it has been looked at

    def begin(self):
        """Of each call of the function: the first one's tensors are known to the guard."""
        if self.places:
            self.before = self._now()

    def _now(self):
        return [attributes[name] for attributes, name in self.places]

    def given(self):
        """The inputs' tensors."""
        now = self._now()
        return [now[i] for i in self.inputs]

    def values(self, args, kwargs, surroundings):
        """What the function has just written."""
        if self.places is None:
            changes = self.guard.changes(args, kwargs, surroundings.now())
            self.places = [(attributes, name) for _, attributes, name, _ in changes]
            self.before = [before for _, _, _, before in changes]
            for number, *_ in changes:
                self.guard.ignore(number)
        return self._now()

    def write(self, results):
        """Takes their tensors off the results and puts them into the attributes."""
        values = results[-len(self.places) :]
        del results[-len(self.places) :]
        for (attributes, name), value in zip(self.places, values, strict=True):
            attributes[name] = value

    def find_inputs(self, compiled):
        """Whether the call that was captured shows that more of them are inputs."""
        found = [i for i, before in enumerate(self.before) if compiled.reads(before)]
        self.before = []
        if set(found) <= set(self.inputs):
            return False
        self.inputs = sorted({*self.inputs, *found})
        return True


def _add_line(error):
    """Says which line of the user's an error of the capture comes from."""
    if not error.args or "capture: " not in str(error.args[0]) or "; line " in str(error.args[0]):
        return
    line = None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_globals.get("__name__", "").partition(".")[0] != "kiln":
            line = (trace.tb_frame.f_code.co_filename, trace.tb_lineno)
        trace = trace.tb_next
    if line is not None:
        error.args = (f"{error.args[0]}; line {line[1]} of {line[0]}", *error.args[1:])


class CompiledModule:
    """A module whose calls are compiled; everything else is the module's own."""

    def __init__(self, module: Module, compiled: Any) -> None:
        object.__setattr__(self, "_orig_mod", module)
        object.__setattr__(self, "_compiled", compiled)

    @property  # type: ignore[misc]
    def __class__(self):
        return type(self._orig_mod)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._compiled(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._orig_mod, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._orig_mod, name)

    def __repr__(self) -> str:
        return repr(self._orig_mod)

    def explain(self) -> str:
        """As of a compiled function."""
        return self._compiled.explain()

    def graphs(self) -> str:
        """The graphs as text."""
        return self._compiled.graphs()

    def counts(self) -> dict[str, int]:
        """How many calls were captured, replayed and eager."""
        return self._compiled.counts()


_OPTIONS = {"max_variants", "freeze", "exact", "memory_budget", "passes"}
# Of PyTorch's compiler, which generates code; nothing here has them.
_OTHERS = {
    "coordinate_descent_tuning", "epilogue_fusion", "fallback_random", "guard_filter_fn",
    "max_autotune", "shape_padding",
}  # fmt: skip


def _options_of(backend, mode, options):
    if not (callable(backend) or backend in ("kiln", "inductor", "eager", "aot_eager")):
        raise errors.ValueError(f"compile: unknown backend; got {backend!r}; expected 'kiln'")
    modes = (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
    if mode not in modes:
        raise errors.ValueError(f"compile: unknown mode; got {mode!r}; expected one of {modes}")
    options = {
        key: value
        for key, value in (options or {}).items()
        if key not in _OTHERS and not str(key).startswith(("triton.", "trace.", "cpp."))
    }
    unknown = set(options) - _OPTIONS
    if unknown:
        raise errors.ValueError(
            f"compile: unknown options; got {sorted(unknown)}; expected some of {sorted(_OPTIONS)}"
        )
    budget = options.get("memory_budget", 1.0)
    if not isinstance(budget, (int, float)) or not 0 <= budget <= 1:
        raise errors.ValueError(
            f"compile: expected a memory_budget from 0 to 1; got {budget!r}"
        )
    return options


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "kiln",
    mode: str | None = None,
    options: Any = None,
    disable: bool = False,
) -> Any:
    """model, a function or a module, captured when it is called first and replayed from then on.

    fullgraph: a model that cannot be one graph is an error that names the line; without, it is
    computed eagerly. options: max_variants (8), how many shapes, modes and arguments are kept;
    freeze (False), parameters keep their values, for inference: norms are folded into products and
    products of one tensor merged; exact (False), only what keeps each bit; memory_budget (1.0), the
    part of a step's memory that values may take, for which activations and norms are computed again
    in the backward pass; passes (True), the graph is optimized. disable: the model itself. dynamic, backend and mode are PyTorch's; each shape is a
    variant of its own, and there is one backend. Without a model: a decorator.

    >>> double = kiln.compile(lambda x: x * 2)
    >>> double(kiln.tensor([1., 2.]))
    tensor([2., 4.])
    """
    chosen = _options_of(backend, mode, options)
    if model is None:
        return functools.partial(
            compile,
            fullgraph=fullgraph,
            dynamic=dynamic,
            backend=backend,
            mode=mode,
            options=options,
            disable=disable,
        )
    if not callable(model):
        raise errors.TypeError(
            f"compile: expected a function or a module; got {type(model).__name__}"
        )
    if disable or backend in ("eager",):
        return model
    compiled = CompiledFunction(model, fullgraph, **chosen)
    from .nn import Module

    return CompiledModule(model, compiled) if isinstance(model, Module) else compiled

