// Divergences against quadrature, sums and means of draws.
#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "kiln/core/random.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "tests/distributions/support.h"
#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::distributions;
using namespace kiln::test;

namespace {

template <class D>
Shared<distributions::Distribution> any(D d) {
  return d;
}

struct Side {
  Shared<distributions::Distribution> d;
  double low = -INFINITY, high = INFINITY, center = 0;
  bool discrete = false;
};

// The mean of log p - log q for draws of p.
double kl_by_quadrature(const Side& p, const distributions::Distribution& q) {
  const Quadrature nodes = quadrature({"", {}, {}, p.low, p.high, p.center, {}, p.discrete});
  const Tensor log_p = p.d->log_prob(nodes.places), log_q = q.log_prob(nodes.places);
  const Tensor mass = log_p.exp();
  return nodes.sum(where(mass == 0, 0.0, mass * (log_p - log_q)));
}

void check_kl(const Side& p, const distributions::Distribution& q) {
  INFO(p.d->name(), " to ", q.name());
  const double expected = kl_by_quadrature(p, q), found = kl_divergence(*p.d, q).item<double>();
  CHECK(std::abs(found - expected) < 1e-7 * std::max(1.0, std::abs(expected)));
}

class Coin : public Bernoulli {
 public:
  using Bernoulli::Bernoulli;
};

class Nameless : public distributions::Distribution {
 public:
  Nameless() : Distribution("Nameless", {}) {}
  std::unique_ptr<distributions::Distribution> expand(const Shape&) const override {
    return nullptr;
  }
  Constraint support() const override { return constraints::real(); }
};

}  // namespace

TEST_CASE("kl_divergence: two of one class") {
  const DoubleGuard guard;
  check_kl({Normal(0.5, 2.0), -INFINITY, INFINITY, 0.5}, Normal(-1.0, 1.5));
  check_kl({Uniform(0.0, 2.0), 0, 2}, Uniform(-1.0, 2.5));
  check_kl({Exponential(1.5), 0}, Exponential(0.5));
  check_kl({Laplace(0.5, 2.0), -INFINITY, INFINITY, 0.5}, Laplace(0.5, 1.5));
  check_kl({Cauchy(0.5, 2.0), -INFINITY, INFINITY, 0.5}, Cauchy(-1.0, 1.5));
  check_kl({Gumbel(0.5, 2.0), -INFINITY, INFINITY, 0.5}, Gumbel(-1.0, 3.5));
  check_kl({LogNormal(0.5, 0.7), 0}, LogNormal(-0.2, 1.1));
  check_kl({HalfNormal(2.0), 0}, HalfNormal(1.5));
  check_kl({Pareto(2.0, 1.5), 2.0}, Pareto(1.5, 2.5));
  check_kl({Gamma(2.5, 1.5), 0}, Gamma(0.7, 0.5));
  check_kl({Chi2(3.0), 0}, Chi2(5.0));
  check_kl({Chi2(3.0), 0}, Gamma(2.0, 1.0));
  check_kl({Beta(2.5, 1.5), 0, 1}, Beta(0.5, 3.0));
  check_kl({Bernoulli({.probs = 0.3}), 0, 1, 0, true}, Bernoulli({.logits = 1.0}));
  check_kl({Binomial(7, {.probs = 0.3}), 0, 7, 0, true}, Binomial(7, {.probs = 0.6}));
  check_kl({Geometric({.probs = 0.3}), 0, 400, 0, true}, Geometric({.probs = 0.6}));
  check_kl({Poisson(3.5), 0, 100, 0, true}, Poisson(2.0));
  // A kink that is not the center of the quadrature.
  const Tensor laplace = kl_divergence(Laplace(0.5, 2.0), Laplace(-1.0, 1.5));
  const Tensor x = linspace(-100.0, 100.0, 400001);
  const Laplace p(0.5, 2.0), q(-1.0, 1.5);
  const Tensor terms = p.log_prob(x).exp() * (p.log_prob(x) - q.log_prob(x));
  CHECK(std::abs(terms.sum().item() * 200.0 / 400000 - laplace.item()) < 1e-6);
}

