"""The table of op cases (tests/ops), as the program kiln_op_cases writes it."""

import json
import math
import os
import pathlib
import subprocess
import tempfile

import numpy as np

import kiln

PROGRAM = os.environ.get("KILN_OP_CASES") or str(
    pathlib.Path(kiln.__file__).parents[2] / "tests" / "kiln_op_cases"
)
# Relative to the larger of 1 and the value; the same as in tests/ops/case.cpp, with room for
# PyTorch's own rounding.
TOLERANCE = {
    "float64": 1e-9,
    "complex128": 1e-9,
    "float32": 2e-5,
    "complex64": 2e-5,
    "float16": 4e-3,
    "bfloat16": 3e-2,
}


class Table:
    def __init__(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([PROGRAM, "dump", folder], check=True)
            self.cases = json.loads((pathlib.Path(folder) / "cases.json").read_text())
            self.kiln = kiln.load(os.path.join(folder, "cases.safetensors"))

    def tensor(self, case, dtype, what, i):
        return self.kiln[f"{case['number']}/{dtype}/{what}{i}"]

    def inputs(self, case, dtype, library=kiln):
        values = [self.tensor(case, dtype, "in", i) for i in range(len(case["inputs"] or []))]
        return [as_tensor(x, library) for x in values]


def as_tensor(x, library):
    """A copy of Kiln's tensor x as a tensor of `library`."""
    if library is kiln:
        return x.clone()
    if x.dtype == kiln.bfloat16:
        return library.from_numpy(x.float().numpy().copy()).to(library.bfloat16)
    return library.from_numpy(x.numpy().copy())


def evaluate(case, inputs, library):
    """The case's Python expression with `library` in PyTorch's place; a flat list of tensors."""
    call = case["python"] if library is kiln else case.get("peer") or case["python"]
    names = {"torch": library, "F": library.nn.functional, "math": math}
    names |= {"inf": math.inf, "nan": math.nan, "np": np}
    names |= dict(zip("abcdefghij", inputs))
    return flat(eval(call, names), library)


def flat(result, library):
    if isinstance(result, (tuple, list)):
        return [x for part in result for x in flat(part, library)]
    if isinstance(result, (bool, int, float, complex)):
        return [library.tensor(result)]
    return [result]


def values(x):
    """As NumPy numbers of the widest kind."""
    x = x.detach()
    if hasattr(x, "resolve_conj"):
        x = x.resolve_conj().resolve_neg()
    kind = str(x.dtype).split(".")[-1]
    if kind.startswith("complex"):
        return x.numpy().astype(np.complex128)
    if kind == "bfloat16":
        x = x.float()
    return x.numpy().astype(np.int64 if kind.startswith(("int", "uint", "bool")) else np.float64)


def dtype_name(x):
    return str(x.dtype).split(".")[-1]


def is_near(a, b, allowed):
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.abs(a - b) <= allowed * np.maximum(1.0, np.abs(b))
    return (a == b) | near | ((a != a) & (b != b))


def compare(got, expected, tolerance, shapes_only=False):
    """Asserts that both lists of tensors (of any library) are equal."""
    assert len(got) == len(expected), f"{len(got)} results, expected {len(expected)}"
    for i, (x, y) in enumerate(zip(got, expected)):
        assert dtype_name(x) == dtype_name(y), f"result {i}: {x.dtype}, expected {y.dtype}"
        assert tuple(x.shape) == tuple(y.shape), f"result {i}: {x.shape}, expected {y.shape}"
        if shapes_only:
            continue
        a, b = values(x), values(y)
        # Integers may have floating point results.
        allowed = max(tolerance, TOLERANCE.get(dtype_name(y), 0))
        same = is_near(a, b, allowed)
        if a.dtype.kind == "c":  # one part may be infinite
            same |= is_near(a.real, b.real, allowed) & is_near(a.imag, b.imag, allowed)
        if not same.all():
            at = tuple(int(k) for k in np.argwhere(~same)[0])
            raise AssertionError(
                f"result {i}: {int((~same).sum())} of {same.size} differ, first at {at}:"
                f" {a[at]}, expected {b[at]}"
            )
