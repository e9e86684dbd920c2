#include "kiln/nn/init.h"

#include <cmath>

#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "tests/support/near.h"

using namespace kiln;
namespace init = kiln::nn::init;
using kiln::test::near;

namespace {

// Bounds and moments of the elements.
struct Moments {
  double mean, std, min, max;
};
Moments moments(const Tensor& x) {
  return {x.mean().item(), x.std().item(), x.min().item(), x.max().item()};
}

// Whether the elements look uniform within +-bound.
bool is_uniform(const Tensor& x, double bound) {
  const Moments m = moments(x);
  return std::abs(m.mean) < 0.02 * bound &&
         std::abs(m.std - bound / std::sqrt(3.0)) < 0.02 * bound && m.min >= -bound &&
         m.min < -0.98 * bound && m.max <= bound && m.max > 0.98 * bound;
}

bool is_normal(const Tensor& x, double std) {
  const Moments m = moments(x);
  return std::abs(m.mean) < 0.03 * std && std::abs(m.std - std) < 0.03 * std && m.max > 3 * std;
}

}  // namespace

TEST_CASE("init: fans and gains") {
  CHECK(init::calculate_fan({5, 3}).fan_in == 3);
  CHECK(init::calculate_fan({5, 3}).fan_out == 5);
  CHECK(init::calculate_fan({8, 4, 3, 2}).fan_in == 24);
  CHECK(init::calculate_fan({8, 4, 3, 2}).fan_out == 48);
  CHECK_THROWS_AS(init::calculate_fan({5}), ShapeError);
  CHECK(init::calculate_gain(init::Nonlinearity::tanh) == doctest::Approx(5.0 / 3));
  CHECK(init::calculate_gain(init::Nonlinearity::relu) == doctest::Approx(std::sqrt(2.0)));
  CHECK(init::calculate_gain(init::Nonlinearity::leaky_relu, 1.0) == doctest::Approx(1.0));
  CHECK(init::calculate_gain(init::Nonlinearity::sigmoid) == 1.0);
  CHECK(init::calculate_gain(init::Nonlinearity::selu) == 0.75);
}

TEST_CASE("init: constants fill parameters in place") {
  Tensor x = zeros({2, 3}, {.dtype = f32, .requires_grad = true});
  CHECK(init::constant_(x, 2.5).is_same(x));
  CHECK(near(x, {2.5, 2.5, 2.5, 2.5, 2.5, 2.5}));
  CHECK(near(init::ones_(x), {1, 1, 1, 1, 1, 1}));
  CHECK(near(init::zeros_(x), {0, 0, 0, 0, 0, 0}));
  CHECK(near(init::eye_(x), {1, 0, 0, 0, 1, 0}));
  CHECK(x.requires_grad());
  CHECK(x.is_leaf());
  Tensor cube = zeros({2, 2, 2});
  CHECK_THROWS_AS(init::eye_(cube), ShapeError);
}

TEST_CASE("init: random families have their bounds and moments") {
  manual_seed(42);
  Tensor x = empty({200, 50});  // fan_in 50, fan_out 200
  init::uniform_(x, -3.0, 3.0);
  CHECK(is_uniform(x, 3.0));
  init::normal_(x, 0.0, 2.0);
  CHECK(is_normal(x, 2.0));
  init::xavier_uniform_(x, 2.0);
  CHECK(is_uniform(x, 2.0 * std::sqrt(6.0 / 250.0)));
  init::xavier_normal_(x);
  CHECK(is_normal(x, std::sqrt(2.0 / 250.0)));
  init::kaiming_uniform_(x, std::sqrt(5.0));
  CHECK(is_uniform(x, 1.0 / std::sqrt(50.0)));
  init::kaiming_uniform_(x, 0.0, init::FanMode::fan_out, init::Nonlinearity::relu);
  CHECK(is_uniform(x, std::sqrt(6.0 / 200.0)));
  init::kaiming_normal_(x, 0.0, init::FanMode::fan_in, init::Nonlinearity::relu);
  CHECK(is_normal(x, std::sqrt(2.0 / 50.0)));
}

TEST_CASE("init: the seed decides") {
  Tensor a = empty({10});
  Tensor b = empty({10});
  manual_seed(3);
  init::normal_(a);
  manual_seed(3);
  init::normal_(b);
  CHECK(a.equal(b));
  init::normal_(b);
  CHECK(!a.equal(b));
}

TEST_CASE("init: empty tensors and too few dims") {
  Tensor none = empty({0, 0});
  init::kaiming_uniform_(none);
  init::kaiming_normal_(none);
  Tensor vector = empty({3});
  CHECK_THROWS_AS(init::xavier_uniform_(vector), ShapeError);
  CHECK_THROWS_AS(init::kaiming_normal_(vector), ShapeError);
}
