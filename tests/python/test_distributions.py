"""kiln.distributions beside PyTorch's: values, gradients, shapes and messages. Draws are in
test_distributions_draws.py, constraints, transforms and divergences in test_distributions_maps.py."""

import copy
import math
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest

import kiln
import kiln.distributions as kd


class Case:
    """A class, its arguments (lists become tensors with gradients) and values to ask it for."""

    def __init__(self, name, values, tolerance=1e-10, fixed=(), **arguments):
        self.name, self.values, self.arguments = name, values, arguments
        self.tolerance, self.fixed = tolerance, fixed

    def make(self, lib, dtype="float64", gradients=True, **options):
        """The distribution of `lib`, and its tensors by name."""
        tensors = {}
        arguments = {}
        for name, value in self.arguments.items():
            if isinstance(value, list | np.ndarray):
                value = lib.tensor(np.array(value).tolist(), dtype=getattr(lib, dtype))
                if name not in self.fixed:
                    tensors[name] = value.requires_grad_(gradients)
            arguments[name] = value
        return getattr(lib.distributions, self.name)(**arguments, **options), tensors

    def tensor(self, lib):
        """The values: of float64, or of int64 if they are whole."""
        values = np.array(self.values)
        return lib.tensor(values.tolist(), dtype=getattr(lib, str(values.dtype)))

    def __repr__(self):
        given = "-".join(k for k in self.arguments if k in ("logits", "precision_matrix", "scale_tril"))
        return self.name + ("-" + given if given else "")


