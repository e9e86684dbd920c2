// Every bad input: the kind of the error, and what its message names.
#include <cmath>

#include <doctest/doctest.h>

#include "tests/distributions/support.h"
#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::distributions;
using namespace kiln::test;

namespace {

// Whether f throws a ValueError that says "<name>: parameter <parameter> must be <set>; got <got>".
template <class F>
void refuses(F&& f, const std::string& name, const std::string& parameter, const std::string& set,
             const std::string& got) {
  const std::string wanted = name + ": parameter " + parameter + " must be " + set + "; got " + got;
  CHECK(error_lacks<ValueError>(f, {wanted}) == "");
}

// A class that has nothing but what it must have.
class Bare : public distributions::Distribution {
 public:
  Bare() : Distribution("Bare", {}) {}
  std::unique_ptr<distributions::Distribution> expand(const Shape&) const override {
    return std::make_unique<Bare>(*this);
  }
  Constraint support() const override { return constraints::real(); }
};

}  // namespace

TEST_CASE("distributions: parameters outside their sets") {
  refuses([] { Normal(NAN, 1); }, "Normal", "loc", "a number", "nan");
  refuses([] { Normal(0, -1); }, "Normal", "scale", "> 0", "-1");
  refuses([] { Normal(0, tensor({1.0, 2.0, 0.0})); }, "Normal", "scale", "> 0", "0");
  refuses([] { Normal(0, NAN); }, "Normal", "scale", "> 0", "nan");
  refuses([] { Uniform(1, 1); }, "Uniform", "high", "> low = 1", "1");
  refuses([] { Uniform(tensor({0.0, 3.0}), 2); }, "Uniform", "high", "> low", "2");
  refuses([] { Exponential(0); }, "Exponential", "rate", "> 0", "0");
  refuses([] { Laplace(0, -2); }, "Laplace", "scale", "> 0", "-2");
  refuses([] { Cauchy(0, -2); }, "Cauchy", "scale", "> 0", "-2");
  refuses([] { Gumbel(0, -2); }, "Gumbel", "scale", "> 0", "-2");
  refuses([] { LogNormal(0, -2); }, "LogNormal", "scale", "> 0", "-2");
  refuses([] { HalfNormal(-2); }, "HalfNormal", "scale", "> 0", "-2");
  refuses([] { Weibull(0, 1); }, "Weibull", "scale", "> 0", "0");
  refuses([] { Weibull(1, 0); }, "Weibull", "concentration", "> 0", "0");
  refuses([] { Pareto(0, 1); }, "Pareto", "scale", "> 0", "0");
  refuses([] { Pareto(1, 0); }, "Pareto", "alpha", "> 0", "0");
  refuses([] { StudentT(0); }, "StudentT", "df", "> 0", "0");
  refuses([] { StudentT(1, NAN); }, "StudentT", "loc", "a number", "nan");
  refuses([] { StudentT(1, 0, 0); }, "StudentT", "scale", "> 0", "0");
  refuses([] { Gamma(0, 1); }, "Gamma", "concentration", "> 0", "0");
  refuses([] { Gamma(1, -1); }, "Gamma", "rate", "> 0", "-1");
  refuses([] { Chi2(-1); }, "Chi2", "df", "> 0", "-1");
  refuses([] { Beta(0, 1); }, "Beta", "concentration1", "> 0", "0");
  refuses([] { Beta(1, 0); }, "Beta", "concentration0", "> 0", "0");
  refuses(
      [] {
        Dirichlet(tensor({1.0, 0.0}));
      },
      "Dirichlet", "concentration", "a vector, each element > 0", "tensor([1., 0.])");
  refuses([] { Poisson(-1); }, "Poisson", "rate", ">= 0", "-1");
  refuses([] { VonMises(0, 0); }, "VonMises", "concentration", "> 0", "0");
  refuses([] { Bernoulli({.probs = 1.5}); }, "Bernoulli", "probs", "from 0 to 1", "1.5");
  refuses([] { Bernoulli({.logits = NAN}); }, "Bernoulli", "logits", "a number", "nan");
  refuses([] { Geometric({.probs = 0.0}); }, "Geometric", "probs", "> 0 and at most 1", "0");
  refuses([] { Binomial(3, {.probs = -0.5}); }, "Binomial", "probs", "from 0 to 1", "-0.5");
  refuses([] { Binomial(2.5, {.probs = 0.5}); }, "Binomial", "total_count", "a whole number >= 0",
          "2.5");
  refuses([] { NegativeBinomial(-1, {.probs = 0.5}); }, "NegativeBinomial", "total_count", ">= 0",
          "-1");
  refuses([] { NegativeBinomial(1, {.probs = 1.0}); }, "NegativeBinomial", "probs",
          "from 0 to less than 1", "1");
  const std::string weights = "numbers >= 0 with a sum > 0";
  refuses(
      [] {
        Categorical({.probs = tensor({0.5, -0.5})});
      },
      "Categorical", "probs", weights, "tensor([ 0.5000, -0.5000])");
  refuses(
      [] {
        Categorical({.probs = zeros({2, 2})});
      },
      "Categorical", "probs", weights, "tensor([0., 0.])");
  refuses(
      [] {
        Categorical({.probs = tensor({1.0, INFINITY})});
      },
      "Categorical", "probs", weights, "tensor([1., inf])");
  refuses([] { Categorical({.logits = full({2}, -INFINITY)}); }, "Categorical", "logits",
          "a vector, each element a number", "tensor");
  refuses(
      [] {
        Categorical({.logits = tensor({0.0, NAN})});
      },
      "Categorical", "logits", "a vector, each element a number", "tensor");
  refuses([] { OneHotCategorical({.probs = zeros({2})}); }, "OneHotCategorical", "probs", weights,
          "tensor([0., 0.])");
  refuses([] { Multinomial(2, {.probs = zeros({2})}); }, "Multinomial", "probs", weights,
          "tensor([0., 0.])");
  refuses([] { Multinomial(-1, {.probs = ones({2})}); }, "Multinomial", "total_count", ">= 0",
          "-1");
  const Tensor loc = zeros({2});
  refuses(
      [&] {
        MultivariateNormal(loc, {.scale_tril = tensor({{1.0, 2.0}, {0.0, 1.0}})});
      },
      "MultivariateNormal", "scale_tril", "a matrix with zeros above a positive diagonal",
      "tensor");
  refuses(
      [&] {
        MultivariateNormal(loc, {.scale_tril = tensor({{1.0, 0.0}, {0.0, -1.0}})});
      },
      "MultivariateNormal", "scale_tril", "a matrix with zeros above a positive diagonal",
      "tensor");
  for (const Tensor& matrix :
       {tensor({{1.0, 2.0}, {0.0, 1.0}}), tensor({{1.0, 2.0}, {2.0, 1.0}})}) {
    refuses([&] { MultivariateNormal(loc, {.covariance_matrix = matrix}); }, "MultivariateNormal",
            "covariance_matrix", "a symmetric positive definite matrix", "tensor");
    refuses([&] { MultivariateNormal(loc, {.precision_matrix = matrix}); }, "MultivariateNormal",
            "precision_matrix", "a symmetric positive definite matrix", "tensor");
  }
}

