// LAPACK as overloaded functions over float, double and their complex kinds. Internal to
// kiln/tensor/linalg.
//
// Matrices are column-major with a leading dim; sizes are 32-bit (see checked_size in host.h).
// Every call runs on the thread that makes it, whatever the library was built with. What a function
// returns is LAPACK's info: 0, or i > 0 for the failure that its page describes. Wrong arguments
// are Kiln's own mistakes.
#pragma once

#include <complex>

namespace kiln::lapack {

template <class T>
struct RealOf {
  using Type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using Type = T;
};
template <class T>
using Real = typename RealOf<T>::Type;

#define KILN_LAPACK_DECLARE(T)                                                                   \
  /* A = L L^H (uplo 'L') or U^H U ('U'), in the triangle that uplo names. */                    \
  int potrf(char uplo, int n, T* a, int lda);                                                    \
  int potri(char uplo, int n, T* a, int lda);                                                    \
  int potrs(char uplo, int n, int nrhs, const T* a, int lda, T* b, int ldb);                     \
  /* A = P L U; pivots count from 1. */                                                          \
  int getrf(int m, int n, T* a, int lda, int* pivots);                                           \
  int getrs(char trans, int n, int nrhs, const T* a, int lda, const int* pivots, T* b, int ldb); \
  int getri(int n, T* a, int lda, const int* pivots);                                            \
  /* B <- alpha op(A)^-1 B (side 'L') or alpha B op(A)^-1 ('R') for a triangular A. */           \
  void trsm(char side, char uplo, char trans, char diag, int m, int n, T alpha, const T* a,      \
            int lda, T* b, int ldb);                                                             \
  /* C <- alpha op(A) op(B) + beta C. */                                                         \
  void gemm(char transa, char transb, int m, int n, int k, T alpha, const T* a, int lda,         \
            const T* b, int ldb, T beta, T* c, int ldc);                                         \
  int geqrf(int m, int n, T* a, int lda, T* tau);                                                \
  int orgqr(int m, int n, int k, T* a, int lda, const T* tau);                                   \
  int ormqr(char side, char trans, int m, int n, int k, const T* a, int lda, const T* tau, T* c, \
            int ldc);                                                                            \
  /* Eigenvalues ascending in w, with job 'V' eigenvectors over a. */                            \
  int syevd(char job, char uplo, int n, T* a, int lda, Real<T>* w);                              \
  /* A = U S V^H; job 'A' (full), 'S' (reduced) or 'N' (values alone). Destroys a. */            \
  int gesdd(char job, int m, int n, T* a, int lda, Real<T>* s, T* u, int ldu, T* vt, int ldvt);  \
  int gesvd(char job, int m, int n, T* a, int lda, Real<T>* s, T* u, int ldu, T* vt, int ldvt);  \
  /* Eigenvalues and, with job 'V', right eigenvectors of any square matrix. */                  \
  int geev(char job, int n, T* a, int lda, std::complex<Real<T>>* w, std::complex<Real<T>>* v,   \
           int ldv);                                                                             \
  /* Least squares: the solution over b, which has max(m, n) rows. gels needs full rank. */      \
  int gels(int m, int n, int nrhs, T* a, int lda, T* b, int ldb);                                \
  int gelsy(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, Real<T> rcond, int* rank);     \
  int gelsd(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, Real<T>* s, Real<T> rcond,     \
            int* rank);                                                                          \
  int gelss(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, Real<T>* s, Real<T> rcond,     \
            int* rank);                                                                          \
  /* A = L D L^T (hermitian false) or L D L^H, Bunch-Kaufman; and its use. */                    \
  int sytrf(bool hermitian, char uplo, int n, T* a, int lda, int* pivots);                       \
  int sytrs(bool hermitian, char uplo, int n, int nrhs, const T* a, int lda, const int* pivots,  \
            T* b, int ldb);
KILN_LAPACK_DECLARE(float)
KILN_LAPACK_DECLARE(double)
KILN_LAPACK_DECLARE(std::complex<float>)
KILN_LAPACK_DECLARE(std::complex<double>)
#undef KILN_LAPACK_DECLARE

}  // namespace kiln::lapack
