#include "kiln/backend/gpu/gpu_tensor.h"

#include <limits>

#include "kiln/backend/gpu/loops.h"
#include "kiln/backend/window_math.h"

namespace kiln::gpu {

namespace {

Strides strides_of(const Shape& shape, bool last) {
  Strides strides = contiguous_strides(shape);
  if (!last) return strides;
  int64_t step = shape[1];
  strides[1] = 1;
  for (int d = shape.rank() - 1; d > 1; --d) {
    strides[d] = step;
    step *= shape[d];
  }
  strides[0] = step;
  return strides;
}

bool lies_channels_last(const GpuTensor& x) {
  const Shape& shape = x.shape();
  const Strides& strides = x.strides();
  if (shape[1] != 1 && strides[1] != 1) return false;
  int64_t step = shape[1];
  for (int d = shape.rank() - 1; d >= 0; --d) {
    if (d == 1) continue;
    if (shape[d] != 1 && strides[d] != step) return false;
    step *= shape[d];
  }
  return true;
}

}  // namespace

H empty(const Shape& shape, DType dtype, Device device, bool last) {
  GpuDevice& gpu = GpuDevice::of(device);
  if (dtype == DType::f64 && !gpu.properties().has_f64) {
    throw_error<DTypeError>(gpu.runtime_name(), ": ", gpu.properties().name,
                            " computes no float64; expected float32, float16 or bfloat16");
  }
  // An expanded operand can ask for a result of any size: a product that wraps must not look small.
  size_t bytes = size_of(dtype);
  bool too_large = false;
  for (int64_t size : shape) {
    too_large = __builtin_mul_overflow(bytes, static_cast<size_t>(size), &bytes) || too_large;
  }
  if (too_large && !shape.contains(0)) bytes = std::numeric_limits<size_t>::max();
  return make_handle<GpuTensor>(shape, dtype, device, strides_of(shape, last), 0,
                                gpu.allocate(bytes));
}

bool is_channels_last(const GpuTensor& x) {
  const int rank = x.shape().rank();
  return (rank == 4 || rank == 5) && lies_channels_last(x) && !x.is_contiguous();
}

H from_data(const TensorData& data, Device device) {
  H out = empty(data.shape(), data.dtype(), device);
  if (data.bytes() != 0) out->gpu().write(*out->storage(), data.data(), data.bytes());
  return out;
}

TensorData into_data(const H& x) {
  TensorData out(x->shape(), x->dtype());
  if (x->numel() == 0) {
    x->gpu().synchronize();
    return out;
  }
  const H rows = contiguous(x);
  const size_t offset = static_cast<size_t>(rows->offset()) * size_of(x->dtype());
  x->gpu().read(*rows->storage(), offset, out.mutable_data(), out.bytes(), x->numel() > 1);
  return out;
}

H contiguous(const H& x) {
  if (x->is_contiguous()) return x;
  H out = empty(x->shape(), x->dtype(), x->device());
  copy_elements(out, x);
  return out;
}

H packed(const H& x, bool last) {
  const bool is_packed = last ? lies_channels_last(*x) : x->is_contiguous();
  if (is_packed && x->offset() == 0) return x;
  H out = empty(x->shape(), x->dtype(), x->device(), last);
  copy_elements(out, x);
  return out;
}

void assign(const H& x, const H& value) {
  if (x->numel() != 0) {
    if (window::may_overlap(*x, *value)) {
      H copy = empty(value->shape(), value->dtype(), value->device());
      copy_elements(copy, value);
      copy_elements(x, copy);
    } else {
      copy_elements(x, value);
    }
  }
  x->storage()->bump_version();
}

}  // namespace kiln::gpu
