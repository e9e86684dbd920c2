// Quantized tensors: int8 values with one scale.
#include <algorithm>
#include <cmath>

#include "kiln/backend/reference/elements.h"

namespace kiln {

using reference::make;
using reference::Ops;
using reference::read;
using reference::Tensor;

QuantizedHandle Ops::q_from_data(const TensorData& data, double scale, Device device) {
  const TensorData values(data.shape(), DType::i8, data.storage(), data.byte_offset());
  return make_handle<HostQuantized>(host::from_data(values, device), scale);
}

TensorData Ops::q_into_data(Arg<QuantizedHandle> x) {
  const HostHandle second_holder = x->values();  // so that the data is a copy
  return host::into_data(second_holder);
}

double Ops::q_scale(Arg<QuantizedHandle> x) { return x->scale(); }

QuantizedHandle Ops::q_reshape(Arg<QuantizedHandle> x, const Shape& shape) {
  return make_handle<HostQuantized>(int_reshape(x->values(), shape), x->scale());
}

QuantizedHandle Ops::float_quantize(Tensor x, QuantScheme scheme) {
  const std::vector<double> values = read<double>(x);
  double scale = scheme.scale;
  if (scale == 0.0) {
    for (double value : values) scale = std::max(scale, std::abs(value) / 127.0);
    if (scale == 0.0) scale = 1.0;  // all zeros: any scale will do
  }
  std::vector<double> quantized;
  for (double value : values) {
    quantized.push_back(std::clamp(std::nearbyint(value / scale), -127.0, 127.0));
  }
  return make_handle<HostQuantized>(make(x->shape(), DType::i8, x->device(), quantized), scale);
}

HostHandle Ops::q_dequantize(Arg<QuantizedHandle> x, DType dtype) {
  std::vector<double> values = read<double>(x->values());
  for (double& value : values) value *= x->scale();
  return make(x->shape(), dtype, x->device(), values);
}

}  // namespace kiln
