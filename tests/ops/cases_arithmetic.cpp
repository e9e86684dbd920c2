// Arithmetic with two operands: each on equal shapes, on broadcast ones and on a number.
#include "tests/ops/case.h"

namespace kiln::ops {

KILN_OP_CASES(arithmetic) {
  const auto big = [] {
    return std::vector<Input>{real({1024, 1024}), real({1024, 1024}, 0.5, 2)};
  };
  op("add", "torch.add(a, b)", [](const Tensors& x) { return add(x[0], x[1]); },
     {real({3, 4}), real({4})})
      .dtypes(kAll)
      .big(big());
  op("add", "torch.add(a, b, alpha=3)", [](const Tensors& x) { return x[0].add(x[1], 3); },
     {real({3, 4}), real({3, 1})})
      .dtypes(kReals);
  op("sub", "torch.sub(a, b)", [](const Tensors& x) { return sub(x[0], x[1]); },
     {real({3, 4}), real({4})})
      .dtypes(kReals)
      .big(big());
  op("mul", "torch.mul(a, b)", [](const Tensors& x) { return mul(x[0], x[1]); },
     {real({3, 4}), real({4})})
      .dtypes(kAll)
      .big(big());
  op("div", "torch.div(a, b)", [](const Tensors& x) { return div(x[0], x[1]); },
     {real({3, 4}), real({4}, 0.5, 2)})
      .dtypes(kFloats)
      .big(big());
  op("div", "torch.div(a, b)", [](const Tensors& x) { return div(x[0], x[1]); },
     {real({3, 4}), values({1, 2, 3, 5})})
      .dtypes(kInts);
}

}  // namespace kiln::ops
