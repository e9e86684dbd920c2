// Pooling: planes are shared out whole.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/image/pool_kernels.h"
#include "kiln/backend/cpu/image/window_kernels.h"
#include "kiln/backend/cpu/index/indices.h"
#include "kiln/backend/cpu/operand.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/error.h"
#include "kiln/core/parallel.h"

namespace kiln {
namespace {

using cpu::PoolSizes;

PoolSizes pool_sizes(const Shape& x, const PoolOptions& o, IntPair dilation) {
  return {x[2],
          x[3],
          pool_output_size(x[2], o.kernel[0], o.stride[0], o.padding[0], dilation[0], o.ceil_mode),
          pool_output_size(x[3], o.kernel[1], o.stride[1], o.padding[1], dilation[1], o.ceil_mode),
          o.kernel,
          o.stride,
          o.padding,
          dilation};
}

int64_t planes_per_piece(int64_t work) {
  return std::max<int64_t>(kGrain / std::max<int64_t>(work, 1), 1);
}

// What the window at `position` along one dim is divided by, in that dim. The padding that was
// asked for counts if it should; what ceil_mode adds beyond it never does.
int64_t window_extent(int64_t position, int64_t in, int64_t kernel, int64_t stride, int64_t padding,
                      bool count_padding) {
  const int64_t start = position * stride - padding;
  const int64_t end = std::min(start + kernel, in + padding);
  if (count_padding) return end - start;
  return std::max<int64_t>(std::min(end, in) - std::max<int64_t>(start, 0), 1);
}

template <class T>
void fill_divisors(const PoolSizes& s, bool count_padding, T* to) {
  for (int64_t i = 0; i < s.out_height; ++i) {
    const int64_t rows =
        window_extent(i, s.height, s.kernel[0], s.stride[0], s.padding[0], count_padding);
    for (int64_t j = 0; j < s.out_width; ++j) {
      *to++ = static_cast<T>(
          rows * window_extent(j, s.width, s.kernel[1], s.stride[1], s.padding[1], count_padding));
    }
  }
}

template <class T>
void run_max_pool(const PoolSizes& s, int64_t planes, const T* x, T* y, int64_t* indices) {
  const int64_t in = s.height * s.width;
  const int64_t out = s.out_height * s.out_width;
  if (out == 0) return;
  const auto& kernels = cpu::pool_kernels<T>();
  parallel_for(planes, planes_per_piece(std::max(in, out)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      kernels.max_plane(s, x + i * in, y + i * out, indices + i * out);
    }
  });
}

// max_planes(planes, x, columns, y) for all planes.
template <class T, class F>
void run_max_pool_values(const PoolSizes& s, int64_t planes, const HostTensor& x,
                         const HostTensor& y, F&& max_planes) {
  const int64_t in = s.height * s.width;
  const int64_t out = s.out_height * s.out_width;
  if (out == 0) return;
  parallel_for(planes, planes_per_piece(std::max(in, out)), [&](int64_t begin, int64_t end) {
    const cpu::Scratch<T> columns(cpu::columns_of_windows(s));
    max_planes(end - begin, static_cast<const T*>(x.data()) + begin * in, columns.get(),
               static_cast<T*>(y.data()) + begin * out);
  });
}

template <class T>
void run_max_pool_backward(int64_t planes, int64_t in, int64_t out, const T* g,
                           const int64_t* indices, T* dx) {
  cpu::IndexCheck check(in);  // a graph from a file may hold any place; below 0 there is none
  parallel_for(planes, planes_per_piece(std::max(in, out)), [&](int64_t begin, int64_t end) {
    std::fill_n(dx + begin * in, (end - begin) * in, T(0));
    for (int64_t i = begin; i < end; ++i) {
      T* to = dx + i * in;
      const T* from = g + i * out;
      const int64_t* at = indices + i * out;
      for (int64_t p = 0; p < out; ++p) {
        if (at[p] >= 0 && check.fine(at[p])) to[at[p]] += from[p];
      }
    }
  });
  check.finish("max_pool2d");
}

template <class T>
void run_avg_pool(const PoolSizes& s, bool count_padding, int64_t planes, const T* x, T* y) {
  const int64_t in = s.height * s.width;
  const int64_t out = s.out_height * s.out_width;
  if (out == 0) return;
  const cpu::Scratch<T> divisors(out);
  fill_divisors(s, count_padding, divisors.get());
  const cpu::WindowKernels& kernels = cpu::window_kernels();
  parallel_for(planes, planes_per_piece(std::max(in, out)), [&](int64_t begin, int64_t end) {
    const cpu::Scratch<T> columns(cpu::columns_of_windows(s));
    const int64_t count = end - begin;
    if constexpr (std::is_same_v<T, float>) {
      kernels.sum_f32(s, count, x + begin * in, columns.get(), y + begin * out);
    } else {
      kernels.sum_f64(s, count, x + begin * in, columns.get(), y + begin * out);
    }
    for (int64_t i = begin; i < end; ++i) {
      T* to = y + i * out;
      for (int64_t p = 0; p < out; ++p) to[p] /= divisors[p];
    }
  });
}

template <class T>
void add_to_windows(const PoolSizes& s, const T* g, const T* divisors, T* dx) {
  for (int64_t i = 0; i < s.out_height; ++i) {
    const int64_t top = i * s.stride[0] - s.padding[0];
    const int64_t row_begin = std::max<int64_t>(top, 0);
    const int64_t row_end = std::min(top + s.kernel[0], s.height);
    for (int64_t j = 0; j < s.out_width; ++j) {
      const int64_t left = j * s.stride[1] - s.padding[1];
      const int64_t column_begin = std::max<int64_t>(left, 0);
      const int64_t column_end = std::min(left + s.kernel[1], s.width);
      const T share = *g++ / *divisors++;
      for (int64_t r = row_begin; r < row_end; ++r) {
        for (int64_t c = column_begin; c < column_end; ++c) dx[r * s.width + c] += share;
      }
    }
  }
}

template <class T>
void run_avg_pool_backward(const PoolSizes& s, bool count_padding, int64_t planes, const T* g,
                           T* dx) {
  const int64_t in = s.height * s.width;
  const int64_t out = s.out_height * s.out_width;
  const cpu::Scratch<T> divisors(out);
  fill_divisors(s, count_padding, divisors.get());
  parallel_for(planes, planes_per_piece(std::max(in, out)), [&](int64_t begin, int64_t end) {
    std::fill_n(dx + begin * in, (end - begin) * in, T(0));
    for (int64_t i = begin; i < end; ++i) {
      add_to_windows(s, g + i * out, divisors.get(), dx + i * in);
    }
  });
}

}  // namespace

