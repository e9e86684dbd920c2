#include "kiln/nn/fusion.h"

#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/random/random_ops.h"

using namespace kiln;
using namespace kiln::nn;

namespace {

// Statistics and parameters that differ from channel to channel.
BatchNorm2d seasoned(int64_t channels, const BatchNorm2dOptions& options) {
  BatchNorm2d bn(channels, options, {.dtype = f64});
  for (int i = 0; i < 3; ++i) bn(randn({4, channels, 5, 5}, {f64}) * 2.0 + 0.5);
  if (options.affine) {
    bn.weight = Param<Tensor>::from_tensor(randn({channels}, {f64}));
    bn.bias = Param<Tensor>::from_tensor(randn({channels}, {f64}));
  }
  bn.eval();
  return bn;
}

}  // namespace

TEST_CASE("fuse_conv_bn_eval: computes what both layers do") {
  const Tensor x = randn({2, 4, 9, 9}, {f64});
  for (const bool bias : {true, false}) {
    for (const bool affine : {true, false}) {
      Conv2d conv(4, 6, 3, {.stride = 2, .padding = 1, .groups = 2, .bias = bias}, {.dtype = f64});
      conv.eval();
      const BatchNorm2d bn = seasoned(6, {.eps = 1e-3, .affine = affine});
      const Conv2d fused = fuse_conv_bn_eval(conv, bn);
      CHECK(fused(x).allclose(bn(conv(x)), 1e-12, 1e-12));
      CHECK_FALSE(fused.is_training());
      CHECK(fused.bias.defined());
      CHECK(conv.bias.defined() == bias);
      CHECK(fused.weight->requires_grad());
    }
  }
}

TEST_CASE("fuse_conv_bn_eval: refuses what cannot be folded") {
  Conv2d conv(3, 4, 1);
  BatchNorm2d bn(4);
  CHECK_THROWS_WITH_AS(fuse_conv_bn_eval(conv, bn), doctest::Contains("training mode"), ValueError);
  conv.eval();
  CHECK_THROWS_WITH_AS(fuse_conv_bn_eval(conv, bn), doctest::Contains("training mode"), ValueError);
  BatchNorm2d batch(4, {.track_running_stats = false});
  batch.eval();
  CHECK_THROWS_WITH_AS(fuse_conv_bn_eval(conv, batch), doctest::Contains("running statistics"),
                       ValueError);
  BatchNorm2d other(5);
  other.eval();
  CHECK_THROWS_WITH_AS(fuse_conv_bn_eval(conv, other), doctest::Contains("got 5"), ValueError);
}
