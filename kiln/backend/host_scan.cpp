#include "kiln/backend/host_scan.h"

#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "kiln/core/convert.h"

namespace kiln::host {
namespace {

struct Row {
  size_t first;
  size_t step;
  size_t length;
  size_t at(size_t i) const { return first + i * step; }
};

// Calls fn for every row along `dim`.
template <class Fn>
void for_each_row(const Shape& shape, int dim, Fn&& fn) {
  const auto length = static_cast<size_t>(shape[dim]);
  size_t inner = 1;
  for (int i = dim + 1; i < shape.rank(); ++i) inner *= static_cast<size_t>(shape[i]);
  const auto total = static_cast<size_t>(shape.numel());
  for (size_t first = 0; first < total; ++first) {
    if (first / inner % length == 0) fn(Row{first, inner, length});
  }
}

// Calls fn(int64_t or double as V, T) for the dtype.
template <class Fn>
void visit_number(const char* op, DType dtype, Fn&& fn) {
  if (is_floating_point(dtype)) {
    visit_float(op, dtype, [&]<class T>() { fn.template operator()<double, T>(); });
  } else {
    visit_int(op, dtype, [&]<class T>() { fn.template operator()<int64_t, T>(); });
  }
}

template <class V>
bool replaces(V value, V best, bool largest) {
  if (value != value) return true;
  if (best != best) return false;
  return largest ? value >= best : value <= best;
}

template <class V>
V combined(V a, V b, ScatterReduction reduction) {
  switch (reduction) {
    case ScatterReduction::prod:
      if constexpr (std::is_integral_v<V>) {
        return static_cast<V>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
      } else {
        return a * b;
      }
    case ScatterReduction::amax:
      return replaces(b, a, true) ? b : a;
    default:
      return replaces(b, a, false) ? b : a;
  }
}

}  // namespace

TensorData logcumsumexp(const TensorData& x, int dim) {
  TensorData out(x.shape(), x.dtype());
  visit_float("logcumsumexp", x.dtype(), [&]<class T>() {
    const std::span<const T> from = x.as<T>();
    const std::span<T> to = out.as_mutable<T>();
    for_each_row(x.shape(), dim, [&](const Row& row) {
      double sum = -std::numeric_limits<double>::infinity();
      for (size_t i = 0; i < row.length; ++i) {
        const auto value = convert_element<double>(from[row.at(i)]);
        const double high = replaces(value, sum, true) ? value : sum;
        const double low = replaces(value, sum, true) ? sum : value;
        // Equal infinities would give inf - inf.
        sum = std::isinf(high) && high == low ? high : high + std::log1p(std::exp(low - high));
        to[row.at(i)] = convert_element<T>(sum);
      }
    });
  });
  return out;
}

TensorData cumarg(const TensorData& x, int dim, bool largest) {
  TensorData out(x.shape(), DType::i64);
  const std::span<int64_t> to = out.as_mutable<int64_t>();
  visit_number("cumarg", x.dtype(), [&]<class V, class T>() {
    const std::span<const T> from = x.as<T>();
    for_each_row(x.shape(), dim, [&](const Row& row) {
      size_t best = 0;
      for (size_t i = 0; i < row.length; ++i) {
        const V value = convert_element<V>(from[row.at(i)]);
        if (replaces(value, convert_element<V>(from[row.at(best)]), largest)) best = i;
        to[row.at(i)] = static_cast<int64_t>(best);
      }
    });
  });
  return out;
}

TensorData scatter_reduce(const TensorData& x, int dim, const TensorData& index,
                          const TensorData& src, ScatterReduction reduction) {
  const Shape& shape = x.shape();
  const Strides strides = contiguous_strides(shape);
  const std::span<const int64_t> indices = index.as<int64_t>();
  TensorData out(shape, x.dtype());
  visit_number("scatter_reduce", x.dtype(), [&]<class V, class T>() {
    std::vector<V> values;
    for (T value : x.as<T>()) values.push_back(convert_element<V>(value));
    const std::span<const T> from = src.as<T>();
    for (size_t flat = 0; flat < from.size(); ++flat) {
      const int64_t i = indices[flat];
      if (i < 0 || i >= shape[dim]) {
        throw_error<IndexError>("scatter_reduce: index out of range; got ", i,
                                "; expected 0 <= index < ", shape[dim]);
      }
      auto rest = static_cast<int64_t>(flat);
      int64_t at = i * strides[dim];
      for (int d = shape.rank() - 1; d >= 0; --d) {
        if (d != dim) at += rest % index.shape()[d] * strides[d];
        rest /= index.shape()[d];
      }
      V& value = values[static_cast<size_t>(at)];
      value = combined(value, convert_element<V>(from[flat]), reduction);
    }
    const std::span<T> to = out.as_mutable<T>();
    for (size_t i = 0; i < values.size(); ++i) to[i] = convert_element<T>(values[i]);
  });
  return out;
}

TensorData nonzero(const TensorData& mask) {
  const Shape& shape = mask.shape();
  std::vector<int64_t> found;
  int64_t count = 0;
  Shape position = Shape::filled(shape.rank(), 0);
  for (const bool value : mask.as<bool>()) {
    if (value) {
      found.insert(found.end(), position.begin(), position.end());
      ++count;
    }
    for (int d = shape.rank() - 1; d >= 0; --d) {
      if (++position[d] < shape[d]) break;
      position[d] = 0;
    }
  }
  return TensorData(found, Shape{count, shape.rank()});
}

}  // namespace kiln::host
