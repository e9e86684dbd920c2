// What environments share. Internal to kiln/rl.
#pragma once

#include <cmath>
#include <span>

#include "kiln/core/error.h"

namespace kiln::rl::detail {

// Throws ValueError unless these are `count` finite numbers.
inline void check_state(const char* op, std::span<const double> state, size_t count) {
  if (state.size() != count) {
    throw_error<ValueError>(op, ": a state has ", count, " numbers; got ", state.size());
  }
  for (const double value : state) {
    if (!std::isfinite(value)) {
      throw_error<ValueError>(op, ": a state must be finite; got ", value);
    }
  }
}

}  // namespace kiln::rl::detail
