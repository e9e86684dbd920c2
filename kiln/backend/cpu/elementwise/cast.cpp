// Conversion between dtypes.
#include <algorithm>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise.h"
#include "kiln/backend/cpu/elementwise/cast_kernels.h"
#include "kiln/backend/cpu/elementwise/convert_kernels.h"
#include "kiln/core/convert.h"

namespace kiln {
namespace cpu {
namespace {

// Of the types that cast_kernels() leaves out.
template <class To, class From>
void cast_loop(const KernelArgs& args) {
  const auto* from = static_cast<const From*>(args.in[0]);
  auto* to = static_cast<To*>(args.out);
  const int64_t step = args.scalars != 0 ? 0 : 1;
  for (int64_t i = 0; i < args.n; ++i) to[i] = convert_element<To>(from[i * step]);
}

// The number of a type in cast_kernels(), or -1.
int place_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 0;
    case DType::f32:
    case DType::f16:
    case DType::bf16:
      return 1;
    case DType::i64:
      return 2;
    case DType::i32:
      return 3;
    case DType::u8:
    case DType::boolean:
      return 4;
    default:
      return -1;
  }
}

// 16-bit floats as they are, to float and back.
template <Convert kType>
void widen(const KernelArgs& args) {
  auto* to = static_cast<float*>(args.out);
  if (args.scalars == 0) return convert_kernels().to_float(kType, args.in[0], to, args.n);
  float value;
  convert_kernels().to_float(kType, args.in[0], &value, 1);
  std::fill_n(to, args.n, value);
}
template <Convert kType>
void narrow(const KernelArgs& args) {
  const auto* from = static_cast<const float*>(args.in[0]);
  if (args.scalars == 0) return convert_kernels().from_float(kType, from, args.out, args.n);
  uint16_t value;
  convert_kernels().from_float(kType, from, &value, 1);
  std::fill_n(static_cast<uint16_t*>(args.out), args.n, value);
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
  const int row = place_of(from), column = place_of(to);
  if (row >= 0 && column >= 0 && row != column) return cast_kernels().kernels[row][column];
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

ElementwiseOp cast_op(DType from, DType to) {
  const Convert source = convert_of(from), target = convert_of(to);
  if (to == DType::f32 && source != Convert::none) {
    return {source == Convert::f16 ? widen<Convert::f16> : widen<Convert::bf16>, 1, nullptr, false,
            /*raw=*/true};
  }
  if (from == DType::f32 && target != Convert::none) {
    return {target == Convert::f16 ? narrow<Convert::f16> : narrow<Convert::bf16>, 1, nullptr,
            false, /*raw=*/true};
  }
  return {cast_kernel(from, to), 1};
}

HostHandle cast(const Arg<HostHandle>& x, DType dtype) {
  if (x->dtype() == dtype) return x.take();
  if (dtype == DType::boolean) {
    return is_floating_point(x->dtype()) ? Cpu::float_not_equal_scalar(x, Scalar(0.0))
                                         : Cpu::int_not_equal_scalar(x, Scalar(0));
  }
  HostHandle out = host::empty_as(x->shape(), dtype, x->device(), *x.get());
  const HostTensor* inputs[] = {x.get().get()};
  run_elementwise(cast_op(x->dtype(), dtype), *out, inputs, /*fresh=*/true);
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
