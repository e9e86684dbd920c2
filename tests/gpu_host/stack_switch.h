// Stacks for the work-items of a group, and going from one to another. Internal.
#pragma once

#include "tests/gpu_host/group_runner.h"

namespace kiln::gpu_host {

inline constexpr size_t kStacks = 1024;
inline constexpr size_t kStackBytes = size_t{256} << 10;

Block stack_of(size_t item);
// Runs `begin` on that stack, or (null) goes on with what runs there, until it returns or leaves.
void enter_stack(size_t item, void (*begin)());
// Back to who entered.
void leave_stack();

// What kernels call (kernel_loader.cpp hands them over).
void wait_at_barrier(int line);
void note_access(const void* address, size_t bytes, bool stores, bool atomic);

}  // namespace kiln::gpu_host
