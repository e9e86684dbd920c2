"""Types that nanobind's generator cannot know, for finish_stubs.py: what an op returns for which
arguments, and what a layer takes and gives."""

import re

# Named results, by their fields.
NAMED = {
    "_ValuesIndices": "values indices", "_MinMax": "min max", "_MantissaExponent": "mantissa exponent",
    "_Histogram": "hist bin_edges", "_SignLogabsdet": "sign logabsdet", "_QR": "Q R",
    "_SVD": "U S V", "_Solution": "solution cloned_coefficient", "_Geqrf": "a tau", "_PLU": "P L U",
    "_Result": "result info", "_Inverse": "inverse info", "_Cholesky": "L info",
    "_LeastSquares": "solution residuals rank singular_values", "_LU": "LU pivots",
    "_LUInfo": "LU pivots info", "_LDL": "LD pivots", "_LDLInfo": "LD pivots info",
    "_Eigen": "eigenvalues eigenvectors", "_SVDh": "U S Vh",
}  # fmt: skip

# What functions return that say Any, by the stub they stand in.
RETURNS = {
    "": {
        "sort": "_ValuesIndices", "topk": "_ValuesIndices", "kthvalue": "_ValuesIndices",
        "mode": "_ValuesIndices", "cummax": "_ValuesIndices", "cummin": "_ValuesIndices",
        "aminmax": "_MinMax", "frexp": "_MantissaExponent", "histogram": "_Histogram",
        "slogdet": "_SignLogabsdet", "qr": "_QR", "svd": "_SVD", "triangular_solve": "_Solution",
        "geqrf": "_Geqrf", "lu_unpack": "_PLU", "__iter__": "Iterator[Tensor]",
        "meshgrid": "tuple[Tensor, ...]", "broadcast_shapes": "Size",
    },
    "_linalg.": {
        "solve_ex": "_Result", "inv_ex": "_Inverse", "slogdet": "_SignLogabsdet",
        "lstsq": "_LeastSquares", "cholesky_ex": "_Cholesky", "qr": "_QR", "lu": "_PLU",
        "lu_factor": "_LU", "lu_factor_ex": "_LUInfo", "ldl_factor": "_LDL",
        "ldl_factor_ex": "_LDLInfo", "eig": "_Eigen", "eigh": "_Eigen", "svd": "_SVDh",
    },
}  # fmt: skip

# Functions of tensors that return tuples of tensors.
TUPLES = set(
    """split split_with_sizes chunk unbind tensor_split hsplit vsplit dsplit where gradient
    broadcast_tensors var_mean std_mean sobel gae nonzero""".split()
)

# Functions of several forms: what follows self or input, and what comes back.
ALONG = "dim: INT, keepdim: BOOL = False"
FORMS = {
    "max": [("", "Tensor"), (ALONG, "_ValuesIndices"), ("other: Tensor", "Tensor")],
    "min": [("", "Tensor"), (ALONG, "_ValuesIndices"), ("other: Tensor", "Tensor")],
    "median": [("", "Tensor"), (ALONG, "_ValuesIndices")],
    "nanmedian": [("", "Tensor"), (ALONG, "_ValuesIndices")],
    "size": [("dim: None = None", "Size"), ("dim: INT", "INT")],
    "stride": [("dim: None = None", "tuple[INT, ...]"), ("dim: INT", "INT")],
    "nonzero": [
        ("*, as_tuple: Literal[False] = False", "Tensor"),
        ("*, as_tuple: Literal[True]", "tuple[Tensor, ...]"),
    ],
}
TO = "non_blocking: BOOL = False, copy: BOOL = False, *, memory_format: str | None = None"
METHOD_FORMS = {
    "type": [("dtype: None = None", "str"), ("dtype: Any, non_blocking: BOOL = False", "Tensor")],
    "to": [
        (f"dtype: _DType, {TO}", "Tensor"),
        (f"device: _Device | str | None = None, dtype: _DType | None = None, {TO}", "Tensor"),
        (f"other: Tensor, {TO}", "Tensor"),
    ],
}
# Methods that give the tensor itself.
IN_PLACE = re.compile(r"[a-z]\w*_$|__i(add|sub|mul|matmul|truediv|floordiv|mod|pow|and|or|xor|lshift|rshift)__$")

