// Finish: what is done to results while they are in the cache, with the numbers that the ops by
// themselves give. Internal to the Cpu backend.
#pragma once

#include "kiln/backend/cpu/elementwise.h"
#include "kiln/backend/cpu/elementwise/clamp.h"
#include "kiln/backend/options.h"

namespace kiln::cpu {

// The kernel of an activation of f32 or f64, and its parameters; null for none. One that clamps
// does what Clamp does with these bounds.
struct ActivationKernel {
  Kernel kernel = nullptr;
  const void* params = nullptr;
  bool clamps = false;
  double low = 0.0, high = 0.0;
};
ActivationKernel activation_kernel(Activation activation, DType dtype);

// y = activation(y + residual), of what lies at the same places from `y` and from `residual` on.
template <class T>
class Finish {
 public:
  Finish() = default;
  // Without a residual where it is null.
  Finish(const ActivationKernel& activation, const T* residual, const T* y)
      : activation_(activation),
        bounds_{static_cast<T>(activation.low), static_cast<T>(activation.high)},
        residual_(residual),
        y_(y) {}

  bool is_none() const { return activation_.kernel == nullptr && residual_ == nullptr; }
  // Where a clamp of floats is all there is to do, its bounds: kernels apply them before they
  // store. Else null.
  const Clamp<T>* clamp() const {
    return sizeof(T) == 4 && activation_.clamps && residual_ == nullptr ? &bounds_ : nullptr;
  }
  // Finishes the n elements from `at` on.
  void operator()(T* at, int64_t n) const;

 private:
  ActivationKernel activation_;
  Clamp<T> bounds_{};
  const T* residual_ = nullptr;
  const T* y_ = nullptr;
};

// Finishes n elements from `y` on that were computed before: where they fit in the cache.
template <class T>
void finish_all(const Finish<T>& finish, T* y, int64_t n) {
  if (finish.is_none()) return;
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) { finish(y + begin, end - begin); });
}

}  // namespace kiln::cpu
