#include "kiln/tensor/linalg/lapack.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <omp.h>

#include "kiln/tensor/linalg/lapack_small.h"

// LAPACK's Fortran needs one function of gfortran's runtime: joining two strings, with blanks up to
// the length. Giving it that one spares a library.
extern "C" __attribute__((weak, visibility("hidden"))) void _gfortran_concat_string(
    size_t length, char* out, size_t a_length, const char* a, size_t b_length, const char* b) {
  const size_t from_a = std::min(length, a_length);
  const size_t from_b = std::min(length - from_a, b_length);
  std::memcpy(out, a, from_a);
  std::memcpy(out + from_a, b, from_b);
  std::memset(out + from_a + from_b, ' ', length - from_a - from_b);
}

namespace kiln::lapack {

namespace {

using c32 = std::complex<float>;
using c64 = std::complex<double>;

// OpenBLAS asks OpenMP how many threads a call may take: one, as Kiln runs its own loops around.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) {
    if (before_ != 1) omp_set_num_threads(1);
  }
  ~OneThread() {
    if (before_ != 1) omp_set_num_threads(before_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

template <class T>
int size_of_work(T optimal) {
  // Rounded up: a float holds large sizes inexactly.
  return std::max(1, static_cast<int>(std::real(optimal) * (1 + 1e-6) + 1));
}

}  // namespace

// Fortran passes everything by address, and the lengths of strings after all other arguments.
// The declarations are not those of <lapack.h>: Debian has it in liblapacke-dev, which installs
// LAPACKE and the reference LAPACK beside OpenBLAS, and its functions take C's complex numbers.
#define KILN_LAPACK_ALL(X) X(float, s) X(double, d) X(c32, c) X(c64, z)

#define X(T, p)                                                                                   \
  extern "C" {                                                                                    \
  void p##potrf_(const char*, const int*, T*, const int*, int*, size_t);                          \
  void p##potri_(const char*, const int*, T*, const int*, int*, size_t);                          \
  void p##potrs_(const char*, const int*, const int*, const T*, const int*, T*, const int*, int*, \
                 size_t);                                                                         \
  void p##getrf_(const int*, const int*, T*, const int*, int*, int*);                             \
  void p##getrs_(const char*, const int*, const int*, const T*, const int*, const int*, T*,       \
                 const int*, int*, size_t);                                                       \
  void p##getri_(const int*, T*, const int*, const int*, T*, const int*, int*);                   \
  void p##trsm_(const char*, const char*, const char*, const char*, const int*, const int*,       \
                const T*, const T*, const int*, T*, const int*, size_t, size_t, size_t, size_t);  \
  void p##gemm_(const char*, const char*, const int*, const int*, const int*, const T*, const T*, \
                const int*, const T*, const int*, const T*, T*, const int*, size_t, size_t);      \
  void p##gels_(const char*, const int*, const int*, const int*, T*, const int*, T*, const int*,  \
                T*, const int*, int*, size_t);                                                    \
  void p##sytrf_(const char*, const int*, T*, const int*, int*, T*, const int*, int*, size_t);    \
  void p##sytrs_(const char*, const int*, const int*, const T*, const int*, const int*, T*,       \
                 const int*, int*, size_t);                                                       \
  }                                                                                               \
  int potrf(char uplo, int n, T* a, int lda) {                                                    \
    if (uplo == 'L' && small::takes(n, n, lda)) return small::potrf(n, a);                        \
    const OneThread guard;                                                                        \
    int info = 0;                                                                                 \
    p##potrf_(&uplo, &n, a, &lda, &info, 1);                                                      \
    return info;                                                                                  \
  }                                                                                               \
  int potri(char uplo, int n, T* a, int lda) {                                                    \
    const OneThread guard;                                                                        \
    int info = 0;                                                                                 \
    p##potri_(&uplo, &n, a, &lda, &info, 1);                                                      \
    return info;                                                                                  \
  }                                                                                               \
  int potrs(char uplo, int n, int nrhs, const T* a, int lda, T* b, int ldb) {                     \
    const OneThread guard;                                                                        \
    int info = 0;                                                                                 \
    p##potrs_(&uplo, &n, &nrhs, a, &lda, b, &ldb, &info, 1);                                      \
    return info;                                                                                  \
  }                                                                                               \
  int getrf(int m, int n, T* a, int lda, int* pivots) {                                           \
    if (m == n && small::takes(n, n, lda)) return small::getrf(n, a, pivots);                     \
    const OneThread guard;                                                                        \
    int info = 0;                                                                                 \
    p##getrf_(&m, &n, a, &lda, pivots, &info);                                                    \
    return info;                                                                                  \
  }                                                                                               \
  int getrs(char trans, int n, int nrhs, const T* a, int lda, const int* pivots, T* b, int ldb) { \
    if (trans != 'T' && ldb == n && small::takes(n, n, lda) && (n <= 8 || nrhs <= 4)) {           \
      small::getrs(trans == 'C', n, nrhs, a, pivots, b);                                          \
      return 0;                                                                                   \
    }                                                                                             \
    const OneThread guard;                                                                        \
    int info = 0;                                                                                 \
    p##getrs_(&trans, &n, &nrhs, a, &lda, pivots, b, &ldb, &info, 1);                             \
    return info;                                                                                  \
  }                                                                                               \
  int getri(int n, T* a, int lda, const int* pivots) {                                            \
    if (small::takes(n, n, lda)) return small::getri(n, a, pivots);                               \
    const OneThread guard;                                                                        \
    int info = 0;                                                                                 \
    int size = -1;                                                                                \
    T optimal{};                                                                                  \
    p##getri_(&n, a, &lda, pivots, &optimal, &size, &info);                                       \
    size = size_of_work(optimal);                                                                 \
    std::vector<T> work(static_cast<size_t>(size));                                               \
    p##getri_(&n, a, &lda, pivots, work.data(), &size, &info);                                    \
    return info;                                                                                  \
  }                                                                                               \
  void trsm(char side, char uplo, char trans, char diag, int m, int n, T alpha, const T* a,       \
            int lda, T* b, int ldb) {                                                             \
    const OneThread guard;                                                                        \
    p##trsm_(&side, &uplo, &trans, &diag, &m, &n, &alpha, a, &lda, b, &ldb, 1, 1, 1, 1);          \
  }                                                                                               \
  void gemm(char transa, char transb, int m, int n, int k, T alpha, const T* a, int lda,          \
            const T* b, int ldb, T beta, T* c, int ldc) {                                         \
    const OneThread guard;                                                                        \
    p##gemm_(&transa, &transb, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc, 1, 1);       \
  }                                                                                               \
  int gels(int m, int n, int nrhs, T* a, int lda, T* b, int ldb) {                                \
    const OneThread guard;                                                                        \
    int info = 0;                                                                                 \
    int size = -1;                                                                                \
    T optimal{};                                                                                  \
    p##gels_("N", &m, &n, &nrhs, a, &lda, b, &ldb, &optimal, &size, &info, 1);                    \
    size = size_of_work(optimal);                                                                 \
    std::vector<T> work(static_cast<size_t>(size));                                               \
    p##gels_("N", &m, &n, &nrhs, a, &lda, b, &ldb, work.data(), &size, &info, 1);                 \
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
#define X(T, p, org2r_, ormqr_, adjoint)                                                           \
  extern "C" {                                                                                     \
  void p##geqr2_(const int*, const int*, T*, const int*, T*, T*, int*);                            \
  void p##larft_(const char*, const char*, const int*, const int*, const T*, const int*, const T*, \
                 T*, const int*, size_t, size_t);                                                  \
  void p##larfb_(const char*, const char*, const char*, const char*, const int*, const int*,       \
                 const int*, const T*, const int*, const T*, const int*, T*, const int*, T*,       \
                 const int*, size_t, size_t, size_t, size_t);                                      \
  void p##org2r_(const int*, const int*, const int*, T*, const int*, const T*, T*, int*);          \
  void p##ormqr_(const char*, const char*, const int*, const int*, const int*, const T*,           \
                 const int*, const T*, T*, const int*, T*, const int*, int*, size_t, size_t);      \
  }                                                                                                \
  namespace {                                                                                      \
  /* C <- H C or H^H C for the product H of the ib reflectors in v. */                             \
  void reflect(char trans, int m, int n, int ib, const T* v, int lda, const T* tau, T* c,          \
               T* work) {                                                                          \
    const int ldt = kBlock;                                                                        \
    const int ldwork = n;                                                                          \
    T* t = work + static_cast<size_t>(n) * kBlock;                                                 \
    p##larft_("F", "C", &m, &ib, v, &lda, tau, t, &ldt, 1, 1);                                     \
    p##larfb_("L", &trans, "F", "C", &m, &n, &ib, v, &lda, t, &ldt, c, &lda, work, &ldwork, 1, 1,  \
              1, 1);                                                                               \
  }                                                                                                \
  std::vector<T> work_of(T, int n) {                                                               \
    return std::vector<T>(static_cast<size_t>(std::max(1, n)) * kBlock + kBlock * kBlock);         \
  }                                                                                                \
  }                                                                                                \
  int geqrf(int m, int n, T* a, int lda, T* tau) {                                                 \
    if (small::takes(m, n, lda) && small::geqrf(m, n, a, tau)) return 0;                           \
    const OneThread guard;                                                                         \
    std::vector<T> work = work_of(T(), n);                                                         \
    const int k = std::min(m, n);                                                                  \
    int info = 0;                                                                                  \
    for (int i = 0; i < k; i += kBlock) {                                                          \
      const int ib = std::min(kBlock, k - i);                                                      \
      const int left = m - i;                                                                      \
      const int right = n - i - ib;                                                                \
      T* v = a + i + static_cast<size_t>(i) * lda;                                                 \
      p##geqr2_(&left, &ib, v, &lda, tau + i, work.data(), &info);                                 \
      if (right > 0) {                                                                             \
        reflect(adjoint, left, right, ib, v, lda, tau + i, v + static_cast<size_t>(ib) * lda,      \
                work.data());                                                                      \
      }                                                                                            \
    }                                                                                              \
    return info;                                                                                   \
  }                                                                                                \
  int orgqr(int m, int n, int k, T* a, int lda, const T* tau) {                                    \
    if (small::takes(m, n, lda)) {                                                                 \
      small::orgqr(m, n, k, a, tau);                                                               \
      return 0;                                                                                    \
    }                                                                                              \
    const OneThread guard;                                                                         \
    std::vector<T> work = work_of(T(), n);                                                         \
    int info = 0;                                                                                  \
    for (int j = k; j < n; ++j) {                                                                  \
      T* column = a + static_cast<size_t>(j) * lda;                                                \
      std::fill(column, column + m, T(0));                                                         \
      column[j] = T(1);                                                                            \
    }                                                                                              \
    for (int i = (k - 1) / kBlock * kBlock; k > 0 && i >= 0; i -= kBlock) {                        \
      const int ib = std::min(kBlock, k - i);                                                      \
      const int left = m - i;                                                                      \
      const int right = n - i - ib;                                                                \
      T* v = a + i + static_cast<size_t>(i) * lda;                                                 \
      if (right > 0) {                                                                             \
        reflect('N', left, right, ib, v, lda, tau + i, v + static_cast<size_t>(ib) * lda,          \
                work.data());                                                                      \
      }                                                                                            \
      p##org2r_(&left, &ib, &ib, v, &lda, tau + i, work.data(), &info);                            \
      for (int j = i; j < i + ib; ++j) {                                                           \
        T* column = a + static_cast<size_t>(j) * lda;                                              \
        std::fill(column, column + i, T(0));                                                       \
      }                                                                                            \
    }                                                                                              \
    return info;                                                                                   \
  }                                                                                                \
  int ormqr(char side, char trans, int m, int n, int k, const T* a, int lda, const T* tau, T* c,   \
            int ldc) {                                                                             \
    const OneThread guard;                                                                         \
    int info = 0;                                                                                  \
    int size = -1;                                                                                 \
    T optimal{};                                                                                   \
    p##ormqr_(&side, &trans, &m, &n, &k, a, &lda, tau, c, &ldc, &optimal, &size, &info, 1, 1);     \
    size = size_of_work(optimal);                                                                  \
    std::vector<T> work(static_cast<size_t>(size));                                                \
    p##ormqr_(&side, &trans, &m, &n, &k, a, &lda, tau, c, &ldc, work.data(), &size, &info, 1, 1);  \
    return info;                                                                                   \
  }
