"""kiln.distributions: constraints, transforms between their sets, and divergences."""

import math
import pickle

import numpy as np
import pytest

import kiln
import kiln.distributions as kd
from kiln.distributions import _kl_same, constraints
from test_distributions import CASES, Case, torch  # noqa: F401  a fixture

# ---- Constraints: a set, values that are in it, and values that are not

SETS = {
    "real": ("c.real", [0.0, -3.0, math.inf], [math.nan]),
    "boolean": ("c.boolean", [0.0, 1.0], [0.5, -1.0]),
    "positive": ("c.positive", [1.0, 1e-30], [0.0, -1.0, math.nan]),
    "nonnegative": ("c.nonnegative", [0.0, 1.0], [-1.0, math.nan]),
    "positive_integer": ("c.positive_integer", [1.0, 7.0], [0.0, 1.5]),
    "nonnegative_integer": ("c.nonnegative_integer", [0.0, 7.0], [-1.0, 1.5]),
    "unit_interval": ("c.unit_interval", [0.0, 0.3, 1.0], [-0.1, 1.1]),
    "greater_than": ("c.greater_than(2.0)", [2.5], [2.0]),
    "greater_than_eq": ("c.greater_than_eq(2.0)", [2.0], [1.9]),
    "less_than": ("c.less_than(2.0)", [1.9], [2.0]),
    "interval": ("c.interval(-1.0, 2.0)", [-1.0, 2.0], [-1.1, 2.1]),
    "half_open_interval": ("c.half_open_interval(-1.0, 2.0)", [-1.0, 1.9], [2.0]),
    "integer_interval": ("c.integer_interval(-1, 2)", [-1.0, 0.0, 2.0], [0.5, 3.0]),
    "real_vector": ("c.real_vector", [[0.0, 1.0]], [[0.0, math.nan]]),
    "independent": ("c.independent(c.positive, 1)", [[2.0, 1.0]], [[0.0, 1.0]]),
    "simplex": ("c.simplex", [[0.2, 0.8], [1.0, 0.0]], [[0.2, 0.7], [-0.2, 1.2]]),
    "one_hot": ("c.one_hot", [[0.0, 1.0]], [[1.0, 1.0], [0.0, 0.0], [0.5, 0.5]]),
    "multinomial": ("c.multinomial(3)", [[1.0, 2.0], [0.0, 1.0]], [[2.0, 2.0], [-1.0, 1.0]]),
    "lower_triangular": ("c.lower_triangular", [[[1.0, 0.0], [2.0, -1.0]]], [[[1.0, 1.0], [0.0, 1.0]]]),
    "lower_cholesky": ("c.lower_cholesky", [[[1.0, 0.0], [2.0, 1.0]]], [[[1.0, 0.0], [2.0, -1.0]]]),
    "corr_cholesky": ("c.corr_cholesky", [[[1.0, 0.0], [0.6, 0.8]]], [[[1.0, 0.0], [0.6, 0.9]]]),
    "square": ("c.square", [[[1.0, 2.0], [3.0, 4.0]]], [[[1.0, 2.0]]]),
    "symmetric": ("c.symmetric", [[[1.0, 2.0], [2.0, 4.0]]], [[[1.0, 2.0], [3.0, 4.0]]]),
    "positive_semidefinite": (
        "c.positive_semidefinite",
        [[[1.0, 0.0], [0.0, 0.0]]],
        [[[1.0, 2.0], [2.0, 1.0]]],
    ),
    "positive_definite": ("c.positive_definite", [[[2.0, 1.0], [1.0, 2.0]]], [[[1.0, 2.0], [2.0, 1.0]]]),
    "mixture": ("c.MixtureSameFamilyConstraint(c.independent(c.positive, 1))", [[1.0, 2.0]], [[1.0, -2.0]]),
}


@pytest.mark.parametrize("name", SETS)
def test_sets(name, torch):  # noqa: F811
    text, inside, outside = SETS[name]
    mine = eval(text, {"c": constraints})
    theirs = eval(text, {"c": torch.distributions.constraints})
    assert mine.event_dim == theirs.event_dim and mine.is_discrete == theirs.is_discrete
    if name != "multinomial":  # whose elements need not be whole there
        assert repr(mine) == repr(theirs)
    for values, wanted in ((inside, True), (outside, False)):
        for value in values:
            got = mine.check(kiln.tensor([value, value]))
            assert got.dtype == kiln.bool and got.tolist() == [wanted] * 2
            assert theirs.check(torch.tensor([value, value])).tolist() == [wanted] * 2


