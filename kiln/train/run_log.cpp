#include "kiln/train/run_log.h"

#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>

#include <unistd.h>

#include "kiln/core/error.h"
#include "kiln/train/wall_time.h"

namespace kiln::train {

namespace {

std::string new_event_file() {
  using std::chrono::system_clock;
  const auto now =
      std::chrono::duration_cast<std::chrono::seconds>(system_clock::now().time_since_epoch());
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0 || host[0] == '\0') host = {"localhost"};
  return concat("events.out.tfevents.", now.count(), ".", host.data(), ".", ::getpid(), ".kiln");
}

// A field of a CSV file (RFC 4180).
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + '"';
}

// The fewest digits that give it back; "nan", "inf" and "-inf".
std::string csv_number(double value) {
  std::string text = encode_json(Json(value), JsonFormat::text);
  std::erase(text, '"');
  return text;
}

Json head(const std::string& event, int64_t epoch, int64_t step, double time) {
  Json json = Json::Object();
  json.add("event", event);
  json.add("epoch", epoch);
  json.add("step", step);
  json.add("time", time);
  return json;
}

}  // namespace

RunLog::RunLog(const std::string& folder, RunLogFormats formats, const RunLogPosition& position) {
  const std::filesystem::path path(folder);
  std::error_code ignored;
  std::filesystem::create_directories(path, ignored);
  if (formats.json) json_.emplace((path / "log.jsonl").string(), position.json);
  if (formats.csv) {
    csv_.emplace((path / "log.csv").string(), position.csv);
    if (csv_->position() == 0) csv_->append("event,epoch,step,time,name,value\n");
  }
  if (formats.tensorboard) {
    const bool goes_on = !position.event_file.empty();
    // A name of a file, whatever a checkpoint says.
    const std::string name =
        goes_on ? std::filesystem::path(position.event_file).filename().string() : new_event_file();
    events_.emplace((path / name).string(), goes_on ? position.events : 0);
  }
}

void RunLog::numbers(const std::string& event, int64_t epoch, int64_t step,
                     const NamedNumbers& values) {
  if (json_) {
    Json json = head(event, epoch, step, wall_time());
    for (const auto& [name, value] : values) json.add(name, value);
    json_->append(encode_json(json, JsonFormat::text) + "\n");
  }
  if (csv_) {
    std::string rows;
    const std::string time = csv_number(wall_time());
    for (const auto& [name, value] : values) {
      rows += concat(csv_field(event), ",", epoch, ",", step, ",", time, ",", csv_field(name), ",",
                     csv_number(value), "\n");
    }
    csv_->append(rows);
  }
  if (events_) {
    for (const auto& [name, value] : values) events_->scalar(name, value, step);
  }
}

void RunLog::note(const std::string& event, int64_t epoch, int64_t step, Json details) {
  if (!json_) return;
  Json json = head(event, epoch, step, wall_time());
  json.add("details", std::move(details));
  json_->append(encode_json(json, JsonFormat::text) + "\n");
}

RunLogPosition RunLog::position() const {
  RunLogPosition out;
  if (json_) out.json = json_->position();
  if (csv_) out.csv = csv_->position();
  if (events_) {
    out.events = events_->position();
    out.event_file = std::filesystem::path(events_->path()).filename().string();
  }
  return out;
}

}  // namespace kiln::train
