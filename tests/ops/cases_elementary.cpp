// The elementary functions, comparisons, logic, and writes in place.
#include <cmath>

#include "tests/ops/case.h"

namespace kiln::ops {

namespace {

const Shape kShape = {3, 4};
const Shape kBig = {1024, 1024};
const std::vector<double> kEdges = {0.0,  -0.0,  1.0,      -1.0,      0.5, 2.5,
                                    1e30, -1e30, INFINITY, -INFINITY, NAN};

// A function of one tensor: at the edges of its domain, in place, and in general.
Case& unary(const std::string& name, Tensor (*f)(TensorArg), Tensor& (Tensor::*write)(),
            Input input, DTypes dtypes = kAll) {
  const std::string call = "torch." + name + "(a)";
  const auto run = [f](const Tensors& x) { return f(x[0]); };
  op(name, call, run, {values(kEdges)}).dtypes(kDoubles).no_gradient("edges of the domain");
  op("Tensor." + name + "_", "a.clone()." + name + "_()",
     [write](const Tensors& x) {
       Tensor y = x[0].clone();
       return (y.*write)();
     },
     {input});
  Input big = input;
  big.shape = kBig;
  if (dtypes == kAll) {
    op(name, call, run, {input}).dtypes({f64}).no_gradient("in double precision").big({big});
  }
  Case& c = op(name, call, run, {std::move(input)});
  return c.dtypes(std::move(dtypes)).big({std::move(big)});
}

}  // namespace

KILN_OP_CASES(elementary) {
  unary("neg", neg, &Tensor::neg_, real(kShape), kReals);
  unary("abs", kiln::abs, &Tensor::abs_, real(kShape).away_from(0), kReals);
  unary("sign", sign, &Tensor::sign_, real(kShape).away_from(0), kAll);
  unary("square", square, &Tensor::square_, real(kShape), kReals);
  unary("floor", kiln::floor, &Tensor::floor_, real(kShape).away_from(0, 1), kReals);
  unary("ceil", kiln::ceil, &Tensor::ceil_, real(kShape).away_from(0, 1), kReals);
  unary("trunc", kiln::trunc, &Tensor::trunc_, real(kShape).away_from(0, 1), kReals);
  unary("round", kiln::round, &Tensor::round_, real(kShape).away_from(0.5, 1), kReals);
  unary("relu", relu, &Tensor::relu_, real(kShape).away_from(0), kReals);
  unary("sqrt", kiln::sqrt, &Tensor::sqrt_, real(kShape, 0.2, 4));
  unary("rsqrt", rsqrt, &Tensor::rsqrt_, real(kShape, 0.2, 4));
  unary("reciprocal", reciprocal, &Tensor::reciprocal_, real(kShape, 0.3, 3));
  unary("exp", kiln::exp, &Tensor::exp_, real(kShape));
  unary("expm1", kiln::expm1, &Tensor::expm1_, real(kShape));
  unary("log", kiln::log, &Tensor::log_, real(kShape, 0.2, 4));
  unary("log1p", kiln::log1p, &Tensor::log1p_, real(kShape, -0.7, 3));
  unary("log2", kiln::log2, &Tensor::log2_, real(kShape, 0.2, 4));
  unary("log10", kiln::log10, &Tensor::log10_, real(kShape, 0.2, 4));
  unary("sin", kiln::sin, &Tensor::sin_, real(kShape, -4, 4));
  unary("cos", kiln::cos, &Tensor::cos_, real(kShape, -4, 4));
  unary("tan", kiln::tan, &Tensor::tan_, real(kShape, -1.2, 1.2));
  unary("asin", kiln::asin, &Tensor::asin_, real(kShape, -0.9, 0.9));
  unary("acos", kiln::acos, &Tensor::acos_, real(kShape, -0.9, 0.9));
  unary("atan", kiln::atan, &Tensor::atan_, real(kShape, -3, 3));
  unary("sinh", kiln::sinh, &Tensor::sinh_, real(kShape));
  unary("cosh", kiln::cosh, &Tensor::cosh_, real(kShape));
  unary("tanh", kiln::tanh, &Tensor::tanh_, real(kShape));
  unary("asinh", kiln::asinh, &Tensor::asinh_, real(kShape, -3, 3));
  unary("acosh", kiln::acosh, &Tensor::acosh_, real(kShape, 1.2, 4));
  unary("atanh", kiln::atanh, &Tensor::atanh_, real(kShape, -0.8, 0.8));
  unary("erf", kiln::erf, &Tensor::erf_, real(kShape));
  unary("sigmoid", sigmoid, &Tensor::sigmoid_, real(kShape, -5, 5));
  op("nn.functional.silu", "F.silu(a)", [](const Tensors& x) { return silu(x[0]); },
     {real(kShape, -5, 5)})
      .big({real(kBig, -5, 5)});
  op("nn.functional.gelu", "F.gelu(a)", [](const Tensors& x) { return gelu(x[0]); },
     {real(kShape, -4, 4)})
      .big({real(kBig, -4, 4)});
  op("nn.functional.gelu", "F.gelu(a, approximate='tanh')",
     [](const Tensors& x) { return gelu(x[0], "tanh"); }, {real(kShape, -4, 4)})
      .big({real(kBig, -4, 4)});
  op("nn.functional.relu", "F.relu(a)", [](const Tensors& x) { return relu(x[0]); },
     {real(kShape).away_from(0)})
      .dtypes(kReals)
      .big({real(kBig)});
}

KILN_OP_CASES(comparison) {
  using Compare = Tensor (Tensor::*)(const Tensor&) const;
  using CompareScalar = Tensor (Tensor::*)(Scalar) const;
  const auto compare = [](const std::string& name, Compare f, CompareScalar g) {
    op(name, "torch." + name + "(a, b)", [f](const Tensors& x) { return (x[0].*f)(x[1]); },
       {constant({4, 1}, -3, 3).then([](Tensor x) { return x.round(); }),
        constant({5}, -3, 3).then([](Tensor x) { return x.round(); })})
        .dtypes(kAll)
        .big({constant(kBig), constant(kBig)});
    op(name, "torch." + name + "(a, b)", [f](const Tensors& x) { return (x[0].*f)(x[1]); },
       {values(kEdges), values(kEdges).then([](Tensor x) { return x.flip({0}); })})
        .dtypes(kDoubles);
    op(name, "torch." + name + "(a, 1)", [g](const Tensors& x) { return (x[0].*g)(1); },
       {constant(kShape, -3, 3).then([](Tensor x) { return x.round(); })})
        .dtypes(kAll)
        .big({constant(kBig)});
  };
  compare("eq", &Tensor::eq, &Tensor::eq);
  compare("ne", &Tensor::ne, &Tensor::ne);
  compare("gt", &Tensor::gt, &Tensor::gt);
  compare("ge", &Tensor::ge, &Tensor::ge);
  compare("lt", &Tensor::lt, &Tensor::lt);
  compare("le", &Tensor::le, &Tensor::le);

  const auto test = [](const std::string& name, Tensor (Tensor::*f)() const) {
    op(name, "torch." + name + "(a)", [f](const Tensors& x) { return (x[0].*f)(); },
       {values(kEdges)})
        .dtypes(kFloats)
        .big({constant(kBig)});
    op(name, "torch." + name + "(a)", [f](const Tensors& x) { return (x[0].*f)(); },
       {constant(kShape)})
        .dtypes(kIntsAndBool);
  };
  test("isnan", &Tensor::isnan);
  test("isinf", &Tensor::isinf);
  test("isfinite", &Tensor::isfinite);

  op("where", "torch.where(a, b, c)", [](const Tensors& x) { return where(x[0], x[1], x[2]); },
     {mask({3, 1}), real({4}), real({3, 4})})
      .dtypes(kAll)
      .big({mask(kBig), real(kBig), real(kBig)});
  op("where", "torch.where(a, b, 2)", [](const Tensors& x) { return where(x[0], x[1], 2); },
     {mask({3, 4}), real({4})})
      .dtypes(kReals);
}

KILN_OP_CASES(logic) {
  using Method = Tensor (Tensor::*)(const Tensor&) const;
  const auto two = [](const std::string& name, Method f, DTypes dtypes) {
    const auto whole = [](Tensor x) { return x.round(); };
    op(name, "torch." + name + "(a, b)", [f](const Tensors& x) { return (x[0].*f)(x[1]); },
       {constant({4, 1}, -3, 3).then(whole), constant({5}, -3, 3).then(whole)})
        .dtypes(std::move(dtypes))
        .big({constant(kBig, -100, 100), constant(kBig, -100, 100)});
  };
  two("logical_and", &Tensor::logical_and, kAll);
  two("logical_or", &Tensor::logical_or, kAll);
  two("logical_xor", &Tensor::logical_xor, kAll);
  two("bitwise_and", &Tensor::bitwise_and, kIntsAndBool);
  two("bitwise_or", &Tensor::bitwise_or, kIntsAndBool);
  two("bitwise_xor", &Tensor::bitwise_xor, kIntsAndBool);
  op("logical_not", "torch.logical_not(a)", [](const Tensors& x) { return x[0].logical_not(); },
     {constant(kShape, -3, 3).then([](Tensor x) { return x.round(); })})
      .dtypes(kAll)
      .big({constant(kBig)});
  op("bitwise_not", "torch.bitwise_not(a)", [](const Tensors& x) { return x[0].bitwise_not(); },
     {constant(kShape, -3, 3)})
      .dtypes(kIntsAndBool)
      .big({constant(kBig, -100, 100)});
  two("maximum", &Tensor::maximum, kAll);
  two("minimum", &Tensor::minimum, kAll);
  op("maximum", "torch.maximum(a, b)", [](const Tensors& x) { return x[0].maximum(x[1]); },
     {real({4, 1}), real({5})});
  op("minimum", "torch.minimum(a, b)", [](const Tensors& x) { return x[0].minimum(x[1]); },
     {real({4, 1}), real({5})});
  op("floor_divide", "torch.floor_divide(a, b)",
     [](const Tensors& x) { return x[0].floor_divide(x[1]); },
     {constant({4, 5}, -9, 9), values({1, 2, -3, 4, 5})})
      .dtypes({f64, f32, i64, i32, i16, i8, u8})
      .big({constant(kBig, -9, 9), constant(kBig, 1, 5)});
}

KILN_OP_CASES(writes) {
  const auto write = [](const std::string& name, const std::string& rest, auto f,
                        std::vector<Input> inputs, DTypes dtypes) {
    op(
        "Tensor." + name, "a.clone()." + name + rest,
        [f](const Tensors& x) {
          Tensor y = x[0].clone();
          f(y, x);
          return y;
        },
        std::move(inputs))
        .dtypes(std::move(dtypes));
  };
  write(
      "add_", "(b)", [](Tensor& y, const Tensors& x) { y.add_(x[1]); }, {real(kShape), real({4})},
      kAll);
  write(
      "add_", "(b, alpha=2)", [](Tensor& y, const Tensors& x) { y.add_(x[1], 2); },
      {real(kShape), real({4})}, kReals);
  write(
      "sub_", "(b)", [](Tensor& y, const Tensors& x) { y.sub_(x[1]); }, {real(kShape), real({4})},
      kReals);
  write(
      "mul_", "(b)", [](Tensor& y, const Tensors& x) { y.mul_(x[1]); }, {real(kShape), real({4})},
      kAll);
  write(
      "div_", "(b)", [](Tensor& y, const Tensors& x) { y.div_(x[1]); },
      {real(kShape), real({4}, 0.5, 2)}, kFloats);
  write(
      "copy_", "(b)", [](Tensor& y, const Tensors& x) { y.copy_(x[1]); }, {real(kShape), real({4})},
      kAll);
  write(
      "fill_", "(2)", [](Tensor& y, const Tensors&) { y.fill_(2); }, {real(kShape)}, kAll);
  write(
      "zero_", "()", [](Tensor& y, const Tensors&) { y.zero_(); }, {real(kShape)}, kAll);
  write(
      "masked_fill_", "(b, 2)", [](Tensor& y, const Tensors& x) { y.masked_fill_(x[1], 2); },
      {real(kShape), mask({4})}, kReals);
}

}  // namespace kiln::ops
