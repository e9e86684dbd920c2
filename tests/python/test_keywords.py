"""Functions and methods take the keywords that PyTorch's take, among them out= and axis=."""

import ast
import os
import pathlib
import re
import warnings

import numpy as np
import pytest

import kiln
from conftest import HAS_TORCH
from op_cases import PROGRAM, Table, compare, evaluate

needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="SKIPPED: PyTorch is not installed")
needs_cases = pytest.mark.skipif(not os.path.exists(PROGRAM), reason=f"SKIPPED: {PROGRAM} is not built")

F = kiln.nn.functional


# ---- Other names of arguments


def test_axis_and_keepdims():
    x = kiln.arange(6.0).reshape(2, 3)
    assert x.sum(axis=0).tolist() == [3, 5, 7]
    assert x.mean(1, keepdims=True).shape == (2, 1)
    assert kiln.cat([x, x], axis=1).shape == (2, 6)
    assert kiln.max(x, axis=1, keepdims=True).values.tolist() == [[2], [5]]
    assert x.softmax(axis=-1).sum(axis=1).allclose(kiln.ones(2))
    assert kiln.sum(a=x).item() == kiln.sum(x=x).item() == 15
    assert kiln.add(x1=x, x2=x).tolist() == (2 * x).tolist()
    with pytest.raises(TypeError, match="multiple values for argument 'dim'"):
        x.sum(dim=0, axis=0)
    with pytest.raises(TypeError):
        x.exp(axis=0)
    with pytest.raises(TypeError):
        x.sum(axes=0)


def test_names_of_methods():
    x = kiln.arange(6.0).reshape(2, 3)
    assert x.flip(dims=(0,)).tolist() == x.flip(0).tolist()
    assert x.permute(dims=(1, 0)).shape == x.view(size=(3, 2)).shape == x.reshape(shape=(3, 2)).shape == (3, 2)
    assert x.expand(size=(4, 2, 3)).shape == (4, 2, 3)
    assert x.repeat(repeats=(2, 1)).shape == x.tile(dims=(2, 1)).shape == (4, 3)
    assert len(x.split(split_size=2, dim=1)) == len(kiln.split(tensor=x, split_size_or_sections=2, dim=1)) == 2
    assert x.new_zeros(size=(2,)).tolist() == [0, 0] and x.new_ones(size=(2,)).tolist() == [1, 1]
    assert x.max(other=x * 0 + 3).tolist() == kiln.max(input=x, other=x * 0 + 3).tolist() == [[3, 3, 3], [3, 4, 5]]
    assert len(x.tensor_split(sections=2)) == len(x.hsplit(indices=[1])) == 2
    assert x.view(dtype=kiln.int32).dtype == kiln.int32
    a = kiln.eye(2)
    assert kiln.linalg.eigvalsh(input=a).tolist() == kiln.linalg.eigvalsh(A=a).tolist()
    assert kiln.linalg.norm(input=a).item() == pytest.approx(2**0.5)
    with pytest.raises(TypeError, match="multiple values for argument 'dims'"):
        x.permute((1, 0), dims=(1, 0))
    with pytest.raises(TypeError, match="multiple values"):
        x.new_zeros(2, size=(2,))


def test_functions_keep_their_own_names():
    x = kiln.arange(3.0)
    assert kiln.vander(x=x).shape == (3, 3)
    assert kiln.linalg.vander(x=x).shape == (3, 3)
    assert kiln.cdist(x1=x[:, None], x2=x[:, None]).shape == (3, 3)
    assert kiln.tensordot(a=x, b=x, dims=1).item() == 5


# ---- out=


def test_out():
    x, y = kiln.arange(3.0), kiln.ones(3)
    out = kiln.empty(3)
    assert kiln.add(x, y, out=out) is out and out.tolist() == [1, 2, 3]
    assert kiln.add(x, y, out=None).tolist() == [1, 2, 3]
    empty = kiln.empty(0)
    assert kiln.matmul(x, y, out=empty) is empty and empty.tolist() == 3
    whole = kiln.zeros(2, 3)
    kiln.mul(x, 2, out=whole[1])
    assert whole.tolist() == [[0, 0, 0], [0, 2, 4]]
    assert kiln.add(x, x, out=x).tolist() == [0, 2, 4]  # where out is an operand
    z = kiln.arange(6.0)
    kiln.cat([z[3:], z[:3]], out=z)
    assert z.tolist() == [3, 4, 5, 0, 1, 2]
    version = z._version
    kiln.neg(z, out=z)
    assert z._version > version


