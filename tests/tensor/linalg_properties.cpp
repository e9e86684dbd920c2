// What defines each factorization, on batches, tall, wide, empty and ill-conditioned matrices.
#include <cmath>

#include "kiln/tensor/complex/complex.h"
#include "kiln/tensor/linalg/linalg.h"
#include "kiln/tensor/linalg/products.h"
#include "tests/support/tensor_check.h"

using namespace kiln;
using namespace kiln::test;

namespace {

Tensor mT(const Tensor& x) { return x.transpose(-2, -1); }

Tensor random_matrix(const Shape& shape, DType dtype = f64) {
  manual_seed(7);
  return randn(shape, {.dtype = dtype});
}

double largest(const Tensor& x) { return x.numel() == 0 ? 0 : x.abs().max().item(); }
double tolerance(DType dtype) { return dtype == f64 ? 1e-11 : 1e-3; }
double far_from_identity(const Tensor& q) {
  return largest(matmul(mT(q), q) - eye(q.size(-1), {q.dtype()}));
}

// The n x n Hilbert matrix, whose condition number grows like e^(3.5 n).
Tensor hilbert(int64_t n) {
  const Tensor i = arange(Scalar(n), {.dtype = f64});
  return (i.unsqueeze(0) + i.unsqueeze(1) + 1).pow(-1.0);
}

const Shape kShapes[] = {{5, 5},    {7, 4}, {4, 7}, {3, 6, 6}, {2, 3, 5, 2}, {40, 40},
                         {100, 60}, {1, 1}, {0, 3}, {3, 0},    {0, 4, 4}};

}  // namespace

TEST_CASE("factorizations multiply back") {
  for (const DType dtype : {f64, f32}) {
    for (const Shape& shape : kShapes) {
      INFO(to_string(shape), " ", to_string(dtype));
      const Tensor a = random_matrix(shape, dtype);
      const double bound = tolerance(dtype);
      const auto [q, r] = linalg::qr(a);
      CHECK(largest(matmul(q, r) - a) < bound);
      CHECK(far_from_identity(q) < bound);
      const auto [qc, rc] = linalg::qr(a, "complete");
      CHECK(qc.size(-1) == a.size(-2));
      CHECK(far_from_identity(qc) < bound);
      CHECK(largest(matmul(qc, rc) - a) < bound);
      const auto [p, l, u] = linalg::lu(a);
      CHECK(largest(matmul(matmul(p, l), u) - a) < bound);
      for (const bool full : {false, true}) {
        const auto [su, s, vh] = linalg::svd(a, full);
        const int64_t k = s.size(-1);
        CHECK(largest(matmul(su.narrow(-1, 0, k) * s.unsqueeze(-2), vh.narrow(-2, 0, k)) - a) <
              bound);
        CHECK(far_from_identity(su) < bound);
        CHECK(far_from_identity(mT(vh)) < bound);
        CHECK(largest(s - linalg::svdvals(a)) < bound);
      }
      const Tensor y = linalg::pinv(a);
      CHECK(largest(matmul(matmul(a, y), a) - a) < 10 * bound);
    }
  }
}

TEST_CASE("square matrices: eigenvalues, Cholesky, inverses, determinants") {
  for (const Shape& shape : {Shape{6, 6}, Shape{3, 5, 5}, Shape{50, 50}, Shape{0, 0}}) {
    INFO(to_string(shape));
    const Tensor a = random_matrix(shape);
    const int64_t n = a.size(-1);
    const Tensor one = eye(n, {f64});
    const Tensor symmetric = a + mT(a);
    const auto [w, v] = linalg::eigh(symmetric);
    CHECK(largest(matmul(v * w.unsqueeze(-2), mT(v)) - symmetric) < 1e-11);
    CHECK(largest(w - linalg::eigvalsh(symmetric, "U")) < 1e-11);
    const Tensor spd = matmul(a, mT(a)) + one;
    const Tensor l = linalg::cholesky(spd);
    CHECK(largest(matmul(l, mT(l)) - spd) < 1e-10);
    CHECK(largest(mT(l) - linalg::cholesky(spd, true)) < 1e-10);
    CHECK(largest(matmul(linalg::inv(spd), spd) - one) < 1e-9);
    CHECK(largest(cholesky_inverse(l) - linalg::inv(spd)) < 1e-9);
    const Tensor logs =
        w.numel() == 0 ? linalg::det(spd).log() : linalg::eigvalsh(spd).log().sum(-1);
    CHECK(largest(linalg::slogdet(spd).second - logs) < 1e-9);
    const auto [ld, pivots] = linalg::ldl_factor(symmetric);
    CHECK(largest(matmul(symmetric, linalg::ldl_solve(ld, pivots, a)) - a) < 1e-8);
  }
}

