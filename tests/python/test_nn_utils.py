"""nn.utils: what is claimed holds for Kiln and for PyTorch; values are compared where they depend on
no random numbers."""

import copy
import pickle
import warnings

import numpy as np
import pytest

import kiln
from conftest import HAS_TORCH
from op_cases import as_tensor, values

if HAS_TORCH:
    import torch.nn.utils.prune  # noqa: F401  which torch.nn.utils leaves out

needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="SKIPPED: PyTorch is not installed")


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


def hooks(module):
    return module.__dict__.get("_forward_pre_hooks", {})


def near(a, b, tolerance=1e-5):
    assert tuple(a.shape) == tuple(b.shape)
    np.testing.assert_allclose(values(a), values(b), rtol=tolerance, atol=tolerance)


def same_state(mine, theirs, tolerance=1e-5):
    a, b = mine.state_dict(), theirs.state_dict()
    assert list(a) == list(b)
    for key in a:
        near(a[key], b[key], tolerance)


def both(make):
    """make(library) for both, with the same state."""
    import torch

    mine, theirs = make(kiln), make(torch)
    state = {k: as_tensor(v, torch) for k, v in mine.state_dict().items()}
    theirs.load_state_dict(state)
    return mine, theirs


# ---- Vectors, norms, formats


def test_vectors_of_parameters(lib):
    net = lib.nn.Sequential(lib.nn.Linear(2, 3), lib.nn.Linear(3, 1, bias=False))
    vector = lib.nn.utils.parameters_to_vector(net.parameters())
    assert vector.shape == (12,) and vector.requires_grad
    vector.sum().backward()
    assert net[0].weight.grad.tolist() == [[1, 1]] * 3
    lib.nn.utils.vector_to_parameters(lib.arange(12.0), net.parameters())
    assert net[0].weight.tolist() == [[0, 1], [2, 3], [4, 5]] and net[1].weight.tolist() == [[9, 10, 11]]
    with pytest.raises(TypeError, match="Tensor|tensor"):
        lib.nn.utils.vector_to_parameters([1.0], net.parameters())


def test_total_norms(lib):
    a = lib.tensor([3.0, 4.0], requires_grad=True)
    b = lib.tensor([12.0], requires_grad=True)
    a.grad, b.grad = lib.tensor([3.0, 4.0]), lib.tensor([12.0])
    total = lib.nn.utils.get_total_norm([a.grad, b.grad])
    assert total.item() == 13 and lib.nn.utils.get_total_norm([a.grad, b.grad], 1.0).item() == 19
    assert lib.nn.utils.get_total_norm([]).item() == 0
    lib.nn.utils.clip_grads_with_norm_([a, b], 6.5, total)
    assert a.grad.tolist() == pytest.approx([1.5, 2], rel=1e-5)
    lib.nn.utils.clip_grads_with_norm_([a, b], 100.0, total)
    assert b.grad.tolist() == pytest.approx([6.0], rel=1e-5)
    with pytest.raises(RuntimeError, match="non-finite"):
        lib.nn.utils.get_total_norm([lib.tensor([float("inf")])], error_if_nonfinite=True)


def test_formats_and_no_initial_values(lib):
    net = lib.nn.Sequential(lib.nn.Conv2d(2, 3, 3), lib.nn.Linear(2, 2))
    before = net[0].weight.detach().clone()
    assert lib.nn.utils.convert_conv2d_weight_memory_format(net, lib.channels_last) is net
    assert net[0].weight.is_contiguous(memory_format=lib.channels_last)
    assert lib.equal(net[0].weight, before)
    layer = lib.nn.utils.skip_init(lib.nn.Linear, 3, 5, bias=False)
    assert layer.weight.shape == (5, 3) and layer.weight.device.type == "cpu"
    with pytest.raises(RuntimeError, match="Expected a Module"):
        lib.nn.utils.skip_init(int, 3)
    with pytest.raises(RuntimeError, match="device"):
        lib.nn.utils.skip_init(lib.nn.ReLU)


