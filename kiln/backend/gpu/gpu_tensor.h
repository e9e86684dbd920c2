// GpuTensor: a strided window on a block of a GPU's memory.
#pragma once

#include "kiln/backend/arg.h"
#include "kiln/backend/gpu/device.h"
#include "kiln/backend/layout.h"
#include "kiln/backend/options.h"
#include "kiln/backend/tensor_base.h"
#include "kiln/core/tensor_data.h"

namespace kiln::gpu {

class GpuTensor final : public TensorBase {
 public:
  GpuTensor(const Shape& shape, DType dtype, Device device, const Strides& strides, int64_t offset,
            Handle<Buffer> storage)
      : TensorBase(shape, dtype, device),
        strides_(strides),
        offset_(offset),
        storage_(std::move(storage)) {}

  const Strides& strides() const { return strides_; }  // in elements; 0 where a dim is expanded
  int64_t offset() const { return offset_; }           // in elements
  const Handle<Buffer>& storage() const { return storage_; }
  GpuDevice& gpu() const { return storage_->device(); }
  int64_t numel() const { return shape().numel(); }
  bool is_contiguous() const { return kiln::is_contiguous(shape(), strides_); }

 private:
  Strides strides_;
  int64_t offset_;
  Handle<Buffer> storage_;
};

using H = Handle<GpuTensor>;

// Found by argument-dependent lookup (window_math.h).
inline H view(const H& x, const Shape& shape, const Strides& strides, int64_t offset) {
  return make_handle<GpuTensor>(shape, x->dtype(), x->device(), strides, offset, x->storage());
}

// A quantized tensor; QuantLayout says what its parts look like.
class GpuQuantized final : public TensorBase {
 public:
  GpuQuantized(H values, H scales, const QuantScheme& scheme, const Shape& shape)
      : TensorBase(shape, DType::q8, values->device()),
        values_(std::move(values)),
        scales_(std::move(scales)),
        scheme_(scheme) {}
  const H& values() const { return values_; }
  const H& scales() const { return scales_; }
  const QuantScheme& scheme() const { return scheme_; }

 private:
  H values_;
  H scales_;
  QuantScheme scheme_;
};
using Q = Handle<GpuQuantized>;

// Fresh memory, row-major or channels last. Throws DTypeError for f64 on a device that has none.
H empty(const Shape& shape, DType dtype, Device device, bool last = false);
H from_data(const TensorData& data, Device device);
// Waits for the device.
TensorData into_data(const H& x);
H contiguous(const H& x);
// In that order from the beginning of its memory on; a copy where it is not.
H packed(const H& x, bool last = false);

// Note [Channels last]: images [N, C, ..] of 4 or 5 dims may lie in memory as [N, .., C].
// Elementwise ops, convolutions, batch normalization and pools then give such results too; all else
// gives row-major ones. A tensor that lies in both ways (one channel, or planes of one element)
// counts as row-major.
bool is_channels_last(const GpuTensor& x);

// For a kernel: the beginning of x's memory.
inline Argument memory_of(const H& x) { return Argument::memory(x->storage()->memory()); }
void assign(const H& x, const H& value);

}  // namespace kiln::gpu
