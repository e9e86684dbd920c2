// What an allocation throws for which there is no memory: the host's, or a device's.
#pragma once

#include "kiln/core/error.h"

namespace kiln {

// The machine has no block of this size left, or set_memory_limit() allows none. Memory that is
// kept for later has been given back before.
class OutOfMemoryError : public ValueError {
 public:
  using ValueError::ValueError;
};

}  // namespace kiln
