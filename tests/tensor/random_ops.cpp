// Distributions: means and variances over many draws with fixed seeds. The bounds are five standard
// errors of the estimate.
#include "kiln/tensor/random/random_ops.h"

#include <cmath>

#include "kiln/kiln.h"
#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::test;

namespace {

constexpr int64_t kCount = 200000;

// Whether the sample's mean is within five standard errors of `mean`, and its variance within 3 %.
void check_moments(const char* what, const Tensor& sample, double mean, double variance) {
  INFO(what);
  const Tensor x = sample.to(f64);
  const double bound = 5.0 * std::sqrt(variance / static_cast<double>(x.numel()));
  CHECK(std::fabs(x.mean().item() - mean) < bound);
  CHECK(std::fabs(x.var().item() / variance - 1.0) < 0.03);
}

}  // namespace

TEST_CASE("random numbers have the moments of their distributions") {
  Generator g(7);
  for (const double rate : {0.3, 4.0, 9.9, 10.0, 35.0, 1000.0}) {
    check_moments("poisson", poisson(full({kCount}, rate), &g), rate, rate);
  }
  for (const auto& [n, p] :
       {std::pair{10.0, 0.3}, {40.0, 0.9}, {100.0, 0.5}, {1000.0, 0.02}, {5000.0, 0.7}}) {
    check_moments("binomial", binomial(full({kCount}, n), full({kCount}, p), &g), n * p,
                  n * p * (1.0 - p));
  }
  Tensor x = empty({kCount}, {f64});
  check_moments("uniform_", uniform_(x, -1, 3, &g), 1.0, 16.0 / 12.0);
  check_moments("normal_", normal_(x, 2, 3, &g), 2.0, 9.0);
  check_moments("exponential_", exponential_(x, 4, &g), 0.25, 1.0 / 16.0);
  check_moments("geometric_", geometric_(x, 0.3, &g), 1.0 / 0.3, 0.7 / 0.09);
  check_moments("bernoulli_", bernoulli_(x, 0.3, &g), 0.3, 0.21);
  check_moments("random_", random_(x, 3, 13, &g), 7.5, 99.0 / 12.0);
  check_moments("log_normal_", log(log_normal_(x, 0.5, 0.25, &g)), 0.5, 0.0625);
  // Half of Cauchy's numbers are within sigma of the median.
  check_moments("cauchy_", (cauchy_(x, 1, 2, &g) - 1.0).abs().lt(2.0), 0.5, 0.25);
  const Tensor mean = tensor({{-5.0}, {5.0}});
  const Tensor many = normal(mean, full({2, kCount}, 0.5), &g);
  check_moments("normal, first row", many[0], -5.0, 0.25);
  check_moments("normal, second row", many[1], 5.0, 0.25);
}

TEST_CASE("multinomial draws in proportion to the weights") {
  Generator g(3);
  const Tensor weights = tensor({1.0, 0.0, 3.0, 6.0});
  const Tensor drawn = multinomial(weights, kCount, true, &g);
  for (const auto& [i, p] : {std::pair{0, 0.1}, {1, 0.0}, {2, 0.3}, {3, 0.6}}) {
    const double share = drawn.eq(i).to(f64).mean().item();
    CHECK(std::fabs(share - p) <= 5.0 * std::sqrt(p * (1.0 - p) / kCount));
  }
  // Without replacement: the first one by the weights, none twice.
  const Tensor pairs = multinomial(weights.expand({kCount, 4}), 3, false, &g);
  CHECK(pairs.sort(1).first.equal(tensor({0, 2, 3}).expand({kCount, 3})));
  const double first = pairs.select(1, 0).eq(3).to(f64).mean().item();
  CHECK(std::fabs(first - 0.6) < 5.0 * std::sqrt(0.24 / kCount));
}

TEST_CASE("random numbers: the stream goes on, and equal seeds give equal numbers") {
  const auto draws = [](Generator* g) {
    const Tensor w = ones({6});
    return std::vector<Tensor>{poisson(full({50}, 20.0), g), multinomial(w, 6, false, g),
                               multinomial(w, 9, true, g), randperm(9, {}, g),
                               binomial(full({9}, 50.0), full({9}, 0.5), g)};
  };
  Generator a(5);
  Generator b(5);
  const auto first = draws(&a);
  const auto same = draws(&b);
  const auto next = draws(&a);
  for (size_t i = 0; i < first.size(); ++i) {
    CHECK(first[i].equal(same[i]));
    CHECK_FALSE(first[i].equal(next[i]));
  }
}

TEST_CASE("random numbers: errors") {
  CHECK_THROWS_AS(normal(0.0, -1.0, {3}), ValueError);
  CHECK_THROWS_AS(normal(ones({3}), tensor({1.0, -1.0, 1.0})), ValueError);
  CHECK_THROWS_AS(multinomial(ones({3}), 4), ValueError);
  CHECK_THROWS_AS(multinomial(tensor({1.0, -1.0}), 1), ValueError);
  CHECK_THROWS_AS(multinomial(tensor({0.0, 0.0}), 1, true), ValueError);
  CHECK_THROWS_AS(multinomial(tensor({NAN, 1.0}), 1, true), ValueError);
  CHECK_THROWS_AS(multinomial(ones({2, 2, 2}), 1), ShapeError);
  CHECK_THROWS_AS(multinomial(ones({3}, {i64}), 1), DTypeError);
  CHECK_THROWS_AS(multinomial(ones({3}), 0), ValueError);
  CHECK_THROWS_AS(poisson(tensor({-1.0})), ValueError);
  CHECK_THROWS_AS(bernoulli(ones({2}), 1.5), ValueError);
  Tensor x = ones({2});
  CHECK_THROWS_AS(exponential_(x, 0.0), ValueError);
  CHECK_THROWS_AS(geometric_(x, 1.0), ValueError);
  CHECK_THROWS_AS(random_(x, 3, 3), ValueError);
  Tensor whole = ones({2}, {i64});
  CHECK_THROWS_AS(cauchy_(whole), DTypeError);
  CHECK(poisson(empty({0})).shape() == Shape{0});
}

TEST_CASE("sequences: errors") {
  CHECK_THROWS_AS(eye(-1, 2), ValueError);
  CHECK_THROWS_AS(tril(ones({3})), ShapeError);
  CHECK_THROWS_AS(tril_indices(-1, 2), ValueError);
  CHECK_THROWS_AS(logspace(0, 1, -1), ValueError);
  CHECK_THROWS_AS(kiln::range(1, 0), ValueError);
  const std::vector<Tensor> none;
  CHECK_THROWS_AS(meshgrid(none), ValueError);
  const std::vector<Tensor> mixed = {ones({2}), ones({2}, {i64})};
  CHECK_THROWS_AS(meshgrid(mixed), ValueError);
  const std::vector<Tensor> square = {ones({2, 2})};
  CHECK_THROWS_AS(meshgrid(square), ShapeError);
  CHECK_THROWS_AS(meshgrid(std::vector<Tensor>{ones({2})}, "yx"), ValueError);
  CHECK_THROWS_AS(combinations(ones({3}), -1), ValueError);
  CHECK_THROWS_AS(empty_strided({2, 3}, {1}), ShapeError);
  CHECK_THROWS_AS(empty_strided({2, 3}, {-1, 1}), ValueError);
  CHECK_THROWS_AS(empty_strided({int64_t{1} << 40, 3}, {int64_t{1} << 40, 1}), ValueError);
  Tensor x = empty_strided({2, 3}, {1, 2});
  CHECK(x.stride() == Strides{1, 2});
}
