#include "cli/runs/run_folder.h"

#include <cmath>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "kiln/core/error.h"
#include "kiln/core/utf8.h"
#include "kiln/io/atomic_file.h"
#include "kiln/io/input_file.h"

namespace kiln::cli {

namespace {

namespace fs = std::filesystem;

std::string lock_path(const std::string& folder) {
  return (fs::path(folder) / "run.lock").string();
}
std::string state_path(const std::string& folder) {
  return (fs::path(folder) / "run.json").string();
}

double number_in(const Json& json, const char* name, double otherwise) {
  const Json* found = json.find(name);
  if (found == nullptr) return otherwise;
  if (const double* real = found->as<double>()) return *real;
  if (const int64_t* whole = found->as<int64_t>()) return static_cast<double>(*whole);
  return otherwise;
}

std::string text_in(const Json& json, const char* name) {
  const Json* found = json.find(name);
  const auto* text = found == nullptr ? nullptr : found->as<std::string>();
  return text == nullptr ? "" : *text;
}

int64_t whole_in(const Json& json, const char* name) {
  const Json* found = json.find(name);
  const auto* value = found == nullptr ? nullptr : found->as<int64_t>();
  return value == nullptr ? 0 : *value;
}

}  // namespace

RunLock::RunLock(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!fs::is_directory(folder)) {
    throw_error<IoError>("cannot make the folder '", folder,
                         "': ", error ? error.message() : "a file of that name is in the way");
  }
  fd_ = ::open(lock_path(folder).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd_ < 0) {
    throw_error<IoError>("cannot write '", lock_path(folder), "': ", std::strerror(errno));
  }
  if (::flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(fd_);
    throw_error<IoError>("another process trains in '", folder, "'");
  }
}

RunLock::~RunLock() { ::close(fd_); }

bool RunLock::is_held(const std::string& folder) {
  const int fd = ::open(lock_path(folder).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool held = ::flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(fd);
  return held;
}

void write_run_state(const std::string& folder, const RunState& state) {
  Json json = Json::Object();
  json.add("state", state.state);
  if (!state.error.empty()) json.add("error", printable(state.error, 1000));
  json.add("model", state.model);
  json.add("data", state.data);
  json.add("parameters", state.parameters);
  json.add("epochs", state.epochs);
  json.add("started", state.started);
  json.add("ended", state.ended);
  Json seconds = Json::Array();
  for (const double value : state.seconds) seconds.add(Json(value));
  json.add("seconds", std::move(seconds));
  json.add("best_metric", state.best_metric);
  json.add("larger_is_better", state.larger_is_better);
  Json test = Json::Object();
  for (const auto& [name, value] : state.test) test.add(name, value);
  json.add("test", std::move(test));
  io::write_file_atomically("write_run_state", state_path(folder), encode_json(json) + "\n");
}

std::optional<RunState> read_run_state(const std::string& folder) {
  if (!fs::exists(state_path(folder))) return std::nullopt;
  const io::InputFile file("read_run_state", state_path(folder));
  Json json;
  try {
    json = decode_json(file.read_whole(uint64_t{64} << 20));
  } catch (const ValueError& e) {
    throw_error<IoError>("'", state_path(folder), "' is damaged: ", printable(e.what(), 200));
  }
  RunState out;
  out.state = text_in(json, "state");
  out.error = text_in(json, "error");
  out.model = text_in(json, "model");
  out.data = text_in(json, "data");
  out.parameters = whole_in(json, "parameters");
  out.epochs = whole_in(json, "epochs");
  out.started = number_in(json, "started", 0);
  out.ended = number_in(json, "ended", 0);
  out.best_metric = text_in(json, "best_metric");
  const Json* larger = json.find("larger_is_better");
  out.larger_is_better = larger != nullptr && larger->as<bool>() != nullptr && *larger->as<bool>();
  const Json* seconds = json.find("seconds");
  if (const auto* list = seconds == nullptr ? nullptr : seconds->as<Json::Array>()) {
    for (const Json& value : *list) {
      const double* real = value.as<double>();
      const int64_t* whole = value.as<int64_t>();
      out.seconds.push_back(real != nullptr    ? *real
                            : whole != nullptr ? static_cast<double>(*whole)
                                               : 0);
    }
  }
  const Json* test = json.find("test");
  if (const auto* members = test == nullptr ? nullptr : test->as<Json::Object>()) {
    for (const auto& [name, value] : *members) {
      out.test.emplace_back(name, number_in(*test, name.c_str(), std::nan("")));
    }
  }
  return out;
}

}  // namespace kiln::cli