A = [0.3, 1.0, 2.5]
B = [0.7, 2.0, 1.5]
P = [0.2, 0.5, 0.9]
L = [-1.0, 0.3, 2.0]
REAL = [[-1.3, 0.2, 4.0], [2.1, -0.7, 0.5]]
POSITIVE = [[0.05, 1.3, 4.0], [2.1, 0.4, 9.0]]
UNIT = [[0.05, 0.3, 0.9], [0.5, 0.71, 0.2]]
COUNTS = [[0.0, 3.0, 1.0], [5.0, 0.0, 2.0]]
BITS = [[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]]
SIMPLEX = [[0.2, 0.3, 0.5], [0.7, 0.05, 0.25]]
WEIGHTS = [[0.1, 0.6, 0.3], [0.25, 0.25, 0.5]]
SCORES = [[-1.0, 0.5, 0.0], [2.0, 1.0, -3.0]]
TRIL = [[1.2, 0.0, 0.0], [0.3, 0.8, 0.0], [-0.4, 0.5, 1.5]]
SPD = (np.array(TRIL) @ np.array(TRIL).T).tolist()
FACTOR = [[1.0, 0.2], [-0.3, 0.5], [0.7, 1.1]]
CORR = [[[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, 0.28, 0.96]]]
CASES = [
    Case("Bernoulli", BITS, probs=P),
    Case("Bernoulli", BITS, logits=L),
    Case("Beta", UNIT, concentration1=A, concentration0=B),
    Case("Binomial", [[0.0, 3.0, 1.0], [4.0, 0.0, 2.0]], total_count=4, probs=P),
    Case("Binomial", [[0.0, 3.0, 1.0], [4.0, 0.0, 2.0]], total_count=4, logits=L),
    Case("Categorical", [0, 2], probs=WEIGHTS),
    Case("Categorical", [[0, 2], [1, 1]], logits=SCORES),
    Case("Cauchy", REAL, loc=L, scale=A),
    Case("Chi2", POSITIVE, df=B),
    Case("ContinuousBernoulli", UNIT, probs=P, tolerance=1e-9),
    Case("ContinuousBernoulli", UNIT, logits=[-1.0, 0.001, 2.0], tolerance=1e-9),
    Case("Dirichlet", SIMPLEX, concentration=[[0.3, 1.5, 2.0], [3.0, 1.1, 4.0]]),
    Case("Exponential", POSITIVE, rate=A),
    Case("FisherSnedecor", POSITIVE, df1=[1.0, 3.0, 5.0], df2=[2.5, 3.0, 8.0]),
    Case("Gamma", POSITIVE, concentration=A, rate=B),
    Case(
        "GeneralizedPareto",
        [[0.5, 1.3, 2.1], [0.1, 0.7, 3.0]],
        tolerance=1e-9,
        loc=[0.0, 0.3, 1.0],
        scale=A,
        concentration=[0.2, -0.3, 0.6],
    ),
    Case("Geometric", COUNTS, probs=P),
    Case("Geometric", COUNTS, logits=L),
    Case("Gumbel", REAL, loc=L, scale=B),
    Case("HalfCauchy", POSITIVE, scale=A),
    Case("HalfNormal", POSITIVE, scale=A),
    Case("InverseGamma", POSITIVE, concentration=[0.5, 1.5, 3.0], rate=B),
    Case("Kumaraswamy", UNIT, concentration1=[1.5, 2.0, 3.5], concentration0=[2.5, 1.5, 4.0]),
    Case("LKJCholesky", CORR * 2, dim=3, concentration=[0.7, 2.0]),
    Case("Laplace", REAL, loc=L, scale=B),
    Case("LogNormal", POSITIVE, loc=L, scale=A),
    Case("LogisticNormal", SIMPLEX, loc=[0.3, -1.0], scale=[0.5, 2.0]),
    Case("LowRankMultivariateNormal", REAL, loc=L, cov_factor=FACTOR, cov_diag=A),
    Case("Multinomial", [[1.0, 0.0, 3.0], [2.0, 1.0, 1.0]], total_count=4, probs=WEIGHTS),
    Case("Multinomial", [[1.0, 0.0, 3.0], [2.0, 1.0, 1.0]], total_count=4, logits=SCORES),
    Case("MultivariateNormal", REAL, loc=L, covariance_matrix=SPD, tolerance=1e-9),
    Case("MultivariateNormal", REAL, loc=L, precision_matrix=SPD, tolerance=1e-9),
    Case("MultivariateNormal", REAL, loc=L, scale_tril=TRIL),
    Case("MultivariateNormal", REAL, loc=L, scale_tril=[TRIL, (2 * np.array(TRIL)).tolist()]),
    Case("NegativeBinomial", COUNTS, total_count=A, probs=P),
    Case("NegativeBinomial", COUNTS, total_count=A, logits=L),
    Case("Normal", REAL, loc=L, scale=A),
    Case("OneHotCategorical", [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]], probs=WEIGHTS),
    Case("OneHotCategorical", [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]], logits=SCORES),
    Case("OneHotCategoricalStraightThrough", [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]], probs=WEIGHTS),
    Case("Pareto", [[1.3, 3.0, 6.0], [2.0, 5.0, 9.0]], scale=[1.0, 2.0, 0.5], alpha=[0.5, 1.5, 4.0]),
    Case("Poisson", COUNTS, rate=A),
    Case("RelaxedBernoulli", UNIT, temperature=[0.7], probs=P),
    Case("RelaxedBernoulli", UNIT, temperature=[0.7], logits=L),
    Case("RelaxedOneHotCategorical", SIMPLEX, temperature=np.array(0.7), probs=WEIGHTS),
    Case("RelaxedOneHotCategorical", SIMPLEX, temperature=np.array(0.7), logits=SCORES),
    Case("StudentT", REAL, df=[0.5, 1.5, 4.0], loc=L, scale=A),
    Case("Uniform", [[-0.5, 0.9, 3.0], [0.0, 0.5, 2.5]], low=L, high=[0.5, 1.0, 4.0]),
    Case("VonMises", [[0.1, 1.3, -2.0], [3.0, 0.4, 0.0]], loc=L, concentration=A, tolerance=1e-6),
    Case("Weibull", POSITIVE, scale=A, concentration=[0.7, 1.5, 3.0]),
    Case(
        "Wishart",
        [SPD, (0.5 * np.array(SPD) + np.eye(3)).tolist()],
        df=[2.5, 7.0],
        covariance_matrix=[SPD, SPD],
        tolerance=1e-8,
    ),
    Case("Wishart", [SPD], df=np.array(5.0), precision_matrix=SPD, tolerance=1e-8),
    Case("Wishart", [SPD], df=np.array(5.0), scale_tril=TRIL, tolerance=1e-9),
]


