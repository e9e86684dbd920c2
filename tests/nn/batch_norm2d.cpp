#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/nn/batch_norm.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "tests/support/near.h"
#include "tests/support/throws.h"

using namespace kiln;
using kiln::nn::BatchNorm2d;
using kiln::test::inputs;
using kiln::test::near;

// Expected values: PyTorch's nn.BatchNorm2d on the same input.

TEST_CASE("BatchNorm2d: training moves the running statistics, eval uses them") {
  BatchNorm2d layer(2, {}, {.dtype = f64});
  layer.weight = nn::Param<Tensor>::from_tensor(tensor({2.0, 0.5}, {f64}));
  layer.bias = nn::Param<Tensor>::from_tensor(tensor({0.1, -0.2}, {f64}));
  const Tensor x = inputs({2, 2, 1, 3});
  CHECK(near(layer(x), {-2.5016405, 0.1897117, 2.881064, -0.8504101, -0.1775721, 0.495266,
                        -0.3485587, 2.3427935, -1.96337, -0.3121397, 0.3606984, -0.7158425}));
  CHECK(near(*layer.running_mean, {-0.0291667, 0.0208333}, 2e-6));
  CHECK(near(*layer.running_var, {1.0035417, 1.0035417}));
  CHECK(layer.num_batches_tracked->item<int64_t>() == 1);
  layer(x * 2.0 + 1.0);
  CHECK(near(*layer.running_mean, {0.0154167, 0.1604167}, 3e-6));
  CHECK(near(*layer.running_var, {1.3173542, 1.3173542}));
  CHECK(layer.num_batches_tracked->item<int64_t>() == 2);
  layer.eval();
  CHECK(near(layer(x), {-2.5406396, -0.3624931, 1.8156534, -0.7055115, -0.1609749, 0.3835617,
                        -0.7981224, 1.3800241, -2.1050103, -0.2698822, 0.2746544, -0.5966042}));
  CHECK(layer.num_batches_tracked->item<int64_t>() == 2);
  CHECK(!layer.running_mean->requires_grad());
}

TEST_CASE("BatchNorm2d: without momentum, the average over all batches") {
  BatchNorm2d layer(2, {.momentum = std::nullopt}, {.dtype = f64});
  const Tensor x = inputs({2, 2, 1, 3});
  layer(x);
  layer(x * 2.0 + 1.0);
  CHECK(near(*layer.running_mean, {0.0625, 0.8125}));
  CHECK(near(*layer.running_var, {2.5885417, 2.5885417}));
}

TEST_CASE("BatchNorm2d: without running statistics, eval normalizes by the batch too") {
  BatchNorm2d layer(2, {.affine = false, .track_running_stats = false}, {.dtype = f64});
  CHECK(layer.state_dict().empty());
  CHECK(layer.num_params() == 0);
  layer.eval();
  CHECK(near(layer(inputs({2, 2, 1, 3})),
             {-1.3008202, 0.0448559, 1.390532, -1.3008202, 0.0448559, 1.390532, -0.2242794,
              1.1213968, -1.031685, -0.2242794, 1.1213968, -1.031685}));
}

TEST_CASE("BatchNorm2d: names, resetting and text") {
  BatchNorm2d layer(4);
  CHECK(layer.state_dict().keys() == std::vector<std::string>{"weight", "bias", "running_mean",
                                                              "running_var",
                                                              "num_batches_tracked"});
  CHECK(layer.parameters().size() == 2);
  CHECK(layer.buffers().size() == 3);
  CHECK(layer.num_batches_tracked->dtype() == i64);
  CHECK(layer.num_batches_tracked->shape() == Shape{});
  layer(randn({2, 4, 3, 3}));
  layer.reset_parameters();
  CHECK(near(*layer.running_mean, {0, 0, 0, 0}));
  CHECK(near(*layer.running_var, {1, 1, 1, 1}));
  CHECK(layer.num_batches_tracked->item<int64_t>() == 0);
  CHECK(near(*layer.weight, {1, 1, 1, 1}));
  CHECK(near(*layer.bias, {0, 0, 0, 0}));
  CHECK(to_string(layer) ==
        "BatchNorm2d(4, eps=1e-05, momentum=0.1, affine=True, bias=True, "
        "track_running_stats=True)");
  CHECK(to_string(BatchNorm2d(4, {.eps = 1e-3,
                                  .momentum = std::nullopt,
                                  .affine = false,
                                  .track_running_stats = false})) ==
        "BatchNorm2d(4, eps=0.001, momentum=None, affine=False, bias=False, "
        "track_running_stats=False)");
}

TEST_CASE("BatchNorm2d: copies have running statistics of their own") {
  BatchNorm2d layer(2);
  BatchNorm2d copy = layer;
  layer(ones({1, 2, 3, 3}));
  CHECK(copy.num_batches_tracked->item<int64_t>() == 0);
  CHECK(near(*copy.running_mean, {0, 0}));
  CHECK(near(*layer.running_mean, {0.1, 0.1}));
}

TEST_CASE("BatchNorm2d: the input must have 4 dims") {
  CHECK_THROWS_AS(BatchNorm2d(2)(zeros({3, 2})), ShapeError);
  CHECK_THROWS_AS(BatchNorm2d(2)(zeros({3, 3, 2, 2})), ShapeError);
}

TEST_CASE("BatchNorm: another number of channels is named") {
  CHECK(test::message_of<ShapeError>([] {
          nn::BatchNorm2d(3)(ones({2, 4, 5, 5}));
        }) ==
        "BatchNorm2d: the input has another number of channels; got 4 in an input of shape [2, 4, "
        "5, 5]; expected num_features 3");
  CHECK_THROWS_AS(nn::BatchNorm1d(3, {.affine = false})(ones({2, 4})), ShapeError);
}
