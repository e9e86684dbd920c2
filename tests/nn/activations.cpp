// The activations as modules; expected values: PyTorch's.
#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/nn/flatten.h"
#include "kiln/nn/gelu.h"
#include "kiln/nn/identity.h"
#include "kiln/nn/prelu.h"
#include "kiln/nn/relu.h"
#include "kiln/nn/sigmoid.h"
#include "kiln/nn/tanh.h"
#include "kiln/nn/threshold.h"
#include "kiln/tensor/creation.h"
#include "tests/support/near.h"

using namespace kiln;
using namespace kiln::nn;
using kiln::test::near;

namespace {

Tensor points() { return tensor({-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0}, {f64}); }

}  // namespace

TEST_CASE("GELU") {
  CHECK(near(GELU()(points()),
             {-0.0040497, -0.1586553, -0.1542688, 0.0, 0.3457312, 0.8413447, 2.9959503}, 1e-6,
             1e-7));
  CHECK(near(GELU("tanh")(points()),
             {-0.0036374, -0.158808, -0.154286, 0.0, 0.345714, 0.841192, 2.9963626}, 1e-6, 1e-7));
  CHECK(to_string(GELU()) == "GELU(approximate='none')");
  CHECK(to_string(GELU("tanh")) == "GELU(approximate='tanh')");
  CHECK_THROWS_AS(GELU("fast"), ValueError);
}

TEST_CASE("PReLU") {
  PReLU one(1, 0.1, {.dtype = f64});
  CHECK(near(one(points()), {-0.3, -0.1, -0.05, 0.0, 0.5, 1.0, 3.0}));
  PReLU two(2, 0.25, {.dtype = f64});
  CHECK(near(*two.weight, {0.25, 0.25}));
  two.load_state_dict({{"weight", tensor({0.5, -1.0}, {f64})}});
  CHECK(near(two(tensor({{{-1.0, 2.0}, {-3.0, 4.0}}}, {f64})), {-0.5, 2.0, 3.0, 4.0}));
  two.reset_parameters();
  CHECK(near(*two.weight, {0.25, 0.25}));
  CHECK(two.state_dict().keys() == std::vector<std::string>{"weight"});
  CHECK(to_string(PReLU(3)) == "PReLU(num_parameters=3)");
  CHECK_THROWS_AS(PReLU(0), ValueError);
  CHECK_THROWS_AS(two(zeros({2, 3}, {f64})), Error);
}

TEST_CASE("ReLU") {
  const Tensor x = points();
  CHECK(near(ReLU()(x), {0, 0, 0, 0, 0.5, 1, 3}));
  CHECK(near(x, {-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0}));
  CHECK(ReLU(true)(x).is_same(x));
  CHECK(near(x, {0, 0, 0, 0, 0.5, 1, 3}));
  CHECK(to_string(ReLU()) == "ReLU()");
  CHECK(to_string(ReLU(true)) == "ReLU(inplace=True)");
}

TEST_CASE("Sigmoid and Tanh") {
  CHECK(near(Sigmoid()(points()),
             {0.0474259, 0.2689414, 0.3775407, 0.5, 0.6224593, 0.7310586, 0.9525741}));
  CHECK(near(Tanh()(points()),
             {-0.9950548, -0.7615942, -0.4621172, 0.0, 0.4621172, 0.7615942, 0.9950548}));
  CHECK(to_string(Sigmoid()) == "Sigmoid()");
  CHECK(to_string(Tanh()) == "Tanh()");
}

TEST_CASE("Threshold") {
  CHECK(near(Threshold(0.5, 20)(points()), {20, 20, 20, 20, 20, 1, 3}));
  const Tensor x = points();
  CHECK(Threshold(0.5, 20, true)(x).is_same(x));
  CHECK(near(x, {20, 20, 20, 20, 20, 1, 3}));
  // Integers stay integers; the value is truncated.
  const Tensor y = Threshold(0, 0.5)(arange(-3, 3));
  CHECK(y.dtype() == i64);
  CHECK(near(y, {0, 0, 0, 0, 1, 2}));
  CHECK(Threshold(0.0, 1.0)(tensor({NAN})).isnan().all().item<bool>());
  CHECK(to_string(Threshold(0, 0.5)) == "Threshold(threshold=0, value=0.5)");
  CHECK(to_string(Threshold(0.1, 20.0, true)) ==
        "Threshold(threshold=0.1, value=20.0, inplace=True)");
}

TEST_CASE("Flatten and Identity") {
  CHECK(Flatten()(zeros({2, 3, 4, 5})).shape() == Shape{2, 60});
  CHECK(Flatten(0, 1)(zeros({2, 3, 4})).shape() == Shape{6, 4});
  CHECK(to_string(Flatten()) == "Flatten(start_dim=1, end_dim=-1)");
  const Tensor x = points();
  CHECK(Identity()(x).is_same(x));
  CHECK(to_string(Identity()) == "Identity()");
}
