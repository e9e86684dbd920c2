#include "kiln/distributed/differentiable.h"

#include "kiln/core/error.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"

namespace kiln::distributed::differentiable {

namespace {

void check(const char* name, const Group& group, ReduceOp op = ReduceOp::sum) {
  if (group == nullptr) throw_error<ValueError>(name, ": there is no process group");
  if (op != ReduceOp::sum && op != ReduceOp::avg) {
    throw_error<ValueError>(name, ": only sum and avg have gradients; got ", name_of(op));
  }
}

// The gradient of what is joined.
Tensor shared(const Tensor& grad, const Group& group, ReduceOp op) {
  return op == ReduceOp::avg ? grad / static_cast<double>(group->size()) : grad;
}

// Zeros in the place of a value that has no part in a result; so has its gradient none. A function
// of its own, so that the backward passes of all processes go through the same operations.
Tensor nothing_of(const Tensor& x) {
  return call_function(
      "nothing", {x},
      [](FunctionContext&, const TensorList& in) { return TensorList{zeros_like(in[0])}; },
      [](FunctionContext&, const TensorList& grads) {
        return TensorList{nothing_of(grads[0])};
      })[0];
}

}  // namespace

Tensor all_reduce(const Tensor& x, const Group& group, ReduceOp op) {
  check("all_reduce", group, op);
  return call_function(
      "all_reduce", {x},
      [&](FunctionContext&, const TensorList& in) {
        Tensor out = in[0].clone();
        group->all_reduce(out, op);
        return TensorList{out};
      },
      [group, op](FunctionContext&, const TensorList& grads) {
        return TensorList{all_reduce(grads[0], group, op)};
      })[0];
}

Tensor reduce(const Tensor& x, int root, const Group& group, ReduceOp op) {
  check("reduce", group, op);
  return call_function(
      "reduce", {x},
      [&](FunctionContext&, const TensorList& in) {
        Tensor out = in[0].clone();
        group->reduce(out, root, op);
        return TensorList{out};
      },
      [group, root, op](FunctionContext&, const TensorList& grads) {
        return TensorList{shared(broadcast(grads[0], root, group), group, op)};
      })[0];
}

Tensor broadcast(const Tensor& x, int root, const Group& group) {
  check("broadcast", group);
  return call_function(
      "broadcast", {x},
      [&](FunctionContext&, const TensorList& in) {
        Tensor out = in[0].clone();
        group->broadcast(out, root);
        return TensorList{out};
      },
      [group, root](FunctionContext&, const TensorList& grads) {
        const Tensor sum = reduce(grads[0], root, group);
        return TensorList{group->rank() == root ? sum : nothing_of(sum)};
      })[0];
}

TensorList all_gather(const Tensor& x, const Group& group) {
  check("all_gather", group);
  return call_function(
      "all_gather", {x},
      [&](FunctionContext&, const TensorList& in) {
        TensorList outputs;
        for (int rank = 0; rank < group->size(); ++rank) outputs.push_back(empty_like(in[0]));
        group->all_gather(outputs, in[0]);
        return outputs;
      },
      [group](FunctionContext&, const TensorList& grads) {
        return TensorList{reduce_scatter(grads, group)};
      });
}

TensorList gather(const Tensor& x, int root, const Group& group) {
  TensorList out = all_gather(x, group);
  if (group->rank() != root) {
    for (Tensor& part : out) part = nothing_of(part);
  }
  return out;
}

Tensor scatter(const TensorList& inputs, int root, const Group& group) {
  check("scatter", group);
  TensorList parts = inputs;
  if (group->rank() != root) {
    for (Tensor& part : parts) part = nothing_of(part);
  }
  return reduce_scatter(parts, group);
}

Tensor reduce_scatter(const TensorList& inputs, const Group& group, ReduceOp op) {
  check("reduce_scatter", group, op);
  return call_function(
      "reduce_scatter", inputs,
      [&](FunctionContext&, const TensorList& in) {
        if (in.size() != static_cast<size_t>(group->size())) {
          throw_error<ValueError>("reduce_scatter: expected an input for each of ", group->size(),
                                  " processes; got ", in.size());
        }
        Tensor out = empty_like(in[static_cast<size_t>(group->rank())]);
        group->reduce_scatter(out, in, op);
        return TensorList{out};
      },
      [group, op](FunctionContext&, const TensorList& grads) {
        TensorList out = all_gather(grads[0], group);
        for (Tensor& grad : out) grad = shared(grad, group, op);
        return out;
      })[0];
}

TensorList all_to_all(const TensorList& inputs, const std::vector<Shape>& shapes,
                      const Group& group) {
  check("all_to_all", group);
  std::vector<Shape> own;
  for (const Tensor& x : inputs) own.push_back(x.shape());
  return call_function(
      "all_to_all", inputs,
      [&](FunctionContext&, const TensorList& in) {
        if (in.empty()) throw_error<ValueError>("all_to_all: there are no inputs");
        TensorList outputs;
        for (const Shape& shape : shapes) outputs.push_back(empty(shape, in[0].options()));
        group->all_to_all(outputs, in);
        return outputs;
      },
      [group, own](FunctionContext&, const TensorList& grads) {
        return all_to_all(grads, own, group);
      });
}

}  // namespace kiln::distributed::differentiable