def test_out_of_several_results():
    x = kiln.tensor([[3.0, 1.0], [2.0, 5.0]])
    values, indices = kiln.empty(0), kiln.empty(0, dtype=kiln.int64)
    found = kiln.max(x, 1, out=(values, indices))
    assert found.values is values and found.indices is indices
    assert values.tolist() == [3, 5] and indices.tolist() == [0, 1]
    parts = [kiln.empty(0) for _ in range(3)]
    u, s, vh = kiln.linalg.svd(x, out=parts)
    assert u is parts[0] and (u * s @ vh).allclose(x, atol=1e-5)
    with pytest.raises(TypeError, match="tuple of 2"):
        kiln.sort(x, out=values)


def test_out_of_another_shape_or_dtype():
    x = kiln.arange(3.0)
    out = kiln.ones(2, 2)
    with pytest.warns(UserWarning, match="resized"):
        kiln.exp(x, out=out)
    assert out.shape == (3,)
    double = kiln.empty(3, dtype=kiln.float64)
    assert kiln.add(x, 1, out=double).tolist() == [1, 2, 3] and double.dtype == kiln.float64
    whole = kiln.empty(3, dtype=kiln.int64)
    with pytest.raises(RuntimeError, match="can't be cast"):
        kiln.add(x, 1, out=whole)
    assert kiln.sum(kiln.ones(3, dtype=kiln.int32), 0, out=kiln.empty((), dtype=kiln.int32)).dtype == kiln.int32
    with pytest.raises(RuntimeError, match="can't be cast"):
        kiln.sum(x, 0, out=kiln.empty((), dtype=kiln.int64))
    with pytest.raises(TypeError, match="must be Tensor"):
        kiln.add(x, 1, out=3)


def test_out_of_functions_that_make_tensors():
    whole = kiln.empty(2, dtype=kiln.int32)
    assert kiln.zeros(2, out=whole) is whole and whole.tolist() == [0, 0]
    assert kiln.arange(2, out=whole).tolist() == [0, 1] and whole.dtype == kiln.int32
    kiln.manual_seed(1)
    numbers = kiln.randn(4)
    kiln.manual_seed(1)
    assert kiln.randn(4, out=kiln.empty(4)).tolist() == numbers.tolist()


def test_out_has_no_gradient():
    x = kiln.ones(2, requires_grad=True)
    out = kiln.empty(2)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        kiln.add(x, 1, out=out)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        kiln.stack([x, x], out=out)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        kiln.add(out, 1, out=x)
    with kiln.no_grad():
        assert kiln.add(x, 1, out=out).tolist() == [2, 2]
        assert kiln.add(out, 1, out=x) is x


def test_out_is_left_when_the_op_fails():
    out = kiln.ones(2)
    with pytest.raises(RuntimeError):
        kiln.add(kiln.ones(2), kiln.ones(3), out=out)
    assert out.tolist() == [1, 1]
    with pytest.raises(TypeError):
        kiln.flip(out, (0,), out=out)  # PyTorch's has no out either


# ---- memory_format=, layout=, pin_memory=


def test_memory_format():
    x = kiln.arange(24.0).reshape(1, 2, 3, 4)
    for last in (x.contiguous(memory_format=kiln.channels_last), x.to(memory_format=kiln.channels_last),
                 x.clone(memory_format=kiln.channels_last), kiln.clone(x, memory_format=kiln.channels_last)):  # fmt: skip
        assert last.stride() == (24, 1, 8, 2) and last.tolist() == x.tolist()
        assert last.is_contiguous(memory_format=kiln.channels_last)
        assert not last.is_contiguous()
    assert not x.is_contiguous(memory_format=kiln.channels_last)
    assert x.double(memory_format=kiln.preserve_format).dtype == kiln.float64
    assert x.int(memory_format=kiln.channels_last).stride() == (24, 1, 8, 2)
    assert x.contiguous(memory_format=kiln.contiguous_format) is x
    assert kiln.zeros_like(x, memory_format=kiln.channels_last).stride() == (24, 1, 8, 2)
    assert kiln.empty(1, 2, 3, 4, memory_format=kiln.channels_last).stride() == (24, 1, 8, 2)
    assert kiln.ones(1, 2, 3, 4, 5).contiguous(memory_format=kiln.channels_last_3d).stride() == (120, 1, 40, 10, 2)
    with pytest.raises(RuntimeError, match="4 dims"):
        kiln.ones(2).contiguous(memory_format=kiln.channels_last)
    with pytest.raises(TypeError, match="memory format"):
        x.clone(memory_format="sideways")
    leaf = x.clone().requires_grad_()
    (leaf.contiguous(memory_format=kiln.channels_last) * x).sum().backward()
    assert leaf.grad.tolist() == x.tolist()


