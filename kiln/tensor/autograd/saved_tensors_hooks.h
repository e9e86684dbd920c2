// Hooks on the tensors that the graph saves for the backward pass: to keep them elsewhere, smaller,
// or to look at them.
#pragma once

#include <any>
#include <functional>

#include "kiln/tensor/tensor.h"

namespace kiln::autograd {

// Called when an op saves a tensor; what it gives is kept in the tensor's place. The tensor has no
// history and shares memory with what the op was given (of complex numbers, the parts [..., 2]);
// writing into it is an AutodiffError. What balanced checkpointing computes again is not saved.
using PackHook = std::function<std::any(const Tensor&)>;
// Called in the backward pass, each time that the tensor is needed. AutodiffError when what it
// gives has not the saved tensor's shape, dtype and device.
using UnpackHook = std::function<Tensor(const std::any&)>;

// While it lives, what this thread records is saved through the hooks; the innermost ones count:
//
//   autograd::SavedTensorsHooks half([](const Tensor& x) { return std::any(x.to(f16)); },
//                                    [](const std::any& x) {
//                                      return std::any_cast<Tensor>(x).to(f32); });
class SavedTensorsHooks {
 public:
  SavedTensorsHooks(PackHook pack, UnpackHook unpack);
  ~SavedTensorsHooks();
  SavedTensorsHooks(const SavedTensorsHooks&) = delete;
  SavedTensorsHooks& operator=(const SavedTensorsHooks&) = delete;
};

// The same without a scope. pop throws AutodiffError when this thread has no hooks.
void push_saved_tensors_hooks(PackHook pack, UnpackHook unpack);
void pop_saved_tensors_hooks();

}  // namespace kiln::autograd
