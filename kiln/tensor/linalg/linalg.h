// Linear algebra, with the names and conventions of torch.linalg.
//
// Matrices are the last two dims, [.., m, n]; what stands before is a batch. Decompositions take
// f32, f64, c64 and c128 (DTypeError otherwise), and are differentiable to any order. A matrix for
// which there is no answer (singular, not positive definite, no convergence) is a LinAlgError; the
// functions that end in _ex return `info` instead: i32 for each matrix, 0 where all went well.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "kiln/tensor/linalg/error.h"
#include "kiln/tensor/tensor.h"

namespace kiln::linalg {

// ---- Solving

// X with A X = B (left) or X A = B. B is [.., n, k], or a vector [.., n] when its shape is A's
// without the last size; batches broadcast.
Tensor solve(const Tensor& a, const Tensor& b, bool left = true);
std::pair<Tensor, Tensor> solve_ex(const Tensor& a, const Tensor& b, bool left = true,
                                   bool check_errors = false);
// The same for a triangular A, of which only that triangle is read (and not its diagonal, taken as
// ones, with unitriangular). A zero on the diagonal gives inf or NaN.
Tensor solve_triangular(const Tensor& a, const Tensor& b, bool upper, bool left = true,
                        bool unitriangular = false);
Tensor inv(const Tensor& a);
std::pair<Tensor, Tensor> inv_ex(const Tensor& a, bool check_errors = false);
Tensor det(const Tensor& a);
// sign and log|det|: (0, -inf) for a singular matrix.
std::pair<Tensor, Tensor> slogdet(const Tensor& a);

// ---- Factorizations

// A = P L U with partial pivoting: P, L [.., m, k], U [.., k, n], k = min(m, n). P is empty without
// pivot, which needs a backend that can do without and is refused.
std::tuple<Tensor, Tensor, Tensor> lu(const Tensor& a, bool pivot = true);
// L (without its diagonal of ones) and U in one matrix, and the rows that were swapped, from 1.
std::pair<Tensor, Tensor> lu_factor(const Tensor& a, bool pivot = true);
std::tuple<Tensor, Tensor, Tensor> lu_factor_ex(const Tensor& a, bool pivot = true,
                                                bool check_errors = false);
// A X = B (left), X A = B, or with adjoint the same for A^H, from lu_factor(A).
Tensor lu_solve(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left = true,
                bool adjoint = false);
// A = L L^H, or U^H U with upper, for a positive definite A, of which one triangle is read.
Tensor cholesky(const Tensor& a, bool upper = false);
std::pair<Tensor, Tensor> cholesky_ex(const Tensor& a, bool upper = false,
                                      bool check_errors = false);
// L D L^H of a symmetric A by Bunch and Kaufman, packed, with its pivots. Without derivative.
std::pair<Tensor, Tensor> ldl_factor(const Tensor& a, bool hermitian = false);
std::tuple<Tensor, Tensor, Tensor> ldl_factor_ex(const Tensor& a, bool hermitian = false,
                                                 bool check_errors = false);
// A X = B from ldl_factor(A); differentiable in B.
Tensor ldl_solve(const Tensor& ld, const Tensor& pivots, const Tensor& b, bool hermitian = false);
// A = Q R. mode "reduced": [m, k] and [k, n]; "complete": [m, m] and [m, n]; "r": R alone (Q is
// empty, and nothing is differentiable).
std::pair<Tensor, Tensor> qr(const Tensor& a, const std::string& mode = "reduced");
// The first n columns of H_1 H_2 .. H_k, the reflectors I - tau_i v_i v_i^H that lie in a [.., m,
// n].
Tensor householder_product(const Tensor& a, const Tensor& tau);

// ---- Eigenvalues and singular values

// A V = V diag(L) for any square A: L [.., n] and V [.., n, n] are complex, of real matrices too.
// The columns of V have norm 1; L has no order.
std::pair<Tensor, Tensor> eig(const Tensor& a);
Tensor eigvals(const Tensor& a);
// A = V diag(L) V^H for a symmetric (complex: Hermitian) A, of which the triangle "L" or "U" is
// read; L ascends.
std::pair<Tensor, Tensor> eigh(const Tensor& a, const std::string& uplo = "L");
Tensor eigvalsh(const Tensor& a, const std::string& uplo = "L");
// A = U diag(S) Vh; S descends. With full_matrices U is [m, m] and Vh [n, n], else [m, k], [k, n].
// driver: "gesdd" (default) or "gesvd".
std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& a, bool full_matrices = true,
                                       const std::string& driver = "");