@pytest.fixture
def torch():
    """PyTorch in double precision: some of its formulas mix in the default dtype."""
    torch = pytest.importorskip("torch")
    torch.set_default_dtype(torch.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of small df
        yield torch
    torch.set_default_dtype(torch.float32)


def answer(lib, function, leaves):
    """What a function gives, and the gradients of its finite elements; both as arrays."""
    result = function()
    grads = dict.fromkeys(leaves)
    if result.requires_grad:
        finite = lib.where(lib.isfinite(result), result, lib.zeros_like(result))
        weights = lib.tensor(np.cos(np.arange(result.numel())).tolist(), dtype=lib.float64)
        (finite * weights.reshape(result.shape)).sum().backward()
        grads = {k: None if x.grad is None else np.array(x.grad.tolist()) for k, x in leaves.items()}
    return np.array(result.tolist()), grads


def near(mine, theirs, tolerance, what):
    assert mine.shape == theirs.shape, what
    np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance, err_msg=what)


def differ(lib, case, attribute):
    """(value, gradients) of an attribute or method of the case's distribution; None if not there."""
    distribution, leaves = case.make(lib)
    if attribute in ("log_prob", "cdf", "icdf"):
        values = np.array([[0.1, 0.5, 0.8]] if attribute == "icdf" else case.values)
        x = lib.tensor(values.tolist(), dtype=getattr(lib, str(values.dtype)))
        if x.is_floating_point():
            leaves["value"] = x.requires_grad_()
        call = lambda: getattr(distribution, attribute)(x)  # noqa: E731
    elif attribute in ("entropy", "perplexity"):
        call = getattr(distribution, attribute)
    else:
        call = lambda: getattr(distribution, attribute)  # noqa: E731
    try:
        return answer(lib, call, leaves)
    except NotImplementedError:
        return None


