// Linear algebra: products, factorizations, solvers, eigenvalues, norms. What is only defined up to
// a sign is compared by its absolute value; symmetric inputs are made symmetric within the call, so
// that a change of one element keeps them so.
#include <cmath>
#include <limits>

#include "tests/ops/case.h"

namespace kiln::ops {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Tensor mT(const Tensor& x) { return x.transpose(-2, -1); }
Tensor symmetric(const Tensor& x) { return x + mT(x); }

// Away from singular: a strong diagonal of distinct values.
Tensor regular(const Tensor& x) {
  const int64_t n = std::min(x.size(-1), x.size(-2));
  Tensor out = x * 0.5;
  for (int64_t i = 0; i < n; ++i) {
    out.select(-1, i).select(-1, i).add_(3.0 + 1.5 * static_cast<double>(i));
  }
  return out;
}
Tensor positive(const Tensor& x) {
  return (matmul(x, mT(x)) * 0.5 + eye(x.size(-1), {.dtype = f64, .device = x.device()})) * 0.5;
}

Input square(const Shape& shape) { return real(shape).then(regular); }
Input spd(const Shape& shape) { return real(shape).then(positive); }
Input lower_mask() { return values({1, 0, 0, 1, 1, 0, 1, 1, 1}, {3, 3}); }
Input singular() { return values({1, 2, 2, 4}, {2, 2}); }

}  // namespace

