// Cpu's kernels of short rows and of few columns, which have code of their own, beside Reference;
// and sums of narrow integers.
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/backend/neural_check.h"

using namespace kiln;
using namespace kiln::test;

namespace {

// Numbers of which many are equal; of floats some are -0, and some NaN.
HostHandle few_numbers(const Shape& shape, DType dtype, bool with_nan, uint64_t seed) {
  Values random(seed);
  std::vector<double> values(static_cast<size_t>(shape.numel()));
  for (double& v : values) {
    v = static_cast<double>(random.next_int(9)) - (dtype == u8 ? 0.0 : 4.0);
    if (v == 0.0 && random.next_int(2) == 0) v = -0.0;
    if (with_nan && random.next_int(13) == 0) v = std::numeric_limits<double>::quiet_NaN();
  }
  return host::from_data(TensorData(values, shape).cast(dtype), Device());
}

void check_ints(const HostHandle& x, int dim) {
  const int64_t n = x->shape()[dim];
  check_close(CpuOps::int_sum(x, {dim}, false), Reference::int_sum(x, {dim}, false), 0.0);
  check_close(CpuOps::int_prod(x, {dim}, false), Reference::int_prod(x, {dim}, false), 0.0);
  check_close(CpuOps::int_amax(x, {dim}, false), Reference::int_amax(x, {dim}, false), 0.0);
  check_close(CpuOps::int_amin(x, {dim}, false), Reference::int_amin(x, {dim}, false), 0.0);
  check_close(CpuOps::int_cumsum(x, dim), Reference::int_cumsum(x, dim), 0.0);
  check_close(CpuOps::int_cumprod(x, dim), Reference::int_cumprod(x, dim), 0.0);
  for (const bool largest : {false, true}) {
    check_close(CpuOps::int_argsort(x, dim, largest), Reference::int_argsort(x, dim, largest), 0.0);
    check_close(CpuOps::int_cumarg(x, dim, largest), Reference::int_cumarg(x, dim, largest), 0.0);
    for (const int64_t k : {int64_t{1}, (n + 1) / 2, n}) {
      check_close(CpuOps::int_argtopk(x, k, dim, largest),
                  Reference::int_argtopk(x, k, dim, largest), 0.0);
    }
  }
  check_close(CpuOps::int_argmax(x, dim, true), Reference::int_argmax(x, dim, true), 0.0);
  check_close(CpuOps::int_argmin(x, dim, true), Reference::int_argmin(x, dim, true), 0.0);
}

void check_floats(const HostHandle& x, int dim) {
  const int64_t n = x->shape()[dim];
  const double tolerance = kernel_tolerance(x->dtype());
  check_close(CpuOps::float_sum(x, {dim}, false), Reference::float_sum(x, {dim}, false), tolerance);
  check_close(CpuOps::float_prod(x, {dim}, false), Reference::float_prod(x, {dim}, false),
              tolerance);
  check_close(CpuOps::float_amax(x, {dim}, false), Reference::float_amax(x, {dim}, false), 0.0);
  check_close(CpuOps::float_amin(x, {dim}, false), Reference::float_amin(x, {dim}, false), 0.0);
  check_close(CpuOps::float_cumsum(x, dim), Reference::float_cumsum(x, dim), tolerance);
  check_close(CpuOps::float_cumprod(x, dim), Reference::float_cumprod(x, dim), tolerance);
  check_close(CpuOps::float_logcumsumexp(x, dim), Reference::float_logcumsumexp(x, dim), tolerance);
  for (const bool largest : {false, true}) {
    const auto got = CpuOps::float_sort(x, dim, largest);
    const auto want = Reference::float_sort(x, dim, largest);
    check_close(got.first, want.first, 0.0);
    check_close(got.second, want.second, 0.0);
    check_close(CpuOps::float_cumarg(x, dim, largest), Reference::float_cumarg(x, dim, largest),
                0.0);
    for (const int64_t k : {int64_t{1}, (n + 1) / 2, n}) {
      check_close(CpuOps::float_argtopk(x, k, dim, largest),
                  Reference::float_argtopk(x, k, dim, largest), 0.0);
    }
  }
  check_close(CpuOps::float_argmax(x, dim, true), Reference::float_argmax(x, dim, true), 0.0);
  check_close(CpuOps::float_argmin(x, dim, true), Reference::float_argmin(x, dim, true), 0.0);
  Shape one = x->shape();
  one[dim] = 1;
  const HostHandle middle = Cpu::int_full(one, Scalar((n - 1) / 2), i64, Device());
  check_close(CpuOps::float_argplace(x, middle, dim), Reference::float_argplace(x, middle, dim),
              0.0);
}

template <class F>
void each_shape(F&& f) {
  for (int64_t n = 1; n <= 26; ++n) {
    CAPTURE(n);
    f(Shape{7, n}, 1);     // short rows
    f(Shape{45, n}, 0);    // few columns
    f(Shape{3, 5, n}, 1);  // both
    if (n > 9) continue;
    // As many as are read side by side, and some more.
    f(Shape{75, n}, 1);
    f(Shape{139, n}, 0);
    f(Shape{2, 70, n}, 1);
  }
}

}  // namespace

