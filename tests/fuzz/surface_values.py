"""What the surface fuzzer passes: arguments as Python source, and the names that it uses.

An argument is source, not an object, so that a call can be printed, run again and shortened.
"""

import math

import kiln
from kiln import nn

try:
    import numpy as np
except ImportError:
    np = None


# ---- Names that the sources use


def T(dtype="float32", shape=(2, 3), layout="c", grad=False):
    """A tensor of small values. layout: c, t (transposed), step (every second), expand (stride 0),
    far (a large stride); c where the shape allows no other."""
    n = math.prod(shape)
    values = kiln.arange(n, dtype=kiln.float32).sub(1).to(getattr(kiln, dtype)).reshape(shape)
    if layout == "t" and len(shape) > 1:
        values = values.transpose(0, 1).contiguous().transpose(0, 1)
    elif layout == "step" and shape:
        values = kiln.stack([values, values], -1)[..., 0]
    elif layout == "expand" and shape and shape[0]:
        values = values[:1].expand(shape)
    elif layout == "far" and shape and shape[-1] == 2:
        values = kiln.zeros(2**20 + 1, dtype=values.dtype).as_strided((2,), (2**20,))
    return values.detach().requires_grad_() if grad else values


def P(shape=(2, 3)):
    return nn.Parameter(T("float32", shape))


def LOSS():
    return (T("float32", (2, 3), grad=True) * 2).sum()


def OPT():
    return kiln.optim.SGD([P()], lr=0.1)


def M():
    return nn.Sequential(nn.Linear(3, 2), nn.ReLU())


def U(cls):
    """An instance whose __init__ has not run."""
    return cls.__new__(cls)


class Child(kiln.Tensor):
    """A subclass that forgot its base."""

    def __init__(self):
        pass


class Raises:
    """Fails whatever it is asked."""

    def fail(self, *_, **__):
        raise ValueError("no")

    __index__ = __float__ = __int__ = __bool__ = __len__ = __iter__ = __getitem__ = fail
    __array__ = __hash__ = __repr__ = __str__ = __fspath__ = __call__ = __enter__ = fail
    __complex__ = __contains__ = __eq__ = __next__ = fail


class Index:
    """An integer that first does something else."""

    def __init__(self, action, value=1):
        self.action, self.value = action, value

    def read(self, *_):
        self.action()
        return self.value

    __index__ = __int__ = item = read

    def __float__(self):
        return float(self.read())


def shrinking():
    """A list that empties itself when its last item is read."""
    items = [1, 2]
    items.append(Index(items.clear))
    return items


def shrinking_first():
    items = [2, 3]
    items.insert(0, Index(items.clear))
    return items


def growing():
    items = [1]
    items.insert(0, Index(lambda: items.extend([1] * 1000)))
    return items


def nested_changing():
    rows = [[1, 2], [3, 4]]
    rows[0][0] = Index(lambda: rows[1].clear())
    return rows


def circular():
    items = []
    items.append(items)
    return items


def deep(n=500):
    items = []
    for _ in range(n):
        items = [items]
    return items


class Many(list):
    """A list that says it is longer than it is."""

    def __iter__(self):
        return iter([1] * 50)

    def __len__(self):
        return 2**40


class Map(dict):
    def items(self):
        return [1, (2,), "x"]

    def keys(self):
        return [None]


def boom(*_, **__):
    raise ValueError("boom")


def same(*args, **__):
    return args[0] if args else None


def number(*_, **__):
    return 3


if np is not None:

    class Arrays(np.ndarray):
        """An array whose list is none."""

        def tolist(self):
            return 7

    def odd_array():
        return np.zeros((2, 2)).view(Arrays)

    def read_only():
        return np.frombuffer(b"\1\2\3\4" * 4, np.float32)

    def odd_bools():
        return np.array([2, 255, 1], np.uint8).view(np.bool_)


# ---- Pools

