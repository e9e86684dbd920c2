#include <cstring>
#include <typeinfo>

#include "kiln/backend/host_tensor.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln {

using namespace detail;

namespace {

const HostTensor* host_tensor(const Value& x) {
  const TensorBase& inner = *x.inner;
  return typeid(inner) == typeid(HostTensor) ? static_cast<const HostTensor*>(&inner) : nullptr;
}

}  // namespace

bool Tensor::is_shared() const {
  const HostTensor* host = host_tensor(parts_or_value("is_shared", *this));
  return host != nullptr && host->storage()->is_shared();
}

Tensor& Tensor::share_memory_() {
  const TensorImpl& impl = impl_of("share_memory_", *this);
  const HostTensor* before = host_tensor(impl.value);
  if (before == nullptr) {
    throw_error<DeviceError>("share_memory_: only tensors in host memory can be shared; got ",
                             impl.dtype(), " on ", impl.device());
  }
  if (before->storage()->is_shared()) return *this;
  // The whole storage, so that strides and offset stay as they are.
  const Storage& from = *before->storage();
  Handle<Storage> to = Storage::allocate_shared(from.bytes());
  if (from.bytes() > 0) std::memcpy(to->data(), from.data(), from.bytes());
  auto state = make_handle<TensorImpl>(
      Value{make_handle<HostTensor>(before->shape(), before->dtype(), before->device(),
                                    before->strides(), before->offset(), std::move(to)),
            impl.value.node, impl.value.slot});
  if (impl.is_complex()) state->complex_shape = std::make_unique<const Shape>(impl.shape());
  if (!impl.root) state->recorded_writes = impl.recorded_writes;
  state->resting = impl.resting;
  exchange(impl_, std::move(state));
  return *this;
}

}  // namespace kiln
