// Reductions of floats: sum, nansum, mean, prod, amax, amin, var, norm.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise.h"
#include "kiln/backend/cpu/reduce/half_reduce.h"
#include "kiln/backend/cpu/reduce/reduce_kernels.h"
#include "kiln/backend/cpu/reduce/reduce_steps.h"
#include "kiln/backend/cpu/scratch.h"

namespace kiln {
namespace cpu {
namespace {

// ---- Float ops

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

// The kernels of a reduction, by dtype.
#define KILN_REDUCTION(Name, field)          \
  struct Name {                              \
    template <class T>                       \
    static const auto& of() {                \
      return reduce_kernels().of<T>().field; \
    }                                        \
  };
KILN_REDUCTION(Sum, sum)
KILN_REDUCTION(NanSum, nansum)
KILN_REDUCTION(SumOfSquares, sum_of_squares)
KILN_REDUCTION(SumOfSizes, sum_of_sizes)
KILN_REDUCTION(Product, prod)
KILN_REDUCTION(Largest, amax)
KILN_REDUCTION(Smallest, amin)
#undef KILN_REDUCTION

// Elements of a row from which on it is worth a call of its own.
constexpr int64_t kLeastRow = 64;

// A reduction, its partial results combined by More, finished as numbers of type T.
template <class T, class First, class More, class Finish>
HostHandle reduce_all(const ReduceGeometry& g, Finish&& finish) {
  return with_kernels<T, First>(*g.source, [&](const auto& first, const auto* x) {
    using Acc = decltype(first.combine(0, 0));
    if (is_one_piece(g.groups)) {
      HostHandle out = scratch<T>(g.groups.left_after_last(), g.source->device());
      reduce_piece(first, x, g.groups, out->template data_as<T>(),
                   [&](Acc result) { return static_cast<T>(finish(result)); });
      return out;
    }
    const HostHandle wide = reduce_groups(first, More::template of<Acc>(), g);
    const int64_t n = wide->numel();
    HostHandle out = scratch<T>(n, wide->device());
    const Acc* from = wide->template data_as<const Acc>();
    T* to = out->template data_as<T>();
    parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = static_cast<T>(finish(from[i]));
    });
    return out;
  });
}

// Calls f(r, row) for each row along the last dim of x, whose elements are adjacent.
template <class T, class F>
void for_each_row(const HostTensor& x, F&& f) {
  const int last = x.shape().rank() - 1;
  const int64_t n = x.shape()[last];
  const T* values = x.data_as<const T>();
  parallel_for(x.numel() / n, std::max<int64_t>(1, kGrain / n), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* row = values;
      int64_t rest = r;
      for (int i = last - 1; i >= 0; --i) {
        row += rest % x.shape()[i] * x.strides()[i];
        rest /= x.shape()[i];
      }
      f(r, row);
    }
  });
}

// A reduction over the last dim, over all dims, or over the rows of a matrix, of a view with gaps
// between rows of adjacent elements: where they lie. Null for others.
template <class T, class Reduction, class Finish>
HostHandle reduce_apart(const HostHandle& x, const Dims& dims, bool keepdim, Finish&& finish) {
  const Shape& shape = x->shape();
  const int last = shape.rank() - 1;
  if (last < 1 || x->strides()[last] != 1 || x->dtype() != dtype_of<T> || x->numel() == 0 ||
      x->is_contiguous()) {
    return {};
  }
  const int64_t n = shape[last];
  if (n < kLeastRow || n > kReduceLength || n == x->numel()) return {};
  const auto& kernels = Reduction::template of<T>();
  using Acc = decltype(kernels.combine(0, 0));
  HostHandle out;
  const auto make = [&] {
    out = host::empty(reduced_shape(shape, dims, keepdim), x->dtype(), x->device());
    return out->data_as<T>();
  };
  if (dims.rank() == 1 && dims[0] == last) {
    T* to = make();
    for_each_row<T>(*x, [&](int64_t r, const T* row) {
      Acc result;
      kernels.rows(row, n, 1, &result, nullptr);
      to[r] = static_cast<T>(finish(result));
    });
  } else if (dims.rank() == last + 1) {
    const Scratch<Acc> results(x->numel() / n);
    for_each_row<T>(
        *x, [&](int64_t r, const T* row) { kernels.rows(row, n, 1, results.get() + r, nullptr); });
    Acc total;
    reduce_rows(Reduction::template of<Acc>(), results.get(), 1, x->numel() / n, &total, nullptr);
    *make() = static_cast<T>(finish(total));
  } else if (last == 1 && dims.rank() == 1) {
    T* to = make();
    const Scratch<Acc> results(n);
    reduce_columns(kernels, x->data_as<const T>(), 1, shape[0], n, x->strides()[0], results.get(),
                   nullptr);
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(finish(results[i]));
  }
  return out;
}