TEST_CASE("distributions: parameters that are missing, of other shapes or dtypes") {
  const auto none = [](auto&& f, const std::vector<std::string>& words) {
    CHECK(error_lacks<ValueError>(f, words) == "");
  };
  none([] { Normal(Tensor(), 1); }, {"Normal", "loc", "was not given"});
  none([] { Dirichlet(Tensor{}); }, {"Dirichlet", "concentration", "was not given"});
  none([] { Bernoulli({}); }, {"Bernoulli", "one of probs and logits", "none"});
  none([] { Bernoulli({.probs = 0.5, .logits = 0.0}); }, {"Bernoulli", "both"});
  none([] { Binomial(1, {}); }, {"Binomial", "one of probs and logits", "none"});
  none([] { Categorical({}); }, {"Categorical", "one of probs and logits", "none"});
  none([] { Categorical({.probs = ones({2}), .logits = ones({2})}); }, {"Categorical", "both"});
  none([] { MultivariateNormal(zeros({2}), {}); }, {"MultivariateNormal", "scale_tril", "got 0"});
  none([] { MultivariateNormal(zeros({2}), {.covariance_matrix = eye(2), .scale_tril = eye(2)}); },
       {"MultivariateNormal", "got 2"});
  none([] { AffineTransform(Tensor(), 1); }, {"AffineTransform", "loc"});
  none([] { AffineTransform(0, 0); }, {"AffineTransform", "scale must not be 0"});
  none([] { AffineTransform(0, 1, -1); }, {"AffineTransform", "event_dim", "-1"});
  none([] { Independent(Normal(zeros({2}), 1), 2); }, {"Independent", "dims", "1; got 2"});
  none([] { Independent(Normal(zeros({2}), 1), -1); }, {"Independent", "got -1"});
  none([] { constraints::independent(constraints::real(), -1); }, {"independent", "-1"});

  const auto shape = [](auto&& f, const std::vector<std::string>& words) {
    CHECK(error_lacks<ShapeError>(f, words) == "");
  };
  shape([] { Normal(zeros({2}), ones({3})); }, {"Normal", "scale", "[3]", "[2]"});
  shape([] { Dirichlet(tensor(1.0)); }, {"Dirichlet", "concentration", "1 dim"});
  shape([] { Categorical({.probs = tensor(1.0)}); }, {"Categorical", "probs", "1 dim"});
  shape([] { Categorical({.logits = ones({2, 0})}); }, {"Categorical", "[2, 0]"});
  shape([] { MultivariateNormal(zeros({2}), {.scale_tril = eye(3)}); },
        {"MultivariateNormal", "scale_tril", "[2, 2]", "[3, 3]"});
  shape([] { MultivariateNormal(zeros({2}), {.scale_tril = ones({2})}); }, {"2 dims", "[2]"});
  shape([] { MultivariateNormal(tensor(0.0), {.scale_tril = eye(2)}); }, {"loc", "1 dim"});
  shape([] { MixtureSameFamily(Categorical({.probs = ones({2})}), Normal(zeros({3}), 1)); },
        {"MixtureSameFamily", "2 elements", "[3]"});
  shape([] { MixtureSameFamily(Categorical({.probs = ones({2})}), Normal(0, 1)); },
        {"MixtureSameFamily", "2 elements", "[]"});
  shape(
      [] {
        MixtureSameFamily(Categorical({.probs = ones({4, 2})}), Normal(zeros({3, 2}), 1));
      },
      {"MixtureSameFamily", "[4]", "[3]"});
  shape([] { TransformedDistribution(Normal(0, 1), {AffineTransform(0, 1, 1)}); },
        {"TransformedDistribution", "1 dims", "[]"});

  const Tensor complex = zeros({2}, {DType::c64});
  CHECK(error_lacks<DTypeError>([&] { Normal(complex, 1); }, {"Normal", "loc", "complex64"}) == "");
  CHECK(error_lacks<DTypeError>([&] { Dirichlet{complex}; }, {"Dirichlet", "concentration"}) == "");
}

