// The functions of LAPACK and BLAS by their names in Fortran. Included by lapack.cpp alone.
//
// KILN_FORTRAN(p, name) is the function of kind p, which is s, d, c or z. The build chooses:
// - by default dpotrf_ and its like, from OpenBLAS with OpenMP or from any LAPACK;
// - KILN_LAPACK_ALONE: the same OpenBLAS in a library without OpenMP, as wheels have it;
// - KILN_LAPACK_NONE: there is none, and each call throws NotImplementedError.
#pragma once

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#if !defined(KILN_LAPACK_NONE) && !defined(KILN_LAPACK_ALONE)
#include <omp.h>
#endif

#include "kiln/core/error.h"

#ifdef KILN_LAPACK_NONE

namespace kiln::lapack {
namespace {

struct OneThread {
  OneThread() {}
};

// Takes the place of every function. What lapack_small.h computes works without.
constexpr auto no_lapack = [](const auto&...) {
  throw NotImplementedError(
      "this needs LAPACK, and Kiln was built without it (KILN_LAPACK=OFF); only small matrices can "
      "be "
      "factorized, inverted and solved");
};
#define KILN_FORTRAN(p, name) no_lapack

}  // namespace
}  // namespace kiln::lapack

#else

#define KILN_FORTRAN(p, name) p##name##_
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
#ifdef KILN_LAPACK_KERNELS
// Stands for the kernels that LAPACK never calls: see cmake/KilnLapackKernels.cmake.
extern "C" __attribute__((visibility("hidden"))) void kiln_lapack_left_out() { std::abort(); }
#endif
#ifdef KILN_LAPACK_ALONE
// What OpenBLAS asks of OpenMP, answered for one thread: each of its calls stays on its caller's.
#define KILN_HIDDEN extern "C" __attribute__((visibility("hidden")))
KILN_HIDDEN int omp_get_max_threads() { return 1; }
KILN_HIDDEN int omp_get_num_threads() { return 1; }
KILN_HIDDEN int omp_get_thread_num() { return 0; }
KILN_HIDDEN int omp_in_parallel() { return 0; }
KILN_HIDDEN int omp_get_num_places() { return 0; }
KILN_HIDDEN void omp_set_num_threads(int) {}
KILN_HIDDEN void GOMP_parallel(void (*run)(void*), void* data, unsigned, unsigned) { run(data); }
#undef KILN_HIDDEN
#endif

