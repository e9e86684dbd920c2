// Independent, MixtureSameFamily, TransformedDistribution, transforms, expand.
#include <cmath>

#include <doctest/doctest.h>

#include "kiln/core/random.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "tests/distributions/support.h"
#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::distributions;
using namespace kiln::test;

TEST_CASE("Independent: batch dims become dims of the event") {
  const DoubleGuard guard;
  const Tensor loc = arange(24).to(f64).reshape({2, 3, 4});
  const Normal base(loc, 1.5);
  for (int64_t dims = 0; dims <= 3; ++dims) {
    INFO(dims);
    const Independent d(base, dims);
    CHECK(d.batch_shape().rank() == 3 - dims);
    CHECK(d.event_shape().rank() == dims);
    const Tensor x = d.sample({5});
    CHECK(x.shape() == Shape{5, 2, 3, 4});
    Tensor logs = base.log_prob(x), entropy = base.entropy();
    for (int64_t i = 0; i < dims; ++i) {
      logs = logs.sum(-1);
      entropy = entropy.sum(-1);
    }
    CHECK(d.log_prob(x).allclose(logs));
    CHECK(d.entropy().allclose(entropy));
    CHECK(d.mean().equal(loc));
    CHECK(d.support().event_dim() == dims);
    CHECK(d.has_rsample());
  }
  const Independent dice(Categorical({.probs = ones({3, 6})}), 1);
  CHECK_FALSE(dice.has_rsample());
  CHECK_FALSE(dice.has_enumerate_support());
  CHECK(dice.log_prob(zeros({3}, {i64})).item() == doctest::Approx(-3 * std::log(6.0)));
  CHECK_THROWS_AS(dice.enumerate_support(), NotImplementedError);
}

TEST_CASE("distributions: owners share what they are given, by value and by pointer") {
  const auto normal = std::make_shared<Normal>(zeros({3}), 1.0);
  const Independent shared(normal, 1);
  CHECK(&shared.base() == normal.get());
  const Independent unique(std::make_unique<Normal>(zeros({3}), 1.0), 1);
  CHECK(unique.event_shape() == Shape{3});
  std::unique_ptr<distributions::Distribution> any =
      std::make_unique<Independent>(Normal(zeros({3}), 1.0), 1);
  CHECK(Independent(std::move(any), 0).event_shape() == Shape{3});
  const Independent copy = shared;
  CHECK(&copy.base() == normal.get());
  CHECK(copy.name() == "Independent");
  CHECK_THROWS_AS(Independent(std::shared_ptr<const Normal>(), 0), ValueError);
}

TEST_CASE("MixtureSameFamily: log_prob is that of the sum") {
  const DoubleGuard guard;
  const Tensor loc = tensor({{-1.0, 2.0}, {0.0, 5.0}, {3.0, 3.0}}), scale = tensor({0.5, 1.5});
  const Tensor weights = tensor({0.25, 0.75});
  const MixtureSameFamily d(Categorical({.probs = weights}), Normal(loc, scale));
  CHECK(d.batch_shape() == Shape{3});
  const Tensor x = tensor({0.5, 4.0, -1.0});
  const Tensor parts = Normal(loc, scale).log_prob(x.unsqueeze(-1)).exp();
  CHECK(d.log_prob(x).allclose((parts * weights).sum(-1).log(), 1e-12));
  CHECK(d.log_prob(zeros({7, 1})).shape() == Shape{7, 3});
  CHECK(d.sample({7}).shape() == Shape{7, 3});
  CHECK_FALSE(d.has_rsample());
  // Far from all components it stays finite.
  CHECK(d.log_prob(full({3}, 1e4)).isfinite().all().item<bool>());
  // Bounds of components differ: a value has to be in all of them.
  const MixtureSameFamily steps(Categorical({.probs = weights}), Uniform(tensor({0.0, 1.0}), 3.0));
  CHECK(steps.mean().item() == doctest::Approx(0.25 * 1.5 + 0.75 * 2.0));
  CHECK(steps.log_prob(tensor(2.0)).exp().item() == doctest::Approx(0.25 / 3 + 0.75 / 2));
  CHECK_THROWS_AS(steps.log_prob(tensor(0.5)), ValueError);
}

