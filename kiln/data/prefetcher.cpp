#include "kiln/data/prefetcher.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "kiln/core/error.h"

namespace kiln::data::detail {

Prefetcher::Prefetcher(Make make, int64_t begin, int64_t end, int workers, int prefetch)
    : make_(std::move(make)), next_to_make_(begin), next_to_take_(begin), end_(end) {
  const int64_t ahead = static_cast<int64_t>(workers) * prefetch;
  slots_.resize(static_cast<size_t>(std::clamp<int64_t>(ahead, 1, end - begin)));
  try {
    threads_.reserve(static_cast<size_t>(workers));
    for (int i = 0; i < workers; ++i) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error& e) {
    stop();
    throw_error<Error>("DataLoader: cannot start a worker thread; got \"", e.what(), "\" after ",
                       threads_.size(), " of ", workers);
  }
}

Prefetcher::~Prefetcher() { stop(); }

void Prefetcher::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  taken_.notify_all();
  for (std::thread& t : threads_) t.join();
}

void Prefetcher::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    taken_.wait(lock, [this] {
      return stopping_ || next_to_make_ >= end_ ||
             next_to_make_ < next_to_take_ + static_cast<int64_t>(slots_.size());
    });
    if (stopping_ || next_to_make_ >= end_) return;
    const int64_t batch = next_to_make_++;
    lock.unlock();
    Slot made;
    try {
      made.batch = make_(batch);
    } catch (...) {
      made.error = std::current_exception();
    }
    lock.lock();
    if (made.error) {
      end_ = std::min(end_, batch + 1);
      taken_.notify_all();
    }
    slot_of(batch) = std::move(made);
    made_.notify_one();
  }
}

Batch Prefetcher::next() {
  std::unique_lock lock(mutex_);
  Slot& slot = slot_of(next_to_take_);
  made_.wait(lock, [&slot] { return slot.batch || slot.error; });
  Slot out = std::exchange(slot, Slot());
  ++next_to_take_;
  lock.unlock();
  taken_.notify_one();
  if (out.error) std::rethrow_exception(out.error);
  return std::move(*out.batch);
}

}  // namespace kiln::data::detail
