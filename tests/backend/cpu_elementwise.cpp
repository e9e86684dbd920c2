// Cpu's elementwise ops over every kind of layout and every way of handing over operands.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "kiln/core/error.h"
#include "tests/backend/neural_check.h"
#include "tests/support/throws.h"

using namespace kiln;
using namespace kiln::test;

namespace {

// Around the lanes of every instruction set, the chunks of the engine and the grain of a loop.
const int64_t kSizes[] = {0, 1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 511, 512, 513, 32767, 32769};

// A tensor of that shape whose dims lie in that order in memory.
HostHandle lying(const Shape& shape, const Dims& order, DType dtype, uint64_t seed) {
  Shape in_memory;
  Dims back = order;
  for (int i = 0; i < order.rank(); ++i) {
    in_memory.push_back(shape[static_cast<int>(order[i])]);
    back[static_cast<int>(order[i])] = i;
  }
  return host::permute(random_tensor(in_memory, dtype, seed), back);
}

}  // namespace

TEST_CASE("Cpu: elementwise ops at sizes around lanes, chunks and pieces") {
  at_every_target([] {
    for (const int64_t n : kSizes) {
      CAPTURE(n);
      for (const DType dtype : {f32, f64, f16, bf16}) {
        const HostHandle a = random_tensor({n}, dtype, 1);
        const HostHandle b = random_tensor({n}, dtype, 2);
        check_close(CpuOps::float_add(a, b), Reference::float_add(a, b), 0.0);
        check_close(CpuOps::float_mul_scalar(a, 2.5), Reference::float_mul_scalar(a, 2.5), 0.0);
        check_close(CpuOps::float_rsub_scalar(a, 2), Reference::float_rsub_scalar(a, 2), 0.0);
        check_close(CpuOps::float_relu(a), Reference::float_relu(a), 0.0);
        check_close(CpuOps::float_greater(a, b), Reference::float_greater(a, b), 0.0);
        const HostHandle mask = CpuOps::float_greater_scalar(a, 0.0);
        check_close(CpuOps::float_mask_where(a, mask, b), Reference::float_mask_where(a, mask, b),
                    0.0);
      }
    }
  });
}

TEST_CASE("Cpu: broadcasting in every combination of inner and outer dims") {
  const Shape shapes[] = {{3, 4, 20}, {1, 4, 20}, {3, 1, 20}, {3, 4, 1}, {1, 1, 20},
                          {3, 1, 1},  {1, 1, 1},  {20},       {4, 1},    {}};
  for (const DType dtype : {f32, bf16}) {
    for (const Shape& left : shapes) {
      for (const Shape& right : shapes) {
        CAPTURE(to_string(left));
        CAPTURE(to_string(right));
        const HostHandle a = random_tensor(left, dtype, 1);
        const HostHandle b = random_tensor(right, dtype, 2);
        const HostHandle mask = CpuOps::float_lower_scalar(b, 0.1);
        check_close(CpuOps::float_sub(a, b), Reference::float_sub(a, b), 0.0);
        check_close(CpuOps::float_lower(a, b), Reference::float_lower(a, b), 0.0);
        check_close(CpuOps::float_mask_where(a, mask, b), Reference::float_mask_where(a, mask, b),
                    0.0);
        check_close(CpuOps::float_gelu_backward(a, b, false),
                    Reference::float_gelu_backward(a, b, false), kernel_tolerance(dtype));
      }
    }
  }
}