TEST_CASE("complex matrices: what the factors must give back") {
  for (const Shape& shape : {Shape{6, 6}, Shape{3, 5, 5}, Shape{50, 50}, Shape{0, 0}}) {
    INFO(to_string(shape));
    const Tensor a = complex(random_matrix(shape), random_matrix(shape).flip({-1}));
    const Tensor one = eye(a.size(-1), {c128});
    const auto size = [](const Tensor& x) { return largest(x.abs()); };
    const Tensor hermitian = a + adjoint(a);
    const auto [w, v] = linalg::eigh(hermitian);
    CHECK(w.dtype() == f64);
    CHECK(size(matmul(v * w.unsqueeze(-2), adjoint(v)) - hermitian) < 1e-11);
    const Tensor definite = matmul(a, adjoint(a)) + one;
    const Tensor l = linalg::cholesky(definite);
    CHECK(size(matmul(l, adjoint(l)) - definite) < 1e-10);
    CHECK(size(matmul(linalg::inv(definite), definite) - one) < 1e-9);
    const auto [q, r] = linalg::qr(a);
    CHECK(size(matmul(q, r) - a) < 1e-11);
    CHECK(size(matmul(adjoint(q), q) - one) < 1e-12);
    const auto [u, s, vh] = linalg::svd(a);
    CHECK(size(matmul(u * s.unsqueeze(-2), vh) - a) < 1e-11);
    const auto [p, lower, upper] = linalg::lu(a);
    CHECK(size(matmul(matmul(p, lower), upper) - a) < 1e-11);
  }
}

TEST_CASE("eig: A V = V L with columns of norm 1") {
  for (const Shape& shape : {Shape{6, 6}, Shape{3, 5, 5}, Shape{50, 50}, Shape{2, 0, 0}}) {
    INFO(to_string(shape));
    const Tensor a = random_matrix(shape);
    for (const Tensor& x : {a, complex(a, a.flip({-1}))}) {
      const auto [w, v] = linalg::eig(x);
      CHECK(w.dtype() == c128);
      CHECK(v.shape() == shape);
      CHECK(largest((matmul(x.to(c128), v) - v * w.unsqueeze(-2)).abs()) < 1e-11);
      CHECK(largest(v.abs().square().sum(Dims{-2}) - 1) < 1e-12);
      if (w.numel() == 0) continue;
      CHECK(largest((linalg::eigvals(x).sum(-1) - linalg::diagonal(x).sum(-1)).abs()) < 1e-11);
    }
  }
  CHECK(linalg::eig(eye(2)).second.dtype() == c64);
  // A rotation's eigenvalues: e^(+-i angle).
  const Tensor turn = tensor({{0.0, -1.0}, {1.0, 0.0}}, {f64});
  CHECK(mismatch(imag(linalg::eigvals(turn)).sort().first, {2}, {-1, 1}, 1e-15) == "");
}

TEST_CASE("an ill-conditioned matrix is solved to a small residual") {
  const Tensor h = hilbert(12);
  const Tensor b = h.sum(Dims{-1}, true);
  const Tensor x = linalg::solve(h, b);
  CHECK(largest(matmul(h, x) - b) < 1e-12);
  CHECK(linalg::cond(h).item() > 1e15);
  CHECK(linalg::matrix_rank(h, {}, 1e-8).item<int64_t>() < 12);
  const auto [least, residuals, rank, s] = linalg::lstsq(h, b, 1e-10, "gelsd");
  CHECK(largest(matmul(h, least) - b) < 1e-9);
  CHECK(rank.item<int64_t>() < 12);
}

