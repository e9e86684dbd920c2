// One op on tensors of given shapes, as rows and sweeps run it.
#pragma once

#include "bench/tensors.h"
#include "bench/workload.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/ops.h"

namespace kiln::bench {

template <class Step>
std::unique_ptr<Workload> op_workload(Step step) {
  return make_workload(std::move(step), [](Step& s) { return sample(s()); });
}

// step(x) on a tensor of evenly spread numbers.
template <class Step>
WorkloadFactory unary(Shape shape, Step step, float low = -1, float high = 1) {
  return [=] { return op_workload([=, x = uniform(shape, 1, low, high)] { return step(x); }); };
}

inline WorkloadFactory binary_add(Shape shape, bool requires_grad) {
  return [=] {
    const Tensor x = uniform(shape, 1).requires_grad_(requires_grad), y = uniform(shape, 2);
    return op_workload([=] { return x + y; });
  };
}

inline WorkloadFactory layer_norm(int64_t rows, int64_t columns) {
  return [=] {
    const Tensor x = uniform({rows, columns}, 1);
    const Tensor weight = uniform({columns}, 2), bias = uniform({columns}, 3);
    return op_workload([=] { return functional::layer_norm(x, {columns}, weight, bias); });
  };
}

}  // namespace kiln::bench