TEST_CASE("kl_divergence: two classes") {
  const DoubleGuard guard;
  const Normal normal(0.5, 2.0);
  const Side beta{Beta(2.5, 1.5), 0, 1}, exponential{Exponential(1.5), 0},
      gamma{Gamma(2.5, 1.5), 0}, gumbel{Gumbel(0.5, 1.0)}, laplace{Laplace(0.0, 1.0)},
      gauss{normal, -INFINITY, INFINITY, 0.5}, pareto{Pareto(1.5, 3.5), 1.5},
      uniform{Uniform(0.2, 0.9), 0.2, 0.9};
  for (const Side& p : {beta, exponential, gamma, gumbel, laplace, pareto, uniform})
    check_kl(p, normal);
  for (const Side& p : {beta, gamma, pareto, uniform}) check_kl(p, Exponential(0.7));
  for (const Side& p : {beta, exponential, pareto, uniform}) check_kl(p, Gamma(1.7, 0.7));
  for (const Side& p : {exponential, gamma, gauss, uniform}) check_kl(p, Gumbel(0.3, 2.5));
  check_kl(uniform, Beta(1.5, 2.5));
  check_kl(uniform, Pareto(0.1, 2.5));
  check_kl(beta, Uniform(-0.5, 1.5));
  check_kl({normal, -INFINITY, INFINITY, 0.5}, Laplace(0.5, 1.5));
  check_kl({Bernoulli({.probs = 0.3}), 0, 1, 0, true}, Poisson(0.8));
}

TEST_CASE("kl_divergence: infinite where p has draws that q cannot have") {
  const DoubleGuard guard;
  const Beta beta(2.5, 1.5);
  const Normal normal(0.0, 1.0);
  const auto infinite = [](const distributions::Distribution& p,
                           const distributions::Distribution& q) {
    INFO(p.name(), " to ", q.name());
    CHECK(kl_divergence(p, q).item() == INFINITY);
  };
  for (const Shared<distributions::Distribution>& q :
       {any(beta), any(Exponential(1)), any(Gamma(1, 1)), any(Pareto(1, 1)), any(Uniform(0, 1))}) {
    infinite(normal, *q);
    infinite(Gumbel(0, 1), *q);
    infinite(Laplace(0, 1), *q);
  }
  for (const Shared<distributions::Distribution>& q :
       {any(beta), any(Pareto(1, 1)), any(Uniform(0, 1))}) {
    infinite(Exponential(1), *q);
    infinite(Gamma(1, 1), *q);
  }
  infinite(Pareto(1, 1), beta);
  infinite(Pareto(1, 1), Uniform(0, 1));
  infinite(beta, Pareto(1, 1));
  infinite(Pareto(1, 1), Pareto(2, 1));
  infinite(Pareto(1, 2), normal);
  infinite(Pareto(1, 1), Exponential(1));
  infinite(Pareto(1, 1), Gamma(1, 1));
  infinite(Uniform(0, 2), Uniform(0, 1));
  infinite(Uniform(-1, 1), Exponential(1));
  infinite(Uniform(-1, 1), Gamma(2, 1));
  infinite(Uniform(0.5, 2), beta);
  infinite(Uniform(0.5, 2), Pareto(1, 1));
  infinite(beta, Uniform(0.1, 1));
  infinite(Poisson(1), Bernoulli({.probs = 0.5}));
  infinite(Poisson(1), Binomial(3, {.probs = 0.5}));
  infinite(Bernoulli({.probs = 0.5}), Bernoulli({.probs = 1.0}));
  infinite(Categorical({.probs = tensor({0.5, 0.5})}), Categorical({.probs = tensor({1.0, 0.0})}));
  infinite(Binomial(4, {.probs = 0.5}), Binomial(3, {.probs = 0.5}));
}

