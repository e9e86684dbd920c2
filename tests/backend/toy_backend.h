// A third backend, written outside Kiln's folders: one struct with the required ops, and one line
// that registers it.
//
// Its tensors are of its own making (no Handle, no TensorBase, a type for each kind), so that they
// travel through Dispatch in boxes. It comes twice: as it is, and telling where its views lie.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#include "kiln/backend/defaults.h"
#include "kiln/backend/dispatch/register.h"
#include "kiln/core/convert.h"

namespace kiln::test::toy {

// A strided window on shared values: doubles for floats, int64 for ints, bytes for bools.
template <class Value>
struct ToyArray {
  using V = Value;
  std::shared_ptr<std::vector<V>> memory;
  Shape shape;
  Strides strides;
  int64_t offset = 0;
  DType dtype = f32;
  Device device;
  std::shared_ptr<uint32_t> writes;

  // Calls fn(element, index) in row-major order.
  template <class Fn>
  void each(Fn&& fn) const {
    Shape index = Shape::filled(shape.rank(), 0);
    for (int64_t n = shape.numel(); n > 0; --n) {
      int64_t at = offset;
      for (int d = 0; d < index.rank(); ++d) at += index[d] * strides[d];
      fn((*memory)[static_cast<size_t>(at)], index);
      for (int d = index.rank() - 1; d >= 0; --d) {
        if (++index[d] < shape[d]) break;
        index[d] = 0;
      }
    }
  }
  V& at(const Shape& index) const {
    int64_t place = offset;
    for (int d = 0; d < index.rank(); ++d) place += index[d] * strides[d];
    return (*memory)[static_cast<size_t>(place)];
  }
};
using ToyFloat = ToyArray<double>;
using ToyInt = ToyArray<int64_t>;
using ToyBool = ToyArray<uint8_t>;
struct ToyQuantized {
  ToyInt values;
  ToyFloat scales;
  QuantScheme scheme;
  Shape shape;
};

template <class V>
V rounded(V value, DType dtype) {
  return visit_dtype("toy", dtype, [&]<class T>() {
    if constexpr (std::is_same_v<V, uint8_t>) return static_cast<V>(value != 0);
    return convert_element<V>(convert_element<T>(value));
  });
}

template <class A>
A make(const Shape& shape, DType dtype, Device device) {
  return {std::make_shared<std::vector<typename A::V>>(static_cast<size_t>(shape.numel())),
          shape,
          contiguous_strides(shape),
          0,
          dtype,
          device,
          std::make_shared<uint32_t>(0)};
}

template <class A>
A view(A x, const Shape& shape, const Strides& strides, int64_t offset) {
  x.shape = shape;
  x.strides = strides;
  x.offset = offset;
  return x;
}

template <class A>
A expand(const A& x, const Shape& shape) {
  Strides strides = Shape::filled(shape.rank(), 0);
  const int lead = shape.rank() - x.shape.rank();
  for (int d = lead; d < shape.rank(); ++d) {
    strides[d] = x.shape[d - lead] == 1 ? 0 : x.strides[d - lead];
  }
  return view(x, shape, strides, x.offset);
}

// out[i] = fn(x[i], ys[i]...), broadcast.
template <class Out, class Fn, class X, class... Y>
Out map(DType dtype, Fn&& fn, const X& x, const Y&... ys) {
  Shape shape = x.shape;
  ((shape = broadcast_shapes("toy", shape, ys.shape)), ...);
  const Out out = make<Out>(shape, dtype, x.device);
  const X wide = expand(x, shape);
  const auto all = std::make_tuple(expand(ys, shape)...);
  out.each([&](auto& element, const Shape& i) {
    std::apply(
        [&](const auto&... y) {
          element = rounded(static_cast<typename Out::V>(fn(wide.at(i), y.at(i)...)), dtype);
        },
        all);
  });
  return out;
}

template <class A>
A from_data(const TensorData& data, Device device) {
  const A out = make<A>(data.shape(), data.dtype(), device);
  visit_dtype("toy", data.dtype(), [&]<class T>() {
    const T* from = data.as<T>().data();
    out.each(
        [&](auto& element, const Shape&) { element = convert_element<typename A::V>(*from++); });
  });
  return out;
}

template <class A>
TensorData into_data(const A& x) {
  TensorData data(x.shape, x.dtype);
  visit_dtype("toy", x.dtype, [&]<class T>() {
    T* to = data.as_mutable<T>().data();
    x.each([&](auto& element, const Shape&) { *to++ = convert_element<T>(element); });
  });
  return data;
}

template <class A>
A copy(const A& x) {
  return map<A>(
      x.dtype, [](auto v) { return v; }, x);
}

// The strides of x for a shape that has more or fewer dims of size 1; false for other shapes.
template <class A>
bool only_ones_differ(const A& x, const Shape& shape, Strides* strides) {
  *strides = Shape::filled(shape.rank(), 0);
  int from = 0;
  for (int to = 0; to < shape.rank(); ++to) {
    if (shape[to] == 1) continue;
    while (from < x.shape.rank() && x.shape[from] == 1) ++from;
    if (from == x.shape.rank() || x.shape[from] != shape[to]) return false;
    (*strides)[to] = x.strides[from++];
  }
  while (from < x.shape.rank() && x.shape[from] == 1) ++from;
  return from == x.shape.rank();
}

template <class A>
A reshape(const A& x, const Shape& shape) {
  Strides strides;
  if (only_ones_differ(x, shape, &strides) && !is_contiguous(x.shape, x.strides)) {
    return view(x, shape, strides, x.offset);
  }
  const A row_major = is_contiguous(x.shape, x.strides) ? x : copy(x);
  return view(row_major, shape, contiguous_strides(shape), row_major.offset);
}

template <class A>
A permute(const A& x, const Dims& dims) {
  A out = x;
  for (int d = 0; d < dims.rank(); ++d) {
    out.shape[d] = x.shape[static_cast<int>(dims[d])];
    out.strides[d] = x.strides[static_cast<int>(dims[d])];
  }
  return out;
}

template <class A>
A slice(const A& x, int dim, Range range) {
  A out = x;
  out.shape[dim] = range.length();
  out.strides[dim] *= range.step;
  out.offset += range.start * x.strides[dim];
  return out;
}

template <class A>
A flip(const A& x, const Dims& dims) {
  const A out = make<A>(x.shape, x.dtype, x.device);
  out.each([&](auto& element, Shape i) {
    for (int64_t d : dims)
      i[static_cast<int>(d)] = x.shape[static_cast<int>(d)] - 1 - i[static_cast<int>(d)];
    element = x.at(i);
  });
  return out;
}

template <class A>
void assign(const A& x, const A& value) {
  const A snapshot = copy(expand(value, x.shape));
  x.each([&](auto& element, const Shape& i) { element = snapshot.at(i); });
  ++*x.writes;
}

inline int64_t checked(int64_t index, int64_t size) {
  if (index < 0 || index >= size) throw IndexError("toy: index out of range");
  return index;
}

template <class A>
A gather(const A& x, int dim, const ToyInt& index) {
  const A out = make<A>(index.shape, x.dtype, x.device);
  out.each([&](auto& element, Shape i) {
    i[dim] = checked(index.at(i), x.shape[dim]);
    element = x.at(i);
  });
  return out;
}

template <class A, class Fn>
A scatter(const A& x, int dim, const ToyInt& index, const A& src, Fn&& fn) {
  const A out = copy(x);
  index.each([&](int64_t target, const Shape& from) {
    Shape to = from;
    to[dim] = checked(target, x.shape[dim]);
    out.at(to) = rounded(fn(out.at(to), src.at(from)), x.dtype);
  });
  return out;
}

// A 1-d index in the form that gather and scatter take, with the other dims of `shape`.
inline ToyInt spread(const ToyInt& index, int dim, Shape shape) {
  Shape along = Shape::filled(shape.rank(), 1);
  along[dim] = index.shape[0];
  shape[dim] = index.shape[0];
  return expand(reshape(index, along), shape);
}

// out = fn(accumulator, element) over `dims`, from `start`.
template <class Out, class A, class Fn>
Out fold(const A& x, const Dims& dims, bool keepdim, typename Out::V start, Fn&& fn) {
  const Out kept = make<Out>(reduced_shape(x.shape, dims, true), x.dtype, x.device);
  std::ranges::fill(*kept.memory, start);
  x.each([&](auto element, Shape i) {
    for (int64_t d : dims) i[static_cast<int>(d)] = 0;
    kept.at(i) = static_cast<typename Out::V>(fn(kept.at(i), element));
  });
  for (auto& element : *kept.memory) element = rounded(element, x.dtype);
  return reshape(kept, reduced_shape(x.shape, dims, keepdim));
}

// The index along `dim` of the first element that no other beats; NaN beats all.
template <class A, class Beats>
ToyInt arg_best(const A& x, int dim, bool keepdim, Beats&& beats) {
  const ToyInt kept = make<ToyInt>(reduced_shape(x.shape, {dim}, true), i64, x.device);
  x.each([&](auto element, const Shape& i) {
    Shape to = i;
    to[dim] = 0;
    Shape best = i;
    best[dim] = kept.at(to);
    const auto champion = x.at(best);
    if (champion == champion && (beats(element, champion) || element != element)) {
      kept.at(to) = i[dim];
    }
  });
  return reshape(kept, reduced_shape(x.shape, {dim}, keepdim));
}

template <class A, class Beats>
A best(const A& x, const Dims& dims, bool keepdim, Beats&& beats) {
  if (dims.empty()) return copy(x);
  Dims order;  // the kept dims, then the others as one
  Shape shape;
  for (int d = 0; d < x.shape.rank(); ++d) {
    if (!dims.contains(d)) order.push_back(d);
  }
  for (int64_t d : order) shape.push_back(x.shape[static_cast<int>(d)]);
  for (int64_t d : dims) order.push_back(d);
  int64_t length = 1;
  for (int64_t d : dims) length *= x.shape[static_cast<int>(d)];
  shape.push_back(length);
  const A rows = reshape(permute(x, order), shape);
  const A out = gather(rows, shape.rank() - 1, arg_best(rows, shape.rank() - 1, true, beats));
  return reshape(out, reduced_shape(x.shape, dims, keepdim));
}

template <class A, class Fn>
A cumulate(const A& x, int dim, Fn&& fn) {
  // In double (or int64) to the end, rounded once.
  A out = copy(x);
  out.dtype = std::is_same_v<typename A::V, double> ? f64 : i64;
  out.each([&](auto& element, const Shape& i) {
    if (i[dim] == 0) return;
    Shape before = i;
    before[dim] = i[dim] - 1;
    element = fn(out.at(before), element);
  });
  out.dtype = x.dtype;
  return copy(out);
}

template <class A, class Fn>
A matmul(const A& a, const A& b, Fn&& multiply_add) {
  const int n = a.shape.rank();
  const int m = b.shape.rank();
  Shape batch_a = a.shape;
  Shape batch_b = b.shape;
  for (Shape* batch : {&batch_a, &batch_b}) {
    batch->erase(batch->rank() - 1);
    batch->erase(batch->rank() - 1);
  }
  Shape shape = broadcast_shapes("matmul", batch_a, batch_b);
  Shape shape_a = shape;
  Shape shape_b = shape;
  for (int64_t size : {a.shape[n - 2], b.shape[m - 1]}) shape.push_back(size);
  for (int64_t size : {a.shape[n - 2], a.shape[n - 1]}) shape_a.push_back(size);
  for (int64_t size : {b.shape[m - 2], b.shape[m - 1]}) shape_b.push_back(size);
  const A lhs = expand(a, shape_a);
  const A rhs = expand(b, shape_b);
  const A out = make<A>(shape, a.dtype, a.device);
  const int last = shape.rank() - 1;
  out.each([&](auto& element, const Shape& i) {
    typename A::V sum = 0;
    for (int64_t k = 0; k < a.shape[n - 1]; ++k) {
      Shape left = i;
      Shape right = i;
      left[last] = right[last - 1] = k;
      sum = multiply_add(sum, lhs.at(left), rhs.at(right));
    }
    element = rounded(sum, a.dtype);
  });
  return out;
}

inline uint64_t u(int64_t x) { return static_cast<uint64_t>(x); }
inline int64_t wrapped(uint64_t x) { return static_cast<int64_t>(x); }
inline int64_t divisor(int64_t x) {
  if (x == 0) throw ValueError("toy: division by zero");
  return x;
}
template <class V>
V modulo(V a, V b) {
  V r;
  if constexpr (std::is_same_v<V, double>) {
    r = std::fmod(a, b);
  } else {
    r = divisor(b) == -1 ? 0 : a % b;
  }
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

struct Toy : BackendDefaults<Toy> {
  using Device = kiln::Device;
  using FloatElem = double;
  using IntElem = int64_t;
  using BoolElem = bool;
  using FloatTensorPrimitive = ToyFloat;
  using IntTensorPrimitive = ToyInt;
  using BoolTensorPrimitive = ToyBool;
  using QuantizedTensorPrimitive = ToyQuantized;
  using F = const ToyFloat&;
  using I = const ToyInt&;
  using B = const ToyBool&;
  using Q = const ToyQuantized&;

  static std::string name(Device) { return "toy"; }
  static void seed(Device, uint64_t) {}
  static void sync(Device) {}
  template <class A>
  static Shape shape(const ToyArray<A>& x) {
    return x.shape;
  }
  template <class A>
  static DType dtype(const ToyArray<A>& x) {
    return x.dtype;
  }
  template <class A>
  static Device device(const ToyArray<A>& x) {
    return x.device;
  }
  static uint32_t version(F x) { return *x.writes; }
  static Shape shape(Q x) { return x.values.shape; }
  static DType dtype(Q) { return DType::q8; }
  static Device device(Q x) { return x.values.device; }

// What the three kinds have alike.
#define TOY_KIND(kind, X)                                                                       \
  static X kind##_from_data(const TensorData& d, Device on) { return from_data<X>(d, on); }     \
  static TensorData kind##_into_data(const X& x) { return into_data(x); }                       \
  static X kind##_reshape(const X& x, const Shape& s) { return toy::reshape(x, s); }            \
  static X kind##_permute(const X& x, const Dims& dims) { return toy::permute(x, dims); }       \
  static X kind##_expand(const X& x, const Shape& s) { return toy::expand(x, s); }              \
  static X kind##_slice(const X& x, int dim, Range range) { return toy::slice(x, dim, range); } \
  static X kind##_flip(const X& x, const Dims& dims) { return toy::flip(x, dims); }             \
  static void kind##_assign(const X& x, const X& value) { toy::assign(x, value); }              \
  static X kind##_gather(const X& x, int dim, I index) { return toy::gather(x, dim, index); }   \
  static X kind##_scatter(const X& x, int dim, I index, const X& src) {                         \
    return toy::scatter(x, dim, index, src, [](auto, auto b) { return b; });                    \
  }                                                                                             \
  static X kind##_index_select(const X& x, int dim, I index) {                                  \
    return toy::gather(x, dim, spread(index, dim, x.shape));                                    \
  }                                                                                             \
  static X kind##_mask_where(const X& x, B mask, const X& value) {                              \
    return map<X>(                                                                              \
        x.dtype, [](auto a, auto m, auto b) { return m ? b : a; }, x, mask, value);             \
  }
  TOY_KIND(float, ToyFloat)
  TOY_KIND(int, ToyInt)
  TOY_KIND(bool, ToyBool)

