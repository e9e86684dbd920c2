// Tensors on different devices.
#include "kiln/tensor/nn/convolution.h"
#include "kiln/tensor/nn/embedding.h"
#include "kiln/tensor/nn/losses.h"
#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::test;

TEST_CASE("values travel unchanged, for every dtype") {
  for (const DType dtype : kAllTypes) {
    INFO("dtype ", to_string(dtype));
    const Tensor here = tensor({{0, 1, 1}, {1, 0, 1}}, {dtype});
    const Tensor there = here.to(Device("reference"));
    CHECK(there.device() == Device(kReference));
    CHECK(there.dtype() == dtype);
    CHECK(mismatch(there, {2, 3}, {0, 1, 1, 1, 0, 1}) == "");
    CHECK(mismatch(there.to(Device("cpu")), {2, 3}, {0, 1, 1, 1, 0, 1}) == "");
    CHECK(mismatch(here.t().to(kReference), {3, 2}, {0, 1, 1, 0, 1, 1}) == "");
    CHECK(mismatch(scattered(there).to(kCpu), {2, 3}, {0, 1, 1, 1, 0, 1}) == "");
    CHECK(here.to(Device("cpu")).is_same(here));
    CHECK(zeros({0, 2}, {dtype}).to(kReference).shape() == Shape{0, 2});
    CHECK(mismatch(here[0][1].to(kReference), {}, {1}) == "");
    Tensor copy = there.to(kCpu);
    copy.fill_(1);
    CHECK(mismatch(there, {2, 3}, {0, 1, 1, 1, 0, 1}) == "");  // no shared memory
    Tensor written = zeros({2, 3}, {dtype});
    written.copy_(there);
    CHECK(mismatch(written, {2, 3}, {0, 1, 1, 1, 0, 1}) == "");
    CHECK(there.to(kCpu, f64).dtype() == f64);
    CHECK(there.to(kCpu, f64).device() == Device(kCpu));
  }
}

TEST_CASE("the gradient travels back") {
  Tensor x = tensor({1.0, 2.0}).requires_grad_();
  const Tensor y = x.to(kReference).square().to(kCpu);
  const Tensor g = *x.grad(y.sum().backward());
  CHECK(g.device() == Device(kCpu));
  CHECK(mismatch(g, {2}, {2, 4}) == "");
  Tensor buffer = zeros({2});
  buffer.copy_(x.to(kReference));
  CHECK(mismatch(*x.grad(buffer.sum().backward()), {2}, {1, 1}) == "");
}

TEST_CASE("ops refuse tensors of two devices, and name both") {
  const Tensor a = ones({2, 2});
  const Tensor b = ones({2, 2}, {.device = kReference});
  const Tensor i = zeros({2, 2}, {i64});
  const Tensor mask = a > 0;
  CHECK(error_lacks<DeviceError>([&] { a + b; }, {"add", "cpu", "reference", "to(device)"}) == "");
  CHECK_THROWS_AS(b - a, DeviceError);
  CHECK_THROWS_AS(a.pow(b), DeviceError);
  CHECK_THROWS_AS(i.pow(i.to(kReference)), DeviceError);
  CHECK_THROWS_AS(a == b, DeviceError);
  CHECK_THROWS_AS(mask & (b > 0), DeviceError);
  CHECK_THROWS_AS(a.matmul(b), DeviceError);
  CHECK_THROWS_AS(cat({a, b}), DeviceError);
  CHECK_THROWS_AS(stack({a, b}), DeviceError);
  CHECK_THROWS_AS(where(mask, b, b), DeviceError);
  CHECK_THROWS_AS(where(mask, a, b), DeviceError);
  CHECK_THROWS_AS(b.masked_fill(mask, 0), DeviceError);
  CHECK_THROWS_AS(b.gather(0, i), DeviceError);
  CHECK_THROWS_AS(b.scatter(0, i, b), DeviceError);
  CHECK_THROWS_AS(b.scatter(0, i.to(kReference), a), DeviceError);
  CHECK_THROWS_AS(b.scatter_add(0, i, b), DeviceError);
  CHECK_THROWS_AS(b.index_select(0, i[0]), DeviceError);
  CHECK_THROWS_AS(b.index_add(0, i[0], b), DeviceError);
  CHECK_THROWS_AS(b.index_add(0, i[0].to(kReference), a), DeviceError);
  CHECK_THROWS_AS(functional::embedding(i, b), DeviceError);
  CHECK_THROWS_AS(functional::linear(a, b), DeviceError);
  CHECK_THROWS_AS(functional::linear(a, a, b[0]), DeviceError);
  CHECK_THROWS_AS(functional::layer_norm(a, {2}, b[0]), DeviceError);
  CHECK_THROWS_AS(functional::batch_norm(a, {}, {}, b[0], {}, true), DeviceError);
  CHECK_THROWS_AS(functional::prelu(a, b[0]), DeviceError);
  CHECK_THROWS_AS(functional::mse_loss(a, b), DeviceError);
  CHECK_THROWS_AS(
      functional::conv2d(ones({1, 1, 2, 2}), ones({1, 1, 1, 1}, {.device = kReference})),
      DeviceError);
  CHECK_THROWS_AS(Tensor(a).add_(b), DeviceError);
  CHECK_THROWS_AS(Tensor(a).masked_fill_(b > 0, 0), DeviceError);
  CHECK_THROWS_AS((void)a.equal(b), DeviceError);
  CHECK_THROWS_AS((void)a.allclose(b), DeviceError);
}

TEST_CASE("devices that are not there") {
  CHECK_THROWS_AS(Device("gpu"), DeviceError);
  CHECK_THROWS_AS(zeros({2}, {.device = Device(kMaxDeviceTypes - 1)}), DeviceError);
  CHECK_THROWS_AS(zeros({2}).to(Device(kMaxDeviceTypes - 1)), DeviceError);
  CHECK_THROWS_AS(zeros({2}).to(Device(200)), DeviceError);
  CHECK_THROWS_AS(rand({2}, {.device = Device(200)}), DeviceError);
}
