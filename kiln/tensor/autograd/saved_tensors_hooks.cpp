#include "kiln/tensor/autograd/saved_tensors_hooks.h"

#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln::autograd {

using namespace detail;

namespace {

struct Like {
  Shape shape;
  DType dtype;
  Device device;
  explicit Like(const ErasedTensor& x)
      : shape(x->shape()), dtype(x->dtype()), device(x->device()) {}
};

ErasedTensor unpacked(const UnpackHook& unpack, const std::any& kept, const Like& like) {
  NoGradGuard guard;
  const Tensor x = unpack(kept);
  if (!x.defined()) throw_error<AutodiffError>("saved_tensors_hooks: unpack gave no tensor");
  ErasedTensor inner = parts_or_value("saved_tensors_hooks", x).inner;
  if (!(inner->shape() == like.shape) || inner->dtype() != like.dtype ||
      inner->device() != like.device) {
    throw_error<AutodiffError>("saved_tensors_hooks: unpack must give a tensor like the packed one",
                               "; got ", inner->shape(), " ", inner->dtype(), " on ",
                               inner->device(), "; expected ", like.shape, " ", like.dtype, " on ",
                               like.device);
  }
  return inner;
}

}  // namespace

void push_saved_tensors_hooks(PackHook pack, UnpackHook unpack) {
  if (!pack || !unpack) {
    throw_error<ValueError>("saved_tensors_hooks: expected two functions; got an empty one");
  }
  autodiff::push_pack<Dispatch>([pack = std::move(pack), unpack = std::move(unpack)](
                                    const ErasedTensor& x) -> autodiff::Unpack<ErasedTensor> {
    const uint32_t before = Dispatch::version(x);
    NoGradGuard guard;
    std::any kept = pack(wrap(x));
    if (Dispatch::version(x) != before) {
      throw_error<AutodiffError>(
          "saved_tensors_hooks: pack wrote into the tensor that it was given");
    }
    return
        [unpack, kept = std::move(kept), like = Like(x)] { return unpacked(unpack, kept, like); };
  });
}

void pop_saved_tensors_hooks() {
  if (!autodiff::pop_pack<Dispatch>()) {
    throw_error<AutodiffError>("saved_tensors_hooks: there are none to end on this thread");
  }
}

SavedTensorsHooks::SavedTensorsHooks(PackHook pack, UnpackHook unpack) {
  push_saved_tensors_hooks(std::move(pack), std::move(unpack));
}
SavedTensorsHooks::~SavedTensorsHooks() { autodiff::pop_pack<Dispatch>(); }

}  // namespace kiln::autograd