# Where PyTorch 2.13 is wrong or has less; tests below say what is right.
BETTER = {("Beta", "mode"), ("Kumaraswamy", "mode"), ("Weibull", "mode")}
BETTER |= {("GeneralizedPareto", "variance"), ("GeneralizedPareto", "stddev")}
WITHOUT_GRADIENTS = {("Gamma", "cdf"), ("Chi2", "cdf"), ("InverseGamma", "cdf")}
ROUNDED = {("Multinomial", "entropy"), ("Multinomial", "perplexity")}  # lgamma in single precision
ATTRIBUTES = "mean mode variance stddev entropy perplexity log_prob cdf icdf".split()


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_values_and_gradients_are_those_of_torch(case, torch):
    compared = 0
    for attribute in ATTRIBUTES:
        key = (case.name, attribute)
        if key in BETTER:
            continue
        mine = differ(kiln, case, attribute)
        if key in WITHOUT_GRADIENTS:
            distribution, _ = case.make(torch)
            theirs = getattr(distribution, attribute)(torch.tensor(case.values)).tolist()
            near(mine[0], np.array(theirs), case.tolerance, attribute)
            continue
        theirs = differ(torch, case, attribute)
        assert (mine is None) == (theirs is None), attribute
        if mine is None:
            continue
        compared += 1
        tolerance = 1e-6 if key in ROUNDED else case.tolerance
        near(mine[0], theirs[0], tolerance, attribute)
        for name, grad in theirs[1].items():
            own = mine[1][name]
            if own is None or grad is None:
                assert own is None or not own.any(), (attribute, name)
                assert grad is None or not np.nan_to_num(grad).any(), (attribute, name)
                continue
            if name == "value" and case.name == "LogisticNormal":
                # Vectors of a fixed sum: a constant in their gradient means nothing.
                own, grad = own - own[..., -1:], grad - grad[..., -1:]
            if name == "scale_tril":
                own, grad = np.tril(own), np.tril(grad)
            # Next to an infinite value PyTorch's slope may be NaN.
            own = np.where(np.isnan(grad) & np.isfinite(own), grad, own)
            near(own, grad, 10 * tolerance, f"{attribute} by {name}")
    assert compared >= 1


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_single_precision(case, torch):
    """The same in float32, and all results are of that dtype."""
    torch.set_default_dtype(torch.float32)
    (mine, _), (theirs, _) = case.make(kiln, "float32"), case.make(torch, "float32")
    for attribute in ("mean", "variance", "log_prob"):
        try:
            wanted, got = getattr(theirs, attribute), getattr(mine, attribute)
        except NotImplementedError:
            continue
        if attribute == "log_prob":
            values = np.array(case.values)
            dtype = "float32" if values.dtype == np.float64 else "int64"
            wanted = wanted(torch.tensor(values.tolist(), dtype=getattr(torch, dtype)))
            got = got(kiln.tensor(values.tolist(), dtype=getattr(kiln, dtype)))
        elif case.name == "GeneralizedPareto":
            continue
        assert got.dtype == kiln.float32
        np.testing.assert_allclose(got.tolist(), wanted.tolist(), rtol=2e-4, atol=2e-5, err_msg=attribute)


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_descriptions_are_those_of_torch(case, torch):
    (mine, _), (theirs, _) = case.make(kiln), case.make(torch)
    assert tuple(mine.batch_shape) == tuple(theirs.batch_shape)
    assert tuple(mine.event_shape) == tuple(theirs.event_shape)
    assert isinstance(mine.batch_shape, kiln.Size) and isinstance(mine.event_shape, kiln.Size)
    assert mine.has_rsample == theirs.has_rsample
    assert mine.has_enumerate_support == theirs.has_enumerate_support
    shown = lambda c: str(c).replace("torch", "kiln")  # noqa: E731
    assert set(mine.arg_constraints) == set(theirs.arg_constraints)
    for name, constraint in theirs.arg_constraints.items():
        assert type(mine.arg_constraints[name]).__name__ == type(constraint).__name__
        if "tensor" not in str(constraint):
            assert shown(mine.arg_constraints[name]) == shown(constraint)
            assert mine.arg_constraints[name].event_dim == constraint.event_dim
        assert hasattr(mine, name)
    assert type(mine.support).__name__ == type(theirs.support).__name__
    assert mine.support.event_dim == theirs.support.event_dim
    assert mine.support.is_discrete == theirs.support.is_discrete
    assert mine.support.check(case.tensor(kiln)).all()
    for name in theirs.__dict__:
        if name in theirs.arg_constraints:
            assert tuple(getattr(mine, name).shape) == tuple(getattr(theirs, name).shape)


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_expand(case):
    distribution, leaves = case.make(kiln)
    shape = (2, 4, *distribution.batch_shape)
    wide = distribution.expand(shape)
    assert type(wide) is type(distribution)
    assert wide.batch_shape == shape and wide.event_shape == distribution.event_shape
    assert wide.sample((3,)).shape == (3, *shape, *wide.event_shape)
    values = case.tensor(kiln)
    want = distribution.log_prob(values)
    many = values.expand((2, 4, *kiln.broadcast_shapes(values.shape, distribution.event_shape)))
    if len(distribution.batch_shape) < want.dim():
        many = values.unsqueeze(1).unsqueeze(1) if distribution.batch_shape else values[:, None, None]
        got = wide.log_prob(many)
        assert got.shape == (want.shape[0], *shape)
        assert kiln.allclose(got, want[:, None, None].expand(got.shape), rtol=1e-12)
    else:
        got = wide.log_prob(many)
        assert kiln.allclose(got, want.expand(got.shape), rtol=1e-12)
    for attribute in ("mean", "variance"):
        try:
            one, all_ = getattr(distribution, attribute), getattr(wide, attribute)
        except NotImplementedError:
            continue
        assert all_.shape == shape + distribution.event_shape
        np.testing.assert_array_equal(all_[1, 2].tolist(), one.tolist())
    # Gradients arrive at what was given.
    got.sum().backward()
    assert all(x.grad is not None for x in leaves.values())
    with pytest.raises(RuntimeError):
        wide.expand((5, 3, *distribution.batch_shape))


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_copies_and_pickles(case):
    distribution, _ = case.make(kiln, gradients=False)
    values = case.tensor(kiln)
    want = distribution.log_prob(values).tolist()
    for other in (copy.copy(distribution), pickle.loads(pickle.dumps(distribution))):
        assert repr(other) == repr(distribution)
        assert other.log_prob(values).tolist() == want
    other = copy.deepcopy(distribution)
    assert other.log_prob(values).tolist() == want


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_independent(case):
    distribution, _ = case.make(kiln)
    dims = len(distribution.batch_shape)
    joint = kd.Independent(distribution, dims)
    assert (
        joint.batch_shape == () and joint.event_shape == distribution.batch_shape + distribution.event_shape
    )
    draws = joint.sample((2,))
    assert draws.shape == (2, *joint.event_shape)
    one = distribution.log_prob(draws)
    assert kiln.allclose(joint.log_prob(draws), one.reshape((2, -1)).sum(-1))
    assert joint.support.event_dim == dims + distribution.support.event_dim
    assert joint.support.check(draws).all()
    assert joint.has_rsample == distribution.has_rsample
    assert joint.has_enumerate_support == (dims == 0 and distribution.has_enumerate_support)
    wide = joint.expand((3,))
    assert wide.batch_shape == (3,) and wide.event_shape == joint.event_shape
    assert wide.log_prob(draws[:, None]).shape == (2, 3)
    with pytest.raises(ValueError, match=f"Independent.*{dims + 1}"):
        kd.Independent(distribution, dims + 1)


