#include "kiln/backend/host_tensor.h"

#include <cstring>
#include <limits>

#include "kiln/backend/host_destination.h"
#include "kiln/backend/result_layout.h"
#include "kiln/backend/window_math.h"
#include "kiln/core/portable.h"

namespace kiln {

// Found by argument-dependent lookup (window_math.h).
static HostHandle view(const HostHandle& x, const Shape& shape, const Strides& strides,
                       int64_t offset) {
  return host::view(x, shape, strides, offset);
}

}  // namespace kiln

namespace kiln::host {

namespace {
constinit thread_local HostTensor* destination = nullptr;
}

Destination::Destination(HostTensor* x) : before_(std::exchange(destination, x)) {}
Destination::~Destination() { destination = before_; }

namespace {

HostHandle empty_strided(const Shape& shape, const Strides& strides, DType dtype, Device device) {
  if (destination != nullptr && destination->dtype() == dtype && destination->shape() == shape &&
      destination->device() == device) [[unlikely]] {
    return HostHandle::share(std::exchange(destination, nullptr));
  }
  // An expanded operand can ask for a result of any size: a product that wraps must not look small.
  uint64_t bytes = size_of(dtype);
  bool too_large = false;
  for (int64_t size : shape) {
    too_large = __builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes) || too_large;
  }
  if (too_large && !shape.contains(0)) bytes = std::numeric_limits<uint64_t>::max();
  // Throws when too large.
  Handle<Storage> storage = Storage::allocate(detail::memory_size(bytes));
  return make_handle<HostTensor>(shape, dtype, device, strides, 0, std::move(storage));
}

Lying lying(const HostTensor& x) { return {&x.shape(), &x.strides()}; }

}  // namespace

HostHandle empty(const Shape& shape, DType dtype, Device device) {
  return empty_strided(shape, contiguous_strides(shape), dtype, device);
}

HostHandle empty_as(const Shape& shape, DType dtype, Device device, const HostTensor& x,
                    const HostTensor* y, const HostTensor* z) {
  if (x.is_contiguous() && x.shape() == shape) [[likely]]
    return empty(shape, dtype, device);
  // One that is absent says what the first one says.
  return empty_strided(
      shape,
      result_strides(shape, {lying(x), lying(y == nullptr ? x : *y), lying(z == nullptr ? x : *z)}),
      dtype, device);
}

HostHandle view(const HostHandle& x, const Shape& shape, const Strides& strides, int64_t offset) {
  return make_handle<HostTensor>(shape, x->dtype(), x->device(), strides, offset, x->storage());
}

HostHandle own_version(const HostHandle& x) {
  return make_handle<HostTensor>(x->shape(), x->dtype(), x->device(), x->strides(), x->offset(),
                                 Storage::alias(x->storage()));
}

HostHandle from_data(const TensorData& data, Device device) {
  HostHandle out = empty(data.shape(), data.dtype(), device);
  if (data.bytes() != 0) std::memcpy(out->data(), data.data(), data.bytes());
  return out;
}

namespace {

template <class T>
void copy_strided(const T* from, T* to, const Shape& shape, const Strides& strides) {
  const int rank = shape.rank();
  const int64_t inner = rank == 0 ? 1 : shape[rank - 1];
  const int64_t step = rank == 0 ? 0 : strides[rank - 1];
  const int64_t outer = inner == 0 ? 0 : shape.numel() / inner;
  Shape index = Shape::filled(rank, 0);
  const T* row = from;
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) *to++ = row[i * step];
    for (int d = rank - 2; d >= 0; --d) {
      row += strides[d];
      if (++index[d] < shape[d]) break;
      row -= strides[d] * shape[d];
      index[d] = 0;
    }
  }
}

}  // namespace

TensorData into_data(const HostHandle& x) {
  if (x->numel() > 0 && x.unique() && x->owns_memory() && x->is_contiguous()) {
    return TensorData(x->shape(), x->dtype(), x->storage(),
                      static_cast<size_t>(x->offset()) * size_of(x->dtype()));
  }
  TensorData out(x->shape(), x->dtype());
  if (x->numel() == 0) return out;
  if (x->is_contiguous()) {
    std::memcpy(out.mutable_data(), x->data(), out.bytes());
    return out;
  }
  void* to = out.mutable_data();
  switch (size_of(x->dtype())) {
    case 1:
      copy_strided(x->data_as<const uint8_t>(), static_cast<uint8_t*>(to), x->shape(),
                   x->strides());
      break;
    case 2:
      copy_strided(x->data_as<const uint16_t>(), static_cast<uint16_t*>(to), x->shape(),
                   x->strides());
      break;
    case 4:
      copy_strided(x->data_as<const uint32_t>(), static_cast<uint32_t*>(to), x->shape(),
                   x->strides());
      break;
    default:
      copy_strided(x->data_as<const uint64_t>(), static_cast<uint64_t*>(to), x->shape(),
                   x->strides());
  }
  return out;
}

HostHandle permute(const HostHandle& x, const Dims& dims) { return window::permute(x, dims); }
Strides broadcast_strides(const HostTensor& x, const Shape& to) {
  return window::broadcast_strides(x, to);
}
HostHandle expand(const HostHandle& x, const Shape& shape) { return window::expand(x, shape); }
HostHandle slice(const HostHandle& x, int dim, Range range) { return window::slice(x, dim, range); }
HostHandle try_reshape(const HostHandle& x, const Shape& shape) {
  return window::try_reshape(x, shape);
}

bool can_donate(const Arg<HostHandle>& x, const Shape& shape, DType dtype) {
  return x.is_donated() && x->dtype() == dtype && x.get().unique() && x->owns_memory() &&
         x->shape() == shape && x->offset() == 0 && x->is_contiguous();
}

bool may_overlap(const HostTensor& a, const HostTensor& b) { return window::may_overlap(a, b); }

}  // namespace kiln::host
