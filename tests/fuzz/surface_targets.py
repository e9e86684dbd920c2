"""What the surface fuzzer calls: every public callable of the package, with what it expects."""

import ast
import dataclasses
import inspect
import os
import re
import sys

# Not called, each for its reason.
DENIED = {
    "kiln.set_num_threads": "a thread for each of a million would be what was asked for",
    "kiln.set_memory_limit": "a small limit would be why every later call fails",
    "kiln.nn.module_hooks": "hooks of all modules outlive the call",
}
# Parameters that say how long a call is to work: no huge number is passed there.
LABOUR = {"niter", "max_iter", "iterations"}
# Protocols of Python's that reach the package like any other call.
DUNDERS = (
    "__getitem__ __setitem__ __add__ __radd__ __sub__ __rsub__ __mul__ __truediv__ __rtruediv__ "
    "__floordiv__ __mod__ __rmod__ __pow__ __rpow__ __matmul__ __eq__ __lt__ __iadd__ __imul__ "
    "__ipow__ __and__ __or__ __lshift__ __neg__ __invert__ __bool__ __int__ __float__ __index__ "
    "__len__ __iter__ __contains__ __reversed__ __format__ __repr__ __str__ __hash__ __array__ "
    "__dlpack__ __reduce_ex__ __deepcopy__ __copy__ __setstate__ __getstate__ __init__ __new__ "
    "__call__ __enter__ __exit__ __getattr__ __setattr__ __delattr__ __delitem__ __round__"
).split()
# With what the constructors are tried, to have instances of every class.
CONSTRUCTORS = [
    "", "3", "2, 3", "2, 3, 3", "4, 2, 1", "[P()], 0.1", "[P()]", "OPT(), 2", "OPT()", "M()",
    "[M()]", "T()", "same", "{'a': M()}", "{'a': P()}", "'cpu'", "2, (3,)", "OPT(), lambda e: 1.0",
    "same, number", "4, 2, 2, 0", "M(), M()",
]  # fmt: skip


@dataclasses.dataclass
class Parameter:
    name: str
    kind: str
    optional: bool
    keyword_only: bool = False
    variadic: bool = False


@dataclasses.dataclass
class Target:
    source: str  # what is called
    parameters: list  # of Parameter; None: nobody knows
    is_property: bool = False


KINDS = [
    (r"Callable", "callable"),
    (r"int \| .*Sequence\[int\]|Sequence\[int\]", "integers"),
    (r"Sequence\[.*Tensor|list\[.*Tensor|tuple\[.*Tensor", "tensors"),
    (r"Tensor \| .*float|Operand", "operand"),
    (r"Tensor", "tensor"),
    (r"dtype", "dtype"),
    (r"device", "device"),
    (r"Generator", "generator"),
    (r"Module", "module"),
    (r"Optimizer", "optimizer"),
    (r"bool", "bool"),
    (r"int", "int"),
    (r"float", "float"),
    (r"str", "text"),
]
NAMED_KINDS = {
    "index": "index", "indices": "index", "target": "tensor", "mask": "tensor",
    "key": "index_key", "dim": "int", "dims": "integers", "size": "integers", "shape": "integers",
    "kernel_size": "integers", "stride": "integers", "padding": "integers",
    "output_size": "integers",
    "dilation": "integers", "p": "float", "eps": "float", "lr": "float", "dtype": "dtype",
    "device": "device", "tensors": "tensors", "params": "parameters", "parameters": "parameters",
    "module": "module", "optimizer": "optimizer", "func": "callable", "fn": "callable",
    "function": "callable", "hook": "callable", "closure": "callable", "callable": "callable",
    "path": "path", "f": "path", "filename": "path", "generator": "generator", "mode": "text",
    "reduction": "text", "name": "text", "equation": "text", "input": "tensor", "other": "operand",
    "x": "tensor", "a": "tensor", "A": "tensor", "weight": "tensor", "bias": "tensor",
    "inputs": "tensors", "outputs": "tensors", "value": "operand",
}  # fmt: skip


def kind_of(name, annotation, default):
    if name in LABOUR:
        return "labour"
    for pattern, kind in KINDS:
        if annotation and re.search(pattern, annotation):
            return NAMED_KINDS[name] if name in ("index", "path", "f", "filename") else kind
    if name in NAMED_KINDS:
        return NAMED_KINDS[name]
    if default is not inspect.Parameter.empty and type(default) in (bool, int, float, str):
        return {"str": "text"}.get(type(default).__name__, type(default).__name__)
    return "any"


def parameters_of(function):
    """The parameters of a function of Python or of C++; None where they cannot be known."""
    first_line = (getattr(function, "__doc__", None) or "").split("\n")[0]
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return parameters_of_text(first_line)
    out = []
    for p in signature.parameters.values():
        annotation = "" if p.annotation is p.empty else str(p.annotation)
        out.append(
            Parameter(
                p.name,
                kind_of(p.name, annotation, p.default),
                p.default is not p.empty,
                p.kind is p.KEYWORD_ONLY,
                p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD),
            )
        )
    return out


