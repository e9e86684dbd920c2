// Linear algebra of complex matrices, and eigenvalues of general ones. What is only defined up to a
// phase or an order is compared by what does not depend on them.
#include <limits>

#include "tests/ops/call.h"

namespace kiln::ops {

namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

Tensor hermitian(const Tensor& x) { return x + adjoint(x); }
Tensor definite(const Tensor& x) {
  return matmul(x, adjoint(x)) + eye(x.size(-1), {.dtype = x.dtype(), .device = x.device()});
}
// Both parts away from singular: strong diagonals of distinct values.
Tensor complex_regular(const Tensor& x) {
  const int64_t n = std::min(x.size(-1), x.size(-2));
  Tensor out = x * 0.5;
  for (int64_t i = 0; i < n; ++i) {
    out.select(-1, i).select(-1, i).add_(3.0 + 1.5 * static_cast<double>(i));
  }
  return out;
}

Input complex_square(const Shape& shape) { return complex_(shape).then(complex_regular); }
Input real_square(const Shape& shape) { return real(shape).then(complex_regular); }
Input complex_lower_mask() { return values({1, 0, 0, 1, 1, 0, 1, 1, 1}, {3, 3}); }

const std::string kHermitian = "(a + a.transpose(-2, -1).conj())";
const std::string kPositive =
    "(a @ a.transpose(-2, -1).conj() + torch.eye(a.size(-1), dtype=a.dtype))";

// A function of all eigenvalues and eigenvectors that knows neither their order nor their phases.
Tensor spectrum(const std::pair<Tensor, Tensor>& x) {
  return (x.second.abs().square() * x.first.unsqueeze(-2)).sum(-1);
}
std::string spectrum_of(const std::string& call) {
  return "(lambda w, v: (v.abs().square() * w.unsqueeze(-2)).sum(-1))(*" + call + ")";
}

}  // namespace

KILN_OP_CASES(general_eigenvalues) {
  const std::string eig = "torch.linalg.eig(a)";
  const auto of = [&](const Input& input, const DTypes& dtypes) {
    op("linalg.eig", spectrum_of(eig), KILN_CALL(spectrum(linalg::eig(x[0]))), {input})
        .dtypes(dtypes)
        .loose(32)
        .gradient_tolerance(1e-5);
    op("linalg.eigvals", "torch.linalg.eigvals(a).sin().sum(-1)",
       KILN_CALL(linalg::eigvals(x[0]).sin().sum(-1)), {input})
        .dtypes(dtypes)
        .loose(256)
        .gradient_tolerance(1e-5);
  };
  of(real_square({2, 3, 3}), kDoubles);
  of(real({4, 4}), kDoubles);  // with conjugate pairs
  of(complex_square({2, 3, 3}), kComplex);
  op("linalg.eig",
     "(lambda w, v: v @ torch.diag_embed(w) @ torch.linalg.inv(v))(*torch.linalg.eig(a))",
     [](const Tensors& x) {
       const auto [w, v] = linalg::eig(x[0]);
       return matmul(v * w.unsqueeze(-2), linalg::inv(v));
     },
     {real({2, 4, 4})})
      .dtypes(kDoubles)
      .loose(32)
      .gradient_tolerance(1e-5);
  op("linalg.eigvals", "torch.linalg.eigvals(a).abs().sort()[0]",
     KILN_CALL(linalg::eigvals(x[0]).abs().sort().first), {constant({5, 5})})
      .dtypes(kDoubles)
      .big({constant({128, 128})})
      .loose(8);
  op("linalg.eig", "torch.linalg.eig(a)[0].abs().sort()[0]",
     KILN_CALL(linalg::eig(x[0]).first.abs().sort().first), {constant({5, 5})})
      .dtypes(kDoubles)
      .big({constant({128, 128})})
      .loose(8);
  op("linalg.eig", "torch.linalg.eig(a)", KILN_CALL(linalg::eig(x[0])), {constant({2, 0, 0})})
      .dtypes(kDoubles)
      .no_gradient();
}

