// Tensors of int8 with one scale.
#include <cmath>
#include <limits>

#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::test;

TEST_CASE("quantize and dequantize, for every float dtype and layout") {
  on_devices(kFloatTypes, [](Device device, DType dtype) {
    const Tensor flat = tensor({{12.7, -6.0, 0.04}, {0.0, 3.24, -12.7}}, {f64, device}).to(dtype);
    for (const Tensor& x : {flat, scattered(flat)}) {
      const Tensor q = quantize(x, {.scale = 0.1});
      CHECK(q.dtype() == DType::q8);
      CHECK(q.shape() == Shape{2, 3});
      CHECK(q.device() == device);
      CHECK(q.to_data().to_doubles() == Doubles{127, -60, 0, 0, 32, -127});
      CHECK(mismatch(dequantize(q, f64), {2, 3}, {12.7, -6, 0, 0, 3.2, -12.7}) == "");
      CHECK(dequantize(q).dtype() == f32);
      CHECK(dequantize(q, dtype).dtype() == dtype);
      // The scale that the tensor itself asks for: its largest magnitude becomes 127.
      const Tensor own = quantize(x);
      CHECK(mismatch(dequantize(own, f64), {2, 3}, {12.7, -6, 0, 0, 3.2, -12.7},
                     dtype == bf16 ? 2e-2 : 3e-3) == "");
    }
    CHECK(quantize(zeros({0, 2}, {dtype, device})).shape() == Shape{0, 2});
    CHECK(mismatch(dequantize(quantize(zeros({2}, {dtype, device}))), {2}, {0, 0}) == "");
    CHECK(mismatch(dequantize(quantize(tensor(-2.0, {dtype, device}))), {}, {-2}) == "");
  });
}

TEST_CASE("rounding and saturation") {
  const double inf = std::numeric_limits<double>::infinity();
  on_devices([&](Device device) {
    const Tensor x =
        tensor({0.5, 1.5, 2.5, -0.5, -1.5, 126.6, 300.0, -300.0, inf, -inf}, {f32, device});
    CHECK(quantize(x, {.scale = 1.0}).to_data().to_doubles() ==
          Doubles{0, 2, 2, 0, -2, 127, 127, -127, 127, -127});
    CHECK(quantize(tensor({std::nan(""), 1.0}, {f32, device}), {.scale = 1.0})
              .to_data()
              .to_doubles() == Doubles{0, 1});
  });
}

TEST_CASE("what quantized tensors do besides") {
  on_devices([](Device device) {
    const Tensor q = quantize(tensor({{1.0, -2.0}, {0.5, 2.0}}, {.device = device}));
    CHECK(mismatch(dequantize(q.reshape({4}), f64), {4}, {127.0 / 127, -2, 0.5, 2}, 0.01) == "");
    CHECK(q.reshape({-1}).dtype() == DType::q8);
    CHECK(dequantize(q.clone()).equal(dequantize(q)));
    CHECK(q.contiguous().is_same(q));
    const Device there = device.type == kCpu ? kReference : kCpu;
    CHECK(q.to(there).device() == there);
    CHECK(dequantize(q.to(there)).to(device).equal(dequantize(q)));
    CHECK(to_string(quantize(tensor({1.0, -2.0}), {.scale = 0.5})) ==
          "tensor([ 1., -2.], dtype=kiln.qint8)");
  });
}

TEST_CASE("quantized tensors have no arithmetic") {
  on_devices([](Device device) {
    Tensor q = quantize(ones({2, 2}, {.device = device}));
    const Tensor x = ones({2, 2}, {.device = device});
    const Tensor mask = x > 0;
    CHECK(error_lacks<DTypeError>([&] { q + q; }, {"add", "qint8", "dequantize"}) == "");
    CHECK_THROWS_AS(q + x, DTypeError);
    CHECK_THROWS_AS(x * q, DTypeError);
    CHECK_THROWS_AS(q * 2, DTypeError);
    CHECK_THROWS_AS(q / q, DTypeError);
    CHECK_THROWS_AS(q.pow(2), DTypeError);
    CHECK_THROWS_AS(q % 2, DTypeError);
    CHECK_THROWS_AS(q.clamp(0, 1), DTypeError);
    CHECK_THROWS_AS(q == q, DTypeError);
    CHECK_THROWS_AS(q > 0, DTypeError);
    CHECK_THROWS_AS(q & q, DTypeError);
    CHECK_THROWS_AS(q.logical_not(), DTypeError);
    CHECK_THROWS_AS(q.exp(), DTypeError);
    CHECK_THROWS_AS(q.neg(), DTypeError);
    CHECK_THROWS_AS(q.relu(), DTypeError);
    CHECK_THROWS_AS(q.sum(), DTypeError);
    CHECK_THROWS_AS(q.sum(0), DTypeError);
    CHECK_THROWS_AS(q.prod(), DTypeError);
    CHECK_THROWS_AS(q.mean(), DTypeError);
    CHECK_THROWS_AS(q.max(), DTypeError);
    CHECK_THROWS_AS(q.max(0), DTypeError);
    CHECK_THROWS_AS(q.argmin(), DTypeError);
    CHECK_THROWS_AS(q.argmin(1), DTypeError);
    CHECK_THROWS_AS(q.any(), DTypeError);
    CHECK_THROWS_AS(q.cumsum(0), DTypeError);
    CHECK_THROWS_AS(q.softmax(0), DTypeError);
    CHECK_THROWS_AS(q.matmul(q), DTypeError);
    CHECK_THROWS_AS(q.t(), DTypeError);
    CHECK_THROWS_AS(q.expand({2, 2, 2}), DTypeError);
    CHECK_THROWS_AS(q[0], DTypeError);
    CHECK_THROWS_AS(q.flip({0}), DTypeError);
    CHECK_THROWS_AS(cat({q, q}), DTypeError);
    CHECK_THROWS_AS(where(mask, q, q), DTypeError);
    CHECK_THROWS_AS(q.masked_fill(mask, 0), DTypeError);
    CHECK_THROWS_AS(q.index_select(0, tensor({0}, {.device = device})), DTypeError);
    CHECK_THROWS_AS(q.gather(0, tensor({{0}}, {.device = device})), DTypeError);
    CHECK_THROWS_AS(q.add_(1), DTypeError);
    CHECK_THROWS_AS(q.add_(q), DTypeError);
    CHECK_THROWS_AS(q.copy_(x), DTypeError);
    CHECK_THROWS_AS(Tensor(x).copy_(q), DTypeError);
    CHECK_THROWS_AS(q.fill_(0), DTypeError);
    CHECK_THROWS_AS(q.relu_(), DTypeError);
    CHECK_THROWS_AS(q.uniform_(), DTypeError);
    CHECK_THROWS_AS(q.to(f32), DTypeError);
    CHECK_THROWS_AS(x.to(DType::q8), DTypeError);
    CHECK_THROWS_AS(q.requires_grad_(), DTypeError);
    CHECK_THROWS_AS(zeros({2}, {DType::q8, device}), DTypeError);
    CHECK_THROWS_AS(empty({2}, {DType::q8, device}), DTypeError);
  });
  CHECK_THROWS_AS(quantize(tensor({1, 2})), DTypeError);
  CHECK_THROWS_AS(quantize(ones({2}), {.scale = -1.0}), ValueError);
  CHECK_THROWS_AS(quantize(ones({2}), {.scale = std::nan("")}), ValueError);
  CHECK_THROWS_AS(dequantize(ones({2})), DTypeError);
  CHECK_THROWS_AS(dequantize(quantize(ones({2})), i64), DTypeError);
}