def test_joined_sets():
    c = constraints
    parts = c.cat([c.positive, c.real], dim=-1, lengths=[2, 1])
    assert parts.check(kiln.tensor([[1.0, -1.0, -1.0]])).tolist() == [[True, False, True]]
    assert parts.event_dim == 0 and not parts.is_discrete
    slices = c.stack([c.positive, c.boolean], dim=0)
    assert slices.check(kiln.tensor([[1.0, -1.0], [1.0, 0.5]])).tolist() == [[True, False], [True, False]]
    assert slices.is_discrete
    with pytest.raises(kiln.errors.ValueError, match="cat: expected 2 lengths"):
        c.cat([c.real, c.real], lengths=[1])
    with pytest.raises(kiln.errors.TypeError, match="cseq"):
        c.stack([1.0])


def test_dependent_sets():
    c = constraints
    assert c.is_dependent(c.dependent) and c.is_dependent(kd.Uniform.support)
    assert not c.is_dependent(kd.Uniform(0.0, 1.0).support)
    assert c.dependent(event_dim=1).event_dim == 1
    with pytest.raises(NotImplementedError, match="is_discrete"):
        c.dependent(event_dim=1).is_discrete  # noqa: B018
    with pytest.raises(kiln.errors.ValueError, match="cannot be checked"):
        c.dependent.check(kiln.ones(1))
    with pytest.raises(kiln.errors.ValueError, match="at least 2 dims"):
        c.independent(c.real, 2).check(kiln.ones(2))
    with pytest.raises(kiln.errors.TypeError, match="base_constraint"):
        c.independent(1.0, 2)


# ---- Transforms

LINE = [[-1.5, 0.3, 2.0], [0.1, -0.2, 4.0]]
HALF = [[0.1, 0.3, 2.0], [0.7, 1.2, 4.0]]
SQUARE = [[[0.5, 9.0], [-1.0, 0.2]], [[-0.3, 2.0], [0.4, 1.0]]]
MAPS = {
    "Exp": ("t.ExpTransform()", LINE),
    "Power": ("t.PowerTransform(lib.tensor(-1.5).double())", HALF),
    "Powers": ("t.PowerTransform(lib.tensor([0.5, 2.0, 3.0]).double())", HALF),
    "Sigmoid": ("t.SigmoidTransform()", LINE),
    "Tanh": ("t.TanhTransform()", LINE),
    "Softplus": ("t.SoftplusTransform()", LINE),
    "Abs": ("t.AbsTransform()", LINE),
    "Affine": ("t.AffineTransform(1.0, -2.0)", LINE),
    "Affines": (
        "t.AffineTransform(lib.tensor([1.0, 2.0, 3.0]), lib.tensor([-2.0, 1.0, 0.5]), event_dim=1)",
        LINE,
    ),
    "Softmax": ("t.SoftmaxTransform()", LINE),
    "StickBreaking": ("t.StickBreakingTransform()", LINE),
    "LowerCholesky": ("t.LowerCholeskyTransform()", SQUARE),
    "PositiveDefinite": ("t.PositiveDefiniteTransform()", SQUARE),
    "CorrCholesky": ("t.CorrCholeskyTransform()", LINE),
    "Reshape": ("t.ReshapeTransform((3,), (3, 1))", LINE),
    "Compose": ("t.ComposeTransform([t.AffineTransform(0.5, 0.7), t.TanhTransform()])", LINE),
    "ComposeVector": ("t.ComposeTransform([t.AffineTransform(0.5, 0.7), t.StickBreakingTransform()])", LINE),
    "ComposeReshape": ("t.ComposeTransform([t.ReshapeTransform((3,), (1, 3)), t.ExpTransform()])", LINE),
    "Identity": ("t.identity_transform", LINE),
    "Independent": ("t.IndependentTransform(t.ExpTransform(), 1)", LINE),
    "Inverse": ("t.ExpTransform().inv", HALF),
    "Cat": ("t.CatTransform([t.ExpTransform(), t.AffineTransform(0.0, 3.0)], dim=-1, lengths=[1, 2])", LINE),
    "Stack": ("t.StackTransform([t.ExpTransform(), t.AffineTransform(0.0, 3.0)], dim=0)", LINE),
    "Cumulative": (
        "t.CumulativeDistributionTransform(lib.distributions.Normal(lib.tensor(0.5).double(), 2.0))",
        LINE,
    ),
}


