// Ops that read or write at indices, and selection by mask.
#include "kiln/backend/host_scan.h"
#include "kiln/backend/reference/elements.h"

namespace kiln {

using reference::finish;
using reference::for_each_index;
using reference::make;
using reference::Ops;
using reference::position;
using reference::read;
using reference::Tensor;

namespace {

int64_t checked_index(const char* op, int64_t index, int64_t size) {
  if (index < 0 || index >= size) {
    if (size == 0) {
      throw_error<IndexError>(op, ": index out of range; got ", index,
                              "; expected no index, since the dim is empty");
    }
    throw_error<IndexError>(op, ": index out of range; got ", index, "; expected 0 to ", size - 1);
  }
  return index;
}

// int64 and double values alike: int sums wrap.
double sum_of(double a, double b) { return a + b; }
int64_t sum_of(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

template <class V>
HostHandle gather(const Tensor& x, int dim, const Tensor& index) {
  const std::vector<V> values = read<V>(x);
  const std::vector<int64_t> indices = read<int64_t>(index);
  std::vector<V> out;
  for_each_index(index->shape(), [&](Shape at) {
    at[dim] = checked_index("gather", indices[out.size()], x->shape()[dim]);
    out.push_back(values[position(x->shape(), at)]);
  });
  return make(index->shape(), x->dtype(), x->device(), out);
}

// combine(old, src) is what the element at the index becomes.
template <class V, class Combine>
HostHandle scatter(const char* op, const Tensor& x, int dim, const Tensor& index, const Tensor& src,
                   Combine&& combine) {
  std::vector<V> values = read<V>(x);
  const std::vector<int64_t> indices = read<int64_t>(index);
  const std::vector<V> sources = read<V>(src);
  for_each_index(index->shape(), [&](const Shape& from) {
    Shape at = from;
    at[dim] = checked_index(op, indices[position(index->shape(), from)], x->shape()[dim]);
    V& value = values[position(x->shape(), at)];
    value = combine(value, sources[position(src->shape(), from)]);
  });
  return finish(x, x->shape(), x->dtype(), values);
}

template <class V>
HostHandle index_select(const Tensor& x, int dim, const Tensor& index) {
  const std::vector<V> values = read<V>(x);
  const std::vector<int64_t> indices = read<int64_t>(index);
  Shape shape = x->shape();
  shape[dim] = index->numel();
  for (int64_t i : indices) checked_index("index_select", i, x->shape()[dim]);
  std::vector<V> out;
  for_each_index(shape, [&](Shape at) {
    at[dim] = indices[static_cast<size_t>(at[dim])];
    out.push_back(values[position(x->shape(), at)]);
  });
  return make(shape, x->dtype(), x->device(), out);
}

template <class V>
HostHandle index_add(const Tensor& x, int dim, const Tensor& index, const Tensor& src) {
  std::vector<V> values = read<V>(x);
  const std::vector<int64_t> indices = read<int64_t>(index);
  const std::vector<V> sources = read<V>(src);
  for (int64_t i : indices) checked_index("index_add", i, x->shape()[dim]);
  for_each_index(src->shape(), [&](const Shape& from) {
    Shape at = from;
    at[dim] = indices[static_cast<size_t>(from[dim])];
    V& value = values[position(x->shape(), at)];
    value = sum_of(value, sources[position(src->shape(), from)]);
  });
  return finish(x, x->shape(), x->dtype(), values);
}

template <class V>
HostHandle index_copy(const Tensor& x, int dim, const Tensor& index, const Tensor& src) {
  std::vector<V> values = read<V>(x);
  const std::vector<int64_t> indices = read<int64_t>(index);
  const std::vector<V> sources = read<V>(src);
  for (int64_t i : indices) checked_index("index_copy", i, x->shape()[dim]);
  for_each_index(src->shape(), [&](const Shape& from) {
    Shape at = from;
    at[dim] = indices[static_cast<size_t>(from[dim])];
    values[position(x->shape(), at)] = sources[position(src->shape(), from)];
  });
  return finish(x, x->shape(), x->dtype(), values);
}

template <class V>
HostHandle mask_where(const Tensor& x, const Tensor& mask, const Tensor& value) {
  Shape shape = broadcast_shapes("mask_where", x->shape(), mask->shape());
  shape = broadcast_shapes("mask_where", shape, value->shape());
  std::vector<V> out = read<V>(x, shape);
  const std::vector<int64_t> chosen = read<int64_t>(mask, shape);
  const std::vector<V> values = read<V>(value, shape);
  for (size_t i = 0; i < out.size(); ++i) {
    if (chosen[i] != 0) out[i] = values[i];
  }
  return finish(x, shape, x->dtype(), out);
}

template <class V>
HostHandle mask_fill(const Tensor& x, const Tensor& mask, V value) {
  const Shape shape = broadcast_shapes("mask_fill", x->shape(), mask->shape());
  std::vector<V> out = read<V>(x, shape);
  const std::vector<int64_t> chosen = read<int64_t>(mask, shape);
  for (size_t i = 0; i < out.size(); ++i) {
    if (chosen[i] != 0) out[i] = value;
  }
  return finish(x, shape, x->dtype(), out);
}

}  // namespace

HostHandle Ops::float_bag_sum(Tensor table, Tensor rows, Tensor starts, bool mean) {
  const std::vector<double> values = read<double>(table);
  const std::vector<int64_t> indices = read<int64_t>(rows);
  const std::vector<int64_t> bounds = read<int64_t>(starts);
  const int64_t width = table->shape()[1];
  for (int64_t i : indices) checked_index("bag_sum", i, table->shape()[0]);
  std::vector<double> out;
  for (size_t bag = 0; bag + 1 < bounds.size(); ++bag) {
    const int64_t size = bounds[bag + 1] - bounds[bag];
    for (int64_t c = 0; c < width; ++c) {
      double sum = 0.0;
      for (int64_t i = bounds[bag]; i < bounds[bag + 1]; ++i) {
        sum += values[static_cast<size_t>(indices[static_cast<size_t>(i)] * width + c)];
      }
      out.push_back(mean && size > 0 ? sum / static_cast<double>(size) : sum);
    }
  }
  const Shape shape{starts->numel() - 1, width};
  return make(shape, table->dtype(), table->device(), out);
}

#define KILN_INDEX_OPS(kind, V, to_value)                                          \
  HostHandle Ops::kind##_gather(Tensor x, int dim, Tensor index) {                 \
    return gather<V>(x, dim, index);                                               \
  }                                                                                \
  HostHandle Ops::kind##_scatter(Tensor x, int dim, Tensor index, Tensor src) {    \
    return scatter<V>("scatter", x, dim, index, src, [](V, V b) { return b; });    \
  }                                                                                \
  HostHandle Ops::kind##_index_select(Tensor x, int dim, Tensor index) {           \
    return index_select<V>(x, dim, index);                                         \
  }                                                                                \
  HostHandle Ops::kind##_index_copy(Tensor x, int dim, Tensor index, Tensor src) { \
    return index_copy<V>(x, dim, index, src);                                      \
  }                                                                                \
  HostHandle Ops::kind##_mask_where(Tensor x, Tensor mask, Tensor value) {         \
    return mask_where<V>(x, mask, value);                                          \
  }                                                                                \
  HostHandle Ops::kind##_mask_fill(Tensor x, Tensor mask, Scalar value) {          \
    return mask_fill<V>(x, mask, value.to_value());                                \
  }