TEST_CASE("kl_divergence: classes and vectors, by sums and by draws") {
  const DoubleGuard guard;
  manual_seed(2);
  const Tensor a = tensor({{0.2, 0.3, 0.5}, {1.0, 1.0, 2.0}}), b = tensor({3.0, 1.0, 1.0});
  const auto by_draws = [](const distributions::Distribution& p,
                           const distributions::Distribution& q) {
    INFO(p.name());
    const Tensor x = p.sample({100000});
    const Tensor each = p.log_prob(x) - q.log_prob(x);
    const Tensor error = 5 * each.std(0) / std::sqrt(100000.0) + 1e-9;
    const Tensor found = kl_divergence(p, q);
    CHECK(found.shape() == each.mean(0).shape());
    CHECK(((each.mean(0) - found).abs() <= error).all().item<bool>());
  };
  by_draws(Categorical({.probs = a}), Categorical({.probs = b}));
  by_draws(OneHotCategorical({.probs = a}), OneHotCategorical({.logits = b}));
  by_draws(Multinomial(5, {.probs = a}), Multinomial(5, {.probs = b}));
  by_draws(Dirichlet(a), Dirichlet(b));
  const MultivariateNormal p(tensor({1.0, -1.0}), {.scale_tril = tensor({{2.0, 0.0}, {0.5, 1.5}})});
  const Covariance covariance{.covariance_matrix = tensor({{2.0, 0.3}, {0.3, 1.0}})};
  const MultivariateNormal first(tensor({0.0, 0.0}), covariance);
  const MultivariateNormal second(tensor({1.0, 2.0}), covariance);
  by_draws(p, first);
  by_draws(p, second);
  const MultivariateNormal both(tensor({{0.0, 0.0}, {1.0, 2.0}}), covariance);
  CHECK(
      kl_divergence(p, both).allclose(stack({kl_divergence(p, first), kl_divergence(p, second)})));
  by_draws(Independent(Normal(zeros({2, 3}), 1.0), 1), Independent(Normal(ones({2, 3}), 2.0), 1));
  by_draws(TransformedDistribution(Normal(zeros({2}), 1.0),
                                   {TanhTransform(), AffineTransform(0.0, 2.0)}),
           TransformedDistribution(Normal(ones({2}), 2.0),
                                   {TanhTransform(), AffineTransform(0.0, 2.0)}));
  // A class without probability in p adds nothing.
  const Tensor edge = kl_divergence(Categorical({.probs = tensor({1.0, 0.0})}),
                                    Categorical({.probs = tensor({0.5, 0.5})}));
  CHECK(std::abs(edge.item() - std::log(2.0)) < 1e-12);
  // Equal distributions, and a batch of them.
  CHECK(kl_divergence(Normal(zeros({3, 1}), 1.0), Normal(0.0, ones({2}))).equal(zeros({3, 2})));
  CHECK(kl_divergence(Geometric({.probs = 1.0}), Geometric({.probs = 0.5})).item() ==
        doctest::Approx(std::log(2.0)));
}

TEST_CASE("kl_divergence: gradients reach both") {
  const DoubleGuard guard;
  const Tensor loc = tensor(0.5, {.dtype = f64, .requires_grad = true});
  const Tensor scale = tensor(2.0, {.dtype = f64, .requires_grad = true});
  const Gradients gradients = kl_divergence(Normal(loc, 1.0), Normal(0.0, scale)).backward();
  CHECK(gradients.get(loc)->item() == doctest::Approx(0.5 / 4));
  CHECK(gradients.get(scale)->item() == doctest::Approx(0.5 - (1 + 0.25) / 8));
}

TEST_CASE("kl_divergence: pairs without a formula, and registered ones") {
  CHECK(error_lacks<NotImplementedError>([] { kl_divergence(Normal(0, 1), Poisson(1)); },
                                         {"kl_divergence", "Normal", "Poisson", "register_kl"}) ==
        "");
  CHECK(error_lacks<NotImplementedError>(
            [] { kl_divergence(Binomial(2, {.probs = 0.5}), Binomial(3, {.probs = 0.5})); },
            {"total_count"}) == "");
  CHECK(error_lacks<NotImplementedError>(
            [] {
              kl_divergence(Independent(Normal(zeros({2, 2}), 1), 1),
                            Independent(Normal(zeros({2, 2}), 1), 2));
            },
            {"Independent", "1 and 2"}) == "");
  CHECK(error_lacks<NotImplementedError>(
            [] {
              kl_divergence(TransformedDistribution(Normal(0, 1), {AffineTransform(0, 2)}),
                            TransformedDistribution(Normal(0, 1), {AffineTransform(0, 3)}));
            },
            {"equal transforms"}) == "");
  CHECK(error_lacks<ShapeError>([] { kl_divergence(Dirichlet(ones({2})), Dirichlet(ones({3}))); },
                                {"event_shape", "[2]", "[3]"}) == "");
  CHECK(error_lacks<ShapeError>(
            [] {
              kl_divergence(Categorical({.probs = ones({2})}), Categorical({.probs = ones({3})}));
            },
            {"classes", "2", "3"}) == "");
  CHECK(error_lacks<ValueError>([] { register_kl(KLFormula()); }, {"register_kl"}) == "");

  // A derived class has its base's formula, until a nearer one is registered.
  const Coin coin({.probs = 0.5});
  CHECK(kl_divergence(coin, coin).item() == 0);
  register_kl<Coin, Coin>([](const Coin&, const Coin&) { return tensor(7.0); });
  CHECK(kl_divergence(coin, coin).item() == 7);
  CHECK(kl_divergence(coin, Bernoulli({.probs = 0.5})).item() == 0);
  const Nameless nameless;
  CHECK_THROWS_AS(kl_divergence(nameless, nameless), NotImplementedError);
  register_kl<Nameless, Normal>([](const Nameless&, const Normal& q) { return q.entropy(); });
  CHECK(kl_divergence(nameless, Normal(0, 1)).item<float>() ==
        Normal(0, 1).entropy().item<float>());
}
