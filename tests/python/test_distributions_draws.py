"""Draws of kiln.distributions: moments, distributions, gradients. Bounds are 5 standard errors."""

import math

import numpy as np
import pytest

import kiln
import kiln.distributions as kd
from kiln.distributions._standard_gamma import gammainc, log_standard_gamma, standard_gamma
from test_distributions import CASES, Case

COUNT = 20000
# What cases of the other file do not have: small and large parameters, and the edges.
MORE = [
    Case("Gamma", None, concentration=[0.01, 30.0, 1000.0], rate=[1.0, 2.0, 0.1]),
    Case("Beta", None, concentration1=[0.05, 5.0, 300.0], concentration0=[0.6, 0.5, 100.0]),
    Case("Dirichlet", None, concentration=[[0.05, 0.1, 0.02], [30.0, 1.0, 8.0]]),
    Case("StudentT", None, df=[5.0, 9.0, 40.0], loc=[0.0, 1.0, -2.0], scale=[1.0, 2.0, 0.5]),
    Case("FisherSnedecor", None, df1=[1.0, 8.0, 4.0], df2=[9.0, 12.0, 30.0]),
    Case("InverseGamma", None, concentration=[5.0, 6.5, 9.0], rate=[0.7, 2.0, 1.5]),
    Case("Pareto", None, scale=[1.0, 2.0, 0.5], alpha=[5.0, 7.0, 9.0]),
    Case("Binomial", None, total_count=100, probs=[0.01, 0.5, 0.99]),
    Case("Bernoulli", None, probs=[0.0, 1.0, 0.001]),
    Case("Poisson", None, rate=[0.001, 12.0, 400.0]),
    Case("NegativeBinomial", None, total_count=[0.1, 5.0, 50.0], probs=[0.9, 0.2, 0.5]),
    Case("VonMises", None, loc=[3.0, -3.0, 0.0], concentration=[1e-6, 2.0, 500.0]),
    Case("Categorical", None, probs=[[0.0, 1.0, 0.0], [0.0, 0.5, 0.5]]),
    Case("Wishart", None, df=[4.0, 20.0], scale_tril=[[[1.0, 0.0], [0.5, 2.0]]] * 2),
]
# With so few degrees of freedom, rounding makes some draws singular; MORE has better ones.
ALL = [c for c in CASES if c.name != "Wishart"] + MORE


def parameters(cases):
    return [pytest.param(c, id=f"{c!r}-{i}") for i, c in enumerate(cases)]


def within(estimate, spread, wanted, what):
    """Whether means of COUNT draws are within 5 standard errors of what they should be."""
    estimate, spread, wanted = (
        np.array(x.tolist() if hasattr(x, "tolist") else x) for x in (estimate, spread, wanted)
    )
    error = np.abs(estimate - wanted)
    allowed = 5 * spread / math.sqrt(COUNT) + 1e-9
    assert (error <= allowed).all(), (what, error / allowed * 5)


@pytest.mark.parametrize("case", parameters(ALL))
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_moments(case, dtype):
    """Shapes, dtypes, the support, and mean and variance where the fourth moment allows it."""
    kiln.manual_seed(1)
    distribution, _ = case.make(kiln, dtype)
    draws = distribution.sample((COUNT,))
    assert draws.shape == (COUNT, *distribution.batch_shape, *distribution.event_shape)
    assert not draws.requires_grad
    whole = case.name == "Categorical"
    assert draws.dtype == (kiln.int64 if whole else getattr(kiln, dtype))
    assert distribution.sample().shape == distribution.batch_shape + distribution.event_shape
    assert distribution.sample((2, 0)).numel() == 0
    some = draws[:500]
    if case.name == "LogisticNormal" or (case.name == "Dirichlet" and dtype == "float32"):
        assert (some.sum(-1) - 1).abs().max().item() < 1e-5
    else:
        assert distribution.support.check(some).all()
    if whole or case.name in ("LKJCholesky", "LogisticNormal", "VonMises"):
        return
    x = draws.double().numpy()
    try:
        mean, variance = (np.array(m.tolist()) for m in (distribution.mean, distribution.variance))
    except NotImplementedError:
        assert case.name.startswith("Relaxed")
        return
    usual = np.isfinite(mean) & np.isfinite(variance)
    within(x.mean(0)[usual], np.sqrt(variance)[usual], mean[usual], "mean")
    if case.name in (
        "FisherSnedecor",
        "InverseGamma",
        "LogNormal",
        "Pareto",
        "StudentT",
        "GeneralizedPareto",
    ):
        usual &= np.array([case in MORE and case.name != "LogNormal"])
    squares = (x - x.mean(0)) ** 2
    within(squares.mean(0)[usual], squares.std(0)[usual], variance[usual], "variance")