def make(name, lib):
    return eval(MAPS[name][0], {"t": lib.distributions.transforms, "lib": lib})


@pytest.mark.parametrize("name", MAPS)
def test_transforms_are_those_of_torch(name, torch):  # noqa: F811
    mine, theirs = make(name, kiln), make(name, torch)
    assert mine.bijective == theirs.bijective
    for side in ("domain", "codomain"):
        own, other = getattr(mine, side), getattr(theirs, side)
        assert own.event_dim == other.event_dim and type(own).__name__ == type(other).__name__
    results = []
    for lib, transform in ((kiln, mine), (torch, theirs)):
        x = lib.tensor(MAPS[name][1], dtype=lib.float64, requires_grad=True)
        y = transform(x)
        parts = [y.detach()]
        try:
            change = transform.log_abs_det_jacobian(x, y)
            parts.append(change.detach())
        except NotImplementedError:
            change = lib.zeros(())
        weights = lib.tensor(np.cos(np.arange(y.numel())).tolist(), dtype=lib.float64).reshape(y.shape)
        ((y * weights).sum() + 0.7 * change.sum()).backward()
        results.append([*parts, x.grad])
    assert len(results[0]) == len(results[1])
    for own, other in zip(*results, strict=True):
        assert tuple(own.shape) == tuple(other.shape)
        np.testing.assert_allclose(own.tolist(), other.tolist(), rtol=1e-10, atol=1e-11)
    shape = x.shape
    assert tuple(mine.forward_shape(tuple(shape))) == tuple(theirs.forward_shape(shape)) == tuple(y.shape)
    assert tuple(mine.inverse_shape(tuple(y.shape))) == tuple(theirs.inverse_shape(y.shape))
    try:
        sign = theirs.sign
    except NotImplementedError:
        with pytest.raises(NotImplementedError):
            mine.sign  # noqa: B018
    else:
        assert kiln.as_tensor(mine.sign).tolist() == torch.as_tensor(sign).tolist()


@pytest.mark.parametrize("name", MAPS)
def test_inverses(name):
    transform = make(name, kiln)
    x = kiln.tensor(MAPS[name][1], dtype=kiln.float64)
    assert transform.domain.check(x).all()
    y = transform(x)
    assert transform.codomain.check(y).all()
    back = transform.inv(y)
    # What is not bijective gives one of the places with this value.
    assert kiln.allclose(transform(back), y, rtol=1e-10, atol=1e-12)
    if transform.bijective:
        assert kiln.allclose(back, x, rtol=1e-9, atol=1e-10)
        change = transform.log_abs_det_jacobian(x, y)
        assert kiln.allclose(transform.inv.log_abs_det_jacobian(y, x), -change)
    assert transform.inv.inv == transform
    assert transform.inv.domain.event_dim == transform.codomain.event_dim
    assert pickle.loads(pickle.dumps(transform))(x).tolist() == y.tolist()


def coordinates(name, y):
    """As many coordinates of y as there are in x."""
    if name in ("StickBreaking", "ComposeVector"):
        return y[..., :-1]
    if name == "CorrCholesky":
        return kd.utils.tril_matrix_to_vec(y, -1)
    return y.reshape(-1)


@pytest.mark.parametrize("name", [n for n in MAPS if n not in (
    "Abs", "Softmax", "LowerCholesky", "PositiveDefinite", "Stack",
)])  # fmt: skip
def test_changes_of_volume_by_jacobians(name):
    transform = make(name, kiln)
    x = kiln.tensor(MAPS[name][1][0], dtype=kiln.float64)
    jacobian = kiln.autograd.functional.jacobian(lambda v: coordinates(name, transform(v)), x)
    assert jacobian.shape == (3, 3)
    wanted = kiln.linalg.slogdet(jacobian)[1].item()
    change = transform.log_abs_det_jacobian(x, transform(x))
    assert change.sum().item() == pytest.approx(wanted, abs=1e-9)


