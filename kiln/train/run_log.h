// RunLog: what a run measures, as JSON Lines, as CSV and for TensorBoard.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kiln/core/json.h"
#include "kiln/train/append_file.h"
#include "kiln/train/event_file.h"

namespace kiln::train {

struct RunLogFormats {
  bool json = true;         // log.jsonl: an object for each event
  bool csv = true;          // log.csv: a row for each number
  bool tensorboard = true;  // events.out.tfevents.*
};

using NamedNumbers = std::vector<std::pair<std::string, double>>;

// Where a log stands, to be kept in a checkpoint. What is written after the checkpoint a resumed
// run writes again.
struct RunLogPosition {
  int64_t json = 0;
  int64_t csv = 0;
  int64_t events = 0;
  std::string event_file;  // its name; empty: a new one
};

class RunLog {
 public:
  // Begins anew in the folder, or goes on from a position. Throws IoError.
  explicit RunLog(const std::string& folder, RunLogFormats formats = {},
                  const RunLogPosition& position = {});

  // "step", "epoch" or another word; `epoch` counts those that are over. The time is added, in
  // seconds since 1970. Each throws IoError, and another file may have the record then.
  void numbers(const std::string& event, int64_t epoch, int64_t step, const NamedNumbers& values);
  // Beside the numbers, in JSON alone.
  void note(const std::string& event, int64_t epoch, int64_t step, Json details);
  // For TensorBoard; null when that is off.
  EventFile* events() { return events_ ? &*events_ : nullptr; }

  RunLogPosition position() const;

 private:
  std::optional<AppendFile> json_;
  std::optional<AppendFile> csv_;
  std::optional<EventFile> events_;
};

}  // namespace kiln::train
