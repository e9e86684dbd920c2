"""Writes torch_values.h: what torch.distributions computes, for torch_values.cpp.

    python tests/distributions/torch_values.py > tests/distributions/torch_values.h

It needs PyTorch. The values in the repository are those of PyTorch 2.13.0, in float64.
"""

from __future__ import annotations

import torch
from torch import distributions as d

torch.set_default_dtype(torch.float64)
T = torch.tensor

# (C++, the same in Python, values of which log_prob and cdf are taken, whether its mode is compared)
# Modes are left out where docs/distributions.md says that Kiln's differ.
CASES = [
    ("Normal(0.5, 2.0)", d.Normal(0.5, 2.0), [-3.0, 0.5, 1.25, 9.0]),
    ("Uniform(-1.0, 3.0)", d.Uniform(-1.0, 3.0), [-1.0, 0.25, 2.75]),
    ("Exponential(1.5)", d.Exponential(1.5), [0.0, 0.4, 3.0]),
    ("Laplace(-0.5, 1.5)", d.Laplace(-0.5, 1.5), [-4.0, -0.5, 0.0, 2.0]),
    ("Cauchy(1.0, 0.5)", d.Cauchy(1.0, 0.5), [-10.0, 0.9, 1.0, 30.0]),
    ("Gumbel(1.0, 2.0)", d.Gumbel(1.0, 2.0), [-3.0, 1.0, 8.0]),
    ("LogNormal(0.25, 0.75)", d.LogNormal(0.25, 0.75), [0.1, 1.0, 4.5]),
    ("HalfNormal(2.0)", d.HalfNormal(2.0), [0.0, 0.7, 5.0]),
    ("Weibull(2.0, 1.5)", d.Weibull(2.0, 1.5), [0.2, 1.5, 6.0]),
    ("Weibull(1.5, 0.8)", d.Weibull(1.5, 0.8), [0.2, 1.5, 6.0], False),
    ("Pareto(1.5, 2.5)", d.Pareto(1.5, 2.5), [1.5, 2.0, 40.0]),
    ("Pareto(1.5, 0.5)", d.Pareto(1.5, 0.5), [1.5, 2.0, 40.0]),
    ("StudentT(3.5, 0.5, 2.0)", d.StudentT(3.5, 0.5, 2.0), [-6.0, 0.5, 3.0]),
    ("StudentT(1.5)", d.StudentT(1.5), [-1.0, 2.0]),
    ("StudentT(0.5)", d.StudentT(0.5), [-1.0, 2.0]),
    ("Gamma(2.5, 1.5)", d.Gamma(2.5, 1.5), [0.1, 1.0, 7.0]),
    ("Gamma(0.4, 0.5)", d.Gamma(0.4, 0.5), [0.01, 1.0, 7.0]),
    ("Chi2(3.0)", d.Chi2(3.0), [0.5, 2.0, 11.0]),
    ("Beta(2.5, 1.5)", d.Beta(2.5, 1.5), [0.1, 0.5, 0.9]),
    ("Beta(0.5, 0.75)", d.Beta(0.5, 0.75), [0.1, 0.5, 0.9], False),
    ("VonMises(1.0, 4.0)", d.VonMises(T(1.0), T(4.0)), [-3.0, 0.5, 1.0, 2.0]),
    ("VonMises(0.0, 0.1)", d.VonMises(T(0.0), T(0.1)), [-3.0, 0.5]),
    ("Bernoulli({.probs = 0.3})", d.Bernoulli(0.3), [0.0, 1.0]),
    ("Bernoulli({.logits = 1.5})", d.Bernoulli(logits=T(1.5)), [0.0, 1.0]),
    ("Geometric({.probs = 0.3})", d.Geometric(0.3), [0.0, 1.0, 12.0]),
    ("Geometric({.logits = -2.0})", d.Geometric(logits=T(-2.0)), [0.0, 1.0, 12.0]),
    ("Binomial(5, {.probs = 0.3})", d.Binomial(5, T(0.3)), [0.0, 2.0, 5.0]),
    ("Binomial(12, {.logits = 0.5})", d.Binomial(12, logits=T(0.5)), [0.0, 7.0, 12.0]),
    ("NegativeBinomial(3.5, {.probs = 0.4})", d.NegativeBinomial(3.5, T(0.4)), [0.0, 2.0, 20.0]),
    ("NegativeBinomial(2.0, {.logits = 1.0})", d.NegativeBinomial(2.0, logits=T(1.0)), [0.0, 9.0]),
    ("Poisson(3.5)", d.Poisson(3.5), [0.0, 3.0, 15.0]),
    ("Categorical({.probs = vector({0.2, 0.3, 0.5})})", d.Categorical(T([0.2, 0.3, 0.5])), [0.0, 2.0]),
    (
        "Categorical({.logits = vector({-1.0, 0.5, 2.0})})",
        d.Categorical(logits=T([-1.0, 0.5, 2.0])),
        [0.0, 1.0, 2.0],
    ),
    (
        "OneHotCategorical({.probs = vector({1.0, 3.0, 4.0})})",
        d.OneHotCategorical(T([1.0, 3.0, 4.0])),
        [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]],
    ),
    (
        "Multinomial(4, {.probs = vector({0.2, 0.3, 0.5})})",
        d.Multinomial(4, T([0.2, 0.3, 0.5])),
        [[1.0, 1.0, 2.0], [0.0, 0.0, 4.0]],
    ),
    (
        "Dirichlet(vector({1.5, 2.5, 3.0}))",
        d.Dirichlet(T([1.5, 2.5, 3.0])),
        [[0.2, 0.3, 0.5], [0.7, 0.2, 0.1]],
    ),
    (
        "MultivariateNormal(vector({1.0, -1.0}), {.scale_tril = matrix({2.0, 0.0, 0.5, 1.5})})",
        d.MultivariateNormal(T([1.0, -1.0]), scale_tril=T([[2.0, 0.0], [0.5, 1.5]])),
        [[0.0, 0.0], [3.0, -2.5]],
    ),
    (
        "MultivariateNormal(vector({1.0, -1.0}), {.covariance_matrix = matrix({2.0, 0.5, 0.5, 1.0})})",
        d.MultivariateNormal(T([1.0, -1.0]), covariance_matrix=T([[2.0, 0.5], [0.5, 1.0]])),
        [[0.0, 0.0], [3.0, -2.5]],
    ),
    (
        "MultivariateNormal(vector({1.0, -1.0}), {.precision_matrix = matrix({2.0, 0.5, 0.5, 1.0})})",
        d.MultivariateNormal(T([1.0, -1.0]), precision_matrix=T([[2.0, 0.5], [0.5, 1.0]])),
        [[0.0, 0.0], [3.0, -2.5]],
    ),
    (
        "Independent(Normal(vector({0.0, 1.0}), vector({1.0, 2.0})), 1)",
        d.Independent(d.Normal(T([0.0, 1.0]), T([1.0, 2.0])), 1),
        [[0.5, -0.5]],
    ),
    (
        "MixtureSameFamily(Categorical({.probs = vector({0.25, 0.75})}),"
        " Normal(vector({-1.0, 2.0}), vector({0.5, 1.5})))",
        d.MixtureSameFamily(
            d.Categorical(T([0.25, 0.75])), d.Normal(T([-1.0, 2.0]), T([0.5, 1.5]))
        ),
        [-1.5, 0.0, 3.0],
    ),
    (
        "TransformedDistribution(Normal(0.5, 2.0), {ExpTransform(), AffineTransform(1.0, -2.0)})",
        d.TransformedDistribution(
            d.Normal(0.5, 2.0), [d.ExpTransform(), d.AffineTransform(1.0, -2.0)]
        ),
        [-9.0, 0.5],
    ),
    (
        "TransformedDistribution(Normal(0.5, 2.0), {SigmoidTransform()})",
        d.TransformedDistribution(d.Normal(0.5, 2.0), [d.SigmoidTransform()]),
        [0.1, 0.8],
    ),
    (
        "TransformedDistribution(Normal(0.5, 0.25), {TanhTransform()})",
        d.TransformedDistribution(d.Normal(0.5, 0.25), [d.TanhTransform()]),
        [-0.5, 0.8],
    ),
]
PROBS = [0.05, 0.5, 0.875]


