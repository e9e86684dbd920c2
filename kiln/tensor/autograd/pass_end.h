// What is done when a backward pass ends.
#pragma once

#include <functional>

#include "kiln/tensor/tensor.h"

namespace kiln {

// Calls `then` when the pass of backward_accumulate() that runs on this thread has ended, after all
// its hooks: a hook of a parameter asks for it, and finds all gradients there. Calls follow one
// another in the order in which they were asked for. Where one pass runs within another (as
// checkpoints do), they wait for the outer one. A pass that fails drops them. Throws
// AutodiffError where no such pass runs. (PyTorch's queue_callback.)
void queue_callback(std::function<void()> then);

// Calls hook(gradients) at the end of each Tensor::backward(), on its thread; it may change them.
// Where none is registered that costs nothing.
HookHandle register_gradients_hook(std::function<void(Gradients& gradients)> hook);

}  // namespace kiln
