#include "cli/runs/run_record.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "cli/train/metric_list.h"
#include "kiln/core/error.h"
#include "kiln/core/utf8.h"
#include "kiln/io/input_file.h"

namespace kiln::cli {

namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostBytes = uint64_t{1} << 30;
constexpr int kDeepest = 4;

std::optional<double> number_of(const Json& json) {
  if (const double* real = json.as<double>()) return *real;
  if (const int64_t* whole = json.as<int64_t>()) return static_cast<double>(*whole);
  const auto* word = json.as<std::string>();
  if (word != nullptr && (*word == "nan" || *word == "inf" || *word == "-inf")) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return std::nullopt;
}

std::string printable_name(const std::string& text) { return printable(text, 100); }

void read_line(const std::string& line, RunRecord& run) {
  Json json;
  try {
    json = decode_json(line);
  } catch (const ValueError&) {
    return;
  }
  const auto* members = json.as<Json::Object>();
  const Json* event = json.find("event");
  const auto* word = event == nullptr ? nullptr : event->as<std::string>();
  if (members == nullptr || word == nullptr || (*word != "epoch" && *word != "step")) return;
  LoggedPoint point;
  for (const auto& [name, value] : *members) {
    const std::optional<double> number = number_of(value);
    if (!number || name == "event") continue;
    if (name == "epoch" || name == "step") {
      const int64_t* whole = value.as<int64_t>();
      (name == "epoch" ? point.epoch : point.step) = whole == nullptr ? 0 : *whole;
    } else if (name == "time") {
      point.time = *number;
    } else {
      point.values.emplace_back(printable_name(name), *number);
    }
  }
  (*word == "epoch" ? run.epochs : run.steps).push_back(std::move(point));
}

double value_of(const LoggedPoint& point, const std::string& metric) {
  for (const auto& [name, value] : point.values) {
    if (name == metric) return value;
  }
  return std::nan("");
}

// Where a run does not say what "best" means: what was measured of the validation samples.
std::string usual_metric(const RunRecord& run) {
  const std::vector<std::string> all = run.metrics();
  for (const char* name : {"valid/accuracy", "valid/loss", "train/loss"}) {
    if (std::find(all.begin(), all.end(), name) != all.end()) return name;
  }
  return "";
}

void find_best(RunRecord& run) {
  run.best_metric = run.state.best_metric.empty() ? usual_metric(run) : run.state.best_metric;
  const bool larger = run.state.best_metric.empty() ? is_larger_better(run.best_metric)
                                                    : run.state.larger_is_better;
  for (const LoggedPoint& point : run.epochs) {
    const double value = value_of(point, run.best_metric);
    if (!std::isfinite(value)) continue;
    if (run.best_epoch == 0 || (larger ? value > run.best : value < run.best)) {
      run.best = value;
      run.best_epoch = point.epoch;
    }
  }
}

// A process that is gone and did not say how it ended was killed.
std::string status_of(const RunRecord& run, bool has_state) {
  if (!has_state) return "-";
  if (run.state.state != "running") return printable(run.state.state, 20);
  return RunLock::is_held(run.folder) ? "running" : "killed";
}

double seconds_of(const RunRecord& run) {
  double sum = 0;
  for (const double value : run.state.seconds) sum += value;
  if (sum > 0) return sum;
  const std::vector<LoggedPoint>& points = run.steps.empty() ? run.epochs : run.steps;
  return points.empty() ? 0 : std::max(points.back().time - points.front().time, 0.0);
}

std::string name_in(const Json& config, const char* part, const char* field) {
  const Json* found = config.find(part);
  if (found == nullptr) return "";
  if (const auto* word = found->as<std::string>()) return *word;
  const Json* name = found->find(field);
  const auto* word = name == nullptr ? nullptr : name->as<std::string>();
  return word == nullptr ? "" : *word;
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : printable(text, 40); }

void add_flat(const Json& json, const std::string& path,
              std::vector<std::pair<std::string, std::string>>& out) {
  const auto* members = json.as<Json::Object>();
  if (members == nullptr) {
    const auto* text = json.as<std::string>();
    out.emplace_back(path,
                     printable(text != nullptr ? *text : encode_json(json, JsonFormat::text), 200));
    return;
  }
  for (const auto& [name, value] : *members) {
    add_flat(value, path.empty() ? printable_name(name) : concat(path, ".", printable_name(name)),
             out);
  }
}

void find_below(const fs::path& folder, int depth, std::vector<RunRecord>& out) {
  if (is_run(folder.string())) {
    out.push_back(read_run(folder.string()));
    return;
  }
  if (depth == kDeepest) return;
  std::error_code error;
  for (const auto& entry :
       fs::directory_iterator(folder, fs::directory_options::skip_permission_denied, error)) {
    if (entry.is_directory(error) && !entry.is_symlink(error)) {
      find_below(entry.path(), depth + 1, out);
    }
  }
}

double start_of(const RunRecord& run) {
  if (run.state.started > 0) return run.state.started;
  const std::vector<LoggedPoint>& points = run.steps.empty() ? run.epochs : run.steps;
  return points.empty() ? 0 : points.front().time;
}

}  // namespace

