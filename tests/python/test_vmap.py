"""vmap: every op case for a batch equals the op for each element, in values and gradients; beside
torch.func.vmap."""

import os
import warnings

import numpy as np
import pytest

import kiln
from conftest import HAS_TORCH
from kiln.func import functional_call, grad, stack_module_state, vmap
from op_cases import PROGRAM, TOLERANCE, Table, as_tensor, compare, evaluate, values

needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="SKIPPED: PyTorch is not installed")
needs_cases = pytest.mark.skipif(not os.path.exists(PROGRAM), reason=f"SKIPPED: {PROGRAM} is not built")

# What vmap says when it cannot: the values decide about shapes or the program, LAPACK and other host
# functions read memory, or a view with strides of its own is asked for.
CANNOT = "vmap:"
# Beside linalg.
REFUSED = (
    "cholesky_inverse cholesky_solve logdet lu_unpack ormqr nn.functional.rnnt_loss median nanmedian"
    " quantile nanquantile"
).split()


def near(a, b, tolerance=1e-5):
    assert tuple(a.shape) == tuple(b.shape)
    np.testing.assert_allclose(values(a), values(b), rtol=tolerance, atol=tolerance)


def batch_of(x):
    """Three inputs like x, of which the first is x."""
    return kiln.stack([x, x * 1.01, x * 0.99])


def run(case, inputs):
    """The results of a case, and why there are none."""
    kiln.manual_seed(0)
    out = evaluate(case, inputs, kiln)
    return [x for x in out if isinstance(x, kiln.Tensor)]


@needs_cases
@pytest.mark.parametrize("which", ["first", "all"])
def test_every_op_case(which):
    warnings.simplefilter("ignore")
    failures, computed, refused = [], 0, {}
    table = Table()
    for case in table.cases:
        kinds = case["inputs"] or []
        places = [i for i, kind in enumerate(kinds) if kind == "real"]
        if not places or case["shape_only_why"]:
            continue
        places = places[:1] if which == "first" else places
        dtype = case["dtypes"][0]
        if dtype not in ("float32", "float64"):
            continue
        inputs = table.inputs(case, dtype)
        batches = {i: batch_of(inputs[i]) for i in places}

        def op(*xs):
            return run(case, list(xs))

        each = []
        try:
            for k in range(3):
                each.append(op(*(batches[i][k].clone() if i in batches else x for i, x in enumerate(inputs))))
        except Exception:
            continue  # the other inputs are not legal
        given = [batches.get(i, x) for i, x in enumerate(inputs)]
        dims = tuple(0 if i in batches else None for i in range(len(inputs)))
        try:
            found = vmap(op, in_dims=dims)(*given)
        except kiln.Error as error:
            if CANNOT not in str(error):
                failures.append(f"{case['python']}: {error!r}")
            refused[case["name"]] = str(error)
            continue
        computed += 1
        expected = [kiln.stack(list(xs)) for xs in zip(*each)]
        try:
            compare(found, expected, 4 * TOLERANCE[dtype] * case["rtol_factor"])
        except AssertionError as error:
            failures.append(f"{case['python']}: {error}"[:300])
    assert computed > 850
    unexpected = [n for n in refused if not n.startswith("linalg.") and n not in REFUSED]
    assert not unexpected, unexpected
    assert not failures, f"{len(failures)} of {computed}:\n" + "\n".join(failures)




