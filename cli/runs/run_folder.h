// RunFolder: the folder of a training run: its lock, and the file that says how it stands.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kiln/core/json.h"

namespace kiln::cli {

// Held by the process that trains in the folder; gone with it, however it ends.
class RunLock {
 public:
  // Makes the folder. Throws IoError when it cannot be written or another process trains there.
  explicit RunLock(const std::string& folder);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;
  // Whether a process holds the folder's lock.
  static bool is_held(const std::string& folder);

 private:
  int fd_ = -1;
};

// run.json.
struct RunState {
  std::string state = "running";  // or finished, interrupted, failed
  std::string error;              // of one that failed
  std::string model, data;
  int64_t parameters = 0;
  int64_t epochs = 0;             // that are planned
  double started = 0, ended = 0;  // seconds since 1970
  std::vector<double> seconds;    // of each epoch
  std::string best_metric;
  bool larger_is_better = false;
  std::vector<std::pair<std::string, double>> test;  // "test/loss" and so on
};

// Writes atomically. Throws IoError.
void write_run_state(const std::string& folder, const RunState& state);
// Nothing where there is no file. Throws IoError for a malformed one.
std::optional<RunState> read_run_state(const std::string& folder);

}  // namespace kiln::cli