TEST_CASE("the matrix exponential: known values, large norms, the inverse") {
  const Tensor turn = tensor({{0.0, -30.0}, {30.0, 0.0}}, {f64});
  const double c = std::cos(30.0);
  const double s = std::sin(30.0);
  CHECK(mismatch(linalg::matrix_exp(turn), {2, 2}, {c, -s, s, c}, 1e-12) == "");
  const Tensor nilpotent = tensor({{0.0, 5.0}, {0.0, 0.0}}, {f64});
  CHECK(mismatch(linalg::matrix_exp(nilpotent), {2, 2}, {1, 5, 0, 1}) == "");
  // Row-major, as callers of view() expect.
  CHECK(linalg::matrix_exp(turn).is_contiguous());
  const Tensor a = random_matrix({3, 5, 5});
  CHECK(largest(matmul(linalg::matrix_exp(a), linalg::matrix_exp(a.neg())) - eye(5, {f64})) < 1e-9);
  CHECK(linalg::matrix_exp(full({2, 2}, NAN)).isnan().all().item<bool>());
  CHECK(linalg::matrix_exp(zeros({0, 0})).shape() == Shape{0, 0});
}

TEST_CASE("a determinant's derivatives at singular matrices are the cofactors'") {
  // Rank 2 of 3, and rank 1 of 2.
  for (const Tensor& a : {tensor({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}, {7.0, 8.0, 9.0}}, {f64}),
                          tensor({{1.0, 2.0, 0.0}, {0.0, 0.0, 0.0}, {3.0, 1.0, 1.0}}, {f64})}) {
    Tensor x = a.clone().requires_grad_();
    Tensor expected = zeros({3, 3}, {f64});
    for (int64_t i = 0; i < 3; ++i) {
      for (int64_t j = 0; j < 3; ++j) {
        const auto at = [&](int64_t r, int64_t c) { return a[(i + r) % 3][(j + c) % 3].item(); };
        expected[i][j].fill_(at(1, 1) * at(2, 2) - at(1, 2) * at(2, 1));
      }
    }
    const Tensor first = grad({linalg::det(x)}, {x})[0];
    CHECK(largest(first - expected) < 1e-10);
    const Tensor recorded = grad({linalg::det(x)}, {x}, {.create_graph = true})[0];
    CHECK(largest(recorded - expected) < 1e-6);
    // d cofactor(0, 0) / dA = the 2 x 2 determinant's.
    const Tensor second = grad({recorded[0][0]}, {x})[0];
    CHECK(std::abs(second[1][1].item() - a[2][2].item()) < 1e-5);
    CHECK(std::abs(second[1][2].item() + a[2][1].item()) < 1e-5);
  }
}

TEST_CASE("products of chains take the cheap order") {
  // (100 x 2)(2 x 100)(100 x 2): from the right it is 50 times cheaper; the values tell no
  // difference, so that only the sizes of what is made are looked at.
  const Tensor a = random_matrix({100, 2});
  const Tensor b = random_matrix({2, 100});
  CHECK(largest(linalg::multi_dot(std::vector<Tensor>{a, b, a}) - matmul(a, matmul(b, a))) < 1e-12);
}

TEST_CASE("cdist: equal rows, every p, and a finite gradient there") {
  for (const double p : {0.5, 1.0, 1.5, 2.0, 3.0, static_cast<double>(INFINITY)}) {
    INFO(p);
    Tensor x = ones({30, 3}, {.dtype = f64, .requires_grad = true});
    const Tensor d = cdist(x, x.detach(), p);
    CHECK(largest(d) == 0);
    CHECK(largest(grad({d.sum()}, {x})[0]) == 0);
  }
}
