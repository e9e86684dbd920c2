// Module::to.
#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/optim/optim.h"
#include "tests/nn/models.h"
#include "tests/support/near.h"

using namespace kiln;
using kiln::nn::Linear;
using kiln::nn::Module;
using kiln::nn::Param;
using kiln::test::near;
using kiln::test::Net;

namespace {

struct CastTied : Module {
  Linear a{2, 2, false};
  Linear b{2, 2, false};
  KILN_MODULE(CastTied, a, b)
};

}  // namespace

TEST_CASE("to: casts floating point parts only") {
  Net net;
  net.conv.materialize();
  net.conv.bias.set_require_grad(false);
  CHECK(&net.to(f64) == &net);
  for (const Tensor& param : net.parameters()) CHECK(param.dtype() == f64);
  CHECK(net.steps->dtype() == i64);
  CHECK(net.scratch->dtype() == f64);
  CHECK(net.conv.weight->requires_grad());
  CHECK(!net.conv.bias->requires_grad());
  CHECK(net.conv.weight->is_leaf());
  CHECK(net(ones({1, 1, 3, 3}, {f64})).dtype() == f64);
  CHECK_THROWS_AS(net.to(i64), TypeError);
}

TEST_CASE("to: a lazy parameter stays lazy and gets the same numbers") {
  manual_seed(4);
  Linear eager(3, 2);
  eager.materialize().to(f64);
  manual_seed(4);
  Linear lazy(3, 2);
  lazy.to(f64);
  CHECK(!lazy.weight.is_initialized());
  CHECK(lazy.weight.lazy_dtype() == f64);
  CHECK(lazy.weight->equal(*eager.weight));
  CHECK(lazy.weight->requires_grad());
  CHECK(lazy.weight->is_leaf());
}

TEST_CASE("to: gradients go along, ties stay") {
  Linear layer(1, 1, false);
  layer(ones({1, 1})).sum().backward_accumulate();
  REQUIRE(layer.weight->grad().defined());
  layer.to(f64);
  CHECK(layer.weight->grad().dtype() == f64);
  CHECK(near(layer.weight->grad(), {1.0}));

  CastTied tied;
  tied.b.weight = Param<Tensor>::initialized(nn::ParamId(), *tied.a.weight);
  tied.to(f64);
  CHECK(tied.a.weight->dtype() == f64);
  CHECK(tied.b.weight->is_same(*tied.a.weight));
}

TEST_CASE("to: devices") {
  Net net;
  net.conv.materialize();
  const Tensor before = net.conv.weight->detach().clone();
  net.to(Device(kReference));
  CHECK(net.conv.weight->device() == Device(kReference));
  CHECK(net.block.fc.weight.lazy_device() == Device(kReference));
  CHECK(!net.block.fc.weight.is_initialized());
  CHECK(net.block.fc.weight->device() == Device(kReference));
  CHECK(net.steps->device() == Device(kReference));
  CHECK(net.conv.weight->requires_grad());
  net.to(Device(kCpu), f64);
  CHECK(net.steps->device() == Device());
  CHECK(net.steps->dtype() == i64);
  CHECK(near(*net.conv.weight, before.to_data().to_doubles()));
}

TEST_CASE("to: like a tensor") {
  Net net;
  CHECK(&net.to(zeros({1}, {.dtype = f64, .device = Device(kReference)})) == &net);
  CHECK(net.conv.weight->dtype() == f64);
  CHECK(net.conv.weight->device() == Device(kReference));
  CHECK(net.steps->dtype() == i64);
  net.to(zeros({1}, {i64}));  // only the device
  CHECK(net.conv.weight->dtype() == f64);
  CHECK(net.conv.weight->device() == Device());
}

TEST_CASE("to: non_blocking is accepted") {
  Net net;
  net.to(f16, true).to(Device(), true).to(Device(), f64, true).to(ones({1}), true);
  CHECK(net.conv.weight->dtype() == f32);
}

TEST_CASE("to: memory format, of what has 4 dims") {
  manual_seed(3);
  nn::Conv2d conv(3, 4, 2);
  conv.materialize();
  const Tensor before = conv.weight->detach().clone();
  const Tensor bias = *conv.bias;
  const Tensor held = *conv.weight;
  conv(ones({1, 3, 2, 2})).sum().backward_accumulate();
  conv.to(MemoryFormat::channels_last);
  CHECK(conv.weight->shape() == Shape{4, 3, 2, 2});
  CHECK(conv.weight->stride() == Strides{12, 1, 6, 3});
  CHECK(conv.weight->equal(before));
  CHECK(conv.weight->requires_grad());
  CHECK(conv.weight->grad().stride() == Strides{12, 1, 6, 3});
  CHECK(conv.bias->is_same(bias));
  CHECK(conv.weight->is_same(held));
  const Tensor there = *conv.weight;
  conv.to(MemoryFormat::channels_last);
  CHECK(conv.weight->is_same(there));
  CHECK(conv(ones({1, 3, 2, 2})).shape() == Shape{1, 4, 1, 1});
  conv.to(MemoryFormat::contiguous_format);
  CHECK(conv.weight->stride() == Strides{12, 4, 2, 1});
  CHECK(conv.weight->equal(before));
  // A lazy weight is made so.
  manual_seed(3);
  nn::Conv2d lazy(3, 4, 2);
  lazy.to(MemoryFormat::channels_last);
  CHECK(!lazy.weight.is_initialized());
  CHECK(lazy.weight->stride() == Strides{12, 1, 6, 3});
  CHECK(lazy.weight->equal(before));
  CHECK(lazy.weight->requires_grad());
}

