// Symmetric quantization to int8: value = scale * q, q in [-127, 127].
#include <algorithm>
#include <cmath>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise.h"
#include "kiln/core/convert.h"

namespace kiln {
namespace cpu {
namespace {

double scale_of(const HostHandle& x) {
  if (x->numel() == 0) return 1.0;  // nothing, or zeros only: any scale will do
  const Dims all = all_dims(x->shape().rank());
  const HostHandle largest =
      Cpu::float_cast(Cpu::float_amax(Cpu::float_abs(x), all, false), DType::f64);
  const double most = *largest->data_as<const double>();
  return most > 0.0 ? most / 127.0 : 1.0;
}

}  // namespace
}  // namespace cpu

QuantizedHandle CpuBasic::float_quantize(Arg<HostHandle> x, QuantScheme scheme) {
  const double scale = scheme.scale > 0.0 ? scheme.scale : cpu::scale_of(x);
  HostHandle values = host::empty(x->shape(), DType::i8, x->device());
  const HostHandle source = cpu::contiguous(x);
  auto* to = values->data_as<int8_t>();
  visit_float("quantize", source->dtype(), [&]<class T>() {
    const T* from = source->data_as<const T>();
    parallel_for(source->numel(), kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const double q = std::nearbyint(convert_element<double>(from[i]) / scale);
        to[i] = q != q ? int8_t{0} : static_cast<int8_t>(std::clamp(q, -127.0, 127.0));
      }
    });
  });
  return make_handle<HostQuantized>(std::move(values), scale);
}

HostHandle CpuBasic::q_dequantize(Arg<QuantizedHandle> x, DType dtype) {
  const HostHandle wide = int_into_float(x->values(), dtype == DType::f64 ? dtype : DType::f32);
  return float_cast(float_mul_scalar(wide, x->scale()), dtype);
}

QuantizedHandle CpuBasic::q_from_data(const TensorData& data, double scale, Device device) {
  const TensorData values(data.shape(), DType::i8, data.storage(), data.byte_offset());
  return make_handle<HostQuantized>(host::from_data(values, device), scale);
}
TensorData CpuBasic::q_into_data(Arg<QuantizedHandle> x) {
  const HostHandle second_holder = x->values();  // so that the data is a copy
  return host::into_data(second_holder);
}
double CpuBasic::q_scale(Arg<QuantizedHandle> x) { return x->scale(); }
QuantizedHandle CpuBasic::q_reshape(Arg<QuantizedHandle> x, const Shape& shape) {
  return make_handle<HostQuantized>(int_reshape(x->values(), shape), x->scale());
}

}  // namespace kiln