KILN_OP_CASES(complex_factorizations) {
  for (const bool upper : {false, true}) {
    const std::string option = upper ? ", upper=True" : "";
    op("linalg.cholesky", "torch.linalg.cholesky(" + kPositive + option + ")",
       [upper](const Tensors& x) { return linalg::cholesky(definite(x[0]), upper); },
       {complex_({2, 3, 3})})
        .dtypes(kComplex)
        .loose(8)
        .gradient_tolerance(1e-5);
    op("cholesky_solve",
       std::string("torch.cholesky_solve(a, ") + (upper ? "(b * c).mT" : "b * c") + option + ")",
       [upper](const Tensors& x) {
         const Tensor l = x[1] * x[2];
         return cholesky_solve(x[0], upper ? l.transpose(-2, -1) : l, upper);
       },
       {complex_({2, 3, 2}), complex_square({3, 3}), complex_lower_mask()})
        .dtypes(kComplex)
        .loose(8);
    op("linalg.ldl_solve",
       concat("torch.linalg.ldl_solve(*torch.linalg.ldl_factor(", upper ? kHermitian : "(a + a.mT)",
              ", hermitian=", upper ? "True" : "False",
              "), b, hermitian=", upper ? "True" : "False", ")"),
       [upper](const Tensors& x) {
         const Tensor a = upper ? hermitian(x[0]) : x[0] + x[0].transpose(-2, -1);
         const auto [ld, pivots] = linalg::ldl_factor(a, upper);
         return linalg::ldl_solve(ld, pivots, x[1], upper);
       },
       {complex_square({3, 3}), complex_({3, 2})})
        .dtypes(kComplex)
        .no_gradient()
        .loose(64);
  }
  op("cholesky_inverse", "torch.cholesky_inverse(torch.linalg.cholesky(" + kPositive + "))",
     KILN_CALL(cholesky_inverse(linalg::cholesky(definite(x[0])))), {complex_({3, 3})})
      .dtypes(kComplex)
      .loose(8)
      .gradient_tolerance(1e-5);
  for (const Shape& shape : {Shape{2, 3, 5}, Shape{2, 4, 3}, Shape{3, 3}}) {
    op("linalg.qr", "torch.linalg.qr(a)", KILN_CALL(linalg::qr(x[0])),
       {complex_(shape).then(complex_regular)})
        .dtypes(kComplex)
        .loose(8)
        .gradient_tolerance(1e-5);
    op("linalg.lu", "torch.linalg.lu(a)", KILN_CALL(linalg::lu(x[0])),
       {complex_(shape).then(complex_regular)})
        .dtypes(kComplex)
        .loose(8);
    op("linalg.lu_factor", "torch.linalg.lu_factor(a)", KILN_CALL(linalg::lu_factor(x[0])),
       {complex_(shape).then(complex_regular)})
        .dtypes(kComplex)
        .loose(8);
  }
  for (const bool left : {true, false}) {
    for (const bool adjoint : {false, true}) {
      const std::string options = std::string("left=") + (left ? "True" : "False") +
                                  ", adjoint=" + (adjoint ? "True" : "False");
      op("linalg.lu_solve", "torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b, " + options + ")",
         [left, adjoint](const Tensors& x) {
           const auto [lu, pivots] = linalg::lu_factor(x[0]);
           return linalg::lu_solve(lu, pivots, x[1], left, adjoint);
         },
         {complex_square({3, 3}), left ? complex_({2, 3, 2}) : complex_({2, 2, 3})})
          .dtypes(kComplex)
          .loose(8);
    }
  }
  op("linalg.householder_product", "torch.linalg.householder_product(a, b)",
     KILN_CALL(linalg::householder_product(x[0], x[1])),
     {complex_({2, 4, 3}), complex_({2, 2}, 0.2, 0.8)})
      .dtypes(kComplex)
      .loose(8);
}