# ---- What PyTorch has wrong, by definition


def test_modes_have_the_largest_density():
    places = kiln.linspace(0.001, 0.999, 999).double()
    for a, b in ((0.3, 0.7), (0.7, 0.3), (1.0, 2.0), (2.5, 1.5)):
        beta = kd.Beta(kiln.tensor(a).double(), b)
        assert abs(places[beta.log_prob(places).argmax()].item() - beta.mode.item()) < 2e-3
    for a, b in ((1.5, 2.5), (2.0, 1.5), (3.5, 4.0)):
        curve = kd.Kumaraswamy(kiln.tensor(a).double(), b)
        assert abs(places[curve.log_prob(places).argmax()].item() - curve.mode.item()) < 2e-3
    assert kd.Kumaraswamy(kiln.tensor([1.0, 0.5]), 1.0).mode.isnan().all()
    for k in (0.5, 1.0, 1.5):
        curve = kd.Weibull(0.5, kiln.tensor(k).double())
        assert abs(places[curve.log_prob(places).argmax()].item() - curve.mode.item()) < 2e-3


def test_moments_of_heavy_tails():
    tail = kd.GeneralizedPareto(0.0, 1.0, kiln.tensor([0.2, 0.5, 0.7, 1.2]))
    assert tail.mean.tolist() == pytest.approx([1.25, 2, 1 / 0.3, math.inf])
    assert tail.variance.tolist() == pytest.approx([1 / 0.384, math.inf, math.inf, math.inf])
    flat = kd.Pareto(kiln.tensor([1.0]), kiln.tensor([0.5], requires_grad=True))
    assert flat.mean.item() == math.inf and flat.variance.item() == math.inf


def test_entropy_of_multinomial_by_counting():
    probs = kiln.tensor([0.2, 0.3, 0.5], dtype=kiln.float64)
    coins = kd.Multinomial(4, probs)
    values = [[i, j, 4 - i - j] for i in range(5) for j in range(5 - i)]
    logs = coins.log_prob(kiln.tensor(values, dtype=kiln.float64))
    assert logs.exp().sum().item() == pytest.approx(1, abs=1e-12)
    assert coins.entropy().item() == pytest.approx(-(logs.exp() * logs).sum().item(), abs=1e-12)