def test_fused_layers(lib):
    lib.manual_seed(0)
    f = lib.nn.utils
    for layer, bn, x, transpose in (
        (lib.nn.Linear(4, 3), lib.nn.BatchNorm1d(3), lib.randn(5, 4), None),
        (lib.nn.Linear(4, 3, bias=False), lib.nn.BatchNorm1d(3), lib.randn(5, 4), None),
        (lib.nn.Conv2d(2, 3, 3), lib.nn.BatchNorm2d(3), lib.randn(2, 2, 5, 5), False),
        (lib.nn.ConvTranspose2d(2, 3, 3), lib.nn.BatchNorm2d(3), lib.randn(2, 2, 5, 5), True),
    ):
        bn.running_mean.uniform_(-1, 1), bn.running_var.uniform_(0.5, 2)
        with lib.no_grad():
            bn.weight.uniform_(0.5, 2), bn.bias.uniform_(-1, 1)
        with pytest.raises(AssertionError):
            f.fuse_linear_bn_eval(layer, bn) if transpose is None else f.fuse_conv_bn_eval(layer, bn)
        layer.eval(), bn.eval()
        expected = bn(layer(x))
        if transpose is None:
            fused = f.fuse_linear_bn_eval(layer, bn)
        else:
            fused = f.fuse_conv_bn_eval(layer, bn, transpose)
        assert type(fused) is type(layer) and fused.weight.requires_grad
        assert lib.allclose(fused(x), expected, atol=1e-5)
    with pytest.raises(AssertionError, match="num_features"):
        f.fuse_linear_bn_eval(lib.nn.Linear(4, 3).eval(), lib.nn.BatchNorm1d(2).eval())


# ---- Hooks that compute a weight


@needs_torch
@pytest.mark.parametrize("dim", [0, 1, None, -1])
def test_weight_norm_is_pytorchs(dim):
    import torch

    def make(lib):
        lib.manual_seed(0)
        return lib.nn.utils.weight_norm(lib.nn.Linear(4, 3), dim=dim)

    mine, theirs = both(make)
    same_state(mine, theirs)
    x = kiln.randn(2, 4)
    found = []
    for lib, layer in ((kiln, mine), (torch, theirs)):
        out = layer(as_tensor(x, lib))
        out.square().sum().backward()
        found.append([out, layer.weight_g.grad, layer.weight_v.grad, layer.bias.grad])
        with pytest.raises(RuntimeError, match="Cannot register two"):
            lib.nn.utils.weight_norm(layer)
        before = layer.weight.detach().clone()
        lib.nn.utils.remove_weight_norm(layer)
        assert [n for n, _ in layer.named_parameters()] == ["bias", "weight"]
        assert lib.equal(layer.weight, before) and not hooks(layer)
        layer(as_tensor(x, lib))
        with pytest.raises(ValueError, match="not found"):
            lib.nn.utils.remove_weight_norm(layer)
    for a, b in zip(*found):
        near(a.detach(), b.detach(), 1e-4)


@needs_torch
@pytest.mark.parametrize("kind", ["Linear", "Conv2d", "ConvTranspose2d"])
@pytest.mark.parametrize("newer", [False, True])
def test_spectral_norm_is_pytorchs(kind, newer):
    import torch

    def make(lib):
        lib.manual_seed(0)
        layer = getattr(lib.nn, kind)(*((4, 3) if kind == "Linear" else (4, 3, 2)))
        part = lib.nn.utils.parametrizations if newer else lib.nn.utils
        return part.spectral_norm(layer, n_power_iterations=2)

    mine, theirs = both(make)
    x = kiln.randn(2, 4) if kind == "Linear" else kiln.randn(2, 4, 5, 5)
    for train in (True, True, False):
        found = []
        for lib, layer in ((kiln, mine), (torch, theirs)):
            layer.train(train).zero_grad()
            out = layer(as_tensor(x, lib))
            out.square().sum().backward()
            found.append([out.detach(), *(p.grad for p in layer.parameters())])
        for a, b in zip(*found):
            near(a, b, 1e-3)
        same_state(mine, theirs, 1e-4)
    if not newer:
        assert mine.state_dict()._metadata[""]["spectral_norm"] == {"weight.version": 1}
        for lib, layer in ((kiln, mine), (torch, theirs)):
            lib.nn.utils.remove_spectral_norm(layer)
            assert list(layer.state_dict()) == ["bias", "weight"]
            with pytest.raises(ValueError, match="not found"):
                lib.nn.utils.remove_spectral_norm(layer)
        same_state(mine, theirs, 1e-4)
    else:
        norm = kiln.linalg.matrix_norm(mine.weight.movedim(int("Trans" in kind), 0).flatten(1), 2)
        assert norm.item() == pytest.approx(1, abs=0.05)