KILN_OP_CASES(complex_reflectors) {
  for (const bool left : {true, false}) {
    for (const bool transpose : {false, true}) {
      op("ormqr",
         concat("torch.ormqr(a, b, c, left=", left ? "True" : "False",
                ", transpose=", transpose ? "True" : "False", ")"),
         [=](const Tensors& x) { return ormqr(x[0], x[1], x[2], left, transpose); },
         {complex_({4, 3}), complex_({3}, 0.2, 0.8), left ? complex_({4, 2}) : complex_({2, 4})})
          .dtypes(kComplex)
          .loose(8);
    }
  }
  op("geqrf", "torch.geqrf(a)", KILN_CALL(geqrf(x[0])), {complex_square({2, 4, 3})})
      .dtypes(kComplex)
      .no_gradient()
      .loose(8);
  for (const int64_t n : {1, 2, 4, 7, 8, 11, 16}) {
    op("linalg.inv", "torch.linalg.inv(a)", KILN_CALL(linalg::inv(x[0])),
       {complex_square({2, n, n})})
        .dtypes(kComplex)
        .no_gradient()
        .loose(16);
    op("linalg.solve", "torch.linalg.solve(a, b, left=False)",
       KILN_CALL(linalg::solve(x[0], x[1], false)),
       {complex_square({2, n, n}), complex_({2, 2, n})})
        .dtypes(kComplex)
        .no_gradient()
        .loose(16);
    op("linalg.qr", "torch.linalg.qr(a)", KILN_CALL(linalg::qr(x[0])), {complex_square({2, n, 9})})
        .dtypes(kComplex)
        .no_gradient()
        .loose(16);
  }
}

KILN_OP_CASES(complex_solvers) {
  op("linalg.solve", "torch.linalg.solve(a, b)", KILN_CALL(linalg::solve(x[0], x[1])),
     {complex_square({2, 3, 3}), complex_({2, 3, 2})})
      .dtypes(kComplex)
      .big({complex_square({256, 256}), complex_({256, 256})})
      .loose(8);
  op("linalg.solve", "torch.linalg.solve(a, b, left=False)",
     KILN_CALL(linalg::solve(x[0], x[1], false)), {complex_square({3, 3}), complex_({2, 2, 3})})
      .dtypes(kComplex)
      .loose(8);
  for (const int which : {0, 1, 2, 3, 4}) {
    const bool upper = which & 1;
    const bool left = !(which & 2);
    const bool unit = which == 4;
    op("linalg.solve_triangular",
       concat("torch.linalg.solve_triangular(a, b, upper=", upper ? "True" : "False",
              ", left=", left ? "True" : "False", ", unitriangular=", unit ? "True" : "False", ")"),
       [=](const Tensors& x) { return linalg::solve_triangular(x[0], x[1], upper, left, unit); },
       {complex_square({2, 3, 3}), left ? complex_({3, 2}) : complex_({2, 3})})
        .dtypes(kComplex)
        .loose(8);
  }
  op("linalg.inv", "torch.linalg.inv(a)", KILN_CALL(linalg::inv(x[0])), {complex_square({2, 3, 3})})
      .dtypes(kComplex)
      .big({complex_square({256, 256})})
      .loose(8);
  op("linalg.det", "torch.linalg.det(a)", KILN_CALL(linalg::det(x[0])), {complex_({2, 3, 3})})
      .dtypes(kComplex)
      .loose(8);
  op("linalg.slogdet", "torch.linalg.slogdet(a)", KILN_CALL(linalg::slogdet(x[0])),
     {complex_({2, 3, 3})})
      .dtypes(kComplex)
      .loose(8);
  op("logdet", "torch.logdet(a)", KILN_CALL(logdet(x[0])), {complex_({2, 3, 3})})
      .dtypes(kComplex)
      .loose(8);
  for (const std::string driver : {"gels", "gelsy", "gelsd", "gelss"}) {
    op("linalg.lstsq", "torch.linalg.lstsq(a, b, driver='" + driver + "')[0]",
       [driver](const Tensors& x) { return std::get<0>(linalg::lstsq(x[0], x[1], {}, driver)); },
       {complex_square({2, 4, 3}), complex_({2, 4, 2})})
        .dtypes(kComplex)
        .loose(16);
  }
  op("linalg.lstsq", "torch.linalg.lstsq(a, b, driver='gelsd')",
     KILN_CALL(linalg::lstsq(x[0].detach(), x[1].detach(), {}, "gelsd")),
     {complex_square({4, 3}), complex_({4, 2})})
      .dtypes(kComplex)
      .no_gradient()
      .loose(16);
}

