#include "kiln/nn/fusion.h"

#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/random/random_ops.h"

using namespace kiln;
using namespace kiln::nn;

namespace {

// Statistics and parameters that differ from channel to channel.
template <class Norm = BatchNorm2d>
Norm seasoned(int64_t channels, const BatchNorm2dOptions& options, int spatial_dims = 2) {
  Norm bn(channels, options, {.dtype = f64});
  Shape shape = Shape::filled(2 + spatial_dims, 5);
  shape[0] = 4;
  shape[1] = channels;
  for (int i = 0; i < 3; ++i) bn(randn(shape, {f64}) * 2.0 + 0.5);
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

namespace {

template <class Conv, class Norm>
void check_folded(Conv conv, int spatial_dims) {
  conv.eval();
  const auto bn = seasoned<Norm>(6, {.eps = 1e-3}, spatial_dims);
  Shape shape = Shape::filled(2 + spatial_dims, 7);
  shape[0] = 2;
  shape[1] = 4;
  const Tensor x = randn(shape, {f64});
  CHECK(fuse_conv_bn_eval(conv, bn)(x).allclose(bn(conv(x)), 1e-12, 1e-12));
}

}  // namespace

TEST_CASE("fuse_conv_bn_eval: other dims, and transposed with groups") {
  const ParamOptions in_f64{.dtype = f64};
  check_folded<Conv1d, BatchNorm1d>(Conv1d(4, 6, 3, {.padding = 1, .groups = 2}, in_f64), 1);
  check_folded<Conv3d, BatchNorm3d>(Conv3d(4, 6, 2, {.bias = false}, in_f64), 3);
  check_folded<ConvTranspose1d, BatchNorm1d>(ConvTranspose1d(4, 6, 3, {.stride = 2}, in_f64), 1);
  check_folded<ConvTranspose2d, BatchNorm2d>(
      ConvTranspose2d(4, 6, 3, {.stride = 2, .groups = 2}, in_f64), 2);
  check_folded<ConvTranspose3d, BatchNorm3d>(ConvTranspose3d(4, 6, 2, {.bias = false}, in_f64), 3);
}

TEST_CASE("fuse_linear_bn_eval: computes what both layers do, or refuses") {
  const Tensor x = randn({5, 4}, {f64});
  for (const bool bias : {true, false}) {
    Linear linear(4, 6, bias, {.dtype = f64});
    linear.eval();
    const auto bn = seasoned<BatchNorm1d>(6, {}, 0);
    CHECK(fuse_linear_bn_eval(linear, bn)(x).allclose(bn(linear(x)), 1e-12, 1e-12));
  }
  Linear linear(4, 5);
  BatchNorm1d bn(6);
  CHECK_THROWS_WITH_AS(fuse_linear_bn_eval(linear, bn), doctest::Contains("training mode"),
                       ValueError);
  linear.eval();
  bn.eval();
  CHECK_THROWS_WITH_AS(fuse_linear_bn_eval(linear, bn), doctest::Contains("5 channels"),
                       ValueError);
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
