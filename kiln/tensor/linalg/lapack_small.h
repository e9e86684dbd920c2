// LAPACK's factorizations for matrices of a few rows, for which a library's call costs more than
// the arithmetic. Internal to kiln/tensor/linalg; lapack.cpp calls them.
//
// The same algorithms and results as LAPACK's unblocked ones: column-major, without gaps (the
// leading dim is the number of rows), pivots counted from 1, info as returned. The size is a
// constant N where it is small, so that loops unroll, and N = 0 otherwise.
#pragma once

#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>
#include <utility>

// Clang unrolls loops of constant length by itself, and with its pragma those of unknown length
// too: three within each other by 8 kept it busy for minutes.
#if defined(__clang__)
#define KILN_UNROLL
#else
#define KILN_UNROLL _Pragma("GCC unroll 8")
#endif

namespace kiln::lapack::small {

inline constexpr int kMost = 16;
inline bool takes(int rows, int columns, int ld) {
  return rows > 0 && columns > 0 && rows <= kMost && columns <= kMost && ld == rows;
}

template <class T>
inline T modulus(T x) {
  return std::abs(x);
}
// What LAPACK compares complex pivots by.
template <class T>
inline T modulus(std::complex<T> x) {
  return std::abs(x.real()) + std::abs(x.imag());
}
template <class T>
inline T conjugate(T x) {
  return x;
}
template <class T>
inline std::complex<T> conjugate(std::complex<T> x) {
  return std::conj(x);
}
// Without the checks for infinities that the language asks of complex products.
template <class T>
inline T times(T a, T b) {
  return a * b;
}
template <class T>
inline std::complex<T> times(std::complex<T> a, std::complex<T> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// f(std::integral_constant<int, n>) for the sizes that are worth it and at most Most, else f of 0.
template <int Most = 16, class F>
decltype(auto) by_size(int n, F&& f) {
  if constexpr (Most >= 16) {
    if (n == 16) return f(std::integral_constant<int, 16>());
  }
  if constexpr (Most >= 8) {
    switch (n) {
      case 5:
        return f(std::integral_constant<int, 5>());
      case 6:
        return f(std::integral_constant<int, 6>());
      case 7:
        return f(std::integral_constant<int, 7>());
      case 8:
        return f(std::integral_constant<int, 8>());
    }
  }
  switch (n) {
    case 1:
      return f(std::integral_constant<int, 1>());
    case 2:
      return f(std::integral_constant<int, 2>());
    case 3:
      return f(std::integral_constant<int, 3>());
    case 4:
      return f(std::integral_constant<int, 4>());
    default:
      return f(std::integral_constant<int, 0>());
  }
}

// f(i) for i from begin to before end, unrolled where N, the size, is a constant. Loops of unknown
// length within each other would be hundreds of copies, and no faster.
template <int N, class F>
inline void each(int begin, int end, const F& f) {
  if constexpr (N > 0) {
    KILN_UNROLL
    for (int i = begin; i < end; ++i) f(i);
  } else {
    for (int i = begin; i < end; ++i) f(i);
  }
}

template <int N, class T>
inline int getrf_of(int size, T* a, int* pivots) {
  const int n = N > 0 ? N : size;
  if constexpr (N == 1) {
    pivots[0] = 1;
    return a[0] == T(0);
  }
  int info = 0;
  KILN_UNROLL
  for (int k = 0; k < n; ++k) {
    T* column = a + k * n;
    int best = k;
    auto most = modulus(column[k]);
    KILN_UNROLL
    for (int i = k + 1; i < n; ++i) {
      const auto here = modulus(column[i]);
      best = here > most ? i : best;
      most = here > most ? here : most;
    }
    pivots[k] = best + 1;
    if (column[best] == T(0)) {
      if (info == 0) info = k + 1;
      continue;
    }
    if (N > 0 || best != k) {  // a branch that is often wrong costs more than a few swaps
      KILN_UNROLL
      for (int j = 0; j < n; ++j) std::swap(a[k + j * n], a[best + j * n]);
    }
    // Complex numbers are divided slowly.
    if (!std::is_same_v<T, decltype(most)> && most >= std::numeric_limits<decltype(most)>::min()) {
      const T scale = T(1) / column[k];
      KILN_UNROLL
      for (int i = k + 1; i < n; ++i) column[i] = times(column[i], scale);
    } else {
      KILN_UNROLL
      for (int i = k + 1; i < n; ++i) column[i] /= column[k];
    }
    KILN_UNROLL
    for (int j = k + 1; j < n; ++j) {
      T* to = a + j * n;
      const T factor = to[k];
      KILN_UNROLL
      for (int i = k + 1; i < n; ++i) to[i] -= times(column[i], factor);
    }
  }
  return info;
}

// One right-hand side after another; each stays in the nearest cache.
template <int N, class T>
inline void getrs_of(bool adjoint, int size, int nrhs, const T* a, const int* pivots, T* b) {
  const int n = N > 0 ? N : size;
  T scale[N > 0 ? N : kMost];
  KILN_UNROLL
  for (int i = 0; i < n; ++i) scale[i] = T(1) / a[i + i * n];
  // Not unrolled: the code of all sizes and kinds would be 1.2 MB more, for a few percent.
  for (int r = 0; r < nrhs; ++r) {
    T* x = b + static_cast<long>(r) * n;
    if (!adjoint) {
      KILN_UNROLL
      for (int i = 0; i < n; ++i) std::swap(x[i], x[pivots[i] - 1]);
      each<N>(0, n, [&](int j) {
        KILN_UNROLL
        for (int i = j + 1; i < n; ++i) x[i] -= times(a[i + j * n], x[j]);
      });
      each<N>(0, n, [&](int left) {
        const int j = n - 1 - left;
        x[j] = times(x[j], scale[j]);
        KILN_UNROLL
        for (int i = 0; i < j; ++i) x[i] -= times(a[i + j * n], x[j]);
      });
    } else {
      each<N>(0, n, [&](int j) {
        T sum = x[j];
        KILN_UNROLL
        for (int i = 0; i < j; ++i) sum -= times(conjugate(a[i + j * n]), x[i]);
        x[j] = times(sum, conjugate(scale[j]));
      });
      each<N>(0, n, [&](int left) {
        const int j = n - 1 - left;
        T sum = x[j];
        KILN_UNROLL
        for (int i = j + 1; i < n; ++i) sum -= times(conjugate(a[i + j * n]), x[i]);
        x[j] = sum;
      });
      KILN_UNROLL
      for (int i = n - 1; i >= 0; --i) std::swap(x[i], x[pivots[i] - 1]);
    }
  }
}

// U^-1, then X with X L = U^-1, then the swaps as those of columns.
template <int N, class T>
inline int getri_of(int size, T* a, const int* pivots) {
  const int n = N > 0 ? N : size;
  KILN_UNROLL
  for (int j = 0; j < n; ++j) {
    if (a[j + j * n] == T(0)) return j + 1;
  }
  each<N>(0, n, [&](int j) {
    T* column = a + j * n;
    column[j] = T(1) / column[j];
    each<N>(0, j, [&](int k) {
      const T factor = column[k];
      KILN_UNROLL
      for (int i = 0; i < k; ++i) column[i] += times(a[i + k * n], factor);
      column[k] = times(a[k + k * n], factor);
    });
    KILN_UNROLL
    for (int i = 0; i < j; ++i) column[i] = times(column[i], -column[j]);
  });
  T work[N > 0 ? N : kMost];
  each<N>(0, n - 1, [&](int left) {
    const int j = n - 2 - left;
    T* column = a + j * n;
    KILN_UNROLL
    for (int i = j + 1; i < n; ++i) {
      work[i] = column[i];
      column[i] = T(0);
    }
    each<N>(j + 1, n, [&](int k) {
      KILN_UNROLL
      for (int i = 0; i < n; ++i) column[i] -= times(a[i + k * n], work[k]);
    });
  });
  KILN_UNROLL
  for (int j = n - 2; j >= 0; --j) {
    const int other = pivots[j] - 1;
    if (other == j) continue;
    KILN_UNROLL
    for (int i = 0; i < n; ++i) std::swap(a[i + j * n], a[i + other * n]);
  }
  return 0;
}

// The lower factor, with zeros above it.
template <int N, class T>
inline int potrf_of(int size, T* a) {
  const int n = N > 0 ? N : size;
  for (int j = 1; j < n; ++j) {
    KILN_UNROLL
    for (int i = 0; i < j; ++i) a[i + j * n] = T(0);
  }
  KILN_UNROLL
  for (int j = 0; j < n; ++j) {
    T* column = a + j * n;
    const auto pivot = std::real(column[j]);
    if (!(pivot > 0)) {
      column[j] = T(pivot);
      return j + 1;
    }
    const auto root = std::sqrt(pivot);
    column[j] = T(root);
    const auto scale = 1 / root;
    KILN_UNROLL
    for (int i = j + 1; i < n; ++i) column[i] *= scale;
    KILN_UNROLL
    for (int k = j + 1; k < n; ++k) {
      T* to = a + k * n;
      const T factor = conjugate(column[k]);
      KILN_UNROLL
      for (int i = k; i < n; ++i) to[i] -= times(column[i], factor);
    }
  }
  return 0;
}

// ---- Householder's reflectors

// Whether squares of the elements stay in range.
template <class T>
bool squares_fit(int count, const T* a) {
  if constexpr (sizeof(std::real(*a)) < sizeof(double)) return true;
  double most = 0;
  for (int i = 0; i < count; ++i) {
    const double here = static_cast<double>(modulus(a[i]));
    most = here > most || here != here ? here : most;
  }
  return most == 0 || (most > 1e-140 && most < 1e140);
}

// The reflector H = I - tau v v^H, v = (1, x), with H^H (alpha, x) = (beta, 0); beta is left in
// alpha and v's tail in x.
template <class T>
inline T reflector_of(int count, T* alpha, T* x) {
  double sum = 0;
  for (int i = 0; i < count; ++i) {
    const double re = std::real(x[i]);
    const double im = std::imag(x[i]);
    sum += re * re + im * im;
  }
  const double re = std::real(*alpha);
  const double im = std::imag(*alpha);
  if (sum == 0 && im == 0) return T(0);
  const double length = std::sqrt(re * re + im * im + sum);
  const double beta = re < 0 ? length : -length;
  const double away = re - beta;  // no cancellation: the signs differ
  using R = decltype(std::real(*alpha));
  T tau;
  if constexpr (std::is_same_v<T, R>) {
    tau = static_cast<T>((beta - re) / beta);
    for (int i = 0; i < count; ++i) x[i] = static_cast<T>(x[i] / away);
  } else {
    tau = T(static_cast<R>((beta - re) / beta), static_cast<R>(-im / beta));
    const double square = away * away + im * im;
    const double up = away / square;
    const double turn = -im / square;
    for (int i = 0; i < count; ++i) {
      const double a = x[i].real();
      const double b = x[i].imag();
      x[i] = T(static_cast<R>(a * up - b * turn), static_cast<R>(a * turn + b * up));
    }
  }
  *alpha = T(static_cast<R>(beta));
  return tau;
}

// c <- (I - tau v v^H) c, v = (1, x).
template <class T>
inline void reflect(int count, const T* x, T tau, T* c) {
  T sum = c[0];
  for (int i = 0; i < count; ++i) sum += times(conjugate(x[i]), c[i + 1]);
  sum = times(tau, sum);
  c[0] -= sum;
  for (int i = 0; i < count; ++i) c[i + 1] -= times(x[i], sum);
}

template <int M, class T>
inline void geqrf_of(int rows, int n, T* a, T* tau) {
  const int m = M > 0 ? M : rows;
  const int k = m < n ? m : n;
  for (int j = 0; j < k; ++j) {
    T* column = a + j * m + j;
    tau[j] = reflector_of(m - j - 1, column, column + 1);
    if (tau[j] == T(0)) continue;
    for (int l = j + 1; l < n; ++l) {
      reflect(m - j - 1, column + 1, conjugate(tau[j]), a + l * m + j);
    }
  }
}

template <int M, class T>
inline void orgqr_of(int rows, int n, int k, T* a, const T* tau) {
  const int m = M > 0 ? M : rows;
  for (int j = k; j < n; ++j) {
    for (int i = 0; i < m; ++i) a[i + j * m] = T(i == j ? 1 : 0);
  }
  for (int j = k - 1; j >= 0; --j) {
    T* column = a + j * m;
    for (int l = j + 1; l < n; ++l) reflect(m - j - 1, column + j + 1, tau[j], a + l * m + j);
    for (int i = j + 1; i < m; ++i) column[i] = -times(tau[j], column[i]);
    column[j] = T(1) - tau[j];
    for (int i = 0; i < j; ++i) column[i] = T(0);
  }
}

// False, and nothing done, where squares would overflow.
template <class T>
bool geqrf(int m, int n, T* a, T* tau) {
  if (!squares_fit(m * n, a)) return false;
  by_size(m, [&]<int M>(std::integral_constant<int, M>) { geqrf_of<M>(m, n, a, tau); });
  return true;
}
template <class T>
void orgqr(int m, int n, int k, T* a, const T* tau) {
  by_size(m, [&]<int M>(std::integral_constant<int, M>) { orgqr_of<M>(m, n, k, a, tau); });
}

// ---- For any size

template <class T>
int getrf(int n, T* a, int* pivots) {
  return by_size(n,
                 [&]<int N>(std::integral_constant<int, N>) { return getrf_of<N>(n, a, pivots); });
}
template <class T>
void getrs(bool adjoint, int n, int nrhs, const T* a, const int* pivots, T* b) {
  constexpr int kMostConstant = sizeof(T) > sizeof(std::real(*a)) ? 8 : 16;
  by_size<kMostConstant>(n, [&]<int N>(std::integral_constant<int, N>) {
    getrs_of<N>(adjoint, n, nrhs, a, pivots, b);
  });
}
template <class T>
int getri(int n, T* a, const int* pivots) {
  // Complex inverses of more rows are no faster for a constant size, and 180 kB of code.
  constexpr int kMostConstant = sizeof(T) > sizeof(std::real(*a)) ? 4 : 16;
  return by_size<kMostConstant>(
      n, [&]<int N>(std::integral_constant<int, N>) { return getri_of<N>(n, a, pivots); });
}
template <class T>
int potrf(int n, T* a) {
  return by_size(n, [&]<int N>(std::integral_constant<int, N>) { return potrf_of<N>(n, a); });
}

}  // namespace kiln::lapack::small

#undef KILN_UNROLL
