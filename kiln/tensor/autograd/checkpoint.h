// Gradient checkpointing: memory for time. What a part of a model would keep for the backward pass
// is dropped, and computed again when the pass comes to it (Chen et al., 2016, arXiv:1604.06174).
#pragma once

#include <functional>
#include <vector>

#include "kiln/tensor/tensor.h"

namespace kiln::autograd {

struct CheckpointOptions {
  // Random ops draw the same numbers when they run again.
  bool preserve_random = true;
};

// f(inputs), recorded as one op that keeps nothing but the inputs and f. Gradients flow to the
// inputs and to everything else that f uses (parameters that it captured), and are those that f
// without a checkpoint gives, to any order. f must give the same results when it is called again;
// AutodiffError in the backward pass when it gives other shapes, or when an input was written to.
Tensor checkpoint(const std::function<Tensor(const Tensor&)>& f, const Tensor& x,
                  const CheckpointOptions& options = {});
std::vector<Tensor> checkpoint(
    const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& f,
    const std::vector<Tensor>& inputs, const CheckpointOptions& options = {});

// x through the functions one after another, in so many checkpointed segments; the last is not
// checkpointed, since the backward pass begins with it. Throws ValueError unless 1 <= segments <=
// functions.
Tensor checkpoint_sequential(const std::vector<std::function<Tensor(const Tensor&)>>& functions,
                             int64_t segments, const Tensor& x,
                             const CheckpointOptions& options = {});

// Balanced checkpointing needs no functions to be named: while it is on, what this thread records
// keeps the results of products, convolutions and reductions, and computes those of elementwise ops
// (elementary functions and activations, products and quotients of tensors, powers, clamps) again
// when the backward pass needs them. A chain of such ops keeps every sixth or so result. Gradients
// are the same bit for bit.
bool is_balanced_checkpointing();
void set_balanced_checkpointing(bool enabled);

class BalancedCheckpointingGuard {
 public:
  explicit BalancedCheckpointingGuard(bool enabled = true) : before_(is_balanced_checkpointing()) {
    set_balanced_checkpointing(enabled);
  }
  ~BalancedCheckpointingGuard() { set_balanced_checkpointing(before_); }
  BalancedCheckpointingGuard(const BalancedCheckpointingGuard&) = delete;
  BalancedCheckpointingGuard& operator=(const BalancedCheckpointingGuard&) = delete;

 private:
  bool before_;
};

}  // namespace kiln::autograd
