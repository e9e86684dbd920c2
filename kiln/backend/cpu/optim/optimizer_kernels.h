// One pass of an optimizer over adjacent elements. Internal to the Cpu backend.
#pragma once

#include <array>
#include <cstdint>

#include "kiln/backend/options.h"

namespace kiln::cpu {

// The slots of a rule, in its order; null where there are no more.
inline constexpr size_t kMostSlots = 4;
template <class T>
using Slots = std::array<T*, kMostSlots>;

// The formulas stand in optimizer_step.h.
template <class T>
struct OptimizerKernels {
  void (*step)(T* p, const T* g, const Slots<T>& slots, const OptimizerStep& step, int64_t n);
};

// For the best instruction set of this machine.
template <class T>
const OptimizerKernels<T>& optimizer_kernels();

}  // namespace kiln::cpu