TEST_CASE("transforms: inverses, changes of volume, signs, equality") {
  const DoubleGuard guard;
  const Tensor scale = tensor({2.0, -0.5, 3.0});
  const std::vector<Shared<Transform>> all = {
      ExpTransform(),
      SigmoidTransform(),
      TanhTransform(),
      AffineTransform(1.0, -2.0),
      AffineTransform(tensor({1.0, 2.0, 3.0}), scale),
      ComposeTransform({TanhTransform(), AffineTransform(1.0, -2.0), ExpTransform()}),
      ComposeTransform({}),
  };
  const Tensor x = tensor({-1.5, 0.25, 2.0}).requires_grad_();
  for (size_t i = 0; i < all.size(); ++i) {
    INFO(i);
    const Transform& f = *all[i];
    const Tensor y = f(x);
    CHECK(f.inverse(y).allclose(x, 1e-9));
    CHECK(f.codomain().check(y).all().item<bool>());
    CHECK(f.forward_shape(x.shape()) == y.shape());
    const Tensor slope = grad({y.sum()}, {x}, {.retain_graph = true})[0];
    CHECK(f.log_abs_det_jacobian(x, y).allclose(slope.abs().log(), 1e-9));
    const TensorOrNumber sign = f.sign();
    CHECK((sign.is_tensor() ? sign.tensor() : full({3}, sign.number())).equal(slope.sign()));
    for (size_t j = 0; j < all.size(); ++j) CHECK(f.equals(*all[j]) == (i == j));
  }
  CHECK(ExpTransform().equals(ExpTransform()));
  CHECK(AffineTransform(0, scale).equals(AffineTransform(0, scale.clone())));
  CHECK_FALSE(AffineTransform(0, scale).equals(AffineTransform(0, scale, 1)));
  // An event of the last dim: one number for each.
  CHECK(AffineTransform(0, scale, 1).log_abs_det_jacobian(x, x).item() ==
        doctest::Approx(std::log(3.0)));
  CHECK(AffineTransform(0, scale).forward_shape({2, 1}) == Shape{2, 3});
}

TEST_CASE("TransformedDistribution: shapes, and dims that become events") {
  const DoubleGuard guard;
  const TransformedDistribution wide(Normal(0, 1), {AffineTransform(zeros({4, 1}), ones({3}))});
  CHECK(wide.batch_shape() == Shape{4, 3});
  CHECK(wide.sample({2}).shape() == Shape{2, 4, 3});
  CHECK(wide.log_prob(tensor(0.0)).shape() == Shape{4, 3});
  const TransformedDistribution vectors(Normal(zeros({4, 3}), 1.0),
                                        {ExpTransform(), AffineTransform(1, 2, 1)});
  CHECK(vectors.batch_shape() == Shape{4});
  CHECK(vectors.event_shape() == Shape{3});
  const Tensor y = vectors.sample({2});
  CHECK(y.shape() == Shape{2, 4, 3});
  const Tensor x = ((y - 1) / 2).log();
  const Tensor expected = (Normal(0, 1).log_prob(x) - x - std::log(2.0)).sum(-1);
  CHECK(vectors.log_prob(y).allclose(expected));
  // Events of the base stay events.
  const TransformedDistribution skewed(MultivariateNormal(zeros({2}), {.scale_tril = eye(2)}),
                                       {ExpTransform()});
  CHECK(skewed.event_shape() == Shape{2});
  CHECK(skewed.log_prob(tensor({1.0, 2.0})).item() ==
        doctest::Approx((LogNormal(0, 1).log_prob(tensor({1.0, 2.0}))).sum().item()));
  // Without transforms it is the base.
  const TransformedDistribution same(Exponential(2), {});
  CHECK(same.log_prob(tensor(1.0)).equal(Exponential(2).log_prob(tensor(1.0))));
  CHECK_THROWS_AS(same.log_prob(tensor(-1.0)), ValueError);
}