def test_layout_and_pin_memory():
    assert kiln.zeros(2, layout=kiln.strided, pin_memory=False).tolist() == [0, 0]
    assert kiln.ones(2).new_full((2,), 3, layout=kiln.strided).tolist() == [3, 3]
    assert kiln.tensor([1], pin_memory=True).tolist() == [1]
    with pytest.raises(RuntimeError, match="layout"):
        kiln.zeros(2, layout="sparse_coo")


# ---- Every op, beside PyTorch

TABLE = Table() if os.path.exists(PROGRAM) else None
MODULES = {"": "", "linalg": "linalg", "fft": "fft", "special": "special", "nn": "nn.functional"}


def declarations():
    """(module, name, names of the arguments, whether there is out=, whether it is a method), of all of
    PyTorch's functions, as its build reads them."""
    import torchgen

    path = pathlib.Path(torchgen.__file__).parent / "packaged/ATen/native/native_functions.yaml"
    for block in re.split(r"\n(?=- func: )", path.read_text()):
        head = re.match(r"- func: (\w+)(?:\.\w+)?\((.*)\) -> ", block.strip().split("\n")[0])
        if head is None or head[1].startswith("_") or "Dimname" in head[2]:
            continue
        module = re.search(r"python_module: (\w+)", block)
        module = module[1] if module else ""
        if module not in MODULES:
            continue
        variants = re.search(r"variants: (.*)", block)
        arguments = re.findall(r"(Tensor\(\w!\)|[\w\[\]?]+(?:\(\w!?[^)]*\))?[\[\]\d?]*) (\w+)(?==|,|$)", head[2])
        names = [name for kind, name in arguments if not re.fullmatch(r"Tensor\(\w!\)", kind) or name == "self"]
        has_out = any(re.fullmatch(r"Tensor\(\w!\)", kind) and name != "self" for kind, name in arguments)
        name = head[1].removeprefix(module + "_") if module in ("linalg", "fft", "special") else head[1]
        yield module, name, names, has_out, "method" in variants[1] if variants else False


def found(root, *path):
    for part in path:
        for name in part.split(".") if part else ():
            root = getattr(root, name, None)
    return root


# Functions of PyTorch's C++ interface that its Python functions of that name hide.
HIDDEN = """
    nn.functional.adaptive_avg_pool2d nn.functional.adaptive_avg_pool3d nn.functional.adaptive_max_pool2d
    nn.functional.adaptive_max_pool3d nn.functional.binary_cross_entropy nn.functional.elu
    nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool3d nn.functional.glu
    nn.functional.hardsigmoid nn.functional.hardswish nn.functional.hardtanh nn.functional.huber_loss
    nn.functional.leaky_relu nn.functional.max_pool2d_with_indices nn.functional.max_pool3d_with_indices
    nn.functional.max_unpool2d nn.functional.max_unpool3d nn.functional.mish nn.functional.mse_loss
    nn.functional.multi_margin_loss nn.functional.multilabel_margin_loss nn.functional.nll_loss
    nn.functional.silu nn.functional.smooth_l1_loss nn.functional.soft_margin_loss
""".split()


@needs_torch
def test_every_function_with_out_takes_it():
    import torch

    refused = []
    for module, name, _, has_out, _ in declarations():
        path = f"{MODULES[module]}.{name}".strip(".")
        mine = found(kiln, path)
        if not has_out or mine is None or found(torch, path) is None or path in HIDDEN:
            continue
        try:
            mine(out=3)
        except TypeError as error:
            if "incompatible function arguments" in str(error) and "out" in str(error).split("Invoked")[-1]:
                refused.append(path)
        except RuntimeError:
            pass
    assert not refused, sorted(set(refused))


def call_of(expression):
    """(path of the function, the call) of an expression torch.f(..)."""
    node = ast.parse(expression, mode="eval").body
    if not isinstance(node, ast.Call) or any(isinstance(a, ast.Starred) for a in node.args):
        return None, None
    path, part = [], node.func
    while isinstance(part, ast.Attribute):
        path.insert(0, part.attr)
        part = part.value
    if not isinstance(part, ast.Name) or part.id not in ("torch", "F"):
        return None, None
    return ".".join((["nn", "functional"] if part.id == "F" else []) + path), node


