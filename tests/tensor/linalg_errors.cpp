// What linear algebra refuses, and what it says.
#include <cmath>

#include "kiln/tensor/complex/complex.h"
#include "kiln/tensor/linalg/linalg.h"
#include "kiln/tensor/linalg/products.h"
#include "kiln/tensor/shape/views.h"
#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::test;
using linalg::LinAlgError;

TEST_CASE("matrices without an answer: LinAlgError that names the batch element") {
  Tensor batch = eye(3).expand({2, 3, 3}).clone();
  no_grad([&] { return batch[1][2][2].fill_(0); });
  CHECK(error_lacks<LinAlgError>([&] { linalg::inv(batch); },
                                 {"linalg.inv", "batch element 1", "element 3", "singular"}) == "");
  CHECK(error_lacks<LinAlgError>([&] { linalg::solve(batch, batch); },
                                 {"linalg.solve", "singular"}) == "");
  CHECK(error_lacks<LinAlgError>([&] { linalg::cholesky(batch); },
                                 {"linalg.cholesky", "order 3", "positive-definite"}) == "");
  CHECK(error_lacks<LinAlgError>([] { linalg::svd(full({2, 2}, NAN)); }, {"non-finite"}) == "");
  CHECK(error_lacks<LinAlgError>(
            [] {
              linalg::lstsq(eye(3).narrow(1, 0, 2) * tensor({1.0, 0.0}), ones({3, 1}), {}, "gels");
            },
            {"full rank"}) == "");
  CHECK(error_lacks<LinAlgError>(
            [] {
              linalg::eig(full({2, 2}, INFINITY));
            },
            {"infinities"}) == "");
  CHECK_THROWS_AS(linalg::eigvals(full({2, 2}, NAN, {c64})), LinAlgError);
  CHECK_THROWS_AS(linalg::inv(zeros({1, 1})), RuntimeError);
  CHECK_THROWS_AS(linalg::cholesky(zeros({1, 1}, {c64})), LinAlgError);
  CHECK(mismatch(linalg::inv_ex(batch).second, {2}, {0, 3}) == "");
  CHECK(mismatch(linalg::cholesky_ex(batch).second, {2}, {0, 3}) == "");
  CHECK(std::get<2>(linalg::lu_factor_ex(batch)).to_vector<int>()[1] == 3);
  CHECK(mismatch(linalg::det(batch), {2}, {1, 0}) == "");
  CHECK(mismatch(linalg::slogdet(batch).second, {2}, {0, -INFINITY}) == "");
  CHECK(linalg::cond(batch, 1.0).to_vector<float>()[1] == INFINITY);
}

TEST_CASE("shapes, dtypes and options") {
  const Tensor square = eye(3);
  const Tensor wide = ones({2, 3});
  CHECK(error_lacks<ShapeError>([&] { linalg::inv(wide); }, {"linalg.inv", "[2, 3]", "square"}) ==
        "");
  CHECK(error_lacks<ShapeError>([&] { linalg::eig(wide); }, {"linalg.eig", "[2, 3]", "square"}) ==
        "");
  CHECK_THROWS_AS(linalg::eigvals(ones({3})), ShapeError);
  CHECK_THROWS_AS(linalg::eig(ones({2, 2}, {i64})), DTypeError);
  CHECK_THROWS_AS(linalg::solve(square, ones({3, 1}, {c64})), DTypeError);
  CHECK_THROWS_AS(linalg::vector_norm(ones({2}, {c64}), 2, {}, false, f32), DTypeError);
  CHECK_THROWS_AS(linalg::det(ones({3})), ShapeError);
  CHECK_THROWS_AS(linalg::inv(Tensor()), ValueError);
  for (const DType dtype : {i64, f16, bf16, bool_}) {
    CHECK_THROWS_AS(linalg::qr(ones({2, 2}, {dtype})), DTypeError);
  }
  CHECK_THROWS_AS(linalg::solve(square, ones({3, 1}, {f64})), DTypeError);
  CHECK_THROWS_AS(linalg::solve(square, ones({2, 1})), ShapeError);
  CHECK_THROWS_AS(linalg::solve(square, ones({3}), false), ShapeError);
  CHECK_THROWS_AS(linalg::solve_triangular(square, ones({2, 3}), true), ShapeError);
  CHECK_THROWS_AS(linalg::qr(square, "full"), ValueError);
  CHECK_THROWS_AS(linalg::eigh(square, "X"), ValueError);
  CHECK_THROWS_AS(linalg::svd(square, true, "fast"), ValueError);
  CHECK_THROWS_AS(linalg::lstsq(square, ones({2, 1})), ShapeError);
  CHECK_THROWS_AS(linalg::lstsq(square, ones({3, 1}), {}, "fast"), ValueError);
  CHECK_THROWS_AS(linalg::lu(square, false), NotImplementedError);
  CHECK_THROWS_AS(linalg::lu_solve(square, ones({3}, {i64}), square), ShapeError);
  CHECK_THROWS_AS(linalg::lu_solve(square, full({3}, 7, {i32}), square), ValueError);
  CHECK_THROWS_AS(linalg::ldl_solve(square, full({3}, 7, {i32}), square), ValueError);
  CHECK_THROWS_AS(linalg::householder_product(wide, ones({2})), ShapeError);
  CHECK_THROWS_AS(linalg::matrix_norm(square, "max"), ValueError);
  CHECK_THROWS_AS(linalg::matrix_norm(square, 3.0), ValueError);
  CHECK_THROWS_AS(linalg::matrix_norm(square, "fro", {0, 0}), ValueError);
  CHECK_THROWS_AS(linalg::vector_norm(ones({2}, {i64})), DTypeError);
  CHECK_THROWS_AS(linalg::vector_norm(zeros({0}), INFINITY), ShapeError);
  CHECK_THROWS_AS(linalg::multi_dot(std::vector<Tensor>{square}), ValueError);
  CHECK_THROWS_AS(linalg::multi_dot(std::vector<Tensor>{square, wide}), ShapeError);
  CHECK_THROWS_AS(linalg::matrix_power(wide, 2), ShapeError);
  CHECK_THROWS_AS(linalg::matrix_power(zeros({2, 2}), -1), LinAlgError);
  CHECK_THROWS_AS(linalg::tensorinv(ones({2, 3}), 1), ShapeError);
  CHECK_THROWS_AS(linalg::tensorsolve(ones({2, 3}), ones({2})), ShapeError);
  CHECK_THROWS_AS(linalg::cross(ones({2}), ones({2})), ShapeError);
  CHECK_THROWS_AS(lu_unpack(square, ones({2}, {i32})), ShapeError);
}

