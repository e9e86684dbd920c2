// The toy backend conforms, is a device, and trains a network.
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include "kiln/backend/conformance/conformance.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/nn/convolution.h"
#include "kiln/tensor/nn/pooling.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/tensor.h"
#include "tests/backend/toy_backend.h"

using namespace kiln;
using namespace kiln::test::toy;

TEST_CASE("a third backend conforms") {
  const ConformanceOptions options{.float_dtypes = {f64, f32}, .int_dtypes = {i64, u8}};
  for (const auto& failure : run_conformance<Toy>(kToy, options)) FAIL_CHECK(to_string(failure));
}

TEST_CASE("a third backend that tells where its views lie conforms") {
  for (const char* op :
       {"from_data", "reshape", "permute", "slice", "expand", "contiguous", "as_strided"}) {
    const ConformanceOptions options{.float_dtypes = {f64}, .int_dtypes = {i64}, .only = op};
    for (const auto& failure : run_conformance<StridedToy>(kStridedToy, options)) {
      FAIL_CHECK(to_string(failure));
    }
  }
}

TEST_CASE("a third backend is a device") {
  CHECK(Device("toy") == Device(kToy));
  CHECK(to_string(Device(kToy, 1)) == "toy:1");
  CHECK(Dispatch::name(kToy) == "toy");
  CHECK_THROWS_AS(register_backend<Toy>("toy"), DeviceError);
}

TEST_CASE("a third backend works through Dispatch") {
  const ErasedTensor a = on(kToy, {1, 2, 3, 4}, {2, 2});
  const ErasedTensor b = on(kToy, {10, 20}, {2});
  const ErasedTensor sum = Dispatch::float_add(a, b);
  CHECK(sum->device() == Device(kToy));
  CHECK(sum->dtype() == f32);
  CHECK(Dispatch::float_into_data(sum).to_doubles() == std::vector<double>{11, 22, 13, 24});

  // A view shares memory, and writing it shows in the whole and counts as a write.
  const uint32_t version = Dispatch::version(a);
  Dispatch::float_fill(Dispatch::float_slice(a, 0, Range{1, 2, 1}), Scalar(7));
  CHECK(Dispatch::float_into_data(a).to_doubles() == std::vector<double>{1, 2, 7, 7});
  CHECK(Dispatch::version(a) == version + 1);

  // Kinds are types of their own; the composites come from the defaults.
  const ErasedTensor best = Dispatch::float_argmax(a, 1, false);
  CHECK(best->dtype() == i64);
  CHECK(Dispatch::int_into_data(best).to_doubles() == std::vector<double>{1, 0});
  const ErasedTensor soft = Dispatch::float_softmax(on(kToy, {0, 0, 0, 0}, {2, 2}), 1);
  CHECK(Dispatch::float_into_data(soft).to_doubles() == std::vector<double>(4, 0.5));
  const std::vector<ErasedTensor> parts = {b, b};
  const ErasedTensor joined = Dispatch::float_cat(std::span<const ErasedTensor>(parts), 0);
  CHECK(joined->shape() == Shape{4});
}

TEST_CASE("tensors travel between a third backend and Kiln's own") {
  const ErasedTensor a = on(kReference, {1, 2, 3}, {3});
  const ErasedTensor b = Dispatch::float_to_device(a, kToy);
  CHECK(b->device() == Device(kToy));
  const ErasedTensor c = Dispatch::float_to_device(Dispatch::float_square(b), kReference);
  CHECK(c->device() == Device(kReference));
  CHECK(Dispatch::float_into_data(c).to_doubles() == std::vector<double>{1, 4, 9});
}

TEST_CASE("optimizer steps reach a third backend's own memory") {
  std::vector<ErasedTensor> params = {on(kToy, {1, 2}, {2})};
  const std::vector<ErasedTensor> grads = {on(kToy, {1, -1}, {2})};
  Dispatch::float_optimizer_step(std::span<ErasedTensor>(params),
                                 std::span<const ErasedTensor>(grads), std::span<ErasedTensor>(),
                                 SgdStep{.lr = 0.5});
  CHECK(Dispatch::float_into_data(params[0]).to_doubles() == std::vector<double>{0.5, 2.5});
}

namespace {

// A small network's loss and gradients.
std::vector<std::vector<double>> train_step(Device device) {
  manual_seed(3);
  const TensorOptions plain{.dtype = f32, .device = device};
  const TensorOptions tracked{.dtype = f32, .device = device, .requires_grad = true};
  const Tensor x = randn({2, 1, 6, 6}, plain);
  const Tensor kernel = randn({3, 1, 3, 3}, tracked);
  const Tensor weight = randn({4, 12}, tracked);
  Tensor h = functional::conv2d(x, kernel);
  h = functional::batch_norm(h, {}, {}, {}, {}, true).relu();
  h = functional::max_pool2d(h, 2);
  h = functional::dropout(h.flatten(1), 0.25);
  const Tensor targets = tensor({1, 3}, {.dtype = i64, .device = device});
  const Tensor loss = functional::cross_entropy(functional::linear(h, weight), targets);
  CHECK(loss.device() == device);
  const Gradients grads = loss.backward();
  return {loss.to_vector<double>(), grads.get(kernel)->to_vector<double>(),
          grads.get(weight)->to_vector<double>()};
}

}  // namespace

TEST_CASE("a third backend trains a network as Kiln's own do") {
  const auto toy = train_step(kToy);
  const auto cpu = train_step(kCpu);
  for (size_t i = 0; i < toy.size(); ++i) {
    REQUIRE(toy[i].size() == cpu[i].size());
    for (size_t j = 0; j < toy[i].size(); ++j) {
      CHECK(std::abs(toy[i][j] - cpu[i][j]) <= 1e-4 * (1.0 + std::abs(cpu[i][j])));
    }
  }
}
