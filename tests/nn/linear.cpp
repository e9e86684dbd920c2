#include "kiln/nn/linear.h"

#include <cmath>

#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/tensor/creation.h"
#include "tests/support/near.h"

using namespace kiln;
using kiln::nn::Linear;
using kiln::test::inputs;
using kiln::test::near;
using kiln::test::weights;

TEST_CASE("Linear: values, as PyTorch gives them") {
  Linear layer(3, 2, true, {.dtype = f64});
  layer.load_state_dict({{"weight", weights({2, 3})}, {"bias", tensor({0.5, -0.25}, {f64})}});
  CHECK(near(layer(inputs({2, 3})), {1.0, -1.325, 0.75, -1.175}));
  CHECK(near(layer(inputs({3})), {1.0, -1.325}));
  CHECK(layer(zeros({4, 5, 3}, {f64})).shape() == Shape{4, 5, 2});
  CHECK(layer(zeros({0, 3}, {f64})).shape() == Shape{0, 2});
}

TEST_CASE("Linear: parameters, names and text") {
  manual_seed(0);
  Linear layer(100, 50);
  CHECK(!layer.weight.is_initialized());
  CHECK(to_string(layer) == "Linear(in_features=100, out_features=50, bias=True)");
  CHECK(layer.num_params() == 5050);
  CHECK(!layer.weight.is_initialized());
  CHECK(layer.state_dict().keys() == std::vector<std::string>{"weight", "bias"});
  CHECK(layer.weight->shape() == Shape{50, 100});
  CHECK(layer.bias->shape() == Shape{50});
  // Uniform within 1 / sqrt(100).
  CHECK(layer.weight->abs().max().item() <= 0.1);
  CHECK(layer.weight->abs().max().item() > 0.099);
  CHECK(layer.bias->abs().max().item() <= 0.1);
  CHECK(layer.bias->abs().max().item() > 0.09);

  const Tensor before = layer.weight->detach().clone();
  const Tensor handle = *layer.weight;
  layer.reset_parameters();
  CHECK(!layer.weight->equal(before));
  CHECK(layer.weight->is_same(handle));
}

TEST_CASE("Linear: without bias, and other options") {
  Linear layer(2, 3, false, {.dtype = f64, .requires_grad = false});
  CHECK(!layer.bias.defined());
  CHECK(layer.state_dict().keys() == std::vector<std::string>{"weight"});
  CHECK(to_string(layer) == "Linear(in_features=2, out_features=3, bias=False)");
  CHECK(layer.weight->dtype() == f64);
  CHECK(!layer.weight->requires_grad());
  CHECK(layer(ones({2}, {f64})).shape() == Shape{3});
  CHECK(Linear(0, 3)(zeros({2, 0})).shape() == Shape{2, 3});
}

TEST_CASE("Linear: errors") {
  CHECK_THROWS_AS(Linear(-1, 2), ValueError);
  CHECK_THROWS_AS(Linear(3, 2)(zeros({2, 4})), ShapeError);
}
