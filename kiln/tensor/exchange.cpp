#include "kiln/tensor/exchange.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "kiln/core/fork.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln {

namespace {

constexpr uint64_t kNewest = UINT64_MAX;
// The last exchange that this thread sees.
constinit thread_local uint64_t seen = kNewest;

// All that makes up a tensor but its identity.
void swap_state(TensorImpl& a, TensorImpl& b) {
  std::swap(a.value, b.value);
  a.complex_shape.swap(b.complex_shape);
  a.root.swap(b.root);
  std::swap(a.root_writes, b.root_writes);
  std::swap(a.recorded_writes, b.recorded_writes);
}

}  // namespace

namespace detail {

// The oldest version of a tensor (`older` is null) stands for its own state, and has room for that
// when it is to go.
struct Version {
  Version(uint64_t s, Handle<TensorImpl> with, Version* before)
      : since(s), state(std::move(with)), older(before) {}
  uint64_t since;
  Handle<TensorImpl> state;
  Version* older;
};

TensorImpl& seen_version(TensorImpl& tensor, const Version* newest) {
  for (const Version* v = newest; v != nullptr; v = v->older) {
    if (v->since <= seen) return v->since == 0 ? tensor : *v->state;
  }
  return tensor;
}

}  // namespace detail

namespace interop {

using detail::Version;

// What is to be destroyed when the lock has been given back: a destructor may run foreign code.
struct Garbage {
  Garbage() = default;
  Garbage(const Garbage&) = delete;
  ~Garbage() {
    while (versions != nullptr) delete std::exchange(versions, versions->older);
  }
  void add(Version* chain) {
    if (chain == nullptr) return;
    Version* last = chain;
    while (last->older != nullptr) last = last->older;
    last->older = std::exchange(versions, chain);
  }
  Version* versions = nullptr;
  std::vector<Handle<TensorImpl>> tensors;
};

struct Exchanges {
  kiln::detail::ForkSafeMutex mutex{kiln::detail::ForkOrder::exchanges};
  uint64_t count = 0;
  std::vector<const ReadSection*> sections;
  std::vector<Handle<TensorImpl>> tensors;  // those with versions

  // Lets go what nobody can see.
  void collect(Garbage& garbage) noexcept {
    if (tensors.empty()) return;
    if (sections.empty()) {
      for (const Handle<TensorImpl>& tensor : tensors) {
        Version* const newest = tensor->newest.load(std::memory_order_relaxed);
        swap_state(*tensor, *newest->state);
        tensor->newest.store(nullptr, std::memory_order_release);
        garbage.add(newest);
      }
      garbage.tensors.swap(tensors);
      return;
    }
    uint64_t oldest = kNewest;
    for (const ReadSection* s : sections) oldest = std::min(oldest, s->since_);
    for (const Handle<TensorImpl>& tensor : tensors) {
      Version* v = tensor->newest.load(std::memory_order_relaxed);
      while (v != nullptr && v->since > oldest) v = v->older;
      if (v == nullptr) continue;
      Version* const rest = std::exchange(v->older, nullptr);
      for (Version* r = rest; r != nullptr; r = r->older) {
        if (r->since == 0) swap_state(*tensor, *r->state);
      }
      garbage.add(rest);
    }
  }

  // In a process that fork() has just made, no other thread is there to end its sections.
  void forget_other_threads() {
    std::erase_if(sections, [](const ReadSection* s) { return s->thread_ != &seen; });
  }
};

namespace {

// Never destroyed: threads may run when the process ends.
Exchanges& exchanges() {
  static Exchanges& all = *[] {
    static auto* made = new Exchanges;
    kiln::detail::register_at_fork(kiln::detail::ForkOrder::exchanges,
                                   {nullptr, nullptr, [] { made->forget_other_threads(); }});
    return made;
  }();
  return all;
}

}  // namespace

ReadSection::ReadSection(Sees sees) : seen_before_(seen), thread_(&seen) {
  Exchanges& all = exchanges();
  const std::lock_guard lock(all.mutex);
  since_ = all.count;
  all.sections.push_back(this);
  seen = sees == Sees::newest ? kNewest : since_;
}

ReadSection::~ReadSection() {
  Garbage garbage;
  Exchanges& all = exchanges();
  const std::lock_guard lock(all.mutex);
  // Most often the last one.
  const auto own = std::find(all.sections.rbegin(), all.sections.rend(), this);
  if (own != all.sections.rend()) all.sections.erase(std::next(own).base());
  seen = seen_before_;
  all.collect(garbage);
}

int ReadSection::running() {
  Exchanges& all = exchanges();
  const std::lock_guard lock(all.mutex);
  return static_cast<int>(all.sections.size());
}

}  // namespace interop

namespace detail {

void exchange(const Handle<TensorImpl>& tensor, Handle<TensorImpl> state) {
  interop::Garbage garbage;
  interop::Exchanges& all = interop::exchanges();
  const std::lock_guard lock(all.mutex);
  if (all.sections.empty()) {
    swap_state(*tensor, *state);
    return;
  }
  Version* newest = tensor->newest.load(std::memory_order_relaxed);
  if (newest == nullptr) {
    auto own = std::make_unique<Version>(0u, make_handle<TensorImpl>(Value{}), nullptr);
    auto version = std::make_unique<Version>(all.count + 1, std::move(state), own.get());
    all.tensors.push_back(tensor);
    own.release();
    newest = version.release();
  } else {
    newest = new Version(all.count + 1, std::move(state), newest);
  }
  ++all.count;
  tensor->newest.store(newest, std::memory_order_release);
  // Who exchanges sees what came of it.
  if (seen != kNewest) seen = all.count;
  all.collect(garbage);
}

}  // namespace detail

}  // namespace kiln
