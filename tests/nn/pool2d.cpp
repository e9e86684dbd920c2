// MaxPool2d and AvgPool2d; expected values: PyTorch's.
#include <doctest/doctest.h>

#include "kiln/nn/avg_pool2d.h"
#include "kiln/nn/max_pool2d.h"
#include "kiln/tensor/creation.h"
#include "tests/support/near.h"

using namespace kiln;
using kiln::nn::AvgPool2d;
using kiln::nn::MaxPool2d;
using kiln::test::inputs;
using kiln::test::near;

TEST_CASE("MaxPool2d") {
  CHECK(near(MaxPool2d(2)(inputs({1, 1, 4, 4})), {1.5, 1.0, 0.5, 1.25}));
  const Tensor y = MaxPool2d({2, 3}, {.stride = {{1, 2}}, .padding = 1})(inputs({1, 1, 3, 4}));
  CHECK(y.shape() == Shape{1, 1, 4, 2});
  CHECK(near(y, {-0.25, 1.0, 1.5, 1.5, 1.5, 1.5, 0.0, 1.25}));
  CHECK(MaxPool2d(2)(zeros({3, 5, 5})).shape() == Shape{3, 2, 2});
  CHECK(MaxPool2d(2, {.ceil_mode = true})(zeros({3, 5, 5})).shape() == Shape{3, 3, 3});
  CHECK(to_string(MaxPool2d(2)) ==
        "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)");
  CHECK(
      to_string(MaxPool2d({2, 3}, {.stride = 1, .padding = 1, .dilation = 2, .ceil_mode = true})) ==
      "MaxPool2d(kernel_size=(2, 3), stride=1, padding=1, dilation=2, ceil_mode=True)");
}

TEST_CASE("AvgPool2d") {
  CHECK(near(AvgPool2d(2)(inputs({1, 1, 4, 4})), {0.0, 0.0625, -0.5625, 0.3125}));
  CHECK(near(
      AvgPool2d(3, {.stride = 2, .padding = 1, .count_include_pad = false})(inputs({1, 1, 4, 4})),
      {0.0, 0.25, -0.0833333, 0.1666667}));
  CHECK(to_string(AvgPool2d(3, {.stride = 2})) == "AvgPool2d(kernel_size=3, stride=2, padding=0)");
  CHECK(AvgPool2d(2).state_dict().empty());
}