KILN_OP_CASES(products) {
  op("mm", "torch.mm(a, b)", [](const Tensors& x) { return mm(x[0], x[1]); },
     {real({3, 4}), real({4, 2})})
      .dtypes(kReals)
      .big({real({512, 512}), real({512, 512})})
      .loose(4);
  op("bmm", "torch.bmm(a, b)", [](const Tensors& x) { return bmm(x[0], x[1]); },
     {real({2, 3, 4}), real({2, 4, 2})})
      .dtypes(kReals)
      .loose(4);
  op("mv", "torch.mv(a, b)", [](const Tensors& x) { return mv(x[0], x[1]); },
     {real({3, 4}), real({4})})
      .dtypes(kReals)
      .big({real({1024, 1024}), real({1024})})
      .loose(4);
  op("dot", "torch.dot(a, b)", [](const Tensors& x) { return dot(x[0], x[1]); },
     {real({5}), real({5})})
      .dtypes(kReals)
      .big({real({1 << 20}), real({1 << 20})})
      .loose(4);
  op("vdot", "torch.vdot(a, b)", [](const Tensors& x) { return vdot(x[0], x[1]); },
     {real({5}), real({5})})
      .dtypes(kReals)
      .loose(4);
  op("inner", "torch.inner(a, b)", [](const Tensors& x) { return inner(x[0], x[1]); },
     {real({2, 3, 4}), real({2, 4})})
      .dtypes(kReals)
      .loose(4);
  op("inner", "torch.inner(a, b)", [](const Tensors& x) { return inner(x[0], x[1]); },
     {real({}), real({2, 4})});
  op("outer", "torch.outer(a, b)", [](const Tensors& x) { return outer(x[0], x[1]); },
     {real({3}), real({4})})
      .dtypes(kReals)
      .big({real({1024}), real({1024})});
  op("ger", "torch.ger(a, b)", [](const Tensors& x) { return ger(x[0], x[1]); },
     {real({3}), real({4})});
  op("addmm", "torch.addmm(a, b, c)", [](const Tensors& x) { return addmm(x[0], x[1], x[2]); },
     {real({2}), real({3, 4}), real({4, 2})})
      .dtypes(kReals)
      .big({real({512}), real({512, 512}), real({512, 512})})
      .loose(8);
  op("addmm", "torch.addmm(a, b, c, beta=0.5, alpha=-2)",
     [](const Tensors& x) { return addmm(x[0], x[1], x[2], 0.5, -2); },
     {real({3, 2}), real({3, 4}), real({4, 2})})
      .loose(8);
  op("addmm", "torch.addmm(a, b, c, beta=0)",
     [](const Tensors& x) { return addmm(x[0], x[1], x[2], 0); },
     {values({NAN, kInf}), constant({3, 4}), constant({4, 2})})
      .loose(4);
  op("addmv", "torch.addmv(a, b, c, beta=2)",
     [](const Tensors& x) { return addmv(x[0], x[1], x[2], 2); },
     {real({3}), real({3, 4}), real({4})})
      .dtypes(kReals)
      .loose(8);
  op("addr", "torch.addr(a, b, c, alpha=3)",
     [](const Tensors& x) { return addr(x[0], x[1], x[2], 1, 3); },
     {real({3, 4}), real({3}), real({4})})
      .dtypes(kReals)
      .loose(8);
  op("baddbmm", "torch.baddbmm(a, b, c)",
     [](const Tensors& x) { return baddbmm(x[0], x[1], x[2]); },
     {real({2, 1, 2}), real({2, 3, 4}), real({2, 4, 2})})
      .dtypes(kReals)
      .loose(8);
  op("addbmm", "torch.addbmm(a, b, c)", [](const Tensors& x) { return addbmm(x[0], x[1], x[2]); },
     {real({3, 2}), real({2, 3, 4}), real({2, 4, 2})})
      .dtypes(kReals)
      .loose(8);
  op("chain_matmul", "torch.chain_matmul(a, b, c)",
     [](const Tensors& x) { return chain_matmul(x); }, {real({2, 5}), real({5, 3}), real({3, 4})})
      .dtypes(kDoubles);
  op("linalg.multi_dot", "torch.linalg.multi_dot([a, b, c])",
     [](const Tensors& x) { return linalg::multi_dot(x); }, {real({5}), real({5, 3}), real({3, 4})})
      .dtypes(kDoubles);
  op("tensordot", "torch.tensordot(a, b, 1)",
     [](const Tensors& x) { return tensordot(x[0], x[1], 1); }, {real({2, 3, 4}), real({4, 5})})
      .dtypes(kReals)
      .loose(8);
  op("tensordot", "torch.tensordot(a, b, ([0, 2], [1, 0]))",
     [](const Tensors& x) {
       return tensordot(x[0], x[1], Dims{0, 2}, Dims{1, 0});
     },
     {real({2, 3, 4}), real({4, 2, 5})})
      .loose(8);
  op("tensordot", "torch.tensordot(a, b, 0)",
     [](const Tensors& x) { return tensordot(x[0], x[1], 0); }, {real({2}), real({3})});
  op("kron", "torch.kron(a, b)", [](const Tensors& x) { return kron(x[0], x[1]); },
     {real({2, 3}), real({2})})
      .dtypes(kReals)
      .big({real({32, 32}), real({1024})});
  op("cross", "torch.linalg.cross(a, b)",
     [](const Tensors& x) { return linalg::cross(x[0], x[1]); }, {real({4, 3}), real({1, 3})})
      .dtypes(kReals)
      .loose(2)
      .big({real({1 << 18, 3}), real({1 << 18, 3})});
  op("cross", "torch.cross(a, b, dim=0)", [](const Tensors& x) { return cross(x[0], x[1], 0); },
     {real({3, 4}), real({3, 4})})
      .big({real({3, 1 << 18}), real({3, 1 << 18})});
  op("trace", "torch.trace(a)", [](const Tensors& x) { return trace(x[0]); }, {real({3, 4})})
      .dtypes(kReals)
      .loose(2);
  op("linalg.vecdot", "torch.linalg.vecdot(a, b, dim=0)",
     [](const Tensors& x) { return linalg::vecdot(x[0], x[1], 0); }, {real({3, 4}), real({3, 1})})
      .dtypes(kDoubles);
  op("linalg.diagonal", "torch.linalg.diagonal(a, offset=1, dim1=0, dim2=2)",
     [](const Tensors& x) { return linalg::diagonal(x[0], 1, 0, 2); }, {real({3, 2, 4})});
  op("linalg.vander", "torch.linalg.vander(a, N=4)",
     [](const Tensors& x) { return linalg::vander(x[0], 4); }, {real({2, 3})})
      .dtypes({f64, f32, i64, i32, i16, i8, u8});
}

