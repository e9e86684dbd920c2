// Module::to.
#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "tests/nn/models.h"
#include "tests/support/near.h"

using namespace kiln;
using kiln::nn::Linear;
using kiln::nn::Module;
using kiln::nn::Param;
using kiln::test::near;
using kiln::test::Net;

namespace {

struct Tied : Module {
  Linear a{2, 2, false};
  Linear b{2, 2, false};
  KILN_MODULE(Tied, a, b)
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

  Tied tied;
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
