#include "kiln/distributed/host_buffer.h"

#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/host_memory.h"
#include "kiln/tensor/interop.h"

namespace kiln::distributed {

HostBuffer::HostBuffer(const char* op, const Tensor& x, bool reads) {
  if (!x.defined()) throw_error<ValueError>(op, ": got an undefined tensor");
  if (x.dtype() == DType::q8) {
    throw_error<DTypeError>(op, ": got a quantized tensor; expected its int8 values and scales");
  }
  const NoGradGuard no_grad;
  target_ = x.detach();
  const bool on_host = x.device() == Device(kCpu);
  is_copy_ = !on_host || !x.is_contiguous();
  if (!is_copy_) {
    values_ = target_;
  } else if (reads) {
    values_ = target_.to(Device(kCpu)).contiguous();
    if (on_host) values_ = values_.clone();
  } else {
    values_ = empty(x.shape(), {x.dtype()});
  }
  dtype_ = x.dtype();
  numel_ = x.numel();
  const interop::Memory memory = interop::memory(op, values_);
  data_ = static_cast<std::byte*>(memory.data);
  size_ = static_cast<size_t>(numel_) * size_of(dtype_);
  storage_ = memory.owner;
  offset_ = data_ - static_cast<std::byte*>(storage_->data());
}

Tensor HostBuffer::view(int64_t begin, int64_t end, DType as, int64_t parts) const {
  const auto size = static_cast<int64_t>(size_of(dtype_));
  const int64_t offset = (offset_ + begin * size) / static_cast<int64_t>(size_of(as));
  return tensor_over(storage_, as, {(end - begin) * parts}, Strides{1}, offset);
}

void HostBuffer::written() const {
  const NoGradGuard no_grad;
  if (is_copy_) {
    Tensor target = target_;
    target.copy_(values_);
  } else {
    storage_->bump_version();
  }
}

}  // namespace kiln::distributed
