// How often this process has been forked on its way here. Internal.
//
// A device belongs to the process that opened it. Asking for the process's number each time would
// be a system call for each op, which sandboxes make slow.
#pragma once

namespace kiln::gpu {

// The same number in a process for as long as it lives; another one in its children.
int process_generation();

}  // namespace kiln::gpu
