// Complex tensors in the ops that move, write, combine and count elements.
#include "tests/ops/call.h"

namespace kiln::ops {

namespace {

// A copy of x after f(copy), which writes into it.
template <class F>
Tensor in_place(const Tensor& x, F f) {
  Tensor y = x.clone();
  f(y);
  return y;
}

}  // namespace

KILN_OP_CASES(complex_views) {
  op("diagonal", "torch.diagonal(a, 1, 0, 2)", KILN_CALL(diagonal(x[0], 1, 0, 2)),
     {complex_({3, 2, 4})})
      .dtypes(kComplex);
  op("diag_embed", "torch.diag_embed(a, -1, 0, 2)", KILN_CALL(diag_embed(x[0], -1, 0, 2)),
     {complex_({2, 3})})
      .dtypes(kComplex);
  op("diag", "torch.diag(a)", KILN_CALL(diag(x[0])), {complex_({3})}).dtypes(kComplex);
  op("diagflat", "torch.diagflat(a, 1)", KILN_CALL(diagflat(x[0], 1)), {complex_({2, 2})})
      .dtypes(kComplex);
  op("trace", "torch.trace(a)", KILN_CALL(trace(x[0])), {complex_({3, 4})}).dtypes(kComplex);
  op("as_strided", "torch.as_strided(a.contiguous(), (2, 2), (1, 2), 1)",
     KILN_CALL(as_strided(x[0].contiguous(), {2, 2}, {1, 2}, 1)), {complex_({3, 4})})
      .dtypes(kComplex);
  op("Tensor.unfold", "a.unfold(0, 3, 2)", KILN_CALL(unfold(x[0], 0, 3, 2)), {complex_({6, 2})})
      .dtypes(kComplex);
  for (const int k : {-1, 0, 1}) {
    op("tril", concat("torch.tril(a, ", k, ")"), [k](const Tensors& x) { return tril(x[0], k); },
       {complex_({2, 3, 4})})
        .dtypes(kComplex);
    op("triu", concat("torch.triu(a, ", k, ")"), [k](const Tensors& x) { return triu(x[0], k); },
       {complex_({3, 4})})
        .dtypes(kComplex)
        .big({complex_({512, 1024})});
  }
  op("Tensor.tril_", "a.clone().tril_(-1)",
     KILN_CALL(in_place(x[0], [](Tensor& y) { tril_(y, -1); })), {complex_({3, 4})})
      .dtypes(kComplex);
  op("roll", "torch.roll(a, (1, 2), (0, 1))", KILN_CALL(roll(x[0], {1, 2}, {0, 1})),
     {complex_({3, 4})})
      .dtypes(kComplex);
  op("select_scatter", "torch.select_scatter(a, b, 1, 2)",
     KILN_CALL(select_scatter(x[0], x[1], 1, 2)), {complex_({3, 4}), complex_({3})})
      .dtypes(kComplex);
  op("slice_scatter", "torch.slice_scatter(a, b, 1, 0, 4, 2)",
     KILN_CALL(slice_scatter(x[0], x[1], 1, 0, 4, 2)), {complex_({3, 4}), complex_({3, 2})})
      .dtypes(kComplex);
  op("diagonal_scatter", "torch.diagonal_scatter(a, b, 1)",
     KILN_CALL(diagonal_scatter(x[0], x[1], 1)), {complex_({3, 4}), complex_({3})})
      .dtypes(kComplex);
}

KILN_OP_CASES(complex_writing) {
  op("index_copy", "torch.index_copy(a, 1, b, c)", KILN_CALL(index_copy(x[0], 1, x[1], x[2])),
     {complex_({2, 5}), indices({4, 0, 2}, {3}), complex_({2, 3})})
      .dtypes(kComplex);
  op("index_fill", "torch.index_fill(a, 1, b, 2)", KILN_CALL(index_fill(x[0], 1, x[1], 2)),
     {complex_({3, 4}), indices({3, 0}, {2})})
      .dtypes(kComplex);
  op("index_reduce", "torch.index_reduce(a, 0, b, c, 'mean')",
     KILN_CALL(index_reduce(x[0], 0, x[1], x[2], "mean")),
     {complex_({3, 2}), indices({1, 1, 0}, {3}), complex_({3, 2})})
      .dtypes(kComplex);
  op("scatter", "torch.scatter(a, 0, b, c)", KILN_CALL(x[0].scatter(0, x[1], x[2])),
     {complex_({3, 2}), indices({0, 2, 1, 0}, {2, 2}), complex_({2, 2})})
      .dtypes(kComplex);
  op("scatter", "torch.scatter(a, 0, b, 1.5)", KILN_CALL(scatter(x[0], 0, x[1], 1.5)),
     {complex_({3, 2}), indices({0, 2, 1, 0}, {2, 2})})
      .dtypes(kComplex);
  op("scatter", "torch.scatter(a, 0, b, c.detach(), reduce='add')",
     KILN_CALL(scatter(x[0], 0, x[1], x[2].detach(), "add")),
     {complex_({3, 2}), indices({0, 2, 0, 0}, {2, 2}), complex_({2, 2})})
      .dtypes(kComplex)
      .no_gradient();
  for (const std::string reduce : {"sum", "mean", "prod"}) {
    for (const bool self : {true, false}) {
      op("scatter_reduce",
         concat("torch.scatter_reduce(a, 1, b, c, '", reduce,
                "', include_self=", self ? "True" : "False", ")"),
         [=](const Tensors& x) { return scatter_reduce(x[0], 1, x[1], x[2], reduce, self); },
         {complex_({2, 3}), index({2, 4}, 0, 3), complex_({2, 4})})
          .dtypes(kComplex);
    }
  }
  op("scatter_reduce", "torch.scatter_reduce(a, 0, b, c, 'prod')",
     KILN_CALL(scatter_reduce(x[0], 0, x[1], x[2], "prod")),
     {complex_({4}), indices({2, 2, 2, 0, 2, 2, 2}, {7}), complex_({7})})
      .dtypes(kComplex);
  op("scatter", "torch.scatter(a, 0, b, c.detach(), reduce='multiply')",
     KILN_CALL(scatter(x[0], 0, x[1], x[2].detach(), "multiply")),
     {complex_({3, 2}), indices({0, 2, 0, 0}, {2, 2}), complex_({2, 3})})
      .dtypes(kComplex)
      .no_gradient();
  for (const bool self : {true, false}) {
    op("index_reduce",
       concat("torch.index_reduce(a, 0, b, c, 'prod', include_self=", self ? "True" : "False", ")"),
       [=](const Tensors& x) { return index_reduce(x[0], 0, x[1], x[2], "prod", self); },
       {complex_({3, 2}), indices({1, 1, 0}, {3}), complex_({3, 2})})
        .dtypes(kComplex);
    if (!self) cases().back().no_peer("PyTorch has it with include_self only");
  }
  op("put", "torch.put(a, b, c)", KILN_CALL(put(x[0], x[1], x[2])),
     {complex_({2, 3}), indices({-1, 2, 0}, {3}), complex_({3})})
      .dtypes(kComplex);
  op("masked_scatter", "torch.masked_scatter(a, b, c)", KILN_CALL(masked_scatter(x[0], x[1], x[2])),
     {complex_({3, 4}), mask({3, 4}), complex_({12})})
      .dtypes(kComplex);
  op("Tensor.index_add_", "a.clone().index_add_(1, b, c, alpha=2)",
     KILN_CALL(in_place(x[0], [&](Tensor& y) { index_add_(y, 1, x[1], x[2], 2); })),
     {complex_({2, 4}), indices({1, 1, 3}, {3}), complex_({2, 3})})
      .dtypes(kComplex);
}

KILN_OP_CASES(complex_scans) {
  op("cumprod", "torch.cumprod(a, 1)", KILN_CALL(cumprod(x[0], 1)), {complex_({2, 5})})
      .dtypes(kComplex)
      .loose(4);
  op("logsumexp", "torch.logsumexp(a, 1)", KILN_CALL(x[0].logsumexp({1}, false)),
     {complex_({3, 4})})
      .dtypes(kComplex);
  op("logsumexp", "torch.logsumexp(a, (0, 1), keepdim=True)",
     KILN_CALL(x[0].logsumexp({0, 1}, true)), {complex_({3, 4})})
      .dtypes(kComplex);
  op("logaddexp", "torch.logaddexp(a, b)", KILN_CALL(logaddexp(x[0], x[1])),
     {complex_({3, 4}), complex_({4}, -1, 1)})
      .dtypes(kComplex);
  op("logcumsumexp", "torch.logcumsumexp(a, 1)", KILN_CALL(logcumsumexp(x[0], 1)),
     {complex_({3, 4}, -1, 1)})
      .dtypes(kComplex)
      .no_peer("PyTorch 2.13 refuses to differentiate it");
  op("count_nonzero", "torch.count_nonzero(a, 0)", KILN_CALL(count_nonzero(x[0], {0})),
     {complex_({3, 4})})
      .dtypes(kComplex)
      .no_gradient();
  op("cov", "torch.cov(a)", KILN_CALL(cov(x[0])), {complex_({3, 5})}).dtypes(kComplex);
  op("corrcoef", "torch.corrcoef(a)", KILN_CALL(corrcoef(x[0])), {complex_({3, 5})})
      .dtypes(kComplex)
      .gradient_tolerance(1e-5);
}

KILN_OP_CASES(complex_pointwise) {
  op("lerp", "torch.lerp(a, b, c)", KILN_CALL(lerp(x[0], x[1], x[2])),
     {complex_({3, 4}), complex_({3, 4}), complex_({4})})
      .dtypes(kComplex);
  op("lerp", "torch.lerp(a, b, 0.3)", KILN_CALL(lerp(x[0], x[1], 0.3)),
     {complex_({3, 4}), complex_({3, 4})})
      .dtypes(kComplex);
  op("addcmul", "torch.addcmul(a, b, c, value=2.0)", KILN_CALL(addcmul(x[0], x[1], x[2], 2.0)),
     {complex_({3, 4}), complex_({4}), complex_({3, 1})})
      .dtypes(kComplex);
  op("addcdiv", "torch.addcdiv(a, b, c, value=2.0)", KILN_CALL(addcdiv(x[0], x[1], x[2], 2.0)),
     {complex_({3, 4}), complex_({4}), complex_({3, 1}, 0.5, 2)})
      .dtypes(kComplex);
  op("Tensor.addcmul_", "a.clone().addcmul_(b, c, value=0.5)",
     KILN_CALL(in_place(x[0], [&](Tensor& y) { addcmul_(y, x[1], x[2], 0.5); })),
     {complex_({3, 4}), complex_({4}), complex_({3, 1})})
      .dtypes(kComplex);
  op("Tensor.pow_", "a.clone().pow_(b)",
     KILN_CALL(in_place(x[0], [&](Tensor& y) { pow_(y, x[1]); })),
     {complex_({3, 4}, 0.5, 2), complex_({4}, 0.5, 2)})
      .dtypes(kComplex)
      .gradient_tolerance(1e-5);
  op("exp2", "torch.exp2(a)", KILN_CALL(exp2(x[0])), {complex_({3, 4})}).dtypes(kComplex);
  op("Tensor.exp2_", "a.clone().exp2_()", KILN_CALL(in_place(x[0], [](Tensor& y) { exp2_(y); })),
     {complex_({3, 4})})
      .dtypes(kComplex);
  op("sinc", "torch.sinc(a)", KILN_CALL(sinc(x[0])), {complex_({3, 4}, 0.1, 1)})
      .dtypes(kComplex)
      .gradient_tolerance(1e-5);
  op("positive", "torch.positive(a)", KILN_CALL(positive(x[0]) * 1), {complex_({3, 4})})
      .dtypes(kComplex);
  op("nan_to_num", "torch.nan_to_num(a)", KILN_CALL(nan_to_num(x[0])), {complex_({3, 4})})
      .dtypes(kComplex);
  op("float_power", "torch.float_power(a, 2)", KILN_CALL(float_power(x[0], 2)),
     {complex_({3, 4}, 0.5, 2)})
      .dtypes(kComplex)
      .gradient_tolerance(1e-5);
  op("isclose", "torch.isclose(a, b, rtol=0.5, atol=0.5)", KILN_CALL(isclose(x[0], x[1], 0.5, 0.5)),
     {complex_({3, 4}), complex_({3, 4})})
      .dtypes(kComplex)
      .no_gradient();
  op("reciprocal", "torch.reciprocal(torch.complex(a, b))",
     KILN_CALL(reciprocal(kiln::complex(x[0], x[1]))),
     {values({INFINITY, -INFINITY, 0, 1, 2}), values({1, 0, INFINITY, 0, -3})})
      .dtypes(kDoubles)
      .no_gradient();
}

KILN_OP_CASES(complex_more_products) {
  op("outer", "torch.outer(a, b)", KILN_CALL(outer(x[0], x[1])), {complex_({3}), complex_({4})})
      .dtypes(kComplex);
  op("kron", "torch.kron(a, b)", KILN_CALL(kron(x[0], x[1])), {complex_({2, 3}), complex_({2})})
      .dtypes(kComplex);
  op("vdot", "torch.vdot(a, b)", KILN_CALL(vdot(x[0], x[1])), {complex_({5}), complex_({5})})
      .dtypes(kComplex);
  op("inner", "torch.inner(a, b)", KILN_CALL(inner(x[0], x[1])),
     {complex_({2, 3, 4}), complex_({2, 4})})
      .dtypes(kComplex)
      .loose(4);
  op("mv", "torch.mv(a, b)", KILN_CALL(mv(x[0], x[1])), {complex_({3, 4}), complex_({4})})
      .dtypes(kComplex);
  op("addmm", "torch.addmm(a, b, c, beta=0.5, alpha=-2)",
     KILN_CALL(addmm(x[0], x[1], x[2], 0.5, -2)),
     {complex_({3, 2}), complex_({3, 4}), complex_({4, 2})})
      .dtypes(kComplex)
      .loose(4);
  op("baddbmm", "torch.baddbmm(a, b, c)", KILN_CALL(baddbmm(x[0], x[1], x[2])),
     {complex_({2, 1, 2}), complex_({2, 3, 4}), complex_({2, 4, 2})})
      .dtypes(kComplex)
      .loose(4);
  op("tensordot", "torch.tensordot(a, b, ([0, 2], [1, 0]))",
     KILN_CALL(tensordot(x[0], x[1], Dims{0, 2}, Dims{1, 0})),
     {complex_({2, 3, 4}), complex_({4, 2, 5})})
      .dtypes(kComplex)
      .loose(8);
  for (const std::string equation : {"bij,bjk->bik", "ii->i", "i,j->ij", "ij,ij->"}) {
    const bool two = equation.find(',') != std::string::npos;
    std::vector<Input> inputs{equation == "i,j->ij"        ? complex_({3})
                              : equation == "bij,bjk->bik" ? complex_({2, 3, 4})
                                                           : complex_({3, 3})};
    if (two) {
      inputs.push_back(equation == "i,j->ij"        ? complex_({4})
                       : equation == "bij,bjk->bik" ? complex_({2, 4, 2})
                                                    : complex_({3, 3}));
    }
    op(
        "einsum", "torch.einsum('" + equation + "', a" + (two ? ", b)" : ")"),
        [equation](const Tensors& x) { return einsum(equation, x); }, inputs)
        .dtypes(kComplex)
        .loose(4);
  }
}

}  // namespace kiln::ops