def run(case, expression, library):
    dtype = case["dtypes"][0]
    inputs = TABLE.inputs(case, dtype, library)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return evaluate(dict(case, python=expression), inputs, library)


def test_a_second_argument_alone_is_the_first():
    assert kiln.arange(end=3).tolist() == [0, 1, 2]
    assert kiln.arange(1, end=3).tolist() == kiln.arange(start=1, end=3).tolist() == [1, 2]
    assert kiln.arange(end=3, step=2, out=kiln.empty(0)).tolist() == [0, 2]
    counts = kiln.tensor([1, 2])
    assert kiln.repeat_interleave(repeats=counts).tolist() == [0, 1, 1]
    assert kiln.repeat_interleave(input=counts, repeats=2).tolist() == [1, 1, 2, 2]
    assert kiln.repeat_interleave(counts, repeats=counts, dim=0).tolist() == [1, 2, 2]
    with pytest.raises(TypeError, match="multiple values for argument 'end'"):
        kiln.arange(1, 2, end=3)


@needs_torch
@needs_cases
def test_every_case_with_its_arguments_by_name():
    """Positional arguments become keywords, by PyTorch's names."""
    import torch

    names = {}
    for module, name, arguments, has_out, _ in declarations():
        if not has_out:
            names.setdefault(f"{MODULES[module]}.{name}".strip("."), []).append(arguments)
    tried, wrong = 0, []
    for case in TABLE.cases:
        path, call = call_of(case["python"])
        for arguments in names.get(path, ()):
            if call is None or len(call.args) > len(arguments) or case["shape_only_why"]:
                continue
            words = [ast.keyword("input" if n == "self" else n, a) for n, a in zip(arguments, call.args)]
            other = ast.unparse(ast.Call(call.func, [], words + call.keywords))
            try:
                expected = run(case, other, torch)
            except Exception:  # these are not the names of this overload
                continue
            tried += 1
            try:
                compare(run(case, other, kiln), expected, 1e-5 * case["rtol_factor"])
            except Exception as error:
                if not case["peer"] and not case["peer_why"]:
                    wrong.append(f"{other}: {str(error).splitlines()[0]}")
    assert tried > 300
    assert not wrong, "\n".join(wrong)


@needs_torch
@needs_cases
def test_every_case_with_axis_and_keepdims():
    import torch

    tried, wrong = 0, []
    for case in TABLE.cases:
        other = re.sub(r"\bdim=", "axis=", case["python"])
        other = re.sub(r"\bkeepdim=", "keepdims=", other)
        if other == case["python"] or case["peer"] or case["peer_why"]:
            continue
        try:
            expected = run(case, other, torch)
        except Exception:
            continue
        tried += 1
        try:
            compare(run(case, other, kiln), expected, 1e-5 * case["rtol_factor"], bool(case["shape_only_why"]))
        except Exception as error:
            wrong.append(f"{other}: {str(error).splitlines()[0]}")
    assert tried > 30
    assert not wrong, "\n".join(wrong)


def with_out(call, results):
    """The call with out= of empty tensors like the results."""
    made = [f"torch.empty(0, dtype=torch.{str(r.dtype).split('.')[-1]})" for r in results]
    text = made[0] if len(made) == 1 else f"({', '.join(made)})"
    out = ast.keyword("out", ast.parse(text, mode="eval").body)
    return ast.unparse(ast.Call(call.func, call.args, call.keywords + [out]))


@needs_torch
@needs_cases
def test_every_case_with_out():
    import torch

    tried, wrong = 0, []
    for case in TABLE.cases:
        path, call = call_of(case["python"])
        if call is None or case["peer"] or case["peer_why"] or case["shape_only_why"]:
            continue
        try:
            plain = run(case, case["python"], torch)
            other = with_out(call, plain)
            expected = run(case, other, torch)
        except Exception:
            continue  # this one has no out= in PyTorch
        tried += 1
        try:
            compare(run(case, other, kiln), expected, 1e-5 * case["rtol_factor"])
        except Exception as error:
            wrong.append(f"{other}: {str(error).splitlines()[0]}")
    assert tried > 200
    assert not wrong, "\n".join(wrong)
