// One pass of an optimizer over adjacent elements. Internal to the Cpu backend.
#pragma once

#include <cstdint>

#include "kiln/backend/options.h"

namespace kiln::cpu {

// 1 - beta1^step and 1 - beta2^step: the same for all parameters, and no small work.
struct AdamCorrections {
  double first;
  double second;
};

// The formulas stand in options.h.
template <class T>
struct OptimizerKernels {
  // `buffer` is null without momentum.
  void (*sgd)(T* p, const T* g, T* buffer, const SgdStep& step, int64_t n);
  // `largest` is null without amsgrad.
  void (*adam)(T* p, const T* g, T* m, T* v, T* largest, const AdamStep& step,
               const AdamCorrections& corrections, int64_t n);
};

// For the best instruction set of this machine.
template <class T>
const OptimizerKernels<T>& optimizer_kernels();

}  // namespace kiln::cpu
