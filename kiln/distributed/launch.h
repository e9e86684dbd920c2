// Starting a program as several processes that form a group.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kiln::distributed {

struct LaunchOptions {
  int processes = 1;  // on this machine
  int nodes = 1;      // machines
  int node_rank = 0;  // which one this is
  std::string master_host = "127.0.0.1";
  uint16_t master_port = 0;  // 0: a free one, for one machine
  int max_restarts = 0;      // of all processes, after one failed
  // Where each process's output goes, as `<rank>.log`; empty: to this process's own.
  std::string log_folder = {};
};

// Runs `command` so often, with RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR,
// MASTER_PORT and, where it is not set, OMP_NUM_THREADS: the processors divided by the processes.
// When one process fails the others are ended: by SIGTERM, after 5 s by SIGKILL. SIGINT and SIGTERM
// are handed on. Returns 0, or the status of the first that failed (128 + signal; after 1 that of
// the first that fails with another one within 2 s). Throws ValueError for options out of range,
// IoError when the program cannot be started.
int launch(const std::vector<std::string>& command, const LaunchOptions& options);

}  // namespace kiln::distributed
