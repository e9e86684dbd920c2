// How reductions go over a tensor: groups of dims, cut into pieces. Internal to the Cpu backend.
//
// Note [Fixed pieces]: a reduction is cut into pieces that depend on the shape alone, and their
// results are combined in order, so it is bit-identical at any number of threads. Sums of float are
// taken in float within a piece and in double across pieces.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise.h"
#include "kiln/backend/cpu/reduce/reduce_kernels.h"
#include "kiln/core/dim_order.h"

namespace kiln::cpu {

// ---- Geometry

struct Group {
  int64_t size;
  bool reduced;
};

// Up to kMaxRank + 1 groups, inline.
class Groups {
 public:
  int size() const { return size_; }
  const Group& operator[](int i) const { return groups_[i]; }
  const Group* begin() const { return groups_; }
  const Group* end() const { return groups_ + size_; }

  void add(int64_t size, bool reduced) {
    if (size_ > 0 && groups_[size_ - 1].reduced == reduced) {
      groups_[size_ - 1].size *= size;
    } else {
      groups_[size_++] = {size, reduced};
    }
  }
  // Takes a group out; its neighbours become one.
  void erase(int at) {
    Groups rest;
    for (int i = 0; i < size_; ++i) {
      if (i != at) rest.add(groups_[i].size, groups_[i].reduced);
    }
    *this = rest;
  }
  // The last reduced group, or -1.
  int last_reduced() const {
    int at = size_ - 1;
    while (at >= 0 && !groups_[at].reduced) --at;
    return at;
  }
  bool has_reduced() const { return last_reduced() >= 0; }
  // The product of the sizes of groups [from, to).
  int64_t product(int from, int to) const {
    int64_t n = 1;
    for (int i = from; i < to; ++i) n *= groups_[i].size;
    return n;
  }
  // The number of elements that reducing the last reduced group leaves.
  int64_t left_after_last() const {
    const int at = last_reduced();
    return product(0, at) * product(at + 1, size_);
  }

 private:
  Group groups_[kMaxRank + 1];
  int size_ = 0;
};

// A tensor as row-major memory whose dims, from the outside in, form groups that are reduced and
// kept by turns.
struct ReduceGeometry {
  HostHandle source;
  Groups groups;
  Dims kept_order;  // the kept dims of sizes other than 1, in the order of memory

  int64_t count() const {
    int64_t n = 1;
    for (const Group& g : groups) n *= g.reduced ? g.size : 1;
    return n;
  }
};

inline ReduceGeometry geometry_of(const HostHandle& x, const Dims& dims) {
  ReduceGeometry g;
  const Shape& shape = x->shape();
  // Dims of size 1 have strides of no meaning, and change nothing.
  int order[kMaxRank];
  int rank = 0;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] != 1) order[rank++] = i;
  }
  int natural[kMaxRank];
  std::copy(order, order + rank, natural);
  sort_by_stride(order, rank, x->strides());
  int64_t expected = 1;
  bool dense = true;
  for (int k = rank - 1; k >= 0; --k) {
    dense = dense && x->strides()[order[k]] == expected;
    expected *= shape[order[k]];
  }
  if (!dense) std::copy(natural, natural + rank, order);
  g.source = dense ? x : contiguous(x);
  for (int k = 0; k < rank; ++k) {
    const bool reduced = dims.contains(order[k]);
    if (!reduced) g.kept_order.push_back(order[k]);
    g.groups.add(shape[order[k]], reduced);
  }
  return g;
}

// The result, computed in the order of memory, in the order of the tensor's dims.
inline HostHandle in_order(const HostHandle& result, const ReduceGeometry& g, const Shape& shape,
                           const Dims& dims, bool keepdim) {
  const Shape out_shape = reduced_shape(shape, dims, keepdim);
  bool sorted = true;
  Shape kept_shape;
  for (int i = 0; i < g.kept_order.rank(); ++i) {
    sorted = sorted && (i == 0 || g.kept_order[i - 1] < g.kept_order[i]);
    kept_shape.push_back(shape[static_cast<int>(g.kept_order[i])]);
  }
  if (sorted) return host::try_reshape(result, out_shape);
  Dims back = Shape::filled(g.kept_order.rank(), 0);
  for (int i = 0; i < g.kept_order.rank(); ++i) {
    // The place of kept dim number i, by its rank among the kept dims.
    int place = 0;
    for (int64_t other : g.kept_order) place += other < g.kept_order[i];
    back[place] = i;
  }
  return host::try_reshape(contiguous(host::permute(host::try_reshape(result, kept_shape), back)),
                           out_shape);
}

