// Arithmetic and functions of complex numbers, over their interleaved parts.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <optional>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise.h"
#include "kiln/backend/cpu/elementwise/complex_arithmetic.h"
#include "kiln/backend/cpu/operand.h"
#include "kiln/core/parallel.h"

namespace kiln {
namespace cpu {
namespace {

// Numbers that a thread takes at once: simple arithmetic, and functions of many instructions.
constexpr int64_t kSimple = 16384;
constexpr int64_t kCostly = 1024;

template <class F>
void visit_parts(DType dtype, F f) {
  dtype == DType::f64 ? f.template operator()<double>() : f.template operator()<float>();
}

HostHandle expanded(const HostHandle& x, const Shape& shape) {
  return contiguous(x->shape() == shape ? x : host::expand(x, shape));
}

// f(a, b, out, n) over pieces of the parts of both operands.
template <class F>
HostHandle binary(const Arg<HostHandle>& x, const Arg<HostHandle>& y, int64_t grain, F f) {
  const Shape shape =
      x->shape() == y->shape() ? x->shape() : broadcast_shapes("complex", x->shape(), y->shape());
  const HostHandle a = expanded(x.get(), shape);
  const HostHandle b = expanded(y.get(), shape);
  HostHandle out = host::empty(shape, a->dtype(), a->device());
  visit_parts(a->dtype(), [&]<class T>() {
    const T* left = a->data_as<const T>();
    const T* right = b->data_as<const T>();
    T* to = out->data_as<T>();
    parallel_for(out->numel() / 2, grain, [&](int64_t begin, int64_t end) {
      f(left + 2 * begin, right + 2 * begin, to + 2 * begin, end - begin);
    });
  });
  return out;
}

// f(from, to, n) over pieces of the parts.
template <class F>
HostHandle pieces(const Arg<HostHandle>& z, F f) {
  const HostHandle a = contiguous(z.get());
  HostHandle out = host::empty(a->shape(), a->dtype(), a->device());
  visit_parts(a->dtype(), [&]<class T>() {
    const T* from = a->data_as<const T>();
    T* to = out->data_as<T>();
    parallel_for(out->numel() / 2, kSimple, [&](int64_t begin, int64_t end) {
      f(from + 2 * begin, to + 2 * begin, end - begin);
    });
  });
  return out;
}

// f(number) for each one.
template <class F>
HostHandle mapped(const Arg<HostHandle>& z, F f) {
  const HostHandle a = contiguous(z.get());
  HostHandle out = host::empty(a->shape(), a->dtype(), a->device());
  visit_parts(a->dtype(), [&]<class T>() {
    const auto* from = reinterpret_cast<const std::complex<T>*>(a->data_as<const T>());
    auto* to = reinterpret_cast<std::complex<T>*>(out->data_as<T>());
    parallel_for(out->numel() / 2, kCostly, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = f(from[i]);
    });
  });
  return out;
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
void pow_piece(const T* a, const T* b, T* out, int64_t n) {
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

// The powers that are products, where the exponent is one number.
std::optional<HostHandle> simple_pow(const Arg<HostHandle>& x, const HostHandle& y) {
  if (y->shape().rank() != 1) return std::nullopt;
  std::complex<double> exponent;
  const HostHandle number = contiguous(y);
  visit_parts(y->dtype(), [&]<class T>() {
    const T* parts = number->data_as<const T>();
    exponent = {parts[0], parts[1]};
  });
  const auto square = [&] { return Cpu::float_complex_mul(x.get(), x.get(), false); };
  const auto inverse = [](const HostHandle& z) {
    return Cpu::float_complex_unary(z, ComplexFunction::reciprocal);
  };
  if (exponent == 1.0) {
    return pieces(x,
                  []<class T>(const T* from, T* to, int64_t n) { std::copy_n(from, 2 * n, to); });
  }
  if (exponent == 2.0) return square();
  if (exponent == 3.0) return Cpu::float_complex_mul(square(), x.get(), false);
  if (exponent == -1.0) return inverse(x.get());
  if (exponent == -2.0) return inverse(square());
  return std::nullopt;
}

template <class T>
void rows_piece(const T* from, int64_t m, int64_t begin, int64_t end, T* to) {
  for (int64_t r = begin; r < end; ++r) {
    const T* row = from + 2 * r * m;
    T* pairs = to + 4 * r * m;
    T* turned = pairs + 2 * m;
    for (int64_t j = 0; j < m; ++j) {
      const T re = row[2 * j], im = row[2 * j + 1];
      pairs[2 * j] = re;
      pairs[2 * j + 1] = im;
      turned[2 * j] = -im;
      turned[2 * j + 1] = re;
    }
  }
}

}  // namespace
}  // namespace cpu

HostHandle CpuOps::float_complex_mul(Arg<HostHandle> x, Arg<HostHandle> y, bool conjugate) {
  return cpu::binary(x, y, cpu::kSimple, [&]<class T>(const T* a, const T* b, T* out, int64_t n) {
    const auto& kernels = cpu::complex_arithmetic<T>();
    (conjugate ? kernels.mul_conj : kernels.mul)(a, b, out, n);
  });
}

HostHandle CpuOps::float_complex_div(Arg<HostHandle> x, Arg<HostHandle> y) {
  return cpu::binary(x, y, cpu::kSimple, []<class T>(const T* a, const T* b, T* out, int64_t n) {
    cpu::complex_arithmetic<T>().div(a, b, out, n);
  });
}

HostHandle CpuOps::float_complex_pow(Arg<HostHandle> x, Arg<HostHandle> y) {
  if (std::optional<HostHandle> simple = cpu::simple_pow(x, y.get())) return *std::move(simple);
  return cpu::binary(x, y, cpu::kCostly, []<class T>(const T* a, const T* b, T* out, int64_t n) {
    cpu::pow_piece(a, b, out, n);
  });
}

HostHandle CpuOps::float_complex_abs(Arg<HostHandle> x) {
  const HostHandle z = cpu::contiguous(x.get());
  Shape shape = z->shape();
  shape.erase(shape.rank() - 1);
  HostHandle out = host::empty(shape, z->dtype(), z->device());
  cpu::visit_parts(z->dtype(), [&]<class T>() {
    const T* from = z->data_as<const T>();
    T* to = out->data_as<T>();
    parallel_for(out->numel(), cpu::kSimple, [&](int64_t begin, int64_t end) {
      cpu::abs_piece(from + 2 * begin, to + begin, end - begin);
    });
  });
  return out;
}

HostHandle CpuOps::float_complex_unary(Arg<HostHandle> z, ComplexFunction function) {
#define KILN_COMPLEX_MAP(name) \
  case ComplexFunction::name:  \
    return cpu::mapped(z, [](auto x) { return std::name(x); });
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
    case ComplexFunction::expm1:
      return cpu::mapped(z, []<class T>(std::complex<T> x) { return cpu::expm1_of(x); });
    case ComplexFunction::log1p:
      return cpu::mapped(z, []<class T>(std::complex<T> x) { return cpu::log1p_of(x); });
    case ComplexFunction::reciprocal:
      return cpu::pieces(z, []<class T>(const T* from, T* to, int64_t n) {
        cpu::complex_arithmetic<T>().reciprocal(from, to, n);
      });
    case ComplexFunction::conj:
    case ComplexFunction::count:
      break;
  }
#undef KILN_COMPLEX_MAP
  return cpu::pieces(z, []<class T>(const T* from, T* to, int64_t n) {
    cpu::complex_arithmetic<T>().conj(from, to, n);
  });
}

HostHandle CpuOps::float_complex_rows(Arg<HostHandle> y) {
  const HostHandle in = cpu::contiguous(y.get());
  Shape shape = in->shape();
  shape.erase(shape.rank() - 1);
  const int64_t m = shape.back();
  shape[shape.rank() - 2] *= 2;
  shape.back() *= 2;
  HostHandle out = host::empty(shape, in->dtype(), in->device());
  const int64_t rows = m == 0 ? 0 : in->numel() / (2 * m);
  cpu::visit_parts(in->dtype(), [&]<class T>() {
    const T* from = in->data_as<const T>();
    T* to = out->data_as<T>();
    parallel_for(rows, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, m)),
                 [&](int64_t begin, int64_t end) { cpu::rows_piece(from, m, begin, end, to); });
  });
  return out;
}

}  // namespace kiln