def test_caches():
    x = kiln.tensor([30.0])  # where tanh is 1
    kept = kd.TanhTransform(cache_size=1)
    assert kept.inv(kept(x)) is x
    plain = kd.TanhTransform()
    assert plain.inv(plain(x)).isinf().all()
    assert plain.with_cache(0) is plain and plain.with_cache()._cache_size == 1
    assert kept.inv.with_cache(0)._inv._cache_size == 0
    both = kd.ComposeTransform([kd.AffineTransform(0.0, 2.0), kd.TanhTransform()], cache_size=1)
    assert both.inv(both(x)).tolist() == [30]
    y = kd.TransformedDistribution(kd.Normal(10.0, 1.0), kept).rsample((5,))
    assert kd.TransformedDistribution(kd.Normal(10.0, 1.0), kept).log_prob(y).isfinite().all()
    assert pickle.loads(pickle.dumps(kept))._cached_x_y == (None, None)
    with pytest.raises(kiln.errors.ValueError, match="cache_size must be 0 or 1"):
        kd.ExpTransform(cache_size=2)


def test_equality():
    t = kd.transforms
    assert t.ExpTransform() == t.ExpTransform() and t.ExpTransform() != t.TanhTransform()
    assert t.ExpTransform().inv == t.ExpTransform().inv and t.ExpTransform().inv != t.ExpTransform()
    assert t.AffineTransform(0.0, 2.0) == t.AffineTransform(kiln.zeros(2), 2.0)
    assert t.AffineTransform(0.0, 2.0) != t.AffineTransform(0.0, 3.0)
    assert t.PowerTransform(2.0) == t.PowerTransform(2.0) != t.PowerTransform(3.0)
    assert t.ComposeTransform([t.ExpTransform()]) == t.ComposeTransform([t.ExpTransform()])
    assert t.IndependentTransform(t.ExpTransform(), 1) != t.IndependentTransform(t.ExpTransform(), 2)
    assert len({t.ExpTransform(), t.ExpTransform()}) == 1


def test_far_values_stay_inside():
    for dtype in (kiln.float32, kiln.float64):
        x = kiln.tensor([-800.0, 800.0], dtype=dtype)
        y = kd.SigmoidTransform()(x)
        assert (y > 0).all() and (y < 1).all()
        assert kd.SigmoidTransform().inv(kiln.tensor([0.0, 1.0], dtype=dtype)).isfinite().all()
        simplex = kd.StickBreakingTransform()(kiln.tensor([-90.0, 80.0, 3.0], dtype=dtype))
        assert (simplex > 0).all() and constraints.simplex.check(simplex)
        factor = kd.CorrCholeskyTransform()(kiln.tensor([9.0, -8.0, 7.0], dtype=dtype))
        assert constraints.corr_cholesky.check(factor)


def test_transforms_refuse():
    for call, message in (
        (lambda: kd.ReshapeTransform((2,), (3,)), "as many elements"),
        (lambda: kd.ReshapeTransform((2,), (2, 1))(kiln.ones(3)), "the last dims must be"),
        (lambda: kd.CatTransform([kd.ExpTransform()], lengths=[1, 2]), "expected 1 lengths"),
        (lambda: kd.CatTransform([kd.ExpTransform()])(kiln.ones(2)), "must have 1 elements"),
        (lambda: kd.StackTransform([kd.ExpTransform()])(kiln.ones(2)), "must have 1 elements"),
        (
            lambda: kd.IndependentTransform(kd.ExpTransform(), 1)(kiln.tensor(1.0)),
            "x must have one dim or more",
        ),
        (lambda: kd.CorrCholeskyTransform().forward_shape((2,)), r"D \(D - 1\) / 2"),
        (lambda: kd.CorrCholeskyTransform().inverse_shape((2, 3)), "square"),
        (lambda: kd.StickBreakingTransform().forward_shape(()), "at least 1 dims"),
        (lambda: kd.CorrCholeskyTransform().event_dim, "1 for x and 2 for y"),
    ):
        with pytest.raises(kiln.errors.ValueError, match=message):
            call()
    for call, message in (
        (lambda: kd.ExpTransform()(1.0), "ExpTransform: x must be a Tensor; got float"),
        (lambda: kd.ExpTransform().inv(1.0), "ExpTransform: y must be a Tensor; got float"),
        (lambda: kd.ComposeTransform([1.0]), "ComposeTransform: expected transforms; got a float"),
        (lambda: kd.StackTransform([abs]), "StackTransform: expected transforms"),
        (lambda: kd.CumulativeDistributionTransform(1.0), "distribution must be a Distribution; got float"),
        (lambda: kd.Independent(1.0, 0), "Independent: base_distribution must be a Distribution"),
        (lambda: kd.TransformedDistribution(1.0, []), "base_distribution must be a Distribution"),
        (lambda: kd.kl_divergence(kd.Normal(0.0, 1.0), 1.0), "kl_divergence: q must be a Distribution"),
    ):
        with pytest.raises(kiln.errors.TypeError, match=message):
            call()
    with pytest.raises(kiln.errors.NotImplementedError, match="SoftmaxTransform has no log_abs_det"):
        kd.SoftmaxTransform().log_abs_det_jacobian(kiln.ones(2), kiln.ones(2))