def test_two_forwards_before_a_backward(lib):
    for wrap in (lib.nn.utils.spectral_norm, lib.nn.utils.parametrizations.spectral_norm):
        layer = wrap(lib.nn.Linear(3, 2))
        (layer(lib.ones(1, 3)) - layer(lib.zeros(1, 3))).sum().backward()


def test_wrong_norms(lib):
    f = lib.nn.utils
    with pytest.raises(ValueError, match="n_power_iterations"):
        f.spectral_norm(lib.nn.Linear(2, 2), n_power_iterations=0)
    with pytest.raises(ValueError, match="n_power_iterations"):
        f.parametrizations.spectral_norm(lib.nn.Linear(2, 2), n_power_iterations=0)
    with pytest.raises(IndexError, match="out of range"):
        f.parametrizations.spectral_norm(lib.nn.Linear(2, 2), dim=2)
    with pytest.raises(ValueError, match="no parameter"):
        f.parametrizations.spectral_norm(lib.nn.Linear(2, 2), "weights")
    with pytest.raises(ValueError, match="None"):
        f.spectral_norm(lib.nn.Linear(2, 2, bias=False), "bias")


# ---- Parametrizations


def symmetric(lib):
    class Symmetric(lib.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).mT

        def right_inverse(self, a):
            return a.triu()

    return Symmetric()


def doubled(lib):
    class Doubled(lib.nn.Module):
        def forward(self, x):
            return 2 * x

        def right_inverse(self, y):
            return y / 2

    return Doubled()


def rank_one(lib):
    class RankOne(lib.nn.Module):
        def forward(self, x, y):
            return x.unsqueeze(-1) @ y.unsqueeze(-2)

        def right_inverse(self, z):
            return z[:, 0].clone(), z[0, :].clone()

    return RankOne()


def test_a_parametrization(lib):
    P = lib.nn.utils.parametrize
    layer = lib.nn.Linear(3, 3)
    weight = layer.weight
    optimizer = lib.optim.SGD(layer.parameters(), lr=0.1)
    assert P.register_parametrization(layer, "weight", symmetric(lib)) is layer
    assert layer.parametrizations.weight.original is weight  # the optimizer has it still
    assert lib.equal(layer.weight, layer.weight.mT) and P.is_parametrized(layer, "weight")
    assert P.is_parametrized(layer) and not P.is_parametrized(layer, "bias")
    assert type(layer).__name__ == "ParametrizedLinear" and isinstance(layer, lib.nn.Linear)
    assert P.type_before_parametrizations(layer) is lib.nn.Linear
    assert list(layer.state_dict()) == ["bias", "parametrizations.weight.original"]
    layer(lib.ones(1, 3)).sum().backward()
    optimizer.step()
    assert weight.grad is not None and lib.equal(layer.weight, layer.weight.mT)
    value = lib.tensor([[1.0, 2, 3], [2, 4, 5], [3, 5, 6]])
    layer.weight = value
    assert lib.equal(layer.weight, value) and layer(lib.ones(1, 3)).shape == (1, 3)
    P.register_parametrization(layer, "weight", doubled(lib))
    assert lib.equal(layer.weight, 2 * value) and len(layer.parametrizations.weight) == 2
    layer.weight = value
    assert lib.equal(layer.weight, value)
    other = copy.deepcopy(layer)
    assert lib.equal(other.weight, value) and other.parametrizations is not layer.parametrizations
    with pytest.raises(RuntimeError, match="state_dict"):
        pickle.dumps(layer)
    P.remove_parametrizations(layer, "weight")
    assert type(layer) is lib.nn.Linear and not P.is_parametrized(layer)
    assert lib.equal(layer.weight, value) and layer.weight is weight
    assert sorted(layer.state_dict()) == ["bias", "weight"]
    with pytest.raises(ValueError, match="does not have a parametrization"):
        P.remove_parametrizations(layer, "weight")


def test_parametrizations_of_copies_are_apart():
    P = kiln.nn.utils.parametrize
    layer = P.register_parametrization(kiln.nn.Linear(2, 2), "weight", symmetric(kiln))
    P.register_parametrization(layer, "bias", doubled(kiln))
    other = copy.deepcopy(layer)
    P.remove_parametrizations(layer, "weight")
    assert P.is_parametrized(layer, "bias") and kiln.equal(other.weight, other.weight.mT)
    assert layer(kiln.ones(1, 2)).shape == other(kiln.ones(1, 2)).shape
    P.remove_parametrizations(layer, "bias")
    assert type(layer) is kiln.nn.Linear and P.is_parametrized(other, "bias")


