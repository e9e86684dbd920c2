#include "kiln/tensor/complex/complex_kernels.h"

#include <cmath>
#include <optional>

#include "kiln/backend/cpu/elementwise/complex_arithmetic.h"
#include "kiln/core/parallel.h"
#include "kiln/tensor/complex/complex_impl.h"
#include "kiln/tensor/interop.h"

namespace kiln::complex_kernels {

using namespace detail;

namespace {

// Numbers that a thread takes at once: simple arithmetic, and functions of many instructions.
constexpr int64_t kSimple = 16384;
constexpr int64_t kCostly = 1024;

// The values in host memory, row-major, in `shape`.
Tensor on_host(const Tensor& x, const Shape& shape) {
  const Tensor y = x.detach().to(Device(kCpu));
  return (y.shape() == shape ? y : y.expand(shape)).contiguous();
}

template <class F>
auto visit_parts(DType dtype, F&& f) {
  if (dtype == c64) {
    f.template operator()<float>();
  } else {
    f.template operator()<double>();
  }
}

template <class T>
T* parts(const Tensor& x) {
  return static_cast<T*>(interop::data(x));
}

// f(a, b, out) over pieces of the interleaved parts of both operands.
template <class F>
Tensor binary(const char* op, const Tensor& x, const Tensor& y, int64_t grain, F f) {
  const Shape shape =
      x.shape() == y.shape() ? x.shape() : broadcast_shapes(op, x.shape(), y.shape());
  const Tensor a = on_host(x, shape);
  const Tensor b = on_host(y, shape);
  const Tensor out = empty(shape, {x.dtype()});
  visit_parts(x.dtype(), [&]<class T>() {
    const T* left = parts<T>(a);
    const T* right = parts<T>(b);
    T* to = parts<T>(out);
    parallel_for(shape.numel(), grain, [&](int64_t begin, int64_t end) {
      f(left + 2 * begin, right + 2 * begin, to + 2 * begin, end - begin);
    });
  });
  return out.to(x.device());
}

// f(from, to, n) over pieces of the interleaved parts.
template <class F>
Tensor pieces(const Tensor& z, F f) {
  const Tensor a = on_host(z, z.shape());
  const Tensor out = empty(z.shape(), {z.dtype()});
  visit_parts(z.dtype(), [&]<class T>() {
    const T* from = parts<T>(a);
    T* to = parts<T>(out);
    parallel_for(z.numel(), kSimple, [&](int64_t begin, int64_t end) {
      f(from + 2 * begin, to + 2 * begin, end - begin);
    });
  });
  return out.to(z.device());
}

template <class F>
Tensor mapped(const Tensor& z, int64_t grain, F f) {
  const Tensor a = on_host(z, z.shape());
  const Tensor out = empty(z.shape(), {z.dtype()});
  visit_parts(z.dtype(), [&]<class T>() {
    const auto* from = reinterpret_cast<const std::complex<T>*>(parts<T>(a));
    auto* to = reinterpret_cast<std::complex<T>*>(parts<T>(out));
    parallel_for(z.numel(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = f(from[i]);
    });
  });
  return out.to(z.device());
}

template <class T>
void abs_piece(const T* a, T* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<T, float>) {  // the squares fit a double
      const double re = a[2 * i];
      const double im = a[2 * i + 1];
      const float length = static_cast<float>(std::sqrt(re * re + im * im));
      const bool infinite = std::isinf(a[2 * i]) || std::isinf(a[2 * i + 1]);
      out[i] = infinite ? std::numeric_limits<float>::infinity() : length;
    } else {
      out[i] = std::hypot(a[2 * i], a[2 * i + 1]);
    }
  }
}

template <class T>
std::complex<T> expm1_of(std::complex<T> z) {
  const T half = std::sin(z.imag() / 2);
  const T grown = std::expm1(z.real());
  return {grown * std::cos(z.imag()) - 2 * half * half, std::exp(z.real()) * std::sin(z.imag())};
}

template <class T>
std::complex<T> log1p_of(std::complex<T> z) {
  const T x = z.real();
  const T y = z.imag();
  if (std::abs(x) > T(1e10) || std::abs(y) > T(1e10)) return std::log(T(1) + z);
  return {T(0.5) * std::log1p(x * (x + 2) + y * y), std::atan2(y, 1 + x)};
}

}  // namespace