namespace kiln::lapack {

using c32 = std::complex<float>;
using c64 = std::complex<double>;

namespace {

#ifdef KILN_LAPACK_ALONE
struct OneThread {
  OneThread() {}
};
#else
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
#endif

}  // namespace

// Fortran passes everything by address, and the lengths of strings after all other arguments.
// The declarations are not those of <lapack.h>: Debian has it in liblapacke-dev, which installs
// LAPACKE and the reference LAPACK beside OpenBLAS, and its functions take C's complex numbers.
#define KILN_FORTRAN_SOLVERS(T, p)                                                                 \
  extern "C" {                                                                                     \
  void KILN_FORTRAN(p, potrf)(const char*, const int*, T*, const int*, int*, size_t);              \
  void KILN_FORTRAN(p, potri)(const char*, const int*, T*, const int*, int*, size_t);              \
  void KILN_FORTRAN(p, potrs)(const char*, const int*, const int*, const T*, const int*, T*,       \
                              const int*, int*, size_t);                                           \
  void KILN_FORTRAN(p, getrf)(const int*, const int*, T*, const int*, int*, int*);                 \
  void KILN_FORTRAN(p, getrs)(const char*, const int*, const int*, const T*, const int*,           \
                              const int*, T*, const int*, int*, size_t);                           \
  void KILN_FORTRAN(p, getri)(const int*, T*, const int*, const int*, T*, const int*, int*);       \
  void KILN_FORTRAN(p, trsm)(const char*, const char*, const char*, const char*, const int*,       \
                             const int*, const T*, const T*, const int*, T*, const int*, size_t,   \
                             size_t, size_t, size_t);                                              \
  void KILN_FORTRAN(p, trsv)(const char*, const char*, const char*, const int*, const T*,          \
                             const int*, T*, const int*, size_t, size_t, size_t);                  \
  void KILN_FORTRAN(p, gemm)(const char*, const char*, const int*, const int*, const int*,         \
                             const T*, const T*, const int*, const T*, const int*, const T*, T*,   \
                             const int*, size_t, size_t);                                          \
  void KILN_FORTRAN(p, gels)(const char*, const int*, const int*, const int*, T*, const int*, T*,  \
                             const int*, T*, const int*, int*, size_t);                            \
  void KILN_FORTRAN(p, sytrf)(const char*, const int*, T*, const int*, int*, T*, const int*, int*, \
                              size_t);                                                             \
  void KILN_FORTRAN(p, sytrs)(const char*, const int*, const int*, const T*, const int*,           \
                              const int*, T*, const int*, int*, size_t);                           \
  }
KILN_FORTRAN_SOLVERS(float, s)
KILN_FORTRAN_SOLVERS(double, d)
KILN_FORTRAN_SOLVERS(c32, c)
KILN_FORTRAN_SOLVERS(c64, z)

#define KILN_FORTRAN_REFLECTORS(T, p, generate, apply)                                             \
  extern "C" {                                                                                     \
  void KILN_FORTRAN(p, geqr2)(const int*, const int*, T*, const int*, T*, T*, int*);               \
  void KILN_FORTRAN(p, larft)(const char*, const char*, const int*, const int*, const T*,          \
                              const int*, const T*, T*, const int*, size_t, size_t);               \
  void KILN_FORTRAN(p, larfb)(const char*, const char*, const char*, const char*, const int*,      \
                              const int*, const int*, const T*, const int*, const T*, const int*,  \
                              T*, const int*, T*, const int*, size_t, size_t, size_t, size_t);     \
  void KILN_FORTRAN(p, generate)(const int*, const int*, const int*, T*, const int*, const T*, T*, \
                                 int*);                                                            \
  void KILN_FORTRAN(p, apply)(const char*, const char*, const int*, const int*, const int*,        \
                              const T*, const int*, const T*, T*, const int*, T*, const int*,      \
                              int*, size_t, size_t);                                               \
  }
KILN_FORTRAN_REFLECTORS(float, s, org2r, ormqr)
KILN_FORTRAN_REFLECTORS(double, d, org2r, ormqr)
KILN_FORTRAN_REFLECTORS(c32, c, ung2r, unmqr)
KILN_FORTRAN_REFLECTORS(c64, z, ung2r, unmqr)

#define KILN_FORTRAN_REAL(T, p)                                                                   \
  extern "C" {                                                                                    \
  void KILN_FORTRAN(p, syevd)(const char*, const char*, const int*, T*, const int*, T*, T*,       \
                              const int*, int*, const int*, int*, size_t, size_t);                \
  void KILN_FORTRAN(p, gesdd)(const char*, const int*, const int*, T*, const int*, T*, T*,        \
                              const int*, T*, const int*, T*, const int*, int*, int*, size_t);    \
  void KILN_FORTRAN(p, gesvd)(const char*, const char*, const int*, const int*, T*, const int*,   \
                              T*, T*, const int*, T*, const int*, T*, const int*, int*, size_t,   \
                              size_t);                                                            \
  void KILN_FORTRAN(p, geev)(const char*, const char*, const int*, T*, const int*, T*, T*, T*,    \
                             const int*, T*, const int*, T*, const int*, int*, size_t, size_t);   \
  void KILN_FORTRAN(p, gelsy)(const int*, const int*, const int*, T*, const int*, T*, const int*, \
                              int*, const T*, int*, T*, const int*, int*);                        \
  void KILN_FORTRAN(p, gelsd)(const int*, const int*, const int*, T*, const int*, T*, const int*, \
                              T*, const T*, int*, T*, const int*, int*, int*);                    \
  void KILN_FORTRAN(p, gelss)(const int*, const int*, const int*, T*, const int*, T*, const int*, \
                              T*, const T*, int*, T*, const int*, int*);                          \
  }
KILN_FORTRAN_REAL(float, s)
KILN_FORTRAN_REAL(double, d)

#define KILN_FORTRAN_COMPLEX(T, R, p)                                                              \
  extern "C" {                                                                                     \
  void KILN_FORTRAN(p, heevd)(const char*, const char*, const int*, T*, const int*, R*, T*,        \
                              const int*, R*, const int*, int*, const int*, int*, size_t, size_t); \
  void KILN_FORTRAN(p, gesdd)(const char*, const int*, const int*, T*, const int*, R*, T*,         \
                              const int*, T*, const int*, T*, const int*, R*, int*, int*, size_t); \
  void KILN_FORTRAN(p, gesvd)(const char*, const char*, const int*, const int*, T*, const int*,    \
                              R*, T*, const int*, T*, const int*, T*, const int*, R*, int*,        \
                              size_t, size_t);                                                     \
  void KILN_FORTRAN(p, geev)(const char*, const char*, const int*, T*, const int*, T*, T*,         \
                             const int*, T*, const int*, T*, const int*, R*, int*, size_t,         \
                             size_t);                                                              \
  void KILN_FORTRAN(p, gelsy)(const int*, const int*, const int*, T*, const int*, T*, const int*,  \
                              int*, const R*, int*, T*, const int*, R*, int*);                     \
  void KILN_FORTRAN(p, gelsd)(const int*, const int*, const int*, T*, const int*, T*, const int*,  \
                              R*, const R*, int*, T*, const int*, R*, int*, int*);                 \
  void KILN_FORTRAN(p, gelss)(const int*, const int*, const int*, T*, const int*, T*, const int*,  \
                              R*, const R*, int*, T*, const int*, R*, int*);                       \
  void KILN_FORTRAN(p, hetrf)(const char*, const int*, T*, const int*, int*, T*, const int*, int*, \
                              size_t);                                                             \
  void KILN_FORTRAN(p, hetrs)(const char*, const int*, const int*, const T*, const int*,           \
                              const int*, T*, const int*, int*, size_t);                           \
  }
KILN_FORTRAN_COMPLEX(c32, float, c)
KILN_FORTRAN_COMPLEX(c64, double, z)

#undef KILN_FORTRAN_SOLVERS
#undef KILN_FORTRAN_REFLECTORS
#undef KILN_FORTRAN_REAL
#undef KILN_FORTRAN_COMPLEX

}  // namespace kiln::lapack

#endif