def test_several_originals(lib):
    P = lib.nn.utils.parametrize
    layer = P.register_parametrization(lib.nn.Linear(2, 3), "weight", rank_one(lib))
    parts = layer.parametrizations.weight
    assert parts.ntensors == 2 and not parts.is_tensor
    assert [n for n, _ in parts.named_parameters()] == ["original0", "original1"]
    layer.weight = lib.tensor([[1.0, 5], [2, 6], [3, 7]])
    assert layer.weight.tolist() == [[1, 5], [2, 10], [3, 15]]
    with pytest.raises(ValueError, match="sequence of tensors"):
        P.remove_parametrizations(layer, "weight", leave_parametrized=False)
    P.remove_parametrizations(layer, "weight")
    assert layer.weight.tolist() == [[1, 5], [2, 10], [3, 15]] and layer.weight.requires_grad


def test_a_cache_of_values(lib):
    P = lib.nn.utils.parametrize
    layer = P.register_parametrization(lib.nn.Linear(2, 2), "weight", symmetric(lib))
    with P.cached():
        assert layer.weight is layer.weight
        with P.cached():
            pass
        assert layer.weight is layer.weight
    assert layer.weight is not layer.weight


def test_buffers_and_transfers(lib):
    P = lib.nn.utils.parametrize
    bn = lib.nn.BatchNorm1d(3)
    P.register_parametrization(bn, "running_mean", doubled(lib))
    assert "parametrizations.running_mean.original" in dict(bn.named_buffers())
    P.remove_parametrizations(bn, "running_mean", leave_parametrized=False)
    assert "running_mean" in bn._buffers
    one = P.register_parametrization(lib.nn.Linear(2, 2), "weight", symmetric(lib))
    two = P.transfer_parametrizations_and_params(one, lib.nn.Linear(2, 2))
    assert lib.equal(one.weight, two.weight)
    assert two.parametrizations.weight.original is one.parametrizations.weight.original


def test_parametrizations_that_are_refused(lib):
    P = lib.nn.utils.parametrize

    def part(forward, inverse=None):
        body = {"forward": lambda self, x: forward(x)}
        if inverse is not None:
            body["right_inverse"] = lambda self, x: inverse(x)
        return type("Part", (lib.nn.Module,), body)()

    make = lambda: lib.nn.Linear(2, 2)
    for wrong, message in (
        (part(lambda x: x.double()), "dtype"),
        (part(lambda x: x[0]), "shape"),
        (part(lambda x: 3), "return a tensor"),
        (part(lambda x: x, lambda x: 3), "right_inverse"),
        (part(lambda x: x, lambda x: x.double()), "dtype"),
        (part(lambda x: x, lambda x: [1]), "element 0"),
    ):
        layer = make()
        with pytest.raises(ValueError, match=message):
            P.register_parametrization(layer, "weight", wrong)
        assert type(layer) is lib.nn.Linear and "weight" in layer._parameters
    with pytest.raises(ValueError, match="does not have a parameter"):
        P.register_parametrization(make(), "wait", symmetric(lib))
    layer = P.register_parametrization(make(), "weight", part(lambda x: x))
    with pytest.raises(RuntimeError, match="right_inverse"):
        layer.weight = lib.ones(2, 2)
    with pytest.raises(ValueError, match="shape"):
        P.register_parametrization(layer, "weight", part(lambda x: x[0]))
    P.register_parametrization(layer, "weight", part(lambda x: x[0]), unsafe=True)
    assert layer.weight.shape == (2,)


