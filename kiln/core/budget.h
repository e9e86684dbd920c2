// Budget: what reading one input may cost.
//
// A short input can ask its reader for much memory: zeros that were compressed a thousand to one,
// one storage that a thousand tensors name, a list of a million empty lists. So each reader charges
// here what it is about to hold for the input's sake, and the budget refuses what goes too far.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>

namespace kiln {

// Threads may charge one budget at once.
class Budget {
 public:
  // The most bytes of memory for each byte of the input, where nobody asked for more.
  static constexpr uint64_t kRatio = 64;
  // What any input may cost beside that.
  static constexpr uint64_t kAllowance = uint64_t{16} << 20;

  // For an input of `bytes` bytes. `subject` begins messages: "load_torch: 'a.pt'".
  Budget(std::string subject, uint64_t bytes, uint64_t ratio = kRatio);
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // Takes `bytes` for `what` ("its pickle"). Throws IoError, with nothing taken, when the limit
  // would be passed.
  void charge(uint64_t bytes, const char* what) {
    const uint64_t before = used_.fetch_add(bytes, std::memory_order_relaxed);
    if (bytes > limit_ || before > limit_ - bytes) refuse(bytes, what);
  }
  // Gives back what was charged and is no longer held.
  void release(uint64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }

  // Reserves room for `more` items of a vector as push_back would, by doubling, and charges it; the
  // old room counts until the items have moved.
  template <class Vector>
  void grow(Vector& items, size_t more, const char* what) {
    const size_t old = items.capacity();
    if (more <= old - items.size()) return;
    const size_t room = std::max({items.size() + more, 2 * old, size_t{4}});
    charge(room * sizeof(typename Vector::value_type), what);
    items.reserve(room);
    release(old * sizeof(typename Vector::value_type));
  }

  uint64_t limit() const { return limit_; }
  uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  const std::string& subject() const { return subject_; }

 private:
  [[noreturn]] void refuse(uint64_t bytes, const char* what);

  std::string subject_;
  uint64_t input_;
  uint64_t ratio_;
  uint64_t limit_;
  std::atomic<uint64_t> used_{0};
};

}  // namespace kiln