@needs_cases
def test_gradients_of_every_op_case():
    """Of the elements, inside of vmap; and of the batch and what all share, outside."""
    warnings.simplefilter("ignore")
    failures, computed = [], 0
    table = Table()
    for case in table.cases:
        kinds = case["inputs"] or []
        if not kinds or kinds[0] != "real" or case["shape_only_why"] or "float64" not in case["dtypes"]:
            continue
        inputs = table.inputs(case, "float64")
        others = [x.clone().requires_grad_() if k == "real" else x for x, k in zip(inputs, kinds)][1:]
        batch = batch_of(inputs[0])

        def loss(x, *rest):
            out = run(case, [x, *rest])
            return sum((y * y.detach().cos()).sum() for y in out if y.is_floating_point() and y.requires_grad)

        def of_each(f):
            return kiln.stack([f(batch[k].clone(), *others) for k in range(3)])

        def gradients(total):
            leaves = [x for x in (whole, *others) if x.requires_grad]
            found = kiln.autograd.grad(total, leaves, allow_unused=True)
            return [kiln.zeros_like(x) if g is None else g for x, g in zip(leaves, found)]

        dims = (0, *(None for _ in others))
        try:
            expected = [of_each(lambda *xs: grad(loss)(*[x.detach() for x in xs]))]
            whole = batch.clone().requires_grad_()
            expected += gradients(sum(loss(whole[k], *others) for k in range(3)))
        except Exception:
            continue
        try:
            found = [vmap(grad(loss), in_dims=dims)(batch, *[x.detach() for x in others])]
            whole = batch.clone().requires_grad_()
            found += gradients(vmap(loss, in_dims=dims)(whole, *others).sum())
        except kiln.Error as error:
            if CANNOT not in str(error) or case["name"] not in REFUSED and not case["name"].startswith("linalg"):
                failures.append(f"{case['python']}: {error!r}"[:300])
            continue
        computed += 1
        try:
            compare(found, expected, 1e-6 * case["rtol_factor"])
        except AssertionError as error:
            failures.append(f"{case['python']}: {error}"[:300])
    assert not failures, f"{len(failures)} of {computed}:\n" + "\n".join(failures)
    assert computed > 400


# ---- Beside PyTorch


def stacked_net(lib, seed):
    lib.manual_seed(seed)
    return lib.nn.Sequential(
        lib.nn.Conv2d(1, 4, 3), lib.nn.GroupNorm(2, 4), lib.nn.GELU(), lib.nn.MaxPool2d(2),
        lib.nn.Flatten(), lib.nn.Linear(36, 8), lib.nn.LayerNorm(8), lib.nn.Linear(8, 3),
    )


@needs_torch
def test_per_sample_gradients_are_pytorchs():
    import torch

    mine = stacked_net(kiln, 0)
    theirs = stacked_net(torch, 0)
    theirs.load_state_dict({k: as_tensor(v, torch) for k, v in mine.state_dict().items()})
    x, t = kiln.randn(5, 1, 8, 8), kiln.tensor([0, 1, 2, 1, 0])
    found = []
    for lib, net in ((kiln, mine), (torch, theirs)):
        params = {k: p.detach() for k, p in net.named_parameters()}

        def loss(params, x, t):
            out = lib.func.functional_call(net, params, (x.unsqueeze(0),))
            return lib.nn.functional.cross_entropy(out, t.unsqueeze(0))

        each = lib.func.vmap(lib.func.grad(loss), in_dims=(None, 0, 0))
        found.append(each(params, as_tensor(x, lib), as_tensor(t, lib)))
    for key in found[0]:
        near(found[0][key], found[1][key], 2e-5)
    # Their sum is the gradient of the sum.
    kiln.nn.functional.cross_entropy(mine(x), t, reduction="sum").backward()
    for key, p in mine.named_parameters():
        near(found[0][key].sum(0), p.grad, 1e-4)


@needs_torch
def test_ensembles_are_pytorchs():
    import torch

    nets = [stacked_net(kiln, seed) for seed in range(3)]
    others = [stacked_net(torch, 0) for _ in nets]
    for net, other in zip(nets, others):
        other.load_state_dict({k: as_tensor(v, torch) for k, v in net.state_dict().items()})
    x = kiln.randn(3, 2, 1, 8, 8)
    for in_dims, data in (((0, 0, None), x[0]), ((0, 0, 0), x)):
        found = []
        for lib, models in ((kiln, nets), (torch, others)):
            params, buffers = lib.func.stack_module_state(models)
            call = lambda p, b, y: lib.func.functional_call(models[0], (p, b), (y,))
            found.append(lib.func.vmap(call, in_dims=in_dims)(params, buffers, as_tensor(data, lib)))
        near(found[0].detach(), found[1].detach(), 2e-5)
    each = [net(y) for net, y in zip(nets, x)]
    near(found[0].detach(), kiln.stack(each).detach(), 2e-5)
    # Gradients of the stacked parameters are those of the models.
    params, buffers = stack_module_state(nets)
    call = lambda p, b, y: functional_call(nets[0], (p, b), (y,))
    vmap(call)(params, buffers, x).square().sum().backward()
    sum(y.square().sum() for y in each).backward()
    for key, p in params.items():
        near(p.grad, kiln.stack([dict(net.named_parameters())[key].grad for net in nets]), 1e-4)