TEST_CASE("distributions: values outside the support, and of other shapes") {
  const auto outside = [](const distributions::Distribution& d, const Tensor& x,
                          const std::string& set) {
    INFO(d.name());
    const std::vector<std::string> words = {std::string(d.name()) + ": value must be " + set};
    CHECK(error_lacks<ValueError>([&] { d.log_prob(x); }, words) == "");
    try {
      d.cdf(d.mean());
    } catch (const NotImplementedError&) {
      return;
    } catch (const ValueError&) {
    }
    CHECK(error_lacks<ValueError>([&] { d.cdf(x); }, words) == "");
  };
  outside(Normal(0, 1), tensor(NAN), "a number; got nan");
  outside(Uniform(0, 1), tensor({0.5, 2.0}), "from 0 to 1; got 2");
  outside(Uniform(zeros({2}), 1), tensor(-1.0), "from bounds of shape [2] to bounds of shape [2]");
  outside(Exponential(1), tensor(-1.0), ">= 0; got -1");
  outside(LogNormal(0, 1), tensor(0.0), "> 0; got 0");
  outside(HalfNormal(1), tensor(-1.0), ">= 0; got -1");
  outside(Weibull(1, 1), tensor(0.0), "> 0; got 0");
  outside(Pareto(2, 1), tensor(1.0), ">= 2; got 1");
  outside(Gamma(1, 1), tensor(-1.0), ">= 0; got -1");
  outside(Chi2(1), tensor(-1.0), ">= 0; got -1");
  outside(Beta(1, 1), tensor(1.5), "from 0 to 1; got 1.5");
  outside(Dirichlet(ones({2})), tensor({0.5, 0.6}), "numbers >= 0 with sum 1; got tensor");
  outside(Bernoulli({.probs = 0.5}), tensor(0.5), "0 or 1; got 0.5");
  outside(Geometric({.probs = 0.5}), tensor(1.5), "a whole number >= 0; got 1.5");
  outside(Poisson(1), tensor(-1), "a whole number >= 0; got -1");
  outside(Binomial(3, {.probs = 0.5}), tensor(4.0), "a whole number from 0 to 3; got 4");
  outside(NegativeBinomial(3, {.probs = 0.5}), tensor(-1.0), "a whole number >= 0");
  outside(Categorical({.probs = ones({3})}), tensor(3), "a whole number from 0 to 2; got 3");
  outside(OneHotCategorical({.probs = ones({2})}), ones({2}), "one 1 and else zeros");
  outside(Multinomial(2, {.probs = ones({2})}), tensor({2.0, 1.0}),
          "whole numbers >= 0 with a sum");
  outside(MultivariateNormal(zeros({2}), {.scale_tril = eye(2)}), tensor({0.0, NAN}), "a vector");
  outside(TransformedDistribution(Normal(0, 1), {TanhTransform()}), tensor(2.0), "from -1 to 1");

  const auto misshapen = [](const distributions::Distribution& d, const Shape& shape) {
    INFO(d.name());
    CHECK(error_lacks<ShapeError>(
              [&] { d.log_prob(zeros(shape)); },
              {std::string(d.name()) + ": value must broadcast", to_string(shape)}) == "");
  };
  misshapen(Normal(zeros({2}), 1), {3});
  misshapen(Dirichlet(ones({2})), {3});
  misshapen(Dirichlet(ones({2})), {});
  misshapen(Independent(Normal(zeros({4, 2}), 1), 1), {2, 2});
  misshapen(Independent(Normal(zeros({4, 2}), 1), 1), {});
  CHECK_THROWS_AS(Normal(0, 1).log_prob(Tensor()), ValueError);
}