std::string RunRecord::model() const {
  return or_dash(state.model.empty() ? name_in(config, "model", "name") : state.model);
}
std::string RunRecord::data() const {
  return or_dash(state.data.empty() ? name_in(config, "data", "kind") : state.data);
}

std::vector<std::string> RunRecord::metrics() const {
  std::vector<std::string> out;
  for (const auto* points : {&epochs, &steps}) {
    for (const LoggedPoint& point : *points) {
      for (const auto& [name, value] : point.values) {
        if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
      }
    }
  }
  return out;
}

std::vector<std::pair<double, double>> RunRecord::curve(const std::string& metric,
                                                        bool& by_step) const {
  std::vector<std::pair<double, double>> out;
  const auto add = [&](const std::vector<LoggedPoint>& points, bool step) {
    for (const LoggedPoint& point : points) {
      const double value = value_of(point, metric);
      if (std::isfinite(value)) {
        out.emplace_back(static_cast<double>(step ? point.step : point.epoch), value);
      }
    }
    by_step = step;
  };
  add(epochs, false);
  if (out.empty()) add(steps, true);
  return out;
}

bool is_run(const std::string& folder) {
  std::error_code error;
  return fs::is_regular_file(fs::path(folder) / "log.jsonl", error);
}

RunRecord read_run(const std::string& folder) {
  RunRecord run;
  run.folder = folder;
  const fs::path path = fs::path(folder).lexically_normal();
  run.name = printable_name((path.has_filename() ? path : path.parent_path()).filename().string());
  if (!is_run(folder)) {
    throw_error<IoError>("'", folder, "' holds no run: there is no log.jsonl in it");
  }
  const io::InputFile log("read_run", (path / "log.jsonl").string());
  const std::string text = log.read_whole(kMostBytes);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    read_line(text.substr(begin, end - begin), run);
    begin = end + 1;
  }
  const std::optional<RunState> state = read_run_state(folder);
  if (state) run.state = *state;
  if (fs::is_regular_file(path / "config.json")) {
    const io::InputFile file("read_run", (path / "config.json").string());
    try {
      run.config = decode_json(file.read_whole(kMostBytes));
    } catch (const ValueError& e) {
      throw_error<IoError>("'", file.path(), "' is damaged: ", printable(e.what(), 200));
    }
  }
  run.status = status_of(run, state.has_value());
  run.seconds = seconds_of(run);
  find_best(run);
  return run;
}

std::vector<RunRecord> find_runs(const std::string& folder) {
  if (!fs::is_directory(folder)) throw_error<IoError>("there is no folder '", folder, "'");
  std::vector<RunRecord> out;
  find_below(folder, 0, out);
  std::stable_sort(out.begin(), out.end(), [](const RunRecord& a, const RunRecord& b) {
    return start_of(a) != start_of(b) ? start_of(a) < start_of(b) : a.folder < b.folder;
  });
  return out;
}

std::vector<std::pair<std::string, std::string>> flat_fields(const Json& config) {
  std::vector<std::pair<std::string, std::string>> out;
  if (config.as<Json::Object>() != nullptr) add_flat(config, "", out);
  return out;
}

}  // namespace kiln::cli
