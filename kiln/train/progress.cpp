#include "kiln/train/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/ioctl.h>
#include <unistd.h>

#include "kiln/core/error.h"
#include "kiln/train/text.h"

namespace kiln::train {

namespace {

constexpr auto kBetweenDraws = std::chrono::milliseconds(100);
constexpr auto kBetweenLines = std::chrono::seconds(5);

double fraction_of(const ProgressState& state) {
  if (state.total <= 0) return 0.0;
  return std::clamp(static_cast<double>(state.done) / static_cast<double>(state.total), 0.0, 1.0);
}

std::string whole_percent(const ProgressState& state) {
  const auto value = static_cast<int>(fraction_of(state) * 100);
  return concat(std::string(value < 10 ? 2 : value < 100 ? 1 : 0, ' '), value, " %");
}

std::string rate(const ProgressState& state) {
  return concat(grouped(std::llround(state.samples_per_second)), " samples/s");
}

std::string time_left(const ProgressState& state) {
  const auto whole = static_cast<long long>(std::ceil(std::max(state.seconds_left, 0.0)));
  const long long seconds = whole % 60;
  return concat(whole / 60, seconds < 10 ? ":0" : ":", seconds, " left");
}

std::string progress_bar(double fraction, int width, bool unicode) {
  if (!unicode) {
    const auto full = static_cast<size_t>(fraction * (width - 2));
    return concat("[", std::string(full, '#'),
                  std::string(static_cast<size_t>(width - 2) - full, '.'), "]");
  }
  std::string out = text_bar(fraction, width, true);
  const auto left = static_cast<size_t>(width) - text_width(out);
  for (size_t i = 0; i < left; ++i) out += "░";
  return out;
}

bool is_terminal(std::FILE* out) {
  const char* term = std::getenv("TERM");
  return isatty(fileno(out)) != 0 && term != nullptr && std::string_view(term) != "dumb" &&
         *term != '\0';
}

}  // namespace

bool environment_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string_view locale(value);
    for (const char* utf8 : {"UTF-8", "utf8", "utf-8", "UTF8"}) {
      if (locale.find(utf8) != std::string_view::npos) return true;
    }
    return false;
  }
  return false;
}

int terminal_width(std::FILE* out) {
  winsize size{};
  if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

std::string format_progress(const ProgressState& state, int width, bool unicode) {
  constexpr int kShortestBar = 8;
  constexpr int kLongestBar = 40;
  // By importance; the bar stands after the first.
  std::vector<std::string> fields{concat(state.label, " "), whole_percent(state)};
  const auto value = [&](size_t i) {
    return concat(state.values[i].first, " ", state.values[i].second);
  };
  if (!state.values.empty()) fields.push_back(value(0));
  if (state.samples_per_second > 0 && state.seconds_left >= 0) fields.push_back(time_left(state));
  for (size_t i = 1; i < state.values.size(); ++i) fields.push_back(value(i));
  if (state.samples_per_second > 0) fields.push_back(rate(state));
  const auto length = [](const std::vector<std::string>& parts) {
    size_t sum = 0;
    for (const std::string& p : parts) sum += text_width(p) + 2;
    return static_cast<int>(sum) - 2;
  };
  while (fields.size() > 2 && length(fields) + kShortestBar - 1 > width) fields.pop_back();
  const int bar = std::min(kLongestBar, width - length(fields) + 1);
  // On the line, time stands last.
  const auto time = std::find_if(fields.begin(), fields.end(), [](const std::string& f) {
    return f.size() > 5 && f.compare(f.size() - 5, 5, " left") == 0;
  });
  if (time != fields.end()) std::rotate(time, time + 1, fields.end());
  std::string out = fields[0];
  if (bar >= kShortestBar) out += progress_bar(fraction_of(state), bar, unicode);
  for (size_t i = 1; i < fields.size(); ++i) out += (i == 1 ? " " : "  ") + fields[i];
  if (static_cast<int>(text_width(out)) > width)
    out.resize(static_cast<size_t>(std::max(width, 0)));
  return out;
}

std::string format_progress_plain(const ProgressState& state) {
  std::string out = concat(state.label, " ", whole_percent(state));
  for (const auto& [name, text] : state.values) out += concat("  ", name, " ", text);
  out += concat("  ", rate(state));
  return state.seconds_left < 0 ? out : concat(out, "  ", time_left(state));
}

Progress::Progress(ProgressStyle style, std::FILE* out)
    : style_(style), out_(out), unicode_(environment_is_utf8()) {
  if (style_ == ProgressStyle::automatic) {
    style_ = is_terminal(out) ? ProgressStyle::bar : ProgressStyle::plain;
  }
}

Progress::~Progress() { clear(); }

void Progress::start(const std::string& label, int64_t total, int64_t done, int64_t later) {
  clear();
  state_ = {};
  state_.label = label;
  state_.total = total;
  state_.done = first_ = done;
  later_ = later;
  samples_ = 0;
  start_ = Clock::now();
  next_draw_ = start_;
  if (style_ == ProgressStyle::plain && sink_ == nullptr) next_draw_ += kBetweenLines;
  if (style_ == ProgressStyle::bar || sink_ != nullptr) draw();
  if (sink_ != nullptr) next_draw_ = start_;  // however short an epoch is
}

bool Progress::advance(int64_t samples) {
  ++state_.done;
  samples_ += samples;
  return (style_ != ProgressStyle::quiet || sink_ != nullptr) && Clock::now() >= next_draw_;
}

void Progress::show(std::vector<std::pair<std::string, std::string>> values) {
  if (style_ == ProgressStyle::quiet && sink_ == nullptr) return;
  const Clock::time_point now = Clock::now();
  state_.values = std::move(values);
  const double seconds = std::max(std::chrono::duration<double>(now - start_).count(), 1e-9);
  state_.samples_per_second = static_cast<double>(samples_) / seconds;
  state_.seconds_left = state_.total <= 0 || state_.done == first_
                            ? -1
                            : seconds * static_cast<double>(state_.total - state_.done + later_) /
                                  static_cast<double>(state_.done - first_);
  if (style_ == ProgressStyle::bar || sink_ != nullptr) {
    draw();
  } else {
    std::fprintf(out_, "%s\n", format_progress_plain(state_).c_str());
    std::fflush(out_);
    next_draw_ = now + kBetweenLines;
  }
}

void Progress::finish() { clear(); }

void Progress::print(const std::string& line) {
  if (sink_ != nullptr) return sink_->print(line);
  if (style_ == ProgressStyle::quiet) return;
  const bool redraw = drawn_;
  clear();
  std::fprintf(out_, "%s\n", line.c_str());
  std::fflush(out_);
  if (redraw) draw();
}

void Progress::redirect(ProgressSink* sink) {
  clear();
  sink_ = sink;
}

void Progress::draw() {
  if (sink_ != nullptr) {
    sink_->progress(state_);
    next_draw_ = Clock::now() + kBetweenDraws;
    return;
  }
  // A terminal wraps when its last column is written.
  const int width = terminal_width(out_) - 1;
  std::fprintf(out_, "\r%s\x1b[K", format_progress(state_, width, unicode_).c_str());
  std::fflush(out_);
  drawn_ = true;
  next_draw_ = Clock::now() + kBetweenDraws;
}

void Progress::clear() {
  if (!drawn_) return;
  std::fprintf(out_, "\r\x1b[K");
  std::fflush(out_);
  drawn_ = false;
}

}  // namespace kiln::train