KILN_OP_CASES(complex_spectra) {
  op("linalg.eigh", spectrum_of("torch.linalg.eigh(" + kHermitian + ")"),
     KILN_CALL(spectrum(linalg::eigh(hermitian(x[0])))), {complex_square({2, 3, 3})})
      .dtypes(kComplex)
      .loose(32)
      .gradient_tolerance(1e-5);
  op("linalg.eigh", "torch.linalg.eigh(" + kHermitian + ", UPLO='U')[1].abs()",
     KILN_CALL(linalg::eigh(hermitian(x[0]), "U").second.abs()), {complex_square({3, 3})})
      .dtypes(kComplex)
      .loose(64)
      .gradient_tolerance(1e-5);
  op("linalg.eigvalsh", "torch.linalg.eigvalsh(" + kHermitian + ")",
     KILN_CALL(linalg::eigvalsh(hermitian(x[0]))), {complex_square({2, 3, 3})})
      .dtypes(kComplex)
      .loose(8);
  for (const Shape& shape : {Shape{2, 3, 3}, Shape{4, 3}, Shape{3, 4}}) {
    op("linalg.svd", "[t.abs() for t in torch.linalg.svd(a, full_matrices=False)]",
       [](const Tensors& x) {
         const auto [u, s, vh] = linalg::svd(x[0], false);
         return Tensors{u.abs(), s, vh.abs()};
       },
       {complex_square(shape)})
        .dtypes(kComplex)
        .loose(64)
        .gradient_tolerance(1e-5);
    // Each pair of vectors turns together.
    op("linalg.svd", "(lambda u, s, v: u[..., :2] @ v[..., :2, :])(*torch.linalg.svd(a))",
       [](const Tensors& x) {
         const auto [u, s, vh] = linalg::svd(x[0]);
         return matmul(u.narrow(-1, 0, 2), vh.narrow(-2, 0, 2));
       },
       {complex_square(shape)})
        .dtypes(kComplex)
        .loose(64)
        .gradient_tolerance(1e-5);
    op("linalg.pinv", "torch.linalg.pinv(a)", KILN_CALL(linalg::pinv(x[0])),
       {complex_square(shape)})
        .dtypes(kComplex)
        .loose(16);
  }
  op("linalg.svdvals", "torch.linalg.svdvals(a)", KILN_CALL(linalg::svdvals(x[0])),
     {complex_square({2, 3, 4})})
      .dtypes(kComplex)
      .loose(8);
  op("svd", "(lambda u, s, v: (u * s.unsqueeze(-2)) @ v.transpose(-2, -1).conj())(*torch.svd(a))",
     [](const Tensors& x) {
       const auto [u, s, vh] = linalg::svd(x[0], false);
       return matmul(u * s.unsqueeze(-2), vh);
     },
     {complex_square({4, 3})})
      .dtypes(kComplex)
      .loose(16);
  op("linalg.pinv", "torch.linalg.pinv(" + kHermitian + ", hermitian=True)",
     KILN_CALL(linalg::pinv(hermitian(x[0]), {}, {}, true)), {complex_square({3, 3})})
      .dtypes(kComplex)
      .loose(16);
  op("linalg.matrix_rank", "torch.linalg.matrix_rank(a)", KILN_CALL(linalg::matrix_rank(x[0])),
     {complex_({2, 3, 4})})
      .dtypes(kComplex)
      .no_gradient();
}