@needs_torch
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
@pytest.mark.parametrize("name", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("trivial", [True, False])
def test_orthogonal_is_pytorchs(shape, name, trivial):
    import torch

    def make(lib):
        lib.manual_seed(0)
        layer = lib.nn.Linear(shape[1], shape[0]).double()
        wrapped = lib.nn.utils.parametrizations.orthogonal(
            layer, orthogonal_map=name, use_trivialization=trivial
        )
        return wrapped

    mine, theirs = both(make)
    with kiln.no_grad():
        mine.parametrizations.weight.original.add_(
            0.1 * kiln.randn(*shape, dtype=kiln.float64).tril(-1)
        )
    theirs.load_state_dict({k: as_tensor(v, torch) for k, v in mine.state_dict().items()})
    x = kiln.randn(2, shape[1], dtype=kiln.float64)
    found = []
    for lib, layer in ((kiln, mine), (torch, theirs)):
        layer.parametrizations.weight.original.grad = None
        layer(as_tensor(x, lib)).square().sum().backward()
        found.append([layer.weight.detach(), layer.parametrizations.weight.original.grad])
    for a, b in zip(*found):
        near(a, b, 1e-8)
    w = mine.weight if shape[0] >= shape[1] else mine.weight.mT
    near((w.mT @ w).detach(), kiln.eye(min(shape), dtype=kiln.float64), 1e-9)
    if name == "householder" or trivial:
        value = mine.weight.detach().flip(0).clone()
        mine.weight = value
        if shape[0] == shape[1] or name == "householder" and not trivial:
            near(mine.weight.detach(), value, 1e-8)
    else:
        with pytest.raises(NotImplementedError):
            mine.weight = mine.weight.detach()


def test_orthogonal_refuses(lib):
    orthogonal = lib.nn.utils.parametrizations.orthogonal
    with pytest.raises(ValueError, match="matrix"):
        orthogonal(lib.nn.Linear(2, 2), "bias")
    with pytest.raises(ValueError, match="orthogonal_map"):
        orthogonal(lib.nn.Linear(2, 2), orthogonal_map="givens")
    with pytest.raises(ValueError, match="no parameter"):
        orthogonal(lib.nn.Linear(2, 2), "wait")


@needs_torch
@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm_as_a_parametrization(dim):
    import torch

    def make(lib):
        lib.manual_seed(0)
        return lib.nn.utils.parametrizations.weight_norm(lib.nn.Conv1d(4, 3, 2), dim=dim)

    mine, theirs = both(make)
    same_state(mine, theirs)
    x = kiln.randn(2, 4, 6)
    near(mine(x).detach(), theirs(as_tensor(x, torch)).detach())
    if dim is not None:
        older = {}
        for lib in (kiln, torch):
            old = lib.nn.utils.weight_norm(lib.nn.Conv1d(4, 3, 2), dim=dim)
            old.load_state_dict({
                "bias": as_tensor(mine.bias.detach(), lib),
                "weight_g": as_tensor(mine.parametrizations.weight.original0.detach(), lib),
                "weight_v": as_tensor(mine.parametrizations.weight.original1.detach(), lib),
            })
            older[lib] = old.state_dict()
        fresh = make(kiln)
        fresh.load_state_dict(older[kiln])
        near(fresh(x).detach(), mine(x).detach())


# ---- Pruning


@needs_torch
def test_pruning_is_pytorchs():
    import torch

    def run(lib):
        kiln.manual_seed(5)
        weight = kiln.randn(6, 3, 3, 3)
        layer = lib.nn.Conv2d(3, 6, 3)
        layer.load_state_dict({"weight": as_tensor(weight, lib), "bias": as_tensor(kiln.arange(6.0), lib)})
        P, states = lib.nn.utils.prune, []

        def note():
            states.append({k: values(v) for k, v in layer.state_dict().items()})
            states.append({"weight": values(layer.weight), "hooks": len(hooks(layer))})

        P.l1_unstructured(layer, "weight", amount=0.3)
        note()
        P.ln_structured(layer, "weight", amount=2, n=2, dim=0)
        note()
        P.ln_structured(layer, "weight", amount=0.25, n=float("inf"), dim=-1)
        note()
        P.l1_unstructured(layer, "weight", amount=5, importance_scores=layer.weight.detach().neg().exp())
        note()
        P.l1_unstructured(layer, "bias", amount=2)
        P.identity(layer, "bias")
        note()
        out = layer(as_tensor(kiln.ones(1, 3, 4, 4), lib))
        out.sum().backward()
        states.append({"out": values(out), "grad": values(layer.weight_orig.grad)})
        assert P.is_pruned(lib.nn.Sequential(layer))
        P.remove(layer, "weight")
        P.remove(layer, "bias")
        note()
        assert not P.is_pruned(layer)
        return states

    for mine, theirs in zip(run(kiln), run(torch), strict=True):
        assert list(mine) == list(theirs)
        for key in mine:
            np.testing.assert_allclose(mine[key], theirs[key], rtol=1e-5, atol=1e-5)


@needs_torch
def test_global_pruning_is_pytorchs():
    import torch

    def run(lib):
        kiln.manual_seed(6)
        state = {"0.weight": (5, 4), "0.bias": (5,), "1.weight": (3, 5), "1.bias": (3,)}
        state = {k: as_tensor(kiln.randn(*shape), lib) for k, shape in state.items()}
        net = lib.nn.Sequential(lib.nn.Linear(4, 5), lib.nn.Linear(5, 3))
        net.load_state_dict(state)
        P = lib.nn.utils.prune
        pairs = ((net[0], "weight"), (net[1], "weight"), (net[1], "bias"))
        P.global_unstructured(pairs, P.L1Unstructured, amount=0.4)
        P.global_unstructured(pairs, pruning_method=P.L1Unstructured, amount=4)
        return {k: values(v) for k, v in net.state_dict().items()}

    mine, theirs = run(kiln), run(torch)
    assert list(mine) == list(theirs)
    for key in mine:
        np.testing.assert_array_equal(mine[key], theirs[key])


def test_random_pruning(lib):
    P = lib.nn.utils.prune
    layer = P.random_unstructured(lib.nn.Linear(10, 10), "weight", amount=30)
    assert (layer.weight == 0).sum().item() == 30 and layer.weight_mask.sum().item() == 70
    P.random_unstructured(layer, "weight", amount=0.5)
    assert layer.weight_mask.sum().item() == 35
    layer = P.random_structured(lib.nn.Linear(10, 8), "weight", amount=3, dim=0)
    assert (layer.weight_mask.sum(1) == 0).sum().item() == 3
    P.custom_from_mask(layer, "bias", lib.tensor([1.0, 0, 1, 0, 1, 0, 1, 0]))
    assert layer.bias[1].item() == 0
    with lib.no_grad():
        layer.bias_orig.fill_(2.0)
    layer(lib.ones(1, 10))
    assert layer.bias.tolist() == [2, 0, 2, 0, 2, 0, 2, 0]
    P.remove(layer, "weight")
    other = copy.deepcopy(P.remove(layer, "bias"))
    assert other.bias.tolist() == [2, 0, 2, 0, 2, 0, 2, 0]
    x = P.L1Unstructured(amount=2).prune(lib.tensor([1.0, -5.0, 0.5, 3.0]))
    assert x.tolist() == [0, -5, 0, 3]


def test_wrong_pruning(lib):
    P = lib.nn.utils.prune
    make = lambda: lib.nn.Linear(3, 2)
    with pytest.raises(TypeError, match="amount"):
        P.l1_unstructured(make(), "weight", amount="1")
    for amount in (-1, 1.5, -0.1):
        with pytest.raises(ValueError, match="amount"):
            P.l1_unstructured(make(), "weight", amount=amount)
    layer = make()
    with pytest.raises(ValueError, match="amount"):
        P.l1_unstructured(layer, "weight", amount=7)
    assert "weight" in layer._parameters
    with pytest.raises(ValueError, match="multidimensional"):
        P.ln_structured(make(), "bias", 1, 2, 0)
    with pytest.raises(IndexError):
        P.ln_structured(make(), "weight", 1, 2, 2)
    with pytest.raises(AssertionError, match="shape"):
        P.l1_unstructured(make(), "weight", 1, importance_scores=lib.ones(2))
    with pytest.raises(ValueError, match="has to be pruned"):
        P.remove(make(), "weight")
    with pytest.raises(TypeError, match="unstructured"):
        P.global_unstructured([(make(), "weight")], P.LnStructured, amount=1, n=2)
    with pytest.raises(TypeError, match="Iterable"):
        P.global_unstructured(3, P.L1Unstructured, amount=1)
    with pytest.raises(TypeError):
        P.BasePruningMethod()


# ---- Calls with other parameters


def test_stateless_calls(lib):
    net = lib.nn.Linear(2, 1)
    call = lib.nn.utils.stateless.functional_call
    values = {"weight": lib.tensor([[1.0, 2.0]]), "bias": lib.tensor([3.0])}
    assert call(net, values, lib.tensor([[1.0, 1.0]])).tolist() == [[6]]

    class Tied(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = lib.nn.Parameter(lib.ones(1))
            self.b = self.a

        def forward(self, x):
            return self.a * x + self.b

    tied = Tied()
    assert lib.func.functional_call(tied, {"a": lib.tensor([5.0])}, lib.tensor([1.0])).tolist() == [10]
    one = lib.func.functional_call(tied, {"a": lib.tensor([5.0])}, lib.tensor([1.0]), tie_weights=False)
    assert one.tolist() == [6]
    with pytest.raises(ValueError, match="tied"):
        lib.func.functional_call(tied, {"a": lib.ones(1), "b": lib.zeros(1)}, lib.ones(1))