KILN_OP_CASES(einsum) {
  const auto sum = [](std::string equation, std::vector<Input> inputs) -> Case& {
    std::string names;
    for (size_t i = 0; i < inputs.size(); ++i) {
      names += std::string(", ") + static_cast<char>('a' + i);
    }
    return op(
               "einsum", "torch.einsum('" + equation + "'" + names + ")",
               [equation](const Tensors& x) { return einsum(equation, x); }, std::move(inputs))
        .loose(8);
  };
  sum("ij,jk->ik", {real({3, 4}), real({4, 2})}).dtypes(kReals);
  sum("bij,bjk->bik", {real({2, 3, 4}), real({2, 4, 2})});
  sum("ij,jk", {real({3, 4}), real({4, 2})});
  sum("ba", {real({3, 4})});
  sum("ii->i", {real({3, 3})});
  sum("ii", {real({3, 3})});
  sum("ij->", {real({3, 4})});
  sum("iji->j", {real({3, 4, 3})});
  sum("i,j->ij", {real({3}), real({4})});
  sum("ij,ij->ij", {real({3, 4}), real({3, 4})});
  sum("ij,ij->j", {real({3, 4}), real({3, 4})});
  sum("...ij,...jk->...ik", {real({2, 1, 3, 4}), real({5, 4, 2})});
  sum("i...->...", {real({3, 2, 4})});
  sum("...,...->...", {real({2, 3}), real({3})});
  sum("b...i,b...i->...b", {real({2, 3, 4}), real({2, 3, 4})});
  sum("ij,jk->ik", {real({3, 1}), real({4, 2})});
  sum("ij,jk,kl->il", {real({3, 4}), real({4, 2}), real({2, 5})});
  sum("bn,anm,bm->ba", {real({2, 3}), real({4, 3, 5}), real({2, 5})});
  sum("i,i,i->", {real({4}), real({4}), real({4})});
  sum(" i j , j -> i ", {real({3, 4}), real({4})});
  sum("aB,Bc->ac", {real({3, 4}), real({4, 2})});
  sum("bhqd,bhkd->bhqk", {real({2, 2, 3, 4}), real({2, 2, 5, 4})})
      .big({real({4, 8, 128, 64}), real({4, 8, 128, 64})});
}

KILN_OP_CASES(cdist) {
  for (const double p : {2.0, 1.0, 0.0, 3.0, 1.5, kInf}) {
    const std::string text = p == kInf ? "inf" : std::to_string(p);
    op("cdist", "torch.cdist(a, b, p=" + text + ")",
       [p](const Tensors& x) { return cdist(x[0], x[1], p); }, {real({2, 4, 3}), real({5, 3})})
        .dtypes(kDoubles)
        .loose(4)
        .gradient_tolerance(1e-5);
  }
  op("cdist", "torch.cdist(a, b)", [](const Tensors& x) { return cdist(x[0], x[1]); },
     {real({30, 3}), real({4, 3}, 3, 6)})
      .dtypes(kFloats)
      .big({real({512, 64}), real({512, 64})});
  op("cdist", "torch.cdist(a, a.clone())",
     [](const Tensors& x) { return cdist(x[0], x[0].clone()); }, {constant({3, 2})})
      .dtypes(kDoubles);
}

