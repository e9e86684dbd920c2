// Draws: their moments, shapes, supports, seeds and dtypes.
#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "kiln/core/random.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "tests/distributions/support.h"

using namespace kiln;
using namespace kiln::distributions;
using namespace kiln::test;

namespace {

constexpr int64_t kDraws = 200000;

// Whether the mean of the draws is within 5 standard errors of `mean`, and their second moment
// within 5 of its own.
void check_moments(const Tensor& draws, const Tensor& mean, const Tensor& variance) {
  const Tensor x = draws.to(f64), away = (x - mean).square();
  const double n = static_cast<double>(x.size(0));
  CHECK(((x.mean(0) - mean).abs() <= 5 * (variance / n).sqrt() + 1e-12).all().item<bool>());
  CHECK(((away.mean(0) - variance).abs() <= 5 * away.std(0) / std::sqrt(n) + 1e-12)
            .all()
            .item<bool>());
}

}  // namespace

TEST_CASE("distributions: draws have the mean, the variance and the support") {
  const DoubleGuard guard;
  manual_seed(11);
  for (const NumberCase& c : number_cases()) {
    INFO(c.name);
    const DistributionPtr d = c.made();
    const Tensor x = d->sample({kDraws});
    CHECK(x.shape() == Shape{kDraws});
    CHECK(d->support().check(x).all().item<bool>());
    CHECK(d->support().is_discrete() == c.discrete);
    if (!c.has_variance) continue;
    // By quadrature, so that draws are compared with the density also where there is no mean().
    const Quadrature q = quadrature(c);
    const Tensor p = d->log_prob(q.places).exp();
    const double mean = q.sum(p * q.places);
    const double variance = q.sum(p * (q.places - mean).square());
    check_moments(x, tensor(mean), tensor(variance));
  }
}

TEST_CASE("distributions: draws fall below each quantile as often as cdf says") {
  const DoubleGuard guard;
  manual_seed(12);
  for (const NumberCase& c : number_cases()) {
    INFO(c.name);
    const DistributionPtr d = c.made();
    const Tensor x = d->sample({kDraws});
    const Quadrature q = quadrature(c);
    const Tensor mass = d->log_prob(q.places).exp() * q.weights;
    for (const double value : c.values) {
      // The sum of what lies up to the value; the kinks at its end cost a few digits.
      const double p = where(q.places <= value, mass, 0.0).sum().item();
      const double share = (x <= value).to(f64).mean().item();
      CHECK(std::abs(share - p) < 5 * std::sqrt(std::max(0.0, p * (1 - p)) / kDraws) + 0.01);
    }
  }
}

TEST_CASE("distributions: draws of vectors have the mean and the variance") {
  const DoubleGuard guard;
  manual_seed(13);
  const Tensor weights = tensor({{0.2, 0.3, 0.5}, {2.0, 1.0, 1.0}});
  const auto check = [](const distributions::Distribution& d) {
    INFO(d.name());
    const Tensor x = d.sample({kDraws});
    CHECK(d.support().check(x).all().item<bool>());
    check_moments(x, d.mean(), d.variance());
  };
  check(OneHotCategorical({.probs = weights}));
  check(OneHotCategorical({.logits = weights}));
  check(Multinomial(7, {.probs = weights}));
  check(Dirichlet(weights));
  const Tensor lower = tensor({{2.0, 0.0}, {0.5, 1.5}});
  const MultivariateNormal normal(tensor({1.0, -1.0}), {.scale_tril = lower});
  check(normal);
  const Tensor x = normal.sample({kDraws}) - normal.loc();
  CHECK((x.t().matmul(x) / kDraws).allclose(normal.covariance_matrix(), 0.05, 0.05));
  const Tensor classes = Categorical({.probs = weights}).sample({kDraws});
  CHECK(classes.dtype() == i64);
  for (int64_t k = 0; k < 3; ++k) {
    const Tensor share = (classes == k).to(f64).mean(0);
    CHECK(share.allclose((weights / weights.sum(-1, true)).select(1, k), 0.0, 0.006));
  }
  // Components with events: each draw is a whole event of one of them.
  const MixtureSameFamily mixture(Categorical({.probs = tensor({0.25, 0.75})}),
                                  Independent(Normal(tensor({{-5.0, -5.0}, {5.0, 5.0}}), 0.1), 1));
  check_moments(mixture.sample({kDraws}), mixture.mean(), mixture.variance());
  const Tensor pairs = mixture.sample({1000}).sign();
  CHECK(pairs.select(1, 0).equal(pairs.select(1, 1)));
}