def parameters_of_text(text):
    """From the first line of a docstring: name(a: int, *, b: float = 1.0) -> Tensor."""
    if not re.match(r"\w+\(", text):
        return None
    text = re.sub(r"kiln\._C\.(\w+\.)*", "", text)
    text = re.sub(r"<[^>]*>", "None", text)
    try:
        arguments = ast.parse(f"def {text}: pass").body[0].args
    except SyntaxError:
        return None
    out = []
    positional = arguments.posonlyargs + arguments.args
    required = len(positional) - len(arguments.defaults)
    for i, a in enumerate(positional):
        out.append(parameter_of_ast(a, i >= required, False))
    if arguments.vararg:
        out.append(parameter_of_ast(arguments.vararg, True, False, True))
    for a, default in zip(arguments.kwonlyargs, arguments.kw_defaults):
        out.append(parameter_of_ast(a, default is not None, True))
    return out


def parameter_of_ast(a, optional, keyword_only, variadic=False):
    annotation = ast.unparse(a.annotation) if a.annotation else ""
    kind = kind_of(a.arg, annotation, inspect.Parameter.empty)
    return Parameter(a.arg, kind, optional, keyword_only, variadic)


def is_denied(source):
    return any(source == name or source.startswith(name + ".") for name in DENIED)


def modules():
    """The public modules, those with short names first."""
    names = [n for n in sys.modules if n == "kiln" or n.startswith("kiln.")]
    names = [n for n in names if not any(part.startswith("_") for part in n.split("."))]
    return [sys.modules[n] for n in sorted(names, key=lambda n: (n.count("."), n))]


def without_self(parameters):
    return parameters[1:] if parameters and not parameters[0].variadic else parameters


def instances_of(classes, which_work):
    """Sources of instances of each class."""
    sources = [f"{name}({arguments})" for name in classes for arguments in CONSTRUCTORS]
    works = iter(which_work(sources))
    made = {name: [f"{name}({a})" for a in CONSTRUCTORS if next(works)] for name in classes}
    made["kiln.Tensor"] = ["T()", "T('int64')"]
    return {name: sources[:3] for name, sources in made.items()}


def methods_of(cls, source, instances):
    """Targets for the methods of a class itself; those that it inherits are its bases'."""
    for name in sorted(vars(cls)):
        if name.startswith("_") and name not in DUNDERS:
            continue
        if is_denied(f"{source}.{name}"):
            continue
        member = getattr(cls, name, None)
        raw = vars(cls)[name]
        if callable(member):
            parameters = parameters_of(member)
            unbound = isinstance(raw, (staticmethod, classmethod))
            yield Target(f"{source}.{name}", parameters)
            for instance in instances:
                yield Target(
                    f"{instance}.{name}", parameters if unbound else without_self(parameters)
                )
        elif not isinstance(raw, (int, float, str, tuple, dict, type(None))):
            for instance in instances + [f"U({source})"]:
                yield Target(f"{instance}.{name}", [Parameter("value", "any", False)], True)


def public():
    """(source, value) of everything that can be called."""
    seen = set()
    for module in modules():
        for name in sorted(vars(module)):
            value = vars(module)[name]
            source = f"{module.__name__}.{name}"
            if name.startswith("_") or id(value) in seen or is_denied(source):
                continue
            owner = getattr(value, "__module__", None) or ""
            if inspect.ismodule(value) or not callable(value) or not owner.startswith("kiln"):
                continue
            seen.add(id(value))
            yield source, value


def targets(which_work):
    """Every public callable of the package. which_work(sources) says of each call whether it gives
    a value."""
    out = []
    found = list(public())
    made = instances_of([s for s, value in found if isinstance(value, type)], which_work)
    for source, value in found:
        out.append(Target(source, parameters_of(value)))
        if isinstance(value, type):
            out += [Target(instance, []) for instance in made[source]]
            out += methods_of(value, source, made[source])
    return out


def case_calls():
    """Calls of the op cases, as (function, arguments, keywords) of source; valid ones. Empty where
    the program that writes them is not built."""
    tests = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "python")
    sys.path.insert(0, tests)
    try:
        import op_cases

        table = op_cases.Table()
    except Exception:  # no NumPy, no program: the fuzzer goes on without
        return []
    finally:
        sys.path.remove(tests)
    out = []
    for case in table.cases:
        inputs = {}
        for name, x in zip("abcdefghij", table.inputs(case, case["dtypes"][0])):
            values = "" if x.numel() > 200 else x.tolist()
            dtype = str(x.dtype)
            inputs[name] = (
                f"T({dtype.split('.')[-1]!r}, {tuple(x.shape)!r})"
                if values == "" or x.dtype.is_complex
                else f"kiln.tensor({values!r}, dtype={dtype}).reshape({tuple(x.shape)!r})"
            )
        call = call_of(case["python"], inputs)
        if call is not None:
            out.append(call)
    return out


def call_of(text, inputs):
    class Rename(ast.NodeTransformer):
        def visit_Name(self, node):
            source = inputs.get(node.id)
            source = source or {"torch": "kiln", "F": "kiln.nn.functional"}.get(node.id)
            return ast.parse(source, mode="eval").body if source else node

    try:
        tree = Rename().visit(ast.parse(text.strip(), mode="eval").body)
    except SyntaxError:
        return None
    if not isinstance(tree, ast.Call) or any(isinstance(a, ast.Starred) for a in tree.args):
        return None
    keywords = {k.arg: ast.unparse(k.value) for k in tree.keywords if k.arg}
    return ast.unparse(tree.func), [ast.unparse(a) for a in tree.args], keywords

