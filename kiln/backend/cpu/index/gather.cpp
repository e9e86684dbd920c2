// Reading by indices along one dim: gather, index_select.
#include <algorithm>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise.h"
#include "kiln/backend/cpu/index/indices.h"

namespace kiln {
namespace cpu {

HostHandle row_index(const HostHandle& index, int dim) {
  const Shape& shape = index->shape();
  bool wide = false;
  for (int i = 0; i < shape.rank(); ++i) {
    if (i == dim || shape[i] == 1) continue;
    if (index->strides()[i] != 0) return {};
    wide = true;
  }
  if (!wide) return {};
  return contiguous(
      host::view(index, Shape{shape[dim]}, Strides{index->strides()[dim]}, index->offset()));
}

namespace {

// How many rows ahead memory is asked for.
constexpr int64_t kAhead = 8;

// Some bytes, copied in as few moves as they take.
template <int kBytes>
struct Bytes {
  char of[kBytes];
};

// f<Bytes<row>>() for rows of few bytes; false for others, and for odd ones.
template <class F>
bool visit_short_row(int64_t row, F&& f) {
  switch (row) {
#define KILN_ROW(bytes)                    \
  case bytes:                              \
    f.template operator()<Bytes<bytes>>(); \
    return true;
    KILN_ROW(1)
    KILN_ROW(2)
    KILN_ROW(4)
    KILN_ROW(8)
    KILN_ROW(12)
    KILN_ROW(16)
    KILN_ROW(20)
    KILN_ROW(24)
    KILN_ROW(28)
    KILN_ROW(32)
#undef KILN_ROW
    default:
      return false;
  }
}

// to[i] = from[i * step + indices[i]] for i < n: one element of each of n rows, or, with step 0, n
// elements of one. False when it gave up.
template <class U>
[[gnu::always_inline]] inline bool pick(const U* from, int64_t step, const int64_t* indices, U* to,
                                        int64_t n, IndexCheck& check) {
  int64_t i = 0;
  // Some at a time: fewer tests, and loads that do not wait for stores.
  for (; i + 4 <= n; i += 4, from += 4 * step) {
    const int64_t a = indices[i], b = indices[i + 1], c = indices[i + 2], d = indices[i + 3];
    if (!check.fine(a) || !check.fine(b) || !check.fine(c) || !check.fine(d)) return false;
    const U first = from[a], second = from[step + b];
    const U third = from[2 * step + c], fourth = from[3 * step + d];
    to[i] = first;
    to[i + 1] = second;
    to[i + 2] = third;
    to[i + 3] = fourth;
  }
  for (; i < n; ++i, from += step) {
    if (!check.fine(indices[i])) return false;
    to[i] = from[indices[i]];
  }
  return true;
}

// The index has x's sizes outside of `dim`, and both are row-major.
template <class U>
void gather_aligned(const HostTensor& x, int dim, const HostTensor& index, const HostTensor& out,
                    IndexCheck& check) {
  const AroundDim around(x.shape(), dim);
  const int64_t count = index.shape()[dim];
  const int64_t inner = around.inner;
  const int64_t slice = around.size * inner;
  const U* from = x.data_as<const U>();
  const auto* indices = index.data_as<const int64_t>();
  U* to = out.data_as<U>();
  if (inner == 1) {
    if (count == 1) {
      parallel_for(around.outer, kGrain / 2, [&](int64_t begin, int64_t end) {
        pick(from + begin * slice, slice, indices + begin, to + begin, end - begin, check);
      });
      return;
    }
    // Pieces of rows: there may be one long row, or many short ones.
    parallel_for(around.outer * count, kGrain / 2, [&](int64_t begin, int64_t end) {
      int64_t row = begin / count;
      for (int64_t i = begin; i < end; ++row) {
        const int64_t stop = std::min(end, (row + 1) * count);
        if (!pick(from + row * slice, 0, indices + i, to + i, stop - i, check)) return;
        i = stop;
      }
    });
    return;
  }
  const int64_t grain = std::max<int64_t>(1, kGrain / 2 / inner);
  parallel_for(around.outer * count, grain, [&](int64_t begin, int64_t end) {
    int64_t left = begin % count;
    const U* base = from + begin / count * slice;
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t i = row * inner, k = 0; k < inner; ++i, ++k) {
        if (!check.fine(indices[i])) return;
        to[i] = base[indices[i] * inner + k];
      }
      if (++left == count) {
        left = 0;
        base += slice;
      }
    }
  });
}

// Any strides of x, and an index that is smaller in other dims.
template <class U>
void gather_strided(const HostTensor& x, int dim, const HostTensor& index, const HostTensor& out,
                    IndexCheck& check) {
  const Shape& shape = index.shape();
  const int last = shape.rank() - 1;
  const int64_t inner = shape[last];
  const U* from = x.data_as<const U>();
  const auto* indices = index.data_as<const int64_t>();
  U* to = out.data_as<U>();
  const int64_t along = x.strides()[dim];
  const int64_t step = dim == last ? 0 : x.strides()[last];
  const int64_t grain = std::max<int64_t>(1, kGrain / 4 / inner);
  parallel_for(shape.numel() / inner, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      int64_t rest = row;
      const U* base = from;
      for (int i = last - 1; i >= 0; --i) {
        const int64_t at = rest % shape[i];
        rest /= shape[i];
        if (i != dim) base += at * x.strides()[i];
      }
      const int64_t* row_indices = indices + row * inner;
      U* row_out = to + row * inner;
      for (int64_t k = 0; k < inner; ++k) {
        if (!check.fine(row_indices[k])) return;
        row_out[k] = base[k * step + row_indices[k] * along];
      }
    }
  });
}