TEST_CASE("distributions: without checks nothing is read") {
  const Normal broken(0, -1, false);
  CHECK_FALSE(broken.validates_args());
  CHECK(broken.log_prob(tensor(0.0)).isnan().item<bool>());
  distributions::Distribution::set_default_validate_args(false);
  CHECK_NOTHROW(Normal(0, -1));
  CHECK_THROWS_AS(Normal(0, -1, true), ValueError);
  distributions::Distribution::set_default_validate_args(true);
  CHECK_THROWS_AS(Normal(0, -1), ValueError);
  // A copy keeps the setting.
  CHECK_FALSE(broken.expand({2})->validates_args());
}

TEST_CASE("distributions: members that a class does not have") {
  const Bare bare;
  const auto missing = [](auto&& f, const std::string& text) {
    CHECK(error_lacks<NotImplementedError>(f, {text}) == "");
  };
  const Tensor x = tensor(0.0);
  missing([&] { bare.rsample(); }, "Bare: it has no rsample()");
  missing([&] { bare.sample(); }, "Bare: it has no rsample()");
  missing([&] { bare.rsample_with_log_prob(); }, "Bare: it has no rsample()");
  missing([&] { bare.log_prob(x); }, "Bare: it has no log_prob()");
  missing([&] { bare.cdf(x); }, "Bare: it has no cdf()");
  missing([&] { bare.icdf(x); }, "Bare: it has no icdf()");
  missing([&] { bare.mean(); }, "Bare: it has no mean()");
  missing([&] { bare.mode(); }, "Bare: it has no mode()");
  missing([&] { bare.variance(); }, "Bare: it has no variance()");
  missing([&] { bare.stddev(); }, "Bare: it has no variance()");
  missing([&] { bare.entropy(); }, "Bare: it has no entropy()");
  missing([&] { bare.perplexity(); }, "Bare: it has no entropy()");
  missing([&] { bare.enumerate_support(); }, "Bare: it has no enumerate_support()");
  missing([] { Binomial(tensor({1.0, 2.0}), {.probs = 0.5}).entropy(); }, "1 to 2");
  CHECK(error_lacks<ShapeError>([] { constraints::simplex().check(tensor(1.0)); }, {"1 dims"}) ==
        "");
}
