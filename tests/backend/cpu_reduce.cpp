// Cpu's reductions: accuracy, layouts, determinism, NaN, empty tensors.
#include <algorithm>
#include <limits>

#include "tests/backend/neural_check.h"

using namespace kiln;
using namespace kiln::test;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

HostHandle tensor(const std::vector<double>& values, const Shape& shape, DType dtype) {
  return host::from_data(TensorData(values, shape).cast(dtype), Device());
}

// Every set of dims of a rank.
std::vector<Dims> subsets(int rank) {
  std::vector<Dims> out;
  for (int bits = 0; bits < 1 << rank; ++bits) {
    Dims dims;
    for (int i = 0; i < rank; ++i) {
      if ((bits >> i & 1) != 0) dims.push_back(i);
    }
    out.push_back(dims);
  }
  return out;
}

void check_all(const HostHandle& x, const Dims& dims, bool keepdim) {
  const double tolerance = kernel_tolerance(x->dtype());
  check_close(CpuOps::float_sum(x, dims, keepdim), Reference::float_sum(x, dims, keepdim),
              tolerance);
  check_close(CpuOps::float_mean(x, dims, keepdim), Reference::float_mean(x, dims, keepdim),
              tolerance);
  check_close(CpuOps::float_prod(x, dims, keepdim), Reference::float_prod(x, dims, keepdim),
              tolerance);
  check_close(CpuOps::float_amax(x, dims, keepdim), Reference::float_amax(x, dims, keepdim), 0.0);
  check_close(CpuOps::float_amin(x, dims, keepdim), Reference::float_amin(x, dims, keepdim), 0.0);
  check_close(CpuOps::float_var(x, dims, 1.0, keepdim), Reference::float_var(x, dims, 1.0, keepdim),
              tolerance);
}

}  // namespace

TEST_CASE("Cpu: reductions over every set of dims, of every layout") {
  const Shape shapes[] = {{}, {5}, {1}, {4, 7}, {3, 1, 5}, {2, 3, 4, 5}, {40, 33}, {3, 130, 9}};
  for (const Shape& shape : shapes) {
    for (const Dims& dims : subsets(shape.rank())) {
      CAPTURE(to_string(shape));
      CAPTURE(to_string(dims));
      for (const DType dtype : {f32, f64, bf16}) {
        const HostHandle x = random_tensor(shape, dtype, 3);
        check_all(x, dims, false);
        check_all(x, dims, true);
        if (shape.rank() >= 2) {
          check_all(stored_transposed(x), dims, false);
          check_all(stored_with_gaps(x), dims, false);
        }
      }
    }
  }
}

TEST_CASE("Cpu: reductions of long rows and columns, at every instruction set") {
  at_every_target([] {
    for (const Shape& shape : {Shape{3, 70001}, Shape{70001, 3}, Shape{2000, 1}, Shape{1500, 70},
                               Shape{2, 1200, 1100}, Shape{33000}, Shape{5, 513, 17}}) {
      CAPTURE(to_string(shape));
      const HostHandle x = random_tensor(shape, f32, 5);
      for (int dim = 0; dim < shape.rank(); ++dim) {
        check_close(CpuOps::float_sum(x, {dim}, false), Reference::float_sum(x, {dim}, false),
                    2e-5);
        check_close(CpuOps::float_var(x, {dim}, 0.0, false),
                    Reference::float_var(x, {dim}, 0.0, false), 1e-6);
        check_close(CpuOps::float_amin(x, {dim}, false), Reference::float_amin(x, {dim}, false),
                    0.0);
        check_close(CpuOps::float_argmax(x, dim, false), Reference::float_argmax(x, dim, false),
                    0.0);
        check_close(CpuOps::float_cumsum(x, dim), Reference::float_cumsum(x, dim), 1e-6);
      }
    }
  });
}

TEST_CASE("Cpu: the sum of 4 Mi floats is good to 1e-7") {
  const int64_t n = int64_t{1} << 22;
  const HostHandle x = random_tensor({n}, f32, 8);
  // Shifted, so that the sum is large, and every partial sum loses bits.
  const HostHandle shifted = CpuOps::float_add_scalar(x, 3.0);
  long double exact = 0.0L;
  for (int64_t i = 0; i < n; ++i) exact += static_cast<long double>(shifted->data_as<float>()[i]);
  const auto relative = [&](const HostHandle& got) {
    const long double error = values_of(got)[0] - exact;
    return static_cast<double>(error < 0 ? -error / exact : error / exact);
  };
  at_every_target([&] {
    CHECK(relative(CpuOps::float_sum(shifted, {0}, false)) < 1e-7);
    const HostHandle wide = CpuOps::float_reshape(shifted, {n / 8, 8});
    const HostHandle columns = CpuOps::float_cast(CpuOps::float_sum(wide, {0}, false), f64);
    CHECK(relative(CpuOps::float_sum(columns, {0}, false)) < 1e-7);
  });
}

