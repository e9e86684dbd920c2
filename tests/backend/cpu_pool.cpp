// Cpu's pooling against Reference.
#include <limits>

#include "neural_check.h"

using namespace kiln;
using namespace kiln::test;

namespace {

struct Problem {
  Shape x;
  PoolOptions options;
};

constexpr int64_t kFar = int64_t{1} << 40;

const std::vector<Problem>& problems() {
  static const std::vector<Problem> list = {
      {{2, 3, 8, 8}, {}},
      {{2, 3, 24, 24}, {}},
      {{1, 2, 9, 11}, {{3, 3}, {2, 2}, {1, 1}, {1, 1}, false, true}},
      {{1, 2, 9, 41}, {{3, 3}, {2, 2}, {1, 1}, {1, 1}, true, false}},
      {{1, 2, 10, 70}, {{3, 2}, {1, 1}, {1, 0}, {1, 1}, false, false}},
      {{1, 1, 13, 50}, {{2, 3}, {3, 3}, {1, 1}, {1, 1}, true, true}},
      {{2, 1, 7, 7}, {{7, 7}, {7, 7}, {0, 0}, {1, 1}, false, true}},
      {{1, 1, 1, 1}, {{1, 1}, {1, 1}, {0, 0}, {1, 1}, false, true}},
      {{1, 1, 5, 1}, {{2, 1}, {2, 1}, {1, 0}, {1, 1}, true, false}},
      {{0, 2, 6, 6}, {}},
      {{3, 0, 6, 6}, {}},
      {{1, 1, 34, 66}, {{2, 2}, {2, 2}, {0, 0}, {1, 1}, true, true}},
      {{2, 2, 11, 33}, {{3, 3}, {2, 2}, {1, 1}, {1, 1}, false, true}},  // whole vectors
      {{1, 2, 6, 35}, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, false, true}},
      {{1, 1, 9, 80}, {{4, 5}, {3, 2}, {2, 2}, {1, 3}, true, true}},
      {{1, 1, 3, 70}, {{2, 4}, {1, 1}, {1, 2}, {3, 2}, false, true}},
      {{1, 2, 5, 130}, {{2, 3}, {2, 5}, {1, 1}, {1, 1}, false, true}},
      // Strides and dilations far beyond the plane.
      {{1, 2, 5, 9}, {{2, 3}, {kFar, kFar}, {1, 1}, {1, 1}, false, true}},
      {{1, 2, 5, 9}, {{1, 1}, {1, 1}, {0, 0}, {kFar, kFar}, false, true}},
  };
  return list;
}

void check_max(const Problem& p, DType dtype) {
  CAPTURE(to_string(p.x));
  CAPTURE(to_string(dtype));
  const HostHandle x = random_tensor(p.x, dtype, 1);
  const auto [y, at] = Cpu::float_max_pool2d(x, p.options);
  const auto [want_y, want_at] = Reference::float_max_pool2d(x, p.options);
  CHECK(same_bits(y, want_y));
  CHECK(same_bits(at, want_at));
  CHECK(same_bits(Cpu::float_max_pool2d_values(x, p.options), want_y));
  const HostHandle g = random_tensor(y->shape(), dtype, 2);
  check_close(Cpu::float_max_pool2d_backward(g, at, p.x, p.options),
              Reference::float_max_pool2d_backward(g, at, p.x, p.options), kernel_tolerance(dtype));
}

}  // namespace

TEST_CASE("max_pool2d: windows, padding, dilation, ceil_mode") {
  at_every_target([] {
    for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
      for (const Problem& p : problems()) check_max(p, dtype);
      check_max({{1, 2, 12, 40}, {{3, 2}, {2, 1}, {1, 1}, {2, 3}, false, true}}, dtype);
      check_max({{1, 2, 12, 40}, {{2, 2}, {3, 3}, {1, 1}, {5, 5}, true, true}}, dtype);
    }
  });
}

TEST_CASE("max_pool2d: the first of equals wins, NaN beats all, -inf is a value") {
  const HostHandle x = random_tensor({2, 2, 6, 36}, DType::f32, 1);
  auto* values = x->data_as<float>();
  for (int64_t i = 0; i < x->numel(); i += 3) values[i] = 2.0f;
  for (int64_t i = 1; i < x->numel(); i += 7) values[i] = std::numeric_limits<float>::quiet_NaN();
  for (int64_t i = 200; i < 300; ++i) values[i] = -std::numeric_limits<float>::infinity();
  at_every_target([&] {
    for (const PoolOptions& options :
         {PoolOptions{}, PoolOptions{{3, 3}, {1, 1}, {1, 1}, {1, 1}, false, true},
          PoolOptions{{3, 3}, {2, 2}, {1, 1}, {1, 1}, false, true}}) {
      const auto [y, at] = Cpu::float_max_pool2d(x, options);
      const auto [want_y, want_at] = Reference::float_max_pool2d(x, options);
      check_close(y, want_y, 0.0);
      CHECK(same_bits(at, want_at));
      check_close(Cpu::float_max_pool2d_values(x, options), want_y, 0.0);
    }
  });
}

TEST_CASE("avg_pool2d and its gradient") {
  at_every_target([] {
    for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
      for (const Problem& p : problems()) {
        CAPTURE(to_string(p.x));
        const HostHandle x = random_tensor(p.x, dtype, 1);
        const HostHandle y = Cpu::float_avg_pool2d(x, p.options);
        check_close(y, Reference::float_avg_pool2d(x, p.options), kernel_tolerance(dtype));
        const HostHandle g = random_tensor(y->shape(), dtype, 2);
        check_close(Cpu::float_avg_pool2d_backward(g, p.x, p.options),
                    Reference::float_avg_pool2d_backward(g, p.x, p.options),
                    kernel_tolerance(dtype));
      }
    }
  });
}

TEST_CASE("pooling: operands with gaps, the same bits at any number of threads") {
  const HostHandle x = random_tensor({3, 20, 30, 31}, DType::f32, 1);
  const PoolOptions options = {{3, 3}, {2, 2}, {1, 1}, {1, 1}, false, true};
  CHECK(same_bits(Cpu::float_max_pool2d(stored_with_gaps(x), options).first,
                  Cpu::float_max_pool2d(x, options).first));
  CHECK(same_bits(Cpu::float_max_pool2d_values(stored_with_gaps(x), options),
                  Cpu::float_max_pool2d(x, options).first));
  CHECK(same_bits(Cpu::float_avg_pool2d(stored_transposed(x), options),
                  Cpu::float_avg_pool2d(x, options)));
  check_deterministic([&] {
    auto [y, at] = Cpu::float_max_pool2d(x, options);
    const HostHandle average = Cpu::float_avg_pool2d(x, options);
    return std::vector<HostHandle>{
        y, at, Cpu::float_max_pool2d_backward(y, at, x->shape(), options), average,
        Cpu::float_avg_pool2d_backward(average, x->shape(), options)};
  });
}
