// Counters of an allocator, as Python gets them.
#pragma once

#include "binding.h"
#include "kiln/core/allocator.h"

namespace kiln::python {

inline nb::dict dict_of(const MemoryStats& stats) {
  nb::dict out;
  out["allocations"] = stats.allocations;
  out["system_allocations"] = stats.system_allocations;
  out["bytes_in_use"] = stats.bytes_in_use;
  out["bytes_cached"] = stats.bytes_cached;
  out["peak_bytes_in_use"] = stats.peak_bytes_in_use;
  return out;
}

}  // namespace kiln::python