TEST_CASE("Cpu: the variance of large, close numbers") {
  // The numbers' steps are half an ulp of the sum of four: nothing but double keeps the means.
  at_every_target([] {
    for (const int64_t n : {100, 1000, 4100, 100000}) {
      for (const int64_t columns : {1, 3, 40, 1030}) {
        if (n * columns > 5000000) continue;
        std::vector<double> values;
        for (int64_t i = 0; i < n; ++i) {
          for (int64_t c = 0; c < columns; ++c) {
            values.push_back(4194304.0 + static_cast<double>((i + c) % 4));
          }
        }
        const HostHandle x = tensor(values, {n, columns}, f32);
        const HostHandle rows = CpuOps::float_permute(x, {1, 0});
        for (double v : values_of(CpuOps::float_var(x, {0}, 0.0, false))) {
          if (std::abs(v - 1.25) >= 1e-6)
            FAIL_CHECK(concat("columns ", n, " x ", columns, ": ", v));
        }
        for (double v : values_of(CpuOps::float_var(rows, {1}, 0.0, false))) {
          if (std::abs(v - 1.25) >= 1e-6) FAIL_CHECK(concat("rows ", columns, " x ", n, ": ", v));
        }
      }
    }
  });
  const HostHandle constant = tensor(std::vector<double>(300, 0.1), {300}, f32);
  CHECK(values_of(CpuOps::float_var(constant, {0}, 1.0, false))[0] == 0.0);
  CHECK(std::isnan(values_of(CpuOps::float_var(tensor({1}, {1}, f32), {0}, 1.0, false))[0]));
}

TEST_CASE("Cpu: reductions are bit-identical at any number of threads") {
  const HostHandle x = random_tensor({300, 1100}, f32, 1);
  const HostHandle tall = random_tensor({100003, 3}, f32, 2);
  const HostHandle cube = random_tensor({20, 16, 40, 40}, f32, 3);
  check_deterministic([&] {
    return std::vector<HostHandle>{
        CpuOps::float_sum(x, {0}, false),
        CpuOps::float_sum(x, {1}, false),
        CpuOps::float_sum(x, {0, 1}, false),
        CpuOps::float_mean(tall, {0}, false),
        CpuOps::float_var(x, {0, 1}, 1, false),
        CpuOps::float_sum(cube, {0, 2, 3}, false),
        CpuOps::float_prod(x, {1}, false),
        CpuOps::float_var(cube, {0, 2, 3}, 0, false),
        CpuOps::float_cumsum(x, 0),
        CpuOps::float_argmin(x, 0, false),
    };
  });
}

TEST_CASE("Cpu: NaN wins, ties go to the first") {
  at_every_target([] {
    for (const DType dtype : {f32, f64, f16}) {
      for (const int64_t n : {3, 40, 700}) {
        for (const int64_t at : {int64_t{0}, n / 2, n - 1}) {
          std::vector<double> values(static_cast<size_t>(n), 1.0);
          values[static_cast<size_t>(at)] = kNan;
          const HostHandle row = tensor(values, {n}, dtype);
          CHECK(std::isnan(values_of(CpuOps::float_amax(row, {0}, false))[0]));
          CHECK(std::isnan(values_of(CpuOps::float_amin(row, {0}, false))[0]));
          CHECK(values_of(CpuOps::float_argmax(row, 0, false))[0] == static_cast<double>(at));
          const HostHandle column =
              CpuOps::float_expand(CpuOps::float_reshape(row, {n, 1}), {n, 20});
          for (double v : values_of(CpuOps::float_amax(column, {0}, false))) CHECK(std::isnan(v));
          for (double v : values_of(CpuOps::float_argmin(column, 0, false))) {
            CHECK(v == static_cast<double>(at));
          }
          values[static_cast<size_t>(at)] = 2.0;
          values[static_cast<size_t>(n - 1)] = 2.0;
          CHECK(values_of(CpuOps::float_argmax(tensor(values, {n}, dtype), 0, true))[0] ==
                static_cast<double>(at));
        }
      }
    }
  });
}

