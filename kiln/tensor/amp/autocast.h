// Mixed precision: a region in which ops choose the dtype that they compute in.
//
//   {
//     const amp::Autocast region(bf16);
//     loss = loss_of(net(x), target);  // products in bf16, losses in f32; the parameters stay f32
//   }
//   loss.backward_accumulate();        // gradients of f32 parameters are f32
//
// docs/mixed-precision.md lists the ops.
#pragma once

#include <optional>

#include "kiln/core/dtype.h"

namespace kiln::amp {

// What ops of a thread do with floating point operands.
struct AutocastState {
  bool enabled = false;
  DType dtype = DType::bf16;  // of the ops that run in lower precision
  bool cache = true;          // a parameter is cast once for a region, not at each use
};

// Per thread; off at start. f64 tensors are never cast.
AutocastState autocast_state();
// Throws DTypeError unless the dtype is bf16 or f16. Rather use Autocast, which restores it.
void set_autocast_state(const AutocastState& state);
// Drops the cast parameters that this thread keeps.
void clear_autocast_cache();

// While it lives, ops of this thread cast as their list says; with enabled = false they do not.
// Regions nest. At the end of the outermost one the cast parameters are dropped.
class Autocast {
 public:
  explicit Autocast(DType dtype = DType::bf16, bool enabled = true,
                    std::optional<bool> cache_enabled = {});
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  AutocastState before_;
};

// How many regions this thread is in. For bindings, whose regions are no C++ scopes.
int enter_autocast_region();
int leave_autocast_region();

}  // namespace kiln::amp
