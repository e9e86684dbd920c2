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
    CHECK_THROWS_AS(q.matmul(tensor({{1, 2}, {3, 4}}, {.device = device})), DTypeError);
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

TEST_CASE("channels and blocks: each has the scale of its own largest value") {
  on_devices(kFloatTypes, [](Device device, DType dtype) {
    const Tensor x =
        tensor({{127.0, -64.0, 2.0, 1.0, 1.0}, {0.0, 0.0, 0.0, 254.0, -127.0}}, {f64, device})
            .to(dtype);
    for (const Tensor& each : {x, scattered(x)}) {
      const Tensor channel = quantize(each, {.level = QuantLevel::channel});
      CHECK(mismatch(quantized_scales(channel), {2}, {1, 2}) == "");
      CHECK(quantized_scales(channel).dtype() == f32);
      CHECK(mismatch(quantized_values(channel), {2, 5}, {127, -64, 2, 1, 1, 0, 0, 0, 127, -64}) ==
            "");  // -63.5 to the even -64
      CHECK(mismatch(dequantize(channel, f64), {2, 5}, {127, -64, 2, 1, 1, 0, 0, 0, 254, -128}) ==
            "");

      const Tensor block = quantize(each, {.level = QuantLevel::block, .block = 2});
      CHECK(mismatch(quantized_scales(block), {2, 3}, {1, 2.0f / 127, 1.0f / 127, 1, 2, 1},
                     dtype == f64 ? 1e-7 : 1e-7) == "");
      CHECK(mismatch(quantized_values(block), {2, 5},
                     {127, -64, 127, 64, 127, 0, 0, 0, 127, -127}) == "");
      CHECK(quant_scheme(block) == QuantScheme{.level = QuantLevel::block, .block = 2});
    }
  });
}

TEST_CASE("four bits: two values in a byte, rows apart") {
  on_devices([](Device device) {
    const Tensor x = tensor({{7.0, -7.0, 3.0}, {-1.0, 0.0, 14.0}}, {f32, device});
    const Tensor q = quantize(x, {.bits = 4, .level = QuantLevel::channel});
    CHECK(q.shape() == Shape{2, 3});
    CHECK(quantized_values(q).dtype() == u8);
    // 7 | (-7 & 15) << 4, 3; -0.5 and 0 to 0, 7.
    CHECK(mismatch(quantized_values(q), {2, 2}, {7 + 9 * 16, 3, 0, 7}) == "");
    CHECK(mismatch(quantized_scales(q), {2}, {1, 2}) == "");
    CHECK(q.to_data().to_doubles() == Doubles{7, -7, 3, 0, 0, 7});
    CHECK(mismatch(dequantize(q, f64), {2, 3}, {7, -7, 3, 0, 0, 14}) == "");
    const Device there = device.type == kCpu ? kReference : kCpu;
    CHECK(dequantize(q.to(there)).to(device).equal(dequantize(q)));
    const Tensor again =
        make_quantized(quantized_values(q), quantized_scales(q), quant_scheme(q), q.shape());
    CHECK(dequantize(again).equal(dequantize(q)));
    CHECK(error_lacks<ValueError>([&] { q.reshape({6}); }, {"reshape", "[2, 3]", "dequantize"}) ==
          "");
    CHECK(error_lacks<ShapeError>(
              [&] {
                make_quantized(quantized_values(q), quantized_scales(q), quant_scheme(q), {3, 2});
              },
              {"make_quantized", "values", "[2, 2]", "[3, 1]"}) == "");
  });
  CHECK_THROWS_AS(quantize(ones({2}), {.bits = 3}), ValueError);
  CHECK_THROWS_AS(quantize(ones({2}), {.level = QuantLevel::block, .block = 0}), ValueError);
  CHECK_THROWS_AS(quantize(ones({2}), {.scale = 1.0, .level = QuantLevel::channel}), ValueError);
  CHECK_THROWS_AS(quant_scheme(ones({2})), DTypeError);
}

TEST_CASE("linear with a quantized weight: as with the dequantized one, gradients to x and bias") {
  on_devices([](Device device) {
    const Tensor w = tensor({{1.0, -2.0, 0.5}, {0.25, 3.0, -1.0}}, {f32, device});
    for (const QuantScheme& scheme :
         {QuantScheme{}, QuantScheme{.level = QuantLevel::channel},
          QuantScheme{.bits = 4, .level = QuantLevel::block, .block = 2}}) {
      const Tensor q = quantize(w, scheme);
      const Tensor dense = dequantize(q);
      Tensor x = tensor({{1.0, 2.0, 3.0}, {-1.0, 0.5, 0.0}}, {f32, device}).requires_grad_();
      Tensor bias = tensor({0.5, -0.5}, {f32, device}).requires_grad_();
      const Tensor y = functional::linear(x, q, bias);
      CHECK(y.allclose(functional::linear(x, dense, bias), 1e-6, 1e-6));
      const Tensor g = tensor({{1.0, -1.0}, {2.0, 0.5}}, {f32, device});
      const Gradients grads = y.backward(g);
      CHECK(grads.get(x)->allclose(g.matmul(dense), 1e-6, 1e-6));
      CHECK(mismatch(*grads.get(bias), {2}, {3.0, -0.5}) == "");
    }
    CHECK_THROWS_AS(functional::linear(ones({2, 2}, {.device = device}), quantize(w)), ShapeError);
  });
}

