// Finish: what is done to results while they are in the cache, with the numbers that the ops by
// themselves give. Internal to the Cpu backend.
#pragma once

#include "kiln/backend/cpu/elementwise.h"
#include "kiln/backend/options.h"

namespace kiln::cpu {

// The kernel of an activation of f32 or f64, and its parameters; null for none.
struct ActivationKernel {
  Kernel kernel = nullptr;
  const void* params = nullptr;
};
ActivationKernel activation_kernel(Activation activation, DType dtype);

// y = activation(y + residual), of what lies at the same places from `y` and from `residual` on.
template <class T>
struct Finish {
  ActivationKernel activation;
  const T* residual = nullptr;  // null: nothing is added
  const T* y = nullptr;

  bool is_none() const { return activation.kernel == nullptr && residual == nullptr; }
  // Finishes the n elements from `at` on.
  void operator()(T* at, int64_t n) const;
};

}  // namespace kiln::cpu
