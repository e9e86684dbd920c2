// How dispatch and the profiler share the tables of the backends. Internal to dispatch.
#pragma once

#include "kiln/backend/dispatch/dispatch.h"

namespace kiln::profiled {

// Makes `table` the one that dispatch finds for the device type, through the profiler while that is
// at work.
void add_table(DeviceType type, const BackendTable* table);

// Makes `table` that one too, and stores the one that was there: `table` calls it.
void put_before(DeviceType type, const BackendTable* table,
                std::atomic<const BackendTable*>& before);

}  // namespace kiln::profiled
