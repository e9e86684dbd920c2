// HookTable: the hooks of one module. Internal to kiln/nn.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "kiln/nn/module.h"

namespace kiln::nn::detail {

// Hooks of one kind, in the order they run in. A snapshot stays as it is while hooks come and go:
// a call in progress goes on with those that it began with.
template <class F>
class HookList {
 public:
  struct Entry {
    uint64_t id;
    F hook;
    bool always_call;
  };
  using Entries = std::vector<Entry>;

  uint64_t add(F hook, bool prepend, bool always_call) {
    std::lock_guard lock(mutex_);
    auto changed = entries_ ? std::make_shared<Entries>(*entries_) : std::make_shared<Entries>();
    const uint64_t id = next_id_++;
    changed->insert(prepend ? changed->begin() : changed->end(),
                    Entry{id, std::move(hook), always_call});
    entries_ = std::move(changed);
    return id;
  }
  // False when there is none.
  bool remove(uint64_t id) {
    std::shared_ptr<const Entries> before;  // goes after the lock: a hook may own anything
    std::lock_guard lock(mutex_);
    if (entries_ == nullptr) return false;
    auto changed = std::make_shared<Entries>();
    for (const Entry& entry : *entries_) {
      if (entry.id != id) changed->push_back(entry);
    }
    if (changed->size() == entries_->size()) return false;
    before = std::move(entries_);
    if (!changed->empty()) entries_ = std::move(changed);
    return true;
  }
  // Null when there are none.
  std::shared_ptr<const Entries> snapshot() const {
    std::lock_guard lock(mutex_);
    return entries_;
  }
  size_t size() const {
    const auto entries = snapshot();
    return entries ? entries->size() : 0;
  }
  void assign(const HookList& other) {
    std::shared_ptr<const Entries> theirs;
    uint64_t next = 0;
    {
      std::lock_guard lock(other.mutex_);
      theirs = other.entries_;
      next = other.next_id_;
    }
    std::lock_guard lock(mutex_);
    entries_.swap(theirs);
    next_id_ = next;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Entries> entries_;
  uint64_t next_id_ = 0;
};

// f(entry) for the entries of a snapshot that may be null.
template <class Snapshot, class F>
void for_each_hook(const Snapshot& snapshot, F&& f) {
  if (snapshot == nullptr) return;
  for (const auto& entry : *snapshot) f(entry);
}

// The hooks that a call runs: of a module, or of all modules.
struct CallHooks {
  HookList<ForwardPreHook> forward_pre;
  HookList<ForwardHook> forward;
  HookList<BackwardPreHook> backward_pre;
  HookList<BackwardHook> backward;
  // Which kind `backward` holds.
  enum : int { kFull, kDeprecated };
  std::atomic<int> kind{kFull};

  // Throws RuntimeError when it holds the other one.
  void decide(int wanted, const char* where);
  size_t size() const {
    return forward_pre.size() + forward.size() + backward_pre.size() + backward.size();
  }
};

CallHooks& global_hooks();

// Created when a module gets its first hook, or is called under global backward hooks; shared by
// the graphs that must know whether the module still exists.
struct HookTable final : HookCount {
  CallHooks call;
  HookList<StateDictPreHook> state_dict_pre;
  HookList<StateDictHook> state_dict_post;
  HookList<LoadStateDictPreHook> load_pre;
  HookList<LoadStateDictPostHook> load_post;
  std::atomic<Module*> owner{nullptr};  // null when it is gone

  // What takes forward's place; null when nothing does. A copy of the module has none.
  std::shared_ptr<ForwardReplacement> replacement() const {
    const std::lock_guard lock(mutex_);
    return replacement_;
  }
  void replace_forward(std::shared_ptr<ForwardReplacement> by) {
    const std::lock_guard lock(mutex_);
    if ((by != nullptr) != (replacement_ != nullptr)) value += by != nullptr ? 1 : -1;
    replacement_.swap(by);
  }

  void assign(const HookTable& other);
  // Drops all hooks: a hook may own the handle that owns this table.
  void clear();

  // The module's table, null when it has none.
  static HookTable* of(const Module& module) {
    return static_cast<HookTable*>(module.hooks_.load(std::memory_order_acquire));
  }
  // The module's table, made now if it has to be.
  static HookTable& ensure(const Module& module) { return module.hook_table(); }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<ForwardReplacement> replacement_;
};

}  // namespace kiln::nn::detail