DTYPES = [
    "float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8",
    "bool", "complex64", "complex128",
]  # fmt: skip
SHAPES = [(2, 3), (3,), (2, 3, 4), (1, 2, 5, 5), (4, 4), (), (2,), (1, 2, 3, 4, 4), (0,), (2, 0)]
DTYPE_SOURCES = [f"kiln.{name}" for name in DTYPES] + ["float", "int", "bool", "None"]
MODES = [
    "mean", "sum", "none", "constant", "reflect", "replicate", "circular", "nearest", "bilinear",
    "bicubic", "linear", "area", "trilinear", "ortho", "forward", "backward", "zeros", "border",
    "trunc", "floor", "tanh", "ij", "xy", "same", "valid", "fan_in", "relu", "batchmean", "fro",
    "nuc", "reduced", "complete", "r", "left", "right", "amax", "prod", "L", "full", "auto",
    "ij->ji", "ij,jk->ik", "i,i", "short", "gelu", "nearest-exact", "lanczos", "leaky_relu",
]  # fmt: skip
INTEGERS = ["0", "1", "2", "3", "-1", "4", "-2", "7", "5", "10"]
FLOATS = ["0.5", "1.0", "0.1", "2.0", "0.0", "1e-5", "3", "-1.0", "-0.5", "1e3"]
CALLABLES = ["same", "boom", "number", "kiln.exp", "print", "LOSS", "lambda *a: a"]

HOSTILE_NUMBERS = [
    "float('nan')", "float('inf')", "-float('inf')", "2**31", "2**31 - 1", "-2**31", "2**40",
    "2**62", "2**63 - 1", "2**63", "-2**63", "-2**63 - 1", "2**64 - 1", "2**64", "10**30",
    "10**400", "-10**400", "1e308", "5e-324", "1j", "complex('nan')", "-1", "0", "-100", "True",
    "1e19", "65536", "10**6",
]  # fmt: skip
HOSTILE_OBJECTS = [
    "None", "'cuda'", "''", "'\\ud800'", "'a\\0b'", "'cpu:1'", "'x' * 5000", "b''", "b'abc'",
    "()", "[]", "{}", "[1] * 13", "(1,) * 40", "[None]", "['x']", "[[1, 2], [3]]", "[[]]",
    "[1.5, 2]", "[float('nan')]", "[10**400]", "[2**63]", "[-1, -1]", "[2**40] * 3", "[0] * 12",
    "circular()", "deep()", "shrinking()", "shrinking_first()", "growing()", "nested_changing()",
    "Many([1, 2])", "Map(a=1)", "Raises()", "Index(boom)", "Index(print, 10**400)", "[Raises()]",
    "{1: 2}", "{'a': T()}", "{'\\ud800': 1}", "{1, 2}", "range(5)", "iter([1, 2])", "object()",
    "int", "kiln", "kiln.Tensor", "...", "slice(None)", "slice(2**70, None, -1)", "slice(0, 3, 0)",
    "slice('a')", "kiln.device('cpu')", "kiln.float32", "kiln.Size((2, 3))", "NotImplemented",
    "U(kiln.Tensor)", "U(nn.Parameter)", "U(kiln.Generator)", "U(kiln.device)", "U(kiln.dtype)",
    "U(nn.Module)", "U(nn.Linear)", "U(kiln.optim.SGD)", "Child()", "[U(kiln.Tensor)]", "M()",
    "OPT()", "kiln.Generator()", "boom", "[T()]", "(T(), None)", "[T(), 1]", "memoryview(b'ab')",
    "bytearray(8)", "kiln.finfo", "Exception()", "property()", "type('X', (), {})()",
]  # fmt: skip
HOSTILE_TENSORS = [
    "T('float32', ())", "T('float32', (0,))", "T('float32', (0, 3))", "T('float32', (2, 0, 3))",
    "T('bool')", "T('int64')", "T('uint8', (3,))", "T('complex64')", "T('float16')",
    "T('bfloat16', (2, 2))", "T('float32', (2,), 'far')", "T('float32', (1000, 3), 'expand')",
    "T('float32', (2, 3), 't')", "T('float64', (2, 3), 'step', True)", "P()", "LOSS()",
    "T('int64', (2, 3)) + 2**40", "-T('int64', (3,)) * 2**62", "T() * float('nan')",
    "T('float32', (1,) * 12)", "T('int8', (4,)).sub(100)", "kiln.tensor(2**63 - 1)",
    "kiln.tensor(-5)", "nn.Buffer(T())", "kiln.quantize_dynamic(T('float32', (4, 32)))",
    "T('float32', (2, 3), grad=True)", "T('float32', (3, 3), grad=True) * 2",
]  # fmt: skip
if np is not None:
    HOSTILE_OBJECTS += [
        "np.zeros((2, 3))", "np.float32(2)", "np.int64(-1)", "np.array(['a'])", "np.bool_(True)",
        "np.zeros(3)[::-1]", "np.zeros((2, 2), '>f8')", "np.array([1, 'x'], object)",
        "odd_array()", "[odd_array()]", "read_only()", "odd_bools()", "np.zeros((1,) * 20)",
        "np.uint64(2**63)", "np.datetime64('2020')", "np.ma.array([1])",
    ]  # fmt: skip


