// Cpu's batch and layer normalization against Reference.
#include "neural_check.h"

using namespace kiln;
using namespace kiln::test;

namespace {

void check_all(const std::tuple<HostHandle, HostHandle, HostHandle>& got,
               const std::tuple<HostHandle, HostHandle, HostHandle>& want, double tolerance) {
  check_close(std::get<0>(got), std::get<0>(want), tolerance);
  check_close(std::get<1>(got), std::get<1>(want), tolerance);
  check_close(std::get<2>(got), std::get<2>(want), tolerance);
}

void check_batch_norm(const Shape& shape, DType dtype) {
  CAPTURE(to_string(shape));
  CAPTURE(to_string(dtype));
  const HostHandle x = random_tensor(shape, dtype, 1);
  const HostHandle g = random_tensor(shape, dtype, 2);
  const HostHandle weight = random_tensor({shape[1]}, dtype, 3);
  const HostHandle bias = random_tensor({shape[1]}, dtype, 4);
  const double tolerance = kernel_tolerance(dtype) * 8;
  for (const HostHandle* w : {&weight, static_cast<const HostHandle*>(nullptr)}) {
    const HostHandle* b = w == nullptr ? nullptr : &bias;
    const auto want = Reference::float_batch_norm(x, w, b, 1e-2);
    check_all(Cpu::float_batch_norm(x, w, b, 1e-2), want, tolerance);
    const HostHandle& mean = std::get<1>(want);
    const HostHandle& var = std::get<2>(want);
    check_all(Cpu::float_batch_norm_backward(g, x, w, mean, var, 1e-2),
              Reference::float_batch_norm_backward(g, x, w, mean, var, 1e-2), tolerance * 8);
    check_close(Cpu::float_batch_norm_inference(x, mean, var, w, b, 1e-2),
                Reference::float_batch_norm_inference(x, mean, var, w, b, 1e-2), tolerance);
  }
}

// Parameters of f32 beside 16-bit elements, whose statistics are f32.
void check_mixed_batch_norm(DType dtype) {
  const HostHandle x = random_tensor({4, 5, 7, 3}, dtype, 1);
  const HostHandle g = random_tensor({4, 5, 7, 3}, dtype, 2);
  const HostHandle w = random_tensor({5}, DType::f32, 3);
  const HostHandle b = random_tensor({5}, DType::f32, 4);
  const double tolerance = kernel_tolerance(dtype) * 8;
  const auto want = Reference::float_batch_norm(x, &w, &b, 1e-2);
  const auto got = Cpu::float_batch_norm(x, &w, &b, 1e-2);
  check_all(got, want, tolerance);
  const auto& [y, mean, var] = got;
  CHECK(y->dtype() == dtype);
  CHECK(mean->dtype() == DType::f32);
  CHECK(var->dtype() == DType::f32);
  const auto grads = Cpu::float_batch_norm_backward(g, x, &w, mean, var, 1e-2);
  check_all(grads, Reference::float_batch_norm_backward(g, x, &w, mean, var, 1e-2), tolerance * 8);
  CHECK(std::get<0>(grads)->dtype() == dtype);
  CHECK(std::get<1>(grads)->dtype() == DType::f32);
  CHECK(std::get<2>(grads)->dtype() == DType::f32);
}

void check_layer_norm(const Shape& shape, int n, DType dtype) {
  CAPTURE(to_string(shape));
  CAPTURE(n);
  CAPTURE(to_string(dtype));
  Shape inner;
  for (int d = shape.rank() - n; d < shape.rank(); ++d) inner.push_back(shape[d]);
  const HostHandle x = random_tensor(shape, dtype, 1);
  const HostHandle g = random_tensor(shape, dtype, 2);
  const HostHandle weight = random_tensor(inner, dtype, 3);
  const HostHandle bias = random_tensor(inner, dtype, 4);
  const double tolerance = kernel_tolerance(dtype) * 8;
  for (const HostHandle* w : {&weight, static_cast<const HostHandle*>(nullptr)}) {
    const HostHandle* b = w == nullptr ? nullptr : &bias;
    const auto want = Reference::float_layer_norm(x, w, b, n, 1e-2);
    check_all(Cpu::float_layer_norm(x, w, b, n, 1e-2), want, tolerance);
    const HostHandle& mean = std::get<1>(want);
    const HostHandle& rstd = std::get<2>(want);
    check_all(Cpu::float_layer_norm_backward(g, x, w, mean, rstd, n),
              Reference::float_layer_norm_backward(g, x, w, mean, rstd, n), tolerance * 8);
  }
}

}  // namespace