TEST_CASE("Cpu: a product leaves the range only where the product in order does") {
  const auto product = [](const std::vector<double>& values, DType dtype) {
    const auto n = static_cast<int64_t>(values.size());
    return values_of(CpuOps::float_prod(tensor(values, {n}, dtype), {0}, false))[0];
  };
  const double inf = std::numeric_limits<double>::infinity();
  for (const int64_t n : {6, 40, 1000, 40000}) {
    for (const DType dtype : {f32, f64}) {
      const double size = dtype == f32 ? 1e30 : 1e200;
      std::vector<double> values(static_cast<size_t>(n));
      // By turns, at a distance that puts equal ones into one lane.
      for (size_t i = 0; i < values.size(); ++i) values[i] = i % 2 == 0 ? size : 1.0 / size;
      CHECK(product(values, dtype) == doctest::Approx(1.0).epsilon(0.05));
      std::vector<double> ones(static_cast<size_t>(n), -1.0);
      ones[3] = 3.0;
      CHECK(product(ones, dtype) == (n % 2 == 0 ? -3.0 : 3.0));
      ones[2] = 0.0;
      CHECK(product(ones, dtype) == 0.0);
      CHECK(std::signbit(product(ones, dtype)) == (n % 2 != 0));
      ones[1] = -inf;
      CHECK(std::isnan(product(ones, dtype)));
      ones[2] = 2.0;
      CHECK(product(ones, dtype) == inf);
      ones[0] = std::nan("");
      CHECK(std::isnan(product(ones, dtype)));
    }
  }
}

TEST_CASE("Cpu: products far out of the range are 0 or infinity, with their sign") {
  const double inf = std::numeric_limits<double>::infinity();
  at_every_target([&] {
    for (const DType dtype : {f32, f64}) {
      CAPTURE(to_string(dtype));
      const auto product = [&](const std::vector<double>& values) {
        const auto n = static_cast<int64_t>(values.size());
        return values_of(CpuOps::float_prod(tensor(values, {1, n}, dtype), {1}, false))[0];
      };
      for (const size_t n : {3000, 3001, 20011}) {
        CAPTURE(n);
        for (const double size : {0.3, 5.0}) {
          const double expected = size < 1 ? 0.0 : inf;
          std::vector<double> values(n, size);
          CHECK(product(values) == expected);
          values[n / 2] = -size;
          CHECK(product(values) == -expected);
          CHECK(std::signbit(product(values)));
          values[n - 1] = -size;
          CHECK(product(values) == expected);
          CHECK_FALSE(std::signbit(product(values)));
          values[n - 1] = std::numeric_limits<double>::quiet_NaN();
          CHECK(std::isnan(product(values)));
          values[n - 1] = inf;  // 0 times infinity, in order: after it is 0
          CHECK((size < 1 ? std::isnan(product(values)) : product(values) == -inf));
          values[n - 1] = 0.0;  // the numbers are finite
          CHECK(product(values) == 0.0);
          CHECK(std::signbit(product(values)));
        }
        // Subnormal numbers beside large ones: 2^-140 2^140 of float, 2^-1060 2^1060 of double.
        std::vector<double> even(n, 1.0);
        for (size_t i = 0; i + 21 < n; i += 21) {
          const int exponent = dtype == f32 ? 140 : 1060;
          even[i] = std::ldexp(1.0, -exponent);
          for (size_t k = 1; k <= 20; ++k) even[i + k] = std::ldexp(1.0, exponent / 20);
        }
        CHECK(product(even) == 1.0);
      }
    }
  });
}

TEST_CASE("Cpu: reductions of nothing, and of dims of size 1, are fresh tensors") {
  const HostHandle empty = CpuOps::float_empty({0, 3}, f32, Device());
  CHECK(values_of(CpuOps::float_sum(empty, {0}, false)) == std::vector<double>{0, 0, 0});
  CHECK(values_of(CpuOps::float_prod(empty, {0, 1}, false)) == std::vector<double>{1});
  CHECK(std::isnan(values_of(CpuOps::float_mean(empty, {0}, false))[0]));
  CHECK(CpuOps::float_sum(empty, {1}, true)->shape() == Shape{0, 1});
  const HostHandle none = CpuOps::bool_empty({0}, Device());
  CHECK(values_of(CpuOps::bool_any(none, {0}, false)) == std::vector<double>{0});
  CHECK(values_of(CpuOps::bool_all(none, {0}, false)) == std::vector<double>{1});

  const HostHandle x = random_tensor({1, 6}, f32, 1);
  const std::vector<double> before = values_of(x);
  const HostHandle sum = CpuOps::float_sum(x, {0}, false);
  CpuOps::float_fill(sum, 7.0);
  CHECK(values_of(x) == before);
}