HostHandle index_select(const char* op, const HostHandle& x, int dim, const HostHandle& index_arg);

HostHandle gather(const HostHandle& x, int dim, const HostHandle& index_arg) {
  if (x->shape().rank() == 0) {
    const HostHandle index = contiguous(index_arg);
    check_indices("gather", *index, 1);
    HostHandle out = host::empty(index->shape(), x->dtype(), x->device());
    copy_elements(*host::expand(x, index->shape()), *out);
    return out;
  }
  bool aligned = true;
  for (int i = 0; i < x->shape().rank(); ++i) {
    aligned = aligned && (i == dim || x->shape()[i] == index_arg->shape()[i]);
  }
  if (aligned && index_arg->numel() > 0) {
    if (const HostHandle rows = row_index(index_arg, dim)) {
      return index_select("gather", x, dim, rows);
    }
  }
  const HostHandle index = contiguous(index_arg);
  HostHandle out = host::empty(index->shape(), x->dtype(), x->device());
  if (out->numel() == 0) return out;
  IndexCheck check(x->shape()[dim]);
  visit_item(size_of(x->dtype()), [&]<class U>() {
    if (aligned && x->is_contiguous()) {
      gather_aligned<U>(*x, dim, *index, *out, check);
    } else {
      gather_strided<U>(*x, dim, *index, *out, check);
    }
  });
  check.finish("gather");
  return out;
}

HostHandle index_select(const char* op, const HostHandle& x, int dim, const HostHandle& index_arg) {
  const HostHandle index = contiguous(index_arg);
  if (x->shape().rank() == 0) return gather(x, 0, index);
  Shape shape = x->shape();
  shape[dim] = index->numel();
  HostHandle out = host::empty(shape, x->dtype(), x->device());
  if (out->numel() == 0) {
    check_indices(op, *index, x->shape()[dim]);
    return out;
  }
  const HostHandle source = contiguous(x);
  const AroundDim around(source->shape(), dim);
  const int64_t count = index->numel();
  const auto* indices = index->data_as<const int64_t>();
  const int64_t row = around.inner * static_cast<int64_t>(size_of(x->dtype()));
  IndexCheck check(around.size);
  const bool is_short = visit_short_row(row, [&]<class Row>() {
    const auto* from = source->data_as<const Row>();
    auto* to = out->data_as<Row>();
    if (around.outer == 1) {
      const int64_t grain = kGrain / 4 / std::min<int64_t>(around.inner, 4);
      parallel_for(count, grain, [&](int64_t begin, int64_t end) {
        pick(from, 0, indices + begin, to + begin, end - begin, check);
      });
      return;
    }
    const int64_t grain = std::max<int64_t>(1, kGrain / 4 / count);
    parallel_for(around.outer, grain, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        if (!pick(from + o * around.size, 0, indices, to + o * count, count, check)) return;
      }
    });
  });
  if (is_short) {
    check.finish(op);
    return out;
  }
  const auto* from = source->data_as<const char>();
  auto* to = out->data_as<char>();
  const int64_t grain = std::max<int64_t>(1, kGrain / around.inner);
  parallel_for(around.outer * count, grain, [&](int64_t begin, int64_t end) {
    int64_t at = begin % count;
    const char* base = from + begin / count * around.size * row;
    for (int64_t i = begin; i < end; ++i) {
      if (!check.fine(indices[at])) return;
      // The next rows are anywhere.
      if (at + kAhead < count) __builtin_prefetch(base + indices[at + kAhead] * row);
      copy_bytes(to + i * row, base + indices[at] * row, row);
      if (++at == count) {
        at = 0;
        base += around.size * row;
      }
    }
  });
  check.finish(op);
  return out;
}

}  // namespace
}  // namespace cpu

#define KILN_GATHER(kind)                                                                     \
  HostHandle CpuOps::kind##_gather(Arg<HostHandle> x, int dim, Arg<HostHandle> index) {       \
    return cpu::gather(x, dim, index);                                                        \
  }                                                                                           \
  HostHandle CpuOps::kind##_index_select(Arg<HostHandle> x, int dim, Arg<HostHandle> index) { \
    return cpu::index_select("index_select", x, dim, index);                                  \
  }
KILN_GATHER(float)
KILN_GATHER(int)
KILN_GATHER(bool)
#undef KILN_GATHER

}  // namespace kiln