#define TOY_NUMBER(kind, X, sum, product, product_sum)                                       \
  static X kind##_empty(const Shape& s, DType t, Device on) { return make<X>(s, t, on); }    \
  static X kind##_cast(const X& x, DType t) {                                                \
    return map<X>(                                                                           \
        t, [](auto v) { return v; }, x);                                                     \
  }                                                                                          \
  static X kind##_scatter_add(const X& x, int dim, I index, const X& src) {                  \
    return toy::scatter(x, dim, index, src, [](auto a, auto b) { return sum; });             \
  }                                                                                          \
  static X kind##_index_add(const X& x, int dim, I index, const X& src) {                    \
    return toy::scatter(x, dim, spread(index, dim, src.shape), src,                          \
                        [](auto a, auto b) { return sum; });                                 \
  }                                                                                          \
  static X kind##_sum(const X& x, const Dims& dims, bool keep) {                             \
    const DType wide = is_floating_point(x.dtype) ? x.dtype : i64;                           \
    return fold<X>(kind##_cast(x, wide), dims, keep, 0, [](auto a, auto b) { return sum; }); \
  }                                                                                          \
  static X kind##_prod(const X& x, const Dims& dims, bool keep) {                            \
    return fold<X>(x, dims, keep, 1, [](auto a, auto b) { return product; });                \
  }                                                                                          \
  static X kind##_amax(const X& x, const Dims& dims, bool keep) {                            \
    return best(x, dims, keep, [](auto a, auto b) { return a > b; });                        \
  }                                                                                          \
  static X kind##_amin(const X& x, const Dims& dims, bool keep) {                            \
    return best(x, dims, keep, [](auto a, auto b) { return a < b; });                        \
  }                                                                                          \
  static ToyInt kind##_argmax(const X& x, int dim, bool keep) {                              \
    return arg_best(x, dim, keep, [](auto a, auto b) { return a > b; });                     \
  }                                                                                          \
  static ToyInt kind##_argmin(const X& x, int dim, bool keep) {                              \
    return arg_best(x, dim, keep, [](auto a, auto b) { return a < b; });                     \
  }                                                                                          \
  static X kind##_cumsum(const X& x, int dim) {                                              \
    return cumulate(x, dim, [](auto a, auto b) { return sum; });                             \
  }                                                                                          \
  static X kind##_matmul(const X& x, const X& y) {                                           \
    return toy::matmul(x, y, [](auto s, auto a, auto b) { return product_sum; });            \
  }
  TOY_NUMBER(float, ToyFloat, a + b, a* b, s + a * b)
  TOY_NUMBER(int, ToyInt, wrapped(u(a) + u(b)), wrapped(u(a) * u(b)), wrapped(u(s) + u(a) * u(b)))