@needs_torch
def test_attention_and_embeddings():
    import torch

    def f(lib):
        def run(table, words, mask):
            x = lib.nn.functional.embedding(words, table).reshape(2, 2, 3, 4)
            return lib.nn.functional.scaled_dot_product_attention(x, x * 0.5, x + 1, attn_mask=mask)
        return run

    table, words = kiln.randn(7, 4), kiln.randint(0, 7, (5, 2, 6))
    mask = kiln.randn(5, 3, 3)
    for dims in ((None, 0, 0), (None, 0, None)):
        given = (table, words, mask if dims[2] == 0 else mask[0])
        near(
            vmap(f(kiln), in_dims=dims)(*given),
            torch.func.vmap(f(torch), in_dims=dims)(*(as_tensor(x, torch) for x in given)),
        )
    loss = lambda t, w: f(kiln)(t, w, mask[0]).square().sum()
    each = vmap(grad(loss), in_dims=(None, 0))(table, words)
    near(each, kiln.stack([grad(loss)(table, w) for w in words]), 1e-4)


# ---- Dims, structures, chunks


def test_dims(lib):
    vmap = lib.func.vmap
    x = lib.arange(24.0).reshape(2, 3, 4)
    assert vmap(lambda a: a.sum(), in_dims=1)(x).tolist() == x.sum((0, 2)).tolist()
    assert vmap(lambda a: a.sum(), in_dims=-1)(x).tolist() == x.sum((0, 1)).tolist()
    assert vmap(lambda a: a * 2, in_dims=1, out_dims=2)(x).shape == (2, 4, 3)
    assert vmap(lambda a: a * 2, in_dims=1, out_dims=-1)(x).shape == (2, 4, 3)
    y = vmap(lambda a, b: (a + b, a), in_dims=(0, None), out_dims=(0, 1))(x, x[0])
    assert y[0].shape == (2, 3, 4) and y[1].shape == (3, 2, 4)
    tree = vmap(lambda d: {"s": d["a"] + d["b"][0]}, in_dims=({"a": 0, "b": [1]},))(
        {"a": x[0], "b": [x[0].T]}
    )
    assert lib.equal(tree["s"], x[0] * 2)
    assert vmap(lambda a: lib.ones(2))(x).shape == (2, 2)
    assert lib.equal(vmap(lambda a, scale: a * scale)(x, scale=x[0]), x * x[0])
    for size in (1, 2, 3, 7):
        z = vmap(lambda a: a.cumsum(0), in_dims=2, out_dims=2, chunk_size=size)(x)
        assert lib.equal(z, x.cumsum(0))
    nested = vmap(vmap(lambda a, b: a * b, in_dims=(None, 0)), in_dims=(0, None))
    assert lib.equal(nested(x[0, 0], x[1, 0]), lib.outer(x[0, 0], x[1, 0]))
    assert vmap(lambda a: lib.func.vmap(lambda b: b.sum())(a))(x).shape == (2, 3)


def test_derivatives(lib):
    f = lib.func
    x = lib.linspace(-1, 1, 6).reshape(3, 2)
    assert lib.allclose(f.vmap(f.jacrev(lambda a: a.sin()))(x), lib.diag_embed(x.cos()))
    assert lib.allclose(f.vmap(f.hessian(lambda a: (a**3).sum()))(x), lib.diag_embed(6 * x))
    third = f.vmap(f.grad(f.grad(lambda a: a**4)))(x[:, 0])
    assert lib.allclose(third, 12 * x[:, 0] ** 2)
    outside = f.hessian(lambda a: f.vmap(lambda r: r.prod() * r.sum())(a).sum())(x)
    plain = f.hessian(lambda a: (a.prod(1) * a.sum(1)).sum())(x)
    assert lib.allclose(outside, plain, atol=1e-5)
    w = lib.ones(2, requires_grad=True)
    f.vmap(lambda a: (a * w).sum().exp())(x).sum().backward()
    expected = (x * (x @ w.detach()).exp().unsqueeze(1)).sum(0)
    assert lib.allclose(w.grad, expected)