TEST_CASE("Cpu: short rows and few columns of integers") {
  at_every_target([] {
    each_shape([](const Shape& shape, int dim) {
      for (const DType dtype : {i64, i32, i16, i8, u8}) {
        CAPTURE(to_string(dtype));
        check_ints(few_numbers(shape, dtype, false, 11), dim);
      }
    });
  });
}

TEST_CASE("Cpu: short rows and few columns of floats, with NaN and without") {
  at_every_target([] {
    each_shape([](const Shape& shape, int dim) {
      for (const DType dtype : {f32, f64, bf16}) {
        CAPTURE(to_string(dtype));
        check_floats(few_numbers(shape, dtype, false, 12), dim);
        check_floats(few_numbers(shape, dtype, true, 13), dim);
      }
    });
  });
}

TEST_CASE("Cpu: sums of narrow integers are taken in 64 bits") {
  at_every_target([] {
    for (const DType dtype : {i32, i16, i8, u8}) {
      CAPTURE(to_string(dtype));
      const int64_t lowest = dtype == u8    ? 0
                             : dtype == i8  ? -128
                             : dtype == i16 ? -32768
                                            : std::numeric_limits<int32_t>::min();
      const int64_t highest = dtype == u8 ? 255 : -(lowest + 1);
      for (const int64_t extreme : {lowest, highest}) {
        for (const Shape& shape : {Shape{100003}, Shape{40000, 3}, Shape{3000, 70}, Shape{2, 9}}) {
          CAPTURE(to_string(shape));
          const HostHandle x = Cpu::int_full(shape, Scalar(extreme), dtype, Device());
          const HostHandle all = CpuOps::int_sum(x, all_dims(shape.rank()), false);
          REQUIRE(all->dtype() == i64);
          CHECK(*all->data_as<const int64_t>() == extreme * shape.numel());
          const HostHandle columns = CpuOps::int_sum(x, {0}, false);
          for (int64_t c = 0; c < columns->numel(); ++c) {
            CHECK(columns->data_as<const int64_t>()[c] == extreme * shape[0]);
          }
        }
      }
      for (const Shape& shape : {Shape{700, 1030}, Shape{5, 33000}, Shape{11, 13, 17}}) {
        CAPTURE(to_string(shape));
        const HostHandle x = random_ints(shape, dtype, dtype == i32 ? 1 << 30 : 128, 5);
        for (int dim = 0; dim < shape.rank(); ++dim) {
          check_close(CpuOps::int_sum(x, {dim}, true), Reference::int_sum(x, {dim}, true), 0.0);
        }
      }
    }
  });
}

TEST_CASE("Cpu: long rows with zeros have the product 0 with the sign of their numbers") {
  at_every_target([] {
    for (const DType dtype : {f32, f64}) {
      for (const int64_t n : {30, 257, 5000}) {
        for (const int64_t negative : {0, 1, 2}) {
          std::vector<double> values(static_cast<size_t>(n), dtype == f32 ? 1e30 : 1e300);
          for (int64_t i = 0; i < negative; ++i) values[static_cast<size_t>(7 * i)] *= -1.0;
          values[static_cast<size_t>(n - 2)] = 0.0;
          const HostHandle x = host::from_data(TensorData(values, Shape{n}).cast(dtype), Device());
          const double product = values_of(CpuOps::float_prod(x, {0}, false))[0];
          CHECK(product == 0.0);
          CHECK(std::signbit(product) == (negative == 1));
        }
      }
    }
  });
}
