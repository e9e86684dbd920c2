// Every op case on inputs whose memory has gaps and swapped dims, against contiguous ones.
#include <doctest/doctest.h>

#include "tests/ops/case.h"

namespace kiln::ops {
namespace {

// The same values with every second element of memory unused (filled with the first value, negated)
// and, with `swapped`, the first two dims exchanged in memory.
Tensor spread(const Tensor& x, bool swapped) {
  if (x.dim() == 0) return x;
  const Tensor source = swapped && x.dim() > 1 ? x.transpose(0, 1).contiguous() : x;
  const Tensor other = x.dtype() == bool_ ? source.logical_not() : source.flip({0});
  const Tensor wide = stack({source, other}, -1).select(-1, 0);
  return swapped && x.dim() > 1 ? wide.transpose(0, 1) : wide;
}

void check_strided(const Case& c, DType dtype) {
  const Tensors inputs = make_inputs(c, c.inputs, dtype);
  const Tensors expected = c.call(inputs);
  for (const bool swapped : {false, true}) {
    INFO(describe(c, dtype), swapped ? ", swapped dims" : ", gaps");
    Tensors spread_inputs;
    for (const Tensor& x : inputs) spread_inputs.push_back(spread(x, swapped));
    CHECK(difference(c.call(spread_inputs), expected, c.rtol_factor * tolerance_of(dtype)) == "");
  }
}

TEST_CASE("op cases: strided inputs give what contiguous ones give") {
  for (const Case& c : cases()) {
    if (!c.strided_why.empty() || !c.shape_only_why.empty()) continue;
    const DType dtype = c.dtype_list.size() > 1 && c.dtype_list[0] == f64 ? f32 : c.dtype_list[0];
    try {
      check_strided(c, dtype);
    } catch (const std::exception& error) {
      FAIL_CHECK(describe(c, dtype), ": ", std::string(error.what()));
    }
  }
}

}  // namespace
}  // namespace kiln::ops
