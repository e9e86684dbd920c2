// The group that a launcher made: processes with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "kiln/distributed/process_group.h"

namespace kiln::distributed {

struct Environment {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;  // among the processes of this machine
  std::string master_host = {};
  uint16_t master_port = 0;
};

// What the variables say. RANK and WORLD_SIZE may also come from Open MPI, MPICH or Slurm under the
// names of theirs. Throws ValueError, naming the variable, when one is missing or no number.
Environment environment();
// Whether there are RANK and WORLD_SIZE, under one of these names; Slurm's count with MASTER_ADDR
// alone.
bool is_launched();

struct InitOptions {
  milliseconds timeout = std::chrono::minutes(30);  // of operations, and of the others' coming
  // Where the variables are not set: a group of this process alone, instead of ValueError.
  bool allow_alone = false;
};

// A group of all processes, by a TCPStore that rank 0 serves. A second call makes another group.
std::shared_ptr<ProcessGroup> init_process_group(const InitOptions& options = {});

}  // namespace kiln::distributed
