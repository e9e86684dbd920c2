// Gradients of log_prob, entropy, cdf and rsample against differences and means.
#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "kiln/core/random.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/elementwise/pointwise.h"
#include "tests/distributions/support.h"
#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::distributions;
using namespace kiln::test;

namespace {

using TensorsToTensor = std::function<Tensor(const std::vector<Tensor>&)>;

// "" if the derivatives of f, a sum, agree with central differences.
std::string gradient_mismatch(const std::vector<double>& at, const TensorsToTensor& f,
                              double tolerance = 1e-6) {
  const auto tensors = [](const std::vector<double>& values, bool tracked) {
    std::vector<Tensor> result;
    for (const double v : values)
      result.push_back(tensor(v, {.dtype = f64, .requires_grad = tracked}));
    return result;
  };
  const std::vector<Tensor> x = tensors(at, true);
  const Tensor y = f(x).sum();
  if (!y.requires_grad()) return "nothing is tracked";
  const std::vector<Tensor> outputs = {y};
  const std::vector<Tensor> found = grad(outputs, x, {.allow_unused = true});
  for (size_t i = 0; i < at.size(); ++i) {
    const double step = 1e-5 * std::max(1.0, std::abs(at[i]));
    std::vector<double> up = at, down = at;
    up[i] += step;
    down[i] -= step;
    const double difference =
        (f(tensors(up, false)).sum().item() - f(tensors(down, false)).sum().item()) / (2 * step);
    const double mine = found[i].defined() ? found[i].item() : 0.0;
    if (!(std::abs(mine - difference) <= tolerance * std::max(1.0, std::abs(difference)))) {
      return concat("argument ", i, ": ", mine, " is not ", difference);
    }
  }
  return "";
}

std::vector<Tensor> parameters_of(const NumberCase& c, const std::vector<Tensor>& x) {
  return {x.begin(), x.begin() + static_cast<int64_t>(c.parameters.size())};
}

}  // namespace

TEST_CASE("distributions: gradients of log_prob and cdf, of values and parameters") {
  const DoubleGuard guard;
  for (const NumberCase& c : number_cases()) {
    for (const double value : c.values) {
      INFO(c.name, " at ", value);
      std::vector<double> at = c.parameters;
      if (!c.discrete) at.push_back(value);
      const auto x = [&](const std::vector<Tensor>& p) {
        return c.discrete ? tensor(value) : p.back();
      };
      CHECK(gradient_mismatch(at, [&](const std::vector<Tensor>& p) {
              return c.make(parameters_of(c, p))->log_prob(x(p));
            }) == "");
      try {
        c.made()->cdf(tensor(value));
      } catch (const NotImplementedError&) {
        continue;
      }
      CHECK(gradient_mismatch(at, [&](const std::vector<Tensor>& p) {
              return c.make(parameters_of(c, p))->cdf(x(p));
            }) == "");
    }
  }
}

TEST_CASE("distributions: gradients of mean, variance and entropy") {
  const DoubleGuard guard;
  using Member = Tensor (distributions::Distribution::*)() const;
  for (const NumberCase& c : number_cases()) {
    for (const Member member :
         {&distributions::Distribution::mean, &distributions::Distribution::variance,
          &distributions::Distribution::entropy}) {
      INFO(c.name);
      try {
        if (!(c.make(c.tensors(true)).get()->*member)().requires_grad()) continue;
      } catch (const NotImplementedError&) {
        continue;
      }
      if (!c.has_variance && c.name == "Cauchy" && member != &distributions::Distribution::entropy)
        continue;
      CHECK(gradient_mismatch(c.parameters, [&](const std::vector<Tensor>& p) {
              return (c.make(p).get()->*member)();
            }) == "");
    }
  }
}

TEST_CASE("distributions: draws with the same noise move with the parameters") {
  const DoubleGuard guard;
  for (const NumberCase& c : number_cases()) {
    INFO(c.name);
    const DistributionPtr d = c.made();
    // Rejection draws other noise where parameters differ; those are looked at below.
    const std::string name(d->name());
    if (!d->has_rsample() || name == "Gamma" || name == "Chi2" || name == "Beta" ||
        name == "StudentT")
      continue;
    CHECK(gradient_mismatch(c.parameters, [&](const std::vector<Tensor>& p) {
            manual_seed(3);
            return c.make(p)->rsample({7}).sin();
          }) == "");
  }
}

TEST_CASE("Gamma: a draw keeps its probability when the concentration moves") {
  const DoubleGuard guard;
  manual_seed(5);
  for (const double a : {0.05, 0.4, 1.0, 2.5, 30.0, 4000.0}) {
    INFO(a);
    Tensor concentration = full({64}, a).requires_grad_();
    const Tensor x = Gamma(concentration, 1.0).rsample();
    const Tensor slope = *x.sum().backward().get(concentration);
    // dx/da = -(dP/da) / p, with dP/da by differences of the incomplete gamma function.
    const double h = 1e-4 * std::min(a, 10.0);
    const Tensor value = x.detach();
    const auto cdf = [&](double c) { return igamma(full({64}, c), value); };
    const Tensor by_a =
        (8 * (cdf(a + h) - cdf(a - h)) - (cdf(a + 2 * h) - cdf(a - 2 * h))) / (12 * h);
    const Tensor expected = -by_a / Gamma(a, 1.0).log_prob(value).exp();
    // Where P is almost 1 its differences have no digits.
    const Tensor usable = (cdf(a) < 0.999) & (cdf(a) > 1e-3);
    CHECK(usable.sum().item<int64_t>() > 32);
    CHECK(where(usable, slope / expected, 1.0).allclose(ones({64}), 1e-5, 1e-5));
  }
}