TEST_CASE("batch_norm: planes of every length, gradients, inference") {
  at_every_target([] {
    for (const DType dtype : {DType::f32, DType::f64}) {
      for (const Shape& shape :
           {Shape{4, 3, 5, 5}, Shape{2, 5, 16, 17}, Shape{7, 3}, Shape{65, 9}, Shape{3, 2, 4},
            Shape{700, 5}, Shape{300, 70}, Shape{257, 300}, Shape{513, 1}, Shape{1, 6},
            Shape{1, 3, 4, 1}, Shape{2, 2, 70, 70}, Shape{2, 3, 1, 2, 9}, Shape{1, 1, 1}}) {
        check_batch_norm(shape, dtype);
      }
    }
  });
  for (const DType dtype : {DType::f16, DType::bf16}) {
    check_batch_norm({4, 3, 5, 5}, dtype);
    check_batch_norm({9, 3}, dtype);
  }
}

TEST_CASE("batch_norm: parameters of f32 beside 16-bit elements") {
  for (const DType dtype : {DType::f16, DType::bf16}) check_mixed_batch_norm(dtype);
}

TEST_CASE("batch_norm: nothing to normalize") {
  for (const Shape& shape :
       {Shape{0, 3, 4, 4}, Shape{2, 0, 4, 4}, Shape{2, 3, 0, 4}, Shape{0, 3}}) {
    CAPTURE(to_string(shape));
    const HostHandle x = random_tensor(shape, DType::f32, 1);
    check_all(Cpu::float_batch_norm(x, nullptr, nullptr, 1e-5),
              Reference::float_batch_norm(x, nullptr, nullptr, 1e-5), 0);
    const HostHandle ones = random_tensor({shape[1]}, DType::f32, 2);
    check_all(
        Cpu::float_batch_norm_backward(x, x, nullptr, ones, Cpu::float_square(ones), 1e-5),
        Reference::float_batch_norm_backward(x, x, nullptr, ones, Cpu::float_square(ones), 1e-5),
        0);
  }
}

// Numbers near 2^22, which floats hold to the half, so x is exact and the results are known to
// floats' precision.
TEST_CASE("norms: a mean that is large beside the spread") {
  const auto check_first = [](const auto& got, const auto& want, double of_mean) {
    check_close(std::get<0>(got), std::get<0>(want), 2e-5);
    check_close(std::get<1>(got), std::get<1>(want), of_mean);
    check_close(std::get<2>(got), std::get<2>(want), 2e-6);
  };
  at_every_target([&] {
    for (const Shape& shape :
         {Shape{3, 4, 7}, Shape{3, 2, 40, 40}, Shape{2, 2, 10007}, Shape{700, 6, 1}}) {
      CAPTURE(to_string(shape));
      HostHandle x = random_tensor(shape, DType::f32, 1);
      for (int64_t i = 0; i < x->numel(); ++i) {
        float& value = x->data_as<float>()[i];
        value = 4194304.0f + 0.5f * std::round(value * 4.0f);
      }
      const HostHandle weight = random_tensor({shape[1]}, DType::f32, 2);
      const HostHandle bias = random_tensor({shape[1]}, DType::f32, 3);
      const double half = 0.25 / 4194304.0;
      for (const HostHandle* w : {&weight, static_cast<const HostHandle*>(nullptr)}) {
        const HostHandle* b = w == nullptr ? nullptr : &bias;
        check_first(Cpu::float_batch_norm(x, w, b, 1e-5),
                    Reference::float_batch_norm(x, w, b, 1e-5), half);
        check_first(Cpu::float_group_norm(x, w, b, 2, 1e-5),
                    Reference::float_group_norm(x, w, b, 2, 1e-5), half);
      }
      check_first(Cpu::float_layer_norm(x, nullptr, nullptr, 2, 1e-5),
                  Reference::float_layer_norm(x, nullptr, nullptr, 2, 1e-5), half);
    }
  });
}

TEST_CASE("layer_norm: rows of every length") {
  at_every_target([] {
    for (const DType dtype : {DType::f32, DType::f64}) {
      for (const int64_t n : {1, 2, 15, 16, 17, 64, 100, 5000}) check_layer_norm({3, n}, 1, dtype);
      check_layer_norm({200, 33}, 1, dtype);
      check_layer_norm({2, 3, 4, 5}, 2, dtype);
      check_layer_norm({7}, 1, dtype);
    }
  });
  for (const DType dtype : {DType::f16, DType::bf16}) check_layer_norm({4, 33}, 1, dtype);
  check_layer_norm({0, 4}, 1, DType::f32);
}