TEST_CASE("Cpu: an operand that is one row for all rows") {
  at_every_target([] {
    for (const int64_t columns : {2, 3, 16, 17, 64, 127, 128, 129}) {
      for (const int64_t rows : {7, 8, 9, 70, 4000}) {
        if (rows * columns > 300 * 1000) continue;
        CAPTURE(rows);
        CAPTURE(columns);
        for (const DType dtype : {f32, f64, bf16}) {
          const HostHandle x = random_tensor({rows, columns}, dtype, 1);
          const HostHandle row = random_tensor({columns}, dtype, 2);
          const HostHandle number = random_tensor({1, 1}, dtype, 3);
          const HostHandle mask = CpuOps::float_lower_scalar(row, 0.1);
          check_close(CpuOps::float_sub(x, row), Reference::float_sub(x, row), 0.0);
          check_close(CpuOps::float_sub(row, x), Reference::float_sub(row, x), 0.0);
          check_close(CpuOps::float_lower(row, x), Reference::float_lower(row, x), 0.0);
          check_close(CpuOps::float_mask_where(x, mask, row),
                      Reference::float_mask_where(x, mask, row), 0.0);
          check_close(CpuOps::float_mask_where(number, mask, x),
                      Reference::float_mask_where(number, mask, x), 0.0);
          const HostHandle want = Reference::float_mul(x, row);
          check_close(CpuOps::float_mul(random_tensor({rows, columns}, dtype, 1), row), want, 0.0);
          const HostHandle changed = random_tensor({rows, columns}, dtype, 1);
          CpuOps::float_mul(Arg<HostHandle>::in_place(changed), row);
          check_close(changed, want, 0.0);
        }
      }
    }
  });
}

TEST_CASE("Cpu: strided operands") {
  for (const Shape& shape : {Shape{7, 9}, Shape{2, 3, 5}, Shape{300, 300}, Shape{40, 1, 33}}) {
    CAPTURE(to_string(shape));
    for (const DType dtype : {f32, f64, f16}) {
      const HostHandle a = random_tensor(shape, dtype, 1);
      const HostHandle b = random_tensor(shape, dtype, 2);
      const HostHandle want = CpuOps::float_mul(a, b);
      check_close(want, Reference::float_mul(a, b), 0.0);
      const HostHandle layouts_a[] = {a, stored_transposed(a), stored_with_gaps(a)};
      const HostHandle layouts_b[] = {b, stored_transposed(b), stored_with_gaps(b)};
      for (const HostHandle& left : layouts_a) {
        for (const HostHandle& right : layouts_b) {
          CHECK(same_bits(CpuOps::float_mul(left, right), want));
        }
        CHECK(same_bits(CpuOps::float_exp(left), CpuOps::float_exp(a)));
        CHECK(same_bits(CpuOps::float_add_scalar(left, 0.3), CpuOps::float_add_scalar(a, 0.3)));
      }
    }
  }
}

TEST_CASE("Cpu: operands that all lie another way than the result") {
  at_every_target([] {
    for (const Shape& shape :
         {Shape{70, 130}, Shape{3, 20, 41}, Shape{2, 33, 9, 16}, Shape{600, 7}}) {
      Dims order;
      for (int i = 0; i < shape.rank(); ++i) order.push_back(i);
      do {
        CAPTURE(to_string(shape));
        CAPTURE(to_string(order));
        for (const DType dtype : {f32, f64, bf16}) {
          const HostHandle a = lying(shape, order, dtype, 1), b = lying(shape, order, dtype, 2),
                           c = lying(shape, order, dtype, 3);
          const HostHandle x = CpuOps::float_contiguous(a), y = CpuOps::float_contiguous(b),
                           z = CpuOps::float_contiguous(c);
          Shape thin = Shape::filled(shape.rank(), 1);
          thin[1] = shape[1];
          const HostHandle bias = random_tensor(thin, dtype, 4);
          CHECK(same_bits(CpuOps::float_mul(a, b), CpuOps::float_mul(x, y)));
          CHECK(same_bits(CpuOps::float_add(a, bias), CpuOps::float_add(x, bias)));
          CHECK(same_bits(CpuOps::float_mul(bias, b), CpuOps::float_mul(bias, y)));
          CHECK(same_bits(CpuOps::float_mul(a, y), CpuOps::float_mul(x, y)));
          CHECK(same_bits(CpuOps::float_tanh(a), CpuOps::float_tanh(x)));
          CHECK(same_bits(CpuOps::float_greater(a, b), CpuOps::float_greater(x, y)));
          CHECK(same_bits(CpuOps::float_cast(a, f32), CpuOps::float_cast(x, f32)));
          const TernaryFunction addcmul{TernaryFunction::Type::addcmul, 2.0};
          CHECK(same_bits(CpuOps::float_ternary(a, b, c, addcmul),
                          CpuOps::float_ternary(x, y, z, addcmul)));
          const HostHandle want = CpuOps::float_add(x, y), mixed = CpuOps::float_add(want, z);
          CpuOps::float_add(Arg<HostHandle>::in_place(a), b);
          CHECK(same_bits(CpuOps::float_contiguous(a), want));
          CpuOps::float_add(Arg<HostHandle>::in_place(a), z);
          CHECK(same_bits(CpuOps::float_contiguous(a), mixed));
        }
      } while (std::next_permutation(order.begin(), order.end()));
    }
  });
}

