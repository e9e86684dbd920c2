// Reductions: sum, nansum, mean, prod, amax, amin, var, norm, any, all.
//
// Note [Fixed pieces]: a reduction is cut into pieces that depend on the shape alone, and their
// results are combined in order, so it is bit-identical at any number of threads. Sums of float are
// taken in float within a piece and in double across pieces.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/dim_order.h"
#include "kiln/backend/cpu/elementwise.h"
#include "kiln/backend/cpu/int_reduce.h"
#include "kiln/backend/cpu/reduce_kernels.h"
#include "kiln/core/convert.h"

namespace kiln {
namespace cpu {
namespace {

// -------------------------------------------------------------------------------------------------------
// geometry

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

ReduceGeometry geometry_of(const HostHandle& x, const Dims& dims) {
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
HostHandle in_order(const HostHandle& result, const ReduceGeometry& g, const Shape& shape,
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

// -----------------------------------------------------------------------------------------------------------
// steps

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

// Reduces the middle dim of [outer, n, inner].
template <class T, class Acc>
void reduce_columns(const ReduceKernels<T, Acc>& kernels, const T* x, int64_t outer, int64_t n,
                    int64_t inner, Acc* out, const double* shift) {
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
                   kernels.columns(x + (o * n + row) * inner + column, std::min(length, n - row),
                                   std::min(kReduceColumns, inner - column), inner,
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
    reduce_columns(kernels, x, outer, n, inner, out, shift);
  }
  groups.erase(at);
}

// All reduced groups, one after another, from the inside out. The result is row-major over what is
// kept.
template <class T, class Acc>
HostHandle reduce_groups(const ReduceKernels<T, Acc>& first, const ReduceKernels<Acc, Acc>& more,
                         const ReduceGeometry& g) {
  Groups groups = g.groups;
  HostHandle result = scratch<Acc>(groups.left_after_last(), g.source->device());
  reduce_last(first, g.source->data_as<const T>(), groups, result->data_as<Acc>());
  while (groups.has_reduced()) {
    HostHandle next = scratch<Acc>(groups.left_after_last(), g.source->device());
    reduce_last(more, result->data_as<const Acc>(), groups, next->data_as<Acc>());
    result = std::move(next);
  }
  return result;
}

// -------------------------------------------------------------------------------------------------------
// float ops

// Results in double become the tensor's dtype.
template <class T>
HostHandle narrow(const HostHandle& wide, double divisor) {
  const int64_t n = wide->numel();
  HostHandle out = scratch<T>(n, wide->device());
  const double* from = wide->data_as<const double>();
  T* to = out->data_as<T>();
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = static_cast<T>(from[i] / divisor);
  });
  return out;
}

HostHandle filled(const HostHandle& x, const Dims& dims, bool keepdim, Scalar value) {
  const Shape shape = reduced_shape(x->shape(), dims, keepdim);
  if (x->dtype() == DType::boolean) return Cpu::bool_full(shape, value.to_bool(), x->device());
  return Cpu::float_full(shape, value, x->dtype(), x->device());
}

// With every reduced dim of size 1 there is nothing to combine. A copy, since only shape ops share
// memory.
HostHandle reshaped(const HostHandle& x, const Dims& dims, bool keepdim) {
  HostHandle out = host::empty(x->shape(), x->dtype(), x->device());
  copy_elements(*x, *out, /*fresh=*/true);
  return host::try_reshape(out, reduced_shape(x->shape(), dims, keepdim));
}

template <class T>
HostHandle sum_of(const HostHandle& x, const Dims& dims, bool keepdim, double divisor) {
  const FloatReduceKernels<T>& kernels = reduce_kernels().of<T>();
  const int64_t n = x->numel();
  if (dims.rank() == x->shape().rank() && n <= kReduceLength && x->is_contiguous()) {
    double total;
    kernels.sum.rows(x->data_as<const T>(), n, 1, &total, nullptr);
    HostHandle out = host::empty(reduced_shape(x->shape(), dims, keepdim), x->dtype(), x->device());
    *out->data_as<T>() = static_cast<T>(total / divisor);
    return out;
  }
  const ReduceGeometry g = geometry_of(x, dims);
  if (!g.groups.has_reduced()) {
    HostHandle same = reshaped(x, dims, keepdim);
    return divisor == 1.0 ? same : Cpu::float_div_scalar(same, divisor);
  }
  const HostHandle wide = reduce_groups(kernels.sum, reduce_kernels().f64.sum, g);
  if (sizeof(T) == 8 && divisor == 1.0) return in_order(wide, g, x->shape(), dims, keepdim);
  return in_order(narrow<T>(wide, divisor), g, x->shape(), dims, keepdim);
}

// Calls f<T>(x) with float or double, and rounds what a 16-bit tensor gives once.
template <class F>
HostHandle in_float(const HostHandle& x, F&& f) {
  if (x->dtype() == DType::f64) return f.template operator()<double>(x);
  if (x->dtype() == DType::f32) return f.template operator()<float>(x);
  const HostHandle wide = Cpu::float_cast(x, DType::f32);
  return Cpu::float_cast(f.template operator()<float>(wide), x->dtype());
}

HostHandle sum(const HostHandle& x, const Dims& dims, bool keepdim, double divisor) {
  return in_float(
      x, [&]<class T>(const HostHandle& v) { return sum_of<T>(v, dims, keepdim, divisor); });
}

template <class T>
HostHandle extreme_of(const HostHandle& x, const Dims& dims, bool keepdim, bool largest) {
  const ReduceGeometry g = geometry_of(x, dims);
  if (!g.groups.has_reduced()) return reshaped(x, dims, keepdim);
  const FloatReduceKernels<T>& all = reduce_kernels().of<T>();
  const ReduceKernels<T, T>& kernels = largest ? all.amax : all.amin;
  return in_order(reduce_groups(kernels, kernels, g), g, x->shape(), dims, keepdim);
}

HostHandle extreme(const HostHandle& x, const Dims& dims, bool keepdim, bool largest) {
  if (x->numel() == 0) return filled(x, dims, keepdim, 0.0);
  return in_float(
      x, [&]<class T>(const HostHandle& v) { return extreme_of<T>(v, dims, keepdim, largest); });
}

template <class T>
HostHandle prod_of(const HostHandle& x, const Dims& dims, bool keepdim) {
  const ReduceGeometry g = geometry_of(x, dims);
  if (!g.groups.has_reduced()) return reshaped(x, dims, keepdim);
  const HostHandle wide =
      reduce_groups(product_kernels<T, double>(), product_kernels<double, double>(), g);
  return in_order(narrow<T>(wide, 1.0), g, x->shape(), dims, keepdim);
}

// -------------------------------------------------------------------------------------------------------
// variance

// Two passes: the means in double, then the squares of what differs from them.
template <class T>
HostHandle var_of(const HostHandle& x, const Dims& dims, double correction, bool keepdim) {
  ReduceGeometry g = geometry_of(x, dims);
  int reduced_groups = 0;
  for (const Group& group : g.groups) reduced_groups += group.reduced;
  if (reduced_groups > 1) {
    // Each kept element's numbers are brought together, so that there is one group.
    Dims order;
    for (int i = 0; i < x->shape().rank(); ++i) {
      if (!dims.contains(i)) order.push_back(i);
    }
    const int kept = order.rank();
    for (int64_t d : dims) order.push_back(d);
    g.source = contiguous(host::permute(x, order));
    const int64_t count = g.count();
    g.groups = Groups();
    if (g.source->numel() != count) g.groups.add(g.source->numel() / count, false);
    g.groups.add(count, true);
    g.kept_order = Dims();
    for (int i = 0; i < kept; ++i) {
      if (x->shape()[static_cast<int>(order[i])] != 1) g.kept_order.push_back(order[i]);
    }
  }
  const auto count = static_cast<double>(g.count());
  const FloatReduceKernels<T>& kernels = reduce_kernels().of<T>();
  const T* values = g.source->template data_as<const T>();
  Groups groups = g.groups;
  if (!groups.has_reduced()) groups.add(1, true);
  const int64_t kept = groups.left_after_last();
  const HostHandle means = scratch<double>(kept, x->device());
  const HostHandle squares = scratch<double>(kept, x->device());
  double* mean = means->data_as<double>();
  Groups again = groups;
  reduce_last(kernels.sum, values, groups, mean);
  for (int64_t i = 0; i < kept; ++i) mean[i] /= count;
  double* square = squares->data_as<double>();
  reduce_last(kernels.squares, values, again, square, mean);
  // Taking the rounding of the mean off again may leave less than nothing.
  for (int64_t i = 0; i < kept; ++i) square[i] = square[i] < 0.0 ? 0.0 : square[i];
  return in_order(narrow<T>(squares, std::max(0.0, count - correction)), g, x->shape(), dims,
                  keepdim);
}

int64_t reduced_elements(const Shape& shape, const Dims& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= shape[static_cast<int>(d)];
  return n;
}

// ---------------------------------------------------------------------------------------------------------
// sums of something made of each element

// Sums in double of what `kernels` makes of the elements; finish(sum) is the result.
template <class T, class Finish>
HostHandle summed(const ReduceKernels<T, double>& kernels, const HostHandle& x, const Dims& dims,
                  bool keepdim, Finish&& finish) {
  ReduceGeometry g = geometry_of(x, dims);
  if (!g.groups.has_reduced()) g.groups.add(1, true);
  const HostHandle wide = reduce_groups(kernels, reduce_kernels().f64.sum, g);
  double* sums = wide->data_as<double>();
  for (int64_t i = 0; i < wide->numel(); ++i) sums[i] = finish(sums[i]);
  return in_order(narrow<T>(wide, 1.0), g, x->shape(), dims, keepdim);
}

// ---------------------------------------------------------------------------------------------------------
// int ops

HostHandle reduce_int(IntReduction op, const HostHandle& x, const Dims& dims, bool keepdim) {
  const DType dtype = x->dtype();
  if (x->numel() == 0) {
    const Shape shape = reduced_shape(x->shape(), dims, keepdim);
    const int64_t identity = op == IntReduction::prod ? 1 : 0;
    return Cpu::int_full(shape, identity, dtype, x->device());
  }
  const ReduceGeometry g = geometry_of(x, dims);
  if (!g.groups.has_reduced()) return reshaped(x, dims, keepdim);
  return visit_int("reduce", dtype, [&]<class T>() {
    const ReduceKernels<T, T> kernels = int_reduce_kernels<T>(op);
    Groups groups = g.groups;
    HostHandle result = host::empty(Shape{groups.left_after_last()}, dtype, x->device());
    reduce_last(kernels, g.source->template data_as<const T>(), groups,
                result->template data_as<T>());
    while (groups.has_reduced()) {
      HostHandle next = host::empty(Shape{groups.left_after_last()}, dtype, x->device());
      reduce_last(kernels, result->template data_as<const T>(), groups,
                  next->template data_as<T>());
      result = std::move(next);
    }
    return in_order(result, g, x->shape(), dims, keepdim);
  });
}

// any is the largest of the bytes 0 and 1, all the smallest.
HostHandle reduce_bool(IntReduction op, const HostHandle& x, const Dims& dims, bool keepdim) {
  if (x->numel() == 0) return filled(x, dims, keepdim, op == IntReduction::amin);
  const auto as = [](const HostHandle& v, DType dtype) {
    return make_handle<HostTensor>(v->shape(), dtype, v->device(), v->strides(), v->offset(),
                                   v->storage());
  };
  return as(reduce_int(op, as(x, DType::u8), dims, keepdim), DType::boolean);
}

}  // namespace
}  // namespace cpu

using cpu::IntReduction;

HostHandle CpuBasic::float_sum(Arg<HostHandle> x, const Dims& dims, bool keepdim) {
  if (x->numel() == 0) return cpu::filled(x, dims, keepdim, 0.0);
  return cpu::sum(x, dims, keepdim, 1.0);
}

HostHandle CpuBasic::float_mean(Arg<HostHandle> x, const Dims& dims, bool keepdim) {
  if (x->numel() == 0) {
    return cpu::filled(x, dims, keepdim, std::numeric_limits<double>::quiet_NaN());
  }
  return cpu::sum(x, dims, keepdim, static_cast<double>(cpu::reduced_elements(x->shape(), dims)));
}

HostHandle CpuBasic::float_prod(Arg<HostHandle> x, const Dims& dims, bool keepdim) {
  if (x->numel() == 0) return cpu::filled(x, dims, keepdim, 1.0);
  return cpu::in_float(
      x, [&]<class T>(const HostHandle& v) { return cpu::prod_of<T>(v, dims, keepdim); });
}

HostHandle CpuBasic::float_amax(Arg<HostHandle> x, const Dims& dims, bool keepdim) {
  return cpu::extreme(x, dims, keepdim, /*largest=*/true);
}
HostHandle CpuBasic::float_amin(Arg<HostHandle> x, const Dims& dims, bool keepdim) {
  return cpu::extreme(x, dims, keepdim, /*largest=*/false);
}

HostHandle CpuBasic::float_var(Arg<HostHandle> x, const Dims& dims, double correction,
                               bool keepdim) {
  if (x->numel() == 0) {
    return cpu::filled(x, dims, keepdim, std::numeric_limits<double>::quiet_NaN());
  }
  return cpu::in_float(x, [&]<class T>(const HostHandle& v) {
    return cpu::var_of<T>(v, dims, correction, keepdim);
  });
}

HostHandle CpuBasic::float_nansum(Arg<HostHandle> x, const Dims& dims, bool keepdim) {
  if (x->numel() == 0) return cpu::filled(x, dims, keepdim, 0.0);
  return cpu::in_float(x, [&]<class T>(const HostHandle& v) {
    return cpu::summed<T>(cpu::reduce_kernels().of<T>().nansum, v, dims, keepdim,
                          [](double sum) { return sum; });
  });
}

// Other orders are composed.
HostHandle CpuBasic::float_norm(Arg<HostHandle> x, double p, const Dims& dims, bool keepdim) {
  if (x->numel() == 0 || (p != 1.0 && p != 2.0)) {
    return BackendDefaults<Cpu>::float_norm(x, p, dims, keepdim);
  }
  return cpu::in_float(x, [&]<class T>(const HostHandle& v) {
    const cpu::FloatReduceKernels<T>& kernels = cpu::reduce_kernels().of<T>();
    return cpu::summed<T>(p == 1.0 ? kernels.sum_of_sizes : kernels.sum_of_squares, v, dims,
                          keepdim, [p](double sum) { return p == 1.0 ? sum : std::sqrt(sum); });
  });
}

HostHandle CpuBasic::int_sum(Arg<HostHandle> x, const Dims& dims, bool keepdim) {
  return cpu::reduce_int(IntReduction::sum, x, dims, keepdim);
}
HostHandle CpuBasic::int_prod(Arg<HostHandle> x, const Dims& dims, bool keepdim) {
  return cpu::reduce_int(IntReduction::prod, x, dims, keepdim);
}
HostHandle CpuBasic::int_amax(Arg<HostHandle> x, const Dims& dims, bool keepdim) {
  return cpu::reduce_int(IntReduction::amax, x, dims, keepdim);
}
HostHandle CpuBasic::int_amin(Arg<HostHandle> x, const Dims& dims, bool keepdim) {
  return cpu::reduce_int(IntReduction::amin, x, dims, keepdim);
}
HostHandle CpuBasic::bool_any(Arg<HostHandle> x, const Dims& dims, bool keepdim) {
  return cpu::reduce_bool(IntReduction::amax, x, dims, keepdim);
}
HostHandle CpuBasic::bool_all(Arg<HostHandle> x, const Dims& dims, bool keepdim) {
  return cpu::reduce_bool(IntReduction::amin, x, dims, keepdim);
}

}  // namespace kiln
