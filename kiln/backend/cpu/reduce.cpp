// Reductions of floats: sum, nansum, mean, prod, amax, amin, var, norm.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise.h"
#include "kiln/backend/cpu/half_reduce.h"
#include "kiln/backend/cpu/reduce_kernels.h"
#include "kiln/backend/cpu/reduce_steps.h"

namespace kiln {
namespace cpu {
namespace {

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

HostHandle sum(const HostHandle& x, const Dims& dims, bool keepdim, double divisor) {
  return in_float(
      x, [&]<class T>(const HostHandle& v) { return sum_of<T>(v, dims, keepdim, divisor); });
}

template <class T>
HostHandle extreme_of(const HostHandle& x, const Dims& dims, bool keepdim, bool largest) {
  const ReduceGeometry g = geometry_of(x, dims);
  if (!g.groups.has_reduced()) return reshaped_result(x, dims, keepdim);
  const auto same = [](T extreme) { return extreme; };
  return in_order(largest ? reduce_all<T, Largest, Largest>(g, same)
                          : reduce_all<T, Smallest, Smallest>(g, same),
                  g, x->shape(), dims, keepdim);
}

HostHandle extreme(const HostHandle& x, const Dims& dims, bool keepdim, bool largest) {
  if (x->numel() == 0) return filled_result(x, dims, keepdim, 0.0);
  return in_float(
      x, [&]<class T>(const HostHandle& v) { return extreme_of<T>(v, dims, keepdim, largest); });
}

template <class T>
HostHandle prod_of(const HostHandle& x, const Dims& dims, bool keepdim) {
  const ReduceGeometry g = geometry_of(x, dims);
  if (!g.groups.has_reduced()) return reshaped_result(x, dims, keepdim);
  return in_order(reduce_all<T, Product, Product>(g, [](double product) { return product; }), g,
                  x->shape(), dims, keepdim);
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
template <class T, class Reduction, class Finish>
HostHandle summed(const HostHandle& x, const Dims& dims, bool keepdim, Finish&& finish) {
  ReduceGeometry g = geometry_of(x, dims);
  if (!g.groups.has_reduced()) g.groups.add(1, true);
  return in_order(reduce_all<T, Reduction, Sum>(g, finish), g, x->shape(), dims, keepdim);
}

}  // namespace
}  // namespace cpu

HostHandle CpuBasic::float_sum(Arg<HostHandle> x, const Dims& dims, bool keepdim) {
  if (x->numel() == 0) return cpu::filled_result(x, dims, keepdim, 0.0);
  return cpu::sum(x, dims, keepdim, 1.0);
}

HostHandle CpuBasic::float_mean(Arg<HostHandle> x, const Dims& dims, bool keepdim) {
  if (x->numel() == 0) {
    return cpu::filled_result(x, dims, keepdim, std::numeric_limits<double>::quiet_NaN());
  }
  return cpu::sum(x, dims, keepdim, static_cast<double>(cpu::reduced_elements(x->shape(), dims)));
}

HostHandle CpuBasic::float_prod(Arg<HostHandle> x, const Dims& dims, bool keepdim) {
  if (x->numel() == 0) return cpu::filled_result(x, dims, keepdim, 1.0);
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

HostHandle CpuBasic::float_nansum(Arg<HostHandle> x, const Dims& dims, bool keepdim) {
  if (x->numel() == 0) return cpu::filled_result(x, dims, keepdim, 0.0);
  return cpu::in_float(x, [&]<class T>(const HostHandle& v) {
    return cpu::summed<T, cpu::NanSum>(v, dims, keepdim, [](double sum) { return sum; });
  });
}

// Other orders are composed.
HostHandle CpuBasic::float_norm(Arg<HostHandle> x, double p, const Dims& dims, bool keepdim) {
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
