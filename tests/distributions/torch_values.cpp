// Each class against torch.distributions: log_prob, cdf, icdf, mean, variance, entropy, mode.
#include "tests/distributions/torch_values.h"

#include <numbers>

#include <doctest/doctest.h>

#include "tests/distributions/support.h"
#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::distributions;
using namespace kiln::test;

namespace {

// "" if f() gives these numbers in any shape; nothing is compared where PyTorch has none.
template <class F>
std::string torch_mismatch(const std::vector<double>& expected, double tolerance, F&& f) {
  if (expected.empty()) return "";
  const Tensor x = f();
  // To mismatch() every number is near to an infinite one.
  const Tensor wanted = tensor(expected).reshape(x.shape());
  if (!x.isinf().equal(wanted.isinf())) return concat("got ", to_string(x));
  return mismatch(x.to(f64), x.shape(), expected, tolerance);
}

}  // namespace

TEST_CASE("distributions: the values of torch.distributions") {
  const DoubleGuard guard;
  for (const TorchRow& row : torch_rows()) {
    INFO(std::string(row.text));
    const distributions::Distribution& d = *row.distribution;
    // PyTorch's Bessel functions have 8 digits. (SciPy's value is below.)
    const double tolerance = d.name() == "VonMises" ? 1e-7 : 1e-10;
    Shape shape = d.event_shape();
    shape.insert(0, -1);
    const Tensor x = vector(row.values).reshape(shape);
    CHECK(torch_mismatch(row.log_prob, tolerance, [&] { return d.log_prob(x); }) == "");
    CHECK(torch_mismatch(row.cdf, tolerance, [&] { return d.cdf(x); }) == "");
    CHECK(torch_mismatch(row.icdf, tolerance, [&] {
            return d.icdf(vector({0.05, 0.5, 0.875}));
          }) == "");
    CHECK(torch_mismatch(row.mean, tolerance, [&] { return d.mean(); }) == "");
    CHECK(torch_mismatch(row.variance, tolerance, [&] { return d.variance(); }) == "");
    CHECK(torch_mismatch(row.entropy, tolerance, [&] { return d.entropy(); }) == "");
    CHECK(torch_mismatch(row.mode, tolerance, [&] { return d.mode(); }) == "");
  }
}

// Values of SciPy 1.16: scipy.stats' norm, laplace, gamma, halfnorm, weibull_min, pareto, expon, t,
// bernoulli, vonmises, binom, nbinom, poisson, multivariate_normal and dirichlet.
TEST_CASE("distributions: tails, where formulas lose digits") {
  const DoubleGuard guard;
  const auto same = [](const Tensor& x, double expected, double tolerance = 1e-12) {
    return std::abs(x.item<double>() / expected - 1) < tolerance;
  };
  CHECK(same(Normal(0, 1).cdf(tensor(-30.0)), 4.906713927147908e-198));
  CHECK(same(Normal(0, 1).icdf(tensor(1e-200)), -30.20559417957964));
  CHECK(same(Laplace(0, 1).icdf(tensor(1e-300)), -690.0823807176538));
  CHECK(same(Laplace(0, 1).cdf(tensor(-600.0)), 1.3251982765021554e-261));
  CHECK(same(Gamma(2.5, 1).cdf(tensor(1e-8)), 3.0090110907617338e-21));
  CHECK(same(Gamma(60, 1).cdf(tensor(50.0)), 0.09226505195893298));
  CHECK(same(HalfNormal(1).cdf(tensor(1e-9)), 7.978845608028653e-10));
  CHECK(same(HalfNormal(1).icdf(tensor(1e-9)), std::sqrt(std::numbers::pi / 2) * 1e-9));
  CHECK(same(Weibull(1, 1.5).cdf(tensor(1e-9)), 3.16227766016833e-14, 1e-9));
  CHECK(same(Pareto(1, 2.5).cdf(tensor(1 + 1e-9)), 2.5000002068509275e-09, 1e-7));
  CHECK(same(Exponential(1).cdf(tensor(1e-12)), 9.999999999995e-13));
  CHECK(same(StudentT(3).log_prob(tensor(1e100)), -919.8377014699056));
  CHECK(same(Bernoulli({.probs = 1e-12}).log_prob(tensor(1.0)), -27.631021115928547));
  CHECK(same(VonMises(0, 1e4).log_prob(tensor(0.01)), 3.1862233188111317, 1e-9));
  CHECK(same(Binomial(1000, {.probs = 1e-4}).log_prob(tensor(3.0)), -8.802222236545994, 1e-11));
  CHECK(same(NegativeBinomial(2.5, {.probs = 0.4}).log_prob(tensor(3.0)), -2.144564627119699));
  CHECK(same(Poisson(900).log_prob(tensor(1000.0)), -9.733415163853351, 1e-11));
  const MultivariateNormal normal(zeros({2}), {.covariance_matrix = matrix({2, 0.3, 0.3, 1})});
  CHECK(same(normal.log_prob(tensor({1.0, 2.0})), -4.203313504192542));
  CHECK(same(Dirichlet(vector({100, 3})).log_prob(vector({0.2, 0.8})), -146.62852409805066));
}
