// RunRecord: what a run's folder says of it: its logs, its configuration, how it stands.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/runs/run_folder.h"
#include "kiln/core/json.h"
#include "kiln/train/run_log.h"

namespace kiln::cli {

struct LoggedPoint {
  int64_t epoch = 0;  // that are over
  int64_t step = 0;
  double time = 0;  // seconds since 1970
  train::NamedNumbers values;
};

struct RunRecord {
  std::string folder, name;
  RunState state;  // of run.json; what it lacks is as it is by default
  Json config;     // null where there is none
  std::vector<LoggedPoint> epochs, steps;
  std::string status;  // running, finished, interrupted, failed, killed; "-" where it is not known
  std::string best_metric;  // empty: none was measured
  double best = 0;
  int64_t best_epoch = 0;  // from 1 on
  double seconds = 0;      // of its epochs

  std::string model() const;  // "-" where nobody knows
  std::string data() const;
  // All that was measured, in the order of the log.
  std::vector<std::string> metrics() const;
  // Epoch (from 1 on) and value; by steps where no epoch has it.
  std::vector<std::pair<double, double>> curve(const std::string& metric, bool& by_step) const;
};

// Whether a folder has a run's log.
bool is_run(const std::string& folder);
// Reads log.jsonl, run.json, config.json; a line of the log that is none is left out, as a killed
// process may leave half of one. Throws IoError.
RunRecord read_run(const std::string& folder);
// The runs in a folder and up to four folders below, the first one first. Throws IoError where
// there is no such folder.
std::vector<RunRecord> find_runs(const std::string& folder);
// All fields by their paths: "optimizer.lr", "0.001".
std::vector<std::pair<std::string, std::string>> flat_fields(const Json& config);

}  // namespace kiln::cli
