// HostTensor: a strided view of host memory. The tensor primitive of the Cpu and Reference
// backends; a backend that keeps its values in host memory may use it too.
#pragma once

#include "kiln/backend/arg.h"
#include "kiln/backend/options.h"
#include "kiln/backend/tensor_base.h"
#include "kiln/core/slice.h"
#include "kiln/core/storage.h"
#include "kiln/core/tensor_data.h"

namespace kiln {

class HostTensor final : public TensorBase {
 public:
  HostTensor(const Shape& shape, DType dtype, Device device, const Strides& strides, int64_t offset,
             Handle<Storage> storage)
      : TensorBase(shape, dtype, device),
        strides_(strides),
        offset_(offset),
        storage_(std::move(storage)) {}

  const Strides& strides() const { return strides_; }  // in elements; 0 where a dim is expanded
  int64_t offset() const { return offset_; }           // in elements
  const Handle<Storage>& storage() const { return storage_; }
  // Whether nobody else can see the memory.
  bool owns_memory() const { return storage_.unique() && storage_->is_own(); }
  uint32_t version() const { return storage_->version(); }
  int64_t numel() const { return shape().numel(); }
  bool is_contiguous() const { return kiln::is_contiguous(shape(), strides_); }

  // The first element.
  void* data() const {
    return static_cast<char*>(storage_->data()) + offset_ * static_cast<int64_t>(size_of(dtype()));
  }
  template <class T>
  T* data_as() const {
    return static_cast<T*>(data());
  }

 private:
  Strides strides_;
  int64_t offset_;
  Handle<Storage> storage_;
};

using HostHandle = Handle<HostTensor>;

// A quantized tensor; QuantLayout says what its parts look like.
class HostQuantized final : public TensorBase {
 public:
  HostQuantized(HostHandle values, HostHandle scales, const QuantScheme& scheme, const Shape& shape)
      : TensorBase(shape, DType::q8, values->device()),
        values_(std::move(values)),
        scales_(std::move(scales)),
        scheme_(scheme) {}
  const HostHandle& values() const { return values_; }
  const HostHandle& scales() const { return scales_; }
  const QuantScheme& scheme() const { return scheme_; }

 private:
  HostHandle values_;
  HostHandle scales_;
  QuantScheme scheme_;
};

using QuantizedHandle = Handle<HostQuantized>;

namespace host {

// Fresh row-major memory.
HostHandle empty(const Shape& shape, DType dtype, Device device);
// Fresh memory for the result of an elementwise op on those operands (null where there is none),
// which broadcast to the shape: it lies as they do (result_layout.h).
HostHandle empty_as(const Shape& shape, DType dtype, Device device, const HostTensor& x,
                    const HostTensor* y = nullptr, const HostTensor* z = nullptr);
// x's memory, as a tensor whose writes x's version does not count, nor that one's x's.
HostHandle own_version(const HostHandle& x);
// Another view of the same storage.
HostHandle view(const HostHandle& x, const Shape& shape, const Strides& strides, int64_t offset);

HostHandle from_data(const TensorData& data, Device device);  // copies
TensorData into_data(const HostHandle& x);  // shares when contiguous and alone, else copies

// Shape ops that need no kernel: they return views.
HostHandle permute(const HostHandle& x, const Dims& dims);
HostHandle expand(const HostHandle& x, const Shape& shape);
HostHandle slice(const HostHandle& x, int dim, Range range);
// A view with the new shape where x's strides allow one, else null.
HostHandle try_reshape(const HostHandle& x, const Shape& shape);
// The strides that x has when read in the broadcast shape `to`.
Strides broadcast_strides(const HostTensor& x, const Shape& to);

// Whether a result may take over x's memory: x was donated, is its storage's only holder, is
// row-major from offset 0 and fits shape and dtype.
bool can_donate(const Arg<HostHandle>& x, const Shape& shape, DType dtype);
// Whether the two views might share an element (exact for different storages, else by their
// extents).
bool may_overlap(const HostTensor& a, const HostTensor& b);

// What backends over HostTensor answer for the Backend concept.
struct Metadata {
  static const Shape& shape(const HostHandle& x) { return x->shape(); }
  static DType dtype(const HostHandle& x) { return x->dtype(); }
  static Device device(const HostHandle& x) { return x->device(); }
  static uint32_t version(const HostHandle& x) { return x->version(); }
  static HostHandle own_version(const HostHandle& x) { return host::own_version(x); }
  // Whether nobody else can see x's memory, and it is row-major.
  static bool owns_memory(const HostHandle& x) {
    return x.unique() && x->owns_memory() && x->is_contiguous();
  }
  static const Shape& shape(const QuantizedHandle& x) { return x->shape(); }
  static DType dtype(const QuantizedHandle& x) { return x->dtype(); }
  static Device device(const QuantizedHandle& x) { return x->device(); }
};

}  // namespace host
}  // namespace kiln
