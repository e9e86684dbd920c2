#include "kiln/tensor/host_memory.h"

#include "kiln/backend/host_tensor.h"
#include "kiln/graph/capture.h"
#include "kiln/tensor/complex/complex_impl.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln {

namespace {

// One past the last element that the view reaches, or nothing when that overflows.
std::optional<int64_t> end_of(const Shape& shape, const Strides& stride, int64_t offset) {
  int64_t last = offset;
  for (int i = 0; i < shape.rank(); ++i) {
    int64_t reach = 0;
    if (shape[i] == 0) return offset;
    if (stride[i] < 0 || __builtin_mul_overflow(shape[i] - 1, stride[i], &reach) ||
        __builtin_add_overflow(last, reach, &last)) {
      return std::nullopt;
    }
  }
  if (__builtin_add_overflow(last, int64_t{1}, &last)) return std::nullopt;
  return last;
}

}  // namespace

Tensor tensor_over(Handle<Storage> storage, DType dtype, const Shape& shape, const Strides& stride,
                   int64_t offset) {
  constexpr const char* kOp = "tensor_over";
  if (kind_of(dtype) == Kind::quantized) {
    detail::throw_wrong_dtype(kOp, dtype, "a dtype that is not quantized");
  }
  checked_numel(kOp, shape);
  const int64_t held =
      storage ? static_cast<int64_t>(storage->bytes() / size_of(dtype)) : int64_t{0};
  const std::optional<int64_t> end = end_of(shape, stride, offset);
  if (!storage || stride.rank() != shape.rank() || offset < 0 || !end || *end > held) {
    throw_error<ValueError>(kOp, ": the view does not lie in the storage; got shape ", shape,
                            ", stride ", stride, " and offset ", offset, " over ", held,
                            " elements; expected one stride for each dim, none negative");
  }
  return detail::wrap_host(shape, dtype, stride, offset, std::move(storage));
}

Tensor tensor_over(const TensorData& data) {
  const size_t element = size_of(data.dtype());
  if (data.byte_offset() % element != 0) return Tensor(data);
  return tensor_over(data.storage(), data.dtype(), data.shape(), contiguous_strides(data.shape()),
                     static_cast<int64_t>(data.byte_offset() / element));
}

std::optional<HostMemory> host_memory(const Tensor& x) {
  const auto* host =
      dynamic_cast<const HostTensor*>(detail::parts_or_value("host_memory", x).inner.get());
  if (host == nullptr) return std::nullopt;
  return HostMemory{host->storage(), x.stride(),
                    detail::state_of(x).is_complex() ? host->offset() / 2 : host->offset()};
}

TensorData shared_data(const Tensor& x) {
  if (kind_of(x.dtype()) == Kind::quantized) {
    throw_error<DTypeError>("shared_data: a quantized tensor is more than its values; got ",
                            x.dtype(), "; expected another dtype (try dequantize)");
  }
  graph::note_read("shared_data", detail::parts_or_value("shared_data", x).inner);
  const auto memory = host_memory(x);
  if (!memory || !is_contiguous(x.shape(), memory->stride)) return x.to_data();
  return TensorData(x.shape(), x.dtype(), memory->storage,
                    static_cast<size_t>(memory->offset) * size_of(x.dtype()));
}

}  // namespace kiln
