// Complex numbers, with the functions of the standard library.
#include <algorithm>
#include <cmath>
#include <complex>

#include "kiln/backend/reference/elements.h"

namespace kiln {

using reference::make;
using reference::Ops;
using reference::read;
using reference::Tensor;

namespace {

using Number = std::complex<double>;

std::vector<Number> numbers(const std::vector<double>& parts) {
  std::vector<Number> out;
  for (size_t i = 0; i < parts.size(); i += 2) out.emplace_back(parts[i], parts[i + 1]);
  return out;
}

HostHandle made(const Tensor& like, const Shape& shape, const std::vector<Number>& values) {
  std::vector<double> parts;
  for (const Number& z : values) {
    parts.push_back(z.real());
    parts.push_back(z.imag());
  }
  return make(shape, like->dtype(), like->device(), parts);
}

template <class F>
HostHandle map(const Tensor& x, const Tensor& y, F f) {
  const Shape shape = broadcast_shapes("complex", x->shape(), y->shape());
  std::vector<Number> out = numbers(read<double>(x, shape));
  const std::vector<Number> right = numbers(read<double>(y, shape));
  for (size_t i = 0; i < out.size(); ++i) out[i] = f(out[i], right[i]);
  return made(x, shape, out);
}

// Divided by the larger part of the divisor first, so that no square overflows.
Number quotient(Number x, Number y) {
  const double largest = std::max(std::abs(y.real()), std::abs(y.imag()));
  if (largest == 0.0) return {x.real() / y.real(), x.imag() / y.real()};
  const double c = y.real() / largest;
  const double d = y.imag() / largest;
  const double size = y.real() * c + y.imag() * d;
  return {(x.real() * c + x.imag() * d) / size, (x.imag() * c - x.real() * d) / size};
}

Number power(Number x, Number y) {
  if (y == 0.0) return 1.0;
  if (x == 0.0 && y.real() > 0.0) return 0.0;
  return std::pow(x, y);
}

Number inverse(Number z) {
  if (std::isinf(z.real()) != std::isinf(z.imag())) return 0.0;
  return quotient(1.0, z);
}

Number expm1(Number z) {
  const double half = std::sin(0.5 * z.imag());
  return {std::expm1(z.real()) * std::cos(z.imag()) - 2.0 * half * half,
          std::exp(z.real()) * std::sin(z.imag())};
}

Number log1p(Number z) {
  const double x = z.real();
  const double y = z.imag();
  return {0.5 * std::log1p(x * (x + 2.0) + y * y), std::atan2(y, 1.0 + x)};
}

Number value(ComplexFunction function, Number z) {
  switch (function) {
    case ComplexFunction::conj:
      return std::conj(z);
    case ComplexFunction::reciprocal:
      return inverse(z);
    case ComplexFunction::exp:
      return std::exp(z);
    case ComplexFunction::expm1:
      return expm1(z);
    case ComplexFunction::log:
      return std::log(z);
    case ComplexFunction::log1p:
      return log1p(z);
    case ComplexFunction::sqrt:
      return std::sqrt(z);
    case ComplexFunction::sin:
      return std::sin(z);
    case ComplexFunction::cos:
      return std::cos(z);
    case ComplexFunction::tan:
      return std::tan(z);
    case ComplexFunction::sinh:
      return std::sinh(z);
    case ComplexFunction::cosh:
      return std::cosh(z);
    case ComplexFunction::tanh:
      return std::tanh(z);
    case ComplexFunction::asin:
      return std::asin(z);
    case ComplexFunction::acos:
      return std::acos(z);
    case ComplexFunction::atan:
      return std::atan(z);
    case ComplexFunction::asinh:
      return std::asinh(z);
    case ComplexFunction::acosh:
      return std::acosh(z);
    case ComplexFunction::atanh:
      return std::atanh(z);
    case ComplexFunction::count:
      break;
  }
  return z;
}

}  // namespace

HostHandle Ops::float_complex_mul(Tensor x, Tensor y, bool conjugate) {
  return map(x, y, [&](Number a, Number b) {
    const double im = conjugate ? -b.imag() : b.imag();
    return Number(a.real() * b.real() - a.imag() * im, a.real() * im + a.imag() * b.real());
  });
}

HostHandle Ops::float_complex_div(Tensor x, Tensor y) { return map(x, y, quotient); }

HostHandle Ops::float_complex_pow(Tensor x, Tensor y) { return map(x, y, power); }

HostHandle Ops::float_complex_abs(Tensor x) {
  std::vector<double> out;
  for (const Number& z : numbers(read<double>(x))) out.push_back(std::hypot(z.real(), z.imag()));
  Shape shape = x->shape();
  shape.erase(shape.rank() - 1);
  return make(shape, x->dtype(), x->device(), out);
}

HostHandle Ops::float_complex_unary(Tensor x, ComplexFunction function) {
  std::vector<Number> out = numbers(read<double>(x));
  for (Number& z : out) z = value(function, z);
  return made(x, x->shape(), out);
}

HostHandle Ops::float_complex_rows(Tensor y) {
  const std::vector<Number> z = numbers(read<double>(y));
  Shape shape = y->shape();
  shape.erase(shape.rank() - 1);
  const auto m = static_cast<size_t>(shape.back());
  std::vector<Number> out;
  for (size_t row = 0; row < z.size(); row += m) {
    for (size_t j = 0; j < m; ++j) out.push_back(z[row + j]);
    for (size_t j = 0; j < m; ++j) out.push_back(Number(0.0, 1.0) * z[row + j]);
  }
  shape[shape.rank() - 2] *= 2;
  shape.back() *= 2;
  return made(y, shape, out);
}

}  // namespace kiln