# What a tensor may be indexed with; a dtype, also as Python's type.
ALIASES = """
_DType = dtype
_Device = device
_DTypeLike = (
    dtype | type[builtins.float] | type[builtins.int] | type[builtins.bool] | type[builtins.complex]
)
_Index = (
    SupportsIndex | slice[Any, Any, Any] | None | EllipsisType | Tensor
    | builtins.list[Any] | tuple[Any, ...] | builtins.range | np.ndarray[Any, Any]
)
"""
IMPORTS = """import builtins
from collections.abc import Iterator
from types import EllipsisType
from typing import Literal, NamedTuple, Self, SupportsIndex

import numpy as np
from kiln.storage import TypedStorage, UntypedStorage
from kiln._size import Size
from kiln._typing import DeviceLike"""


def named_tuples():
    """The classes of NAMED, as text."""
    return "\n".join(
        f"class {name}(NamedTuple):\n" + "".join(f"    {field}: Tensor\n" for field in fields.split())
        for name, fields in NAMED.items()
    )


def _forms(name, first, indent, forms, out):
    """A function's forms, each with its overload, but for the last one's end."""
    int_, bool_ = ("builtins.int", "builtins.bool") if indent else ("int", "bool")
    lines = []
    for arguments, result in forms:
        arguments = arguments.replace("INT", int_).replace("BOOL", bool_)
        if out:
            star = "" if "*" in arguments else "*, "
            arguments += f"{', ' if arguments else ''}{star}out: Any = None"
        given = f"{first}, {arguments}" if arguments else first
        lines.append(f"{indent}@overload\n{indent}def {name}({given}) -> {result.replace('INT', int_)}:")
    return " ...\n".join(lines)


def retyped(line, part):
    """A line of a stub, with types for what the generator does not know."""
    match = re.match(r"^( *)def (\w+)\((self|input: Tensor)?(.*)\) -> (.*?):( \.\.\.)?$", line)
    if match:
        indent, name, first, rest, result, dots = match.groups()
        forms = FORMS.get(name) or (METHOD_FORMS.get(name) if first == "self" else None)
        if forms and first and part == "" and result in ("Any", "Tensor"):
            return _forms(name, first, indent, forms, "out: Any" in rest) + (dots or "")
        if result == "Any" and "return_indices: bool = False" in rest:
            return _with_indices(line)
        known = RETURNS.get(part, {}).get(name)
        if known and (result == "Any" or result.startswith("tuple")):
            line = line.replace(f"-> {result}:", f"-> {known}:")
        if result == "tuple" and name in TUPLES:
            line = line.replace("-> tuple:", "-> tuple[Tensor, ...]:")
        if name == "__getitem__" and first == "self":
            line = line.replace("key: Any", "key: _Index")
        if name == "__setitem__" and first == "self":
            line = line.replace("key: Any", "key: _Index")
        if first == "self" and result == "Tensor" and IN_PLACE.match(name):
            line = line.replace("-> Tensor:", "-> Self:")
        if name == "uninitialized":  # a module's attribute is then a Parameter
            line = line.replace("-> Param:", "-> Any:")
        if name == "device":
            line = line.replace("-> _Device | str:", "-> _Device:")
        if name.endswith("hook"):
            line = line.replace("hook: object", "hook: Callable[[Tensor], Any]")
    if re.match(r"^ *def ", line):
        line = re.sub(r"\bdtype: (_DType|dtype)(?= \||[,)]| =)", "dtype: _DTypeLike", line)
        line = re.sub(r"(?<=[:>] )(dict|list|tuple)(?=[,):]| =| \|)", _of_anything, line)
        line = re.sub(r"\bCallable(?!\[)", "Callable[..., Any]", line)
        line = re.sub(r"(\*\*?\w+)(?=[,)])", r"\1: Any", line)
    return line


