// Conversion between dtypes.
#include <limits>
#include <type_traits>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise.h"
#include "kiln/backend/cpu/elementwise/convert_kernels.h"
#include "kiln/core/convert.h"

namespace kiln {
namespace cpu {
namespace {

// Blocks of numbers that are all in range need no test for each: what the tests cost is more than
// the conversion.
template <class To, class From>
void truncate(const From* from, To* to, int64_t n) {
  constexpr int64_t kBlock = 64;
  constexpr From above = static_cast<From>(std::numeric_limits<To>::max() / 2 + 1) * From(2);
  constexpr From lowest = static_cast<From>(std::numeric_limits<To>::min());
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    int outside = 0;
    for (int64_t k = i; k < i + kBlock; ++k) {
      outside += static_cast<int>(!(from[k] < above)) + static_cast<int>(!(from[k] >= lowest));
    }
    if (outside == 0) {
      for (int64_t k = i; k < i + kBlock; ++k) to[k] = static_cast<To>(from[k]);
    } else {
      for (int64_t k = i; k < i + kBlock; ++k) to[k] = convert_element<To>(from[k]);
    }
  }
  for (; i < n; ++i) to[i] = convert_element<To>(from[i]);
}

template <class To, class From>
void cast_loop(const KernelArgs& args) {
  const auto* from = static_cast<const From*>(args.in[0]);
  auto* to = static_cast<To*>(args.out);
  if (args.scalars != 0) {
    const To value = convert_element<To>(from[0]);
    for (int64_t i = 0; i < args.n; ++i) to[i] = value;
    return;
  }
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> &&
                !std::is_same_v<To, bool>) {
    return truncate(from, to, args.n);
  }
  if constexpr (std::is_same_v<From, int64_t> && std::is_same_v<To, float>) {
    return convert_kernels().i64_to_f32(from, to, args.n);
  }
  for (int64_t i = 0; i < args.n; ++i) to[i] = convert_element<To>(from[i]);
}

// For pairs of a 16-bit float: kernel is float's, the engine converts. bool reads as u8 and is 0
// or 1.
template <class To>
Kernel cast_from(DType from) {
  switch (from) {
    case DType::f64:
      return cast_loop<To, double>;
    case DType::f32:
    case DType::f16:
    case DType::bf16:
      return cast_loop<To, float>;
    case DType::i64:
      return cast_loop<To, int64_t>;
    case DType::i32:
      return cast_loop<To, int32_t>;
    case DType::i16:
      return cast_loop<To, int16_t>;
    case DType::i8:
      return cast_loop<To, int8_t>;
    case DType::u8:
    case DType::boolean:
      return cast_loop<To, uint8_t>;
    default:
      throw_unsupported_dtype("cast", from);
  }
}

Kernel cast_kernel(DType from, DType to) {
  switch (to) {
    case DType::f64:
      return cast_from<double>(from);
    case DType::f32:
    case DType::f16:
    case DType::bf16:
      return cast_from<float>(from);
    case DType::i64:
      return cast_from<int64_t>(from);
    case DType::i32:
      return cast_from<int32_t>(from);
    case DType::i16:
      return cast_from<int16_t>(from);
    case DType::i8:
      return cast_from<int8_t>(from);
    case DType::u8:
      return cast_from<uint8_t>(from);
    default:
      throw_unsupported_dtype("cast", to);
  }
}

HostHandle cast(const Arg<HostHandle>& x, DType dtype) {
  if (x->dtype() == dtype) return x.take();
  if (dtype == DType::boolean) {
    return is_floating_point(x->dtype()) ? Cpu::float_not_equal_scalar(x, Scalar(0.0))
                                         : Cpu::int_not_equal_scalar(x, Scalar(0));
  }
  HostHandle out = host::empty(x->shape(), dtype, x->device());
  const HostTensor* inputs[] = {x.get().get()};
  run_elementwise({cast_kernel(x->dtype(), dtype), 1}, *out, inputs, /*fresh=*/true);
  return out;
}

}  // namespace
}  // namespace cpu

using cpu::cast;

HostHandle CpuOps::float_cast(Arg<HostHandle> x, DType dtype) { return cast(x, dtype); }
HostHandle CpuOps::float_into_int(Arg<HostHandle> x, DType dtype) { return cast(x, dtype); }
HostHandle CpuOps::float_into_bool(Arg<HostHandle> x) { return cast(x, DType::boolean); }
HostHandle CpuOps::int_cast(Arg<HostHandle> x, DType dtype) { return cast(x, dtype); }
HostHandle CpuOps::int_into_float(Arg<HostHandle> x, DType dtype) { return cast(x, dtype); }
HostHandle CpuOps::int_into_bool(Arg<HostHandle> x) { return cast(x, DType::boolean); }
HostHandle CpuOps::bool_into_float(Arg<HostHandle> x, DType dtype) { return cast(x, dtype); }
HostHandle CpuOps::bool_into_int(Arg<HostHandle> x, DType dtype) { return cast(x, dtype); }

}  // namespace kiln