TEST_CASE("Cpu: a large result lies as its first operand") {
  const HostHandle x = random_tensor({4096, 4608}, f32, 1);  // 75 MB: past the caches
  const HostHandle y = random_tensor({4608, 4096}, f32, 2);
  const HostHandle turned = CpuOps::float_add(host::permute(x, {1, 0}), y);
  const HostHandle straight = CpuOps::float_add(y, host::permute(x, {1, 0}));
  REQUIRE(turned->strides() == Strides{1, 4608});
  REQUIRE(straight->strides() == Strides{4096, 1});
  const auto* left = x->data_as<const float>();
  const auto* right = y->data_as<const float>();
  const auto* one = turned->data_as<const float>();
  const auto* other = straight->data_as<const float>();
  bool same = true;
  for (int64_t i = 0; i < 4096; ++i) {
    for (int64_t j = 0; j < 4608; ++j) {
      const float want = left[i * 4608 + j] + right[j * 4096 + i];
      same = same && one[i * 4608 + j] == want && other[j * 4096 + i] == want;
    }
  }
  CHECK(same);
}

TEST_CASE("Cpu: an output larger than the caches") {
  // Written past the caches, in the kernel itself and through a buffer; the last piece is not a
  // whole vector.
  const int64_t n = (int64_t{17} << 20) + 5;
  const HostHandle x = CpuOps::float_arange(-1000.0, 1e-4, n, f32, Device());
  const HostHandle sum = CpuOps::float_add(x, x);
  const HostHandle tanh = CpuOps::float_tanh(x);
  const HostHandle half = CpuOps::float_cast(x, bf16);
  const HostHandle bytes = CpuOps::float_greater_scalar(x, 0.0);
  const float* in = x->data_as<float>();
  int64_t wrong = 0;
  for (int64_t i = 0; i < n; i += i < n - 70 ? 61 : 1) {
    wrong += sum->data_as<float>()[i] != in[i] + in[i];
    wrong += !(std::abs(tanh->data_as<float>()[i] - std::tanh(in[i])) <= 3e-7f);
    wrong += half->data_as<bfloat16>()[i].bits != bfloat16(in[i]).bits;
    wrong += bytes->data_as<bool>()[i] != (in[i] > 0.0f);
  }
  CHECK(wrong == 0);
}

TEST_CASE("Cpu: a choice by a mask, of elements of every size") {
  at_every_target([] {
    for (const int64_t n : {1, 7, 16, 33, 64, 65, 200}) {
      CAPTURE(n);
      const HostHandle mask = CpuOps::int_greater_scalar(random_ints({n}, i32, 100, 3), Scalar(50));
      const HostHandle one = host::slice(mask, 0, Range{0, 1, 1});
      for (const DType dtype : {u8, i16, i32, i64}) {
        const HostHandle x = random_ints({n}, dtype, 100, 1), y = random_ints({n}, dtype, 100, 2);
        const HostHandle first = host::slice(y, 0, Range{0, 1, 1});
        for (const HostHandle& m : {mask, one}) {
          for (const HostHandle& value : {y, first}) {
            CHECK(values_of(CpuOps::int_mask_where(x, m, value)) ==
                  values_of(Reference::int_mask_where(x, m, value)));
            CHECK(values_of(CpuOps::int_mask_where(value, m, x)) ==
                  values_of(Reference::int_mask_where(value, m, x)));
          }
          CHECK(values_of(CpuOps::int_mask_fill(x, m, Scalar(3))) ==
                values_of(Reference::int_mask_fill(x, m, Scalar(3))));
        }
      }
    }
  });
}

