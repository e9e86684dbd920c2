#include "kiln/tensor/interop.h"

#include "kiln/backend/host_tensor.h"
#include "kiln/tensor/complex_impl.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln::interop {

using namespace kiln::detail;

namespace {

const HostTensor& host_of(const char* op, const Tensor& x) {
  const auto* host = dynamic_cast<const HostTensor*>(parts_or_value(op, x).inner.get());
  if (host == nullptr) {
    throw_error<DeviceError>(op, ": the tensor is not in host memory; got device ", x.device(),
                             "; try to('cpu')");
  }
  return *host;
}

}  // namespace

Tensor from_blob(void* data, const Shape& shape, const Strides& strides, DType dtype,
                 void (*release)(void*), void* context) {
  if (strides.rank() != shape.rank()) {
    throw_error<ShapeError>("from_blob: expected one stride for each dim; got ", strides, " for ",
                            shape);
  }
  int64_t last = 0;
  const bool empty = checked_numel("from_blob", shape) == 0;
  for (int i = 0; i < shape.rank() && !empty; ++i) {
    if (strides[i] < 0) {
      throw_error<ValueError>("from_blob: negative strides are not supported; got ", strides,
                              "; try a copy");
    }
    last += (shape[i] - 1) * strides[i];
  }
  const size_t bytes = empty ? 0 : static_cast<size_t>(last + 1) * size_of(dtype);
  Handle<Storage> storage = Storage::borrow(data, bytes, release, context);
  return wrap_host(shape, dtype, strides, 0, std::move(storage));
}

void* data(const Tensor& x) { return host_of("data_ptr", x).data(); }
int64_t storage_offset(const Tensor& x) {
  const int64_t offset = host_of("storage_offset", x).offset();
  return x.impl()->is_complex() ? offset / 2 : offset;
}

void set_data(Tensor& x, const Tensor& source) {
  TensorImpl& target = impl_of("set_data", x);
  const Value& value = parts_or_value("set_data", source);
  if (target.value.node && kind_of_value(value) != Kind::floating) {
    throw_wrong_dtype("set_data", dtype_of_value(value),
                      "a floating point or complex tensor for one that requires a gradient");
  }
  target.value.inner = value.inner;
  target.complex_shape.reset(source.impl()->is_complex() ? new Shape(source.shape()) : nullptr);
  if (target.root) {
    target.root.reset();
    target.recorded_writes = 0;
  }
}

void*& foreign_object(const Tensor& x) { return x.impl()->foreign_object; }

}  // namespace kiln::interop