def numbers(x: torch.Tensor) -> str:
    def one(v: float) -> str:
        if v != v:
            return "NAN"
        return repr(v) if abs(v) != float("inf") else ("INFINITY" if v > 0 else "-INFINITY")

    return "{" + ", ".join(one(v) for v in x.to(torch.float64).flatten().tolist()) + "}"


def given(compute) -> str:
    """What compute() gives; empty where the class does not have it."""
    try:
        return numbers(compute())
    except (NotImplementedError, AttributeError):
        return "{}"


HEAD = """// Written by torch_values.py: what torch.distributions computes, in float64.
// clang-format off
#pragma once

#include <cmath>
#include <memory>
#include <vector>

#include "kiln/distributions/distributions.h"
#include "kiln/tensor/creation.h"

namespace kiln::test {

struct TorchRow {
  const char* text;
  distributions::Shared<distributions::Distribution> distribution;
  std::vector<double> values, log_prob, cdf;  // an empty list: PyTorch has none
  std::vector<double> icdf;                   // at %s
  std::vector<double> mean, variance, entropy, mode;
};

inline Tensor vector(const std::vector<double>& x) { return tensor(x); }
inline Tensor matrix(const std::vector<double>& x) { return from_vector(x, {2, 2}); }

// With f64 as the default dtype.
inline std::vector<TorchRow> torch_rows() {
  using namespace distributions;
  return {"""

TAIL = """  };
}

}  // namespace kiln::test"""


def main() -> None:
    print(HEAD % numbers(T(PROBS)))
    for case in CASES:
        text, dist, values = case[:3]
        x = T(values)
        fields = [
            f'"{text}"',
            text,
            numbers(x),
            numbers(dist.log_prob(x)),
            given(lambda: dist.cdf(x)),
            given(lambda: dist.icdf(T(PROBS))),
            given(lambda: dist.mean),
            given(lambda: dist.variance),
            given(lambda: dist.entropy()),
            "{}" if len(case) > 3 else given(lambda: dist.mode),
        ]
        print("    {" + ",\n     ".join(fields) + "},")
    print(TAIL)


main()
