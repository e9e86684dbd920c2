// The GPU backend held against the reference, its kernels being plain C++ under sanitizers.
#include "kiln/backend/conformance/conformance.h"

#include <cstdlib>

#include <doctest/doctest.h>

#include "tests/gpu/device_under_test.h"

using namespace kiln;

namespace {

void expect_host_conformance(const ConformanceOptions& options) {
  const Device device = test::gpu_device();
  const auto failures = run_conformance(*detail::backend_tables[device.type].load(),
                                        *detail::view_tables[device.type].load(), device, options);
  for (const auto& failure : failures) FAIL_CHECK(to_string(failure));
}

// $KILN_GPU_HOST_ROWS (names, divided by |), else rows that use every kernel text once and are
// quick. All rows and dtypes where KILN_GPU_HOST_ALL is set (script/gpu_host --all).
constexpr const char* kRows =
    "float_add|float_sum|float_argmin|float_matmul|softmax|layer_norm|group_norm|batch_norm|"
    "conv2d|cross_entropy|attention|pool2d|optimizer_step|index_add|gather|scatter_add|cumsum|"
    "searchsorted|dropout|embedding|random|float_cat|float_flip";

std::string rows() {
  const char* chosen = std::getenv("KILN_GPU_HOST_ROWS");
  return chosen == nullptr ? kRows : chosen;
}
bool all_rows() { return std::getenv("KILN_GPU_HOST_ALL") != nullptr; }

}  // namespace

TEST_CASE("kernels as C++ conform") {
  expect_host_conformance(
      {.float_dtypes = {f32}, .int_dtypes = {i64}, .only = all_rows() ? std::string() : rows()});
}

TEST_CASE("kernels as C++ conform in other dtypes") {
  if (!all_rows()) return;
  expect_host_conformance({.float_dtypes = {f16, bf16, f64}, .int_dtypes = {}, .only = kRows});
  expect_host_conformance(
      {.float_dtypes = {},
       .int_dtypes = {i32, i16, i8, u8},
       .only = "int_add|int_sum|int_div|int_argsort|int_matmul|int_gather|int_cumsum"});
}