KILN_INDEX_OPS(float, double, to_double)
KILN_INDEX_OPS(int, int64_t, to_int)
KILN_INDEX_OPS(bool, int64_t, to_bool)
#undef KILN_INDEX_OPS

#define KILN_INDEX_ADD_OPS(kind, V)                                                              \
  HostHandle Ops::kind##_scatter_add(Tensor x, int dim, Tensor index, Tensor src) {              \
    return scatter<V>("scatter_add", x, dim, index, src, [](V a, V b) { return sum_of(a, b); }); \
  }                                                                                              \
  HostHandle Ops::kind##_index_add(Tensor x, int dim, Tensor index, Tensor src) {                \
    return index_add<V>(x, dim, index, src);                                                     \
  }
#define KILN_SCATTER_REDUCE(kind)                                                                \
  HostHandle Ops::kind##_scatter_reduce(Tensor x, int dim, Tensor index, Tensor src,             \
                                        ScatterReduction reduction) {                            \
    return host::from_data(host::scatter_reduce(host::into_data(x), dim, host::into_data(index), \
                                                host::into_data(src), reduction),                \
                           x->device());                                                         \
  }
KILN_SCATTER_REDUCE(float)
KILN_SCATTER_REDUCE(int)
#undef KILN_SCATTER_REDUCE

HostHandle Ops::bool_nonzero(Tensor x) {
  return host::from_data(host::nonzero(host::into_data(x)), x->device());
}

KILN_INDEX_ADD_OPS(float, double)
KILN_INDEX_ADD_OPS(int, int64_t)
#undef KILN_INDEX_ADD_OPS

}  // namespace kiln