KILN_OP_CASES(factorizations) {
  op("linalg.cholesky", "torch.linalg.cholesky(a + a.transpose(-2, -1))",
     [](const Tensors& x) { return linalg::cholesky(symmetric(x[0])); }, {spd({2, 3, 3})})
      .dtypes(kDoubles)
      .big({spd({256, 256})})
      .loose(8);
  op("linalg.cholesky", "torch.linalg.cholesky(a + a.transpose(-2, -1), upper=True)",
     [](const Tensors& x) { return linalg::cholesky(symmetric(x[0]), true); }, {spd({3, 3})})
      .dtypes(kDoubles)
      .loose(8);
  op("linalg.cholesky_ex", "torch.linalg.cholesky_ex(a)[1]",
     [](const Tensors& x) { return linalg::cholesky_ex(x[0]).second; },
     {values({1, 2, 2, 1}, {2, 2})})
      .dtypes(kDoubles);
  // PyTorch gives the triangle that is not read a gradient too: it is masked away.
  op("cholesky_solve", "torch.cholesky_solve(a, b * c)",
     [](const Tensors& x) { return cholesky_solve(x[0], x[1] * x[2]); },
     {real({3, 2}), square({3, 3}), lower_mask()})
      .dtypes(kDoubles)
      .loose(8);
  op("cholesky_solve", "torch.cholesky_solve(a, b * c.transpose(0, 1), upper=True)",
     [](const Tensors& x) { return cholesky_solve(x[0], x[1] * mT(x[2]), true); },
     {real({2, 3, 2}), square({3, 3}), lower_mask()})
      .dtypes(kDoubles)
      .loose(8);
  op("cholesky_inverse", "torch.cholesky_inverse(a * b)",
     [](const Tensors& x) { return cholesky_inverse(x[0] * x[1]); }, {square({3, 3}), lower_mask()})
      .dtypes(kDoubles)
      .loose(8);
  for (const bool wide : {false, true}) {
    const Shape shape = wide ? Shape{2, 3, 5} : Shape{2, 4, 3};
    op("linalg.qr", "torch.linalg.qr(a)", [](const Tensors& x) { return linalg::qr(x[0]); },
       {real(shape).then(regular)})
        .dtypes(kDoubles)
        .loose(8)
        .gradient_tolerance(1e-5);
    op("linalg.lu", "torch.linalg.lu(a)", [](const Tensors& x) { return linalg::lu(x[0]); },
       {real(shape).then(regular)})
        .dtypes(kDoubles)
        .loose(8);
    op("linalg.lu_factor", "torch.linalg.lu_factor(a)",
       [](const Tensors& x) { return linalg::lu_factor(x[0]); }, {real(shape).then(regular)})
        .dtypes(kDoubles)
        .loose(8);
  }
  op("linalg.qr", "torch.linalg.qr(a, mode='complete')",
     [](const Tensors& x) { return linalg::qr(x[0], "complete"); }, {square({3, 4})})
      .dtypes(kDoubles)
      .loose(8)
      .gradient_tolerance(1e-5);
  op("linalg.qr", "torch.linalg.qr(a, mode='complete')",
     [](const Tensors& x) { return linalg::qr(x[0], "complete"); },
     {constant({4, 3}).then(regular)})
      .dtypes(kDoubles)
      .loose(8);
  op("linalg.qr", "torch.linalg.qr(a, mode='r')",
     [](const Tensors& x) { return linalg::qr(x[0], "r"); }, {constant({4, 3}).then(regular)})
      .dtypes(kDoubles)
      .big({constant({256, 256})})
      .loose(8);
  op("linalg.lu", "torch.linalg.lu(a)", [](const Tensors& x) { return linalg::lu(x[0]); },
     {real({3, 3})})
      .dtypes(kDoubles)
      .big({real({256, 256})})
      .loose(8);
  op("lu_unpack", "torch.lu_unpack(*torch.linalg.lu_factor(a))",
     [](const Tensors& x) {
       const auto [lu, pivots] = linalg::lu_factor(x[0]);
       return lu_unpack(lu, pivots);
     },
     {real({3, 3})})
      .dtypes(kDoubles)
      .loose(8);
  for (const bool left : {true, false}) {
    for (const bool adjoint : {false, true}) {
      const std::string options = std::string("left=") + (left ? "True" : "False") +
                                  ", adjoint=" + (adjoint ? "True" : "False");
      op("linalg.lu_solve", "torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b, " + options + ")",
         [left, adjoint](const Tensors& x) {
           const auto [lu, pivots] = linalg::lu_factor(x[0]);
           return linalg::lu_solve(lu, pivots, x[1], left, adjoint);
         },
         {square({3, 3}), left ? real({2, 3, 2}) : real({2, 2, 3})})
          .dtypes(kDoubles)
          .loose(8);
    }
  }
  op("linalg.ldl_solve",
     "torch.linalg.ldl_solve(*torch.linalg.ldl_factor((a + a.transpose(-2, -1)).detach()), b)",
     [](const Tensors& x) {
       const auto [ld, pivots] = linalg::ldl_factor(symmetric(x[0]).detach());
       return linalg::ldl_solve(ld, pivots, x[1]);
     },
     {constant({3, 3}), constant({3, 2})})
      .dtypes(kDoubles)
      .loose(64);
  op("linalg.ldl_solve",
     "torch.linalg.ldl_solve(*torch.linalg.ldl_factor((a + a.transpose(-2, -1)).detach()), b)",
     [](const Tensors& x) {
       const auto [ld, pivots] = linalg::ldl_factor(symmetric(x[0]).detach());
       return linalg::ldl_solve(ld, pivots, x[1]);
     },
     {constant({3, 3}), real({3, 2})})
      .dtypes({f64})
      .no_peer("PyTorch has no derivative of it");
  op("linalg.householder_product", "torch.linalg.householder_product(a, b)",
     [](const Tensors& x) { return linalg::householder_product(x[0], x[1]); },
     {real({2, 4, 3}), real({2, 2}, 0.2, 0.8)})
      .dtypes(kDoubles)
      .loose(8);
}

