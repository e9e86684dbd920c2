// kiln.linalg, and the functions and methods of linear algebra outside it.
#include "kiln/tensor/linalg/linalg.h"

#include <cmath>

#include <Python.h>
#include <structseq.h>

#include "binding.h"
#include "kiln/tensor/complex/complex.h"
#include "kiln/tensor/linalg/products.h"

namespace kiln::python {

namespace {

namespace L = kiln::linalg;
using T = const Tensor&;

// A class of named tuples of tensors, as PyTorch's functions of several results give.
class NamedTuple {
 public:
  NamedTuple(const std::string& name, std::initializer_list<const char*> fields) {
    // Both live as long as the class does: always.
    auto* list = new std::vector<PyStructSequence_Field>();
    for (const char* field : fields) list->push_back({field, ""});
    list->push_back({nullptr, nullptr});
    auto* full = new std::string("kiln.return_types." + name);
    PyStructSequence_Desc description{full->c_str(), "Named results.", list->data(),
                                      static_cast<int>(fields.size())};
    type_ = PyStructSequence_NewType(&description);
    if (type_ == nullptr) throw nb::python_error();
  }
  template <class... X>
  nb::object operator()(const std::tuple<X...>& values) const {
    nb::object out = nb::steal(PyStructSequence_New(type_));
    if (!out.is_valid()) throw nb::python_error();
    Py_ssize_t i = 0;
    std::apply(
        [&](const auto&... x) {
          (PyStructSequence_SetItem(out.ptr(), i++, tensor_object(x)), ...);
        },
        values);
    return out;
  }
  nb::object operator()(const std::pair<Tensor, Tensor>& pair) const {
    return (*this)(std::tuple<Tensor, Tensor>(pair));
  }

