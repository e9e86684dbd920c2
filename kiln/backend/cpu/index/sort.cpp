// sort, argsort: stable, by radix (see Note [Radix sort]).
#include <algorithm>
#include <limits>
#include <type_traits>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise.h"
#include "kiln/backend/cpu/index/sort_keys.h"

namespace kiln {
namespace cpu {
namespace {

// `values` may be null, here and below.
template <class T>
void sort_paired_row(const T* row, int64_t n, bool descending, T* values, int64_t* indices) {
  uint32_t ranks[kPairedRow];
  ranks_of_row(row, n, descending ? ~KeyOf<T>{0} : KeyOf<T>{0}, ranks);
  for (int64_t i = 0; i < n; ++i) indices[ranks[i]] = i;
  if (values == nullptr) return;
  for (int64_t i = 0; i < n; ++i) values[ranks[i]] = row[i];
}

template <class T>
void sort_row(const T* row, int64_t n, bool descending, T* values, int64_t* indices) {
  using Key = KeyOf<T>;
  const Scratch<Entry<Key>> entries(n);
  const Scratch<Entry<Key>> others(n);
  const Key flip = descending ? ~Key{0} : Key{0};
  parallel_for(n, kSortChunk, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      entries[i] = {key_of(row[i]) ^ flip, static_cast<uint32_t>(i)};
    }
  });
  const Entry<Key>* sorted = RadixSort<Key>::run(entries.get(), others.get(), n);
  parallel_for(n, kSortChunk, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      indices[i] = sorted[i].index;
      if (values != nullptr) values[i] = row[sorted[i].index];
    }
  });
}

template <class T>
void sort_rows(const HostTensor& x, int64_t n, bool descending, T* values, int64_t* indices) {
  const T* from = x.data_as<const T>();
  const auto one = [&](int64_t r) {
    T* const to = values == nullptr ? nullptr : values + r * n;
    if (n <= kPairedRow) {
      sort_paired_row(from + r * n, n, descending, to, indices + r * n);
    } else {
      sort_row(from + r * n, n, descending, to, indices + r * n);
    }
  };
  const int64_t rows = x.numel() / n;
  if (n > kSortChunk) {
    for (int64_t r = 0; r < rows; ++r) one(r);
    return;
  }
  parallel_for(rows, std::max<int64_t>(1, kGrain / 8 / n), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) one(r);
  });
}

struct Sorted {
  HostHandle values;  // null when not wanted
  HostHandle indices;
};

Sorted sort(const HostHandle& x, int dim, bool descending, bool with_values) {
  const int rank = x->shape().rank();
  if (rank > 0 && dim != rank - 1) {
    const Dims order = dim_last(rank, dim);
    const Dims back = inverse(order);
    Sorted moved = sort(host::permute(x, order), rank - 1, descending, with_values);
    if (with_values) moved.values = contiguous(host::permute(moved.values, back));
    return {std::move(moved.values), contiguous(host::permute(moved.indices, back))};
  }
  const int64_t n = rank == 0 ? 1 : x->shape()[dim];
  if (n > std::numeric_limits<uint32_t>::max()) {
    throw_error<ShapeError>("sort: rows are too long; got ", n, "; expected less than 2^32");
  }
  Sorted out;
  out.indices = host::empty(x->shape(), DType::i64, x->device());
  if (with_values) out.values = host::empty(x->shape(), x->dtype(), x->device());
  if (x->numel() == 0) return out;
  const HostHandle source = contiguous(x);
  visit_dtype("sort", x->dtype(), [&]<class T>() {
    if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
      sort_rows<T>(*source, n, descending, with_values ? out.values->data_as<T>() : nullptr,
                   out.indices->data_as<int64_t>());
    }
  });
  return out;
}

}  // namespace
}  // namespace cpu

std::pair<HostHandle, HostHandle> CpuOps::float_sort(Arg<HostHandle> x, int dim, bool descending) {
  const DType dtype = x->dtype();
  if (cpu::convert_of(dtype) != cpu::Convert::none) {
    auto [values, indices] = float_sort(Cpu::float_cast(x, DType::f32), dim, descending);
    return {Cpu::float_cast(std::move(values), dtype), std::move(indices)};
  }
  cpu::Sorted out = cpu::sort(x, dim, descending, /*with_values=*/true);
  return {std::move(out.values), std::move(out.indices)};
}
HostHandle CpuOps::int_argsort(Arg<HostHandle> x, int dim, bool descending) {
  return cpu::sort(x, dim, descending, /*with_values=*/false).indices;
}

}  // namespace kiln
