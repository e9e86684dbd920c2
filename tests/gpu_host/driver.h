// The driver interface over plain code (group_runner.h). Internal to the program kiln_gpu_host.
#pragma once

#include "kiln/backend/gpu/runtime/driver.h"
#include "tests/gpu_host/group_runner.h"

namespace kiln::gpu_host {

// The form of all kernels, from $KILN_GPU_HOST_CHECK: "addresses", or "accesses" (unless it is
// set).
Check check_of_process();
// One device, "host".
extern const gpu::Runtime kHostRuntime;

}  // namespace kiln::gpu_host
