// Dashboard: a run on the whole terminal, while it trains: its metrics as plots, how far it is,
// what it takes, and keys to stop, pause and save it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kiln/dashboard/screen.h"
#include "kiln/dashboard/view.h"
#include "kiln/train/learner.h"
#include "kiln/train/progress.h"

namespace kiln::dashboard {

// What a dashboard shows of a run, and what a key asks of it.
class WatchedRun {
 public:
  virtual ~WatchedRun() = default;
  // Of each epoch that is over, what was measured; of each step its loss.
  virtual const std::vector<train::NamedNumbers>& history() = 0;
  virtual const std::vector<double>& step_loss() = 0;
  // A checkpoint is wanted after the next step.
  virtual void save_soon() = 0;
};

struct DashboardOptions {
  std::string title;
  std::vector<std::string> metrics;  // beside the loss and the rate
  int64_t steps_per_epoch = 1;
  std::function<bool(const std::string& metric)> is_share;
  std::function<bool()> interrupted;  // ends a pause
};

class Dashboard final : public train::ProgressSink {
 public:
  // Takes over the screen; `progress` must outlive it.
  Dashboard(DashboardOptions options, train::Progress& progress);
  // Gives the screen back and prints the lines of the log there, so that they stay.
  ~Dashboard() override;

  void progress(const train::ProgressState& state) override;
  void print(const std::string& line) override;

  // To be called between steps and between batches: reads keys, draws ten times a second, and does
  // not come back while the run is paused.
  void poll(WatchedRun& run);
  void poll(train::Learner& learner);
  // Whether a key asked for the end.
  bool stops() const { return stops_; }

 private:
  using Clock = std::chrono::steady_clock;

  void press(const KeyPress& key, WatchedRun& run);
  void draw(WatchedRun& run);
  void set_metric(WatchedRun& run);
  void set_resources();

  DashboardOptions options_;
  train::Progress& progress_;
  std::optional<Screen> screen_;
  DashboardView view_;
  std::vector<std::string> lines_;                              // all of the log
  Clock::time_point begin_, next_poll_, next_draw_, measured_;  // resources: when last
  double processor_ = 0.0;  // seconds that the process had used when measured
  std::string used_;        // "processor 183 %"
  bool paused_ = false;
  bool stops_ = false;
};

}  // namespace kiln::dashboard
