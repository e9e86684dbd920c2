// Every op case on the cpu against the reference backend, which computes in double precision with
// plain loops, in every dtype of the case.
#include <doctest/doctest.h>

#include "tests/ops/case.h"

namespace kiln::ops {
namespace {

std::vector<std::vector<double>> values_of(const Tensors& xs) {
  std::vector<std::vector<double>> out;
  for (const Tensor& x : xs) out.push_back(doubles_of(x));
  return out;
}

bool same_bits(const std::vector<std::vector<double>>& a,
               const std::vector<std::vector<double>>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].size() != b[i].size() ||
        std::memcmp(a[i].data(), b[i].data(), a[i].size() * sizeof(double)) != 0) {
      return false;
    }
  }
  return true;
}

void check(const Case& c, DType dtype) {
  INFO(describe(c, dtype));
  const Tensors inputs = make_inputs(c, c.inputs, dtype);
  const auto before = values_of(inputs);
  const Tensors got = c.call(inputs);
  CHECK_MESSAGE(same_bits(before, values_of(inputs)), "the op changed its inputs");
  for (const Tensor& x : got) CHECK(x.device() == Device(kCpu));
  if (!c.shape_only_why.empty()) return;

  Tensors expected = c.call(make_inputs(c, c.inputs, dtype, Device(kReference)));
  for (Tensor& x : expected) {
    // What is made of nothing lives on the default device.
    if (!c.inputs.empty()) CHECK(x.device() == Device(kReference));
    x = x.to(Device(kCpu));
  }
  CHECK(difference(got, expected, c.rtol_factor * tolerance_of(dtype)) == "");
}

TEST_CASE("op cases: cpu and reference backend agree") {
  REQUIRE(!cases().empty());
  for (const Case& c : cases()) {
    for (const DType dtype : c.dtype_list) {
      try {
        check(c, dtype);
      } catch (const std::exception& error) {
        FAIL_CHECK(describe(c, dtype), ": ", std::string(error.what()));
      }
    }
  }
}

}  // namespace
}  // namespace kiln::ops
