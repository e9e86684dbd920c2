#include "kiln/backend/host_functions.h"

#include "kiln/backend/function_math.h"
#include "kiln/core/convert.h"

namespace kiln::host {
namespace {

// fn(i-th element of each operand, as V) for the elements of operands of dtype T.
template <class V, class T, class Fn, class... X>
TensorData map(Fn&& fn, const TensorData& x, const X&... rest) {
  TensorData out(x.shape(), x.dtype());
  if (x.numel() == 0) return out;
  const std::span<T> to = out.as_mutable<T>();
  const std::span<const T> first = x.as<T>();
  for (size_t i = 0; i < to.size(); ++i) {
    to[i] = convert_element<T>(
        fn(convert_element<V>(first[i]), convert_element<V>(rest.template as<T>()[i])...));
  }
  return out;
}

}  // namespace

TensorData apply(const UnaryFunction& f, const TensorData& x) {
  return visit_float("float_unary", x.dtype(), [&]<class T>() {
    return map<double, T>([&](double a) { return math::evaluate(f, a); }, x);
  });
}

TensorData apply(const BinaryFunction& f, const TensorData& x, const TensorData& y) {
  return visit_float("float_binary", x.dtype(), [&]<class T>() {
    if (f.type == BinaryFunction::Type::nextafter) {
      return map<T, T>([](T a, T b) { return math::next_after(a, b); }, x, y);
    }
    return map<double, T>([&](double a, double b) { return math::evaluate(f, a, b); }, x, y);
  });
}

TensorData apply(const TernaryFunction& f, const TensorData& x, const TensorData& y,
                 const TensorData& z) {
  return visit_float("float_ternary", x.dtype(), [&]<class T>() {
    return map<double, T>([&](double a, double b, double c) { return math::evaluate(f, a, b, c); },
                          x, y, z);
  });
}

TensorData apply(IntFunction f, const TensorData& x, const TensorData& y) {
  return visit_int("int_binary", x.dtype(), [&]<class T>() {
    return map<T, T>([&](T a, T b) { return math::evaluate(f, a, b); }, x, y);
  });
}

}  // namespace kiln::host