TEST_CASE("what has no derivative says so") {
  Tensor a = ones({4, 3}, {.dtype = f64, .requires_grad = true});
  CHECK(error_lacks<AutodiffError>([&] { (void)linalg::qr(a, "complete").second.sum().backward(); },
                                   {"complete"}) == "");
  CHECK(error_lacks<AutodiffError>([&] { (void)linalg::qr(a, "r").second.sum().backward(); },
                                   {"mode 'r'"}) == "");
  CHECK_FALSE(linalg::matrix_rank(a).requires_grad());
  // A phase that the decomposition has chosen.
  Tensor z = complex(eye(3, {f64}), ones({3, 3}, {f64}) + diag(arange(3, {f64}))).requires_grad_();
  const auto phase = [](const Tensor& v) { return imag(v * std::complex<double>(1, 2)).sum(); };
  CHECK(error_lacks<AutodiffError>([&] { (void)phase(linalg::eig(z).second).backward(); },
                                   {"linalg.eig", "phase"}) == "");
  CHECK(error_lacks<AutodiffError>([&] { (void)phase(linalg::eigh(z).second).backward(); },
                                   {"linalg.eigh", "phase"}) == "");
  CHECK(error_lacks<AutodiffError>([&] { (void)phase(std::get<0>(linalg::svd(z))).backward(); },
                                   {"linalg.svd", "phase"}) == "");
}

TEST_CASE("products: shapes, dtypes, scalars") {
  const Tensor m = ones({2, 3});
  CHECK(error_lacks<ShapeError>(
            [&] {
              addmm(ones({5}), m, ones({3, 2}));
            },
            {"addmm", "[5]", "[2, 2]"}) == "");
  CHECK(error_lacks<ShapeError>([&] { mv(m, ones({2})); }, {"mv"}) == "");
  CHECK_THROWS_AS(mm(m, ones({3})), ShapeError);
  CHECK_THROWS_AS(addbmm(m, ones({2, 2, 3}), ones({3, 3, 3})), ShapeError);
  CHECK_THROWS_AS(addmm(m, ones({2, 3}, {f64}), ones({3, 3}, {f64})), DTypeError);
  CHECK_THROWS_AS(addmm(ones({2, 2}, {i64}), ones({2, 2}, {i64}), ones({2, 2}, {i64}), 0.5),
                  DTypeError);
  CHECK_THROWS_AS(tensordot(m, m, 1), ShapeError);
  CHECK_THROWS_AS(tensordot(m, m, 3), ValueError);
  CHECK_THROWS_AS(tensordot(m, m, Dims{0}, Dims{0, 1}), ValueError);
  CHECK_THROWS_AS(trace(ones({3})), ShapeError);
  CHECK_THROWS_AS(outer(m, m), ShapeError);
  CHECK_THROWS_AS(cdist(m, ones({2, 2})), ShapeError);
  CHECK_THROWS_AS(cdist(m, m, -1), ValueError);
  CHECK_THROWS_AS(cross(ones({2}), ones({2})), ShapeError);
}

TEST_CASE("einsum: what does not parse or fit") {
  const Tensor m = ones({2, 3});
  CHECK(error_lacks<ValueError>([&] { einsum("ij,jk", {m}); }, {"einsum", "2 operands", "got 1"}) ==
        "");
  CHECK(error_lacks<ShapeError>([&] { einsum("ijk", {m}); }, {"operand 0", "[2, 3]"}) == "");
  CHECK(error_lacks<ShapeError>([&] { einsum("ij,jk", {m, ones({2, 2})}); }, {"3", "2"}) == "");
  CHECK_THROWS_AS(einsum("i1->i", {m}), ValueError);
  CHECK_THROWS_AS(einsum("i.->i", {m}), ValueError);
  CHECK_THROWS_AS(einsum("ij->k", {m}), ValueError);
  CHECK_THROWS_AS(einsum("ij->ii", {m}), ValueError);
  CHECK_THROWS_AS(einsum("ii", {m}), ShapeError);
  CHECK_THROWS_AS(einsum("......ij", {m}), ValueError);
  CHECK_THROWS_AS(einsum("ij", std::initializer_list<Tensor>{}), ValueError);
  CHECK(einsum("ij->...ji", {m}).shape() == Shape{3, 2});
  CHECK(einsum(",ij", {full({}, 2.0), m}).sum().item() == 12);
}