TEST_CASE("norms: donated operands, operands with gaps") {
  const HostHandle x = random_tensor({4, 3, 5, 6}, DType::f32, 1);
  const HostHandle g = random_tensor({4, 3, 5, 6}, DType::f32, 2);
  const auto [y, mean, var] = Cpu::float_batch_norm(x, nullptr, nullptr, 1e-5);
  CHECK(same_bits(std::get<0>(Cpu::float_batch_norm(random_tensor({4, 3, 5, 6}, DType::f32, 1),
                                                    nullptr, nullptr, 1e-5)),
                  y));
  CHECK(same_bits(std::get<0>(Cpu::float_batch_norm(stored_with_gaps(x), nullptr, nullptr, 1e-5)),
                  y));
  const HostHandle dx = std::get<0>(Cpu::float_batch_norm_backward(g, x, nullptr, mean, var, 1e-5));
  CHECK(same_bits(
      std::get<0>(Cpu::float_batch_norm_backward(random_tensor({4, 3, 5, 6}, DType::f32, 2),
                                                 stored_transposed(x), nullptr, mean, var, 1e-5)),
      dx));
  const auto [z, m, rstd] = Cpu::float_layer_norm(x, nullptr, nullptr, 2, 1e-5);
  CHECK(same_bits(
      std::get<0>(Cpu::float_layer_norm(stored_transposed(x), nullptr, nullptr, 2, 1e-5)), z));
  const HostHandle dz = std::get<0>(Cpu::float_layer_norm_backward(g, x, nullptr, m, rstd, 2));
  CHECK(same_bits(std::get<0>(Cpu::float_layer_norm_backward(
                      random_tensor({4, 3, 5, 6}, DType::f32, 2), x, nullptr, m, rstd, 2)),
                  dz));
}

TEST_CASE("norms: the same bits at any number of threads") {
  const HostHandle x = random_tensor({16, 24, 20, 20}, DType::f32, 1);
  const HostHandle g = random_tensor({16, 24, 20, 20}, DType::f32, 2);
  const HostHandle rows = random_tensor({3000, 70}, DType::f32, 3);
  const HostHandle rows_grad = random_tensor({3000, 70}, DType::f32, 4);
  check_deterministic([&] {
    const auto [y, mean, var] = Cpu::float_batch_norm(rows, nullptr, nullptr, 1e-5);
    const auto [dx, dw, db] =
        Cpu::float_batch_norm_backward(rows_grad, rows, nullptr, mean, var, 1e-5);
    return std::vector<HostHandle>{y, mean, var, dx, dw, db};
  });
  check_deterministic([&] {
    const auto [y, mean, var] = Cpu::float_batch_norm(x, nullptr, nullptr, 1e-5);
    const auto [dx, dw, db] = Cpu::float_batch_norm_backward(g, x, nullptr, mean, var, 1e-5);
    const auto [z, m, rstd] = Cpu::float_layer_norm(x, nullptr, nullptr, 2, 1e-5);
    const auto [dz, dv, dc] = Cpu::float_layer_norm_backward(g, x, nullptr, m, rstd, 2);
    return std::vector<HostHandle>{y, mean, var, dx, dw, db, z, m, rstd, dz, dv, dc};
  });
}

TEST_CASE("Cpu: layer_norm of 16-bit floats is float's, rounded once") {
  for (const DType dtype : {f16, bf16}) {
    for (const Shape& shape : {Shape{700, 33}, Shape{3, 9000}, Shape{0, 5}, Shape{5, 0}}) {
      CAPTURE(to_string(shape));
      const HostHandle x = random_tensor(shape, dtype, 4);
      const HostHandle weight = random_tensor({shape[1]}, dtype, 5);
      const HostHandle bias = random_tensor({shape[1]}, dtype, 6);
      const HostHandle wide_weight = CpuOps::float_cast(weight, f32);
      const HostHandle wide_bias = CpuOps::float_cast(bias, f32);
      const auto [y, mean, rstd] = CpuOps::float_layer_norm(x, &weight, &bias, 1, 1e-5);
      const auto [wide_y, wide_mean, wide_rstd] =
          CpuOps::float_layer_norm(CpuOps::float_cast(x, f32), &wide_weight, &wide_bias, 1, 1e-5);
      CHECK(same_bits(y, CpuOps::float_cast(wide_y, dtype)));
      CHECK(same_bits(mean, CpuOps::float_cast(wide_mean, dtype)));
      CHECK(same_bits(rstd, CpuOps::float_cast(wide_rstd, dtype)));
    }
  }
}
