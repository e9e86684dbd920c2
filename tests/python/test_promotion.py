"""The dtype of every binary op for every pair of dtypes, against PyTorch's."""

import itertools

import pytest

import kiln

torch = pytest.importorskip("torch")

DTYPES = [
    "float64", "float32", "float16", "bfloat16",
    "int64", "int32", "int16", "int8", "uint8", "bool",
]  # fmt: skip
NUMBERS = [True, 2, 1.5]
OPS = {
    "add": lambda t, a, b: t.add(a, b),
    "sub": lambda t, a, b: t.sub(a, b),
    "mul": lambda t, a, b: t.mul(a, b),
    "div": lambda t, a, b: t.div(a, b),
    "div floor": lambda t, a, b: t.div(a, b, rounding_mode="floor"),
    "div trunc": lambda t, a, b: t.div(a, b, rounding_mode="trunc"),
    "floor_divide": lambda t, a, b: t.floor_divide(a, b),
    "remainder": lambda t, a, b: t.remainder(a, b),
    "fmod": lambda t, a, b: t.fmod(a, b),
    "pow": lambda t, a, b: t.pow(a, b),
    "float_power": lambda t, a, b: t.float_power(a, b),
    "maximum": lambda t, a, b: t.maximum(a, b),
    "fmin": lambda t, a, b: t.fmin(a, b),
    "atan2": lambda t, a, b: t.atan2(a, b),
    "hypot": lambda t, a, b: t.hypot(a, b),
    "copysign": lambda t, a, b: t.copysign(a, b),
    "xlogy": lambda t, a, b: t.xlogy(a, b),
    "logaddexp": lambda t, a, b: t.logaddexp(a, b),
    "ldexp": lambda t, a, b: t.ldexp(a, b),
    "clamp_min": lambda t, a, b: t.clamp_min(a, b),
    "eq": lambda t, a, b: t.eq(a, b),
    "where": lambda t, a, b: t.where(t.tensor([True, False]), a, b),
    "bitwise_and": lambda t, a, b: t.bitwise_and(a, b),
    "bitwise_left_shift": lambda t, a, b: t.bitwise_left_shift(a, b),
    "gcd": lambda t, a, b: t.gcd(a, b),
    "operator -": lambda t, a, b: a - b,
    "operator //": lambda t, a, b: a // b,
    "operator %": lambda t, a, b: a % b,
    "operator **": lambda t, a, b: a**b,
    "operator |": lambda t, a, b: a | b,
}


def name(dtype):
    return str(dtype).split(".")[-1]


def operand(library, form):
    kind, what = form
    if kind == "number":
        return what
    dtype = getattr(library, what)
    return library.ones((2,) if kind == "dims" else (), dtype=dtype)


FORMS = [(kind, d) for kind in ("dims", "0-d") for d in DTYPES] + [("number", n) for n in NUMBERS]
PAIRS = [
    (a, b)
    for a, b in itertools.product(FORMS, FORMS)
    if not (a[0] == "number" and b[0] == "number")
]


@pytest.mark.parametrize("op", OPS)
def test_result_dtype(op):
    wrong = []
    for a, b in PAIRS:
        try:
            expected = name(OPS[op](torch, operand(torch, a), operand(torch, b)).dtype)
        except (RuntimeError, TypeError, NotImplementedError):
            continue  # what PyTorch refuses says nothing of the dtype
        try:
            got = name(OPS[op](kiln, operand(kiln, a), operand(kiln, b)).dtype)
        except Exception as error:
            got = f"{type(error).__name__}: {error}"
        if got != expected:
            wrong.append(f"{a} {b}: {got}, expected {expected}")
    assert not wrong, f"{len(wrong)} of {len(PAIRS)}\n" + "\n".join(wrong[:20])


def test_result_type():
    for a, b in PAIRS:
        expected = name(torch.result_type(operand(torch, a), operand(torch, b)))
        assert name(kiln.result_type(operand(kiln, a), operand(kiln, b))) == expected, (a, b)


def test_promote_types_and_can_cast():
    for a, b in itertools.product(DTYPES, DTYPES):
        ours = getattr(kiln, a), getattr(kiln, b)
        theirs = getattr(torch, a), getattr(torch, b)
        assert name(kiln.promote_types(*ours)) == name(torch.promote_types(*theirs)), (a, b)
        assert kiln.can_cast(*ours) == torch.can_cast(*theirs), (a, b)