TEST_CASE("distributions: shapes of draws, members and log_prob") {
  const Tensor wide = ones({4, 1}), narrow = full({3}, 2.0);
  const Normal normal(wide, narrow);
  CHECK(normal.batch_shape() == Shape{4, 3});
  CHECK(normal.event_shape() == Shape{});
  CHECK(normal.sample().shape() == Shape{4, 3});
  CHECK(normal.sample({2, 5}).shape() == Shape{2, 5, 4, 3});
  CHECK(normal.sample({0}).shape() == Shape{0, 4, 3});
  CHECK(normal.log_prob(zeros({5, 1, 3})).shape() == Shape{5, 4, 3});
  CHECK(normal.mean().shape() == Shape{4, 3});
  CHECK(normal.entropy().shape() == Shape{4, 3});

  const Tensor classes = ones({4, 3});
  const Categorical one({.probs = classes});
  CHECK(one.batch_shape() == Shape{4});
  CHECK(one.sample({2}).shape() == Shape{2, 4});
  CHECK(one.sample({0, 2}).shape() == Shape{0, 2, 4});
  CHECK(one.mean().shape() == Shape{4});
  CHECK(one.log_prob(zeros({2, 1}, {i64})).shape() == Shape{2, 4});
  for (const DistributionPtr& d : std::vector<DistributionPtr>{
           std::make_shared<const OneHotCategorical>(ClassChances{.probs = classes}),
           std::make_shared<const Multinomial>(5, ClassChances{.probs = classes}),
           std::make_shared<const Dirichlet>(classes)}) {
    INFO(d->name());
    CHECK(d->batch_shape() == Shape{4});
    CHECK(d->event_shape() == Shape{3});
    const Tensor x = d->sample({2});
    CHECK(x.shape() == Shape{2, 4, 3});
    CHECK(d->log_prob(x).shape() == Shape{2, 4});
    CHECK(d->mean().shape() == Shape{4, 3});
    CHECK(d->variance().shape() == Shape{4, 3});
    CHECK(d->entropy().shape() == Shape{4});
  }
  const MultivariateNormal vectors(zeros({4, 1, 2}), {.scale_tril = eye(2).expand({3, 2, 2})});
  CHECK(vectors.batch_shape() == Shape{4, 3});
  CHECK(vectors.sample({5}).shape() == Shape{5, 4, 3, 2});
  CHECK(vectors.log_prob(zeros({2})).shape() == Shape{4, 3});
  CHECK(vectors.entropy().shape() == Shape{4, 3});
  CHECK(vectors.variance().shape() == Shape{4, 3, 2});
  CHECK(vectors.scale_tril().shape() == Shape{4, 3, 2, 2});
  CHECK(Multinomial(0, {.probs = classes}).sample({2}).equal(zeros({2, 4, 3})));
}

TEST_CASE("distributions: equal seeds give equal draws, without gradients") {
  for (const NumberCase& c : number_cases()) {
    INFO(c.name);
    const DistributionPtr d = c.make(c.tensors(true));
    manual_seed(4);
    const Tensor x = d->sample({100});
    manual_seed(4);
    CHECK(x.equal(d->sample({100})));
    CHECK_FALSE(x.requires_grad());
    CHECK_FALSE(x.equal(d->sample({100})));
    if (d->has_rsample()) {
      CHECK(d->rsample({2}).requires_grad());
    } else {
      CHECK_THROWS_AS(d->rsample({2}), NotImplementedError);
    }
  }
}

TEST_CASE("distributions: numbers take the dtype of tensors, and all draws have it") {
  for (const DType dtype : {f64, f32, f16, bf16}) {
    const Tensor one = tensor({0.25, 0.5}, {dtype});
    INFO(to_string(dtype));
    const std::vector<DistributionPtr> all = {
        std::make_shared<const Normal>(one, 1.0),
        std::make_shared<const Uniform>(0, one),
        std::make_shared<const Gamma>(one, 2),
        std::make_shared<const Beta>(2, one),
        std::make_shared<const StudentT>(5, one),
        std::make_shared<const VonMises>(0, one),
        std::make_shared<const Bernoulli>(Chances{.probs = one}),
        std::make_shared<const Poisson>(one),
        std::make_shared<const Binomial>(3, Chances{.probs = one}),
        std::make_shared<const NegativeBinomial>(3, Chances{.probs = one}),
        std::make_shared<const Geometric>(Chances{.probs = one}),
        std::make_shared<const Dirichlet>(one),
        std::make_shared<const OneHotCategorical>(ClassChances{.probs = one}),
        std::make_shared<const Gumbel>(one, 1.0),
        std::make_shared<const Laplace>(one, 1.0),
    };
    for (const DistributionPtr& d : all) {
      INFO(d->name());
      const Tensor x = d->sample({2000});
      CHECK(x.dtype() == dtype);
      CHECK(x.isfinite().all().item<bool>());
      CHECK(d->log_prob(x).dtype() == dtype);
      CHECK(d->mean().dtype() == dtype);
    }
  }
  CHECK(Normal(0, 1).loc().dtype() == default_dtype());
  CHECK(Normal(tensor({0, 1}), 1).loc().dtype() == default_dtype());  // integers
  CHECK(Normal(tensor({0.0}, {f32}), tensor({1.0}, {f64})).sample().dtype() == f64);
}

TEST_CASE("distributions: numbers and draws are where the tensors are") {
  const Device device(kReference);
  const Tensor one = tensor({0.25, 0.5}, {f32, device});
  const std::vector<DistributionPtr> all = {
      std::make_shared<const Normal>(one, 1.0),
      std::make_shared<const Normal>(0.0, one),
      std::make_shared<const Gamma>(one, 2),
      std::make_shared<const VonMises>(0, one),
      std::make_shared<const StudentT>(3, one),
      std::make_shared<const Bernoulli>(Chances{.probs = one}),
      std::make_shared<const Binomial>(3, Chances{.logits = one}),
      std::make_shared<const Poisson>(one),
      std::make_shared<const Categorical>(ClassChances{.probs = one}),
      std::make_shared<const Multinomial>(3, ClassChances{.probs = one}),
      std::make_shared<const Dirichlet>(one),
      std::make_shared<const MultivariateNormal>(one,
                                                 Covariance{.scale_tril = eye(2, {f32, device})}),
      std::make_shared<const TransformedDistribution>(
          Normal(one, 1.0), std::vector<Shared<Transform>>{TanhTransform(), AffineTransform(0, 2)}),
  };
  for (const DistributionPtr& d : all) {
    INFO(d->name());
    const Tensor x = d->sample({3});
    CHECK(x.device() == device);
    CHECK(d->log_prob(x).device() == device);
  }
}