// ---- Steps

// Fresh memory for intermediate results.
template <class T>
HostHandle scratch(int64_t n, Device device) {
  return host::empty(Shape{n}, dtype_of<T>, device);
}

// Reduces rows of n elements to one each.
template <class T, class Acc>
void reduce_rows(const ReduceKernels<T, Acc>& kernels, const T* x, int64_t rows, int64_t n,
                 Acc* out, const double* shift) {
  const int64_t pieces = (n + kReduceLength - 1) / kReduceLength;
  if (pieces == 1) {
    parallel_for(rows, std::max<int64_t>(1, kGrain / n), [&](int64_t begin, int64_t end) {
      kernels.rows(x + begin * n, n, end - begin, out + begin,
                   shift == nullptr ? nullptr : shift + begin);
    });
    return;
  }
  const HostHandle memory =
      host::empty(Shape{rows * pieces * static_cast<int64_t>(sizeof(Acc))}, DType::u8, Device{});
  auto* partial = static_cast<Acc*>(memory->data());
  parallel_for(rows * pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / pieces;
      const int64_t at = i % pieces * kReduceLength;
      kernels.rows(x + row * n + at, std::min(kReduceLength, n - at), 1, partial + i,
                   shift == nullptr ? nullptr : shift + row);
    }
  });
  for (int64_t row = 0; row < rows; ++row) {
    Acc result = partial[row * pieces];
    for (int64_t k = 1; k < pieces; ++k)
      result = kernels.combine(result, partial[row * pieces + k]);
    out[row] = result;
  }
}

// Reduces the middle dim of [outer, n, inner], whose rows of `inner` are `pitch` apart.
template <class T, class Acc>
void reduce_columns(const ReduceKernels<T, Acc>& kernels, const T* x, int64_t outer, int64_t n,
                    int64_t inner, int64_t pitch, Acc* out, const double* shift) {
  // Narrow columns take more rows at a time, which the kernel adds side by side.
  const int64_t length = inner < 64 ? std::max(kReduceRows, kReduceLength / inner) : kReduceRows;
  const int64_t pieces = (n + length - 1) / length;
  const int64_t panels = (inner + kReduceColumns - 1) / kReduceColumns;
  HostHandle memory;
  Acc* partial = out;
  if (pieces > 1) {
    memory = host::empty(Shape{outer * pieces * inner * static_cast<int64_t>(sizeof(Acc))},
                         DType::u8, Device{});
    partial = static_cast<Acc*>(memory->data());
  }
  const int64_t work = std::min(n, length) * std::min(inner, kReduceColumns);
  parallel_for(outer * pieces * panels, std::max<int64_t>(1, kGrain / work),
               [&](int64_t begin, int64_t end) {
                 for (int64_t task = begin; task < end; ++task) {
                   const int64_t column = task % panels * kReduceColumns;
                   const int64_t slab = task / panels;  // outer index and piece
                   const int64_t o = slab / pieces;
                   const int64_t row = slab % pieces * length;
                   kernels.columns(x + (o * n + row) * pitch + column, std::min(length, n - row),
                                   std::min(kReduceColumns, inner - column), pitch,
                                   partial + slab * inner + column,
                                   shift == nullptr ? nullptr : shift + o * inner + column);
                 }
               });
  if (pieces == 1) return;
  parallel_for(outer * inner, std::max<int64_t>(1, kGrain / pieces),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const Acc* first = partial + i / inner * pieces * inner + i % inner;
                   Acc result = first[0];
                   for (int64_t k = 1; k < pieces; ++k)
                     result = kernels.combine(result, first[k * inner]);
                   out[i] = result;
                 }
               });
}