def test_writes_in_place(lib):
    x = lib.arange(6.0).reshape(3, 2)

    def f(a):
        b = a.clone()
        b.add_(1).mul_(2)
        b[0] = a[1]
        return b

    assert lib.func.vmap(f)(x).tolist() == [[1, 4], [3, 8], [5, 12]]
    shared = lib.zeros(2)
    with pytest.raises(RuntimeError):
        lib.func.vmap(lambda a: shared.add_(a))(x)
    assert shared.tolist() == [0, 0]


def test_random_numbers(lib):
    vmap, x = lib.func.vmap, lib.zeros(4, 100)
    with pytest.raises(RuntimeError, match="random"):
        vmap(lambda a: a + lib.rand(100))(x)
    with pytest.raises(RuntimeError, match="random"):
        vmap(lambda a: lib.nn.functional.dropout(a))(x)
    same = vmap(lambda a: a + lib.randn(100), randomness="same")(x)
    assert all(lib.equal(same[0], row) for row in same)
    different = vmap(lambda a: a + lib.randn(100), randomness="different")(x)
    assert len({tuple(row.tolist()) for row in different}) == 4
    y = vmap(lambda a: lib.nn.functional.dropout(a + 1), randomness="different")(x)
    assert len({tuple(row.tolist()) for row in y}) == 4 and set(y.unique().tolist()) == {0, 2}
    y = vmap(lambda a: lib.nn.functional.dropout(a + 1), randomness="same")(x)
    assert all(lib.equal(y[0], row) for row in y)


def test_gradients_through_dropout():
    x = kiln.ones(3, 50)
    f = lambda a: kiln.nn.functional.dropout(a, 0.5).square().sum()
    g = vmap(grad(f), randomness="different")(x)
    assert set(g.unique().tolist()) == {0, 8}
    whole = x.clone().requires_grad_()
    y = vmap(lambda a: kiln.nn.functional.dropout(a, 0.5), randomness="different")(whole)
    y.sum().backward()
    assert kiln.equal(whole.grad, y)


def test_wrong_calls(lib):
    vmap, x = lib.func.vmap, lib.ones(3, 2)
    same = lambda a: a
    for call in (
        lambda: vmap(same)(),
        lambda: vmap(same, in_dims=None)(x),
        lambda: vmap(same, in_dims=(0, 0))(x),
        lambda: vmap(same, in_dims=2)(x),
        lambda: vmap(same, in_dims="0")(x),
        lambda: vmap(lambda a, b: a, in_dims=0)(x, 3),
        lambda: vmap(lambda a, b: a)(x, lib.ones(2)),
        lambda: vmap(lambda a: 3)(x),
        lambda: vmap(same, out_dims=(0, 0))(x),
    ):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(RuntimeError, match="randomness"):
        vmap(same, randomness="some")(x)
    with pytest.raises(ValueError, match="chunk_size"):
        vmap(same, chunk_size=0)(x)
    with pytest.raises(RuntimeError):
        vmap(lambda a: a * a.sum().item())(x)
    with pytest.raises(RuntimeError):
        lib.func.stack_module_state([])
    # A call that failed leaves nothing behind.
    assert vmap(same)(x).shape == (3, 2) and (lib.ones(2) + lib.rand(2)).shape == (2,)


def test_profiles_see_what_a_batch_computes():
    x = kiln.ones(3, 4)
    for _ in range(2):
        with kiln.profiler.profile() as profile:
            vmap(lambda a: a.exp())(x)
        rows = {row["op"]: row for row in profile.rows()}
        assert rows["float_exp"]["bytes"] >= 2 * 4 * 12
        assert vmap(lambda a: a.exp())(x).shape == (3, 4)