@pytest.mark.parametrize("registry", ["biject_to", "transform_to"])
def test_transforms_to_sets(registry, torch):  # noqa: F811
    mine, theirs = getattr(kd, registry), getattr(torch.distributions, registry)
    mapped = 0
    for text, inside, _ in SETS.values():
        own, other = (eval(text, {"c": lib.distributions.constraints}) for lib in (kiln, torch))
        try:
            other = theirs(other)
        except NotImplementedError:
            other = None
        try:
            transform = mine(own)
        except NotImplementedError as error:
            assert other is None and "there is no transform to" in str(error)
            continue
        assert other is not None
        mapped += 1
        value = kiln.tensor(inside[-1] if own.event_dim == 0 else inside[0], dtype=kiln.float64)
        value = value.clamp(max=5.0) if own.event_dim == 0 else value
        x = kiln.randn(transform.inverse_shape(value.shape), dtype=kiln.float64)
        y = transform(x)
        assert own.check(y).all(), text
        other = other(torch.tensor(x.tolist()))
        np.testing.assert_allclose(y.tolist(), other.tolist(), rtol=1e-10)
        if registry == "biject_to":
            assert transform.bijective and kiln.allclose(transform.inv(y), x)
    assert mapped >= 12
    c = constraints
    joined = mine(c.cat([c.positive, c.unit_interval], dim=0, lengths=[1, 2]))(kiln.randn(3))
    assert c.cat([c.positive, c.unit_interval], dim=0, lengths=[1, 2]).check(joined).all()
    stacked = mine(c.stack([c.positive, c.unit_interval], dim=0))(kiln.randn(2, 3))
    assert c.stack([c.positive, c.unit_interval], dim=0).check(stacked).all()


def test_sets_with_tensors_as_bounds():
    low = kiln.tensor([0.0, 1.0], requires_grad=True)
    for constraint in (
        constraints.greater_than(low),
        constraints.interval(low, low + 2),
        constraints.less_than(low),
    ):
        y = kd.transform_to(constraint)(kiln.zeros(2))
        assert constraint.check(y).all() and y.requires_grad


def test_transforms_of_ones_own():
    class Double(kd.Transform):
        domain = codomain = constraints.dependent
        bijective = True

        def _call(self, x):
            return 2 * x

        def _inverse(self, y):
            return y / 2

    double = Double(cache_size=1)
    x = kiln.ones(3)
    assert double.inv(double(x)) is x and double.with_cache(0)(x).tolist() == [2] * 3
    with pytest.raises(kiln.errors.NotImplementedError, match="Double has no log_abs_det_jacobian"):
        double.log_abs_det_jacobian(x, x)


def test_registering_a_set():
    class Even(kd.constraints.Constraint):
        def check(self, value):
            return value % 2 == 0

    registry = kd.constraint_registry.ConstraintRegistry()

    @registry.register(Even)
    def to_even(constraint):
        return kd.AffineTransform(0.0, 2.0)

    assert registry(Even())(kiln.tensor(3.0)).item() == 6
    with pytest.raises(kiln.errors.TypeError, match="register"):
        registry.register(int, to_even)


# ---- Transformed distributions


