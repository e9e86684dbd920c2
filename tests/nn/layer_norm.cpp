#include "kiln/nn/layer_norm.h"

#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/tensor/creation.h"
#include "tests/support/near.h"

using namespace kiln;
using kiln::nn::LayerNorm;
using kiln::test::inputs;
using kiln::test::near;

TEST_CASE("LayerNorm: values, as PyTorch gives them") {
  LayerNorm layer(3, {}, {.dtype = f64});
  layer.load_state_dict(
      {{"weight", tensor({1.0, 2.0, -1.0}, {f64})}, {"bias", tensor({0.0, 0.5, 1.0}, {f64})}});
  CHECK(near(layer(inputs({2, 3})), {-1.224739, 0.5, -0.224739, -1.224739, 0.5, -0.224739}));
}

TEST_CASE("LayerNorm: names and text") {
  LayerNorm layer({2, 3}, {.bias = false});
  CHECK(layer.state_dict().keys() == std::vector<std::string>{"weight"});
  CHECK(layer.weight->shape() == Shape{2, 3});
  CHECK(to_string(layer) == "LayerNorm((2, 3), eps=1e-05, elementwise_affine=True, bias=False)");
  CHECK(to_string(LayerNorm(5)) ==
        "LayerNorm((5,), eps=1e-05, elementwise_affine=True, bias=True)");
  LayerNorm plain(4, {.elementwise_affine = false});
  CHECK(plain.state_dict().empty());
  CHECK(to_string(plain) == "LayerNorm((4,), eps=1e-05, elementwise_affine=False, bias=False)");
  CHECK(plain(zeros({2, 4})).shape() == Shape{2, 4});
}

TEST_CASE("LayerNorm: errors") {
  CHECK_THROWS_AS(LayerNorm(Shape{}), ValueError);
  CHECK_THROWS_AS(LayerNorm(4)(zeros({2, 3})), ShapeError);
}