TEST_CASE("Cpu: a donated operand gives its memory, a borrowed one does not") {
  HostHandle a = random_tensor({5, 6}, f32, 1);
  const HostHandle b = random_tensor({5, 6}, f32, 2);
  const HostHandle want = CpuOps::float_add(a, b);
  CHECK(want->data() != a->data());
  const void* memory = a->data();
  HostHandle got = CpuOps::float_add(std::move(a), b);
  CHECK(got->data() == memory);
  CHECK(same_bits(got, want));

  SUBCASE("the second operand too") {
    HostHandle c = random_tensor({5, 6}, f32, 3);
    const void* second = c->data();
    CHECK(CpuOps::float_sub(b, std::move(c))->data() == second);
  }
  SUBCASE("not when someone else holds the memory") {
    const HostHandle view = host::permute(got, {1, 0});
    const std::vector<double> before = values_of(view);
    const HostHandle other = CpuOps::float_exp(std::exchange(got, HostHandle()));
    CHECK(other->data() != memory);
    CHECK(values_of(view) == before);
  }
  SUBCASE("not when the result has another shape or dtype") {
    const HostHandle wide = CpuOps::float_add(random_tensor({6}, f32, 4), b);
    CHECK(wide->shape() == Shape{5, 6});
    CHECK(CpuOps::float_greater(std::exchange(got, HostHandle()), b)->dtype() == bool_);
  }
  SUBCASE("both operands are one tensor") {
    HostHandle x = random_tensor({40}, f32, 5);
    const HostHandle doubled = CpuOps::float_mul_scalar(x, 2.0);
    const HostHandle sum = CpuOps::float_add(std::move(x), x);  // NOLINT: what donation must bear
    CHECK(same_bits(sum, doubled));
  }
}

TEST_CASE("Cpu: in place writes through every view and counts the write") {
  for (const DType dtype : {f32, f16}) {
    const HostHandle base = random_tensor({4, 10}, dtype, 1);
    const HostHandle view = host::permute(host::slice(base, 1, Range{1, 9, 2}), {1, 0});
    const HostHandle other = random_tensor({4, 4}, dtype, 2);
    const HostHandle want = CpuOps::float_mul(view, other);
    const std::vector<double> before = values_of(base);
    const uint32_t version = base->version();
    const HostHandle got = CpuOps::float_mul(Arg<HostHandle>::in_place(view), other);
    CHECK(got == view);
    CHECK(base->version() != version);
    CHECK(same_bits(view, want));
    const std::vector<double> after = values_of(base);
    for (size_t i = 0; i < after.size(); ++i) {
      const size_t column = i % 10;
      if (column == 0 || column % 2 == 0) CHECK(after[i] == before[i]);
    }
  }
}

TEST_CASE("Cpu: in place beside an operand that shares its memory") {
  for (const int64_t n : {6, 700}) {
    const HostHandle base = random_tensor({n, n}, f32, 1);
    const HostHandle mirrored = host::permute(base, {1, 0});
    const HostHandle want = CpuOps::float_sub(base, mirrored);
    CpuOps::float_sub(Arg<HostHandle>::in_place(base), mirrored);
    CHECK(same_bits(base, want));

    const HostHandle line = random_tensor({n}, f32, 2);
    const HostHandle head = host::slice(line, 0, Range{0, n - 1, 1});
    const HostHandle tail = host::slice(line, 0, Range{1, n, 1});
    const HostHandle sum = CpuOps::float_add(tail, head);
    CpuOps::float_add(Arg<HostHandle>::in_place(tail), head);
    CHECK(same_bits(tail, sum));
  }
}

