"""Results of elementwise ops lie in memory as PyTorch's do, in graphs, too."""

import random

import pytest

import kiln
from conftest import HAS_TORCH

UNARY = {
    "exp": lambda m, x: m.exp(x),
    "relu": lambda m, x: m.relu(x),
    "neg": lambda m, x: -x,
    "scale": lambda m, x: x * 2.5,
    "power": lambda m, x: x**2,
    "gelu": lambda m, x: m.nn.functional.gelu(x),
    "erfinv": lambda m, x: m.erfinv(x),
    "clamp": lambda m, x: m.clamp(x, -0.5, 0.5),
    "positive": lambda m, x: x > 0,
    "isnan": lambda m, x: m.isnan(x),
    "double": lambda m, x: x.to(m.float64),
    "integers": lambda m, x: (x * 10).to(m.int64) // 3,
    "half": lambda m, x: x.to(m.bfloat16) + 1,
    "bytes": lambda m, x: (x * 10).abs().to(m.uint8) > 300,
    "where": lambda m, x: m.where(x > 0, x, -x),
    "xor": lambda m, x: (x > 0) ^ (x > 0.5),
    "divide": lambda m, x: (x * 10).to(m.int32) // ((x * 5).to(m.int32).abs() + 1),
    "halves": lambda m, x: x.to(m.float16) * x.to(m.float16),
    "clone": lambda m, x: x.clone(),
    "zeros_like": lambda m, x: m.zeros_like(x),
    "full_like": lambda m, x: m.full_like(x, 3, dtype=m.int32),
    "row_major": lambda m, x: x.clone(memory_format=m.contiguous_format),
}
BINARY = {
    "add": lambda m, x, y: x + y,
    "less": lambda m, x, y: x < y,
    "less_equal": lambda m, x, y: x <= y,
    "maximum": lambda m, x, y: m.maximum(x, y),
    "hypot": lambda m, x, y: m.hypot(x, y),
}
TERNARY = {
    "lerp": lambda m, x, y, z: m.lerp(x, y, z),
    "addcmul": lambda m, x, y, z: m.addcmul(x, y, z, value=0.5),
}
CASES = [*UNARY.items(), *BINARY.items(), *TERNARY.items()]


def draw_shape(rng):
    return [rng.choice([1, 2, 3, 4, 5]) for _ in range(rng.randint(1, 4))]


def draw_views(rng, shape):
    """What to do to a row-major tensor so that it lies some way and broadcasts to the shape."""
    own = [1 if rng.random() < 0.2 else n for n in shape]
    if rng.random() < 0.3:
        own = own[rng.randint(0, len(own) - 1) :]
    order = list(range(len(own)))
    if rng.random() < 0.7:
        rng.shuffle(order)
    step = rng.random() < 0.2
    expand = rng.random() < 0.2
    return own, order, step, shape[len(shape) - len(own) :] if expand else own


def laid(module, values, views):
    own, order, step, expanded = views
    x = module.tensor(values)
    memory = [own[d] for d in order]
    if step:  # every other column of a wider tensor
        x = x.reshape(memory)
        wide = module.zeros(*memory[:-1], 2 * memory[-1])
        wide[..., ::2] = x
        x = wide[..., ::2]
    else:
        x = x.reshape(memory)
    return x.permute([order.index(d) for d in range(len(order))]).expand(expanded)


def operands(rng, count):
    """For `count` operands of one shape: their values and how each of them lies."""
    shape = draw_shape(rng)
    out = []
    for _ in range(count):
        views = draw_views(rng, shape)
        numel = 1
        for n in views[0]:
            numel *= n
        out.append(([rng.uniform(-0.9, 0.9) for _ in range(numel)], views))
    return out


def strides_of(x):
    """Those that mean something."""
    return [step for n, step in zip(x.shape, x.stride()) if n > 1]


@pytest.mark.skipif(not HAS_TORCH, reason="SKIPPED: PyTorch is not installed")
@pytest.mark.parametrize(("name", "f"), CASES, ids=[name for name, _ in CASES])
def test_results_lie_as_those_of_pytorch(name, f):
    import torch

    rng = random.Random(name)
    count = 1 if name in UNARY else 2 if name in BINARY else 3
    turned = 0
    for _ in range(200):
        drawn = operands(rng, count)
        given = [(laid(torch, *x), laid(kiln, *x)) for x in drawn]
        theirs = f(torch, *[x for x, _ in given])
        ours = f(kiln, *[x for _, x in given])
        turned += not theirs.is_contiguous()
        # The stride of a dim of size 1 may be anything, and PyTorch's rule looks at it.
        if all(x.stride() == y.stride() for x, y in given):
            assert strides_of(ours) == strides_of(theirs), drawn
        expected = theirs.double().tolist()
        assert ours.double().reshape(-1).tolist() == pytest.approx(
            torch.tensor(expected).reshape(-1).tolist(), rel=1e-2, abs=1e-2
        )
    assert turned > 5 or name == "row_major"