X(float, s, org2r_, ormqr_, 'T')
X(double, d, org2r_, ormqr_, 'T')
X(c32, c, ung2r_, unmqr_, 'C')
X(c64, z, ung2r_, unmqr_, 'C')
#undef X

// The functions whose complex kinds take real work memory besides.
#define X(T, p)                                                                                    \
  extern "C" {                                                                                     \
  void p##syevd_(const char*, const char*, const int*, T*, const int*, T*, T*, const int*, int*,   \
                 const int*, int*, size_t, size_t);                                                \
  void p##gesdd_(const char*, const int*, const int*, T*, const int*, T*, T*, const int*, T*,      \
                 const int*, T*, const int*, int*, int*, size_t);                                  \
  void p##gesvd_(const char*, const char*, const int*, const int*, T*, const int*, T*, T*,         \
                 const int*, T*, const int*, T*, const int*, int*, size_t, size_t);                \
  void p##geev_(const char*, const char*, const int*, T*, const int*, T*, T*, T*, const int*, T*,  \
                const int*, T*, const int*, int*, size_t, size_t);                                 \
  void p##gelsy_(const int*, const int*, const int*, T*, const int*, T*, const int*, int*,         \
                 const T*, int*, T*, const int*, int*);                                            \
  void p##gelsd_(const int*, const int*, const int*, T*, const int*, T*, const int*, T*, const T*, \
                 int*, T*, const int*, int*, int*);                                                \
  void p##gelss_(const int*, const int*, const int*, T*, const int*, T*, const int*, T*, const T*, \
                 int*, T*, const int*, int*);                                                      \
  }                                                                                                \
  int syevd(char job, char uplo, int n, T* a, int lda, T* w) {                                     \
    const OneThread guard;                                                                         \
    int info = 0;                                                                                  \
    int size = -1;                                                                                 \
    int int_size = -1;                                                                             \
    T optimal{};                                                                                   \
    int int_optimal = 0;                                                                           \
    p##syevd_(&job, &uplo, &n, a, &lda, w, &optimal, &size, &int_optimal, &int_size, &info, 1, 1); \
    size = size_of_work(optimal);                                                                  \
    int_size = std::max(1, int_optimal);                                                           \
    std::vector<T> work(static_cast<size_t>(size));                                                \
    std::vector<int> ints(static_cast<size_t>(int_size));                                          \
    p##syevd_(&job, &uplo, &n, a, &lda, w, work.data(), &size, ints.data(), &int_size, &info, 1,   \
              1);                                                                                  \
    return info;                                                                                   \
  }                                                                                                \
  int gesdd(char job, int m, int n, T* a, int lda, T* s, T* u, int ldu, T* vt, int ldvt) {         \
    const OneThread guard;                                                                         \
    int info = 0;                                                                                  \
    int size = -1;                                                                                 \
    T optimal{};                                                                                   \
    std::vector<int> ints(8 * static_cast<size_t>(std::max(1, std::min(m, n))));                   \
    p##gesdd_(&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, &optimal, &size, ints.data(), &info,   \
              1);                                                                                  \
    size = size_of_work(optimal);                                                                  \
    std::vector<T> work(static_cast<size_t>(size));                                                \
    p##gesdd_(&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work.data(), &size, ints.data(),       \
              &info, 1);                                                                           \
    return info;                                                                                   \
  }                                                                                                \
  int gesvd(char job, int m, int n, T* a, int lda, T* s, T* u, int ldu, T* vt, int ldvt) {         \
    const OneThread guard;                                                                         \
    int info = 0;                                                                                  \
    int size = -1;                                                                                 \
    T optimal{};                                                                                   \
    p##gesvd_(&job, &job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, &optimal, &size, &info, 1, 1);   \
    size = size_of_work(optimal);                                                                  \
    std::vector<T> work(static_cast<size_t>(size));                                                \
    p##gesvd_(&job, &job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work.data(), &size, &info, 1,    \
              1);                                                                                  \
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
    p##geev_("N", &job, &n, a, &lda, re.data(), im.data(), nullptr, &ld, vectors.data(), &ld,      \
             &optimal, &size, &info, 1, 1);                                                        \
    size = size_of_work(optimal);                                                                  \
    std::vector<T> work(static_cast<size_t>(size));                                                \
    p##geev_("N", &job, &n, a, &lda, re.data(), im.data(), nullptr, &ld, vectors.data(), &ld,      \
             work.data(), &size, &info, 1, 1);                                                     \
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
    p##gelsy_(&m, &n, &nrhs, a, &lda, b, &ldb, order.data(), &rcond, rank, &optimal, &size,        \
              &info);                                                                              \
    size = size_of_work(optimal);                                                                  \
    std::vector<T> work(static_cast<size_t>(size));                                                \
    p##gelsy_(&m, &n, &nrhs, a, &lda, b, &ldb, order.data(), &rcond, rank, work.data(), &size,     \
              &info);                                                                              \
    return info;                                                                                   \
  }                                                                                                \
  int gelsd(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, T* s, T rcond, int* rank) {      \
    const OneThread guard;                                                                         \
    int info = 0;                                                                                  \
    int size = -1;                                                                                 \
    T optimal{};                                                                                   \
    int int_optimal = 0;                                                                           \
    p##gelsd_(&m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, &optimal, &size, &int_optimal,     \
              &info);                                                                              \
    size = size_of_work(optimal);                                                                  \
    std::vector<T> work(static_cast<size_t>(size));                                                \
    std::vector<int> ints(static_cast<size_t>(std::max(1, int_optimal)));                          \
    p##gelsd_(&m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, work.data(), &size, ints.data(),   \
              &info);                                                                              \
    return info;                                                                                   \
  }                                                                                                \
  int gelss(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, T* s, T rcond, int* rank) {      \
    const OneThread guard;                                                                         \
    int info = 0;                                                                                  \
    int size = -1;                                                                                 \
    T optimal{};                                                                                   \
    p##gelss_(&m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, &optimal, &size, &info);           \
    size = size_of_work(optimal);                                                                  \
    std::vector<T> work(static_cast<size_t>(size));                                                \
    p##gelss_(&m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, work.data(), &size, &info);        \
    return info;                                                                                   \
  }                                                                                                \
  int sytrf(bool, char uplo, int n, T* a, int lda, int* pivots) {                                  \
    const OneThread guard;                                                                         \
    int info = 0;                                                                                  \
    int size = -1;                                                                                 \
    T optimal{};                                                                                   \
    p##sytrf_(&uplo, &n, a, &lda, pivots, &optimal, &size, &info, 1);                              \
    size = size_of_work(optimal);                                                                  \
    std::vector<T> work(static_cast<size_t>(size));                                                \
    p##sytrf_(&uplo, &n, a, &lda, pivots, work.data(), &size, &info, 1);                           \
    return info;                                                                                   \
  }                                                                                                \
  int sytrs(bool, char uplo, int n, int nrhs, const T* a, int lda, const int* pivots, T* b,        \
            int ldb) {                                                                             \
    const OneThread guard;                                                                         \
    int info = 0;                                                                                  \
    p##sytrs_(&uplo, &n, &nrhs, a, &lda, pivots, b, &ldb, &info, 1);                               \
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
  extern "C" {                                                                                     \
  void p##heevd_(const char*, const char*, const int*, T*, const int*, R*, T*, const int*, R*,     \
                 const int*, int*, const int*, int*, size_t, size_t);                              \
  void p##gesdd_(const char*, const int*, const int*, T*, const int*, R*, T*, const int*, T*,      \
                 const int*, T*, const int*, R*, int*, int*, size_t);                              \
  void p##gesvd_(const char*, const char*, const int*, const int*, T*, const int*, R*, T*,         \
                 const int*, T*, const int*, T*, const int*, R*, int*, size_t, size_t);            \
  void p##geev_(const char*, const char*, const int*, T*, const int*, T*, T*, const int*, T*,      \
                const int*, T*, const int*, R*, int*, size_t, size_t);                             \
  void p##gelsy_(const int*, const int*, const int*, T*, const int*, T*, const int*, int*,         \
                 const R*, int*, T*, const int*, R*, int*);                                        \
  void p##gelsd_(const int*, const int*, const int*, T*, const int*, T*, const int*, R*, const R*, \
                 int*, T*, const int*, R*, int*, int*);                                            \
  void p##gelss_(const int*, const int*, const int*, T*, const int*, T*, const int*, R*, const R*, \
                 int*, T*, const int*, R*, int*);                                                  \
  void p##hetrf_(const char*, const int*, T*, const int*, int*, T*, const int*, int*, size_t);     \
  void p##hetrs_(const char*, const int*, const int*, const T*, const int*, const int*, T*,        \
                 const int*, int*, size_t);                                                        \
  }                                                                                                \
  int syevd(char job, char uplo, int n, T* a, int lda, R* w) {                                     \
    const OneThread guard;                                                                         \
    int info = 0;                                                                                  \
    int size = -1;                                                                                 \
    int real_size = -1;                                                                            \
    int int_size = -1;                                                                             \
    T optimal{};                                                                                   \
    R real_optimal{};                                                                              \
    int int_optimal = 0;                                                                           \
    p##heevd_(&job, &uplo, &n, a, &lda, w, &optimal, &size, &real_optimal, &real_size,             \
              &int_optimal, &int_size, &info, 1, 1);                                               \
    size = size_of_work(optimal);                                                                  \
    real_size = size_of_work(real_optimal);                                                        \
    int_size = std::max(1, int_optimal);                                                           \
    std::vector<T> work(static_cast<size_t>(size));                                                \
    std::vector<R> reals(static_cast<size_t>(real_size));                                          \
    std::vector<int> ints(static_cast<size_t>(int_size));                                          \
    p##heevd_(&job, &uplo, &n, a, &lda, w, work.data(), &size, reals.data(), &real_size,           \
              ints.data(), &int_size, &info, 1, 1);                                                \
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
    p##gesdd_(&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, &optimal, &size, reals.data(),         \
              ints.data(), &info, 1);                                                              \
    size = size_of_work(optimal);                                                                  \
    std::vector<T> work(static_cast<size_t>(size));                                                \
    p##gesdd_(&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work.data(), &size, reals.data(),      \
              ints.data(), &info, 1);                                                              \
    return info;                                                                                   \
  }                                                                                                \
  int gesvd(char job, int m, int n, T* a, int lda, R* s, T* u, int ldu, T* vt, int ldvt) {         \
    const OneThread guard;                                                                         \
    int info = 0;                                                                                  \
    int size = -1;                                                                                 \
    T optimal{};                                                                                   \
    std::vector<R> reals(5 * static_cast<size_t>(std::max(1, std::min(m, n))));                    \
    p##gesvd_(&job, &job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, &optimal, &size, reals.data(),   \
              &info, 1, 1);                                                                        \
    size = size_of_work(optimal);                                                                  \
    std::vector<T> work(static_cast<size_t>(size));                                                \
    p##gesvd_(&job, &job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work.data(), &size,              \
              reals.data(), &info, 1, 1);                                                          \
    return info;                                                                                   \
  }                                                                                                \
  int geev(char job, int n, T* a, int lda, T* w, T* v, int ldv) {                                  \
    const OneThread guard;                                                                         \
    int info = 0;                                                                                  \
    int size = -1;                                                                                 \
    T optimal{};                                                                                   \
    std::vector<R> reals(2 * static_cast<size_t>(std::max(1, n)));                                 \
    const int ld = std::max(1, ldv);                                                               \
    p##geev_("N", &job, &n, a, &lda, w, nullptr, &ld, v, &ld, &optimal, &size, reals.data(),       \
             &info, 1, 1);                                                                         \
    size = size_of_work(optimal);                                                                  \
    std::vector<T> work(static_cast<size_t>(size));                                                \
    p##geev_("N", &job, &n, a, &lda, w, nullptr, &ld, v, &ld, work.data(), &size, reals.data(),    \
             &info, 1, 1);                                                                         \
    return info;                                                                                   \
  }                                                                                                \
  int gelsy(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, R rcond, int* rank) {            \
    const OneThread guard;                                                                         \
    int info = 0;                                                                                  \
    int size = -1;                                                                                 \
    T optimal{};                                                                                   \
    std::vector<int> order(static_cast<size_t>(n));                                                \
    std::vector<R> reals(2 * static_cast<size_t>(std::max(1, n)));                                 \
    p##gelsy_(&m, &n, &nrhs, a, &lda, b, &ldb, order.data(), &rcond, rank, &optimal, &size,        \
              reals.data(), &info);                                                                \
    size = size_of_work(optimal);                                                                  \
    std::vector<T> work(static_cast<size_t>(size));                                                \
    p##gelsy_(&m, &n, &nrhs, a, &lda, b, &ldb, order.data(), &rcond, rank, work.data(), &size,     \
              reals.data(), &info);                                                                \
    return info;                                                                                   \
  }                                                                                                \
  int gelsd(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, R* s, R rcond, int* rank) {      \
    const OneThread guard;                                                                         \
    int info = 0;                                                                                  \
    int size = -1;                                                                                 \
    T optimal{};                                                                                   \
    R real_optimal{};                                                                              \
    int int_optimal = 0;                                                                           \
    p##gelsd_(&m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, &optimal, &size, &real_optimal,    \
              &int_optimal, &info);                                                                \
    size = size_of_work(optimal);                                                                  \
    std::vector<T> work(static_cast<size_t>(size));                                                \
    std::vector<R> reals(static_cast<size_t>(size_of_work(real_optimal)));                         \
    std::vector<int> ints(static_cast<size_t>(std::max(1, int_optimal)));                          \
    p##gelsd_(&m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, work.data(), &size, reals.data(),  \
              ints.data(), &info);                                                                 \
    return info;                                                                                   \
  }                                                                                                \
  int gelss(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, R* s, R rcond, int* rank) {      \
    const OneThread guard;                                                                         \
    int info = 0;                                                                                  \
    int size = -1;                                                                                 \
    T optimal{};                                                                                   \
    std::vector<R> reals(5 * static_cast<size_t>(std::max(1, std::min(m, n))));                    \
    p##gelss_(&m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, &optimal, &size, reals.data(),     \
              &info);                                                                              \
    size = size_of_work(optimal);                                                                  \
    std::vector<T> work(static_cast<size_t>(size));                                                \
    p##gelss_(&m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, work.data(), &size, reals.data(),  \
              &info);                                                                              \
    return info;                                                                                   \
  }                                                                                                \
  int sytrf(bool hermitian, char uplo, int n, T* a, int lda, int* pivots) {                        \
    const OneThread guard;                                                                         \
    const auto factor = hermitian ? p##hetrf_ : p##sytrf_;                                         \
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
    (hermitian ? p##hetrs_ : p##sytrs_)(&uplo, &n, &nrhs, a, &lda, pivots, b, &ldb, &info, 1);     \
    return info;                                                                                   \
  }
X(c32, float, c)
X(c64, double, z)
#undef X

}  // namespace kiln::lapack