KILN_OP_CASES(reflectors) {
  for (const bool left : {true, false}) {
    for (const bool transpose : {false, true}) {
      for (const bool tracked : {false, true}) {
        const auto input = [tracked](const Shape& shape) {
          return tracked ? real(shape) : constant(shape);
        };
        op("ormqr",
           concat("torch.ormqr(a, b, c, left=", left ? "True" : "False",
                  ", transpose=", transpose ? "True" : "False", ")"),
           [=](const Tensors& x) { return ormqr(x[0], x[1], x[2], left, transpose); },
           {input({2, 4, 3}), tracked ? real({2, 3}, 0.2, 0.8) : constant({2, 3}, 0.2, 0.8),
            left ? input({2, 4, 2}) : input({2, 2, 4})})
            .dtypes(kDoubles)
            .loose(8);
      }
    }
  }
  for (const Shape& shape : {Shape{2, 4, 3}, Shape{3, 5}, Shape{20, 20}}) {
    op("geqrf", "torch.geqrf(a)", [](const Tensors& x) { return geqrf(x[0]); },
       {constant(shape).then(regular)})
        .dtypes(kDoubles)
        .loose(8);
  }
  // Of every size that has loops of its own, and the next.
  for (int64_t n = 1; n <= 18; ++n) {
    op("linalg.inv", "torch.linalg.inv(a)", [](const Tensors& x) { return linalg::inv(x[0]); },
       {constant({3, n, n}).then(regular)})
        .dtypes(kDoubles)
        .loose(16);
    op("linalg.solve", "torch.linalg.solve(a, b)",
       [](const Tensors& x) { return linalg::solve(x[0], x[1]); },
       {constant({3, n, n}).then(regular), constant({3, n, 2})})
        .dtypes(kDoubles)
        .loose(16);
    op("linalg.qr", "torch.linalg.qr(a)", [](const Tensors& x) { return linalg::qr(x[0]); },
       {constant({3, n, 9}).then(regular)})
        .dtypes(kDoubles)
        .loose(16);
    op("linalg.cholesky", "torch.linalg.cholesky(a + a.transpose(-2, -1))",
       [](const Tensors& x) { return linalg::cholesky(symmetric(x[0])); },
       {constant({3, n, n}).then(positive)})
        .dtypes(kDoubles)
        .loose(16);
  }
}