DENSITIES = {
    "Beta": (kd.Beta(2.0, 3.5), 0, 1),
    "ContinuousBernoulli": (kd.ContinuousBernoulli(probs=0.3), 0, 1),
    "FisherSnedecor": (kd.FisherSnedecor(5.0, 12.0), 1e-9, 400),
    "GeneralizedPareto": (kd.GeneralizedPareto(1.0, 0.5, -0.4), 1, 2.25),
    "StudentT": (kd.StudentT(6.0, 1.0, 0.7), -80, 80),
    "VonMises": (kd.VonMises(0.5, 3.0), -math.pi, math.pi),
    "Gumbel": (kd.Gumbel(1.0, 2.0), -15, 90),
    "Weibull": (kd.Weibull(1.5, 2.0), 1e-9, 12),
}


@pytest.mark.parametrize("name", DENSITIES)
def test_densities_integrate_to_one(name):
    """And to the mean, and to the entropy where there is one: by the rule of midpoints."""
    distribution, low, high = DENSITIES[name]
    steps = 400000
    x = low + (high - low) * (kiln.arange(steps).double() + 0.5) / steps
    logs = distribution.log_prob(x).double()
    mass = logs.exp() * ((high - low) / steps)
    assert mass.sum().item() == pytest.approx(1, abs=3e-4)
    if name != "VonMises":
        assert (mass * x).sum().item() == pytest.approx(distribution.mean.item(), rel=1e-3)
        if name != "FisherSnedecor":
            assert -(mass * logs).sum().item() == pytest.approx(distribution.entropy().item(), abs=2e-3)


def test_discrete_probabilities_sum_to_one():
    for distribution in (
        kd.Poisson(3.0),
        kd.Geometric(probs=0.3),
        kd.NegativeBinomial(2.5, probs=0.4),
    ):
        k = kiln.arange(200).double()
        assert distribution.log_prob(k).exp().sum().item() == pytest.approx(1, abs=1e-5)


# ---- Values of a finite support


@pytest.mark.parametrize("case", [c for c in CASES if c.make(kiln)[0].has_enumerate_support], ids=repr)
def test_enumerate_support(case, torch):
    (mine, _), (theirs, _) = case.make(kiln), case.make(torch)
    for expand in (True, False):
        values = mine.enumerate_support(expand)
        assert values.tolist() == theirs.enumerate_support(expand).tolist()
    assert kiln.allclose(
        mine.log_prob(values).exp().sum(0), kiln.ones(3 if mine.batch_shape == (3,) else 2).double()
    )


def test_supports_that_are_not_enumerated():
    with pytest.raises(NotImplementedError, match="Binomial.*total_count"):
        kd.Binomial(kiln.tensor([2, 3]), probs=0.5).enumerate_support()
    with pytest.raises(NotImplementedError, match="Normal has no enumerate_support"):
        kd.Normal(0.0, 1.0).enumerate_support()
    with pytest.raises(NotImplementedError, match="Independent"):
        kd.Independent(kd.Bernoulli(probs=kiln.ones(2) / 2), 1).enumerate_support()


# ---- Arguments


def test_numbers_as_arguments():
    for distribution in (
        kd.Normal(0, 1), kd.Bernoulli(probs=0.5), kd.Bernoulli(logits=0), kd.Gamma(1, 2), kd.Beta(1, 2),
        kd.Exponential(1), kd.Uniform(0, 2), kd.StudentT(3), kd.Poisson(2), kd.Chi2(2),
        kd.Geometric(probs=0.5), kd.LogNormal(0, 1), kd.Pareto(1, 2), kd.Weibull(1, 2), kd.Cauchy(0, 1),
        kd.HalfNormal(1), kd.HalfCauchy(1), kd.Gumbel(0, 1), kd.Laplace(0, 1), kd.VonMises(0, 1),
        kd.FisherSnedecor(1, 2), kd.Kumaraswamy(1, 2), kd.InverseGamma(2, 1), kd.RelaxedBernoulli(1, 0.5),
        kd.NegativeBinomial(2, probs=0.5), kd.Binomial(3, probs=0.5), kd.ContinuousBernoulli(probs=0.2),
        kd.GeneralizedPareto(0, 1, 0.1), kd.LKJCholesky(3, 1),
    ):  # fmt: skip
        assert distribution.batch_shape == ()
        draw = distribution.sample()
        assert draw.dtype == kiln.float32 and draw.shape == distribution.event_shape
        assert distribution.log_prob(draw).isfinite().all()