def test_transformed_distributions(torch):  # noqa: F811
    """Composed of parts, some of them on vectors: as in PyTorch."""

    def both(lib):
        d = lib.distributions
        loc = lib.tensor([[0.3, -1.0], [0.2, 0.5]], dtype=lib.float64)
        yield d.TransformedDistribution(
            d.Normal(loc, 1.5), [d.AffineTransform(1.0, -0.5), d.SigmoidTransform()]
        )
        yield d.TransformedDistribution(d.Normal(loc, 1.5), [d.StickBreakingTransform()])
        yield d.TransformedDistribution(d.Normal(loc, 1.5), [])
        yield d.TransformedDistribution(d.Normal(loc, 1.5), d.ReshapeTransform((2,), (2, 1)))
        wide = d.AffineTransform(lib.zeros(3, 1, 1).double(), 2.0)
        yield d.TransformedDistribution(d.Normal(loc, 1.5), [wide, d.ExpTransform()])
        normal = d.MultivariateNormal(loc, lib.eye(2).double() + 0.5)
        yield d.TransformedDistribution(normal, [d.ExpTransform()])

    for mine, theirs in zip(both(kiln), both(torch), strict=True):
        assert tuple(mine.batch_shape) == tuple(theirs.batch_shape)
        assert tuple(mine.event_shape) == tuple(theirs.event_shape)
        assert mine.support.event_dim == theirs.support.event_dim
        draws = mine.sample((4,))
        other = torch.tensor(draws.tolist())
        assert draws.shape == tuple(theirs.sample((4,)).shape)
        np.testing.assert_allclose(mine.log_prob(draws).tolist(), theirs.log_prob(other).tolist(), rtol=1e-9)
        wide = mine.expand((2, *mine.batch_shape))
        assert wide.sample().shape == (2, *mine.batch_shape, *mine.event_shape)
        assert kiln.allclose(wide.log_prob(draws[0]), mine.log_prob(draws[0]).expand(wide.batch_shape))
        try:
            want = theirs.cdf(other).tolist()
        except NotImplementedError:
            continue
        np.testing.assert_allclose(mine.cdf(draws).tolist(), want, rtol=1e-9)
        assert kiln.allclose(mine.icdf(mine.cdf(draws)), draws, rtol=1e-6)


def test_falling_transforms_turn_the_cdf():
    falling = kd.TransformedDistribution(kd.Exponential(1.0), kd.AffineTransform(0.0, -1.0))
    x = kiln.tensor([-3.0, -0.5])
    assert falling.cdf(x).tolist() == pytest.approx([math.exp(-3), math.exp(-0.5)], rel=1e-5)
    assert falling.icdf(falling.cdf(x)).tolist() == pytest.approx(x.tolist(), rel=1e-5)


# ---- Divergences

MORE = [
    Case("Uniform", None, low=[0.1, 0.2, 1.5], high=[0.9, 0.7, 3.0]),
    Case("Uniform", None, low=[-1.0, -0.2, 1.5], high=[1.9, 0.7, 3.0]),
    Case("Uniform", None, low=[-9.0, -0.2, 0.0], high=[9.0, 8.0, 1.0]),
    Case("Bernoulli", None, probs=[0.4, 0.0, 1.0]),
    Case("Pareto", None, scale=[0.5, 0.7, 0.1], alpha=[3.0, 2.5, 1.1]),
    Case("Normal", None, loc=[0.1, 0.2, 0.3], scale=[2.0, 1.0, 0.7]),
    Case("Categorical", None, probs=[[0.5, 0.5, 0.0], [0.2, 0.0, 0.8]]),
    Case("Cauchy", None, loc=[0.5, 0.2, 0.3], scale=[2.0, 1.0, 0.7]),
]


def pairs():
    kinds = {}
    for case in CASES + MORE:
        kinds.setdefault(case.name, []).append(case)
    for p, q in sorted(kd.kl._registry, key=str):
        # That of Wishart is no divergence there: its slope is not 0 where p and q are equal.
        if p.__name__ in kinds and q.__name__ in kinds and p is not kd.Wishart:
            yield pytest.param(kinds[p.__name__], kinds[q.__name__], id=f"{p.__name__}-{q.__name__}")


def infinite_there(p, q):
    """PyTorch takes touching bounds for draws that q cannot have; integrals below decide."""
    return (p.name, q.name) in (
        ("Uniform", "ContinuousBernoulli"), ("ContinuousBernoulli", "Uniform"),
    )  # fmt: skip