KILN_OP_CASES(complex_norms) {
  for (const double p : {2.0, 1.0, 0.0, 3.0, -1.0, kUnbounded, -kUnbounded}) {
    const std::string text = p == kUnbounded    ? "inf"
                             : p == -kUnbounded ? "-inf"
                                                : std::to_string(p);
    op("linalg.vector_norm", "torch.linalg.vector_norm(a, " + text + ", dim=1)",
       [p](const Tensors& x) { return linalg::vector_norm(x[0], p, {1}); }, {complex_({3, 4})})
        .dtypes(kComplex)
        .loose(8)
        .gradient_tolerance(1e-5);
  }
  const std::pair<double, const char*> orders[] = {
      {1, "1"}, {-1, "-1"}, {2, "2"}, {-2, "-2"}, {kUnbounded, "inf"}, {-kUnbounded, "-inf"}};
  for (const auto& [p, text] : orders) {
    op("linalg.matrix_norm", concat("torch.linalg.matrix_norm(a, ", text, ")"),
       [p = p](const Tensors& x) { return linalg::matrix_norm(x[0], p); },
       {complex_square({2, 3, 4})})
        .dtypes(kComplex)
        .loose(8);
    op("linalg.cond", concat("torch.linalg.cond(a, ", text, ")"),
       [p = p](const Tensors& x) { return linalg::cond(x[0], p); }, {complex_square({2, 3, 3})})
        .dtypes(kComplex)
        .no_gradient()
        .loose(16);
  }
  for (const std::string p : {"fro", "nuc"}) {
    op("linalg.matrix_norm", "torch.linalg.matrix_norm(a, '" + p + "', dim=(2, 0), keepdim=True)",
       [p](const Tensors& x) {
         return linalg::matrix_norm(x[0], p, {2, 0}, true);
       },
       {complex_({3, 2, 4})})
        .dtypes(kComplex)
        .loose(8);
  }
  op("linalg.norm", "torch.linalg.norm(a)", KILN_CALL(linalg::norm(x[0])), {complex_({2, 3, 4})})
      .dtypes(kComplex)
      .loose(8);
}

KILN_OP_CASES(complex_matrix_functions) {
  for (const int n : {0, 1, 3, -2}) {
    op("linalg.matrix_power", concat("torch.linalg.matrix_power(a, ", n, ")"),
       [n](const Tensors& x) { return linalg::matrix_power(x[0], n); }, {complex_square({2, 3, 3})})
        .dtypes(kComplex)
        .loose(16);
  }
  op("linalg.matrix_exp", "torch.linalg.matrix_exp(a)", KILN_CALL(linalg::matrix_exp(x[0])),
     {complex_({2, 3, 3})})
      .dtypes(kComplex)
      .loose(32);
  op("linalg.multi_dot", "torch.linalg.multi_dot([a, b, c])", KILN_CALL(linalg::multi_dot(x)),
     {complex_({5}), complex_({5, 3}), complex_({3, 4})})
      .dtypes(kComplex)
      .loose(4);
  op("linalg.vecdot", "torch.linalg.vecdot(a, b, dim=0)", KILN_CALL(linalg::vecdot(x[0], x[1], 0)),
     {complex_({3, 4}), complex_({3, 1})})
      .dtypes(kComplex)
      .loose(4);
  op("linalg.cross", "torch.linalg.cross(a, b)", KILN_CALL(linalg::cross(x[0], x[1])),
     {complex_({4, 3}), complex_({1, 3})})
      .dtypes(kComplex)
      .loose(2);
  op("linalg.vander", "torch.linalg.vander(a, N=4)", KILN_CALL(linalg::vander(x[0], 4)),
     {complex_({2, 3})})
      .dtypes(kComplex)
      .loose(4);
  op("linalg.diagonal", "torch.linalg.diagonal(a, offset=1)", KILN_CALL(linalg::diagonal(x[0], 1)),
     {complex_({2, 3, 4})})
      .dtypes(kComplex);
  op("linalg.tensorinv", "torch.linalg.tensorinv(a.reshape(2, 2, 4), ind=2)",
     KILN_CALL(linalg::tensorinv(x[0].reshape({2, 2, 4}))), {complex_square({4, 4})})
      .dtypes(kComplex)
      .loose(8);
  op("linalg.tensorsolve", "torch.linalg.tensorsolve(a.reshape(2, 2, 4), b)",
     KILN_CALL(linalg::tensorsolve(x[0].reshape({2, 2, 4}), x[1])),
     {complex_square({4, 4}), complex_({2, 2})})
      .dtypes(kComplex)
      .loose(8);
}

}  // namespace kiln::ops
