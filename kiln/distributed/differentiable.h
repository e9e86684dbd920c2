// Operations of groups that have gradients: all processes of the group call them, and run the
// backward pass. To any order.
#pragma once

#include <memory>
#include <vector>

#include "kiln/distributed/process_group.h"
#include "kiln/tensor/autograd/custom_function.h"

namespace kiln::distributed::differentiable {

using Group = std::shared_ptr<ProcessGroup>;

// The joined x of all processes, as a new tensor. Throws ValueError for another op than sum and
// avg; so do the others that join.
Tensor all_reduce(const Tensor& x, const Group& group, ReduceOp op = ReduceOp::sum);
// The same for `root`; others get a copy of their x, which has no part in the gradient.
Tensor reduce(const Tensor& x, int root, const Group& group, ReduceOp op = ReduceOp::sum);
// The x of `root` for all; its gradient is the sum over all.
Tensor broadcast(const Tensor& x, int root, const Group& group);
// The x of all processes, in the order of their ranks. They have one shape.
TensorList all_gather(const Tensor& x, const Group& group);
// The same for `root`; others get zeros, which have no part in the gradient.
TensorList gather(const Tensor& x, int root, const Group& group);
// inputs[rank] of `root`. All give as many of one shape; those of others have no part in it.
Tensor scatter(const TensorList& inputs, int root, const Group& group);
// inputs[rank] of all processes, joined.
Tensor reduce_scatter(const TensorList& inputs, const Group& group, ReduceOp op = ReduceOp::sum);
// inputs[r] goes to rank r; what came from rank r has the shape shapes[r].
TensorList all_to_all(const TensorList& inputs, const std::vector<Shape>& shapes,
                      const Group& group);

}  // namespace kiln::distributed::differentiable
