// Parameters at the ends of their sets, where formulas have 0 log 0 and the like.
#include <cmath>
#include <numbers>

#include <doctest/doctest.h>

#include "kiln/core/random.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "tests/distributions/support.h"

using namespace kiln;
using namespace kiln::distributions;
using namespace kiln::test;

namespace {

double at(const distributions::Distribution& d, double value) {
  return d.log_prob(tensor(value)).item<double>();
}

}  // namespace

TEST_CASE("distributions: certain and impossible outcomes") {
  const DoubleGuard guard;
  CHECK(at(Geometric({.probs = 1.0}), 0) == 0);
  CHECK(at(Geometric({.probs = 1.0}), 1) == -INFINITY);
  CHECK(Geometric({.probs = 1.0}).sample({5}).equal(zeros({5})));
  CHECK(at(NegativeBinomial(0.0, {.probs = 0.5}), 0) == 0);
  CHECK(NegativeBinomial(0.0, {.probs = 0.5}).sample({5}).equal(zeros({5})));
  CHECK(at(Poisson(0.0), 0) == 0);
  CHECK(at(Poisson(0.0), 1) == -INFINITY);
  CHECK(Binomial(4, {.probs = tensor({0.0, 1.0})}).sample().equal(tensor({0.0, 4.0})));
  CHECK(std::abs(at(Binomial(4, {.probs = 1.0}), 4)) < 1e-12);
  CHECK(at(Binomial(0, {.probs = 0.5}), 0) == 0);
  CHECK(std::abs(at(Bernoulli({.probs = 1.0}), 1)) < 1e-12);
  CHECK(at(Bernoulli({.logits = 1000.0}), 0) == -1000);
  CHECK(Bernoulli({.probs = 0.5}).mode().isnan().item<bool>());
  CHECK(Bernoulli({.logits = 800.0}).entropy().item() == 0);

  const Tensor never = tensor({0.0, -INFINITY, 0.0});
  const Categorical one({.logits = never});
  CHECK(at(one, 1) == -INFINITY);
  CHECK(one.entropy().item() == doctest::Approx(std::numbers::ln2));
  CHECK((one.sample({100}) != 1).all().item<bool>());
  const Multinomial many(3, {.logits = never});
  CHECK(many.log_prob(tensor({1.0, 0.0, 2.0})).exp().item() == doctest::Approx(3.0 / 8));
  CHECK(many.log_prob(tensor({1.0, 1.0, 1.0})).item() == -INFINITY);
}

TEST_CASE("distributions: modes at corners of the density") {
  const DoubleGuard guard;
  CHECK(Weibull(2.0, tensor({0.8, 1.0})).mode().equal(zeros({2})));
  CHECK(Gamma(tensor({0.5, 1.0}), 2.0).mode().equal(zeros({2})));
  CHECK(NegativeBinomial(0.5, {.probs = 0.4}).mode().item() == 0);
  CHECK(Dirichlet(tensor({0.5, 0.75, 0.25})).mode().equal(tensor({0.0, 1.0, 0.0})));
  CHECK(Dirichlet(tensor({0.5, 3.0, 2.0})).mode().allclose(tensor({0.0, 2.0 / 3, 1.0 / 3})));
  CHECK(Beta(0.5, 0.75).mode().item() == 0);
  CHECK(Beta(0.5, 2.0).mode().item() == 0);
  CHECK(Binomial(5, {.probs = 1.0}).mode().item() == 5);
}

TEST_CASE("distributions: draws stay where log_prob is finite") {
  manual_seed(8);
  const auto finite = [](const distributions::Distribution& d) {
    INFO(d.name());
    const Tensor x = d.sample({20000});
    CHECK(x.isfinite().all().item<bool>());
    CHECK(d.log_prob(x).isfinite().all().item<bool>());
  };
  finite(Gamma(1e-3, 1.0));
  finite(Gamma(1e6, 1e-3));
  finite(Chi2(1e-2));
  finite(Dirichlet(full({3}, 1e-3)));
  finite(StudentT(0.5));
  finite(Gumbel(0.0, 1.0));
  finite(Laplace(0.0, 1.0));
  finite(Exponential(1e-3));
  finite(Pareto(1.0, 0.5));
  finite(HalfNormal(1e-3));
  finite(VonMises(3.0, 1e-8));
  finite(VonMises(3.0, 1e8));
  // Angles are wrapped.
  const Tensor angles = VonMises(3.0, 0.5).sample({1000});
  CHECK(((angles >= -3.1416) & (angles <= 3.1416)).all().item<bool>());
  CHECK((angles < 0).any().item<bool>());
}

TEST_CASE("distributions: branches that are not taken leave gradients whole") {
  const DoubleGuard guard;
  const auto slope = [](const std::vector<double>& at, auto&& f) {
    const Tensor x = tensor(at).requires_grad_();
    const Tensor y = f(x);
    return *where(y.isfinite(), y, 0.0).sum().backward().get(x);
  };
  CHECK(slope({0.5, 1.5, 3.0}, [](const Tensor& a) { return Pareto(1.5, a).mean(); })
            .isfinite()
            .all()
            .item<bool>());
  CHECK(slope({0.5, 2.0, 3.0}, [](const Tensor& a) { return Pareto(1.5, a).variance(); })
            .isfinite()
            .all()
            .item<bool>());
  CHECK(slope({0.5, 2.0, 3.0}, [](const Tensor& df) { return StudentT(df).variance(); })
            .isfinite()
            .all()
            .item<bool>());
  CHECK(slope({0.5, 1.0, 2.0, 3.0},
              [](const Tensor& a) {
                return kl_divergence(Pareto(1.5, a), Normal(0, 1)) +
                       kl_divergence(Pareto(1.5, a), Exponential(1)) +
                       kl_divergence(Pareto(1.5, a), Gamma(2, 1));
              })
            .isfinite()
            .all()
            .item<bool>());
  CHECK(slope({-1.0, 0.5},
              [](const Tensor& low) { return kl_divergence(Uniform(low, 2), Gamma(2, 1)); })
            .isfinite()
            .all()
            .item<bool>());
  CHECK(slope({0.25, 0.5, 0.75}, [](const Tensor& p) { return Laplace(0, 1).icdf(p); })
            .isfinite()
            .all()
            .item<bool>());
  CHECK(slope({0.5, 1.0}, [](const Tensor& p) {
          return Geometric({.probs = p}).log_prob(tensor(0.0));
        }).allclose(tensor({2.0, 1.0})));
  CHECK(slope({0.0, 1.0, 3.0}, [](const Tensor& x) { return Gamma(2.5, 1.0).cdf(x); })
            .isfinite()
            .all()
            .item<bool>());
}
