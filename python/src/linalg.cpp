// kiln.linalg. The functions and methods of linear algebra outside it: linalg_old_names.cpp.
#include "kiln/tensor/linalg/linalg.h"

#include <cmath>

#include "linalg_support.h"

namespace kiln::python {

namespace {

namespace L = kiln::linalg;
using linalg_support::NamedTuple;
using linalg_support::T;
using linalg_support::unlocked;

// An order of a norm: a number or a name.
struct Order {
  std::optional<double> number;
  std::optional<std::string> name;
};

Order order_of(const char* op, const nb::object& ord) {
  if (ord.is_none()) return {};
  if (PyUnicode_Check(ord.ptr())) return {{}, nb::cast<std::string>(ord)};
  Scalar s;
  if (!scalar_of(ord, &s)) {
    throw nb::type_error(concat(op, ": the order must be a number or a string").c_str());
  }
  return {s.to_double(), {}};
}

Dims dims_of(const std::optional<IntList>& dim) { return dim ? dim->values : Dims(); }

void bind_solvers(nb::module_& m) {
  m.def(
      "solve",
      [](T a, T b, bool left) { return unlocked(a, [&] { return L::solve(a, b, left); }); }, "A"_a,
      "B"_a, nb::kw_only(), "left"_a = true, "X with A X = B, or X A = B.");
  const NamedTuple solve_ex("linalg_solve_ex", {"result", "info"});
  m.def(
      "solve_ex",
      [solve_ex](T a, T b, bool left, bool check) {
        return solve_ex(unlocked(a, [&] { return L::solve_ex(a, b, left, check); }));
      },
      "A"_a, "B"_a, nb::kw_only(), "left"_a = true, "check_errors"_a = false);
  m.def(
      "solve_triangular",
      [](T a, T b, bool upper, bool left, bool unitriangular) {
        return unlocked(a, [&] { return L::solve_triangular(a, b, upper, left, unitriangular); });
      },
      "A"_a, "B"_a, nb::kw_only(), "upper"_a, "left"_a = true, "unitriangular"_a = false,
      "X with A X = B for a triangular A.");
  m.def(
      "inv", [](T a) { return unlocked(a, [&] { return L::inv(a); }); }, "A"_a, "The inverse.");
  const NamedTuple inv_ex("linalg_inv_ex", {"inverse", "info"});
  m.def(
      "inv_ex",
      [inv_ex](T a, bool check) {
        return inv_ex(unlocked(a, [&] { return L::inv_ex(a, check); }));
      },
      "A"_a, nb::kw_only(), "check_errors"_a = false);
  m.def(
      "det", [](T a) { return unlocked(a, [&] { return L::det(a); }); }, "A"_a, "Determinants.");
  const NamedTuple slogdet("linalg_slogdet", {"sign", "logabsdet"});
  m.def(
      "slogdet", [slogdet](T a) { return slogdet(unlocked(a, [&] { return L::slogdet(a); })); },
      "A"_a, "Sign and logarithm of the determinant.");
  const NamedTuple lstsq("linalg_lstsq", {"solution", "residuals", "rank", "singular_values"});
  m.def(
      "lstsq",
      [lstsq](T a, T b, std::optional<double> rcond, const std::optional<std::string>& driver) {
        return lstsq(unlocked(a, [&] { return L::lstsq(a, b, rcond, driver.value_or("")); }));
      },
      "A"_a, "B"_a, "rcond"_a = nb::none(), nb::kw_only(), "driver"_a = nb::none(),
      "The least-squares solution of A X = B.");
  m.def(
      "tensorinv",
      [](T a, int64_t ind) { return unlocked(a, [&] { return L::tensorinv(a, ind); }); }, "A"_a,
      "ind"_a = 2);
  m.def(
      "tensorsolve",
      [](T a, T b, const std::optional<IntList>& dims) {
        return unlocked(a, [&] { return L::tensorsolve(a, b, dims_of(dims)); });
      },
      "A"_a, "B"_a, "dims"_a = nb::none());
}

void bind_factorizations(nb::module_& m) {
  m.def(
      "cholesky",
      [](T a, bool upper) { return unlocked(a, [&] { return L::cholesky(a, upper); }); }, "A"_a,
      nb::kw_only(), "upper"_a = false, "L with A = L L^H, or U with A = U^H U.");
  const NamedTuple cholesky_ex("linalg_cholesky_ex", {"L", "info"});
  m.def(
      "cholesky_ex",
      [cholesky_ex](T a, bool upper, bool check) {
        return cholesky_ex(unlocked(a, [&] { return L::cholesky_ex(a, upper, check); }));
      },
      "A"_a, nb::kw_only(), "upper"_a = false, "check_errors"_a = false);
  const NamedTuple qr("linalg_qr", {"Q", "R"});
  m.def(
      "qr",
      [qr](T a, const std::string& mode) {
        return qr(unlocked(a, [&] { return L::qr(a, mode); }));
      },
      "A"_a, "mode"_a = "reduced", "A = Q R.");
  const NamedTuple lu("linalg_lu", {"P", "L", "U"});
  m.def(
      "lu", [lu](T a, bool pivot) { return lu(unlocked(a, [&] { return L::lu(a, pivot); })); },
      "A"_a, nb::kw_only(), "pivot"_a = true, "A = P L U.");
  const NamedTuple lu_factor("linalg_lu_factor", {"LU", "pivots"});
  m.def(
      "lu_factor",
      [lu_factor](T a, bool pivot) {
        return lu_factor(unlocked(a, [&] { return L::lu_factor(a, pivot); }));
      },
      "A"_a, nb::kw_only(), "pivot"_a = true);
  const NamedTuple lu_factor_ex("linalg_lu_factor_ex", {"LU", "pivots", "info"});
  m.def(
      "lu_factor_ex",
      [lu_factor_ex](T a, bool pivot, bool check) {
        return lu_factor_ex(unlocked(a, [&] { return L::lu_factor_ex(a, pivot, check); }));
      },
      "A"_a, nb::kw_only(), "pivot"_a = true, "check_errors"_a = false);
  m.def(
      "lu_solve",
      [](T lu, T pivots, T b, bool left, bool adjoint) {
        return unlocked(lu, [&] { return L::lu_solve(lu, pivots, b, left, adjoint); });
      },
      "LU"_a, "pivots"_a, "B"_a, nb::kw_only(), "left"_a = true, "adjoint"_a = false);
  const NamedTuple ldl_factor("linalg_ldl_factor", {"LD", "pivots"});
  m.def(
      "ldl_factor",
      [ldl_factor](T a, bool hermitian) {
        return ldl_factor(unlocked(a, [&] { return L::ldl_factor(a, hermitian); }));
      },
      "A"_a, nb::kw_only(), "hermitian"_a = false);
  const NamedTuple ldl_factor_ex("linalg_ldl_factor_ex", {"LD", "pivots", "info"});
  m.def(
      "ldl_factor_ex",
      [ldl_factor_ex](T a, bool hermitian, bool check) {
        return ldl_factor_ex(unlocked(a, [&] { return L::ldl_factor_ex(a, hermitian, check); }));
      },
      "A"_a, nb::kw_only(), "hermitian"_a = false, "check_errors"_a = false);
  m.def(
      "ldl_solve",
      [](T ld, T pivots, T b, bool hermitian) {
        return unlocked(ld, [&] { return L::ldl_solve(ld, pivots, b, hermitian); });
      },
      "LD"_a, "pivots"_a, "B"_a, nb::kw_only(), "hermitian"_a = false);
  m.def(
      "householder_product",
      [](T a, T tau) { return unlocked(a, [&] { return L::householder_product(a, tau); }); }, "A"_a,
      "tau"_a);
}

void bind_spectra(nb::module_& m) {
  const NamedTuple eig("linalg_eig", {"eigenvalues", "eigenvectors"});
  m.def(
      "eig", [eig](T a) { return eig(unlocked(a, [&] { return L::eig(a); })); }, "A"_a,
      "A V = V diag(L), complex.");
  m.def(
      "eigvals", [](T a) { return unlocked(a, [&] { return L::eigvals(a); }); }, "A"_a,
      "The eigenvalues, complex.");
  const NamedTuple eigh("linalg_eigh", {"eigenvalues", "eigenvectors"});
  m.def(
      "eigh",
      [eigh](T a, const std::string& uplo) {
        return eigh(unlocked(a, [&] { return L::eigh(a, uplo); }));
      },
      "A"_a, "UPLO"_a = "L", "A = V diag(L) V^H for a symmetric A.");
  m.def(
      "eigvalsh",
      [](T a, const std::string& uplo) {
        return unlocked(a, [&] { return L::eigvalsh(a, uplo); });
      },
      "A"_a, "UPLO"_a = "L");
  const NamedTuple svd("linalg_svd", {"U", "S", "Vh"});
  m.def(
      "svd",
      [svd](T a, bool full_matrices, const std::optional<std::string>& driver) {
        return svd(unlocked(a, [&] { return L::svd(a, full_matrices, driver.value_or("")); }));
      },
      "A"_a, "full_matrices"_a = true, nb::kw_only(), "driver"_a = nb::none(), "A = U diag(S) Vh.");
  m.def(
      "svdvals",
      [](T a, const std::optional<std::string>& driver) {
        return unlocked(a, [&] { return L::svdvals(a, driver.value_or("")); });
      },
      "A"_a, nb::kw_only(), "driver"_a = nb::none());
  m.def(
      "pinv",
      [](T a, std::optional<double> rcond, bool hermitian, std::optional<double> atol,
         std::optional<double> rtol) {
        return unlocked(a, [&] { return L::pinv(a, atol, rtol ? rtol : rcond, hermitian); });
      },
      "A"_a, "rcond"_a = nb::none(), "hermitian"_a = false, nb::kw_only(), "atol"_a = nb::none(),
      "rtol"_a = nb::none(), "The pseudoinverse.");
  m.def(
      "matrix_rank",
      [](T a, std::optional<double> tol, bool hermitian, std::optional<double> atol,
         std::optional<double> rtol) {
        const auto relative = tol ? std::optional(0.0) : rtol;
        return unlocked(a,
                        [&] { return L::matrix_rank(a, tol ? tol : atol, relative, hermitian); });
      },
      "A"_a, "tol"_a = nb::none(), "hermitian"_a = false, nb::kw_only(), "atol"_a = nb::none(),
      "rtol"_a = nb::none());
}

// With bounds that are tensors: one for each matrix.
void bind_matrix_rank(nb::module_& m) {
  m.def(
      "matrix_rank",
      [](T a, const Operand& tol, bool hermitian) {
        const Tensor bound = tol.is_tensor() ? tol.tensor() : full({}, tol.scalar());
        Unlocked lock(a);
        const NoGradGuard no_grad;
        const Tensor s = hermitian ? L::eigvalsh(a).abs() : L::svdvals(a);
        return s.gt(bound.unsqueeze(-1)).sum(-1);
      },
      "A"_a, "tol"_a, "hermitian"_a = false);
  m.def(
      "matrix_rank",
      [](T a, const std::optional<Operand>& atol, const std::optional<Operand>& rtol,
         bool hermitian) {
        Unlocked lock(a);
        const NoGradGuard no_grad;
        const Tensor s = hermitian ? L::eigvalsh(a).abs() : L::svdvals(a);
        const auto tensor = [&](const Operand& x) {
          return x.is_tensor() ? x.tensor() : full({}, x.scalar(), {.dtype = s.dtype()});
        };
        const double eps = s.dtype() == f64 ? 0x1p-52 : 0x1p-23;
        const Tensor usual = full({}, eps * static_cast<double>(std::max(a.size(-1), a.size(-2))),
                                  {.dtype = s.dtype()});
        const Tensor least = atol ? tensor(*atol) : zeros_like(usual);
        const Tensor share = rtol ? tensor(*rtol) : where(least.gt(0), zeros_like(usual), usual);
        if (s.size(-1) == 0) return s.sum(-1).to(i64);
        const Tensor bound = least.maximum(share.mul(s.amax(-1)));
        return s.gt(bound.unsqueeze(-1)).sum(-1);
      },
      "A"_a, nb::kw_only(), "atol"_a = nb::none(), "rtol"_a = nb::none(), "hermitian"_a = false);
}

void bind_matrix_norms(nb::module_& m) {
  m.def(
      "vector_norm",
      [](T x, double ord, const std::optional<IntList>& dim, bool keepdim,
         std::optional<DType> dtype) {
        return unlocked(x, [&] { return L::vector_norm(x, ord, dims_of(dim), keepdim, dtype); });
      },
      "x"_a, "ord"_a = 2.0, "dim"_a = nb::none(), "keepdim"_a = false, nb::kw_only(),
      "dtype"_a = nb::none());
  m.def(
      "matrix_norm",
      [](T a, const nb::object& ord, const IntList& dim, bool keepdim, std::optional<DType> dtype) {
        const Order order = order_of("linalg.matrix_norm", ord);
        return unlocked(a, [&] {
          return order.name || !order.number
                     ? L::matrix_norm(a, order.name.value_or("fro"), dim.values, keepdim, dtype)
                     : L::matrix_norm(a, *order.number, dim.values, keepdim, dtype);
        });
      },
      "A"_a, "ord"_a = "fro", "dim"_a = nb::make_tuple(-2, -1), "keepdim"_a = false, nb::kw_only(),
      "dtype"_a = nb::none());
  m.def(
      "norm",
      [](T a, const nb::object& ord, const std::optional<IntList>& dim, bool keepdim,
         std::optional<DType> dtype) {
        const Order order = order_of("linalg.norm", ord);
        return unlocked(a, [&] {
          return order.name ? L::norm(a, *order.name, dims_of(dim), keepdim, dtype)
                            : L::norm(a, order.number, dims_of(dim), keepdim, dtype);
        });
      },
      "A"_a, nb::arg("ord").none() = nb::none(), "dim"_a = nb::none(), "keepdim"_a = false,
      nb::kw_only(), "dtype"_a = nb::none());
  m.def(
      "cond",
      [](T a, const nb::object& p) {
        const Order order = order_of("linalg.cond", p);
        return unlocked(
            a, [&] { return order.name ? L::cond(a, *order.name) : L::cond(a, order.number); });
      },
      "A"_a, nb::arg("p").none() = nb::none());
}

void bind_matrix_functions(nb::module_& m) {
  m.def(
      "matrix_power",
      [](T a, int64_t n) { return unlocked(a, [&] { return L::matrix_power(a, n); }); }, "A"_a,
      "n"_a);
  m.def(
      "matrix_exp", [](T a) { return unlocked(a, [&] { return L::matrix_exp(a); }); }, "A"_a);
  m.def(
      "multi_dot",
      [](const std::vector<Tensor>& tensors) {
        Unlocked lock;
        return L::multi_dot(tensors);
      },
      "tensors"_a);
  m.def(
      "matmul", [](T x, T y) { return unlocked(x, [&] { return matmul(x, y); }); }, "input"_a,
      "other"_a);
  m.def(
      "vecdot",
      [](T x, T y, int64_t dim) { return unlocked(x, [&] { return L::vecdot(x, y, dim); }); },
      "x"_a, "y"_a, nb::kw_only(), "dim"_a = -1);
  m.def(
      "cross",
      [](T x, T y, int64_t dim) { return unlocked(x, [&] { return L::cross(x, y, dim); }); },
      "input"_a, "other"_a, nb::kw_only(), "dim"_a = -1);
  m.def(
      "vander",
      [](T x, std::optional<int64_t> n) { return unlocked(x, [&] { return L::vander(x, n); }); },
      "x"_a, nb::kw_only(), "N"_a = nb::none());
  m.def(
      "diagonal",
      [](T a, int64_t offset, int64_t dim1, int64_t dim2) {
        return L::diagonal(a, offset, dim1, dim2);
      },
      "A"_a, nb::kw_only(), "offset"_a = 0, "dim1"_a = -2, "dim2"_a = -1);
}

}  // namespace

void bind_linalg(nb::module_& parent, TensorClass& c) {
  nb::module_ m = parent.def_submodule("_linalg", "Linear algebra.");
  bind_solvers(m);
  bind_factorizations(m);
  bind_spectra(m);
  bind_matrix_rank(m);
  bind_matrix_norms(m);
  bind_matrix_functions(m);
  bind_linalg_old_names(parent, c);
}

}  // namespace kiln::python