TEST_CASE("Cpu: NaN in maximum, minimum, clamp, relu and its gradient") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto tensor = [](std::vector<double> values, DType dtype) {
    const auto n = static_cast<int64_t>(values.size());
    return host::from_data(TensorData(values, Shape{n}).cast(dtype), Device());
  };
  at_every_target([&] {
    for (const DType dtype : {f32, f64, bf16}) {
      const HostHandle a = tensor({nan, 1, nan, 2, -3}, dtype);
      const HostHandle b = tensor({1, nan, nan, 3, -4}, dtype);
      const auto is_nan = [](double v) { return v != v; };
      const std::vector<double> most = values_of(CpuOps::float_maximum(a, b));
      const std::vector<double> least = values_of(CpuOps::float_minimum(a, b));
      for (int i = 0; i < 3; ++i) CHECK((is_nan(most[i]) && is_nan(least[i])));
      CHECK(most[3] == 3);
      CHECK(least[4] == -4);
      const std::vector<double> clamped = values_of(CpuOps::float_clamp(a, -1.0, 1.5));
      CHECK(is_nan(clamped[0]));
      CHECK(clamped[3] == 1.5);
      CHECK(clamped[4] == -1);
      CHECK(is_nan(values_of(CpuOps::float_relu(a))[2]));
      CHECK(values_of(CpuOps::float_sign(a)) == std::vector<double>{0, 1, 0, 1, -1});
      const HostHandle g = tensor({5, 6, 7, 8, 9}, dtype);
      CHECK(values_of(CpuOps::float_relu_backward(g, a)) == std::vector<double>{5, 6, 7, 8, 0});
    }
  });
}

TEST_CASE("Cpu: integer arithmetic wraps, and division by zero is refused before writing") {
  const auto ints = [](std::vector<int64_t> values, DType dtype) {
    const auto n = static_cast<int64_t>(values.size());
    return host::from_data(TensorData(values, Shape{n}).cast(dtype), Device());
  };
  const HostHandle a = ints({INT64_MIN, INT64_MAX, -7, 7}, i64);
  const HostHandle b = ints({-1, 2, 2, -2}, i64);
  CHECK(values_of(CpuOps::int_div(a, b))[0] == static_cast<double>(INT64_MIN));
  CHECK(values_of(CpuOps::int_remainder(a, b)) == std::vector<double>{0, 1, 1, -1});
  CHECK(values_of(CpuOps::int_mul(a, b))[1] == -2.0);
  const HostHandle small = ints({-128, 127, 100, -7}, i8);
  CHECK(values_of(CpuOps::int_neg(small)) == std::vector<double>{-128, -127, -100, 7});
  CHECK(values_of(CpuOps::int_add_scalar(small, 100)) == std::vector<double>{-28, -29, -56, 93});
  CHECK(values_of(CpuOps::int_mul(small, small)) == std::vector<double>{0, 1, 16, 49});
  CHECK(values_of(CpuOps::int_clamp(small, -1000, 50)) == std::vector<double>{-128, 50, 50, -7});
  CHECK(values_of(CpuOps::int_lower_scalar(small, 300)) == std::vector<double>{1, 1, 1, 1});
  CHECK(values_of(CpuOps::int_greater_scalar(small, -300)) == std::vector<double>{1, 1, 1, 1});
  CHECK(values_of(CpuOps::int_equal_scalar(small, 127 + 256)) == std::vector<double>{0, 0, 0, 0});

  const HostHandle x = ints({4, 5}, i32);
  const HostHandle zero = ints({2, 0}, i32);
  const std::string message =
      message_of<ValueError>([&] { CpuOps::int_div(Arg<HostHandle>::in_place(x), zero); });
  CHECK(message.find("zero") != std::string::npos);
  CHECK(values_of(x) == std::vector<double>{4, 5});
}

