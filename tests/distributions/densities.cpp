// log_prob integrates to 1, and has the moments, the entropy and the cdf that the classes give.
#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "kiln/tensor/index/advanced_index.h"
#include "tests/distributions/support.h"
#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::distributions;
using namespace kiln::test;

namespace {

bool close(double x, const Tensor& expected, double tolerance = 1e-8) {
  const double value = expected.item<double>();
  return std::abs(x - value) <= tolerance * std::max(1.0, std::abs(value));
}

bool has(const std::function<Tensor()>& member) {
  try {
    member();
    return true;
  } catch (const NotImplementedError&) {
    return false;
  }
}

}  // namespace

TEST_CASE("distributions: densities integrate to 1, to moments and to the entropy") {
  const DoubleGuard guard;
  for (const NumberCase& c : number_cases()) {
    INFO(c.name);
    const DistributionPtr d = c.made();
    const Quadrature q = quadrature(c);
    const Tensor &x = q.places, logs = d->log_prob(x), p = logs.exp();
    CHECK(close(q.sum(p), tensor(1.0)));
    if (c.has_variance && has([&] { return d->mean(); })) {
      CHECK(close(q.sum(p * x), d->mean()));
      CHECK(close(q.sum(p * (x - d->mean()).square()), d->variance(), 1e-7));
      CHECK(close(std::sqrt(q.sum(p * (x - d->mean()).square())), d->stddev(), 1e-7));
    }
    if (has([&] { return d->entropy(); })) {
      CHECK(close(-q.sum(where(p == 0, 0.0, p * logs)), d->entropy()));
      CHECK(close(d->entropy().exp().item<double>(), d->perplexity()));
    }
  }
}

TEST_CASE("distributions: cdf is the integral of the density, and icdf its inverse") {
  const DoubleGuard guard;
  int with_cdf = 0, with_icdf = 0;
  for (const NumberCase& c : number_cases()) {
    INFO(c.name);
    const DistributionPtr d = c.made();
    for (const double x : c.values) {
      if (c.discrete || !has([&] { return d->cdf(tensor(x)); })) continue;
      ++with_cdf;
      // Up to the center, where there may be a kink, and from there.
      double mass = 0, from = c.low;
      for (const double to : {c.center, x}) {
        if (!(to > from) || to > x) continue;
        NumberCase part = c;
        part.low = from;
        part.high = from = to;
        const Quadrature q = quadrature(part);
        mass += q.sum(d->log_prob(q.places).exp());
      }
      CHECK(close(mass, d->cdf(tensor(x))));
      if (!has([&] { return d->icdf(tensor(0.5)); })) continue;
      ++with_icdf;
      CHECK(close(x, d->icdf(d->cdf(tensor(x)))));
    }
  }
  CHECK(with_cdf >= 36);
  CHECK(with_icdf >= 26);
}

TEST_CASE("distributions: the mode has the largest density") {
  const DoubleGuard guard;
  for (const NumberCase& c : number_cases()) {
    INFO(c.name);
    const DistributionPtr d = c.made();
    if (!has([&] { return d->mode(); })) continue;
    const Tensor mode = d->mode();
    if (mode.isnan().item<bool>()) continue;
    // Densities that grow without a bound towards 0 are compared from 1e-12 on.
    const double least = c.low == 0 && !c.discrete ? 1e-12 : c.low;
    const Tensor x = quadrature(c).places;
    const Tensor others = d->log_prob(masked_select(x, x >= least));
    CHECK((others <= d->log_prob(mode.clamp(least)) + 1e-9).all().item<bool>());
  }
}

TEST_CASE("distributions: probabilities of vectors sum to 1") {
  const DoubleGuard guard;
  // All counts of 3 classes in 4 draws.
  const Multinomial counts(4, {.probs = tensor({0.2, 0.3, 0.5})});
  double total = 0;
  for (int a = 0; a <= 4; ++a) {
    for (int b = 0; a + b <= 4; ++b) {
      total += counts.log_prob(tensor({double(a), double(b), double(4 - a - b)})).exp().item();
    }
  }
  CHECK(std::abs(total - 1) < 1e-12);
  // The plane, in polar coordinates around the mean.
  const MultivariateNormal normal(tensor({1.0, -1.0}),
                                  {.scale_tril = tensor({{2.0, 0.0}, {0.5, 1.5}})});
  const Tensor radius = linspace(0.0, 40.0, 4001).unsqueeze(1);
  const Tensor angle = linspace(0.0, 2 * M_PI, 201).narrow(0, 0, 200);
  const Tensor places = stack({radius * angle.cos(), radius * angle.sin()}, -1) + normal.loc();
  const Tensor mass = normal.log_prob(places).exp() * radius * 0.01 * (2 * M_PI / 200);
  CHECK(std::abs(mass.sum().item() - 1) < 1e-4);
  // The triangle x1 + x2 < 1.
  const Dirichlet dirichlet(tensor({1.5, 2.5, 3.0}));
  const Tensor grid = (arange(400).to(f64) + 0.5) / 400;
  const Tensor first = grid.unsqueeze(1).expand({400, 400});
  const Tensor second = grid.unsqueeze(0) * (1 - first);
  const Tensor triangle = stack({first, second, 1 - first - second}, -1);
  const Tensor part = dirichlet.log_prob(triangle).exp() * (1 - first) / (400.0 * 400.0);
  CHECK(std::abs(part.sum().item() - 1) < 3e-4);
}

TEST_CASE("distributions: enumerate_support has every value once") {
  const DoubleGuard guard;
  const Tensor two = tensor({0.3, 0.6});
  const Tensor classes = tensor({{0.2, 0.3, 0.5}, {0.6, 0.3, 0.1}});
  const std::vector<DistributionPtr> all = {
      std::make_shared<const Bernoulli>(Chances{.probs = two}),
      std::make_shared<const Binomial>(5, Chances{.probs = two}),
      std::make_shared<const Categorical>(ClassChances{.probs = classes}),
      std::make_shared<const OneHotCategorical>(ClassChances{.logits = classes}),
  };
  for (const DistributionPtr& d : all) {
    INFO(d->name());
    CHECK(d->has_enumerate_support());
    CHECK(d->log_prob(d->enumerate_support()).exp().sum(0).allclose(ones({2})));
    const Tensor narrow = d->enumerate_support(false);
    CHECK(narrow.size(1) == 1);
    CHECK(d->log_prob(narrow).exp().sum(0).allclose(ones({2})));
  }
  CHECK_FALSE(Normal(0, 1).has_enumerate_support());
}
