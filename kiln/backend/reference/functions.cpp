// The functions of functions.h.
#include "kiln/backend/function_math.h"
#include "kiln/backend/reference/elements.h"

namespace kiln {

using reference::map;
using reference::Ops;
using reference::Tensor;

HostHandle Ops::float_unary(Tensor x, const UnaryFunction& f) {
  return map<double>(x, x->dtype(), [&](double a) { return math::evaluate(f, a); });
}

HostHandle Ops::float_binary(Tensor x, Tensor y, const BinaryFunction& f) {
  if (f.type == BinaryFunction::Type::nextafter) {  // the one that depends on the dtype
    return visit_float("float_binary", x->dtype(), [&]<class T>() {
      return map<T>(x, y, x->dtype(), [](T a, T b) { return math::next_after(a, b); });
    });
  }
  return map<double>(x, y, x->dtype(), [&](double a, double b) { return math::evaluate(f, a, b); });
}

HostHandle Ops::float_binary_sum(Tensor x, Tensor y, const BinaryFunction& f, double divisor) {
  const Shape shape = broadcast_shapes("binary_sum", x->shape(), y->shape());
  const std::vector<double> a = reference::read<double>(x, shape);
  const std::vector<double> b = reference::read<double>(y, shape);
  double sum = 0.0;
  for (size_t i = 0; i < a.size(); ++i) sum += math::evaluate(f, a[i], b[i]);
  return reference::finish(x, Shape{}, x->dtype(), std::vector<double>{sum / divisor});
}

HostHandle Ops::float_ternary(Tensor x, Tensor y, Tensor z, const TernaryFunction& f) {
  const Shape shape =
      broadcast_shapes("ternary", broadcast_shapes("ternary", x->shape(), y->shape()), z->shape());
  const std::vector<double> a = reference::read<double>(x, shape);
  const std::vector<double> b = reference::read<double>(y, shape);
  const std::vector<double> c = reference::read<double>(z, shape);
  std::vector<double> results;
  results.reserve(a.size());
  for (size_t i = 0; i < a.size(); ++i) results.push_back(math::evaluate(f, a[i], b[i], c[i]));
  return reference::finish(x, shape, x->dtype(), results);
}

HostHandle Ops::int_binary(Tensor x, Tensor y, IntFunction f) {
  return visit_int("int_binary", x->dtype(), [&]<class T>() {
    return map<T>(x, y, x->dtype(), [f](T a, T b) { return math::evaluate(f, a, b); });
  });
}

}  // namespace kiln