@pytest.mark.parametrize("case", parameters(ALL))
def test_draws_follow_the_density(case):
    """By the cdf (Kolmogorov and Smirnov), by counts, or by the mean of log_prob: minus the entropy."""
    kiln.manual_seed(2)
    distribution, _ = case.make(kiln)
    draws = distribution.sample((COUNT,))
    compared = False
    if case.name == "Categorical":
        for value in range(3):
            probs = distribution.probs[..., value].detach().numpy()
            share = (draws == value).double().mean(0).numpy()
            within(share, np.sqrt(probs * (1 - probs)), probs, value)
        return
    try:
        ranks = distribution.cdf(draws).detach().sort(0).values.numpy()
        ideal = (np.arange(COUNT) + 0.5).reshape((-1,) + (1,) * (ranks.ndim - 1)) / COUNT
        # P(D sqrt(n) > 2.6) is below 3e-6.
        assert np.abs(ranks - ideal).max() * math.sqrt(COUNT) < 2.6
        compared = True
    except NotImplementedError:
        pass
    try:
        entropy = distribution.entropy().detach().numpy()
        logs = distribution.log_prob(draws).detach().numpy()
        within(logs.mean(0), logs.std(0), -entropy, "entropy")
        compared = True
    except NotImplementedError:
        pass
    if case.name in ("Poisson", "NegativeBinomial", "Geometric", "Binomial"):
        for value in range(4):
            probs = distribution.log_prob(kiln.full(distribution.batch_shape, float(value))).exp()
            probs = probs.detach().double().numpy()
            share = (draws == value).double().mean(0).numpy()
            within(share, np.sqrt(probs * (1 - probs)), probs, value)
        compared = True
    special = (
        "FisherSnedecor",
        "LKJCholesky",
        "LogisticNormal",
        "VonMises",
        "RelaxedBernoulli",
        "RelaxedOneHotCategorical",
    )
    assert compared or case.name in special


def test_von_mises_by_its_circular_moments():
    kiln.manual_seed(0)
    for loc, k in ((3.0, 0.3), (-1.0, 4.0), (0.5, 200.0)):
        angles = kd.VonMises(kiln.tensor(loc).double(), k).sample((COUNT,))
        assert (angles.abs() <= math.pi).all()
        order = kiln.special.i1e(kiln.tensor(k).double()) / kiln.special.i0e(kiln.tensor(k).double())
        for f in (np.cos, np.sin):
            x = f(angles.numpy())
            within(x.mean(), x.std(), order.item() * f(loc), f.__name__)


def test_f_draws_by_the_beta_distribution():
    """d1 x / (d1 x + d2) is of Beta(d1 / 2, d2 / 2)."""
    kiln.manual_seed(0)
    for d1, d2 in ((1.0, 2.5), (8.0, 12.0), (0.5, 0.7)):
        x = kd.FisherSnedecor(kiln.tensor(d1).double(), d2).sample((COUNT,))
        y = d1 * x / (d1 * x + d2)
        beta = kd.Beta(kiln.tensor(d1 / 2).double(), d2 / 2)
        within(y.mean(), y.std(), beta.mean, "mean")
        slopes = kiln.tensor([d1 / 2, (d1 + d2) / 2], dtype=kiln.float64).digamma()
        within(y.log().mean(), y.log().std(), slopes[0] - slopes[1], "log")


def test_lkj_by_the_correlations():
    """Each correlation is 2 b - 1 with b of Beta(a, a), a = concentration - 1 + dim / 2."""
    kiln.manual_seed(0)
    for dim, c in ((2, 1.0), (3, 2.0), (5, 0.5)):
        factors = kd.LKJCholesky(dim, kiln.tensor(c).double()).sample((COUNT,))
        assert kd.constraints.corr_cholesky.check(factors).all()
        matrices = (factors @ factors.mT).numpy()
        variance = 1 / (2 * (c - 1 + dim / 2) + 1)
        for i in range(dim):
            for j in range(i):
                r = matrices[:, i, j]
                within(r.mean(), r.std(), 0, "mean")
                within((r**2).mean(), (r**2).std(), variance, "variance")


