// Every op case on the OpenCL device, beside the cpu: results, gradients, and that no whole tensor
// is read back to the host but by the names of tests/ops/host_reads.h.
//
// A driver compiles about a kernel for each op and dtype, which takes most of the time. So every
// case runs in one dtype (its first of f32, i64, bool, c64), and the first case of each name in
// every dtype.
#include <algorithm>
#include <set>

#include <doctest/doctest.h>

#include "tests/gpu/device_under_test.h"
#include "tests/ops/case.h"
#include "tests/ops/host_reads.h"

namespace kiln::ops {
namespace {

struct Outcome {
  Tensors results;
  Tensors gradients;
  uint64_t reads = 0;
};

bool gets_gradient(const Case& c, const Input& input, DType dtype) {
  const bool follows = input.kind == Input::Kind::real || input.kind == Input::Kind::complex;
  return follows && c.derivatives > 0 && (is_floating_point(dtype) || is_complex(dtype));
}

// Different numbers for neighbours, the same on every device.
Tensor weights_of(const Tensor& y) {
  TensorData data(y.shape(), f64);
  auto values = data.as_mutable<double>();
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<double>(i * 7 % 11) / 8 - 0.5;
  }
  return Tensor(data).to(y.dtype()).to(y.device());
}

Outcome run(const Case& c, DType dtype, Device device) {
  Tensors inputs = make_inputs(c, c.inputs, dtype);
  Tensors leaves;
  for (size_t i = 0; i < inputs.size(); ++i) {
    inputs[i] = inputs[i].detach().to(device);
    if (!gets_gradient(c, c.inputs[i], dtype)) continue;
    inputs[i].requires_grad_();
    leaves.push_back(inputs[i]);
  }
  const bool counts = device == test::gpu_device();
  const uint64_t before = counts ? test::gpu().counters(0).reads : 0;
  Outcome out;
  out.results = c.call(inputs);
  Tensor sum;
  for (const Tensor& y : out.results) {
    if (!y.defined() || !y.requires_grad()) continue;
    const Tensor parts = is_complex(y.dtype()) ? view_as_real(y) : y;
    const Tensor part = (parts * weights_of(parts)).sum().to(f32);
    sum = sum.defined() ? sum + part : part;
  }
  if (sum.defined()) {
    const Gradients grads = sum.backward();
    for (const Tensor& x : leaves) {
      const auto g = grads.get(x);
      out.gradients.push_back(g ? *g : zeros_like(x));
    }
  }
  if (counts) {
    test::gpu().synchronize(0);
    out.reads = test::gpu().counters(0).reads - before;
  }
  return out;
}

Tensors on_host(const Tensors& xs) {
  Tensors out;
  for (const Tensor& x : xs) out.push_back(x.to(Device(kCpu)));
  return out;
}

// Sums in another order than the cpu's.
constexpr double kOrder = 10;

// Returns how often it read a whole tensor.
uint64_t compare_devices(const Case& c, DType dtype) {
  const Outcome got = run(c, dtype, test::gpu_device());
  if (c.shape_only_why.empty()) {
    const Outcome want = run(c, dtype, Device(kCpu));
    const double tolerance = kOrder * c.rtol_factor * tolerance_of(dtype);
    CHECK(difference(on_host(got.results), want.results, tolerance) == "");
    CHECK(difference(on_host(got.gradients), want.gradients, 10 * tolerance) == "");
  }
  return got.reads;
}

bool is_among(const DTypes& list, DType dtype) {
  return std::ranges::find(list, dtype) != list.end();
}

DTypes dtypes_of(const Case& c, bool is_first) {
  const bool has_f64 = test::gpu().properties(0).has_float64;
  DTypes all;
  for (const DType dtype : c.dtype_list) {
    if (has_f64 || (dtype != f64 && dtype != DType::c128)) all.push_back(dtype);
  }
  if (is_first || all.empty()) return all;
  for (const DType dtype : {f32, i64, bool_, DType::c64}) {
    if (is_among(all, dtype)) return {dtype};
  }
  return {all[0]};
}

TEST_CASE("op cases: the OpenCL device agrees with the cpu") {
  if (!test::has_gpu()) return;
  REQUIRE(!cases().empty());
  std::set<std::string> names;
  std::set<std::string> reading;
  for (const Case& c : cases()) {
    for (const DType dtype : dtypes_of(c, names.insert(c.name).second)) {
      INFO(describe(c, dtype));
      try {
        if (compare_devices(c, dtype) > 0) reading.insert(c.name);
      } catch (const std::exception& error) {
        FAIL_CHECK(describe(c, dtype), ": ", std::string(error.what()));
      }
    }
  }
  for (const std::string& name : reading) {
    INFO(name, " reads whole tensors back and is not in the list");
    CHECK(read_whole().contains(name));
  }
}

}  // namespace
}  // namespace kiln::ops
