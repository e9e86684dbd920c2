"""What distributions refuse: parameters and values that are not allowed, and what they do not have."""

import pytest

import kiln
import kiln.distributions as kd

BAD = {
    "Normal: parameter scale": lambda: kd.Normal(0.0, kiln.tensor([1.0, -1.0])),
    "Normal: parameter loc must be in Real": lambda: kd.Normal(kiln.nan, 1.0),
    "Bernoulli: parameter probs must be in Interval": lambda: kd.Bernoulli(probs=1.5),
    "Bernoulli: expected one of probs or logits; got none": lambda: kd.Bernoulli(),
    "Bernoulli: expected one of probs or logits; got probs and logits": lambda: kd.Bernoulli(0.5, 0.5),
    "Categorical: probs must have one dim or more": lambda: kd.Categorical(kiln.tensor(0.5)),
    "Categorical: parameter probs must be in Simplex": lambda: kd.Categorical(kiln.tensor([-1.0, 2.0])),
    "Gamma: parameter concentration": lambda: kd.Gamma(0.0, 1.0),
    "Gamma: parameter rate": lambda: kd.Gamma(1.0, -1.0),
    "Chi2: parameter df": lambda: kd.Chi2(-1.0),
    "Beta: parameter concentration0": lambda: kd.Beta(1.0, 0.0),
    "Dirichlet: concentration must have": lambda: kd.Dirichlet(kiln.tensor(1.0)),
    "Dirichlet: parameter concentration": lambda: kd.Dirichlet(kiln.tensor([1.0, -1.0])),
    "Uniform: parameter low must be in LessThan.upper_bound=1.0": lambda: kd.Uniform(1.0, 1.0),
    "HalfNormal: parameter scale": lambda: kd.HalfNormal(-1.0),
    "LogNormal: parameter scale": lambda: kd.LogNormal(0.0, -1.0),
    "InverseGamma: parameter rate": lambda: kd.InverseGamma(1.0, -1.0),
    "RelaxedBernoulli: parameter probs": lambda: kd.RelaxedBernoulli(1.0, probs=2.0),
    "Geometric: parameter probs must be > 0": lambda: kd.Geometric(probs=0.0),
    "Weibull: parameter scale": lambda: kd.Weibull(-1.0, 1.0),
    "Pareto: parameter alpha": lambda: kd.Pareto(1.0, -1.0),
    "Binomial: parameter total_count": lambda: kd.Binomial(1.5 * kiln.ones(1), probs=0.5),
    "MultivariateNormal: loc must have": lambda: kd.MultivariateNormal(kiln.tensor(0.0), kiln.eye(1)),
    "MultivariateNormal: expected one of .*got none": lambda: kd.MultivariateNormal(kiln.zeros(2)),
    "MultivariateNormal: scale_tril must have 2 dims": lambda: kd.MultivariateNormal(
        kiln.zeros(2), scale_tril=kiln.ones(2)
    ),
    "MultivariateNormal: parameter covariance_matrix must be in PositiveDefinite": lambda: (
        kd.MultivariateNormal(kiln.zeros(2), -kiln.eye(2))
    ),
    "MultivariateNormal: parameter scale_tril must be in LowerCholesky": lambda: kd.MultivariateNormal(
        kiln.zeros(2), scale_tril=kiln.ones(2, 2)
    ),
    "Wishart: parameter df must be > 1": lambda: kd.Wishart(1.0, kiln.eye(2)),
    "LKJCholesky: dim": lambda: kd.LKJCholesky(1),
    "LowRankMultivariateNormal: cov_factor must be": lambda: kd.LowRankMultivariateNormal(
        kiln.zeros(2), kiln.ones(3, 1), kiln.ones(2)
    ),
    "MixtureSameFamily: mixture_distribution must be a Categorical": lambda: kd.MixtureSameFamily(
        kd.Normal(0.0, 1.0), kd.Normal(kiln.zeros(2), 1.0)
    ),
    "MixtureSameFamily: the last batch dim": lambda: kd.MixtureSameFamily(
        kd.Categorical(kiln.ones(3)), kd.Normal(kiln.zeros(2), 1.0)
    ),
    "TransformedDistribution: transforms must be": lambda: kd.TransformedDistribution(
        kd.Normal(0.0, 1.0), [abs]
    ),
    "TransformedDistribution: base_distribution must have": lambda: kd.TransformedDistribution(
        kd.Normal(0.0, 1.0), kd.SoftmaxTransform()
    ),
    "broadcast_all: expected tensors or numbers; got str": lambda: kd.Normal("0", 1.0),
    "Normal: value must be a Tensor; got float": lambda: kd.Normal(0.0, 1.0).log_prob(0.5),
    "Normal: value must broadcast": lambda: kd.Normal(kiln.zeros(2), 1.0).log_prob(kiln.zeros(3)),
    "Dirichlet: the last dims of value must be event_shape": lambda: kd.Dirichlet(kiln.ones(3)).log_prob(
        kiln.ones(2) / 2
    ),
    "Gamma: value must be in the support GreaterThanEq": lambda: kd.Gamma(1.0, 1.0).log_prob(
        kiln.tensor(-1.0)
    ),
    "Exponential: value must be in the support": lambda: kd.Exponential(1.0).cdf(kiln.tensor(-1.0)),
    "Categorical: value must be in the support": lambda: kd.Categorical(kiln.ones(2)).log_prob(
        kiln.tensor(2)
    ),
    "set_default_validate_args": lambda: kd.Distribution.set_default_validate_args(3),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_arguments(message):
    with pytest.raises(kiln.errors.ValueError, match=message):
        BAD[message]()


def test_what_must_be_a_tensor():
    for call, name in (
        (lambda: kd.Dirichlet([1.0, 2.0]), "Dirichlet: concentration"),
        (lambda: kd.Categorical([0.5, 0.5]), "Categorical: probs"),
        (lambda: kd.Multinomial(2, logits=0.5), "Multinomial: logits"),
        (lambda: kd.MultivariateNormal([0.0], kiln.eye(1)), "MultivariateNormal: loc"),
        (lambda: kd.Wishart(2.0, [[1.0]]), "Wishart: covariance_matrix"),
        (lambda: kd.LowRankMultivariateNormal(kiln.zeros(2), 1.0, kiln.ones(2)), "cov_factor"),
    ):
        with pytest.raises(kiln.errors.TypeError, match=f"{name} must be a Tensor; got (float|list)"):
            call()


def test_checks_can_be_left_out():
    loose = kd.Normal(0.0, -1.0, validate_args=False)
    assert loose.log_prob(kiln.tensor(0.0)).isnan()
    assert kd.Exponential(1.0, validate_args=False).log_prob(kiln.tensor(-1.0)).item() == 1
    try:
        kd.Distribution.set_default_validate_args(False)
        assert kd.Normal(0.0, -1.0).scale.item() == -1
        with pytest.raises(ValueError, match="scale"):
            kd.Normal(0.0, -1.0, validate_args=True)
    finally:
        kd.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError, match="scale"):
        kd.Normal(0.0, -1.0)


def test_what_is_not_there_says_so():
    with pytest.raises(kiln.errors.NotImplementedError, match="Beta has no cdf"):
        kd.Beta(1.0, 1.0).cdf(kiln.tensor(0.5))
    with pytest.raises(kiln.errors.NotImplementedError, match="Poisson has no rsample"):
        kd.Poisson(1.0).rsample()
    with pytest.raises(kiln.errors.NotImplementedError, match="LogisticNormal has no mean"):
        kd.LogisticNormal(kiln.zeros(1), 1.0).mean  # noqa: B018
    with pytest.raises(NotImplementedError, match="total_count"):
        kd.Multinomial(kiln.tensor([1, 2]), kiln.ones(2))
