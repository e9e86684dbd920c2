#include "kiln/tensor/shape/view_in_place.h"

#include <optional>

#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/autograd/view_history.h"
#include "kiln/tensor/shape/rearranging.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln {

using namespace detail;

namespace {

template <class View>
Tensor& become(const char* op, Tensor& x, View view) {
  TensorImpl& impl = impl_of(op, x);
  const bool leaf = impl.is_leaf();
  if (impl.value.node && leaf && is_grad_enabled()) {
    throw_error<AutodiffError>(
        op,
        ": a leaf that requires a gradient cannot change its shape while "
        "recording; try it under no_grad (NoGradGuard), or the op without the trailing _");
  }
  // A history must fit the shape: it grows under no_grad too.
  std::optional<EnableGradGuard> recording;
  if (!leaf) recording.emplace();
  const Tensor seen = view(x);
  if (!seen.is_same(x)) show_as(impl, *seen.impl());
  return x;
}

}  // namespace

Tensor& transpose_(Tensor& x, int64_t dim0, int64_t dim1) {
  return become("transpose_", x, [&](const Tensor& y) { return y.transpose(dim0, dim1); });
}
Tensor& t_(Tensor& x) {
  return become("t_", x, [](const Tensor& y) { return y.t(); });
}
Tensor& squeeze_(Tensor& x) {
  return become("squeeze_", x, [](const Tensor& y) { return y.squeeze(); });
}
Tensor& squeeze_(Tensor& x, const Dims& dims) {
  return become("squeeze_", x, [&](const Tensor& y) { return squeeze(y, dims); });
}
Tensor& unsqueeze_(Tensor& x, int64_t dim) {
  return become("unsqueeze_", x, [&](const Tensor& y) { return y.unsqueeze(dim); });
}

Tensor& detach_(Tensor& x) {
  TensorImpl& impl = impl_of("detach_", x);
  if (impl.root && impl.root->unique()) {
    // Nobody else sees the tensor that it is a view of: an op's result in another shape.
    impl.root = nullptr;
    impl.root_writes = 0;
    impl.recorded_writes = 0;
  }
  if (impl.root && impl.value.node) {
    throw_error<AutodiffError>(
        "detach_: a view cannot be detached in place; try detach(), or detach_() of the tensor "
        "that "
        "it is a view of");
  }
  impl.value.node = nullptr;
  impl.value.slot = 0;
  return x;
}

}  // namespace kiln
