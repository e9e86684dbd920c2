#include "kiln/autodiff/engine.h"

namespace kiln::autodiff {

void throw_freed(const char* op) {
  throw_error<AutodiffError>(
      "backward: the graph was freed by an earlier pass; got a second pass through ", op,
      "; expected retain_graph = true in the first one, or a new forward pass");
}

void throw_untracked() {
  throw_error<AutodiffError>(
      "backward: the tensor does not require a gradient and no tracked op made it; expected a "
      "result of ops on a tensor with requires_grad_(), computed while recording");
}

}  // namespace kiln::autodiff
