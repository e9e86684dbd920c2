#include "kiln/backend/host_sort.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "kiln/core/convert.h"

namespace kiln::host {
namespace {

// a before b in ascending order.
template <class V>
bool before(V a, V b) {
  if (b != b) return a == a;
  return a < b;
}

// Integers as int64, floats as double: both hold every value of their dtypes.
template <class V, class T>
void argsort_rows(const TensorData& x, int dim, bool descending, std::span<int64_t> out) {
  const std::span<const T> values = x.as<T>();
  const Shape& shape = x.shape();
  const int64_t n = shape.rank() == 0 ? 1 : shape[dim];
  int64_t inner = 1;
  for (int i = dim + 1; i < shape.rank(); ++i) inner *= shape[i];
  std::vector<V> row(static_cast<size_t>(n));
  std::vector<int64_t> order(static_cast<size_t>(n));
  for (int64_t first = 0; first < x.numel(); ++first) {
    if (first / inner % n != 0) continue;  // not the start of a row
    for (int64_t i = 0; i < n; ++i) {
      row[static_cast<size_t>(i)] =
          convert_element<V>(values[static_cast<size_t>(first + i * inner)]);
    }
    std::iota(order.begin(), order.end(), int64_t{0});
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      const V va = row[static_cast<size_t>(a)];
      const V vb = row[static_cast<size_t>(b)];
      return descending ? before(vb, va) : before(va, vb);
    });
    for (int64_t i = 0; i < n; ++i) {
      out[static_cast<size_t>(first + i * inner)] = order[static_cast<size_t>(i)];
    }
  }
}

template <class V, class T>
void search_rows(const TensorData& sorted, const TensorData& values, bool right,
                 std::span<int64_t> out) {
  const std::span<const T> edges = sorted.as<T>();
  const std::span<const T> wanted = values.as<T>();
  const auto n = static_cast<size_t>(sorted.shape().back());
  const bool one_row = sorted.shape().rank() == 1;
  const size_t m = one_row ? wanted.size() : static_cast<size_t>(values.shape().back());
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto row = edges.subspan(one_row ? 0 : i / m * n, n);
    const V value = convert_element<V>(wanted[i]);
    const auto at = std::partition_point(row.begin(), row.end(), [&](T edge) {
      const V e = convert_element<V>(edge);
      return right ? !before(value, e) : before(e, value);
    });
    out[i] = at - row.begin();
  }
}

}  // namespace

TensorData searchsorted(const TensorData& sorted, const TensorData& values, bool right) {
  TensorData out(values.shape(), DType::i64);
  if (values.numel() == 0) return out;
  const std::span<int64_t> places = out.as_mutable<int64_t>();
  if (is_floating_point(sorted.dtype())) {
    visit_float("searchsorted", sorted.dtype(),
                [&]<class T>() { search_rows<double, T>(sorted, values, right, places); });
  } else {
    visit_int("searchsorted", sorted.dtype(),
              [&]<class T>() { search_rows<int64_t, T>(sorted, values, right, places); });
  }
  return out;
}

TensorData argsort(const TensorData& x, int dim, bool descending) {
  TensorData out(x.shape(), DType::i64);
  if (x.numel() == 0) return out;
  const std::span<int64_t> indices = out.as_mutable<int64_t>();
  if (is_floating_point(x.dtype())) {
    visit_float("sort", x.dtype(),
                [&]<class T>() { argsort_rows<double, T>(x, dim, descending, indices); });
  } else {
    visit_int("sort", x.dtype(),
              [&]<class T>() { argsort_rows<int64_t, T>(x, dim, descending, indices); });
  }
  return out;
}

}  // namespace kiln::host
