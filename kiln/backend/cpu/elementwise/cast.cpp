// Conversion between dtypes.
#include <algorithm>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise.h"
#include "kiln/backend/cpu/elementwise/cast_kernels.h"
#include "kiln/backend/cpu/elementwise/convert_kernels.h"

namespace kiln {
namespace cpu {
namespace {

// The number of a type in cast_kernels(): the engine converts 16-bit floats, and bool reads as u8
// and is 0 or 1.
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
    case DType::i16:
      return 4;
    case DType::i8:
      return 5;
    case DType::u8:
    case DType::boolean:
      return 6;
    default:
      throw_unsupported_dtype("cast", dtype);
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
  return {cast_kernels().kernels[place_of(from)][place_of(to)], 1};
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
