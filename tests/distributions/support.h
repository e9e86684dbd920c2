// What the tests of distributions share.
#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <numbers>
#include <string>
#include <vector>

#include "kiln/distributions/distributions.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"

namespace kiln::test {

// While it lives, f64 is the default dtype: numbers as parameters have all digits.
class DoubleGuard {
 public:
  DoubleGuard() : before_(default_dtype()) { set_default_dtype(f64); }
  ~DoubleGuard() { set_default_dtype(before_); }
  DoubleGuard(const DoubleGuard&) = delete;
  DoubleGuard& operator=(const DoubleGuard&) = delete;

 private:
  DType before_;
};

using DistributionPtr = std::shared_ptr<const distributions::Distribution>;

// A distribution of one number with parameters that tests may move.
struct NumberCase {
  std::string name;
  std::vector<double> parameters;
  std::function<DistributionPtr(const std::vector<Tensor>&)> make;
  // Where draws are. `center` splits the real line; kinks of densities lie there.
  double low, high, center;
  std::vector<double> values;  // of the support, off its ends
  bool discrete = false;
  bool has_variance = true;

  std::vector<Tensor> tensors(bool requires_grad = false) const;
  DistributionPtr made() const { return make(tensors()); }
};

// Places and weights of a sum for the integral over the support of a case: quadrature with double
// exponential substitutions, or, of counts, the counts with weight 1.
struct Quadrature {
  Tensor places, weights;
  double sum(const Tensor& x) const;  // of weights times x
};
inline Quadrature quadrature(const NumberCase& c);

// ---- The cases

template <class D>
DistributionPtr shared(D d) {
  return std::make_shared<const D>(std::move(d));
}

using Parts = const std::vector<Tensor>&;
inline constexpr double kInf = INFINITY;

inline std::vector<NumberCase> continuous_cases() {
  using namespace distributions;
  return {
      {"Normal",
       {0.5, 2.0},
       [](Parts p) { return shared(Normal(p[0], p[1])); },
       -kInf,
       kInf,
       0.5,
       {-3, 0.2, 4}},
      {"Uniform",
       {-1.0, 3.0},
       [](Parts p) { return shared(Uniform(p[0], p[1])); },
       -1,
       3,
       0,
       {-0.5, 2.5}},
      {"Exponential",
       {1.5},
       [](Parts p) { return shared(Exponential(p[0])); },
       0,
       kInf,
       0,
       {0.1, 2}},
      {"Laplace",
       {-0.5, 1.5},
       [](Parts p) { return shared(Laplace(p[0], p[1])); },
       -kInf,
       kInf,
       -0.5,
       {-4, 0.3}},
      {"Cauchy",
       {1.0, 0.5},
       [](Parts p) { return shared(Cauchy(p[0], p[1])); },
       -kInf,
       kInf,
       1.0,
       {-4, 1.3},
       false,
       false},
      {"Gumbel",
       {1.0, 2.0},
       [](Parts p) { return shared(Gumbel(p[0], p[1])); },
       -kInf,
       kInf,
       1.0,
       {-3, 6}},
      {"LogNormal",
       {0.25, 0.75},
       [](Parts p) { return shared(LogNormal(p[0], p[1])); },
       0,
       kInf,
       0,
       {0.2, 3}},
      {"HalfNormal", {2.0}, [](Parts p) { return shared(HalfNormal(p[0])); }, 0, kInf, 0, {0.2, 3}},
      {"Weibull",
       {2.0, 1.5},
       [](Parts p) { return shared(Weibull(p[0], p[1])); },
       0,
       kInf,
       0,
       {0.2, 3}},
      {"Weibull below 1",
       {1.5, 0.8},
       [](Parts p) { return shared(Weibull(p[0], p[1])); },
       0,
       kInf,
       0,
       {0.2, 3}},
      {"Pareto",
       {1.5, 3.5},
       [](Parts p) { return shared(Pareto(p[0], p[1])); },
       1.5,
       kInf,
       0,
       {1.7, 6}},
      {"StudentT",
       {4.5, 0.5, 2.0},
       [](Parts p) { return shared(StudentT(p[0], p[1], p[2])); },
       -kInf,
       kInf,
       0.5,
       {-3, 4}},
      {"Gamma",
       {2.5, 1.5},
       [](Parts p) { return shared(Gamma(p[0], p[1])); },
       0,
       kInf,
       0,
       {0.2, 3}},
      {"Gamma below 1",
       {0.4, 0.5},
       [](Parts p) { return shared(Gamma(p[0], p[1])); },
       0,
       kInf,
       0,
       {0.2, 3}},
      {"Chi2", {3.0}, [](Parts p) { return shared(Chi2(p[0])); }, 0, kInf, 0, {0.2, 3}},
      {"Beta", {2.5, 1.5}, [](Parts p) { return shared(Beta(p[0], p[1])); }, 0, 1, 0, {0.2, 0.7}},
      {"Beta below 1",
       {0.5, 0.75},
       [](Parts p) { return shared(Beta(p[0], p[1])); },
       0,
       1,
       0,
       {0.2, 0.7}},
      {"VonMises",
       {1.0, 4.0},
       [](Parts p) { return shared(VonMises(p[0], p[1])); },
       -std::numbers::pi,
       std::numbers::pi,
       0,
       {-1, 2},
       false,
       false},
      {"Mixture",
       {-1.0, 2.0, 1.5},
       [](Parts p) {
         return shared(MixtureSameFamily(Categorical({.logits = stack({p[0], p[1]})}),
                                         Normal(stack({p[0], p[1]}), p[2])));
       },
       -kInf,
       kInf,
       0.0,
       {-2, 1}},
      {"Transformed",
       {0.5, 0.75, -2.0},
       [](Parts p) {
         return shared(TransformedDistribution(Normal(p[0], p[1]),
                                               {ExpTransform(), AffineTransform(1.0, p[2])}));
       },
       -kInf,
       1.0,
       0.0,
       {-3, 0.5}},
      {"Squashed",
       {0.5, 0.75},
       [](Parts p) {
         return shared(TransformedDistribution(Normal(p[0], p[1]), {TanhTransform()}));
       },
       -1,
       1,
       0.0,
       {-0.8, 0.6}},
      {"Logistic-normal",
       {0.5, 0.75},
       [](Parts p) {
         return shared(TransformedDistribution(Normal(p[0], p[1]), {SigmoidTransform()}));
       },
       0,
       1,
       0.0,
       {0.2, 0.6}},
  };
}

inline std::vector<NumberCase> discrete_cases() {
  using namespace distributions;
  return {
      {"Bernoulli by probs",
       {0.3},
       [](Parts p) { return shared(Bernoulli({.probs = p[0]})); },
       0,
       1,
       0,
       {0, 1},
       true},
      {"Bernoulli by logits",
       {1.5},
       [](Parts p) { return shared(Bernoulli({.logits = p[0]})); },
       0,
       1,
       0,
       {0, 1},
       true},
      {"Geometric by probs",
       {0.3},
       [](Parts p) { return shared(Geometric({.probs = p[0]})); },
       0,
       400,
       0,
       {0, 5},
       true},
      {"Geometric by logits",
       {-0.5},
       [](Parts p) { return shared(Geometric({.logits = p[0]})); },
       0,
       400,
       0,
       {0, 5},
       true},
      {"Binomial",
       {0.3},
       [](Parts p) { return shared(Binomial(9, {.probs = p[0]})); },
       0,
       9,
       0,
       {0, 4, 9},
       true},
      {"NegativeBinomial",
       {3.5, 0.4},
       [](Parts p) { return shared(NegativeBinomial(p[0], {.probs = p[1]})); },
       0,
       400,
       0,
       {0, 7},
       true},
      {"Poisson", {3.5}, [](Parts p) { return shared(Poisson(p[0])); }, 0, 100, 0, {0, 7}, true},
  };
}

inline std::vector<Tensor> NumberCase::tensors(bool requires_grad) const {
  std::vector<Tensor> result;
  for (const double p : parameters)
    result.push_back(tensor(p, {.dtype = f64, .requires_grad = requires_grad}));
  return result;
}

// Every class whose draws are single numbers, some of them twice. For f64 as the default dtype.
inline const std::vector<NumberCase>& number_cases() {
  static const std::vector<NumberCase> cases = [] {
    std::vector<NumberCase> all = continuous_cases();
    for (NumberCase& c : discrete_cases()) all.push_back(std::move(c));
    return all;
  }();
  return cases;
}

inline double Quadrature::sum(const Tensor& x) const { return (weights * x).sum().item<double>(); }

inline Quadrature quadrature(const NumberCase& c) {
  if (c.discrete) {
    const Tensor places = arange(c.low, c.high + 1, 1, {f64});
    return {places, ones_like(places)};
  }
  constexpr double kHalfPi = std::numbers::pi / 2;
  constexpr double kStep = 1.0 / 64;
  std::vector<double> places, weights;
  const auto add = [&](double x, double weight) {
    if (!(x > c.low && x < c.high) || !std::isfinite(weight)) return;
    places.push_back(x);
    weights.push_back(weight * kStep);
  };
  for (int i = -320; i <= 320; ++i) {
    const double t = i * kStep, s = kHalfPi * std::sinh(t), slope = kHalfPi * std::cosh(t);
    if (std::isfinite(c.low) && std::isfinite(c.high)) {
      const double half = (c.high - c.low) / 2, cosh = std::cosh(s);
      // The distance to the nearer end keeps its digits.
      const double gap = half * std::exp(-std::abs(s)) / cosh;
      add(s < 0 ? c.low + gap : c.high - gap, half * slope / (cosh * cosh));
    } else {
      const double from = std::isfinite(c.low) ? c.low : std::isfinite(c.high) ? c.high : c.center;
      const double x = std::exp(s);
      add(from + x, x * slope);
      add(from - x, x * slope);
    }
  }
  return {tensor(places, {f64}), tensor(weights, {f64})};
}

}  // namespace kiln::test