template <class T>
HostHandle sum_of(const HostHandle& x, const Dims& dims, bool keepdim, double divisor) {
  const int64_t n = x->numel();
  if (dims.rank() == x->shape().rank() && n <= kReduceLength && x->is_contiguous()) {
    double total;
    with_kernels<T, Sum>(*x, [&](const auto& kernels, const auto* values) {
      kernels.rows(values, n, 1, &total, nullptr);
    });
    HostHandle out =
        host::empty(reduced_shape(x->shape(), dims, keepdim), dtype_of<T>, x->device());
    *out->data_as<T>() = static_cast<T>(total / divisor);
    return out;
  }
  if (HostHandle out =
          reduce_apart<T, Sum>(x, dims, keepdim, [=](double sum) { return sum / divisor; })) {
    return out;
  }
  const ReduceGeometry g = geometry_of(x, dims);
  if (!g.groups.has_reduced()) {
    HostHandle same = reshaped_result(x, dims, keepdim);
    return divisor == 1.0 ? same : Cpu::float_div_scalar(same, divisor);
  }
  const HostHandle out =
      divisor == 1.0 ? reduce_all<T, Sum, Sum>(g, [](double sum) { return sum; })
                     : reduce_all<T, Sum, Sum>(g, [=](double sum) { return sum / divisor; });
  return in_order(out, g, x->shape(), dims, keepdim);
}

// Calls f<T>(x) with float or double, and rounds what a 16-bit tensor gives once: f<float> takes
// those too.
template <class F>
HostHandle in_float(const HostHandle& x, F&& f) {
  if (x->dtype() == DType::f64) return f.template operator()<double>(x);
  HostHandle out = f.template operator()<float>(x);
  return out->dtype() == x->dtype() ? out : Cpu::float_cast(std::move(out), x->dtype());
}

// Elements of a view with gaps that are put together at once, where the caches hold them.
constexpr int64_t kSlab = kGrain;

// The dim along which a large view with gaps is cut, so that every piece has results of its own:
// the outermost one, unless it is reduced. -1: none.
int slab_dim(const HostHandle& x, const Dims& dims) {
  const Shape& shape = x->shape();
  const int inner = shape.rank() - 1;
  // Rows that are reduced where they lie need no copy.
  const bool rows = dims.rank() == 1 && dims[0] == inner && x->strides()[inner] == 1 &&
                    shape[inner] >= kLeastRow && shape[inner] <= kReduceLength;
  if (x->numel() < 4 * kSlab || dims.rank() == 0 ||
      (rows && convert_of(x->dtype()) == Convert::none))
    return -1;
  int outermost = -1;
  int64_t last = 0;  // the place of the last element
  for (int i = 0; i < shape.rank(); ++i) {
    last += (shape[i] - 1) * x->strides()[i];
    if (shape[i] > 1 && (outermost < 0 || x->strides()[i] > x->strides()[outermost])) outermost = i;
  }
  const bool gaps = last + 1 != x->numel();
  return gaps && !dims.contains(outermost) ? outermost : -1;
}

// reduce(view), piece by piece where the view is large and has gaps.
template <class F>
HostHandle by_slabs(const HostHandle& x, const Dims& dims, bool keepdim, F&& reduce) {
  const int dim = slab_dim(x, dims);
  if (dim < 0) return reduce(x);
  const int64_t size = x->shape()[dim];
  const int64_t step = std::max<int64_t>(1, kSlab / (x->numel() / size));
  int place = dim;
  for (const int64_t d : dims) place -= !keepdim && d < dim ? 1 : 0;
  HostHandle out = host::empty(reduced_shape(x->shape(), dims, keepdim), x->dtype(), x->device());
  if (out->numel() == 0) return out;
  parallel_for((size + step - 1) / step, 1, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      const Range range{s * step, std::min(size, (s + 1) * step), 1};
      copy_elements(*reduce(host::slice(x, dim, range)), *host::slice(out, place, range));
    }
  });
  return out;
}

HostHandle sum(const HostHandle& x, const Dims& dims, bool keepdim, double divisor) {
  return by_slabs(x, dims, keepdim, [&](const HostHandle& slab) {
    return in_float(
        slab, [&]<class T>(const HostHandle& v) { return sum_of<T>(v, dims, keepdim, divisor); });
  });
}

template <class T>
HostHandle extreme_of(const HostHandle& x, const Dims& dims, bool keepdim, bool largest) {
  const auto same = [](T extreme) { return extreme; };
  if (HostHandle out = largest ? reduce_apart<T, Largest>(x, dims, keepdim, same)
                               : reduce_apart<T, Smallest>(x, dims, keepdim, same)) {
    return out;
  }
  const ReduceGeometry g = geometry_of(x, dims);
  if (!g.groups.has_reduced()) return reshaped_result(x, dims, keepdim);
  return in_order(largest ? reduce_all<T, Largest, Largest>(g, same)
                          : reduce_all<T, Smallest, Smallest>(g, same),
                  g, x->shape(), dims, keepdim);
}