std::pair<HostHandle, HostHandle> CpuOps::float_max_pool2d(Arg<HostHandle> x,
                                                           const PoolOptions& options) {
  const DType dtype = x.get()->dtype();
  if (cpu::is_half(dtype)) {
    auto [y, indices] = float_max_pool2d(cpu::widened(x), options);
    return {cpu::narrowed(std::move(y), dtype), std::move(indices)};
  }
  const HostHandle in = cpu::contiguous(x.get());
  const PoolSizes s = pool_sizes(in->shape(), options, options.dilation);
  if (s.height * s.width > std::numeric_limits<int32_t>::max()) [[unlikely]] {
    throw_error<ShapeError>("max_pool2d: plane too large; got ", in->shape(),
                            "; expected fewer than 2^31 elements in a plane");
  }
  const int64_t planes = in->shape()[0] * in->shape()[1];
  const Shape shape = {in->shape()[0], in->shape()[1], s.out_height, s.out_width};
  HostHandle y = host::empty(shape, dtype, in->device());
  HostHandle indices = host::empty(shape, DType::i64, in->device());
  if (dtype == DType::f64) {
    run_max_pool(s, planes, in->data_as<const double>(), y->data_as<double>(),
                 indices->data_as<int64_t>());
  } else {
    run_max_pool(s, planes, in->data_as<const float>(), y->data_as<float>(),
                 indices->data_as<int64_t>());
  }
  return {std::move(y), std::move(indices)};
}

