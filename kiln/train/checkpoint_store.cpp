#include "kiln/train/checkpoint_store.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include <unistd.h>

#include "kiln/core/error.h"
#include "kiln/core/json.h"
#include "kiln/io/atomic_file.h"
#include "kiln/io/torch_file.h"

namespace kiln::train {

namespace {

namespace fs = std::filesystem;

constexpr const char* kIndex = "checkpoints.json";

std::string name_of(int64_t step) {
  char name[48];
  std::snprintf(name, sizeof name, "step-%09lld.pt", static_cast<long long>(step));
  return name;
}

// The step of a checkpoint's name; nothing when it is none.
std::optional<int64_t> step_of(const std::string& name) {
  if (!name.starts_with("step-") || !name.ends_with(".pt")) return {};
  int64_t step = 0;
  const char* end = name.data() + name.size() - 3;
  const auto [at, error] = std::from_chars(name.data() + 5, end, step);
  if (error != std::errc() || at != end || step < 0) return {};
  return step;
}

}  // namespace

CheckpointStore::CheckpointStore(std::string folder, CheckpointPolicy policy)
    : folder_(std::move(folder)), policy_(policy), process_(::getpid()) {
  if (policy_.keep_last < 1 || policy_.keep_best < 0) {
    throw_error<ValueError>("CheckpointStore: out of range; got keep_last ", policy_.keep_last,
                            " and keep_best ", policy_.keep_best,
                            "; expected 1 or more, and 0 or more");
  }
  std::error_code error;
  fs::create_directories(folder_, error);
  if (!fs::is_directory(folder_, error)) {
    throw_error<IoError>("CheckpointStore: cannot make the folder '", folder_, "'; got ",
                         error ? error.message() : "a file of that name",
                         "; expected a path where folders can be made");
  }
  { const io::AtomicFile trial("CheckpointStore", (fs::path(folder_) / kIndex).string()); }
  io::remove_stale_temporaries(folder_);
  find();
}

CheckpointStore::~CheckpointStore() {
  if (!writer_.joinable()) return;
  // After fork() the thread is the parent's.
  if (process_ != ::getpid()) {
    writer_.detach();
  } else {
    writer_.join();
  }
}

void CheckpointStore::find() {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    const std::optional<int64_t> step = step_of(entry.path().filename().string());
    if (step && entry.is_regular_file(error)) all_.push_back({entry.path().string(), *step});
  }
  std::sort(all_.begin(), all_.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  read_index();
}

// The metrics. An index that is missing or damaged costs them, and nothing else.
void CheckpointStore::read_index() {
  std::ifstream file(fs::path(folder_) / kIndex, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  Json json;
  try {
    json = decode_json(text);
  } catch (const Error&) {
    return;
  }
  const Json* list = json.find("checkpoints");
  const auto* items = list == nullptr ? nullptr : list->as<Json::Array>();
  if (items == nullptr) return;
  for (const Json& item : *items) {
    const Json* step = item.find("step");
    const Json* metric = item.find("metric");
    const int64_t* number = step == nullptr ? nullptr : step->as<int64_t>();
    if (number == nullptr || metric == nullptr) continue;
    const double* real = metric->as<double>();
    const int64_t* whole = metric->as<int64_t>();
    if (real == nullptr && whole == nullptr) continue;
    for (CheckpointInfo& info : all_) {
      if (info.step == *number) info.metric = real ? *real : static_cast<double>(*whole);
    }
  }
}

CheckpointInfo CheckpointStore::info_of(int64_t step, double metric) const {
  if (step < 0) {
    throw_error<ValueError>("CheckpointStore: negative step; got ", step, "; expected 0 or more");
  }
  return {path_of(folder_, step), step, metric};
}

std::string CheckpointStore::path_of(const std::string& folder, int64_t step) {
  return (fs::path(folder) / name_of(step)).string();
}

bool CheckpointStore::save(const io::PickleValue& state, int64_t step, double metric, bool wait) {
  if (!begin(state, info_of(step, metric), wait, /*watch=*/false)) return false;
  wait_copied();
  return true;
}

bool CheckpointStore::save_overlapped(io::PickleValue state, int64_t step, double metric,
                                      bool wait) {
  return begin(std::move(state), info_of(step, metric), wait, /*watch=*/true);
}

bool CheckpointStore::begin(io::PickleValue state, CheckpointInfo info, bool wait, bool watch) {
  if (is_writing() && !wait) return false;
  if (writer_.joinable()) writer_.join();
  held_ = std::move(state);
  io::PickleValue copy = snapshot_.begin(held_);
  exact_ = true;
  judged_.store(!watch, std::memory_order_release);
  writing_.store(true, std::memory_order_release);
  copied_.store(false, std::memory_order_release);
  try {
    writer_ = std::thread([this, copy = std::move(copy), info = std::move(info)]() mutable {
      copy_and_write(copy, std::move(info));
      copy = {};  // before another copy may be made
      writing_.store(false, std::memory_order_release);
    });
  } catch (const std::system_error& e) {
    writing_.store(false, std::memory_order_release);
    copied_.store(true, std::memory_order_release);
    judged_.store(true, std::memory_order_release);
    throw_error<RuntimeError>("CheckpointStore: no thread could be started; got ", e.what(),
                              "; expected a system with room for one more");
  }
  return true;
}

// The writer's thread.
void CheckpointStore::copy_and_write(const io::PickleValue& copy, CheckpointInfo info) {
  snapshot_.finish();
  const bool spoiled = !judged_.load(std::memory_order_acquire) && !snapshot_.is_exact();
  if (spoiled) judge_copy();
  copied_.store(true, std::memory_order_release);
  copied_.notify_all();
  if (!spoiled) write(copy, std::move(info));
}

// Whether something wrote into the originals while they were copied. Versions count a write when it
// is over. So the caller's thread says it last, which is in no write of its own then; where it does
// not ask, the writer does when the file is written.
bool CheckpointStore::judge_copy() {
  const std::lock_guard lock(mutex_);
  if (!judged_.load(std::memory_order_relaxed)) {
    exact_ = snapshot_.is_exact();
    if (!exact_) spoiled_.store(true, std::memory_order_release);
    judged_.store(true, std::memory_order_release);
  }
  return exact_;
}

void CheckpointStore::wait_until_copied() {
  if (!is_copying()) return;
  snapshot_.finish();
  judge_copy();
  copied_.wait(false, std::memory_order_acquire);
}

void CheckpointStore::wait_copied() {
  wait_until_copied();
  snapshot_.release();
  held_ = {};
}

void CheckpointStore::write(const io::PickleValue& state, CheckpointInfo info) {
  try {
    io::save_torch(info.path, state);
    if (judge_copy()) {
      keep(info);
    } else {
      std::error_code ignored;
      fs::remove(info.path, ignored);
    }
  } catch (const std::exception& e) {
    const std::lock_guard lock(mutex_);
    error_ = e.what();
  }
}

// Takes a new one into the list and removes what is too many: the index first, so that what it
// names is always there.
void CheckpointStore::keep(const CheckpointInfo& info) {
  std::vector<CheckpointInfo> all;
  {
    const std::lock_guard lock(mutex_);
    all = all_;
  }
  std::erase_if(all, [&](const CheckpointInfo& other) { return other.step == info.step; });
  all.push_back(info);
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  const std::vector<CheckpointInfo> left = kept(all);
  {
    const std::lock_guard lock(mutex_);
    all_ = left;
  }
  write_index(left);
  for (const CheckpointInfo& old : all) {
    const bool stays = std::any_of(left.begin(), left.end(),
                                   [&](const CheckpointInfo& k) { return k.step == old.step; });
    std::error_code ignored;
    if (!stays) fs::remove(old.path, ignored);
  }
}

std::vector<CheckpointInfo> CheckpointStore::kept(std::vector<CheckpointInfo> all) const {
  std::vector<CheckpointInfo> ranked;
  for (const CheckpointInfo& info : all) {
    if (std::isfinite(info.metric)) ranked.push_back(info);
  }
  // Of equal ones the earlier.
  std::stable_sort(ranked.begin(), ranked.end(),
                   [this](const auto& a, const auto& b) { return is_better(a.metric, b.metric); });
  ranked.resize(std::min(ranked.size(), static_cast<size_t>(policy_.keep_best)));
  const size_t last = std::min(all.size(), static_cast<size_t>(policy_.keep_last));
  std::vector<CheckpointInfo> out;
  for (size_t i = 0; i < all.size(); ++i) {
    const bool is_best = std::any_of(ranked.begin(), ranked.end(), [&](const CheckpointInfo& r) {
      return r.step == all[i].step;
    });
    if (is_best || i + last >= all.size()) out.push_back(all[i]);
  }
  return out;
}

void CheckpointStore::write_index(const std::vector<CheckpointInfo>& all) const {
  Json list = Json::Array();
  for (const CheckpointInfo& info : all) {
    Json entry = Json::Object();
    entry.add("file", name_of(info.step));
    entry.add("step", info.step);
    entry.add("metric", std::isfinite(info.metric) ? Json(info.metric) : Json());
    list.add(std::move(entry));
  }
  Json json = Json::Object();
  json.add("checkpoints", std::move(list));
  io::write_file_atomically("CheckpointStore", (fs::path(folder_) / kIndex).string(),
                            encode_json(json) + "\n");
}

void CheckpointStore::wait() {
  if (writer_.joinable()) writer_.join();
  const std::string error = take_error();
  if (!error.empty()) throw IoError(error);
}

std::string CheckpointStore::take_error() {
  const std::lock_guard lock(mutex_);
  return std::exchange(error_, {});
}

std::vector<CheckpointInfo> CheckpointStore::list() const {
  const std::lock_guard lock(mutex_);
  return all_;
}

std::optional<CheckpointInfo> CheckpointStore::best() const {
  std::optional<CheckpointInfo> found;
  for (const CheckpointInfo& info : list()) {
    if (!std::isfinite(info.metric)) continue;
    if (!found || is_better(info.metric, found->metric)) found = info;
  }
  return found;
}

void CheckpointStore::discard_after(int64_t step) {
  if (writer_.joinable()) writer_.join();
  const std::lock_guard lock(mutex_);
  std::erase_if(all_, [&](const CheckpointInfo& info) {
    if (info.step <= step) return false;
    std::error_code ignored;
    fs::remove(info.path, ignored);
    return true;
  });
  write_index(all_);
}

}  // namespace kiln::train