TEST_CASE("Cpu: quotients are truncated before they are rounded") {
  at_every_target([] {
    // Quotients a little below whole numbers, which round to these in float.
    std::vector<double> x, y;
    for (int i = 1; i < 2000; ++i) {
      const float divisor = 1.0f + static_cast<float>(i) * 0.00371f;
      const float whole = static_cast<float>(i * 37 % 8191) * divisor;
      for (const float near : {whole, std::nextafter(whole, 0.0f), std::nextafter(whole, 1e30f)}) {
        x.push_back(i % 2 == 0 ? near : -near);
        y.push_back(i % 3 == 0 ? -divisor : divisor);
      }
    }
    for (const double v :
         std::initializer_list<double>{1e30, -1e30, 16777218.0, 0.0, -0.0, 1e-40, HUGE_VAL, NAN}) {
      for (const double w : {3.0, -0.1, 1e-30, 0.0, HUGE_VAL}) {
        x.push_back(v);
        y.push_back(w);
      }
    }
    const Shape shape{static_cast<int64_t>(x.size())};
    const HostHandle a = host::from_data(TensorData(x, shape).cast(f32), Device());
    const HostHandle b = host::from_data(TensorData(y, shape).cast(f32), Device());
    const TensorData z =
        host::into_data(CpuOps::float_binary(a, b, BinaryFunction::Type::trunc_divide));
    const auto p = host::into_data(a), q = host::into_data(b);
    int wrong = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const float want = static_cast<float>(std::trunc(static_cast<double>(p.as<float>()[i]) /
                                                       static_cast<double>(q.as<float>()[i])));
      const float got = z.as<float>()[i];
      wrong += !(got == want || (std::isnan(got) && std::isnan(want)));
    }
    CHECK(wrong == 0);
  });
}

TEST_CASE("Cpu: integers shift by any number at every target") {
  at_every_target([] {
    for (const DType dtype : {i64, i32, i16, i8, u8}) {
      const HostHandle x = random_ints({997}, dtype, 120, 1);
      const HostHandle y = random_ints({997}, dtype, 70, 2);
      for (const IntFunction f : {IntFunction::shift_left, IntFunction::shift_right}) {
        const HostHandle got = CpuOps::int_binary(x, y, f);
        const HostHandle want = Reference::int_binary(x, y, f);
        CHECK(same_bits(got, want));
      }
    }
  });
}

TEST_CASE("Cpu: casts between every pair of dtypes") {
  const std::vector<double> values = {0,
                                      -0.0,
                                      1,
                                      -1.5,
                                      127.7,
                                      -128.2,
                                      255,
                                      300,
                                      -300,
                                      40000,
                                      70000,
                                      -70000,
                                      3e9,
                                      -3e9,
                                      1e19,
                                      -1e19,
                                      1e40,
                                      std::numeric_limits<double>::infinity(),
                                      std::numeric_limits<double>::quiet_NaN()};
  // Alone, behind blocks of numbers that fit every dtype, and each one for all.
  std::vector<double> long_values(150, 3.0);
  for (size_t i = 0; i < 140; ++i) long_values[i] = static_cast<double>(i % 100);
  long_values.insert(long_values.end(), values.begin(), values.end());
  const DType dtypes[] = {f64, f32, f16, bf16, i64, i32, i16, i8, u8, bool_};
  const auto check = [](const TensorData& source, const HostHandle& x, DType to) {
    CAPTURE(to_string(source.dtype()));
    CAPTURE(to_string(to));
    const std::vector<double> want = source.cast(to).to_doubles();
    const HostHandle got = is_floating_point(source.dtype()) ? CpuOps::float_cast(x, to)
                           : source.dtype() == bool_         ? CpuOps::bool_into_float(x, to)
                                                             : CpuOps::int_cast(x, to);
    const std::vector<double> have = values_of(got);
    for (size_t i = 0; i < have.size(); ++i) {
      const double expected = want[want.size() == 1 ? 0 : i];
      CAPTURE(i);
      CHECK((have[i] == expected || (std::isnan(have[i]) && std::isnan(expected))));
    }
  };
  at_every_target([&] {
    for (const DType from : dtypes) {
      const auto size = static_cast<int64_t>(long_values.size());
      const TensorData all = TensorData(long_values, Shape{size}).cast(from);
      for (const DType to : dtypes) {
        check(all, host::from_data(all, Device()), to);
        for (const double value : values) {
          const TensorData one = TensorData(std::vector<double>{value}, Shape{1}).cast(from);
          check(one, host::expand(host::from_data(one, Device()), {17}), to);
        }
      }
    }
  });
}