def _with_indices(line):
    """A pooling function's forms: with return_indices it gives two tensors."""
    one = line.replace("return_indices: bool = False", "return_indices: Literal[False] = False")
    two = line.replace("return_indices: bool = False", "*, return_indices: Literal[True]")
    one = one.replace("-> Any:", "-> Tensor:").removesuffix(" ...") + " ..."
    return f"@overload\n{one}\n@overload\n" + two.replace("-> Any:", "-> tuple[Tensor, Tensor]:")


def _of_anything(match):
    of = {"dict": "dict[Any, Any]", "list": "builtins.list[Any]", "tuple": "tuple[Any, ...]"}
    return of[match[1]]


# ---- Layers

TENSORS = set(
    """input x input1 input2 x1 x2 target targets anchor positive negative log_input log_probs logits
    indices var query positive_key""".split()
)
SEVERAL = re.compile(r"(Max|FractionalMax|AdaptiveMax)Pool|Identity$")
# Sequences come as a tensor or packed, and leave as they came.
RECURRENT = {
    "RNN": ("Tensor | None", "Tensor"),
    "GRU": ("Tensor | None", "Tensor"),
    "LSTM": ("tuple[Tensor, Tensor] | None", "tuple[Tensor, Tensor]"),
}
WITH_WEIGHT = re.compile(
    r"(Linear|Bilinear|Conv(Transpose)?\dd|(Batch|Instance|Layer|Group|RMS)Norm(\dd)?|Embedding(Bag)?|PReLU)$"
)
WITHOUT_BIAS = re.compile(r"Embedding|PReLU|RMSNorm")
# What kiln/nn/layer_methods.py adds to the classes.
OF_PYTHON = {
    r"Conv": ["transposed: bool"],
    r"(RNN|LSTM|GRU)$": [
        "mode: str",
        "all_weights: list[list[Parameter]]",
        "def flatten_parameters(self) -> None: ...",
    ],
    r"(RNN|GRU)$": ["proj_size: int"],
    r"Embedding": [
        "@classmethod",
        "def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, **options: Any) -> Self: ...",
    ],
}


def members(name):
    """Tensors that a layer has, as text."""
    lines = []
    if WITH_WEIGHT.match(name):
        lines.append("    weight: Parameter")
        if not WITHOUT_BIAS.match(name):
            lines.append("    bias: Parameter | Any  # None without a bias")
    if re.match(r"(Batch|Instance)Norm", name):
        lines += [f"    {buffer}: Tensor | None" for buffer in ("running_mean", "running_var")]
        lines.append("    num_batches_tracked: Tensor | None")
    lines += [f"    {line}" for pattern, more in OF_PYTHON.items() if re.match(pattern, name) for line in more]
    return lines


def _argument(word):
    name, equals, default = word.partition("=")
    if name == "*":
        return word
    kind = "Tensor" if name in TENSORS else "Any"
    if name in ("offsets", "per_sample_weights", "residual", "negative_keys", "hx"):
        kind = "Tensor | None"
    return f"{name}: {kind}" + (f" = {default}" if equals else "")


def calls(name, forward):
    """How a layer is called, as text. forward() is Module's, so that a class of a user's may take other
    arguments."""
    if name in RECURRENT:
        state, last = RECURRENT[name]
        return [
            f"    @overload\n    def __call__(self, input: {kind}, hx: {state} = None)"
            f" -> tuple[{kind}, {last}]: ..."
            for kind in ("Tensor", "PackedSequence")
        ]
    words = [_argument(word) for word in forward.split(", ")]
    result = "Any" if SEVERAL.match(name) else "Tensor"
    if name == "LSTMCell":
        words[-1], result = "hx: tuple[Tensor, Tensor] | None = None", "tuple[Tensor, Tensor]"
    return [f"    def __call__(self, {', '.join(words)}) -> {result}: ..."]
