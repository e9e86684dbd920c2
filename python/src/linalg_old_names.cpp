// Linear algebra outside kiln.linalg: products, torch's older names, and methods.
#include "kiln/tensor/complex/complex.h"
#include "kiln/tensor/linalg/linalg.h"
#include "kiln/tensor/linalg/products.h"
#include "linalg_support.h"

namespace kiln::python {

namespace {

namespace L = kiln::linalg;
using linalg_support::NamedTuple;
using linalg_support::T;
using linalg_support::unlocked;

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

void bind_linalg_old_names(nb::module_& m, TensorClass& c) {
  bind_products(m, c);
  bind_old_names(m, c);
  m.def(
      "einsum", &einsum_of,
      "Einstein's summation: einsum('ij,jk->ik', x, y), or einsum(x, [0, 1], y, [1, 2], [0, 2]).");
}

}  // namespace kiln::python
