// Solvers, factorizations, spectra and norms of matrices.
#include "kiln/pt2/ops/forms.h"
#include "kiln/tensor/linalg/linalg.h"

namespace kiln::pt2 {

namespace {

void solve_of(Call& c) { c.out(linalg::solve(c.t("A"), c.t("B"), c.b("left", true))); }
void solve_ex_of(Call& c) {
  c.out(linalg::solve_ex(c.t("A"), c.t("B"), c.b("left", true), c.b("check_errors", false)));
}
void solve_triangular_of(Call& c) {
  c.out(linalg::solve_triangular(c.t("self"), c.t("B"), c.b("upper"), c.b("left", true),
                                 c.b("unitriangular", false)));
}
void inv_ex_of(Call& c) { c.out(linalg::inv_ex(c.x(), c.b("check_errors", false))); }
void slogdet_of(Call& c) { c.out(linalg::slogdet(c.x())); }
void lu_of(Call& c) { c.out(linalg::lu(c.x(), c.b("pivot", true))); }
void lu_factor_of(Call& c) { c.out(linalg::lu_factor(c.x(), c.b("pivot", true))); }
void lu_factor_ex_of(Call& c) {
  c.out(linalg::lu_factor_ex(c.x(), c.b("pivot", true), c.b("check_errors", false)));
}
void lu_solve_of(Call& c) {
  c.out(linalg::lu_solve(c.t("LU"), c.t("pivots"), c.t("B"), c.b("left", true),
                         c.b("adjoint", false)));
}
void lu_unpack_of(Call& c) {
  c.out(lu_unpack(c.t("LU_data"), c.t("LU_pivots"), c.b("unpack_data", true),
                  c.b("unpack_pivots", true)));
}
void cholesky_of(Call& c) { c.out(linalg::cholesky(c.x(), c.b("upper", false))); }
void cholesky_ex_of(Call& c) {
  c.out(linalg::cholesky_ex(c.x(), c.b("upper", false), c.b("check_errors", false)));
}
void cholesky_solve_of(Call& c) {
  c.out(cholesky_solve(c.x(), c.t("input2"), c.b("upper", false)));
}
void cholesky_inverse_of(Call& c) { c.out(cholesky_inverse(c.x(), c.b("upper", false))); }
void ldl_factor_of(Call& c) { c.out(linalg::ldl_factor(c.x(), c.b("hermitian", false))); }
void ldl_factor_ex_of(Call& c) {
  c.out(linalg::ldl_factor_ex(c.x(), c.b("hermitian", false), c.b("check_errors", false)));
}
void ldl_solve_of(Call& c) {
  c.out(linalg::ldl_solve(c.t("LD"), c.t("pivots"), c.t("B"), c.b("hermitian", false)));
}
void qr_of(Call& c) { c.out(linalg::qr(c.x(), c.s("mode", "reduced"))); }
void old_qr(Call& c) { c.out(linalg::qr(c.x(), c.b("some", true) ? "reduced" : "complete")); }
void householder_of(Call& c) {
  c.out(linalg::householder_product(c.x(), c.t(c.has("tau") ? "tau" : "input2")));
}
void eig_of(Call& c) { c.out(linalg::eig(c.x())); }
void eigh_of(Call& c) { c.out(linalg::eigh(c.x(), c.s("UPLO", "L"))); }
void eigvalsh_of(Call& c) { c.out(linalg::eigvalsh(c.x(), c.s("UPLO", "L"))); }
void svd_of(Call& c) { c.out(linalg::svd(c.x(), c.b("full_matrices", true), c.s("driver", ""))); }
void svdvals_of(Call& c) { c.out(linalg::svdvals(c.x(), c.s("driver", ""))); }

// Tolerances that are tensors of one element.
std::optional<double> tolerance(Call& c, const char* name) {
  const Value v = c.value(name);
  if (v.tensor() != nullptr) return c.t(name).item();
  return c.maybe_f(name);
}
void pinv_of(Call& c) {
  const bool hermitian = c.b("hermitian", false);
  if (c.has("rcond")) {
    c.out(linalg::pinv(c.x(), {}, tolerance(c, "rcond"), hermitian));
  } else {
    c.out(linalg::pinv(c.x(), tolerance(c, "atol"), tolerance(c, "rtol"), hermitian));
  }
}
void matrix_rank_of(Call& c) {
  const bool hermitian = c.b("hermitian", false);
  if (c.has("tol")) {
    c.out(linalg::matrix_rank(c.x(), tolerance(c, "tol"), {}, hermitian));
  } else {
    c.out(linalg::matrix_rank(c.x(), tolerance(c, "atol"), tolerance(c, "rtol"), hermitian));
  }
}
void lstsq_of(Call& c) {
  c.out(linalg::lstsq(c.x(), c.t("b"), c.maybe_f("rcond"), c.s("driver", "")));
}
void vector_norm_of(Call& c) {
  c.out(linalg::vector_norm(c.x(), c.f("ord", 2.0), dims_or_all(c, "dim"), c.b("keepdim", false),
                            c.dtype()));
}
void matrix_norm_of(Call& c) {
  const Dims dims = c.maybe_ints("dim").value_or(Shape{-2, -1});
  const bool keepdim = c.b("keepdim", false);
  if (c.is_overload("str_ord")) {
    c.out(linalg::matrix_norm(c.x(), c.s("ord", "fro"), dims, keepdim, c.dtype()));
  } else {
    c.out(linalg::matrix_norm(c.x(), c.f("ord"), dims, keepdim, c.dtype()));
  }
}
void norm_of(Call& c) {
  const Dims dims = dims_or_all(c, "dim");
  const bool keepdim = c.b("keepdim", false);
  if (c.is_overload("ord_str")) {
    c.out(linalg::norm(c.x(), c.s("ord"), dims, keepdim, c.dtype()));
  } else {
    c.out(linalg::norm(c.x(), c.maybe_f("ord"), dims, keepdim, c.dtype()));
  }
}
void cond_of(Call& c) {
  if (c.is_overload("p_str")) {
    c.out(linalg::cond(c.x(), c.s("p")));
  } else {
    c.out(linalg::cond(c.x(), c.maybe_f("p")));
  }
}
void matrix_power_of(Call& c) { c.out(linalg::matrix_power(c.x(), c.i("n"))); }
void vecdot_of(Call& c) { c.out(linalg::vecdot(c.x(), c.t("y"), c.i("dim", -1))); }
void vander_of(Call& c) { c.out(linalg::vander(c.x(), c.maybe_i("N"))); }
void tensorinv_of(Call& c) { c.out(linalg::tensorinv(c.x(), c.i("ind", 2))); }
void tensorsolve_of(Call& c) {
  c.out(linalg::tensorsolve(c.x(), c.t("other"), dims_or_all(c, "dims")));
}
void geqrf_of(Call& c) { c.out(geqrf(c.x())); }
void ormqr_of(Call& c) {
  c.out(ormqr(c.x(), c.t("input2"), c.t("input3"), c.b("left", true), c.b("transpose", false)));
}

constexpr Operator kLinearAlgebraOperators[] = {
    {"linalg_solve", "default", solve_of},
    {"linalg_solve_ex", "default", solve_ex_of},
    {"linalg_solve_triangular", "default", solve_triangular_of},
    {"linalg_inv", "default", unary_of<linalg::inv>},
    {"linalg_inv_ex", "default", inv_ex_of},
    {"inverse", "default", unary_of<linalg::inv>},
    {"linalg_det", "default", unary_of<linalg::det>},
    {"det", "default", unary_of<linalg::det>},
    {"linalg_slogdet", "default", slogdet_of},
    {"slogdet", "default", slogdet_of},
    {"logdet", "default", unary_of<kiln::logdet>},
    {"linalg_lu", "default", lu_of},
    {"linalg_lu_factor", "default", lu_factor_of},
    {"linalg_lu_factor_ex", "default", lu_factor_ex_of},
    {"linalg_lu_solve", "default", lu_solve_of},
    {"lu_unpack", "default", lu_unpack_of},
    {"linalg_cholesky", "default", cholesky_of},
    {"cholesky", "default", cholesky_of},
    {"linalg_cholesky_ex", "default", cholesky_ex_of},
    {"cholesky_solve", "default", cholesky_solve_of},
    {"cholesky_inverse", "default", cholesky_inverse_of},
    {"linalg_ldl_factor", "default", ldl_factor_of},
    {"linalg_ldl_factor_ex", "default", ldl_factor_ex_of},
    {"linalg_ldl_solve", "default", ldl_solve_of},
    {"linalg_qr", "default", qr_of},
    {"qr", "default", old_qr},
    {"linalg_householder_product", "default", householder_of},
    {"orgqr", "default", householder_of},
    {"geqrf", "default", geqrf_of},
    {"ormqr", "default", ormqr_of},
    {"linalg_eig", "default", eig_of},
    {"linalg_eigvals", "default", unary_of<linalg::eigvals>},
    {"linalg_eigh", "default", eigh_of},
    {"linalg_eigvalsh", "default", eigvalsh_of},
    {"linalg_svd", "default", svd_of},
    {"linalg_svdvals", "default", svdvals_of},
    {"linalg_pinv", "default atol_rtol_float atol_rtol_tensor rcond_tensor", pinv_of},
    {"pinverse", "default", pinv_of},
    {"linalg_matrix_rank", "default tol_tensor atol_rtol_float atol_rtol_tensor", matrix_rank_of},
    {"linalg_lstsq", "default", lstsq_of},
    {"linalg_vector_norm", "default", vector_norm_of},
    {"linalg_matrix_norm", "default str_ord", matrix_norm_of},
    {"linalg_norm", "default ord_str", norm_of},
    {"linalg_cond", "default p_str", cond_of},
    {"linalg_matrix_power", "default", matrix_power_of},
    {"matrix_power", "default", matrix_power_of},
    {"linalg_matrix_exp", "default", unary_of<linalg::matrix_exp>},
    {"matrix_exp", "default", unary_of<linalg::matrix_exp>},
    {"linalg_vecdot", "default", vecdot_of},
    {"linalg_vander", "default", vander_of},
    {"linalg_tensorinv", "default", tensorinv_of},
    {"linalg_tensorsolve", "default", tensorsolve_of},
};

}  // namespace

std::span<const Operator> linalg_operators() { return kLinearAlgebraOperators; }

}  // namespace kiln::pt2
