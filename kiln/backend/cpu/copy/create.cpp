// Making tensors, filling them, moving data in and out, and views.
#include <algorithm>
#include <cstring>

#include "kiln/backend/cpu/copy/element.h"
#include "kiln/backend/cpu/copy/items.h"
#include "kiln/backend/cpu/copy/line_kernels.h"
#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise.h"
#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/core/convert.h"

namespace kiln {
namespace cpu {
namespace {

template <class U>
void fill_kernel(const KernelArgs& args) {
  const auto bytes = args.n * static_cast<int64_t>(sizeof(U));
  const uint64_t pattern = repeated(args.params, sizeof(U));
  if (pattern == 0) {
    std::memset(args.out, 0, static_cast<size_t>(bytes));
  } else {
    copy_kernels().fill(pattern, args.out, bytes);
  }
}

Kernel fill_kernel_of(DType dtype) {
  switch (size_of(dtype)) {
    case 1:
      return fill_kernel<uint8_t>;
    case 2:
      return fill_kernel<uint16_t>;
    case 4:
      return fill_kernel<uint32_t>;
    default:
      return fill_kernel<uint64_t>;
  }
}

void fill(const HostTensor& out, Scalar value, bool fresh) {
  const Element element(value, out.dtype());
  if (out.numel() == 1) {
    std::memcpy(out.data(), element.bytes, size_of(out.dtype()));
    return;
  }
  ElementwiseOp op{fill_kernel_of(out.dtype()), 0, element.bytes};
  op.raw = true;
  run_elementwise(op, out, nullptr, fresh);
}

HostHandle full(const Shape& shape, Scalar value, DType dtype, Device device) {
  HostHandle out = host::empty(shape, dtype, device);
  fill(*out, value, /*fresh=*/true);
  return out;
}

void fill_in_place(const HostHandle& x, Scalar value) {
  fill(*x, value, /*fresh=*/false);
  x->storage()->bump_version();
}

// The values alone: a tensor that stays writable shares its memory with nobody.
TensorData into_data(const Arg<HostHandle>& x) {
  HostHandle source = contiguous(x);
  const HostHandle second_holder = x.is_donated() ? HostHandle() : source;
  if (x.is_donated()) x.take();
  return host::into_data(source);
}

}  // namespace
}  // namespace cpu

using cpu::fill_in_place;
using cpu::full;

std::string Cpu::name(kiln::Device) { return concat("cpu (", cpu::target_name(), ")"); }
void Cpu::seed(kiln::Device, uint64_t seed) { default_generator().manual_seed(seed); }

HostHandle CpuOps::float_from_data(const TensorData& data, Device device) {
  return host::from_data(data, device);
}
HostHandle CpuOps::int_from_data(const TensorData& data, Device device) {
  return host::from_data(data, device);
}
HostHandle CpuOps::bool_from_data(const TensorData& data, Device device) {
  return host::from_data(data, device);
}
TensorData CpuOps::float_into_data(Arg<HostHandle> x) { return cpu::into_data(x); }
TensorData CpuOps::int_into_data(Arg<HostHandle> x) { return cpu::into_data(x); }
TensorData CpuOps::bool_into_data(Arg<HostHandle> x) { return cpu::into_data(x); }

HostHandle CpuOps::float_empty(const Shape& shape, DType dtype, Device device) {
  return host::empty(shape, dtype, device);
}
HostHandle CpuOps::int_empty(const Shape& shape, DType dtype, Device device) {
  return host::empty(shape, dtype, device);
}
HostHandle CpuOps::bool_empty(const Shape& shape, Device device) {
  return host::empty(shape, DType::boolean, device);
}
HostHandle CpuOps::float_full(const Shape& shape, Scalar value, DType dtype, Device device) {
  return full(shape, value, dtype, device);
}
HostHandle CpuOps::int_full(const Shape& shape, Scalar value, DType dtype, Device device) {
  return full(shape, value, dtype, device);
}
HostHandle CpuOps::bool_full(const Shape& shape, bool value, Device device) {
  return full(shape, value, DType::boolean, device);
}
void CpuOps::float_fill(Arg<HostHandle> x, Scalar value) { fill_in_place(x, value); }
void CpuOps::int_fill(Arg<HostHandle> x, Scalar value) { fill_in_place(x, value); }
void CpuOps::bool_fill(Arg<HostHandle> x, Scalar value) { fill_in_place(x, value); }

HostHandle CpuOps::float_arange(double start, double step, int64_t count, DType dtype,
                                Device device) {
  HostHandle out = host::empty(Shape{count}, dtype, device);
  visit_float("arange", dtype, [&]<class T>() {
    T* values = out->data_as<T>();
    parallel_for(count, kGrain, [&](int64_t begin, int64_t end) {
      const auto first = static_cast<double>(begin);
      if constexpr (std::is_same_v<T, float>) {
        cpu::line_kernels().f32(values + begin, end - begin, first, start, step);
      } else if constexpr (std::is_same_v<T, double>) {
        cpu::line_kernels().f64(values + begin, end - begin, first, start, step);
      } else {
        // 32-bit counters, which become double in vectors; their sum with `first` is exact.
        const auto n = static_cast<int32_t>(end - begin);
        for (int32_t k = 0; k < n; ++k) {
          const double i = first + static_cast<double>(k);
          values[begin + k] = convert_element<T>(start + i * step);
        }
      }
    });
  });
  return out;
}
HostHandle CpuOps::int_arange(int64_t start, int64_t step, int64_t count, DType dtype,
                              Device device) {
  HostHandle out = host::empty(Shape{count}, dtype, device);
  visit_int("arange", dtype, [&]<class T>() {
    T* values = out->data_as<T>();
    parallel_for(count, kGrain, [&](int64_t begin, int64_t end) {
      // Unsigned, so that a value past the end wraps.
      const auto value = [=](int64_t i) {
        return static_cast<T>(static_cast<uint64_t>(start) +
                              static_cast<uint64_t>(i) * static_cast<uint64_t>(step));
      };
      if constexpr (std::is_same_v<T, int64_t>) {
        cpu::line_kernels().i64(values + begin, end - begin, value(begin), step);
      } else if constexpr (std::is_same_v<T, int32_t>) {
        cpu::line_kernels().i32(values + begin, end - begin, value(begin),
                                static_cast<int32_t>(step));
      } else {
        for (int64_t i = begin; i < end; ++i) values[i] = value(i);
      }
    });
  });
  return out;
}

// All Cpu devices are the same memory.
HostHandle CpuOps::float_to_device(Arg<HostHandle> x, Device) { return x.take(); }
HostHandle CpuOps::int_to_device(Arg<HostHandle> x, Device) { return x.take(); }
HostHandle CpuOps::bool_to_device(Arg<HostHandle> x, Device) { return x.take(); }

HostHandle CpuOps::float_permute(Arg<HostHandle> x, const Dims& dims) {
  return host::permute(x, dims);
}
HostHandle CpuOps::int_permute(Arg<HostHandle> x, const Dims& dims) {
  return host::permute(x, dims);
}
HostHandle CpuOps::bool_permute(Arg<HostHandle> x, const Dims& dims) {
  return host::permute(x, dims);
}
HostHandle CpuOps::float_expand(Arg<HostHandle> x, const Shape& shape) {
  return host::expand(x, shape);
}
HostHandle CpuOps::int_expand(Arg<HostHandle> x, const Shape& shape) {
  return host::expand(x, shape);
}
HostHandle CpuOps::bool_expand(Arg<HostHandle> x, const Shape& shape) {
  return host::expand(x, shape);
}
HostHandle CpuOps::float_slice(Arg<HostHandle> x, int dim, Range range) {
  return host::slice(x, dim, range);
}
HostHandle CpuOps::int_slice(Arg<HostHandle> x, int dim, Range range) {
  return host::slice(x, dim, range);
}
HostHandle CpuOps::bool_slice(Arg<HostHandle> x, int dim, Range range) {
  return host::slice(x, dim, range);
}

}  // namespace kiln