TEST_CASE("Cpu: int and bool reductions") {
  for (const DType dtype : {i64, i32, i16, i8, u8}) {
    const HostHandle x = random_ints({5, 67, 3}, dtype, 100, 4);
    for (const Dims& dims : subsets(3)) {
      check_close(CpuOps::int_sum(x, dims, false), Reference::int_sum(x, dims, false), 0.0);
      check_close(CpuOps::int_prod(x, dims, true), Reference::int_prod(x, dims, true), 0.0);
      check_close(CpuOps::int_amax(x, dims, false), Reference::int_amax(x, dims, false), 0.0);
      check_close(CpuOps::int_amin(x, dims, false), Reference::int_amin(x, dims, false), 0.0);
    }
    for (int dim = 0; dim < 3; ++dim) {
      check_close(CpuOps::int_argmin(x, dim, false), Reference::int_argmin(x, dim, false), 0.0);
      check_close(CpuOps::int_cumsum(x, dim), Reference::int_cumsum(x, dim), 0.0);
    }
    const HostHandle mask = CpuOps::int_greater_scalar(x, 90);
    check_close(CpuOps::bool_any(mask, {1}, false), Reference::bool_any(mask, {1}, false), 0.0);
    check_close(CpuOps::bool_count(mask, {0, 2}, false), Reference::bool_count(mask, {0, 2}, false),
                0.0);
    check_close(CpuOps::bool_all(mask, {2}, true), Reference::bool_all(mask, {2}, true), 0.0);
  }
}

TEST_CASE("Cpu: the places of the best of columns, of every width") {
  at_every_target([] {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (const int64_t columns : {1, 3, 8, 40, 131, 300}) {
      CAPTURE(columns);
      for (const DType dtype : {f32, f64, i32, i64, u8}) {
        CAPTURE(to_string(dtype));
        const int64_t rows = 37;
        TensorData data(Shape{rows, columns}, f64);
        const std::span<double> x = data.as_mutable<double>();
        for (size_t i = 0; i < x.size(); ++i) {
          x[i] = static_cast<double>((i * 7919) % 61);
          if (is_floating_point(dtype) && i % 97 == 5) x[i] = nan;
        }
        const HostHandle values = host::from_data(data.cast(dtype), Device());
        const bool floats = is_floating_point(dtype);
        for (const bool largest : {true, false}) {
          const HostHandle got = floats ? (largest ? CpuOps::float_argmax(values, 0, false)
                                                   : CpuOps::float_argmin(values, 0, false))
                                        : (largest ? CpuOps::int_argmax(values, 0, false)
                                                   : CpuOps::int_argmin(values, 0, false));
          for (int64_t c = 0; c < columns; ++c) {
            int64_t want = 0;
            for (int64_t r = 1; r < rows; ++r) {
              const double v = x[static_cast<size_t>(r * columns + c)];
              const double best = x[static_cast<size_t>(want * columns + c)];
              if ((largest ? v > best : v < best) || (std::isnan(v) && !std::isnan(best))) want = r;
            }
            CHECK(got->data_as<int64_t>()[c] == want);
          }
        }
      }
    }
  });
}

TEST_CASE("Cpu: reductions of views with gaps equal those of their copies") {
  for (const DType dtype : {f32, f64, bf16}) {
    CAPTURE(to_string(dtype));
    const HostHandle x = random_tensor({3, 600, 402}, dtype, 1);
    const HostHandle matrix = host::slice(x, 0, Range{1, 2, 1});
    const HostHandle flat = host::try_reshape(matrix, {600, 402});
    const HostHandle views[] = {host::slice(x, 2, Range{1, 400, 1}),
                                host::slice(x, 2, Range{0, 402, 2}),
                                host::slice(x, 1, Range{0, 600, 3}),
                                host::slice(flat, 1, Range{5, 401, 1}),
                                host::slice(flat, 1, Range{1, 402, 2}),
                                host::permute(host::slice(x, 2, Range{0, 300, 1}), {1, 0, 2}),
                                host::expand(host::slice(x, 1, Range{7, 8, 1}), {3, 500, 402})};
    for (const HostHandle& view : views) {
      CAPTURE(to_string(view->shape()));
      const HostHandle copy = CpuOps::float_contiguous(view);
      std::vector<Dims> all = {{0}, {1}, {0, 1}};
      if (view->shape().rank() == 3) all.insert(all.end(), {{2}, {1, 2}, {0, 2}, {0, 1, 2}});
      for (const Dims& dims : all) {
        for (const bool keepdim : {true, false}) {
          CHECK(same_bits(CpuOps::float_amax(view, dims, keepdim),
                          CpuOps::float_amax(copy, dims, keepdim)));
          CHECK(same_bits(CpuOps::float_amin(view, dims, keepdim),
                          CpuOps::float_amin(copy, dims, keepdim)));
          check_close(CpuOps::float_sum(view, dims, keepdim),
                      CpuOps::float_sum(copy, dims, keepdim), dtype == bf16 ? 1.0 : 1e-3);
          check_close(CpuOps::float_mean(view, dims, keepdim),
                      CpuOps::float_mean(copy, dims, keepdim), dtype == bf16 ? 1e-2 : 1e-6);
        }
      }
      check_deterministic([&] {
        return std::vector<HostHandle>{CpuOps::float_sum(view, {0, 1}, false),
                                       CpuOps::float_sum(view, {1}, false)};
      });
    }
  }
}
