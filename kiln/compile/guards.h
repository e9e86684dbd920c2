// When a captured graph fits a call. Internal to kiln/compile.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kiln/compile/compile.h"
#include "kiln/tensor/amp/autocast.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln::compiling {

// What the graph of a call depends on beside values.
struct InputGuard {
  bool defined = false;
  bool is_complex = false;
  bool requires_grad = false;
  int same_memory = -1;  // an earlier input that may share its memory
  int same_tensor = -1;  // an earlier input that is the same
  Shape shape;           // of the parts, of a complex one
  Strides strides;
  DType dtype = DType::f32;
  Device device;

  friend bool operator==(const InputGuard&, const InputGuard&) = default;
};

struct ModeGuard {
  bool grad = true;
  bool autocast = false;
  bool balanced = false;
  DType autocast_dtype = DType::bf16;
  DType default_dtype = DType::f32;
  std::vector<bool> training;  // of the modules

  friend bool operator==(const ModeGuard&, const ModeGuard&) = default;
};

// A tensor that the function holds: what it is now.
struct HeldTensor {
  Tensor tensor;
  const void* inner = nullptr;
  const void* node = nullptr;
  // Whether it is still the same.
  bool holds() const;
};

std::vector<InputGuard> guards_of(const TensorList& inputs);
bool fits(const std::vector<InputGuard>& guards, const TensorList& inputs);
ModeGuard mode_now(const std::vector<nn::Module*>& modules);
bool fits(const ModeGuard& guard, const std::vector<nn::Module*>& modules);

// Why a call must not be captured or replayed now; null when it may.
const char* eager_reason(const TensorList& inputs);

std::string to_string(const std::vector<InputGuard>& guards);

}  // namespace kiln::compiling