def test_numbers_take_the_dtype_of_tensors():
    assert kd.Normal(kiln.zeros(2, dtype=kiln.float64), 1).scale.dtype == kiln.float64
    assert kd.Normal(kiln.tensor([1, 2]), 0.5).scale.tolist() == [0.5, 0.5]
    kiln.set_default_dtype(kiln.float64)
    assert kd.Normal(0, 1).sample().dtype == kiln.float64


def test_expanded_parameters_have_gradients():
    for case in CASES:
        _, leaves = case.make(kiln)
        arguments = {**case.arguments, **leaves}
        wide = {k: v.expand((2, *v.shape)) if k in leaves else v for k, v in arguments.items()}
        if "temperature" in wide:
            wide["temperature"] = arguments["temperature"]
        distribution = getattr(kd, case.name)(**wide)
        values = case.tensor(kiln)
        distribution.log_prob(values[:1]).sum().backward()
        assert all(x.grad is not None for x in leaves.values()), case


def test_one_distribution_for_many_steps():
    """Parameters of one shape stay leaves, so that steps of training do not share a graph."""
    loc, scale = kiln.zeros(2, requires_grad=True), kiln.ones(2, requires_grad=True)
    normal = kd.Normal(loc, scale)
    for _ in range(2):
        (-normal.log_prob(kiln.ones(2)).sum()).backward()
    assert loc.grad.tolist() == [-2, -2] and scale.grad.tolist() == [0, 0]


def test_parameters_are_broadcast():
    normal = kd.Normal(kiln.zeros(3, 1), kiln.ones(2))
    assert normal.batch_shape == (3, 2) and normal.sample((4,)).shape == (4, 3, 2)
    with pytest.raises(RuntimeError):
        kd.Normal(kiln.zeros(3), kiln.ones(2))


def test_distributions_of_ones_own():
    class Point(kd.Distribution):
        arg_constraints = {"place": kd.constraints.real}
        support = kd.constraints.real

        def __init__(self, place, validate_args=None):
            self.place = place
            super().__init__(place.shape, validate_args=validate_args)

        def rsample(self, sample_shape=()):
            return self.place.expand(self._extended_shape(sample_shape))

    point = Point(kiln.tensor([1.0, 2.0]))
    assert point.sample((3,)).shape == (3, 2) and point.expand((4, 2)).place.shape == (4, 2)
    assert repr(point) == "Point(place: kiln.Size([2]))"
    with pytest.raises(ValueError, match="Point: parameter place"):
        Point(kiln.tensor([kiln.nan]))


def test_representations():
    assert repr(kd.Normal(0.0, 1.0)) == "Normal(loc: 0.0, scale: 1.0)"
    assert repr(kd.Normal(kiln.zeros(2), 1.0)) == "Normal(loc: kiln.Size([2]), scale: kiln.Size([2]))"
    assert repr(kd.Categorical(logits=kiln.zeros(2))) == "Categorical(logits: kiln.Size([2]))"
    assert repr(kd.Independent(kd.Normal(kiln.zeros(2), 1.0), 1)).startswith("Independent(Normal(")
    assert repr(kd.ExpTransform().inv) == "Inverse(ExpTransform())"
    assert repr(kd.constraints.positive) == "GreaterThan(lower_bound=0.0)"


