// What stands between vmap's tables and the backends': tables whose entries see rows and views as
// they reach a backend, whether or not vmap has been used before. For the capture of graphs.
#pragma once

#include "kiln/backend/dispatch/dispatch.h"
#include "kiln/backend/dispatch/views.h"

namespace kiln::batched {

// What was there before.
struct Below {
  std::atomic<const BackendTable*> rows;
  std::atomic<const ViewTable*> views;
};

// Puts `rows` and what `views_over` makes below vmap's tables, where these are there, and below the
// profiler's, and stores what was there: both call it. Does nothing for a device type that `before`
// has already, or that has no backend.
void put_below(DeviceType type, const BackendTable* rows,
               const ViewTable* (*views_over)(DeviceType type, const ViewTable& before),
               Below& before);

}  // namespace kiln::batched
