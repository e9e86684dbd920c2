// Progress: one line that shows how far an epoch is, redrawn in place on a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace kiln::train {

enum class ProgressStyle : uint8_t {
  automatic,  // a bar on a terminal, plain lines elsewhere
  bar,        // redrawn in place, at most ten times a second
  plain,      // a line every few seconds
  quiet,      // nothing
};

// How far an epoch is.
struct ProgressState {
  std::string label;  // "epoch 2/5"
  int64_t done = 0;   // batches
  int64_t total = 0;  // batches; 0: unknown
  // What is measured, with its name, as it is to stand there; the most important first.
  std::vector<std::pair<std::string, std::string>> values;
  double samples_per_second = 0.0;
  double seconds_left = 0.0;  // until the last epoch ends; negative: unknown
};

// The state as one line of at most `width` columns. What does not fit is left out, the least
// important first.
std::string format_progress(const ProgressState& state, int width, bool unicode);
// The same without a bar, for a log.
std::string format_progress_plain(const ProgressState& state);

// Where progress goes instead of the terminal's last line.
class ProgressSink {
 public:
  virtual ~ProgressSink() = default;
  virtual void progress(const ProgressState& state) = 0;
  virtual void print(const std::string& line) = 0;
};

class Progress {
 public:
  explicit Progress(ProgressStyle style = ProgressStyle::automatic, std::FILE* out = stdout);
  // Removes the bar.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Starts an epoch of `total` batches, of which `done` are over; `later` batches belong to epochs
  // after it. The clock starts here.
  void start(const std::string& label, int64_t total, int64_t done = 0, int64_t later = 0);
  // One more batch of `samples` is over. Whether it is time for show().
  bool advance(int64_t samples);
  // Draws, with these values.
  void show(std::vector<std::pair<std::string, std::string>> values);
  // Removes the bar.
  void finish();
  // Prints a line and keeps the bar below it. Nothing when quiet.
  void print(const std::string& line);

  // From now on `sink` is told ten times a second, until it is null again. It must outlive that.
  void redirect(ProgressSink* sink);
  // Time that counts for nothing, as when a run was paused.
  void leave_out(std::chrono::steady_clock::duration time) { start_ += time; }

  ProgressStyle style() const { return style_; }

 private:
  using Clock = std::chrono::steady_clock;

  void draw();
  void clear();

  ProgressStyle style_;
  std::FILE* out_;
  bool unicode_;
  ProgressSink* sink_ = nullptr;
  ProgressState state_;
  int64_t samples_ = 0;
  int64_t first_ = 0;  // batches over when the clock started
  int64_t later_ = 0;  // batches of later epochs
  Clock::time_point start_;
  Clock::time_point next_draw_;
  bool drawn_ = false;
};

// Whether the locale of the environment is UTF-8, and the columns of the terminal behind `out` (80
// when it is none).
bool environment_is_utf8();
int terminal_width(std::FILE* out);

}  // namespace kiln::train