HostHandle extreme(const HostHandle& x, const Dims& dims, bool keepdim, bool largest) {
  if (x->numel() == 0) return filled_result(x, dims, keepdim, 0.0);
  return by_slabs(x, dims, keepdim, [&](const HostHandle& slab) {
    return in_float(slab, [&]<class T>(const HostHandle& v) {
      return extreme_of<T>(v, dims, keepdim, largest);
    });
  });
}

template <class T>
HostHandle prod_of(const HostHandle& x, const Dims& dims, bool keepdim) {
  const ReduceGeometry g = geometry_of(x, dims);
  if (!g.groups.has_reduced()) return reshaped_result(x, dims, keepdim);
  return in_order(reduce_all<T, Product, Product>(g, [](double product) { return product; }), g,
                  x->shape(), dims, keepdim);
}

// ---- Variance

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
  reduce_last(kernels.wide_sum, values, groups, mean);
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

// ---- Sums of something made of each element

// Sums in double of what `kernels` makes of the elements; finish(sum) is the result.
template <class T, class Reduction, class Finish>
HostHandle summed(const HostHandle& x, const Dims& dims, bool keepdim, Finish&& finish) {
  ReduceGeometry g = geometry_of(x, dims);
  if (!g.groups.has_reduced()) g.groups.add(1, true);
  return in_order(reduce_all<T, Reduction, Sum>(g, finish), g, x->shape(), dims, keepdim);
}

}  // namespace
}  // namespace cpu

HostHandle CpuOps::float_sum(Arg<HostHandle> x, const Dims& dims, bool keepdim) {
  if (x->numel() == 0) return cpu::filled_result(x, dims, keepdim, 0.0);
  return cpu::sum(x, dims, keepdim, 1.0);
}

HostHandle CpuOps::float_mean(Arg<HostHandle> x, const Dims& dims, bool keepdim) {
  if (x->numel() == 0) {
    return cpu::filled_result(x, dims, keepdim, std::numeric_limits<double>::quiet_NaN());
  }
  return cpu::sum(x, dims, keepdim, static_cast<double>(cpu::reduced_elements(x->shape(), dims)));
}

HostHandle CpuOps::float_prod(Arg<HostHandle> x, const Dims& dims, bool keepdim) {
  if (x->numel() == 0) return cpu::filled_result(x, dims, keepdim, 1.0);
  return cpu::in_float(
      x, [&]<class T>(const HostHandle& v) { return cpu::prod_of<T>(v, dims, keepdim); });
}

HostHandle CpuOps::float_amax(Arg<HostHandle> x, const Dims& dims, bool keepdim) {
  return cpu::extreme(x, dims, keepdim, /*largest=*/true);
}
HostHandle CpuOps::float_amin(Arg<HostHandle> x, const Dims& dims, bool keepdim) {
  return cpu::extreme(x, dims, keepdim, /*largest=*/false);
}

HostHandle CpuOps::float_var(Arg<HostHandle> x, const Dims& dims, double correction, bool keepdim) {
  if (x->numel() == 0) {
    return cpu::filled_result(x, dims, keepdim, std::numeric_limits<double>::quiet_NaN());
  }
  // The squares need the means first: 16-bit floats are converted once for both.
  const DType dtype = x->dtype();
  const bool half = cpu::convert_of(dtype) != cpu::Convert::none;
  HostHandle out = cpu::in_float(
      half ? Cpu::float_cast(x, DType::f32) : x.get(),
      [&]<class T>(const HostHandle& v) { return cpu::var_of<T>(v, dims, correction, keepdim); });
  return half ? Cpu::float_cast(std::move(out), dtype) : out;
}

HostHandle CpuOps::float_nansum(Arg<HostHandle> x, const Dims& dims, bool keepdim) {
  if (x->numel() == 0) return cpu::filled_result(x, dims, keepdim, 0.0);
  return cpu::in_float(x, [&]<class T>(const HostHandle& v) {
    return cpu::summed<T, cpu::NanSum>(v, dims, keepdim, [](double sum) { return sum; });
  });
}

// Other orders are composed.
HostHandle CpuOps::float_norm(Arg<HostHandle> x, double p, const Dims& dims, bool keepdim) {
  if (x->numel() == 0 || (p != 1.0 && p != 2.0)) {
    return BackendDefaults<Cpu>::float_norm(x, p, dims, keepdim);
  }
  return cpu::in_float(x, [&]<class T>(const HostHandle& v) {
    if (p == 1.0) {
      return cpu::summed<T, cpu::SumOfSizes>(v, dims, keepdim, [](double sum) { return sum; });
    }
    return cpu::summed<T, cpu::SumOfSquares>(v, dims, keepdim,
                                             [](double sum) { return std::sqrt(sum); });
  });
}

}  // namespace kiln