def tensor(rng, theme):
    """A tensor that mostly fits the others of the call."""
    dtype, shape = theme
    if rng.random() < 0.1:
        dtype = rng.choice(DTYPES)
    if rng.random() < 0.15:
        shape = rng.choice(SHAPES)
    layout = rng.choice(["c"] * 6 + ["t", "step", "expand"])
    grad = dtype.startswith(("float", "bf", "complex")) and rng.random() < 0.2
    return f"T({dtype!r}, {shape!r}, {layout!r}, {grad})"


def theme(rng):
    dtype = "float32" if rng.random() < 0.6 else rng.choice(DTYPES)
    return dtype, rng.choice(SHAPES[:8])


def index_tensor(rng):
    return rng.choice(
        ["kiln.tensor([0, 1])", "kiln.tensor(0)", "kiln.tensor([[0, 1, 0], [1, 0, 1]])",
         "kiln.tensor([0, 1, 2])", "kiln.tensor([-1])", "kiln.tensor([9])"]
    )  # fmt: skip


def integers(rng):
    if rng.random() < 0.5:
        return rng.choice(INTEGERS)
    n = rng.choice([1, 1, 2, 2, 3, 4])
    items = ", ".join(rng.choice(INTEGERS[:7]) for _ in range(n))
    return rng.choice([f"[{items}]", f"({items},)"])


def valid(rng, kind, theme):
    """An argument of a kind (see surface_targets.kind_of) that is probably right."""
    if kind == "tensor":
        return tensor(rng, theme)
    if kind == "index":
        return index_tensor(rng)
    if kind == "operand":
        return tensor(rng, theme) if rng.random() < 0.6 else rng.choice(FLOATS + INTEGERS)
    if kind == "tensors":
        items = ", ".join(tensor(rng, theme) for _ in range(rng.choice([1, 2, 3])))
        return f"[{items}]"
    if kind == "integers":
        return integers(rng)
    pools = {
        "int": INTEGERS,
        "float": FLOATS,
        "bool": ["True", "False"],
        "text": [repr(mode) for mode in MODES],
        "dtype": DTYPE_SOURCES,
        "device": ["'cpu'", "None", "kiln.device('cpu')", "'reference'"],
        "callable": CALLABLES,
        "path": ["'f.pt'", "'f.safetensors'", "'f.npz'", "'f.npy'", "'none.pt'"],
        "module": ["M()", "nn.Linear(3, 2)", "nn.Sequential()"],
        "optimizer": ["OPT()"],
        "parameters": ["[P()]", "M().parameters()", "[{'params': [P()]}]"],
        "labour": ["0", "1", "2", "-1", "None", "1.5"],
        "generator": ["kiln.Generator()", "None"],
        "index_key": ["0", "-1", "slice(None)", "None", "...", "(0, 1)", "kiln.tensor([0, 1])",
                      "[0, 1]", "slice(None, None, 2)", "(slice(None), None)"],
    }  # fmt: skip
    if kind in pools:
        return rng.choice(pools[kind])
    return rng.choice([tensor(rng, theme), rng.choice(INTEGERS), rng.choice(FLOATS), "None"])


def hostile(rng):
    return rng.choice(rng.choice([HOSTILE_NUMBERS, HOSTILE_OBJECTS, HOSTILE_OBJECTS,
                                  HOSTILE_TENSORS]))  # fmt: skip


NAMES = {name: value for name, value in globals().items() if not name.startswith("_")}