// Reduces the last reduced group of `groups`, and takes it from the list.
template <class T, class Acc>
void reduce_last(const ReduceKernels<T, Acc>& kernels, const T* x, Groups& groups, Acc* out,
                 const double* shift = nullptr) {
  const int at = groups.last_reduced();
  const int64_t inner = groups.product(at + 1, groups.size());
  const int64_t outer = groups.product(0, at);
  const int64_t n = groups[at].size;
  if (inner == 1) {
    reduce_rows(kernels, x, outer, n, out, shift);
  } else {
    reduce_columns(kernels, x, outer, n, inner, inner, out, shift);
  }
  groups.erase(at);
}

// Whether the only reduced group is short enough to be one piece, so that results need no memory
// between.
inline bool is_one_piece(const Groups& groups) {
  const int at = groups.last_reduced();
  if (at < 0 || groups.product(0, groups.size()) == 0) return false;
  for (int i = 0; i < at; ++i) {
    if (groups[i].reduced) return false;
  }
  return groups[at].size <= (at + 1 == groups.size() ? kReduceLength : kReduceRows);
}

// Reduces the only reduced group, which is one piece, to out[i] = finish(result).
template <class T, class Acc, class Out, class Finish>
void reduce_piece(const ReduceKernels<T, Acc>& kernels, const T* x, const Groups& groups, Out* out,
                  Finish&& finish) {
  const int at = groups.last_reduced();
  const int64_t n = groups[at].size;
  const int64_t outer = groups.product(0, at);
  const int64_t inner = groups.product(at + 1, groups.size());
  constexpr int64_t kResults = kReduceColumns;
  if (inner == 1) {
    parallel_for(outer, std::max<int64_t>(1, kGrain / n), [&](int64_t begin, int64_t end) {
      Acc results[kResults];
      for (int64_t row = begin; row < end; row += kResults) {
        const int64_t count = std::min(kResults, end - row);
        kernels.rows(x + row * n, n, count, results, nullptr);
        for (int64_t i = 0; i < count; ++i) out[row + i] = finish(results[i]);
      }
    });
    return;
  }
  const int64_t panels = (inner + kResults - 1) / kResults;
  const int64_t work = n * std::min(inner, kResults);
  parallel_for(outer * panels, std::max<int64_t>(1, kGrain / work),
               [&](int64_t begin, int64_t end) {
                 Acc results[kResults];
                 for (int64_t task = begin; task < end; ++task) {
                   const int64_t o = task / panels;
                   const int64_t column = task % panels * kResults;
                   const int64_t count = std::min(kResults, inner - column);
                   kernels.columns(x + o * n * inner + column, n, count, inner, results, nullptr);
                   Out* to = out + o * inner + column;
                   for (int64_t i = 0; i < count; ++i) to[i] = finish(results[i]);
                 }
               });
}

// All reduced groups, one after another, from the inside out. The result is row-major over what is
// kept.
template <class T, class Acc>
HostHandle reduce_groups(const ReduceKernels<T, Acc>& first, const ReduceKernels<Acc, Acc>& more,
                         const ReduceGeometry& g) {
  Groups groups = g.groups;
  HostHandle result = scratch<Acc>(groups.left_after_last(), g.source->device());
  reduce_last(first, static_cast<const T*>(g.source->data()), groups, result->data_as<Acc>());
  while (groups.has_reduced()) {
    HostHandle next = scratch<Acc>(groups.left_after_last(), g.source->device());
    reduce_last(more, result->data_as<const Acc>(), groups, next->data_as<Acc>());
    result = std::move(next);
  }
  return result;
}

inline HostHandle filled_result(const HostHandle& x, const Dims& dims, bool keepdim, Scalar value) {
  const Shape shape = reduced_shape(x->shape(), dims, keepdim);
  if (x->dtype() == DType::boolean) return Cpu::bool_full(shape, value.to_bool(), x->device());
  return Cpu::float_full(shape, value, x->dtype(), x->device());
}

// With every reduced dim of size 1 there is nothing to combine. A copy, since only shape ops share
// memory.
inline HostHandle reshaped_result(const HostHandle& x, const Dims& dims, bool keepdim) {
  HostHandle out = host::empty(x->shape(), x->dtype(), x->device());
  copy_elements(*x, *out, /*fresh=*/true);
  return host::try_reshape(out, reduced_shape(x->shape(), dims, keepdim));
}

}  // namespace kiln::cpu