INDEXED = [
    lambda t, k: t[k[0]],
    lambda t, k: t[k],
    lambda t, k: t[k[:, None], 1:],
    lambda t, k: t[:, k[1]],
    lambda t, k: t[..., k, None],
    lambda t, k: t[0, k],
]


@pytest.mark.parametrize("f", INDEXED)
def test_indices_of_a_batch(f):
    x = kiln.arange(3 * 4 * 4.0).reshape(3, 4, 4)
    k = kiln.tensor([[0, 3], [-1, 2], [2, 1]])
    slope = grad(lambda t, k: (f(t, k) ** 2).sum())
    for of_one in (f, slope):
        want = kiln.stack([of_one(t, i) for t, i in zip(x, k)])
        np.testing.assert_array_equal(vmap(of_one)(x, k).numpy(), want.numpy())


@needs_torch
def test_indices_of_a_batch_are_as_in_pytorch():
    import torch

    for f in INDEXED[1:3] + INDEXED[4:]:  # the others read values there
        ours, theirs = (
            over(f)(
                lib.arange(3 * 4 * 4.0).reshape(3, 4, 4), lib.tensor([[0, 3], [-1, 2], [2, 1]])
            ).numpy()
            for lib, over in ((kiln, vmap), (torch, torch.func.vmap))
        )
        np.testing.assert_array_equal(ours, theirs)


def test_indices_of_a_batch_are_checked():
    x, k = kiln.zeros(2, 4), kiln.tensor([[0], [4]])
    with pytest.raises(IndexError, match="index 4 is out of range"):
        vmap(lambda t, k: t[k])(x, k)
    # A batch of batches.
    table = kiln.arange(4.0)
    picked = vmap(vmap(lambda i: table[i]))(kiln.tensor([[1, 3], [0, -1]]))
    assert picked.tolist() == [[1.0, 3.0], [0.0, 3.0]]


def test_multinomial_draws_for_each_element():
    kiln.manual_seed(3)
    weights = kiln.tensor([[1.0, 0.0, 3.0, 4.0], [0.0, 5.0, 5.0, 0.0]])
    for replacement, count in ((True, 4000), (False, 1)):
        many = weights if replacement else weights.repeat_interleave(4000, 0)
        drawn = kiln.vmap(
            lambda w: kiln.multinomial(w, count, replacement), randomness="different"
        )(many)
        assert drawn.dtype == kiln.int64 and drawn.shape == (len(many), count)
        for row, w in zip(drawn.reshape(2, 4000), weights):
            shares = kiln.bincount(row, minlength=4) / 4000
            assert kiln.allclose(shares, w / w.sum(), atol=0.03)
    # Without replacement: each at most once, and what has no weight last.
    drawn = kiln.vmap(lambda w: w.multinomial(4), randomness="different")(kiln.ones(500, 4))
    assert drawn.sort(1)[0].eq(kiln.arange(4)).all()
    assert drawn.unique(dim=0).shape[0] == 24
    drawn = kiln.vmap(lambda w: w.multinomial(3), randomness="different")(weights[:1].expand(500, 4))
    assert not drawn.eq(1).any()
    rows = kiln.vmap(lambda w: kiln.multinomial(w, 2), randomness="different")(kiln.ones(3, 5, 4))
    assert rows.shape == (3, 5, 2)
    fixed = kiln.vmap(
        lambda i: kiln.multinomial(kiln.ones(20), 1) + i, randomness="different"
    )(kiln.zeros(50, dtype=kiln.int64))
    assert fixed.unique().numel() > 5
    same = kiln.vmap(lambda w: kiln.multinomial(w, 4), randomness="same")(kiln.ones(50, 4))
    assert same.unique(dim=0).shape[0] == 1
    with pytest.raises(RuntimeError, match="randomness"):
        kiln.vmap(lambda w: kiln.multinomial(w, 1))(weights)
    with pytest.raises(ValueError, match="negative"):  # outside nothing has changed
        kiln.multinomial(-weights, 1)
    out = kiln.zeros(2, dtype=kiln.int64)
    assert kiln.multinomial(kiln.tensor([0.0, 1.0]), 1, out=out) is out and out.tolist() == [1]
