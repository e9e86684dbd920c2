// Finish: what is done to results while they are in the cache, with the numbers that the ops by
// themselves give. Internal to the Cpu backend.
#pragma once

#include "kiln/backend/cpu/elementwise.h"
#include "kiln/backend/cpu/elementwise/tile_activation.h"
#include "kiln/backend/options.h"

namespace kiln::cpu {

// The kernel of an activation of f32 or f64, and its parameters; null for none. One that fits tiles
// does what its TileActivation does.
struct ActivationKernel {
  Kernel kernel = nullptr;
  const void* params = nullptr;
  bool fits_tiles = false;
  double low = 0.0, high = 0.0;
  bool is_hardswish = false;

  template <class T>
  TileActivation<T> in_tile() const {
    return {static_cast<T>(low), static_cast<T>(high), is_hardswish};
  }
};
ActivationKernel activation_kernel(Activation activation, DType dtype);

// y = activation(y + residual), of what lies at the same places from `y` and from `residual` on.
template <class T>
class Finish {
 public:
  Finish() = default;
  // Without a residual where it is null.
  Finish(const ActivationKernel& activation, const T* residual, const T* y)
      : activation_(activation), in_tile_(activation.in_tile<T>()), residual_(residual), y_(y) {}

  bool is_none() const { return activation_.kernel == nullptr && residual_ == nullptr; }
  // Where kernels can do all of it before they store, of floats: what they do. Else null.
  const TileActivation<T>* in_tile() const {
    return sizeof(T) == 4 && activation_.fits_tiles && residual_ == nullptr ? &in_tile_ : nullptr;
  }
  // Finishes the n elements from `at` on.
  void operator()(T* at, int64_t n) const;

 private:
  ActivationKernel activation_;
  TileActivation<T> in_tile_{};
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
