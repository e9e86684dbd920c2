// MetaTensor: a strided window on memory that is not there. The tensor primitive of the Meta
// backend.
#pragma once

#include <atomic>
#include <initializer_list>

#include "kiln/backend/layout.h"
#include "kiln/backend/options.h"
#include "kiln/backend/tensor_base.h"

namespace kiln {

// The device type of the Meta backend.
inline constexpr DeviceType kMeta = 2;

// What views share in place of memory: an identity, the number of elements that the memory would
// hold, and how often it was written.
class MetaStorage final : public RefCounted, public Pooled {
 public:
  explicit MetaStorage(int64_t bytes, Handle<MetaStorage> root = {})
      : bytes_(bytes), root_(std::move(root)) {}
  // The same memory, with a version of its own (Storage::alias).
  static Handle<MetaStorage> alias(const Handle<MetaStorage>& of) {
    return make_handle<MetaStorage>(of->bytes_, of->root_ ? of->root_ : of);
  }
  const MetaStorage& root() const { return root_ ? *root_ : *this; }

  int64_t bytes() const { return bytes_; }
  uint32_t version() const { return version_.load(std::memory_order_relaxed); }
  void bump_version() { version_.fetch_add(1, std::memory_order_relaxed); }

 private:
  int64_t bytes_;
  std::atomic<uint32_t> version_{0};
  Handle<MetaStorage> root_;  // what this is an alias of, or null
};

class MetaTensor final : public TensorBase {
 public:
  MetaTensor(const Shape& shape, DType dtype, Device device, const Strides& strides, int64_t offset,
             Handle<MetaStorage> storage)
      : TensorBase(shape, dtype, device),
        strides_(strides),
        offset_(offset),
        storage_(std::move(storage)) {}

  const Strides& strides() const { return strides_; }
  int64_t offset() const { return offset_; }
  const Handle<MetaStorage>& storage() const { return storage_; }
  bool is_contiguous() const { return kiln::is_contiguous(shape(), strides_); }

 private:
  Strides strides_;
  int64_t offset_;
  Handle<MetaStorage> storage_;
};

using MetaHandle = Handle<MetaTensor>;

class MetaQuantized final : public TensorBase {
 public:
  MetaQuantized(MetaHandle values, MetaHandle scales, const QuantScheme& scheme, const Shape& shape)
      : TensorBase(shape, DType::q8, values->device()),
        values_(std::move(values)),
        scales_(std::move(scales)),
        scheme_(scheme) {}
  const MetaHandle& values() const { return values_; }
  const MetaHandle& scales() const { return scales_; }
  const QuantScheme& scheme() const { return scheme_; }

 private:
  MetaHandle values_;
  MetaHandle scales_;
  QuantScheme scheme_;
};

using MetaQuantizedHandle = Handle<MetaQuantized>;

namespace meta {

// A row-major tensor of its own. Throws ValueError where the bytes do not fit 63 bits.
MetaHandle fresh(const Shape& shape, DType dtype, Device device);
// A tensor of its own that lies as the result of an elementwise op on the operands.
MetaHandle fresh_as(const Shape& shape, DType dtype, std::initializer_list<MetaHandle> operands);
// Another window on x's storage.
MetaHandle view(const MetaHandle& x, const Shape& shape, const Strides& strides, int64_t offset);

// Throws NotImplementedError: a meta tensor has no values.
[[noreturn]] void throw_no_values(const char* op);

}  // namespace meta

// Found by argument-dependent lookup (window_math.h).
inline MetaHandle view(const MetaHandle& x, const Shape& shape, const Strides& strides,
                       int64_t offset) {
  return meta::view(x, shape, strides, offset);
}

}  // namespace kiln