KILN_OP_CASES(solvers) {
  op("linalg.solve", "torch.linalg.solve(a, b)",
     [](const Tensors& x) { return linalg::solve(x[0], x[1]); }, {square({3, 3}), real({3, 2})})
      .dtypes(kDoubles)
      .big({square({256, 256}), real({256, 256})})
      .loose(8);
  op("linalg.solve", "torch.linalg.solve(a, b)",
     [](const Tensors& x) { return linalg::solve(x[0], x[1]); },
     {square({2, 1, 3, 3}), real({4, 3, 2})})
      .dtypes(kDoubles)
      .loose(8);
  op("linalg.solve", "torch.linalg.solve(a, b)",
     [](const Tensors& x) { return linalg::solve(x[0], x[1]); }, {square({2, 3, 3}), real({2, 3})})
      .dtypes(kDoubles)
      .loose(8);
  op("linalg.solve", "torch.linalg.solve(a, b, left=False)",
     [](const Tensors& x) { return linalg::solve(x[0], x[1], false); },
     {square({3, 3}), real({2, 2, 3})})
      .dtypes(kDoubles)
      .loose(8);
  op("linalg.solve_ex", "torch.linalg.solve_ex(a, b)",
     [](const Tensors& x) { return linalg::solve_ex(x[0], x[1]); }, {square({3, 3}), real({3, 2})})
      .dtypes(kDoubles)
      .loose(8);
  for (const int which : {0, 1, 2, 3, 4}) {
    const bool upper = which & 1;
    const bool left = !(which & 2);
    const bool unit = which == 4;
    const std::string options = std::string("upper=") + (upper ? "True" : "False") +
                                ", left=" + (left ? "True" : "False") +
                                ", unitriangular=" + (unit ? "True" : "False");
    op("linalg.solve_triangular", "torch.linalg.solve_triangular(a, b, " + options + ")",
       [=](const Tensors& x) { return linalg::solve_triangular(x[0], x[1], upper, left, unit); },
       {square({2, 3, 3}), left ? real({3, 2}) : real({2, 3})})
        .dtypes(kDoubles)
        .big({square({256, 256}), real({256, 256})})
        .loose(8);
  }
  op("linalg.inv", "torch.linalg.inv(a)", [](const Tensors& x) { return linalg::inv(x[0]); },
     {square({2, 3, 3})})
      .dtypes(kDoubles)
      .big({square({256, 256})})
      .loose(8);
  op("linalg.inv", "torch.linalg.inv(a)", [](const Tensors& x) { return linalg::inv(x[0]); },
     {constant({0, 3, 3})})
      .dtypes(kDoubles);
  op("linalg.inv_ex", "torch.linalg.inv_ex(a)",
     [](const Tensors& x) { return linalg::inv_ex(x[0]); }, {square({3, 3})})
      .dtypes(kDoubles)
      .loose(8);
  op("linalg.det", "torch.linalg.det(a)", [](const Tensors& x) { return linalg::det(x[0]); },
     {real({2, 3, 3})})
      .dtypes(kDoubles)
      .loose(8);
  op("linalg.det", "torch.linalg.det(a)", [](const Tensors& x) { return linalg::det(x[0]); },
     {constant({0, 0})})
      .dtypes(kDoubles);
  op("linalg.det", "torch.linalg.det(a)", [](const Tensors& x) { return linalg::det(x[0]); },
     {singular()})
      .dtypes(kDoubles);
  op("linalg.slogdet", "torch.linalg.slogdet(a)",
     [](const Tensors& x) { return linalg::slogdet(x[0]); }, {real({2, 3, 3})})
      .dtypes(kDoubles)
      .loose(8);
  op("linalg.slogdet", "torch.linalg.slogdet(a)",
     [](const Tensors& x) { return linalg::slogdet(x[0]); }, {singular()})
      .dtypes(kDoubles);
  op("logdet", "torch.logdet(a)", [](const Tensors& x) { return logdet(x[0]); }, {spd({2, 3, 3})})
      .dtypes(kDoubles)
      .loose(8);
  op("logdet", "torch.logdet(a)", [](const Tensors& x) { return logdet(x[0]); },
     {values({0, 1, 1, 0}, {2, 2})})
      .dtypes(kDoubles);
  for (const std::string driver : {"gels", "gelsy", "gelsd", "gelss"}) {
    op("linalg.lstsq", "torch.linalg.lstsq(a, b, driver='" + driver + "')[0]",
       [driver](const Tensors& x) { return std::get<0>(linalg::lstsq(x[0], x[1], {}, driver)); },
       {square({2, 4, 3}), real({2, 4, 2})})
        .dtypes(kDoubles)
        .loose(16);
  }
  op("linalg.lstsq", "torch.linalg.lstsq(a, b, driver='gelsd')",
     [](const Tensors& x) { return linalg::lstsq(x[0], x[1], {}, "gelsd"); },
     {constant({4, 3}).then(regular), constant({4, 2})})
      .dtypes(kDoubles)
      .loose(16);
  op("linalg.lstsq", "torch.linalg.lstsq(a, b)[0]",
     [](const Tensors& x) { return std::get<0>(linalg::lstsq(x[0], x[1])); },
     {square({3, 4}), real({3, 2})})
      .dtypes(kDoubles)
      .loose(16);
  op("linalg.tensorinv", "torch.linalg.tensorinv(a.reshape(2, 3, 3, 2))",
     [](const Tensors& x) {
       return linalg::tensorinv(x[0].reshape({2, 3, 3, 2}));
     },
     {square({6, 6})})
      .dtypes(kDoubles)
      .loose(8);
  op("linalg.tensorsolve", "torch.linalg.tensorsolve(a.reshape(2, 3, 6), b)",
     [](const Tensors& x) {
       return linalg::tensorsolve(x[0].reshape({2, 3, 6}), x[1]);
     },
     {square({6, 6}), real({2, 3})})
      .dtypes(kDoubles)
      .loose(8);
}

