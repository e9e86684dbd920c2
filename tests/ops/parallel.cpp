// Large inputs give bit-identical results with one thread and with several.
#include <doctest/doctest.h>

#include "tests/ops/case.h"

namespace kiln::ops {
namespace {

struct Threads {
  int before = num_threads();
  ~Threads() { set_num_threads(before); }
};

bool same_bits(const Tensor& a, const Tensor& b) {
  const TensorData x = a.to_data();
  const TensorData y = b.to_data();
  return x.shape() == y.shape() && x.dtype() == y.dtype() &&
         std::memcmp(x.data(), y.data(), x.bytes()) == 0;
}

TEST_CASE("op cases: bit-identical results with 1 and with several threads") {
  const Threads restore;
  for (const Case& c : cases()) {
    if (c.big_inputs.empty() || !c.shape_only_why.empty()) continue;
    const DType dtype = c.dtype_list.size() > 1 && c.dtype_list[0] == f64 ? f32 : c.dtype_list[0];
    INFO(describe(c, dtype));
    if (c.big_inputs.size() != c.inputs.size()) {
      FAIL_CHECK("the case has ", c.inputs.size(), " inputs, but ", c.big_inputs.size(),
                 " big ones");
      continue;
    }
    try {
      const Tensors inputs = make_inputs(c, c.big_inputs, dtype);
      set_num_threads(1);
      const Tensors one = c.call(inputs);
      set_num_threads(max_num_threads());
      const Tensors many = c.call(inputs);
      REQUIRE(one.size() == many.size());
      for (size_t i = 0; i < one.size(); ++i) CHECK(same_bits(one[i], many[i]));
    } catch (const Error& error) {
      FAIL_CHECK(std::string(error.what()));
    }
  }
}

}  // namespace
}  // namespace kiln::ops
