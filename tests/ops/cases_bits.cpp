// Bits and divisors of integers, closeness, membership.
#include "tests/ops/case.h"

namespace kiln::ops {

KILN_OP_CASES(bits) {
  const Input x = values({0, 1, 5, 77, 100, 3, 64, 120}, {2, 4});
  const Input signed_ = values({0, 1, -5, 77, -100, 3, 64, -128}, {2, 4});
  const Input shift = values({0, 1, 3, 7});
  using Binary = Tensor (*)(TensorArg, TensorArg);
  for (const auto& [name, f] :
       {std::pair<const char*, Binary>{"bitwise_left_shift", bitwise_left_shift},
        {"bitwise_right_shift", bitwise_right_shift},
        {"gcd", gcd},
        {"lcm", lcm}}) {
    const std::string call = "torch." + std::string(name) + "(a, b)";
    // lcm(64, 3) does not fit 8 bits.
    op(name, call, [f = f](const Tensors& v) { return f(v[0], v[1]); }, {x, shift})
        .dtypes(std::string(name) == "lcm" ? DTypes{i64, i32, i16} : kInts)
        .big({real({1024, 1024}, 0, 100), real({1024, 1024}, 0, 8)});
    op(name, call, [f = f](const Tensors& v) { return f(v[0], v[1]); }, {signed_, shift})
        .dtypes({i64, i32, i16});
    op(name, call, [f = f](const Tensors& v) { return f(v[0], v[1]); },
       {signed_, values({-1, 8, 15, 100})})
        .dtypes({i64, i32, i16});
  }
  op("bitwise_left_shift", "torch.bitwise_left_shift(a, 3)",
     [](const Tensors& v) { return bitwise_left_shift(v[0], 3); }, {x})
      .dtypes(kInts);
  op("bitwise_left_shift", "torch.bitwise_left_shift(3, a)",
     [](const Tensors& v) { return bitwise_left_shift(3, v[0]); }, {shift})
      .dtypes(kInts);
  op("bitwise_left_shift", "a << 2", [](const Tensors& v) { return v[0] << 2; }, {x}).dtypes(kInts);
  op("bitwise_right_shift", "a >> b", [](const Tensors& v) { return v[0] >> v[1]; }, {x, shift})
      .dtypes(kInts);
  op("bitwise_and", "torch.bitwise_and(a, 5)",
     [](const Tensors& v) { return bitwise_and(v[0], 5); }, {x})
      .dtypes(kInts);
  op("bitwise_or", "torch.bitwise_or(a, 5)", [](const Tensors& v) { return bitwise_or(v[0], 5); },
     {x})
      .dtypes(kInts);
  op("bitwise_xor", "torch.bitwise_xor(5, a)",
     [](const Tensors& v) { return bitwise_xor(v[0], 5); }, {x})
      .dtypes(kInts);
}

KILN_OP_CASES(closeness) {
  const std::vector<double> first = {0, 1, 2, 100, INFINITY, -INFINITY, NAN, 1};
  const std::vector<double> second = {1e-9, 1.00001, 2.1, 100.0005, INFINITY, INFINITY, NAN, NAN};
  op("isclose", "torch.isclose(a, b)", [](const Tensors& v) { return isclose(v[0], v[1]); },
     {values(first), values(second)})
      .dtypes(kDoubles)
      .no_gradient();
  op("isclose", "torch.isclose(a, b, rtol=0.1, atol=0.5, equal_nan=True)",
     [](const Tensors& v) { return isclose(v[0], v[1], 0.1, 0.5, true); },
     {values(first), values(second)})
      .dtypes(kFloats)
      .no_gradient();
  op("isclose", "torch.isclose(a, b, atol=2.0)",
     [](const Tensors& v) { return isclose(v[0], v[1], 1e-5, 2.0); },
     {values({1, 5, 9, 100}), values({3, 8, 9, 98})})
      .dtypes(kInts)
      .no_gradient()
      .big({real({1024, 1024}, 0, 100), real({1024, 1024}, 0, 100)});
  op("isin", "torch.isin(a, b)", [](const Tensors& v) { return isin(v[0], v[1]); },
     {real({5, 6}, 0, 9), values({1, 3, 5})})
      .dtypes(kReals)
      .no_gradient();
  op("isin", "torch.isin(a, b, invert=True)",
     [](const Tensors& v) { return isin(v[0], v[1], false, true); },
     {real({5, 6}, 0, 40), real({4, 5}, 0, 40)})
      .dtypes(kReals)
      .no_gradient()
      .big({real({1024, 256}, 0, 100), real({1000}, 0, 100)});
  op("isin", "torch.isin(a, 3)", [](const Tensors& v) { return isin(v[0], 3); },
     {values({1, 3, 5, 3})})
      .dtypes(kReals)
      .no_gradient();
  op("isin", "torch.isin(3, a)", [](const Tensors& v) { return isin(3, v[0]); },
     {values({1, 3, 5, 3})})
      .dtypes(kReals)
      .no_gradient();
  op("eq", "torch.eq(a, b)", [](const Tensors& v) { return eq(v[0], v[1]); },
     {real({3, 4}, -2, 2), real({4}, -2, 2)})
      .dtypes(kAll)
      .no_gradient();
  op("greater_equal", "torch.greater_equal(a, 1)",
     [](const Tensors& v) { return greater_equal(v[0], 1); }, {real({3, 4}, -2, 2)})
      .dtypes(kAll)
      .no_gradient();
}

}  // namespace kiln::ops
