#include "kiln/core/fork.h"

#include <cstddef>
#include <type_traits>

#include <pthread.h>

#include "kiln/core/portable.h"

namespace kiln::detail {

// Never destroyed: processes may fork until their end.
struct ForkRegistry {
  static constexpr size_t kPlaces = static_cast<size_t>(ForkOrder::count);
  struct Place {
    ForkHandlers handlers = {nullptr, nullptr, nullptr};
    ForkSafeMutex* first = nullptr;
  };

  std::mutex mutex;  // comes before all the others
  bool known_to_system = false;
  Place places[kPlaces];

  Place& at(ForkOrder order) {
    if (!known_to_system) {
      known_to_system = true;
      pthread_atfork(&before, &in_parent, &in_child);
    }
    return places[static_cast<size_t>(order)];
  }

  void add(ForkSafeMutex* m) {
    const std::lock_guard lock(mutex);
    ForkSafeMutex*& first = at(m->order_).first;
    m->next_ = first;
    if (first != nullptr) first->previous_ = m;
    first = m;
  }
  void remove(ForkSafeMutex* m) {
    const std::lock_guard lock(mutex);
    (m->previous_ != nullptr ? m->previous_->next_ : at(m->order_).first) = m->next_;
    if (m->next_ != nullptr) m->next_->previous_ = m->previous_;
  }

  void lock_all() {
    mutex.lock();
    for (Place& place : places) {
      if (place.handlers.lock != nullptr) place.handlers.lock();
      for (ForkSafeMutex* m = place.first; m != nullptr; m = m->next_) m->lock();
    }
  }
  void unlock_all() {
    for (size_t i = kPlaces; i-- > 0;) {
      for (ForkSafeMutex* m = places[i].first; m != nullptr; m = m->next_) m->unlock();
      if (places[i].handlers.unlock != nullptr) places[i].handlers.unlock();
    }
    mutex.unlock();
  }

  static void before();
  static void in_parent();
  static void in_child();
};

namespace {
KILN_NEVER_DESTROYED constinit ForkRegistry registry;
}
#ifdef __GLIBCXX__
static_assert(std::is_trivially_destructible_v<ForkRegistry>);
#endif

void ForkRegistry::before() { registry.lock_all(); }
void ForkRegistry::in_parent() { registry.unlock_all(); }
void ForkRegistry::in_child() {
  registry.unlock_all();
  for (Place& place : registry.places) {
    if (place.handlers.in_child != nullptr) place.handlers.in_child();
  }
}

bool register_at_fork(ForkOrder order, const ForkHandlers& handlers) {
  const std::lock_guard lock(registry.mutex);
  registry.at(order).handlers = handlers;
  return true;
}

ForkSafeMutex::ForkSafeMutex(ForkOrder order) : order_(order) { registry.add(this); }
ForkSafeMutex::~ForkSafeMutex() { registry.remove(this); }

}  // namespace kiln::detail