def test_relaxed_draws():
    """A relaxed coin is above 1 / 2 as often as the coin is 1; classes are largest likewise."""
    kiln.manual_seed(0)
    for temperature in (0.2, 1.5):
        coin = kd.RelaxedBernoulli(temperature, probs=kiln.tensor(0.3).double())
        share = (coin.sample((COUNT,)) > 0.5).double().numpy()
        within(share.mean(), share.std(), 0.3, "coin")
        probs = kiln.tensor([0.2, 0.3, 0.5], dtype=kiln.float64)
        classes = kd.RelaxedOneHotCategorical(temperature, probs=probs).sample((COUNT,))
        assert kiln.allclose(classes.sum(-1), kiln.ones(COUNT).double())
        for k in range(3):
            share = (classes.argmax(-1) == k).double().numpy()
            within(share.mean(), share.std(), probs[k].item(), k)


def test_logistic_normal_is_normal_inside():
    kiln.manual_seed(0)
    loc = kiln.tensor([0.3, -1.0], dtype=kiln.float64)
    draws = kd.LogisticNormal(loc, 0.5).sample((COUNT,))
    x = kd.StickBreakingTransform().inv(draws).numpy()
    within(x.mean(0), x.std(0), loc.tolist(), "loc")
    assert np.abs(x.std(0) - 0.5).max() < 0.02


@pytest.mark.parametrize("case", parameters(CASES))
def test_seeds(case):
    distribution, _ = case.make(kiln)
    kiln.manual_seed(5)
    first = distribution.sample((3,)).tolist()
    other = distribution.sample((3,)).tolist()
    kiln.manual_seed(5)
    assert distribution.sample((3,)).tolist() == first
    discrete = distribution.support.is_discrete
    assert discrete or first != other


# ---- Gradients of draws

WITH_CDF = [c for c in ALL if c.name in (
    "Cauchy", "Chi2", "ContinuousBernoulli", "Exponential", "Gamma", "GeneralizedPareto", "Gumbel",
    "HalfCauchy", "HalfNormal", "InverseGamma", "Kumaraswamy", "Laplace", "LogNormal", "Normal", "Pareto",
    "Uniform", "Weibull",
)]  # fmt: skip


@pytest.mark.parametrize("case", parameters(WITH_CDF))
def test_gradients_of_draws_are_implicit(case):
    """A draw keeps its probability: dx/dp = -(dF/dp) / f(x) for each parameter p."""
    kiln.manual_seed(3)
    distribution, leaves = case.make(kiln)
    draws = distribution.rsample()
    assert draws.requires_grad
    grads = kiln.autograd.grad(draws.sum(), list(leaves.values()))
    distribution, leaves = case.make(kiln)
    x = draws.detach()
    ranks = distribution.cdf(x)
    slopes = kiln.autograd.grad(ranks.sum(), list(leaves.values()), allow_unused=True)
    density = distribution.log_prob(x).exp().detach()
    for name, grad, slope in zip(leaves, grads, slopes, strict=True):
        wanted = (-slope / density).numpy()
        usual = np.isfinite(wanted) & (density.numpy() > 1e-12)
        np.testing.assert_allclose(grad.numpy()[usual], wanted[usual], rtol=1e-6, atol=1e-9, err_msg=name)
        assert usual.any()


# a, x, dx/da at constant P(a, x): by mpmath with 50 digits.
REFERENCE = [
    (0.001, 1e-250, 5.750707013167011e-245),
    (0.001, 0.5, 461.99216718924004),
    (0.01, 1e-30, 6.85166673319527e-27),
    (0.01, 0.001, 0.6354138007185822),
    (0.01, 1.9, 72.6913505444139),
    (0.01, 2.1, 74.44820677469735),
    (0.3, 0.01, 0.14920695356145888),
    (0.3, 0.7, 2.338650104806125),
    (0.3, 5.0, 4.699824415679834),
    (1.0, 0.02, 0.08767003540414002),
    (1.0, 1.0, 1.1735630272247268),
    (1.0, 8.0, 2.768936845834868),
    (2.5, 0.3, 0.30557287974671365),
    (2.5, 2.0, 0.9534627029186165),
    (2.5, 12.0, 2.110481520182),
    (30.0, 12.0, 0.6141669955514618),
    (30.0, 29.5, 0.9971467809303334),
    (30.0, 30.5, 1.0139074327032462),
    (30.0, 60.0, 1.3939072794341447),
    (1000.0, 900.0, 0.9484026381794104),
    (1000.0, 1000.0, 1.0001666833238059),
    (1000.0, 1110.0, 1.0532628966754283),
    (10000.0, 9700.0, 0.9848641224547374),
    (10000.0, 10001.0, 1.0000666660000572),
    (10000.0, 10400.0, 1.0197555369295166),
    (1000000.0, 996000.0, 0.9979974943199813),
    (1000000.0, 1003000.0, 1.001498669162342),
]