Tensor svdvals(const Tensor& a, const std::string& driver = "");
// Pseudoinverse: singular values up to max(atol, rtol * largest) count as zero. rtol is
// max(m, n) * eps by default, 0 when atol is given.
Tensor pinv(const Tensor& a, std::optional<double> atol = {}, std::optional<double> rtol = {},
            bool hermitian = false);
// How many singular values lie above that bound; i64.
Tensor matrix_rank(const Tensor& a, std::optional<double> atol = {},
                   std::optional<double> rtol = {}, bool hermitian = false);
// The least-squares solution of A X = B, residuals, rank and singular values (empty where the
// driver or the shape gives none). driver: "gelsy" (default), "gels" (full rank), "gelsd", "gelss".
std::tuple<Tensor, Tensor, Tensor, Tensor> lstsq(const Tensor& a, const Tensor& b,
                                                 std::optional<double> rcond = {},
                                                 const std::string& driver = "");

// ---- Norms

// (sum |x|^ord)^(1/ord) over dims (all, flattened, when empty); ord 0 counts, inf and -inf are
// extremes.
Tensor vector_norm(const Tensor& x, double ord = 2, const Dims& dims = {}, bool keepdim = false,
                   std::optional<DType> dtype = {});
// ord "fro" or "nuc", or 1, -1, 2, -2, inf, -inf.
Tensor matrix_norm(const Tensor& a, const std::string& ord = "fro", const Dims& dims = {-2, -1},
                   bool keepdim = false, std::optional<DType> dtype = {});
Tensor matrix_norm(const Tensor& a, double ord, const Dims& dims = {-2, -1}, bool keepdim = false,
                   std::optional<DType> dtype = {});
// The vector norm or the matrix norm, by the number of dims; without ord the 2-norm of all.
Tensor norm(const Tensor& x, std::optional<double> ord = {}, const Dims& dims = {},
            bool keepdim = false, std::optional<DType> dtype = {});
Tensor norm(const Tensor& x, const std::string& ord, const Dims& dims = {}, bool keepdim = false,
            std::optional<DType> dtype = {});
// |A| |A^-1| in that norm (the 2-norm by default, from singular values); inf for a singular matrix.
Tensor cond(const Tensor& a, std::optional<double> p = {});
Tensor cond(const Tensor& a, const std::string& p);

// ---- Products and functions of matrices

Tensor matrix_power(const Tensor& a, int64_t n);  // n < 0: of the inverse
Tensor matrix_exp(const Tensor& a);
// The product of a chain, in the order that takes the fewest operations; the first and the last may
// be vectors.
Tensor multi_dot(std::span<const Tensor> tensors);
Tensor vecdot(const Tensor& x, const Tensor& y, int64_t dim = -1);
Tensor cross(const Tensor& x, const Tensor& y, int64_t dim = -1);
// x^0, x^1, .. along a new last dim; n columns, size(-1) of them by default.
Tensor vander(const Tensor& x, std::optional<int64_t> n = {});
Tensor diagonal(const Tensor& a, int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1);
// The inverse and the solution for tensors seen as matrices: see tensordot.
Tensor tensorinv(const Tensor& a, int64_t ind = 2);
Tensor tensorsolve(const Tensor& a, const Tensor& b, const Dims& dims = {});

}  // namespace kiln::linalg

namespace kiln {

Tensor logdet(const Tensor& a);
// What LAPACK leaves of A = Q R: R on and above the diagonal, below it the reflectors whose product
// is Q (see linalg::householder_product), and their factors tau [.., min(m, n)]. Without
// derivative.
std::pair<Tensor, Tensor> geqrf(const Tensor& a);
// Q C (left) or C Q, or with Q^H (transpose), for the m x m product Q of the reflectors in
// `a` [.., m, k]: without forming Q.
Tensor ormqr(const Tensor& a, const Tensor& tau, const Tensor& other, bool left = true,
             bool transpose = false);
// B (A^-1) from the Cholesky factor of A (lower, or upper).
Tensor cholesky_solve(const Tensor& b, const Tensor& l, bool upper = false);
Tensor cholesky_inverse(const Tensor& l, bool upper = false);
// P, L and U from lu_factor's result.
std::tuple<Tensor, Tensor, Tensor> lu_unpack(const Tensor& lu, const Tensor& pivots,
                                             bool unpack_data = true, bool unpack_pivots = true);

}  // namespace kiln