def test_like_functions_keep_the_layout_and_can_be_leaves():
    x = kiln.zeros(2, 3, 4).permute(2, 0, 1)
    for f in (kiln.empty_like, kiln.zeros_like, kiln.ones_like, kiln.rand_like, kiln.randn_like):
        y = f(x, requires_grad=True)
        assert y.stride() == x.stride()
        assert y.is_leaf and y.requires_grad
        (y * y).sum().backward()
        assert y.grad.shape == y.shape
        assert f(x, memory_format=kiln.contiguous_format, requires_grad=True).is_contiguous()
    assert kiln.randint_like(x, 5).stride() == x.stride()
    y = kiln.full_like(x, 2.0)
    y[0] = 5  # writes of views of it
    assert y.sum() == 2 * 24 + 3 * 6
    assert kiln.empty_like(x[::2]).is_contiguous() is False
    assert kiln.zeros_like(kiln.ones(2, 1).expand(2, 3)).is_contiguous()


def test_gradients_of_a_clone_that_lies_another_way():
    x = kiln.randn(3, 4, dtype=kiln.float64, requires_grad=True)
    y = x.t().clone()
    assert y.stride() == (1, 4)
    weights = kiln.arange(12.0, dtype=kiln.float64).reshape(4, 3)
    (y * weights).sum().backward()
    assert x.grad.tolist() == weights.t().tolist()
    z = kiln.view_as_complex(kiln.randn(3, 4, 2)).t().clone()
    assert z.stride() == (1, 4)


def chain(x, y):
    a = (x.transpose(1, 2) * 2 + y.transpose(1, 2)).sin()
    b = a.exp() - y.transpose(1, 2)
    return a.sum(1), b, (b > 1).to(kiln.float32) * a, b.transpose(1, 2).view(-1)


def test_graphs_give_the_layout_and_the_bits_of_eager():
    x, y = kiln.randn(8, 64, 128), kiln.randn(8, 64, 128)
    compiled = kiln.compile(chain, options={"exact": True})
    for _ in range(3):
        for ours, eager in zip(compiled(x, y), chain(x, y)):
            assert ours.stride() == eager.stride()
            assert ours.tolist() == eager.tolist()
    assert "fused" in str(compiled.explain())


def test_graphs_fuse_rows_with_one_that_is_broadcast():
    x, row = kiln.randn(256, 300).t(), kiln.randn(256)

    def f(x, row):
        return ((x + row).exp() * row - 1).relu()

    compiled = kiln.compile(f, options={"exact": True})
    for _ in range(3):
        out = compiled(x, row)
        assert out.stride() == f(x, row).stride() == (1, 300)
        assert out.tolist() == f(x, row).tolist()


def test_windows_of_what_lies_another_way():
    def f(x):
        y = x.t() * 2
        return y.diagonal() + y.unfold(0, 3, 1)[0, 0, 0]

    x = kiln.randn(300, 200)
    compiled = kiln.compile(f)
    for _ in range(3):
        assert compiled(x).tolist() == f(x).tolist()


def test_gradients_of_leaves_are_row_major(lib):
    def leaf(*shape):
        return lib.ones(*shape, requires_grad=True)

    x = lib.ones(3, 4).t()
    for shape, f in (
        ((4, 3), lambda w: x * w),
        ((4, 3), lambda w: x.exp() * w.exp()),
        ((4, 3), lambda w: w.t() @ lib.ones(4, 5)),
        ((2, 3, 4), lambda w: w.permute(2, 0, 1) * lib.ones(4, 2, 3)),
    ):
        w = leaf(*shape)
        for _ in range(2):
            f(w).sum().backward()
            assert w.grad.is_contiguous()
            assert w.grad.view(-1).shape == (w.numel(),)
        w = leaf(*shape)
        f(w).sum().backward(inputs=[w])
        assert w.grad.is_contiguous()
    a, b = leaf(4, 3), leaf(4, 3)
    (a + b).mul(x).sum().backward()
    a.grad.add_(1)
    assert b.grad.sum() == 12 and a.grad.sum() == 24