@pytest.mark.parametrize("ps, qs", list(pairs()))
def test_divergences_are_those_of_torch(ps, qs, torch):  # noqa: F811
    compared = 0
    for case_p in ps:
        for case_q in qs:
            results = []
            for lib in (kiln, torch):
                (p, leaves), (q, others) = case_p.make(lib), case_q.make(lib)
                leaves = [*leaves.values(), *others.values()]
                try:
                    found = lib.distributions.kl_divergence(p, q)
                except NotImplementedError:
                    results.append(None)
                    continue
                if found.requires_grad:
                    finite = lib.where(lib.isfinite(found), found, lib.zeros_like(found))
                    finite.sum().backward()
                grads = [
                    np.array(x.grad.tolist()) if x.grad is not None else 0 * np.array(x.tolist())
                    for x in leaves
                ]
                results.append((np.array(found.tolist()), grads))
            assert (results[0] is None) == (results[1] is None)
            if results[0] is None:
                continue
            (own, grads), (other, slopes) = results
            compared += 1
            assert own.shape == other.shape and (own >= -1e-12).all()
            if infinite_there(case_p, case_q):
                continue
            np.testing.assert_allclose(own, other, rtol=1e-8, atol=1e-9)
            if case_p.name == "Bernoulli" and 0.0 in np.ravel(case_p.arguments.get("probs", 1.0)):
                continue  # there, the slope is infinite
            for mine, theirs in zip(grads, slopes, strict=True):
                mine = np.where(np.isnan(theirs) & np.isfinite(mine), theirs, mine)
                np.testing.assert_allclose(mine, theirs, rtol=1e-7, atol=1e-8)
    assert compared


def integral(p, q, low, high, steps=200000):
    x = low + (high - low) * (kiln.arange(steps).double() + 0.5) / steps
    logs = p.log_prob(x)
    return (logs.exp() * (logs - q.log_prob(x))).sum().item() * (high - low) / steps


def test_divergences_by_integrals():
    """Of pairs of bounded distributions, also where PyTorch says infinite."""
    one = kiln.ones((), dtype=kiln.float64)
    bounded = {
        "uniform": kd.Uniform(0.2 * one, 0.7, validate_args=False),
        "whole": kd.Uniform(0 * one, 1.0),
        "beta": kd.Beta(2.5 * one, 1.5),
        "continuous": kd.ContinuousBernoulli(probs=0.3 * one),
    }
    others = [
        kd.Normal(0.3 * one, 0.8),
        kd.Gamma(2.0 * one, 1.5),
        kd.Exponential(1.3 * one),
        kd.Gumbel(0.2 * one, 0.7),
    ]
    count = 0
    for p in bounded.values():
        low, high = (p.low.item(), p.high.item()) if isinstance(p, kd.Uniform) else (0.0, 1.0)
        for q in [*bounded.values(), *others]:
            if q is bounded["uniform"] and p is not q:
                assert kd.kl_divergence(p, q).item() == math.inf
                continue
            try:
                got = kd.kl_divergence(p, q).item()
            except NotImplementedError:
                continue
            count += 1
            assert got == pytest.approx(integral(p, q, low, high), abs=2e-4), (p, q)
    assert count >= 20


FAMILIES = "Bernoulli Beta ContinuousBernoulli Dirichlet Exponential Gamma Normal Poisson Wishart".split()


@pytest.mark.parametrize("name", FAMILIES)
def test_divergences_and_entropies_of_exponential_families(name):
    """What follows from the log normalizer is what the formulas of the families say."""
    first, *rest = [c for c in CASES if c.name == name]
    p, _ = first.make(kiln)
    for case in rest or [first]:
        q, _ = case.make(kiln)
        if not rest:
            scaled = {
                k: (1.3 * np.array(v)).tolist() if isinstance(v, list) else v
                for k, v in case.arguments.items()
            }
            q, _ = Case(name, None, **scaled).make(kiln)
        got = _kl_same._exponential_family(p, q)
        if got.shape == p.batch_shape:
            near = dict(rtol=1e-7, atol=1e-8)
            assert kiln.allclose(got, kd.kl_divergence(p, q), **near)
    if hasattr(type(p), "_mean_carrier_measure") and name not in ("Beta", "Dirichlet", "Poisson"):
        assert kiln.allclose(kd.ExponentialFamily.entropy(p), p.entropy(), rtol=1e-7, atol=1e-8)


def test_divergence_of_wishart_by_draws():
    kiln.manual_seed(0)
    p = kd.Wishart(kiln.tensor(4.5).double(), scale_tril=kiln.tensor([[1.0, 0.0], [0.5, 0.7]]).double())
    q = kd.Wishart(kiln.tensor(6.0).double(), kiln.tensor([[1.5, 0.2], [0.2, 1.0]]).double())
    draws = p.sample((20000,))
    ratios = (p.log_prob(draws) - q.log_prob(draws)).numpy()
    error = abs(ratios.mean() - kd.kl_divergence(p, q).item())
    assert error < 5 * ratios.std() / math.sqrt(20000)