TEST_CASE("Cpu: 16-bit floats convert as their scalar forms do, all of them") {
  std::vector<float> all(1 << 16);
  HostHandle halves = host::empty({1 << 16}, f16, Device());
  HostHandle brains = host::empty({1 << 16}, bf16, Device());
  for (int i = 0; i < 1 << 16; ++i) {
    halves->data_as<uint16_t>()[i] = static_cast<uint16_t>(i);
    brains->data_as<uint16_t>()[i] = static_cast<uint16_t>(i);
  }
  Values random(9);
  std::vector<float> singles;
  for (int i = 0; i < 50000; ++i) {
    const auto bits = static_cast<uint32_t>(random.next_int(int64_t{1} << 32));
    singles.push_back(std::bit_cast<float>(bits));
    // Near float16's range, and on its rounding ties.
    singles.push_back(std::bit_cast<float>((bits & 0x0fffe000u) + 0x38001000u));
    singles.push_back(static_cast<float>(random.next()) * 1e-6f);
  }
  const HostHandle x =
      host::from_data(TensorData(singles, Shape{static_cast<int64_t>(singles.size())}), Device());
  at_every_target([&] {
    const HostHandle a = CpuOps::float_cast(halves, f32);
    const HostHandle b = CpuOps::float_cast(brains, f32);
    int wrong = 0;
    const auto differ = [](float got, float want) {
      return std::isnan(want) ? !std::isnan(got)
                              : std::bit_cast<uint32_t>(got) != std::bit_cast<uint32_t>(want);
    };
    for (int i = 0; i < 1 << 16; ++i) {
      const auto bits = static_cast<uint16_t>(i);
      wrong += differ(a->data_as<float>()[i], float16::from_bits(bits));
      wrong += differ(b->data_as<float>()[i], bfloat16::from_bits(bits));
    }
    const HostHandle h = CpuOps::float_cast(x, f16);
    const HostHandle bf = CpuOps::float_cast(x, bf16);
    for (size_t i = 0; i < singles.size(); ++i) {
      wrong += differ(h->data_as<float16>()[i], float16(singles[i]));
      wrong += differ(bf->data_as<bfloat16>()[i], bfloat16(singles[i]));
    }
    CHECK(wrong == 0);
  });
}

TEST_CASE("Cpu: integers of 64 bits become floats by one rounding") {
  at_every_target([] {
    for (const int64_t n : {1, 7, 32, 64, 100, 40001}) {
      TensorData data(Shape{n}, i64);
      const std::span<int64_t> x = data.as_mutable<int64_t>();
      for (size_t i = 0; i < x.size(); ++i) {
        const auto k = static_cast<int64_t>(i);
        // Some stretches within 2^53 and some beyond, where two roundings would differ.
        x[i] = i % 200 < 100
                   ? (k - 20000) * 123457
                   : (int64_t{1} << (40 + i % 23)) + (int64_t{1} << (16 + i % 23)) + k % 3 - 1;
        if (i % 1000 == 999) x[i] = std::numeric_limits<int64_t>::max() - k;
        if (i % 1000 == 998) x[i] = std::numeric_limits<int64_t>::min() + k;
      }
      const HostHandle floats = CpuOps::int_into_float(host::from_data(data, Device()), f32);
      bool same = true;
      for (size_t i = 0; i < x.size(); ++i) {
        same = same && floats->data_as<float>()[i] == static_cast<float>(x[i]);
      }
      CHECK(same);
    }
  });
}
