#include "kiln/nn/buffer.h"

#include "kiln/nn/param_traits.h"
#include "kiln/tensor/autograd/grad_mode.h"

namespace kiln::nn {

Buffer::Buffer(const Buffer& other) : persistent_(other.persistent_) {
  if (!other.defined()) return;
  NoGradGuard no_grad;
  value_ = other.value_.detach();
  if (!detail::ShareOnCopy::active()) value_ = value_.clone();
}

}  // namespace kiln::nn