def test_divergences_of_compositions():
    p, q = kd.Normal(kiln.zeros(2, 3), 1.0), kd.Normal(kiln.ones(2, 3), 2.0)
    plain = kd.kl_divergence(p, q)
    assert kiln.allclose(kd.kl_divergence(kd.Independent(p, 1), kd.Independent(q, 1)), plain.sum(-1))
    exp = [kd.ExpTransform()]
    of_exp = kd.kl_divergence(kd.TransformedDistribution(p, exp), kd.TransformedDistribution(q, exp))
    assert kiln.allclose(of_exp, plain)
    assert kd.kl_divergence(kd.LogNormal(0.0, 1.0), kd.LogNormal(1.0, 2.0)).item() == pytest.approx(
        plain[0, 0].item()
    )
    sticks = kd.StickBreakingTransform()
    joint = kd.kl_divergence(kd.TransformedDistribution(p, sticks), kd.TransformedDistribution(q, sticks))
    assert kiln.allclose(joint, plain.sum(-1))
    with pytest.raises(NotImplementedError, match="equal transforms"):
        kd.kl_divergence(kd.TransformedDistribution(p, exp), kd.TransformedDistribution(q, []))
    with pytest.raises(NotImplementedError, match="reinterpreted_batch_ndims"):
        kd.kl_divergence(kd.Independent(p, 1), kd.Independent(q, 2))
    with pytest.raises(kiln.errors.NotImplementedError, match="no formula for p of Gamma and q of VonMises"):
        kd.kl_divergence(kd.Gamma(1.0, 1.0), kd.VonMises(0.0, 1.0))
    with pytest.raises(NotImplementedError, match="total_count"):
        kd.kl_divergence(kd.Binomial(1, probs=0.5), kd.Binomial(2, probs=0.5))
    assert kd.kl_divergence(kd.Binomial(2, probs=0.5), kd.Binomial(1, probs=0.5)).item() == math.inf
    with pytest.raises(kiln.errors.ValueError, match="event_shape"):
        kd.kl_divergence(
            kd.MultivariateNormal(kiln.zeros(2), kiln.eye(2)),
            kd.MultivariateNormal(kiln.zeros(3), kiln.eye(3)),
        )


def test_divergences_broadcast():
    p, q = kd.Normal(kiln.zeros(2, 1), 1.0), kd.Normal(kiln.ones(3), 2.0)
    assert kd.kl_divergence(p, q).shape == (2, 3)
    assert kd.kl_divergence(p, kd.Exponential(kiln.ones(3))).tolist() == [[math.inf] * 3] * 2
    eye = kiln.eye(2)
    p = kd.MultivariateNormal(kiln.zeros(4, 1, 2), scale_tril=eye)
    q = kd.MultivariateNormal(kiln.ones(3, 2), scale_tril=2 * eye.expand(3, 2, 2))
    low = kd.LowRankMultivariateNormal(kiln.ones(3, 2), kiln.ones(2, 1), kiln.ones(2))
    for other in (q, low):
        assert kd.kl_divergence(p, other).shape == (4, 3)
        assert kd.kl_divergence(other, p).shape == (4, 3)


def test_the_nearest_formula_is_taken():
    class A(kd.Normal):
        pass

    class B(A):
        pass

    # The formulas go with the classes, which go with this test.
    before = dict(kd.kl._registry)
    try:
        kd.register_kl(A, kd.Normal)(lambda p, q: 1)
        assert kd.kl_divergence(B(0.0, 1.0), B(0.0, 1.0)) == 1
        assert kd.kl_divergence(kd.Normal(0.0, 1.0), B(0.0, 1.0)).item() == 0
        kd.register_kl(B, B)(lambda p, q: 2)
        assert kd.kl_divergence(B(0.0, 1.0), B(0.0, 1.0)) == 2
        kd.register_kl(kd.Normal, A)(lambda p, q: 3)
        with pytest.warns(RuntimeWarning, match="register_kl"):
            kd.kl_divergence(A(0.0, 1.0), A(0.0, 1.0))
        with pytest.raises(kiln.errors.TypeError, match="register_kl"):
            kd.register_kl(int, kd.Normal)
    finally:
        kd.kl._registry.clear()
        kd.kl._registry.update(before)
        kd.kl._find.cache_clear()