TEST_CASE("to_empty: the device without the values") {
  Net net;
  net.materialize();
  net.to_empty(Device(kReference), false);
  CHECK(net.scale->device() == Device(kReference));
  CHECK(net.scale->shape() == Shape{3});
  CHECK(net.scale->requires_grad());
  CHECK(net.steps->device() == Device(kReference));
  CHECK(net.conv.weight->device() == Device());
  CHECK(&net.to_empty(Device(kReference)) == &net);
  CHECK(net.conv.weight->device() == Device(kReference));
  CHECK(net.steps->dtype() == i64);
}

TEST_CASE("type: casts integers too, also by name") {
  Net net;
  net.type(f64);
  CHECK(net.steps->dtype() == f64);
  CHECK(net.conv.weight->dtype() == f64);
  net.type("torch.int64");
  CHECK(net.steps->dtype() == i64);
  CHECK(net.conv.weight->dtype() == i64);
  CHECK(!net.conv.weight->requires_grad());
  net.type("float32");
  CHECK(net.steps->dtype() == f32);
  CHECK_THROWS_AS(net.type("float33"), DTypeError);
  net.type("torch.DoubleTensor");
  CHECK(net.steps->dtype() == f64);
  net.type("LongTensor");
  CHECK(net.conv.weight->dtype() == i64);
  CHECK_THROWS_AS(net.type("torch.cuda.FloatTensor"), DTypeError);
}

TEST_CASE("half, bfloat16, float_, double_, cpu") {
  Net net;
  CHECK(&net.half() == &net);
  CHECK(net.conv.weight->dtype() == f16);
  net.bfloat16();
  CHECK(net.conv.weight->dtype() == bf16);
  net.float_();
  CHECK(net.conv.weight->dtype() == f32);
  net.double_();
  CHECK(net.conv.weight->dtype() == f64);
  CHECK(net.steps->dtype() == i64);
  net.to(Device(kReference)).cpu();
  CHECK(net.conv.weight->device() == Device());
}

TEST_CASE("cuda: a clear error without such a backend") {
  Linear layer(1, 1);
  CHECK_THROWS_AS(layer.cuda(), DeviceError);
  CHECK_THROWS_AS(layer.cuda(1), DeviceError);
  CHECK(!layer.weight.is_initialized());
}

TEST_CASE("to: an optimizer that was made before trains the parameters") {
  // Against what a model that was cast first does; x, target and rates are those of both.
  const Tensor x = tensor({1.0, -2.0}).reshape({1, 2});
  for (const DType dtype : {f64, bf16, f16}) {
    manual_seed(5);
    Linear early(2, 1);
    optim::SGD before(early.parameters(), {.lr = 0.5});
    early.to(dtype);
    manual_seed(5);
    Linear late(2, 1);
    late.to(dtype);
    optim::SGD after(late.parameters(), {.lr = 0.5});
    const Tensor start = early.weight->detach().clone();
    for (int i = 0; i < 2; ++i) {
      before.step(early(x.to(dtype)).square().sum().backward());
      after.step(late(x.to(dtype)).square().sum().backward());
    }
    CHECK(!early.weight->equal(start));
    CHECK(early.weight->equal(*late.weight));
    CHECK(early.bias->equal(*late.bias));
  }
}

TEST_CASE("casts: parameters stay the tensors that they are") {
  Net net;
  const std::vector<Tensor> before = net.parameters();
  const auto same = [&] {
    const std::vector<Tensor> now = net.parameters();
    for (size_t i = 0; i < now.size(); ++i) {
      if (!now[i].is_same(before[i])) return false;
    }
    return now.size() == before.size();
  };
  net(ones({1, 1, 3, 3})).sum().backward_accumulate();
  REQUIRE(net.scale->grad().defined());
  net.half();
  CHECK(same());
  CHECK(before[0].dtype() == f16);
  CHECK(before[0].grad().dtype() == f16);
  net.double_();
  CHECK(same());
  net.bfloat16();
  CHECK(same());
  net.float_();
  CHECK(same());
  net.type(f64);
  CHECK(same());
  CHECK(before[0].requires_grad());
  net.to(Device(kReference), f32);
  CHECK(same());
  CHECK(before[0].device() == Device(kReference));
  CHECK(before[0].grad().device() == Device(kReference));
  net.cpu();
  CHECK(same());
  net.to(ones({1}, {f64}));
  CHECK(same());
  net.to_empty(Device(kReference));
  CHECK(same());
  net.type(i64);
  CHECK(same());
  CHECK(!before[0].requires_grad());
}

TEST_CASE("to: after to_device the parameters are leaves again") {
  Linear layer(2, 2);
  layer.materialize();
  layer.to_device(Device(kReference));
  CHECK(!layer.weight->is_leaf());
  layer.to(f64);
  CHECK(layer.weight->is_leaf());
  CHECK(layer.weight->requires_grad());
}