def test_lazy_probabilities_have_gradients():
    logits = kiln.zeros(2, requires_grad=True)
    coins = kd.Bernoulli(logits=logits)
    with kiln.no_grad():
        coins.sample()
    coins.probs.sum().backward()
    assert logits.grad.tolist() == [0.25, 0.25]
    assert coins.probs is coins.probs and "logits" in repr(coins)


# ---- Mixtures


def test_mixtures(torch):
    def make(lib):
        weights = lib.tensor([[0.3, 0.7], [0.5, 0.5]], dtype=lib.float64, requires_grad=True)
        places = lib.tensor([[-1.0, 2.0], [0.0, 0.5]], dtype=lib.float64, requires_grad=True)
        d = lib.distributions
        mixture = d.MixtureSameFamily(d.Categorical(weights), d.Normal(places, 0.5 * lib.ones(2).double()))
        return mixture, {"weights": weights, "places": places}

    for attribute in ("mean", "variance", "log_prob", "cdf"):
        results = []
        for lib in (kiln, torch):
            mixture, leaves = make(lib)
            x = lib.tensor([[0.3, 0.1], [1.0, 2.0], [-3.0, 0.7]], dtype=lib.float64)
            call = getattr(mixture, attribute) if attribute in ("log_prob", "cdf") else None
            found = lambda: call(x) if call else getattr(mixture, attribute)  # noqa: B023, E731
            results.append(answer(lib, found, leaves))
        near(results[0][0], results[1][0], 1e-12, attribute)
        for name in leaves:
            near(results[0][1][name], results[1][1][name], 1e-12, f"{attribute} by {name}")


def test_mixtures_of_vectors(torch):
    def make(lib):
        d = lib.distributions
        parts = d.Independent(d.Normal(lib.arange(6).reshape(3, 2).double(), lib.ones(2).double()), 1)
        return d.MixtureSameFamily(d.Categorical(logits=lib.arange(3).double()), parts)

    mine, theirs = make(kiln), make(torch)
    assert mine.event_shape == (2,) and mine.batch_shape == ()
    assert mine.mean.tolist() == pytest.approx(theirs.mean.tolist())
    assert mine.variance.tolist() == pytest.approx(theirs.variance.tolist())
    x = [[1.0, 2.0], [-1.0, 0.5]]
    want = theirs.log_prob(torch.tensor(x)).tolist()
    assert mine.log_prob(kiln.tensor(x).double()).tolist() == pytest.approx(want)
    wide = mine.expand((4, 5))
    assert wide.sample((2,)).shape == (2, 4, 5, 2) and wide.component_distribution.batch_shape == (4, 5, 3)
    draws = mine.sample((20000,))
    spread = draws.std(0) / math.sqrt(20000)
    assert ((draws.mean(0) - mine.mean).abs() < 5 * spread).all()


# ---- Names


def test_names_are_those_of_torch():
    torch = pytest.importorskip("torch")
    import importlib
    import pkgutil

    assert set(torch.distributions.__all__) <= set(kd.__all__)
    assert set(torch.distributions.constraints.__all__) == set(kd.constraints.__all__)
    assert set(torch.distributions.transforms.__all__) <= set(kd.transforms.__all__)
    for info in pkgutil.iter_modules(torch.distributions.__path__):
        theirs = importlib.import_module(f"torch.distributions.{info.name}")
        mine = importlib.import_module(f"kiln.distributions.{info.name}")
        for name in getattr(theirs, "__all__", []):
            assert hasattr(mine, name), f"{info.name}.{name}"


def test_signatures_are_those_of_torch():
    torch = pytest.importorskip("torch")
    import inspect

    for name in torch.distributions.__all__:
        mine, theirs = getattr(kd, name), getattr(torch.distributions, name)
        if inspect.isclass(theirs):
            assert list(inspect.signature(mine).parameters) == list(inspect.signature(theirs).parameters), (
                name
            )


def test_import_is_light():
    code = "import sys, kiln; assert 'kiln.distributions' not in sys.modules;"
    code += "import kiln.distributions; assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