KILN_OP_CASES(eigenvalues) {
  op("linalg.eigh", "torch.linalg.eigh(a + a.transpose(-2, -1))[1].abs()",
     [](const Tensors& x) { return linalg::eigh(symmetric(x[0])).second.abs(); },
     {square({2, 3, 3})})
      .dtypes(kDoubles)
      .loose(64)
      .gradient_tolerance(1e-5);
  op("linalg.eigh", "torch.linalg.eigh(a + a.transpose(-2, -1), UPLO='U')[0]",
     [](const Tensors& x) { return linalg::eigh(symmetric(x[0]), "U").first; }, {square({3, 3})})
      .dtypes(kDoubles)
      .big({square({128, 128})})
      .loose(8);
  op("linalg.eigvalsh", "torch.linalg.eigvalsh(a + a.transpose(-2, -1))",
     [](const Tensors& x) { return linalg::eigvalsh(symmetric(x[0])); }, {square({2, 3, 3})})
      .dtypes(kDoubles)
      .loose(8);
  for (const Shape& shape : {Shape{2, 3, 3}, Shape{4, 3}, Shape{3, 4}}) {
    op("linalg.svd", "[t.abs() for t in torch.linalg.svd(a, full_matrices=False)]",
       [](const Tensors& x) {
         const auto [u, s, vh] = linalg::svd(x[0], false);
         return Tensors{u.abs(), s, vh.abs()};
       },
       {real(shape).then(regular)})
        .dtypes(kDoubles)
        .loose(64)
        .gradient_tolerance(1e-5);
  }
  op("linalg.svd", "torch.linalg.svd(a)[1]",
     [](const Tensors& x) { return std::get<1>(linalg::svd(x[0])); }, {square({4, 3})})
      .dtypes(kDoubles)
      .big({square({128, 128})})
      .loose(8);
  op("linalg.svdvals", "torch.linalg.svdvals(a)",
     [](const Tensors& x) { return linalg::svdvals(x[0]); }, {square({2, 3, 4})})
      .dtypes(kDoubles)
      .loose(8);
  for (const Shape& shape : {Shape{3, 3}, Shape{2, 4, 3}, Shape{3, 4}}) {
    op("linalg.pinv", "torch.linalg.pinv(a)", [](const Tensors& x) { return linalg::pinv(x[0]); },
       {real(shape).then(regular)})
        .dtypes(kDoubles)
        .loose(16);
  }
  op("linalg.pinv", "torch.linalg.pinv(a, rtol=0.1)",
     [](const Tensors& x) { return linalg::pinv(x[0], {}, 0.1); }, {singular()})
      .dtypes(kDoubles)
      .loose(8);
  op("linalg.pinv", "torch.linalg.pinv(a + a.transpose(-2, -1), hermitian=True)",
     [](const Tensors& x) { return linalg::pinv(symmetric(x[0]), {}, {}, true); }, {square({3, 3})})
      .dtypes(kDoubles)
      .loose(16);
  op("linalg.matrix_rank", "torch.linalg.matrix_rank(a)",
     [](const Tensors& x) { return linalg::matrix_rank(x[0]); }, {singular()})
      .dtypes(kDoubles);
  op("linalg.matrix_rank", "torch.linalg.matrix_rank(a, atol=0.5, hermitian=True)",
     [](const Tensors& x) { return linalg::matrix_rank(x[0], 0.5, {}, true); },
     {values({2, 0, 0, 0.25}, {2, 2})})
      .dtypes(kDoubles);
}