HostHandle CpuOps::float_max_pool2d_values(Arg<HostHandle> x, const PoolOptions& options) {
  const HostHandle in = cpu::contiguous(x.get());
  const PoolSizes s = pool_sizes(in->shape(), options, options.dilation);
  const int64_t planes = in->shape()[0] * in->shape()[1];
  HostHandle y = host::empty({in->shape()[0], in->shape()[1], s.out_height, s.out_width},
                             in->dtype(), in->device());
  const cpu::WindowKernels& kernels = cpu::window_kernels();
  const auto run = [&]<class T>(const auto& kernel) {
    run_max_pool_values<T>(s, planes, *in, *y, kernel);
  };
  if (in->dtype() == DType::f64) {
    run.operator()<double>([&](int64_t count, const double* from, double* columns, double* to) {
      kernels.max_f64(s, count, from, columns, to);
    });
  } else if (in->dtype() == DType::f32) {
    run.operator()<float>([&](int64_t count, const float* from, float* columns, float* to) {
      kernels.max_f32(s, count, from, columns, to);
    });
  } else {
    const int16_t infinity = in->dtype() == DType::bf16 ? 0x7F80 : 0x7C00;
    run.operator()<int16_t>([&](int64_t count, const int16_t* from, int16_t* columns, int16_t* to) {
      kernels.max_half(s, count, infinity, from, columns, to);
    });
  }
  return y;
}

HostHandle CpuOps::float_max_pool2d_backward(Arg<HostHandle> g, Arg<HostHandle> indices,
                                             const Shape& x_shape, const PoolOptions& options) {
  const DType dtype = g.get()->dtype();
  if (cpu::is_half(dtype)) {
    return cpu::narrowed(float_max_pool2d_backward(cpu::widened(g), indices, x_shape, options),
                         dtype);
  }
  const HostHandle grad = cpu::contiguous(g.get());
  const HostHandle at = cpu::contiguous(indices.get());
  const int64_t planes = x_shape[0] * x_shape[1];
  const int64_t in = x_shape[2] * x_shape[3];
  const int64_t out = grad->shape()[2] * grad->shape()[3];
  HostHandle dx = host::empty(x_shape, dtype, grad->device());
  if (dtype == DType::f64) {
    run_max_pool_backward(planes, in, out, grad->data_as<const double>(),
                          at->data_as<const int64_t>(), dx->data_as<double>());
  } else {
    run_max_pool_backward(planes, in, out, grad->data_as<const float>(),
                          at->data_as<const int64_t>(), dx->data_as<float>());
  }
  return dx;
}

HostHandle CpuOps::float_avg_pool2d(Arg<HostHandle> x, const PoolOptions& options) {
  const DType dtype = x.get()->dtype();
  if (cpu::is_half(dtype)) {
    return cpu::narrowed(float_avg_pool2d(cpu::widened(x), options), dtype);
  }
  const HostHandle in = cpu::contiguous(x.get());
  const PoolSizes s = pool_sizes(in->shape(), options, {1, 1});
  const int64_t planes = in->shape()[0] * in->shape()[1];
  HostHandle y = host::empty(Shape{in->shape()[0], in->shape()[1], s.out_height, s.out_width},
                             dtype, in->device());
  if (dtype == DType::f64) {
    run_avg_pool(s, options.count_include_pad, planes, in->data_as<const double>(),
                 y->data_as<double>());
  } else {
    run_avg_pool(s, options.count_include_pad, planes, in->data_as<const float>(),
                 y->data_as<float>());
  }
  return y;
}

HostHandle CpuOps::float_avg_pool2d_backward(Arg<HostHandle> g, const Shape& x_shape,
                                             const PoolOptions& options) {
  const DType dtype = g.get()->dtype();
  if (cpu::is_half(dtype)) {
    return cpu::narrowed(float_avg_pool2d_backward(cpu::widened(g), x_shape, options), dtype);
  }
  const HostHandle grad = cpu::contiguous(g.get());
  const PoolSizes s = pool_sizes(x_shape, options, {1, 1});
  const int64_t planes = x_shape[0] * x_shape[1];
  HostHandle dx = host::empty(x_shape, dtype, grad->device());
  if (dtype == DType::f64) {
    run_avg_pool_backward(s, options.count_include_pad, planes, grad->data_as<const double>(),
                          dx->data_as<double>());
  } else {
    run_avg_pool_backward(s, options.count_include_pad, planes, grad->data_as<const float>(),
                          dx->data_as<float>());
  }
  return dx;
}

}  // namespace kiln