 private:
  PyTypeObject* type_;
};

// f() without the interpreter's lock where the tensor is large.
template <class F>
auto unlocked(T x, F&& f) {
  Unlocked lock(x);
  return f();
}

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

// ---- Outside kiln.linalg: torch's older names, and methods

void bind_products(nb::module_& m, TensorClass& c) {
  const auto two = [&](const char* name, Tensor (*f)(T, T), const char* other, const char* doc) {
    def_both(
        m, c, name, [f](T x, T y) { return unlocked(x, [&] { return f(x, y); }); }, nb::arg(other),
        doc);
  };
  two("mv", &kiln::mv, "vec", "matrix times vector");
  two("vdot", &kiln::vdot, "other", "product of two vectors");
  two("inner", &kiln::inner, "other", "products of the vectors along the last dims");
  two("outer", &kiln::outer, "vec2", "all products of two vectors' elements");
  two("ger", &kiln::ger, "vec2", "all products of two vectors' elements");
  two("kron", &kiln::kron, "other", "Kronecker's product");
  const auto added = [&](const char* name, Tensor (*f)(T, T, T, Scalar, Scalar), const char* first,
                         const char* second) {
    def_both(
        m, c, name,
        [f](T x, T a, T b, Scalar beta, Scalar alpha) {
          return unlocked(a, [&] { return f(x, a, b, beta, alpha); });
        },
        nb::arg(first), nb::arg(second), nb::kw_only(), "beta"_a = 1, "alpha"_a = 1,
        "beta * input + alpha * the product");
    c.def((std::string(name) + "_").c_str(),
          [f](Tensor& x, T a, T b, Scalar beta, Scalar alpha) {
            return unlocked(a, [&] { return x.copy_(f(x, a, b, beta, alpha)); });
          },
          nb::arg(first), nb::arg(second), nb::kw_only(), "beta"_a = 1, "alpha"_a = 1);
  };
  added("addmm", &kiln::addmm, "mat1", "mat2");
  added("addmv", &kiln::addmv, "mat", "vec");
  added("addr", &kiln::addr, "vec1", "vec2");
  added("baddbmm", &kiln::baddbmm, "batch1", "batch2");
  added("addbmm", &kiln::addbmm, "batch1", "batch2");
  def_both(
      m, c, "cross",
      [](T x, T y, std::optional<int64_t> dim) {
        return unlocked(x, [&] { return kiln::cross(x, y, dim); });
      },
      "other"_a, "dim"_a = nb::none(), "the vector product along a dim of size 3");
  def_both(
      m, c, "trace", [](T x) { return unlocked(x, [&] { return kiln::trace(x); }); },
      "the sum of the diagonal");
  m.def(
      "cdist",
      [](T x, T y, double p, const std::optional<std::string>& mode) {
        return unlocked(x, [&] {
          return kiln::cdist(x, y, p, mode.value_or("use_mm_for_euclid_dist_if_necessary"));
        });
      },
      "x1"_a, "x2"_a, "p"_a = 2.0,
      nb::arg("compute_mode").none() = "use_mm_for_euclid_dist_if_necessary");
  m.def("chain_matmul", [](const nb::args& tensors) {
    std::vector<Tensor> list;
    for (nb::handle x : tensors) list.push_back(tensor_arg("chain_matmul", x));
    if (list.empty())
      throw_error<ValueError>("chain_matmul: expected at least one matrix; got none");
    Unlocked lock;
    return kiln::chain_matmul(list);
  });
  m.def(
      "tensordot",
      [](T x, T y, const nb::object& dims) {
        int64_t count = 0;
        Dims x_dims;
        Dims y_dims;
        const bool is_number = try_value(dims, count);
        if (!is_number) {
          IntList a;
          IntList b;
          if (!PySequence_Check(dims.ptr()) || PySequence_Size(dims.ptr()) != 2 ||
              !try_value(nb::object(dims[0]), a) || !try_value(nb::object(dims[1]), b)) {
            throw nb::type_error("tensordot: dims must be an integer or two lists of them");
          }
          x_dims = a.values;
          y_dims = b.values;
        }
        return unlocked(x, [&] {
          return is_number ? kiln::tensordot(x, y, count) : kiln::tensordot(x, y, x_dims, y_dims);
        });
      },
      "a"_a, "b"_a, "dims"_a = 2, "the sum over pairs of dims");
}

// einsum's other form: operands each followed by a list of numbers, and the output's at the end.
std::string equation_of(const std::vector<nb::object>& lists, const nb::object& output) {
  const auto letters = [](const nb::object& list) {
    std::string out;
    for (nb::handle item : nb::tuple(list)) {
      if (item.ptr() == Py_Ellipsis) {
        out += "...";
        continue;
      }
      const auto i =
          value_arg<int64_t>("einsum", item, "an equation first, or subscripts in a list");
      if (i < 0 || i >= 52) {
        throw_error<ValueError>("einsum: a subscript lies outside 0 .. 51; got ", i);
      }
      out += static_cast<char>(i < 26 ? 'A' + i : 'a' + i - 26);
    }
    return out;
  };
  std::string out;
  for (size_t i = 0; i < lists.size(); ++i) out += (i == 0 ? "" : ",") + letters(lists[i]);
  if (output.is_valid()) out += "->" + letters(output);
  return out;
}

Tensor einsum_of(const nb::args& arguments) {
  if (arguments.size() < 2) {
    throw nb::type_error("einsum: expected an equation and at least one operand");
  }
  std::vector<Tensor> operands;
  std::string equation;
  if (PyUnicode_Check(arguments[0].ptr())) {
    equation = nb::cast<std::string>(arguments[0]);
    const bool is_list =
        arguments.size() == 2 && tensor_pointer(nb::object(arguments[1]).ptr()) == nullptr;
    if (is_list) {
      operands = value_arg<std::vector<Tensor>>("einsum", nb::object(arguments[1]), "tensors");
    } else {
      for (size_t i = 1; i < arguments.size(); ++i) {
        operands.push_back(tensor_arg("einsum", nb::object(arguments[i])));
      }
    }
  } else {
    std::vector<nb::object> lists;
    nb::object output;
    size_t i = 0;
    for (; i + 1 < arguments.size(); i += 2) {
      operands.push_back(tensor_arg("einsum", nb::object(arguments[i])));
      lists.emplace_back(arguments[i + 1]);
    }
    if (i < arguments.size()) output = arguments[i];
    equation = equation_of(lists, output);
  }
  Unlocked lock(operands.at(0));
  return kiln::einsum(equation, operands);
}

void bind_old_names(nb::module_& m, TensorClass& c) {
  const auto one = [&](const char* name, Tensor (*f)(T), const char* doc) {
    def_both(
        m, c, name, [f](T x) { return unlocked(x, [&] { return f(x); }); }, doc);
  };
  one("inverse", &L::inv, "the inverse");
  one("det", &L::det, "the determinant");
  one("logdet", &kiln::logdet, "the logarithm of the determinant");
  one("matrix_exp", &L::matrix_exp, "the matrix exponential");
  const NamedTuple slogdet("slogdet", {"sign", "logabsdet"});
  def_both(
      m, c, "slogdet",
      [slogdet](T x) { return slogdet(unlocked(x, [&] { return L::slogdet(x); })); },
      "sign and logarithm of the determinant");
  def_both(
      m, c, "matrix_power",
      [](T x, int64_t n) { return unlocked(x, [&] { return L::matrix_power(x, n); }); }, "n"_a,
      "a power of a matrix");
  def_both(
      m, c, "pinverse",
      [](T x, double rcond) { return unlocked(x, [&] { return L::pinv(x, {}, rcond); }); },
      "rcond"_a = 1e-15, "the pseudoinverse");
  def_both(
      m, c, "cholesky",
      [](T x, bool upper) { return unlocked(x, [&] { return L::cholesky(x, upper); }); },
      "upper"_a = false, "L with x = L L^H");
  def_both(
      m, c, "cholesky_solve",
      [](T b, T l, bool upper) {
        return unlocked(b, [&] { return kiln::cholesky_solve(b, l, upper); });
      },
      "input2"_a, "upper"_a = false, "x^-1 input from x's Cholesky factor");
  def_both(
      m, c, "cholesky_inverse",
      [](T l, bool upper) { return unlocked(l, [&] { return kiln::cholesky_inverse(l, upper); }); },
      "upper"_a = false, "the inverse from a Cholesky factor");
  const NamedTuple qr("qr", {"Q", "R"});
  def_both(
      m, c, "qr",
      [qr](T x, bool some) {
        return qr(unlocked(x, [&] { return L::qr(x, some ? "reduced" : "complete"); }));
      },
      "some"_a = true, "x = Q R");
  const NamedTuple svd("svd", {"U", "S", "V"});
  def_both(
      m, c, "svd",
      [svd](T x, bool some, bool compute_uv) {
        return svd(unlocked(x, [&]() -> std::tuple<Tensor, Tensor, Tensor> {
          if (compute_uv) {
            auto [u, s, vh] = L::svd(x, !some);
            return {u, s, adjoint(vh)};
          }
          Shape u = x.shape();
          Shape v = x.shape();
          u.back() = x.size(-2);
          v[v.rank() - 2] = x.size(-1);
          const TensorOptions options{.dtype = x.dtype(), .device = x.device()};
          return {zeros(u, options), L::svdvals(x), zeros(v, options)};
        }));
      },
      "some"_a = true, "compute_uv"_a = true, "x = U diag(S) V^H");
  def_both(
      m, c, "lu_solve",
      [](T b, T lu, T pivots) { return unlocked(b, [&] { return L::lu_solve(lu, pivots, b); }); },
      "LU_data"_a, "LU_pivots"_a, "x^-1 input from x's LU factorization");
  const NamedTuple triangular("triangular_solve", {"solution", "cloned_coefficient"});
  def_both(
      m, c, "triangular_solve",
      [triangular](T b, T a, bool upper, bool transpose, bool unitriangular) {
        return triangular(unlocked(b, [&] {
          const Tensor factor = transpose ? a.transpose(-2, -1) : a;
          return std::pair(L::solve_triangular(factor, b, upper != transpose, true, unitriangular),
                           a.clone());
        }));
      },
      "A"_a, "upper"_a = true, "transpose"_a = false, "unitriangular"_a = false,
      "A^-1 input for a triangular A");
  def_both(
      m, c, "orgqr",
      [](T a, T tau) { return unlocked(a, [&] { return L::householder_product(a, tau); }); },
      "input2"_a, "the product of Householder reflectors");
  const NamedTuple geqrf("geqrf", {"a", "tau"});
  def_both(
      m, c, "geqrf", [geqrf](T x) { return geqrf(unlocked(x, [&] { return kiln::geqrf(x); })); },
      "R and the reflectors of x = Q R");
  def_both(
      m, c, "ormqr",
      [](T a, T tau, T other, bool left, bool transpose) {
        return unlocked(other, [&] { return kiln::ormqr(a, tau, other, left, transpose); });
      },
      "tau"_a, "other"_a, "left"_a = true, "transpose"_a = false,
      "the product of Householder reflectors times a matrix");
  const NamedTuple unpack("lu_unpack", {"P", "L", "U"});
  m.def(
      "lu_unpack",
      [unpack](T lu, T pivots, bool data, bool permutation) {
        return unpack(kiln::lu_unpack(lu, pivots, data, permutation));
      },
      "LU_data"_a, "LU_pivots"_a, "unpack_data"_a = true, "unpack_pivots"_a = true,
      "P, L and U from lu_factor's result");
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
  bind_products(parent, c);
  bind_old_names(parent, c);
  parent.def("einsum", &einsum_of,
             "Einstein's summation: einsum('ij,jk->ik', x, y), or einsum(x, [0, 1], y, [1, 2], "
             "[0, 2]).");
}

}  // namespace kiln::python
