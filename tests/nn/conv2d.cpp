#include "kiln/nn/conv2d.h"

#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/tensor/creation.h"
#include "tests/support/near.h"
#include "tests/support/throws.h"

using namespace kiln;
using kiln::nn::Conv2d;
using kiln::test::inputs;
using kiln::test::message_of;
using kiln::test::near;
using kiln::test::weights;

TEST_CASE("Conv2d: stride, padding and groups, as PyTorch gives them") {
  Conv2d layer(2, 4, 3, {.stride = 2, .padding = 1, .groups = 2}, {.dtype = f64});
  layer.load_state_dict(
      {{"weight", weights({4, 1, 3, 3})}, {"bias", tensor({0.1, 0.2, 0.3, 0.4}, {f64})}});
  const Tensor y = layer(inputs({1, 2, 4, 5}));
  CHECK(y.shape() == Shape{1, 4, 2, 3});
  CHECK(near(y, {0.225,  0.675,  -0.875, 1.25,   -0.125, 0.55,  -0.275, -1.325,
                 -0.175, -1.025, 0.025,  -0.125, -0.225, 0.95,  -0.15,  -0.05,
                 0.375,  0.4,    1.15,   1.275,  -1.025, 0.275, -0.95,  -1.525}));
}

TEST_CASE("Conv2d: an oblong kernel with dilation, no bias, no batch dim") {
  Conv2d layer(1, 2, {2, 3}, {.dilation = {2, 1}, .bias = false}, {.dtype = f64});
  layer.load_state_dict({{"weight", weights({2, 1, 2, 3})}});
  const std::vector<double> expected = {-0.5, 0.875, 0.45, -2.075, -2.0, 0.55, 0.725, -0.625};
  CHECK(near(layer(inputs({1, 1, 4, 4})), expected));
  const Tensor y = layer(inputs({1, 4, 4}));
  CHECK(y.shape() == Shape{2, 2, 2});
  CHECK(near(y, expected));
}

TEST_CASE("Conv2d: parameters, names and text") {
  manual_seed(0);
  Conv2d layer{4, 64, 5, {.padding = 2, .groups = 2}};
  CHECK(layer.state_dict().keys() == std::vector<std::string>{"weight", "bias"});
  CHECK(layer.weight->shape() == Shape{64, 2, 5, 5});
  CHECK(layer.bias->shape() == Shape{64});
  const double bound = 1.0 / std::sqrt(50.0);  // fan_in 2 * 25
  CHECK(layer.weight->abs().max().item() <= bound);
  CHECK(layer.weight->abs().max().item() > 0.99 * bound);
  CHECK(layer.bias->abs().max().item() <= bound);
  CHECK(to_string(Conv2d{1, 32, 3, {.padding = 1}}) ==
        "Conv2d(1, 32, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))");
  CHECK(to_string(
            Conv2d{4, 8, {2, 3}, {.stride = {2, 1}, .dilation = 2, .groups = 2, .bias = false}}) ==
        "Conv2d(4, 8, kernel_size=(2, 3), stride=(2, 1), dilation=(2, 2), groups=2, bias=False)");
}

TEST_CASE("Conv2d: errors") {
  CHECK(message_of<ValueError>([] { Conv2d(3, 4, 3, {.groups = 2}); }) ==
        "Conv2d: groups must divide in_channels and out_channels; got groups 2, in_channels 3, "
        "out_channels 4");
  CHECK_THROWS_AS(Conv2d(0, 4, 3), ValueError);
  CHECK_THROWS_AS(Conv2d(1, 4, 0), ValueError);
  CHECK_THROWS_AS(Conv2d(1, 4, 3, {.stride = 0}), ValueError);
  CHECK_THROWS_AS(Conv2d(1, 4, 3, {.padding = -1}), ValueError);
  CHECK_THROWS_AS(Conv2d(2, 4, 3)(zeros({1, 3, 8, 8})), ShapeError);
}