KILN_OP_CASES(norms) {
  for (const double p : {2.0, 1.0, 0.0, 3.0, 0.5, -1.0, kInf, -kInf}) {
    const std::string text = p == kInf ? "inf" : p == -kInf ? "-inf" : std::to_string(p);
    op("linalg.vector_norm", "torch.linalg.vector_norm(a, " + text + ", dim=1)",
       [p](const Tensors& x) { return linalg::vector_norm(x[0], p, {1}); },
       {real({3, 4}).away_from(0)})
        .big({real({1024, 1024})})
        .loose(8)
        .gradient_tolerance(1e-5);
  }
  op("linalg.vector_norm", "torch.linalg.vector_norm(a, dim=(0, 2), keepdim=True)",
     [](const Tensors& x) {
       return linalg::vector_norm(x[0], 2, {0, 2}, true);
     },
     {real({2, 3, 4})})
      .loose(8)
      .big({real({4, 512, 512})});
  op("linalg.vector_norm", "torch.linalg.vector_norm(a)",
     [](const Tensors& x) { return linalg::vector_norm(x[0]); }, {real({3, 4})})
      .loose(8)
      .big({real({1024, 1024})});
  const std::pair<double, const char*> orders[] = {{1, "1"},   {-1, "-1"},    {2, "2"},
                                                   {-2, "-2"}, {kInf, "inf"}, {-kInf, "-inf"}};
  for (const auto& [p, text] : orders) {
    op("linalg.matrix_norm", concat("torch.linalg.matrix_norm(a, ", text, ")"),
       [p = p](const Tensors& x) { return linalg::matrix_norm(x[0], p); },
       {real({2, 3, 4}).then(regular).away_from(0)})
        .dtypes(kDoubles)
        .loose(8);
    op("linalg.cond", concat("torch.linalg.cond(a, ", text, ")"),
       [p = p](const Tensors& x) { return linalg::cond(x[0], p); },
       {constant({2, 3, 3}).then(regular)})
        .dtypes(kDoubles)
        .loose(16);
    op("linalg.cond", concat("torch.linalg.cond(a, ", text, ")"),
       [p = p](const Tensors& x) { return linalg::cond(x[0], p); }, {square({2, 3, 3})})
        .dtypes({f64})
        .no_peer(std::abs(p) == 2 ? "" : "PyTorch 2.13 fails to differentiate it");
  }
  for (const std::string p : {"fro", "nuc"}) {
    op("linalg.matrix_norm", "torch.linalg.matrix_norm(a, '" + p + "', dim=(2, 0), keepdim=True)",
       [p](const Tensors& x) {
         return linalg::matrix_norm(x[0], p, {2, 0}, true);
       },
       {real({3, 2, 4})})
        .dtypes(kDoubles)
        .loose(8);
    op("linalg.cond", "torch.linalg.cond(a, '" + p + "')",
       [p](const Tensors& x) { return linalg::cond(x[0], p); }, {constant({2, 3, 3}).then(regular)})
        .dtypes(kDoubles)
        .loose(16);
    op("linalg.cond", "torch.linalg.cond(a, '" + p + "')",
       [p](const Tensors& x) { return linalg::cond(x[0], p); }, {square({2, 3, 3})})
        .dtypes({f64})
        .no_peer(p == "nuc" ? "" : "PyTorch 2.13 fails to differentiate it");
  }
  op("linalg.norm", "torch.linalg.norm(a)", [](const Tensors& x) { return linalg::norm(x[0]); },
     {real({2, 3, 4})})
      .loose(8);
  op("linalg.norm", "torch.linalg.norm(a, 1)",
     [](const Tensors& x) { return linalg::norm(x[0], 1.0); }, {real({3, 4}).away_from(0)})
      .dtypes(kDoubles)
      .loose(8);
  op("linalg.norm", "torch.linalg.norm(a, 3, dim=1)",
     [](const Tensors& x) { return linalg::norm(x[0], 3.0, {1}); }, {real({3, 4}).away_from(0)})
      .dtypes(kDoubles)
      .loose(8);
  op("linalg.norm", "torch.linalg.norm(a, 'nuc')",
     [](const Tensors& x) { return linalg::norm(x[0], "nuc"); }, {square({3, 4})})
      .dtypes(kDoubles)
      .loose(8);
  op("linalg.cond", "torch.linalg.cond(a)", [](const Tensors& x) { return linalg::cond(x[0]); },
     {real({3, 4}).then(regular)})
      .dtypes(kDoubles)
      .loose(16);
  op("linalg.cond", "torch.linalg.cond(a, 1)",
     [](const Tensors& x) { return linalg::cond(x[0], 1.0); }, {singular()})
      .dtypes(kDoubles);
}

KILN_OP_CASES(matrix_functions) {
  for (const int n : {0, 1, 3, -2}) {
    op("linalg.matrix_power", concat("torch.linalg.matrix_power(a, ", n, ")"),
       [n](const Tensors& x) { return linalg::matrix_power(x[0], n); }, {square({2, 3, 3})})
        .dtypes(kDoubles)
        .loose(16);
  }
  op("linalg.matrix_exp", "torch.linalg.matrix_exp(a)",
     [](const Tensors& x) { return linalg::matrix_exp(x[0]); }, {real({2, 3, 3})})
      .dtypes(kDoubles)
      .loose(32);
  op("linalg.matrix_exp", "torch.linalg.matrix_exp(a)",
     [](const Tensors& x) { return linalg::matrix_exp(x[0]); }, {real({3, 3}, -0.005, 0.005)})
      .dtypes(kDoubles)
      .loose(8);
}

}  // namespace kiln::ops
