#include "kiln/dashboard/dashboard.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <thread>
#include <utility>

#include <unistd.h>

#include "kiln/core/error.h"
#include "kiln/core/utf8.h"
#include "kiln/train/chart.h"
#include "kiln/train/text.h"

namespace kiln::dashboard {

namespace {

constexpr auto kBetweenPolls = std::chrono::milliseconds(20);
constexpr auto kBetweenDraws = std::chrono::milliseconds(100);
constexpr auto kBetweenMeasures = std::chrono::seconds(1);
constexpr size_t kRecentSteps = 200;
constexpr size_t kRecentEpochs = 20;
constexpr size_t kMostPoints = 1000;  // of a curve; more are averaged
constexpr size_t kMostLines = 500;

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Bytes of memory that the process holds; 0 where the system does not say.
double memory_in_use() {
  std::ifstream file("/proc/self/statm");
  double all = 0, resident = 0;
  file >> all >> resident;
  return file ? resident * static_cast<double>(sysconf(_SC_PAGESIZE)) : 0;
}

// The steps from `first` on, averaged where they are too many; x counts steps or epochs that were
// over before them.
TextSeries step_series(const std::vector<double>& losses, size_t first, double x_of_step) {
  TextSeries out{"step", {}};
  const size_t count = losses.size() - first;
  const size_t group = std::max<size_t>((count + kMostPoints - 1) / kMostPoints, 1);
  for (size_t i = first; i < losses.size(); i += group) {
    const size_t end = std::min(i + group, losses.size());
    double sum = 0;
    for (size_t k = i; k < end; ++k) sum += losses[k];
    out.points.emplace_back(static_cast<double>(i) * x_of_step, sum / static_cast<double>(end - i));
  }
  return out;
}

// "train/f1" and "valid/f1" of each epoch from `first` on; "lr" has one curve.
std::vector<TextSeries> epoch_series(const std::vector<train::NamedNumbers>& history,
                                     const std::string& metric, size_t first) {
  std::vector<TextSeries> out;
  for (const char* split : {"train", "valid", ""}) {
    const std::string name = *split == '\0' ? metric : concat(split, "/", metric);
    TextSeries series{*split == '\0' ? metric : split, {}};
    for (size_t i = first; i < history.size(); ++i) {
      for (const auto& [known, value] : history[i]) {
        if (known == name) series.points.emplace_back(static_cast<double>(i) + 1, value);
      }
    }
    if (!series.points.empty()) out.push_back(std::move(series));
  }
  return out;
}

}  // namespace

Dashboard::Dashboard(DashboardOptions options, train::Progress& progress)
    : options_(std::move(options)), progress_(progress), begin_(Clock::now()) {
  view_.title = options_.title;
  view_.unicode = train::environment_is_utf8();
  view_.tabs = {"loss"};
  view_.tabs.insert(view_.tabs.end(), options_.metrics.begin(), options_.metrics.end());
  view_.tabs.emplace_back("lr");
  next_poll_ = next_draw_ = measured_ = begin_;
  processor_ = processor_seconds();
  std::fflush(stdout);
  screen_.emplace();
  progress_.redirect(this);
}

Dashboard::~Dashboard() {
  progress_.redirect(nullptr);
  screen_.reset();
  for (const std::string& line : lines_) std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

// At the beginning of an epoch nothing is measured yet: what was stays until then.
void Dashboard::progress(const train::ProgressState& state) {
  const train::ProgressState before = std::exchange(view_.progress, state);
  if (!state.values.empty()) return;
  view_.progress.values = before.values;
  view_.progress.samples_per_second = before.samples_per_second;
  view_.progress.seconds_left = before.samples_per_second > 0 ? before.seconds_left : -1;
}

void Dashboard::print(const std::string& line) {
  for (size_t begin = 0; begin <= line.size();) {
    const size_t end = std::min(line.find('\n', begin), line.size());
    if (end > begin) lines_.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  const size_t shown = std::min(lines_.size(), kMostLines);
  view_.log.assign(lines_.end() - static_cast<std::ptrdiff_t>(shown), lines_.end());
  for (std::string& text : view_.log) text = printable(text, 1000);
}

void Dashboard::poll(train::Learner& learner) {
  class Watched final : public WatchedRun {
   public:
    explicit Watched(train::Learner& of) : learner_(of) {}
    const std::vector<train::NamedNumbers>& history() override { return learner_.history(); }
    const std::vector<double>& step_loss() override { return learner_.step_loss(); }
    void save_soon() override { learner_.save_soon(); }

   private:
    train::Learner& learner_;
  };
  Watched run(learner);
  poll(run);
}

void Dashboard::poll(WatchedRun& run) {
  if (const auto now = Clock::now(); now < next_poll_) return;
  const auto waited_from = Clock::now();
  bool waited = false;
  for (;;) {
    bool pressed = false;
    while (const auto key = screen_->key()) {
      press(*key, run);
      pressed = true;
    }
    const auto now = Clock::now();
    next_poll_ = now + kBetweenPolls;
    if (pressed || now >= next_draw_) draw(run);
    if (!paused_ || stops_ || (options_.interrupted && options_.interrupted())) break;
    waited = true;
    std::this_thread::sleep_for(kBetweenPolls);
  }
  if (waited) {
    paused_ = false;
    progress_.leave_out(Clock::now() - waited_from);
  }
}

void Dashboard::press(const KeyPress& key, WatchedRun& run) {
  const size_t count = view_.tabs.size();
  if (key.key == Key::right || key.key == Key::tab) view_.tab = (view_.tab + 1) % count;
  if (key.key == Key::left || key.key == Key::back_tab) {
    view_.tab = (view_.tab + count - 1) % count;
  }
  if (key.key != Key::letter) return;
  const char c = key.letter;
  if (c >= '1' && c <= '9' && static_cast<size_t>(c - '1') < count) {
    view_.tab = static_cast<size_t>(c - '1');
  }
  if (c == 'v') view_.recent = !view_.recent;
  if (c == 'p' || c == ' ') paused_ = !paused_;
  if (c == 'q') stops_ = true;
  if (c == 's') {
    run.save_soon();
    print("A checkpoint is saved after the next step.");
  }
}

void Dashboard::draw(WatchedRun& run) {
  const auto now = Clock::now();
  next_draw_ = now + kBetweenDraws;
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  view_.urgent = paused_ || stops_;
  view_.status = stops_    ? "stopping: the step ends, and the run is saved"
                 : paused_ ? "paused (p goes on)"
                           : concat("running ", train::duration(seconds));
  set_metric(run);
  if (view_.resources.empty() || now - measured_ >= kBetweenMeasures) set_resources();
  const auto [width, height] = screen_->size();
  screen_->draw(draw_dashboard(view_, width, height));
}

void Dashboard::set_metric(WatchedRun& run) {
  const std::string& name = view_.tabs[view_.tab];
  const std::vector<train::NamedNumbers>& history = run.history();
  DashboardMetric metric;
  metric.name = name;
  metric.percent = options_.is_share && options_.is_share("valid/" + name);
  metric.whole_label = metric.recent_label = "epochs";
  metric.whole = epoch_series(history, name, 0);
  metric.recent =
      epoch_series(history, name, history.size() - std::min(history.size(), kRecentEpochs));
  if (name == "loss") {
    const std::vector<double>& losses = run.step_loss();
    const double epochs = 1.0 / static_cast<double>(std::max<int64_t>(options_.steps_per_epoch, 1));
    metric.recent_label = "steps";
    metric.recent.clear();
    if (!losses.empty()) {
      metric.whole.insert(metric.whole.begin(), step_series(losses, 0, epochs));
      const size_t first = losses.size() - std::min(losses.size(), kRecentSteps);
      TextSeries recent = step_series(losses, first, 1);
      metric.recent.push_back(std::move(recent));
    }
  }
  view_.metric = std::move(metric);
}

void Dashboard::set_resources() {
  const auto now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - measured_).count();
  if (seconds > 0.5) {
    const double processor = processor_seconds();
    used_ = concat("processor ", std::llround(100 * (processor - processor_) / seconds), " %");
    processor_ = processor;
    measured_ = now;
  }
  const train::ProgressState& p = view_.progress;
  std::string line = used_;
  const auto add = [&](const std::string& text) { line += (line.empty() ? "" : "   ") + text; };
  if (p.samples_per_second > 0) {
    add(concat(train::grouped(std::llround(p.samples_per_second)), " samples/s"));
  }
  if (const double bytes = memory_in_use(); bytes > 0) {
    add(concat("memory ", train::grouped(std::llround(bytes / 1e6)), " MB"));
  }
  view_.resources = line;
}

}  // namespace kiln::dashboard