Tensor mul(const Tensor& x, const Tensor& y, bool conjugate) {
  return binary("mul", x, y, kSimple, [&]<class T>(const T* a, const T* b, T* out, int64_t n) {
    const cpu::ComplexArithmetic<T>& kernels = cpu::complex_arithmetic<T>();
    (conjugate ? kernels.mul_conj : kernels.mul)(a, b, out, n);
  });
}

Tensor div(const Tensor& x, const Tensor& y) {
  return binary("div", x, y, kSimple, []<class T>(const T* a, const T* b, T* out, int64_t n) {
    cpu::complex_arithmetic<T>().div(a, b, out, n);
  });
}

Tensor conj(const Tensor& z) {
  return pieces(z, []<class T>(const T* from, T* to, int64_t n) {
    cpu::complex_arithmetic<T>().conj(from, to, n);
  });
}

namespace {

// The powers that are products, where the exponent is one number.
std::optional<Tensor> simple_pow(const Tensor& x, const Tensor& y) {
  if (y.dim() != 0 || y.dtype() != x.dtype()) return std::nullopt;
  const std::complex<double> exponent = complex_item(y);
  if (exponent == 1.0) return x.detach().clone();
  if (exponent == 2.0) return mul(x, x, false);
  if (exponent == 3.0) return mul(mul(x, x, false), x, false);
  if (exponent == -1.0) return map(Map::reciprocal, x);
  if (exponent == -2.0) return map(Map::reciprocal, mul(x, x, false));
  return std::nullopt;
}

}  // namespace

Tensor pow(const Tensor& x, const Tensor& y) {
  if (std::optional<Tensor> simple = simple_pow(x, y)) return *std::move(simple);
  return binary("pow", x, y, kCostly, []<class T>(const T* a, const T* b, T* out, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      const std::complex<T> base(a[2 * i], a[2 * i + 1]);
      const std::complex<T> exponent(b[2 * i], b[2 * i + 1]);
      std::complex<T> result;
      if (exponent == std::complex<T>(0)) {
        result = 1;
      } else if (base != std::complex<T>(0) || !(exponent.real() > 0)) {
        result = std::pow(base, exponent);
      }
      out[2 * i] = result.real();
      out[2 * i + 1] = result.imag();
    }
  });
}

Tensor abs(const Tensor& z) {
  const Tensor a = on_host(z, z.shape());
  const Tensor out = empty(z.shape(), {real_dtype(z.dtype())});
  visit_parts(z.dtype(), [&]<class T>() {
    const T* from = parts<T>(a);
    T* to = parts<T>(out);
    parallel_for(z.numel(), kSimple, [&](int64_t begin, int64_t end) {
      abs_piece(from + 2 * begin, to + begin, end - begin);
    });
  });
  return out.to(z.device());
}

Tensor map(Map function, const Tensor& z) {
#define KILN_COMPLEX_MAP(name) \
  case Map::name:              \
    return mapped(z, kCostly, [](auto x) { return std::name(x); });
  switch (function) {
    KILN_COMPLEX_MAP(exp)
    KILN_COMPLEX_MAP(log)
    KILN_COMPLEX_MAP(sqrt)
    KILN_COMPLEX_MAP(sin)
    KILN_COMPLEX_MAP(cos)
    KILN_COMPLEX_MAP(tan)
    KILN_COMPLEX_MAP(sinh)
    KILN_COMPLEX_MAP(cosh)
    KILN_COMPLEX_MAP(tanh)
    KILN_COMPLEX_MAP(asin)
    KILN_COMPLEX_MAP(acos)
    KILN_COMPLEX_MAP(atan)
    KILN_COMPLEX_MAP(asinh)
    KILN_COMPLEX_MAP(acosh)
    KILN_COMPLEX_MAP(atanh)
    case Map::reciprocal:
      return pieces(z, []<class T>(const T* from, T* to, int64_t n) {
        cpu::complex_arithmetic<T>().reciprocal(from, to, n);
      });
    case Map::expm1:
      return mapped(z, kCostly, []<class T>(std::complex<T> x) { return expm1_of(x); });
    case Map::log1p:
      return mapped(z, kCostly, []<class T>(std::complex<T> x) { return log1p_of(x); });
  }
#undef KILN_COMPLEX_MAP
  return z;
}

}  // namespace kiln::complex_kernels