@pytest.mark.parametrize("row", REFERENCE, ids=lambda row: f"{row[0]:g}-{row[1]:g}")
def test_gradient_of_gamma_draws_by_many_digits(row):
    from kiln.distributions._standard_gamma import _relative_slope

    a, x, wanted = row
    log = kiln.tensor(x, dtype=kiln.float64).log()
    got = _relative_slope(kiln.tensor(a, dtype=kiln.float64), log).item() * x
    assert got == pytest.approx(wanted, rel=1e-11)


@pytest.mark.parametrize("a", [0.01, 0.1, 0.5, 1.0, 2.5, 10.0, 100.0, 1e4])
def test_gradient_of_gamma_draws_as_in_torch(a):
    """PyTorch's own is an approximation, with 3 digits in the worst case; those above decide."""
    torch = pytest.importorskip("torch")
    kiln.manual_seed(0)
    c = kiln.full((1000,), a, dtype=kiln.float64, requires_grad=True)
    draws = standard_gamma(c)
    (grad,) = kiln.autograd.grad(draws.sum(), [c])
    theirs = torch._standard_gamma_grad(
        torch.full((1000,), a).double(), torch.tensor(draws.tolist()).double()
    )
    np.testing.assert_allclose(grad.numpy(), theirs.numpy(), rtol=2e-3, atol=1e-40)


def test_incomplete_gamma_by_differences():
    a = kiln.tensor([0.02, 0.4, 1.0, 3.0, 20.0, 300.0], dtype=kiln.float64)
    for ratio in (0.5, 0.9, 1.1, 1.6):
        x = a.clone() * ratio
        p, q = a.clone().requires_grad_(), x.clone().requires_grad_()
        grads = kiln.autograd.grad(gammainc(p, q).sum(), [p, q])
        f = kiln.special.gammainc
        step = a * 1e-4
        # Of fourth order: f(-2h) - 8 f(-h) + 8 f(h) - f(2h) over 12 h.
        by_a = (f(a - 2 * step, x) - 8 * f(a - step, x) + 8 * f(a + step, x) - f(a + 2 * step, x)) / (
            12 * step
        )
        np.testing.assert_allclose(grads[0].numpy(), by_a.numpy(), rtol=1e-6, atol=1e-9)
        by_x = ((a - 1) * x.log() - x - a.lgamma()).exp()
        np.testing.assert_allclose(grads[1].numpy(), by_x.numpy(), rtol=1e-12)
    zero = kiln.tensor([0.0], dtype=kiln.float64, requires_grad=True)
    one = kiln.ones(1, dtype=kiln.float64, requires_grad=True)
    assert [g.tolist() for g in kiln.autograd.grad(gammainc(one, zero).sum(), [one, zero])] == [[0], [0]]


def test_gamma_draws_at_the_edges():
    tiny = kiln.full((1000,), 1e-4, requires_grad=True)
    draws = standard_gamma(tiny)
    assert draws.dtype == kiln.float32 and (draws > 0).all() and draws.isfinite().all()
    draws.sum().backward()
    assert tiny.grad.isfinite().all()
    odd = kiln.tensor([0.0, kiln.nan, kiln.inf, 1e300], dtype=kiln.float64)
    logs = log_standard_gamma(odd)
    assert logs[0].item() == -math.inf and logs[1].isnan() and logs[2].item() == math.inf
    assert logs[3].item() == pytest.approx(math.log(1e300))
    assert standard_gamma(kiln.ones(0)).shape == (0,)
    # All of them underflow in floats, and their shares are known nevertheless.
    few = kd.Dirichlet(kiln.full((3,), 1e-3)).sample((200,))
    assert (few.sum(-1) - 1).abs().max().item() < 1e-6


EXPECTED = {
    "Beta": {"concentration1": [0.4, 2.0], "concentration0": [1.3, 5.0]},
    "Gamma": {"concentration": [0.2, 4.0], "rate": [2.0, 0.5]},
    "StudentT": {"df": [7.0, 12.0], "loc": [1.0, 0.0], "scale": [2.0, 1.0]},
    "FisherSnedecor": {"df1": [3.0, 6.0], "df2": [12.0, 20.0]},
    "InverseGamma": {"concentration": [6.0, 9.0], "rate": [2.0, 0.5]},
    "Chi2": {"df": [0.7, 6.0]},
}