TEST_CASE("rsample_with_log_prob: exact where tanh saturates") {
  const DoubleGuard guard;
  const auto squashed = [](const Tensor& loc, const Tensor& scale) {
    return TransformedDistribution(Independent(Normal(loc, scale), 1),
                                   {TanhTransform(), AffineTransform(0.0, 2.0)});
  };
  manual_seed(3);
  const auto near = squashed(zeros({3}), ones({3}));
  const auto [y, logs] = near.rsample_with_log_prob({50});
  CHECK(y.shape() == Shape{50, 3});
  CHECK(logs.allclose(near.log_prob(y), 1e-8));
  // tanh(20) is 1: log_prob has no x that it could find, and the pair has.
  manual_seed(3);
  const Tensor noise = near.base().sample({50});
  const Tensor loc = full({3}, 20.0).requires_grad_();
  manual_seed(3);
  const auto [far, far_logs] = squashed(loc, ones({3})).rsample_with_log_prob({50});
  CHECK((far == 2).any().item<bool>());
  CHECK(far_logs.isfinite().all().item<bool>());
  // log(1 - tanh(x)^2) is 2 log 2 - 2 x there.
  const Tensor x = noise + 20.0;
  const Tensor change = 2 * std::log(2.0) - 2 * x + std::log(2.0);
  CHECK(far_logs.allclose((Normal(0, 1).log_prob(noise) - change).sum(-1), 1e-12));
  const Tensor slope = *far_logs.sum().backward().get(loc);
  CHECK(slope.allclose(full({3}, 100.0), 1e-12));  // 2 for each of 50 draws
  // The default is the two calls.
  manual_seed(3);
  const auto [draws, their_logs] = Gamma(2, 1).rsample_with_log_prob({5});
  CHECK(their_logs.equal(Gamma(2, 1).log_prob(draws)));
}

TEST_CASE("expand: the same numbers in a larger batch, and parameters stay shared") {
  const DoubleGuard guard;
  for (const NumberCase& c : number_cases()) {
    INFO(c.name);
    const std::vector<Tensor> parameters = c.tensors(true);
    const DistributionPtr d = c.make(parameters);
    const auto wide = d->expand({2, 3});
    CHECK(wide->name() == d->name());
    CHECK(wide->batch_shape() == Shape{2, 3});
    CHECK(wide->event_shape() == Shape{});
    CHECK(wide->sample({4}).shape() == Shape{4, 2, 3});
    const Tensor x = tensor(c.values[0]);
    const Tensor logs = wide->log_prob(x);
    CHECK(logs.shape() == Shape{2, 3});
    CHECK(logs.equal(d->log_prob(x).expand({2, 3})));
    const std::vector<Tensor> own = c.tensors(true);
    const double slope = c.make(own)->log_prob(x).backward().get(own[0])->item();
    CHECK(logs.sum().backward().get(parameters[0])->item() == doctest::Approx(6 * slope));
    CHECK(error_lacks<ShapeError>(
              [&] {
                wide->expand({2, 2});
              },
              {std::string(d->name()), "[2, 3]", "[2, 2]"}) == "");
  }
  const Tensor weights = tensor({{0.2, 0.3, 0.5}});
  const std::vector<DistributionPtr> vectors = {
      std::make_shared<const Categorical>(ClassChances{.probs = weights}),
      std::make_shared<const OneHotCategorical>(ClassChances{.logits = weights}),
      std::make_shared<const Multinomial>(4, ClassChances{.probs = weights}),
      std::make_shared<const Dirichlet>(weights),
      std::make_shared<const MultivariateNormal>(weights, Covariance{.scale_tril = eye(3)}),
      std::make_shared<const Independent>(Normal(weights, 1.0), 1),
      std::make_shared<const TransformedDistribution>(
          Normal(weights, 1.0), std::vector<Shared<Transform>>{AffineTransform(0, 2, 1)}),
  };
  for (const DistributionPtr& d : vectors) {
    INFO(d->name());
    const auto wide = d->expand({5, 2});
    CHECK(wide->batch_shape() == Shape{5, 2});
    CHECK(wide->event_shape() == d->event_shape());
    const Tensor x = d->sample();
    CHECK(wide->log_prob(x).shape() == Shape{5, 2});
    CHECK(wide->log_prob(x).allclose(d->log_prob(x).expand({5, 2})));
    CHECK(wide->sample({4}).shape() == d->expand({5, 2})->sample({4}).shape());
    if (d->name() != "TransformedDistribution") CHECK(wide->variance().size(0) == 5);
  }
}
