// The OpenCL device held against the reference backend, op by op.
#include "kiln/backend/conformance/conformance.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include <doctest/doctest.h>

#include "tests/gpu/device_under_test.h"

using namespace kiln;

namespace {

void expect_conformance(const ConformanceOptions& options) {
  const Device device = test::gpu_device();
  const auto failures = run_conformance(*detail::backend_tables[device.type].load(),
                                        *detail::view_tables[device.type].load(), device, options);
  for (const auto& failure : failures) FAIL_CHECK(to_string(failure));
}

// Rows of $KILN_TEST_GPU_ROWS, in float32 and int64 alone: for CUDA's runtime on the driver that
// tests play, which compiles each kernel as C++. The kernels themselves run under OpenCL and
// script/gpu_host.
const char* chosen_rows() { return std::getenv("KILN_TEST_GPU_ROWS"); }

}  // namespace

// Every row of the table; the functions of functions.def, which are many, have a test below.
TEST_CASE("the OpenCL device conforms") {
  if (!test::has_gpu()) return;
  const char* rows = chosen_rows();
  expect_conformance({.float_dtypes = {f32},
                      .int_dtypes = {i64},
                      .only = rows == nullptr ? "" : rows,
                      .but = {"float_unary"}});
}

// Rows that have kernels of their own; every op case runs in every dtype in op_cases.cpp. A kernel
// of each row in each dtype would take minutes to compile.
constexpr const char* kFloatRows =
    "float_add|float_sum|float_mean|float_argmin|float_cast|float_matmul|float_softmax|"
    "float_layer_norm|float_batch_norm|float_conv2d|float_cross_entropy|float_attention|"
    "float_max_pool2d|float_optimizer_step|float_index_add|float_scatter_add|float_cumsum";

TEST_CASE("the OpenCL device conforms in other floats") {
  if (!test::has_gpu() || chosen_rows() != nullptr) return;
  expect_conformance({.float_dtypes = {f16, bf16}, .int_dtypes = {}, .only = kFloatRows});
  if (!test::gpu().properties(0).has_float64) return;
  expect_conformance({.float_dtypes = {f64}, .int_dtypes = {}, .only = kFloatRows});
}

TEST_CASE("the OpenCL device conforms in other integers") {
  if (!test::has_gpu() || chosen_rows() != nullptr) return;
  expect_conformance(
      {.float_dtypes = {},
       .int_dtypes = {i32, i16, i8, u8},
       .only = "int_add|int_sum|int_div|int_binary|int_argsort|int_matmul|int_gather"});
}

TEST_CASE("the OpenCL device computes the functions of functions.def") {
  if (!test::has_gpu() || chosen_rows() != nullptr) return;
  const Device device = test::gpu_device();
  std::vector<float> numbers;
  for (int i = -60; i <= 60; ++i) numbers.push_back(static_cast<float>(i) * 0.11f);
  const float special[] = {0.0f,
                           1.0f,
                           30.0f,
                           -30.0f,
                           100.0f,
                           -100.0f,
                           std::numeric_limits<float>::infinity(),
                           -std::numeric_limits<float>::infinity(),
                           std::numeric_limits<float>::quiet_NaN()};
  numbers.insert(numbers.end(), std::begin(special), std::end(special));
  const TensorData data(numbers, Shape{static_cast<int64_t>(numbers.size())});
  const ErasedTensor wide = Dispatch::float_cast(Dispatch::float_from_data(data, kReference), f64);
  const ErasedTensor x = Dispatch::float_from_data(data, device);
  for (int i = 0; i < static_cast<int>(UnaryFunction::Type::count); ++i) {
    const auto type = static_cast<UnaryFunction::Type>(i);
    const UnaryFunction f{type, 1.0, 2.0, 3.0};
    INFO(std::string(name_of(type)));
    const TensorData want = Dispatch::float_into_data(Dispatch::float_unary(wide, f));
    const TensorData got = Dispatch::float_into_data(Dispatch::float_unary(x, f));
    for (int64_t k = 0; k < want.numel(); ++k) {
      const auto w = static_cast<double>(static_cast<float>(want.item(k)));
      const double g = got.item(k);
      const bool same = std::isnan(w)
                            ? std::isnan(g)
                            : w == g || std::abs(w - g) <= 2e-6 * std::max(1e-30, std::abs(w)) ||
                                  std::abs(w - g) <= 3e-7;
      INFO("at ", data.item(k), ": ", g, " for ", w);
      CHECK(same);
    }
  }
}