@pytest.mark.parametrize("name", EXPECTED)
def test_gradients_of_draws_by_expectation(name):
    """The mean of d(x^2)/dp is dE(x^2)/dp, which follows from mean and variance."""
    kiln.manual_seed(4)
    given = {k: kiln.tensor(v, dtype=kiln.float64, requires_grad=True) for k, v in EXPECTED[name].items()}
    exact = getattr(kd, name)(**given)
    wanted = kiln.autograd.grad((exact.variance + exact.mean**2).sum(), list(given.values()))
    many = {k: v.detach().expand((COUNT, 2)).clone().requires_grad_() for k, v in given.items()}
    draws = getattr(kd, name)(**many).rsample()
    grads = kiln.autograd.grad((draws**2).sum(), list(many.values()))
    for key, grad, exactly in zip(given, grads, wanted, strict=True):
        within(grad.numpy().mean(0), grad.numpy().std(0), exactly.numpy(), key)


def test_gradients_of_dirichlet_draws_by_expectation():
    kiln.manual_seed(4)
    given = kiln.tensor([0.3, 1.5, 4.0], dtype=kiln.float64, requires_grad=True)
    weights = kiln.tensor([1.0, -2.0, 0.5], dtype=kiln.float64)
    exact = kd.Dirichlet(given)
    moments = exact.variance + exact.mean**2
    (wanted,) = kiln.autograd.grad((moments * weights).sum(), [given])
    many = given.detach().expand((COUNT, 3)).clone().requires_grad_()
    (grad,) = kiln.autograd.grad((kd.Dirichlet(many).rsample() ** 2 * weights).sum(), [many])
    within(grad.numpy().mean(0), grad.numpy().std(0), wanted.numpy(), "concentration")


def test_gradients_of_wishart_draws_by_expectation():
    kiln.manual_seed(4)
    df = kiln.tensor(4.0, dtype=kiln.float64, requires_grad=True)
    factor = kiln.tensor([[1.0, 0.0], [0.5, 2.0]], dtype=kiln.float64, requires_grad=True)
    exact = kd.Wishart(df, scale_tril=factor)
    wanted = kiln.autograd.grad((exact.variance + exact.mean**2).sum(), [df, factor])
    dfs = df.detach().expand((COUNT,)).clone().requires_grad_()
    factors = factor.detach().expand((COUNT, 2, 2)).clone().requires_grad_()
    draws = kd.Wishart(dfs, scale_tril=factors).rsample()
    grads = kiln.autograd.grad((draws**2).sum(), [dfs, factors])
    within(grads[0].numpy().mean(0), grads[0].numpy().std(0), wanted[0].numpy(), "df")
    lower = np.tril(grads[1].numpy())
    within(lower.mean(0), lower.std(0), np.tril(wanted[1].numpy()), "scale_tril")


JOINT = [c for c in CASES if c.name in ("MultivariateNormal", "LowRankMultivariateNormal", "LogisticNormal")]


@pytest.mark.parametrize("case", parameters(JOINT))
def test_draws_of_vectors_by_covariance_and_gradients(case):
    kiln.manual_seed(6)
    distribution, leaves = case.make(kiln)
    draws = distribution.rsample((COUNT,))
    grads = kiln.autograd.grad(draws.mean(0).sum(), list(leaves.values()), allow_unused=True)
    assert grads[0] is not None and all(g is None or g.isfinite().all() for g in grads)
    if case.name == "LogisticNormal":
        return
    assert kiln.allclose(grads[0], kiln.ones_like(grads[0]) * (2 if distribution.batch_shape else 1))
    x = (draws - distribution.loc).detach()
    products = (x.unsqueeze(-1) * x.unsqueeze(-2)).numpy()
    within(products.mean(0), products.std(0), distribution.covariance_matrix.detach().numpy(), "covariance")
    identity = distribution.covariance_matrix @ distribution.precision_matrix
    assert kiln.allclose(identity, kiln.eye(3).double().expand(identity.shape), atol=1e-10)
    factor = distribution.scale_tril
    assert kiln.allclose(factor @ factor.mT, distribution.covariance_matrix, atol=1e-12)


def test_straight_through():
    logits = kiln.zeros(3, requires_grad=True)
    draw = kd.OneHotCategoricalStraightThrough(logits=logits).rsample((4,))
    assert sorted(draw.detach().round().unique().tolist()) == [0, 1]
    assert draw.sum(-1).tolist() == pytest.approx([1] * 4)
    (draw * kiln.arange(3.0)).sum().backward()
    assert logits.grad.tolist() == pytest.approx([-4 / 3, 0, 4 / 3], abs=1e-6)


def test_samples_without_gradients():
    for case in CASES:
        distribution, _ = case.make(kiln)
        assert not distribution.sample().requires_grad
        if distribution.has_rsample:
            assert distribution.rsample((2,)).requires_grad, case


def test_old_names():
    with pytest.warns(FutureWarning):
        assert kd.Normal(0.0, 1.0).sample_n(3).shape == (3,)
