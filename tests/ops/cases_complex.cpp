// Complex tensors: what makes them and takes them apart, arithmetic, elementary functions,
// products, reductions and indexing.
#include "tests/ops/case.h"

namespace kiln::ops {

KILN_OP_CASES(complex_parts) {
  op("complex", "torch.complex(a, b)", [](const Tensors& x) { return kiln::complex(x[0], x[1]); },
     {real({3, 4}), real({3, 4})})
      .dtypes(kDoubles);
  op("polar", "torch.polar(a, b)", [](const Tensors& x) { return polar(x[0], x[1]); },
     {real({3, 4}, 0.5, 2), real({3, 4})})
      .dtypes(kDoubles);
  op("real", "torch.real(a)", [](const Tensors& x) { return kiln::real(x[0]); }, {complex_({3, 4})})
      .dtypes(kComplex);
  op("imag", "torch.imag(a)", [](const Tensors& x) { return imag(x[0]); }, {complex_({3, 4})})
      .dtypes(kComplex);
  op("conj", "torch.conj(a).resolve_conj()", [](const Tensors& x) { return conj(x[0]); },
     {complex_({3, 4})})
      .dtypes(kComplex);
  op("adjoint", "torch.adjoint(a).resolve_conj()", [](const Tensors& x) { return adjoint(x[0]); },
     {complex_({2, 3, 4})})
      .dtypes(kComplex);
  op("view_as_real", "torch.view_as_real(a)", [](const Tensors& x) { return view_as_real(x[0]); },
     {complex_({3, 4})})
      .dtypes(kComplex);
  op("view_as_complex", "torch.view_as_complex(a.contiguous())",
     [](const Tensors& x) { return view_as_complex(x[0].contiguous()); }, {ops::real({3, 4, 2})})
      .dtypes(kDoubles);
  op("angle", "torch.angle(a)", [](const Tensors& x) { return angle(x[0]); }, {complex_({3, 4})})
      .dtypes(kComplex);
  op("angle", "torch.angle(a)", [](const Tensors& x) { return angle(x[0]); },
     {values({-2, -0.5, 0, 3, NAN})})
      .dtypes(kDoubles)
      .no_gradient();
  op("sgn", "torch.sgn(a)", [](const Tensors& x) { return sgn(x[0]); }, {complex_({3, 4})})
      .dtypes(kComplex);
  op("sgn", "torch.sgn(a)", [](const Tensors& x) { return sgn(x[0]); }, {real({3, 4})})
      .dtypes(kReals)
      .no_gradient();
  op("isreal", "torch.isreal(a)", [](const Tensors& x) { return isreal(x[0]); }, {complex_({3, 4})})
      .dtypes(kComplex)
      .no_gradient();
  op("Tensor.to", "a.to(torch.complex64)", [](const Tensors& x) { return x[0].to(c64); },
     {constant({3, 4})})
      .dtypes(kAll)
      .no_gradient();
}

KILN_OP_CASES(complex_arithmetic) {
  const auto big = [] {
    return std::vector<Input>{complex_({512, 1024}), complex_({512, 1024}, 0.5, 2)};
  };
  op("add", "torch.add(a, b)", [](const Tensors& x) { return add(x[0], x[1]); },
     {complex_({3, 4}), complex_({4})})
      .dtypes(kComplex)
      .big(big());
  op("sub", "torch.sub(a, b)", [](const Tensors& x) { return sub(x[0], x[1]); },
     {complex_({3, 4}), complex_({2, 1, 4})})
      .dtypes(kComplex)
      .big(big());
  op("mul", "torch.mul(a, b)", [](const Tensors& x) { return mul(x[0], x[1]); },
     {complex_({3, 4}), complex_({3, 1})})
      .dtypes(kComplex)
      .big(big());
  op("div", "torch.div(a, b)", [](const Tensors& x) { return div(x[0], x[1]); },
     {complex_({3, 4}), complex_({3, 1}, 0.5, 2)})
      .dtypes(kComplex)
      .big(big());
  op("add", "torch.add(a, b)", [](const Tensors& x) { return add(x[0], x[1]); },
     {complex_({3, 4}), real({4})})
      .dtypes(kComplex);
  op("sub", "torch.sub(b, a)", [](const Tensors& x) { return sub(x[1], x[0]); },
     {complex_({3, 4}), real({2, 1, 4})})
      .dtypes(kComplex);
  op("mul", "torch.mul(a, b)", [](const Tensors& x) { return mul(x[0], x[1]); },
     {complex_({3, 4}), real({3, 1})})
      .dtypes(kComplex);
  op("div", "torch.div(b, a)", [](const Tensors& x) { return div(x[1], x[0]); },
     {complex_({3, 4}, 0.5, 2), real({4})})
      .dtypes(kComplex);
  op("div", "torch.div(a, b)", [](const Tensors& x) { return div(x[0], x[1]); },
     {complex_({3, 4}), real({4}, 0.5, 2)})
      .dtypes(kComplex);
  op("mul", "a * (1 - 2j)", [](const Tensors& x) { return x[0] * std::complex<double>(1, -2); },
     {complex_({3, 4})})
      .dtypes(kComplex);
  op("mul", "a * 2j", [](const Tensors& x) { return x[0] * std::complex<double>(0, 2); },
     {real({3, 4})})
      .dtypes(kDoubles);
  op("rsub", "2 - a", [](const Tensors& x) { return 2 - x[0]; }, {complex_({3, 4})})
      .dtypes(kComplex);
  op("pow", "torch.pow(a, b)", [](const Tensors& x) { return pow(x[0], x[1]); },
     {complex_({3, 4}, 0.5, 2), complex_({4}, 0.5, 2)})
      .dtypes(kComplex)
      .gradient_tolerance(1e-5);
  op("pow", "torch.pow(a, 2)", [](const Tensors& x) { return pow(x[0], 2); }, {complex_({3, 4})})
      .dtypes(kComplex)
      .big({complex_({512, 1024})});
  op("pow", "torch.pow(a, 3)", [](const Tensors& x) { return pow(x[0], 3); },
     {complex_({3, 4}, 0.5, 2)})
      .dtypes(kComplex)
      .gradient_tolerance(1e-5);
  op("eq", "torch.eq(a, b)", [](const Tensors& x) { return x[0].eq(x[1]); },
     {complex_({3, 4}), complex_({4})})
      .dtypes(kComplex)
      .no_gradient();
  op("ne", "torch.ne(a, 1)", [](const Tensors& x) { return x[0].ne(1); }, {complex_({3, 4})})
      .dtypes(kComplex)
      .no_gradient();
  op("where", "torch.where(a, b, c)", [](const Tensors& x) { return where(x[0], x[1], x[2]); },
     {mask({3, 4}), complex_({4}), complex_({3, 1})})
      .dtypes(kComplex);
  op("masked_fill", "a.masked_fill(b, 2)",
     [](const Tensors& x) { return x[0].masked_fill(x[1], 2); }, {complex_({3, 4}), mask({3, 4})})
      .dtypes(kComplex);
  op("Tensor.add_", "a.clone().add_(b)", [](const Tensors& x) { return x[0].clone().add_(x[1]); },
     {complex_({3, 4}), complex_({4})})
      .dtypes(kComplex);
  op("Tensor.mul_", "a.clone().mul_(b)", [](const Tensors& x) { return x[0].clone().mul_(x[1]); },
     {complex_({3, 4}), complex_({4})})
      .dtypes(kComplex);
  op("Tensor.copy_", "a.clone().copy_(b)",
     [](const Tensors& x) { return x[0].clone().copy_(x[1]); }, {complex_({3, 4}), real({4})})
      .dtypes(kComplex);
  op("Tensor.fill_", "a.clone().fill_(2)", [](const Tensors& x) { return x[0].clone().fill_(2); },
     {complex_({3, 4})})
      .dtypes(kComplex);
}

KILN_OP_CASES(complex_functions) {
#define KILN_CASE(name)                                                              \
  op(#name, "torch." #name "(a)", [](const Tensors& x) { return kiln::name(x[0]); }, \
     {complex_({3, 4}, 0.25, 1.5)})                                                  \
      .dtypes(kComplex)                                                              \
      .gradient_tolerance(1e-5)                                                      \
      .big({complex_({512, 1024}, 0.25, 1.5)});
  KILN_CASE(neg)
  KILN_CASE(abs)
  KILN_CASE(square)
  KILN_CASE(sqrt)
  KILN_CASE(rsqrt)
  KILN_CASE(reciprocal)
  KILN_CASE(exp)
  KILN_CASE(expm1)
  KILN_CASE(log)
  KILN_CASE(log1p)
  KILN_CASE(log2)
  KILN_CASE(log10)
  KILN_CASE(sin)
  KILN_CASE(cos)
  KILN_CASE(tan)
  KILN_CASE(asin)
  KILN_CASE(acos)
  KILN_CASE(atan)
  KILN_CASE(sinh)
  KILN_CASE(cosh)
  KILN_CASE(tanh)
  KILN_CASE(asinh)
  KILN_CASE(acosh)
  KILN_CASE(atanh)
  KILN_CASE(sigmoid)
#undef KILN_CASE
  op("isfinite", "torch.isfinite(a)", [](const Tensors& x) { return x[0].isfinite(); },
     {complex_({3, 4})})
      .dtypes(kComplex)
      .no_gradient();
}

KILN_OP_CASES(complex_products) {
  op("matmul", "torch.matmul(a, b)", [](const Tensors& x) { return matmul(x[0], x[1]); },
     {complex_({2, 3, 4}), complex_({4, 5})})
      .dtypes(kComplex)
      .big({complex_({256, 256}), complex_({256, 256})})
      .loose(4);
  op("matmul", "torch.matmul(a, b)", [](const Tensors& x) { return matmul(x[0], x[1]); },
     {complex_({3, 4}), complex_({4})})
      .dtypes(kComplex);
  op("matmul", "torch.matmul(a, b)", [](const Tensors& x) { return matmul(x[0], x[1]); },
     {complex_({4}), complex_({2, 4, 3})})
      .dtypes(kComplex);
  op("bmm", "torch.bmm(a, b)", [](const Tensors& x) { return x[0].bmm(x[1]); },
     {complex_({2, 3, 4}), complex_({2, 4, 2})})
      .dtypes(kComplex);
  op("dot", "torch.dot(a, b)", [](const Tensors& x) { return x[0].dot(x[1]); },
     {complex_({5}), complex_({5})})
      .dtypes(kComplex);
  op("nn.functional.linear", "F.linear(a, b, c)",
     [](const Tensors& x) { return functional::linear(x[0], x[1], x[2]); },
     {complex_({2, 3}), complex_({4, 3}), complex_({4})})
      .dtypes(kComplex);
}

KILN_OP_CASES(complex_reductions) {
  op("sum", "torch.sum(a)", [](const Tensors& x) { return x[0].sum(); }, {complex_({3, 4})})
      .dtypes(kComplex)
      .big({complex_({512, 1024})});
  op("sum", "torch.sum(a, (0, -1), keepdim=True)",
     [](const Tensors& x) {
       return x[0].sum({0, -1}, true);
     },
     {complex_({2, 3, 4})})
      .dtypes(kComplex);
  op("mean", "torch.mean(a, -1)", [](const Tensors& x) { return x[0].mean(-1); },
     {complex_({3, 4})})
      .dtypes(kComplex);
  op("prod", "torch.prod(a, 1)", [](const Tensors& x) { return x[0].prod(1); }, {complex_({2, 5})})
      .dtypes(kComplex);
  op("prod", "torch.prod(a)", [](const Tensors& x) { return x[0].prod(); }, {complex_({2, 3})})
      .dtypes(kComplex);
  op("cumsum", "torch.cumsum(a, -1)", [](const Tensors& x) { return x[0].cumsum(-1); },
     {complex_({3, 4})})
      .dtypes(kComplex);
  op("var", "torch.var(a, 1)", [](const Tensors& x) { return x[0].var(1); }, {complex_({3, 4})})
      .dtypes(kComplex);
  op("std", "torch.std(a)", [](const Tensors& x) { return x[0].std(); }, {complex_({3, 4})})
      .dtypes(kComplex);
  op("norm", "torch.norm(a)", [](const Tensors& x) { return x[0].norm(); }, {complex_({3, 4})})
      .dtypes(kComplex);
  op("all", "torch.all(a, 1)", [](const Tensors& x) { return x[0].all(1); }, {complex_({3, 4})})
      .dtypes(kComplex)
      .no_gradient();
}

KILN_OP_CASES(complex_indexing) {
  op("index_select", "torch.index_select(a, -1, b)",
     [](const Tensors& x) { return x[0].index_select(-1, x[1]); },
     {complex_({3, 4}), index({5}, 0, 4)})
      .dtypes(kComplex);
  op("gather", "torch.gather(a, -1, b)", [](const Tensors& x) { return x[0].gather(-1, x[1]); },
     {complex_({3, 4}), index({2, 5}, 0, 4)})
      .dtypes(kComplex);
  op("scatter_add", "torch.scatter_add(a, -1, b, c)",
     [](const Tensors& x) { return x[0].scatter_add(-1, x[1], x[2]); },
     {complex_({3, 4}), index({2, 5}, 0, 4), complex_({3, 6})})
      .dtypes(kComplex);
  op("index_add", "torch.index_add(a, -1, b, c)",
     [](const Tensors& x) { return x[0].index_add(-1, x[1], x[2]); },
     {complex_({3, 4}), index({5}, 0, 4), complex_({3, 5})})
      .dtypes(kComplex);
  op("cat", "torch.cat([a, b], -1)",
     [](const Tensors& x) {
       return cat({x[0], x[1]}, -1);
     },
     {complex_({3, 4}), real({3, 2})})
      .dtypes(kComplex);
  op("flip", "torch.flip(a, (-1,))", [](const Tensors& x) { return x[0].flip({-1}); },
     {complex_({3, 4})})
      .dtypes(kComplex);
}

}  // namespace kiln::ops
