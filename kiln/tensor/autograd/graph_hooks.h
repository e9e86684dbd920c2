// Hooks on places in the graph that see several gradients at once: what module hooks are built on.
#pragma once

#include <functional>
#include <vector>

#include "kiln/tensor/tensor.h"

namespace kiln::detail {

// One gradient for each tensor, undefined where there is none.
using GradientList = std::vector<Tensor>;

// Views of the tensors that leave one common node: `see` is called when a backward pass comes
// through it, with the gradient of each, and may replace them. Tensors that are undefined or do not
// require a gradient are returned as they are. Writing into a view in place while recording is an
// AutodiffError. Call it only while recording, with a tensor that requires a gradient.
std::vector<Tensor> pass_through(const std::vector<Tensor>& tensors,
                                 std::function<void(GradientList&)> see);

// `see` is called when a backward pass has been through the op that made `result`, with the
// gradients that it gave its operands, which may be replaced, and those of its results.
HookHandle after_node(const Tensor& result,
                      std::function<void(GradientList& given, const GradientList& grads)> see);

}  // namespace kiln::detail
