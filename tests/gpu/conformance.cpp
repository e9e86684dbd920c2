// The OpenCL device held against the reference backend, op by op.
#include "kiln/backend/conformance/conformance.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "tests/gpu/opencl.h"

using namespace kiln;

namespace {

void expect_conformance(const ConformanceOptions& options) {
  const Device device("opencl");
  const auto failures = run_conformance(*detail::backend_tables[device.type].load(),
                                        *detail::view_tables[device.type].load(), device, options);
  for (const auto& failure : failures) FAIL_CHECK(to_string(failure));
}

}  // namespace

// Every row of the table with floats. float_unary has a test of its own below: the suite has it
// compute special functions, which are the host's here, for a minute.
TEST_CASE("the OpenCL device conforms") {
  if (!test::has_opencl()) return;
  expect_conformance(
      {.float_dtypes = {f32}, .int_dtypes = {i64}, .only = "float_|q_", .but = {"float_unary"}});
}

// What differs between dtypes: how elements are read, computed and written.
TEST_CASE("the OpenCL device conforms in every dtype") {
  if (!test::has_opencl()) return;
  std::vector<DType> floats = {f16, bf16};
  if (opencl::device_properties().has_float64) floats.push_back(f64);
  expect_conformance({.float_dtypes = floats,
                      .int_dtypes = {},
                      .only = "float_add|float_sum|float_argmin|float_cast|float_matmul",
                      .but = {"float_add_scalar"}});
  expect_conformance(
      {.float_dtypes = {f32},
       .int_dtypes = {i64, u8, i16},
       .only = "bool_|int_add|int_sum|int_cast|int_div|int_binary|int_argsort|int_scatter_add"});
}

TEST_CASE("the OpenCL device computes the functions of functions.def") {
  if (!test::has_opencl()) return;
  const Device device("opencl");
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