TEST_CASE("distributions: draws by rejection have the gradients of means") {
  const DoubleGuard guard;
  manual_seed(7);
  constexpr int64_t kDraws = 100000;
  // Of E x^2 = variance + mean^2, whose derivatives were compared above.
  for (const NumberCase& c : number_cases()) {
    const std::string name(c.made()->name());
    if (name != "Gamma" && name != "Chi2" && name != "Beta" && name != "StudentT") continue;
    INFO(c.name);
    const std::vector<Tensor> p = c.tensors(true), q = c.tensors(true);
    const DistributionPtr drawn = c.make(p), exact = c.make(q);
    const Gradients found = drawn->rsample({kDraws}).square().mean().backward();
    const Gradients wanted = (exact->variance() + exact->mean().square()).backward();
    for (size_t i = 0; i < p.size(); ++i) {
      // The fourth moment of a t distribution with few degrees of freedom is large.
      const double tolerance = name == "StudentT" ? 0.15 : 0.03;
      CHECK(std::abs(found.get(p[i])->item() - wanted.get(q[i])->item()) <
            tolerance * std::max(1.0, std::abs(wanted.get(q[i])->item())));
    }
  }
  const Tensor c = tensor({0.5, 1.5, 3.0}, {.dtype = f64, .requires_grad = true});
  const Dirichlet d(c);
  const Tensor weights = tensor({1.0, -2.0, 0.5});
  const Tensor found = *(d.rsample({kDraws}).square() * weights).sum(-1).mean().backward().get(c);
  const Tensor wanted = *((d.variance() + d.mean().square()) * weights).sum().backward().get(c);
  CHECK(found.allclose(wanted, 0.03, 0.002));
}

TEST_CASE("distributions: gradients of vectors' log_prob, entropy and draws") {
  const DoubleGuard guard;
  const auto pack = [](const std::vector<Tensor>& p) { return stack(p); };
  const Tensor value = tensor({0.5, -1.5});
  const auto normal = [&](const std::vector<Tensor>& p, int kind) {
    const Tensor zero = tensor(0.0);
    const Tensor lower = stack({p[2], zero, p[3], p[4]}).reshape({2, 2});
    const Tensor matrix = lower.matmul(lower.t());
    const Covariance covariance = kind == 0   ? Covariance{.scale_tril = lower}
                                  : kind == 1 ? Covariance{.covariance_matrix = matrix}
                                              : Covariance{.precision_matrix = matrix};
    return MultivariateNormal(stack({p[0], p[1]}), covariance);
  };
  for (const int kind : {0, 1, 2}) {
    INFO(kind);
    const std::vector<double> at = {0.3, -0.2, 1.5, 0.4, 0.8};
    CHECK(gradient_mismatch(at, [&](const std::vector<Tensor>& p) {
            return normal(p, kind).log_prob(value) + normal(p, kind).entropy();
          }) == "");
    CHECK(gradient_mismatch(at, [&](const std::vector<Tensor>& p) {
            manual_seed(1);
            return normal(p, kind).rsample({5}).sin();
          }) == "");
  }
  CHECK(gradient_mismatch({0.5, 1.5, 3.0}, [&](const std::vector<Tensor>& p) {
          const Dirichlet d(pack(p));
          return d.log_prob(tensor({0.2, 0.3, 0.5})) + d.entropy();
        }) == "");
  for (const bool by_logits : {false, true}) {
    const auto chances = [&](const std::vector<Tensor>& p) {
      return by_logits ? ClassChances{.logits = pack(p)} : ClassChances{.probs = pack(p)};
    };
    CHECK(gradient_mismatch({0.5, 1.5, 3.0}, [&](const std::vector<Tensor>& p) {
            const Categorical one(chances(p));
            const OneHotCategorical hot(chances(p));
            const Multinomial many(4, chances(p));
            return one.log_prob(tensor(1)) + one.entropy() + hot.log_prob(tensor({0.0, 0.0, 1.0})) +
                   many.log_prob(tensor({1.0, 1.0, 2.0})) + many.entropy();
          }) == "");
  }
}

TEST_CASE("Gamma: a second derivative of draws is refused, not wrong") {
  const DoubleGuard guard;
  const Tensor a = tensor(2.0, {.dtype = f64, .requires_grad = true});
  const Tensor slope = grad({Gamma(a, 1.0).rsample()}, {a}, {.create_graph = true})[0];
  CHECK(error_lacks<AutodiffError>([&] { slope.backward_accumulate(); }, {"second derivative"}) ==
        "");
  // By the value the cdf has all derivatives: the density, and its slope.
  const Tensor x = tensor(1.5, {.dtype = f64, .requires_grad = true});
  const Tensor density = grad({Gamma(2.0, 1.0).cdf(x)}, {x}, {.create_graph = true})[0];
  CHECK(std::abs(density.item() - 1.5 * std::exp(-1.5)) < 1e-12);
  CHECK(std::abs(grad({density}, {x})[0].item() + 0.5 * std::exp(-1.5)) < 1e-12);
}
