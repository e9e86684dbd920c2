// What the machine and the control groups (containers) leave to this process.
#pragma once

#include <cstdint>

namespace kiln::detail {

// Processors in this process's affinity mask, or the cgroup quota rounded up if that is less. At
// least 1.
int available_processors();
// Bytes of memory: the machine's, or the cgroup limit if that is less.
uint64_t available_memory();
// What the control group may take, swap included, where that is less than the machine has;
// UINT64_MAX otherwise.
uint64_t group_memory();

}  // namespace kiln::detail
