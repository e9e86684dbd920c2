#include "kiln/core/kept_data.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kiln/core/fork.h"

namespace kiln::detail {
namespace {

// Uses of unchanged contents after which data is kept.
constexpr int kUses = 3;

struct Entry {
  uint32_t version = 0;
  int uses = 0;
  bool forbidden = false;
  std::vector<std::pair<KeptKey, std::shared_ptr<const void>>> data;
};

constexpr size_t kShards = 16;
struct Shard {
  std::mutex mutex;
  std::unordered_map<const Storage*, Entry> entries;
};
struct Table {
  Shard shards[kShards];
};

// Never destroyed: tensors may end after static objects.
Table& table() {
  static Table& instance = *new Table;
  return instance;
}

size_t hash_of(const Storage& storage) {
  const auto address = reinterpret_cast<uintptr_t>(&storage) / alignof(Storage);
  return static_cast<size_t>((address * 0x9E3779B97F4A7C15ULL) >> 40);
}
Shard& shard_of(const Storage& storage) { return table().shards[hash_of(storage) % kShards]; }

// A bit for each hash of a storage that ever had an entry: most storages end without one.
constexpr size_t kSeenBits = 4096;
std::atomic<uint64_t> seen[kSeenBits / 64];

std::atomic<uint64_t>& word_of(size_t hash) { return seen[hash / kShards % kSeenBits / 64]; }
uint64_t bit_of(size_t hash) { return uint64_t{1} << (hash / kShards % 64); }
bool may_have_entry(const Storage& storage) {
  const size_t hash = hash_of(storage);
  return (word_of(hash).load(std::memory_order_relaxed) & bit_of(hash)) != 0;
}
void note_entry(const Storage& storage) {
  const size_t hash = hash_of(storage);
  word_of(hash).fetch_or(bit_of(hash), std::memory_order_relaxed);
}

thread_local bool keeps = false;

std::atomic<bool>& enabled() {
  static std::atomic<bool> value = [] {
    const char* setting = std::getenv("KILN_KEEP_WEIGHTS");
    return setting == nullptr || std::string_view(setting) != "0";
  }();
  return value;
}

[[maybe_unused]] const bool kept_data_known_to_fork =
    register_at_fork(ForkOrder::kept_data, {[] {
                                              for (Shard& shard : table().shards)
                                                shard.mutex.lock();
                                            },
                                            [] {
                                              for (Shard& shard : table().shards)
                                                shard.mutex.unlock();
                                            }});

using Data = std::vector<std::pair<KeptKey, std::shared_ptr<const void>>>;

// Drops what an earlier version of the contents gave; it goes with `gone`, after the lock.
void catch_up(Entry& entry, uint32_t version, Data& gone) {
  if (entry.version == version) return;
  gone.swap(entry.data);
  entry.version = version;
  entry.uses = 0;
}

}  // namespace

bool keeps_data() { return keeps; }
void set_keeps_data(bool value) { keeps = value; }
void set_keeping_enabled(bool value) { enabled().store(value, std::memory_order_relaxed); }

std::shared_ptr<const void> kept_data(const Storage& from, const KeptKey& key,
                                      const std::function<std::shared_ptr<const void>()>& make) {
  const Storage& storage = from.root();
  if (storage.bytes() < kLeastKeptFrom || storage.is_shared()) return nullptr;
  const bool known = may_have_entry(storage);
  if (!known && (!keeps || !enabled().load(std::memory_order_relaxed))) return nullptr;
  Shard& shard = shard_of(storage);
  const uint32_t version = storage.writes();
  Data gone;
  {
    const std::lock_guard lock(shard.mutex);
    if (!keeps || !enabled().load(std::memory_order_relaxed)) {
      const auto found = shard.entries.find(&storage);
      if (found != shard.entries.end()) catch_up(found->second, version, gone);
      return nullptr;
    }
    note_entry(storage);
    Entry& entry = shard.entries[&storage];
    if (entry.forbidden) return nullptr;
    catch_up(entry, version, gone);
    if (entry.uses < kUses && ++entry.uses < kUses) return nullptr;
    for (const auto& [known_key, data] : entry.data) {
      if (known_key == key) return data;
    }
  }
  std::shared_ptr<const void> made;
  try {
    made = make();
  } catch (...) {
    return nullptr;  // without memory for it, things go on as before
  }
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.entries.find(&storage);
  if (found == shard.entries.end() || found->second.forbidden || storage.writes() != version ||
      found->second.version != version) {
    return made;  // of the contents that this call sees
  }
  for (const auto& [known_key, data] : found->second.data) {
    if (known_key == key) return data;  // another thread was faster
  }
  found->second.data.emplace_back(key, made);
  return made;
}

void stop_keeping(const Storage& from) {
  const Storage& storage = from.root();
  if (storage.bytes() < kLeastKeptFrom) return;
  Data gone;
  Shard& shard = shard_of(storage);
  const std::lock_guard lock(shard.mutex);
  note_entry(storage);
  Entry& entry = shard.entries[&storage];
  entry.forbidden = true;
  gone.swap(entry.data);
}

void drop_kept(const Storage& storage) noexcept {
  if (storage.bytes() < kLeastKeptFrom || !may_have_entry(storage)) return;
  Shard& shard = shard_of(storage);
  decltype(shard.entries)::node_type gone;  // ends after the lock
  const std::lock_guard lock(shard.mutex);
  gone = shard.entries.extract(&storage);
}

void drop_all_kept() noexcept {
  for (Shard& shard : table().shards) {
    for (;;) {
      Data gone;  // ends after the lock
      const std::lock_guard lock(shard.mutex);
      const auto found = std::find_if(shard.entries.begin(), shard.entries.end(),
                                      [](const auto& entry) { return !entry.second.data.empty(); });
      if (found == shard.entries.end()) break;
      gone.swap(found->second.data);
      found->second.uses = 0;
    }
  }
}

}  // namespace kiln::detail