#define TOY_BINARY(name, X, Out, type, expression)              \
  static Out name(const X& x, const X& y) {                     \
    return map<Out>(                                            \
        type, [](auto a, auto b) { return expression; }, x, y); \
  }
#define TOY_FLOAT(name, expression) \
  TOY_BINARY(float_##name, ToyFloat, ToyFloat, x.dtype, expression)
#define TOY_INT(name, expression) TOY_BINARY(int_##name, ToyInt, ToyInt, x.dtype, expression)
#define TOY_BOOL(name, expression) TOY_BINARY(bool_##name, ToyBool, ToyBool, bool_, expression)
#define TOY_COMPARE(name, expression)                            \
  TOY_BINARY(float_##name, ToyFloat, ToyBool, bool_, expression) \
  TOY_BINARY(int_##name, ToyInt, ToyBool, bool_, expression)
  TOY_FLOAT(add, a + b)
  TOY_FLOAT(sub, a - b)
  TOY_FLOAT(mul, a* b)
  TOY_FLOAT(div, a / b)
  TOY_FLOAT(remainder, modulo(a, b))
  TOY_FLOAT(pow, std::pow(a, b))
  TOY_FLOAT(atan2, std::atan2(a, b))
  TOY_INT(add, wrapped(u(a) + u(b)))
  TOY_INT(sub, wrapped(u(a) - u(b)))
  TOY_INT(mul, wrapped(u(a) * u(b)))
  TOY_INT(div, divisor(b) == -1 ? wrapped(0 - u(a)) : a / b)
  TOY_INT(remainder, modulo(a, b))
  TOY_INT(bitwise_and, a& b)
  TOY_INT(bitwise_or, a | b)
  TOY_INT(bitwise_xor, a ^ b)
  TOY_BOOL(and, a& b)
  TOY_BOOL(or, a | b)
  TOY_BOOL(xor, a ^ b)
  TOY_COMPARE(equal, a == b)
  TOY_COMPARE(greater, a > b)
  TOY_COMPARE(greater_equal, a >= b)

#define TOY_UNARY(name, function)                               \
  static ToyFloat float_##name(F x) {                           \
    return map<ToyFloat>(                                       \
        x.dtype, [](double a) { return std::function(a); }, x); \
  }
  TOY_UNARY(abs, abs)
  TOY_UNARY(sqrt, sqrt)
  TOY_UNARY(exp, exp)
  TOY_UNARY(expm1, expm1)
  TOY_UNARY(log, log)
  TOY_UNARY(log1p, log1p)
  TOY_UNARY(sin, sin)
  TOY_UNARY(cos, cos)
  TOY_UNARY(tan, tan)
  TOY_UNARY(asin, asin)
  TOY_UNARY(acos, acos)
  TOY_UNARY(atan, atan)
  TOY_UNARY(sinh, sinh)
  TOY_UNARY(cosh, cosh)
  TOY_UNARY(tanh, tanh)
  TOY_UNARY(asinh, asinh)
  TOY_UNARY(acosh, acosh)
  TOY_UNARY(atanh, atanh)
  TOY_UNARY(erf, erf)
  TOY_UNARY(floor, floor)
  TOY_UNARY(ceil, ceil)
  TOY_UNARY(round, nearbyint)
  TOY_UNARY(trunc, trunc)

  template <class Out, class A>
  static Out convert(const A& x, DType type) {
    const Out out = make<Out>(x.shape, type, x.device);
    visit_dtype("toy", type, [&]<class T>() {
      out.each([&](auto& element, const Shape& i) {
        element = convert_element<typename Out::V>(convert_element<T>(x.at(i)));
      });
    });
    return out;
  }
  static ToyInt float_into_int(F x, DType t) { return convert<ToyInt>(x, t); }
  static ToyFloat int_into_float(I x, DType t) { return convert<ToyFloat>(x, t); }
  static ToyFloat bool_into_float(B x, DType t) { return convert<ToyFloat>(x, t); }
  static ToyInt bool_into_int(B x, DType t) { return convert<ToyInt>(x, t); }
  static ToyBool bool_empty(const Shape& s, Device on) { return make<ToyBool>(s, bool_, on); }
  static ToyBool bool_not(B x) {
    return map<ToyBool>(
        bool_, [](uint8_t a) { return a == 0; }, x);
  }
  static ToyBool bool_any(B x, const Dims& dims, bool keep) {
    return fold<ToyBool>(x, dims, keep, 0, [](auto a, auto b) { return a | b; });
  }
  static ToyBool bool_all(B x, const Dims& dims, bool keep) {
    return fold<ToyBool>(x, dims, keep, 1, [](auto a, auto b) { return a & b; });
  }

  static ToyQuantized q_from_parts(I values, F scales, const QuantScheme& scheme, const Shape& s) {
    return {values, scales, scheme, s};
  }
  static ToyInt q_values(Q x) { return x.values; }
  static ToyFloat q_scales(Q x) { return x.scales; }
  static QuantScheme q_scheme(Q x) { return x.scheme; }
  static ToyQuantized q_reshape(Q x, const Shape& s) {
    return {toy::reshape(x.values, s), x.scales, x.scheme, s};
  }
  static ToyQuantized float_quantize(F x, const QuantScheme& scheme) {
    const QuantLayout layout(x.shape, scheme);
    const ToyFloat flat = toy::reshape(x, {layout.rows, layout.cols});
    ToyFloat scales = make<ToyFloat>(layout.scales_shape, layout.scales_dtype, x.device);
    std::vector<double>& scale = *scales.memory;
    const auto of = [&](const Shape& i) -> double& {
      return scale[static_cast<size_t>(layout.scale_of(i[0], i[1]))];
    };
    flat.each([&](double a, const Shape& i) {
      if (std::isfinite(a))
        of(i) = std::max(of(i), std::abs(a) / static_cast<double>(layout.limit));
    });
    for (double& s : scale) s = rounded(scheme.scale > 0.0 ? scheme.scale : s, layout.scales_dtype);
    for (double& s : scale) s = s == 0.0 ? 1.0 : s;
    ToyInt values = make<ToyInt>(layout.values_shape, layout.values_dtype, x.device);
    flat.each([&](double a, const Shape& i) {
      const double limit = static_cast<double>(layout.limit);
      const double q = std::isnan(a) ? 0.0 : std::clamp(std::nearbyint(a / of(i)), -limit, limit);
      const auto n = static_cast<int64_t>(q);
      if (scheme.bits == 8) {
        (*values.memory)[static_cast<size_t>(i[0] * layout.cols + i[1])] = n;
      } else {
        (*values.memory)[static_cast<size_t>(i[0] * layout.bytes_per_row + i[1] / 2)] +=
            (n & 15) << (i[1] % 2 * 4);
      }
    });
    return {values, scales, scheme, x.shape};
  }
  static ToyFloat q_dequantize(Q x, DType t) {
    const QuantLayout layout(x.shape, x.scheme);
    const ToyFloat out = make<ToyFloat>({layout.rows, layout.cols}, t, x.values.device);
    const ToyInt values =
        x.scheme.bits == 8 ? toy::reshape(x.values, {layout.rows, layout.cols}) : x.values;
    const ToyFloat scales = toy::reshape(x.scales, {x.scales.shape.numel()});
    out.each([&](double& a, const Shape& i) {
      int64_t n = values.at({i[0], x.scheme.bits == 8 ? i[1] : i[1] / 2});
      if (x.scheme.bits == 4) {
        n = i[1] % 2 == 0 ? n & 15 : n >> 4;
        n = n < 8 ? n : n - 16;
      }
      a = rounded(scales.at({layout.scale_of(i[0], i[1])}) * static_cast<double>(n), t);
    });
    return toy::reshape(out, x.shape);
  }
};

// The same backend, which tells where its tensors lie.
struct StridedToy : Toy {
  template <class V>
  static Layout layout(const ToyArray<V>& x) {
    return {&x.strides, x.offset, x.memory.get(), static_cast<int64_t>(x.memory->size())};
  }
  template <class V>
  static ToyArray<V> as_strided(const ToyArray<V>& x, const Shape& shape, const Strides& strides,
                                int64_t offset) {
    return view(x, shape, strides, offset);
  }
};
static_assert(!StridedBackend<Toy> && StridedBackend<StridedToy>);

inline const DeviceType kToy = register_backend<Toy>("toy");
inline const DeviceType kStridedToy = register_backend<StridedToy>("strided_toy");

inline ErasedTensor on(Device device, const std::vector<float>& values, const Shape& shape) {
  return Dispatch::float_from_data(TensorData(values, shape), device);
}

}  // namespace kiln::test::toy
