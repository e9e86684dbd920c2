#include "kiln/tensor/linalg/lapack.h"

#include <algorithm>
#include <complex>
#include <vector>

#include "kiln/tensor/linalg/lapack_fortran.h"
#include "kiln/tensor/linalg/lapack_small.h"

namespace kiln::lapack {

namespace {

using c32 = std::complex<float>;
using c64 = std::complex<double>;

// Whether a triangular matrix is solved for its right-hand sides one by one: OpenBLAS packs all of
// the matrix, which costs more.
constexpr bool has_few_vectors(int size, int count) {
  return count <= 2 || (count <= 6 && size >= 128);
}

template <class T>
int size_of_work(T optimal) {
  // Rounded up: a float holds large sizes inexactly.
  return std::max(1, static_cast<int>(std::real(optimal) * (1 + 1e-6) + 1));
}

}  // namespace

#define KILN_LAPACK_ALL(X) X(float, s) X(double, d) X(c32, c) X(c64, z)

#define X(T, p)                                                                                   \
  int potrf(char uplo, int n, T* a, int lda) {                                                    \
    if (uplo == 'L' && small::takes(n, n, lda)) return small::potrf(n, a);                        \
    const OneThread guard;                                                                        \
    int info = 0;                                                                                 \
    KILN_FORTRAN(p, potrf)(&uplo, &n, a, &lda, &info, 1);                                         \
    return info;                                                                                  \
  }                                                                                               \
  int potri(char uplo, int n, T* a, int lda) {                                                    \
    const OneThread guard;                                                                        \
    int info = 0;                                                                                 \
    KILN_FORTRAN(p, potri)(&uplo, &n, a, &lda, &info, 1);                                         \
    return info;                                                                                  \
  }                                                                                               \
  int potrs(char uplo, int n, int nrhs, const T* a, int lda, T* b, int ldb) {                     \
    const OneThread guard;                                                                        \
    int info = 0;                                                                                 \
    KILN_FORTRAN(p, potrs)(&uplo, &n, &nrhs, a, &lda, b, &ldb, &info, 1);                         \
    return info;                                                                                  \
  }                                                                                               \
  int getrf(int m, int n, T* a, int lda, int* pivots) {                                           \
    if (m == n && small::takes(n, n, lda)) return small::getrf(n, a, pivots);                     \
    const OneThread guard;                                                                        \
    int info = 0;                                                                                 \
    KILN_FORTRAN(p, getrf)(&m, &n, a, &lda, pivots, &info);                                       \
    return info;                                                                                  \
  }                                                                                               \
  int getrs(char trans, int n, int nrhs, const T* a, int lda, const int* pivots, T* b, int ldb) { \
    if (trans != 'T' && ldb == n && small::takes(n, n, lda) && (n <= 8 || nrhs <= 4)) {           \
      small::getrs(trans == 'C', n, nrhs, a, pivots, b);                                          \
      return 0;                                                                                   \
    }                                                                                             \
    const OneThread guard;                                                                        \
    int info = 0;                                                                                 \
    KILN_FORTRAN(p, getrs)(&trans, &n, &nrhs, a, &lda, pivots, b, &ldb, &info, 1);                \
    return info;                                                                                  \
  }                                                                                               \
  int getri(int n, T* a, int lda, const int* pivots) {                                            \
    if (small::takes(n, n, lda)) return small::getri(n, a, pivots);                               \
    const OneThread guard;                                                                        \
    int info = 0;                                                                                 \
    int size = -1;                                                                                \
    T optimal{};                                                                                  \
    KILN_FORTRAN(p, getri)(&n, a, &lda, pivots, &optimal, &size, &info);                          \
    size = size_of_work(optimal);                                                                 \
    std::vector<T> work(static_cast<size_t>(size));                                               \
    KILN_FORTRAN(p, getri)(&n, a, &lda, pivots, work.data(), &size, &info);                       \
    return info;                                                                                  \
  }                                                                                               \
  void trsm(char side, char uplo, char trans, char diag, int m, int n, T alpha, const T* a,       \
            int lda, T* b, int ldb) {                                                             \
    const OneThread guard;                                                                        \
    const bool left = side == 'L';                                                                \
    const int size = left ? m : n, count = left ? n : m, step = left ? 1 : ldb;                   \
    if (alpha == T(1) && trans != 'C' && has_few_vectors(size, count)) {                          \
      const char op = left ? trans : trans == 'N' ? 'T' : 'N';                                    \
      for (int i = 0; i < count; ++i) {                                                           \
        T* x = b + (left ? int64_t{i} * ldb : i);                                                 \
        KILN_FORTRAN(p, trsv)(&uplo, &op, &diag, &size, a, &lda, x, &step, 1, 1, 1);              \
      }                                                                                           \
      return;                                                                                     \
    }                                                                                             \
    KILN_FORTRAN(p, trsm)                                                                         \
    (&side, &uplo, &trans, &diag, &m, &n, &alpha, a, &lda, b, &ldb, 1, 1, 1, 1);                  \
  }                                                                                               \
  void gemm(char transa, char transb, int m, int n, int k, T alpha, const T* a, int lda,          \
            const T* b, int ldb, T beta, T* c, int ldc) {                                         \
    const OneThread guard;                                                                        \
    KILN_FORTRAN(p, gemm)                                                                         \
    (&transa, &transb, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc, 1, 1);               \
  }                                                                                               \
  int gels(int m, int n, int nrhs, T* a, int lda, T* b, int ldb) {                                \
    const OneThread guard;                                                                        \
    int info = 0;                                                                                 \
    int size = -1;                                                                                \
    T optimal{};                                                                                  \
    KILN_FORTRAN(p, gels)("N", &m, &n, &nrhs, a, &lda, b, &ldb, &optimal, &size, &info, 1);       \
    size = size_of_work(optimal);                                                                 \
    std::vector<T> work(static_cast<size_t>(size));                                               \
    KILN_FORTRAN(p, gels)("N", &m, &n, &nrhs, a, &lda, b, &ldb, work.data(), &size, &info, 1);    \
    return info;                                                                                  \
  }
KILN_LAPACK_ALL(X)
#undef X

// Note [Blocks of reflectors]. LAPACK applies reflectors one by one below 128 columns. Here blocks
// of them are applied together, by products of matrices, from 32 on: geqrf and orgqr as LAPACK has
// them, but for that bound.
namespace {
constexpr int kBlock = 32;
}

// Orthogonal in the real kinds is unitary in the complex ones.
#define X(T, p, generate, apply, adjoint)                                                        \
  namespace {                                                                                    \
  /* C <- H C or H^H C for the product H of the ib reflectors in v. */                           \
  void reflect(char trans, int m, int n, int ib, const T* v, int lda, const T* tau, T* c,        \
               T* work) {                                                                        \
    const int ldt = kBlock;                                                                      \
    const int ldwork = n;                                                                        \
    T* t = work + static_cast<size_t>(n) * kBlock;                                               \
    KILN_FORTRAN(p, larft)("F", "C", &m, &ib, v, &lda, tau, t, &ldt, 1, 1);                      \
    KILN_FORTRAN(p, larfb)                                                                       \
    ("L", &trans, "F", "C", &m, &n, &ib, v, &lda, t, &ldt, c, &lda, work, &ldwork, 1, 1, 1, 1);  \
  }                                                                                              \
  std::vector<T> work_of(T, int n) {                                                             \
    return std::vector<T>(static_cast<size_t>(std::max(1, n)) * kBlock + kBlock * kBlock);       \
  }                                                                                              \
  }                                                                                              \
  int geqrf(int m, int n, T* a, int lda, T* tau) {                                               \
    if (small::takes(m, n, lda) && small::geqrf(m, n, a, tau)) return 0;                         \
    const OneThread guard;                                                                       \
    std::vector<T> work = work_of(T(), n);                                                       \
    const int k = std::min(m, n);                                                                \
    int info = 0;                                                                                \
    for (int i = 0; i < k; i += kBlock) {                                                        \
      const int ib = std::min(kBlock, k - i);                                                    \
      const int left = m - i;                                                                    \
      const int right = n - i - ib;                                                              \
      T* v = a + i + static_cast<size_t>(i) * lda;                                               \
      KILN_FORTRAN(p, geqr2)(&left, &ib, v, &lda, tau + i, work.data(), &info);                  \
      if (right > 0) {                                                                           \
        reflect(adjoint, left, right, ib, v, lda, tau + i, v + static_cast<size_t>(ib) * lda,    \
                work.data());                                                                    \
      }                                                                                          \
    }                                                                                            \
    return info;                                                                                 \
  }                                                                                              \
  int orgqr(int m, int n, int k, T* a, int lda, const T* tau) {                                  \
    if (small::takes(m, n, lda)) {                                                               \
      small::orgqr(m, n, k, a, tau);                                                             \
      return 0;                                                                                  \
    }                                                                                            \
    const OneThread guard;                                                                       \
    std::vector<T> work = work_of(T(), n);                                                       \
    int info = 0;                                                                                \
    for (int j = k; j < n; ++j) {                                                                \
      T* column = a + static_cast<size_t>(j) * lda;                                              \
      std::fill(column, column + m, T(0));                                                       \
      column[j] = T(1);                                                                          \
    }                                                                                            \
    for (int i = (k - 1) / kBlock * kBlock; k > 0 && i >= 0; i -= kBlock) {                      \
      const int ib = std::min(kBlock, k - i);                                                    \
      const int left = m - i;                                                                    \
      const int right = n - i - ib;                                                              \
      T* v = a + i + static_cast<size_t>(i) * lda;                                               \
      if (right > 0) {                                                                           \
        reflect('N', left, right, ib, v, lda, tau + i, v + static_cast<size_t>(ib) * lda,        \
                work.data());                                                                    \
      }                                                                                          \
      KILN_FORTRAN(p, generate)(&left, &ib, &ib, v, &lda, tau + i, work.data(), &info);          \
      for (int j = i; j < i + ib; ++j) {                                                         \
        T* column = a + static_cast<size_t>(j) * lda;                                            \
        std::fill(column, column + i, T(0));                                                     \
      }                                                                                          \
    }                                                                                            \
    return info;                                                                                 \
  }                                                                                              \
  int ormqr(char side, char trans, int m, int n, int k, const T* a, int lda, const T* tau, T* c, \
            int ldc) {                                                                           \
    const OneThread guard;                                                                       \
    int info = 0;                                                                                \
    int size = -1;                                                                               \
    T optimal{};                                                                                 \
    KILN_FORTRAN(p, apply)                                                                       \
    (&side, &trans, &m, &n, &k, a, &lda, tau, c, &ldc, &optimal, &size, &info, 1, 1);            \
    size = size_of_work(optimal);                                                                \
    std::vector<T> work(static_cast<size_t>(size));                                              \
    KILN_FORTRAN(p, apply)                                                                       \
    (&side, &trans, &m, &n, &k, a, &lda, tau, c, &ldc, work.data(), &size, &info, 1, 1);         \
    return info;                                                                                 \
  }
X(float, s, org2r, ormqr, 'T')
X(double, d, org2r, ormqr, 'T')
X(c32, c, ung2r, unmqr, 'C')
X(c64, z, ung2r, unmqr, 'C')
#undef X

// The functions whose complex kinds take real work memory besides.
#define X(T, p)                                                                                    \
  int syevd(char job, char uplo, int n, T* a, int lda, T* w) {                                     \
    const OneThread guard;                                                                         \
    int info = 0;                                                                                  \
    int size = -1;                                                                                 \
    int int_size = -1;                                                                             \
    T optimal{};                                                                                   \
    int int_optimal = 0;                                                                           \
    KILN_FORTRAN(p, syevd)                                                                         \
    (&job, &uplo, &n, a, &lda, w, &optimal, &size, &int_optimal, &int_size, &info, 1, 1);          \
    size = size_of_work(optimal);                                                                  \
    int_size = std::max(1, int_optimal);                                                           \
    std::vector<T> work(static_cast<size_t>(size));                                                \
    std::vector<int> ints(static_cast<size_t>(int_size));                                          \
    KILN_FORTRAN(p, syevd)                                                                         \
    (&job, &uplo, &n, a, &lda, w, work.data(), &size, ints.data(), &int_size, &info, 1, 1);        \
    return info;                                                                                   \
  }                                                                                                \
  int gesdd(char job, int m, int n, T* a, int lda, T* s, T* u, int ldu, T* vt, int ldvt) {         \
    const OneThread guard;                                                                         \
    int info = 0;                                                                                  \
    int size = -1;                                                                                 \
    T optimal{};                                                                                   \
    std::vector<int> ints(8 * static_cast<size_t>(std::max(1, std::min(m, n))));                   \
    KILN_FORTRAN(p, gesdd)                                                                         \
    (&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, &optimal, &size, ints.data(), &info, 1);        \
    size = size_of_work(optimal);                                                                  \
    std::vector<T> work(static_cast<size_t>(size));                                                \
    KILN_FORTRAN(p, gesdd)                                                                         \
    (&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work.data(), &size, ints.data(), &info, 1);     \
    return info;                                                                                   \
  }                                                                                                \
  int gesvd(char job, int m, int n, T* a, int lda, T* s, T* u, int ldu, T* vt, int ldvt) {         \
    const OneThread guard;                                                                         \
    int info = 0;                                                                                  \
    int size = -1;                                                                                 \
    T optimal{};                                                                                   \
    KILN_FORTRAN(p, gesvd)                                                                         \
    (&job, &job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, &optimal, &size, &info, 1, 1);            \
    size = size_of_work(optimal);                                                                  \
    std::vector<T> work(static_cast<size_t>(size));                                                \
    KILN_FORTRAN(p, gesvd)                                                                         \
    (&job, &job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work.data(), &size, &info, 1, 1);         \
    return info;                                                                                   \
  }                                                                                                \
  int geev(char job, int n, T* a, int lda, std::complex<T>* w, std::complex<T>* v, int ldv) {      \
    const OneThread guard;                                                                         \
    int info = 0;                                                                                  \
    int size = -1;                                                                                 \
    T optimal{};                                                                                   \
    const size_t count = static_cast<size_t>(n);                                                   \
    std::vector<T> re(count), im(count), vectors(job == 'V' ? count * count : 1);                  \
    const int ld = std::max(1, n);                                                                 \
    KILN_FORTRAN(p, geev)                                                                          \
    ("N", &job, &n, a, &lda, re.data(), im.data(), nullptr, &ld, vectors.data(), &ld, &optimal,    \
     &size, &info, 1, 1);                                                                          \
    size = size_of_work(optimal);                                                                  \
    std::vector<T> work(static_cast<size_t>(size));                                                \
    KILN_FORTRAN(p, geev)                                                                          \
    ("N", &job, &n, a, &lda, re.data(), im.data(), nullptr, &ld, vectors.data(), &ld, work.data(), \
     &size, &info, 1, 1);                                                                          \
    unpack_eigen(job, count, re.data(), im.data(), vectors.data(), w, v,                           \
                 static_cast<size_t>(ldv));                                                        \
    return info;                                                                                   \
  }                                                                                                \
  int gelsy(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, T rcond, int* rank) {            \
    const OneThread guard;                                                                         \
    int info = 0;                                                                                  \
    int size = -1;                                                                                 \
    T optimal{};                                                                                   \
    std::vector<int> order(static_cast<size_t>(n));                                                \
    KILN_FORTRAN(p, gelsy)                                                                         \
    (&m, &n, &nrhs, a, &lda, b, &ldb, order.data(), &rcond, rank, &optimal, &size, &info);         \
    size = size_of_work(optimal);                                                                  \
    std::vector<T> work(static_cast<size_t>(size));                                                \
    KILN_FORTRAN(p, gelsy)                                                                         \
    (&m, &n, &nrhs, a, &lda, b, &ldb, order.data(), &rcond, rank, work.data(), &size, &info);      \
    return info;                                                                                   \
  }                                                                                                \
  int gelsd(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, T* s, T rcond, int* rank) {      \
    const OneThread guard;                                                                         \
    int info = 0;                                                                                  \
    int size = -1;                                                                                 \
    T optimal{};                                                                                   \
    int int_optimal = 0;                                                                           \
    KILN_FORTRAN(p, gelsd)                                                                         \
    (&m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, &optimal, &size, &int_optimal, &info);      \
    size = size_of_work(optimal);                                                                  \
    std::vector<T> work(static_cast<size_t>(size));                                                \
    std::vector<int> ints(static_cast<size_t>(std::max(1, int_optimal)));                          \
    KILN_FORTRAN(p, gelsd)                                                                         \
    (&m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, work.data(), &size, ints.data(), &info);    \
    return info;                                                                                   \
  }                                                                                                \
  int gelss(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, T* s, T rcond, int* rank) {      \
    const OneThread guard;                                                                         \
    int info = 0;                                                                                  \
    int size = -1;                                                                                 \
    T optimal{};                                                                                   \
    KILN_FORTRAN(p, gelss)                                                                         \
    (&m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, &optimal, &size, &info);                    \
    size = size_of_work(optimal);                                                                  \
    std::vector<T> work(static_cast<size_t>(size));                                                \
    KILN_FORTRAN(p, gelss)                                                                         \
    (&m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, work.data(), &size, &info);                 \
    return info;                                                                                   \
  }                                                                                                \
  int sytrf(bool, char uplo, int n, T* a, int lda, int* pivots) {                                  \
    const OneThread guard;                                                                         \
    int info = 0;                                                                                  \
    int size = -1;                                                                                 \
    T optimal{};                                                                                   \
    KILN_FORTRAN(p, sytrf)(&uplo, &n, a, &lda, pivots, &optimal, &size, &info, 1);                 \
    size = size_of_work(optimal);                                                                  \
    std::vector<T> work(static_cast<size_t>(size));                                                \
    KILN_FORTRAN(p, sytrf)(&uplo, &n, a, &lda, pivots, work.data(), &size, &info, 1);              \
    return info;                                                                                   \
  }                                                                                                \
  int sytrs(bool, char uplo, int n, int nrhs, const T* a, int lda, const int* pivots, T* b,        \
            int ldb) {                                                                             \
    const OneThread guard;                                                                         \
    int info = 0;                                                                                  \
    KILN_FORTRAN(p, sytrs)(&uplo, &n, &nrhs, a, &lda, pivots, b, &ldb, &info, 1);                  \
    return info;                                                                                   \
  }

namespace {

// LAPACK gives a conjugate pair of eigenvectors as two real columns, the real and imaginary parts.
template <class T>
void unpack_eigen(char job, size_t n, const T* re, const T* im, const T* vectors,
                  std::complex<T>* w, std::complex<T>* v, size_t ldv) {
  for (size_t j = 0; j < n; ++j) w[j] = {re[j], im[j]};
  if (job != 'V') return;
  for (size_t j = 0; j < n; ++j) {
    const bool pair = im[j] != T(0) && j + 1 < n;
    for (size_t i = 0; i < n; ++i) {
      const T a = vectors[j * n + i];
      const T b = pair ? vectors[(j + 1) * n + i] : T(0);
      v[j * ldv + i] = {a, b};
      if (pair) v[(j + 1) * ldv + i] = {a, -b};
    }
    if (pair) ++j;
  }
}

}  // namespace

X(float, s)
X(double, d)
#undef X

#define X(T, R, p)                                                                                 \
  int syevd(char job, char uplo, int n, T* a, int lda, R* w) {                                     \
    const OneThread guard;                                                                         \
    int info = 0;                                                                                  \
    int size = -1;                                                                                 \
    int real_size = -1;                                                                            \
    int int_size = -1;                                                                             \
    T optimal{};                                                                                   \
    R real_optimal{};                                                                              \
    int int_optimal = 0;                                                                           \
    KILN_FORTRAN(p, heevd)                                                                         \
    (&job, &uplo, &n, a, &lda, w, &optimal, &size, &real_optimal, &real_size, &int_optimal,        \
     &int_size, &info, 1, 1);                                                                      \
    size = size_of_work(optimal);                                                                  \
    real_size = size_of_work(real_optimal);                                                        \
    int_size = std::max(1, int_optimal);                                                           \
    std::vector<T> work(static_cast<size_t>(size));                                                \
    std::vector<R> reals(static_cast<size_t>(real_size));                                          \
    std::vector<int> ints(static_cast<size_t>(int_size));                                          \
    KILN_FORTRAN(p, heevd)                                                                         \
    (&job, &uplo, &n, a, &lda, w, work.data(), &size, reals.data(), &real_size, ints.data(),       \
     &int_size, &info, 1, 1);                                                                      \
    return info;                                                                                   \
  }                                                                                                \
  int gesdd(char job, int m, int n, T* a, int lda, R* s, T* u, int ldu, T* vt, int ldvt) {         \
    const OneThread guard;                                                                         \
    int info = 0;                                                                                  \
    int size = -1;                                                                                 \
    T optimal{};                                                                                   \
    const size_t low = static_cast<size_t>(std::max(1, std::min(m, n)));                           \
    const size_t high = static_cast<size_t>(std::max(1, std::max(m, n)));                          \
    std::vector<int> ints(8 * low);                                                                \
    std::vector<R> reals(low* std::max(5 * low + 7, 2 * high + 2 * low + 1));                      \
    KILN_FORTRAN(p, gesdd)                                                                         \
    (&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, &optimal, &size, reals.data(), ints.data(),     \
     &info, 1);                                                                                    \
    size = size_of_work(optimal);                                                                  \
    std::vector<T> work(static_cast<size_t>(size));                                                \
    KILN_FORTRAN(p, gesdd)                                                                         \
    (&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work.data(), &size, reals.data(), ints.data(),  \
     &info, 1);                                                                                    \
    return info;                                                                                   \
  }                                                                                                \
  int gesvd(char job, int m, int n, T* a, int lda, R* s, T* u, int ldu, T* vt, int ldvt) {         \
    const OneThread guard;                                                                         \
    int info = 0;                                                                                  \
    int size = -1;                                                                                 \
    T optimal{};                                                                                   \
    std::vector<R> reals(5 * static_cast<size_t>(std::max(1, std::min(m, n))));                    \
    KILN_FORTRAN(p, gesvd)                                                                         \
    (&job, &job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, &optimal, &size, reals.data(), &info, 1,  \
     1);                                                                                           \
    size = size_of_work(optimal);                                                                  \
    std::vector<T> work(static_cast<size_t>(size));                                                \
    KILN_FORTRAN(p, gesvd)                                                                         \
    (&job, &job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work.data(), &size, reals.data(), &info,  \
     1, 1);                                                                                        \
    return info;                                                                                   \
  }                                                                                                \
  int geev(char job, int n, T* a, int lda, T* w, T* v, int ldv) {                                  \
    const OneThread guard;                                                                         \
    int info = 0;                                                                                  \
    int size = -1;                                                                                 \
    T optimal{};                                                                                   \
    std::vector<R> reals(2 * static_cast<size_t>(std::max(1, n)));                                 \
    const int ld = std::max(1, ldv);                                                               \
    KILN_FORTRAN(p, geev)                                                                          \
    ("N", &job, &n, a, &lda, w, nullptr, &ld, v, &ld, &optimal, &size, reals.data(), &info, 1, 1); \
    size = size_of_work(optimal);                                                                  \
    std::vector<T> work(static_cast<size_t>(size));                                                \
    KILN_FORTRAN(p, geev)                                                                          \
    ("N", &job, &n, a, &lda, w, nullptr, &ld, v, &ld, work.data(), &size, reals.data(), &info, 1,  \
     1);                                                                                           \
    return info;                                                                                   \
  }                                                                                                \
  int gelsy(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, R rcond, int* rank) {            \
    const OneThread guard;                                                                         \
    int info = 0;                                                                                  \
    int size = -1;                                                                                 \
    T optimal{};                                                                                   \
    std::vector<int> order(static_cast<size_t>(n));                                                \
    std::vector<R> reals(2 * static_cast<size_t>(std::max(1, n)));                                 \
    KILN_FORTRAN(p, gelsy)                                                                         \
    (&m, &n, &nrhs, a, &lda, b, &ldb, order.data(), &rcond, rank, &optimal, &size, reals.data(),   \
     &info);                                                                                       \
    size = size_of_work(optimal);                                                                  \
    std::vector<T> work(static_cast<size_t>(size));                                                \
    KILN_FORTRAN(p, gelsy)                                                                         \
    (&m, &n, &nrhs, a, &lda, b, &ldb, order.data(), &rcond, rank, work.data(), &size,              \
     reals.data(), &info);                                                                         \
    return info;                                                                                   \
  }                                                                                                \
  int gelsd(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, R* s, R rcond, int* rank) {      \
    const OneThread guard;                                                                         \
    int info = 0;                                                                                  \
    int size = -1;                                                                                 \
    T optimal{};                                                                                   \
    R real_optimal{};                                                                              \
    int int_optimal = 0;                                                                           \
    KILN_FORTRAN(p, gelsd)                                                                         \
    (&m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, &optimal, &size, &real_optimal,             \
     &int_optimal, &info);                                                                         \
    size = size_of_work(optimal);                                                                  \
    std::vector<T> work(static_cast<size_t>(size));                                                \
    std::vector<R> reals(static_cast<size_t>(size_of_work(real_optimal)));                         \
    std::vector<int> ints(static_cast<size_t>(std::max(1, int_optimal)));                          \
    KILN_FORTRAN(p, gelsd)                                                                         \
    (&m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, work.data(), &size, reals.data(),           \
     ints.data(), &info);                                                                          \
    return info;                                                                                   \
  }                                                                                                \
  int gelss(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, R* s, R rcond, int* rank) {      \
    const OneThread guard;                                                                         \
    int info = 0;                                                                                  \
    int size = -1;                                                                                 \
    T optimal{};                                                                                   \
    std::vector<R> reals(5 * static_cast<size_t>(std::max(1, std::min(m, n))));                    \
    KILN_FORTRAN(p, gelss)                                                                         \
    (&m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, &optimal, &size, reals.data(), &info);      \
    size = size_of_work(optimal);                                                                  \
    std::vector<T> work(static_cast<size_t>(size));                                                \
    KILN_FORTRAN(p, gelss)                                                                         \
    (&m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, work.data(), &size, reals.data(), &info);   \
    return info;                                                                                   \
  }                                                                                                \
  int sytrf(bool hermitian, char uplo, int n, T* a, int lda, int* pivots) {                        \
    const OneThread guard;                                                                         \
    const auto factor = hermitian ? KILN_FORTRAN(p, hetrf) : KILN_FORTRAN(p, sytrf);               \
    int info = 0;                                                                                  \
    int size = -1;                                                                                 \
    T optimal{};                                                                                   \
    factor(&uplo, &n, a, &lda, pivots, &optimal, &size, &info, 1);                                 \
    size = size_of_work(optimal);                                                                  \
    std::vector<T> work(static_cast<size_t>(size));                                                \
    factor(&uplo, &n, a, &lda, pivots, work.data(), &size, &info, 1);                              \
    return info;                                                                                   \
  }                                                                                                \
  int sytrs(bool hermitian, char uplo, int n, int nrhs, const T* a, int lda, const int* pivots,    \
            T* b, int ldb) {                                                                       \
    const OneThread guard;                                                                         \
    int info = 0;                                                                                  \
    (hermitian ? KILN_FORTRAN(p, hetrs) : KILN_FORTRAN(p, sytrs))(&uplo, &n, &nrhs, a, &lda,       \
                                                                  pivots, b, &ldb, &info, 1);      \
    return info;                                                                                   \
  }
X(c32, float, c)
X(c64, double, z)
#undef X

}  // namespace kiln::lapack