TEST_CASE("products of quantized matrices: as of the dequantized ones") {
  on_devices([](Device device) {
    const Tensor x = tensor({{1.0, -2.0, 0.5}, {0.25, 3.0, -1.0}}, {f32, device});
    const Tensor y = tensor({{0.5, 1.0}, {-1.5, 2.0}, {1.0, -0.25}}, {f32, device});
    for (const QuantScheme& scheme :
         {QuantScheme{}, QuantScheme{.level = QuantLevel::channel},
          QuantScheme{.bits = 4, .level = QuantLevel::block, .block = 2}}) {
      const Tensor a = quantize(x, scheme);
      const Tensor b = quantize(y, scheme);
      const Tensor w = quantize(y.t(), scheme);
      const Tensor bias = tensor({0.5, -0.5}, {f32, device});
      CHECK(matmul(a, b).dtype() == f32);
      CHECK(matmul(a, b).allclose(dequantize(a).matmul(dequantize(b)), 1e-6, 1e-6));
      CHECK(functional::linear(a, w, bias)
                .allclose(functional::linear(dequantize(a), dequantize(w), bias), 1e-6, 1e-6));
      // With a floating point matrix: in its dtype, and its gradient.
      Tensor dense = y.to(f64).requires_grad_();
      const Tensor z = matmul(a, dense);
      CHECK(z.dtype() == f64);
      CHECK(z.backward(ones({2, 2}, {f64, device}))
                .get(dense)
                ->allclose(dequantize(a, f64).t().matmul(ones({2, 2}, {f64, device}))));
      Tensor left = x.clone().requires_grad_();
      CHECK(matmul(left, b)
                .backward(ones({2, 2}, {f32, device}))
                .get(left)
                ->allclose(ones({2, 2}, {f32, device}).matmul(dequantize(b).t()), 1e-6, 1e-6));
    }
    const Tensor q = quantize(x);
    CHECK(error_lacks<ShapeError>([&] { matmul(q, q); }, {"matmul", "[2, 3]", "[n, k]"}) == "");
    CHECK(error_lacks<ShapeError>([&] { functional::linear(q, quantize(y)); },
                                  {"linear", "[3, 2]", "[out, in]"}) == "");
    CHECK_THROWS_AS(matmul(quantize(ones({2, 2, 2}, {.device = device})), q), ShapeError);
  });
}

TEST_CASE("linear with dynamic activations: the input's rows are quantized by their largest") {
  on_devices([](Device device) {
    const Tensor w = tensor({{1.0, -2.0, 0.5}, {0.25, 3.0, -1.0}}, {f32, device});
    for (const QuantScheme& scheme :
         {QuantScheme{.level = QuantLevel::channel, .activations = QuantActivations::dynamic},
          QuantScheme{.bits = 4,
          .level = QuantLevel::block,
          .block = 2,
          .activations = QuantActivations::dynamic}}) {
      const Tensor q = quantize(w, scheme);
      Tensor x =
          tensor({{{1.0, 2.0, 3.0}, {-1.0, 0.5, 0.0}}, {{1e-3, 1.0, 100.0}, {0.0, 0.0, 0.0}}},
                 {f32, device})
              .requires_grad_();
      Tensor bias = tensor({0.5, -0.5}, {f32, device}).requires_grad_();
      const Tensor rows = quantize_dynamic(x.detach().reshape({4, 3}));
      CHECK(quantized_scales(rows).shape() == Shape{4});
      const Tensor y = functional::linear(x, q, bias);
      CHECK(y.shape() == Shape{2, 2, 2});
      CHECK(y.reshape({4, 2}).allclose(
          functional::linear(dequantize(rows), dequantize(q), bias.detach()), 1e-6, 1e-5));
      const Gradients grads = y.sum().backward();
      CHECK(
          grads.get(x)->allclose(ones({2, 2, 2}, {f32, device}).matmul(dequantize(q)), 1e-6, 1e-6));
      CHECK(mismatch(*grads.get(bias), {2}, {4.0, 4.0}) == "");
    }
  });
  CHECK_THROWS_AS(quantize_dynamic(ones({2}), {.scale = 0.5}), ValueError);
}
