// Threads that make batches ahead of their use. Internal to kiln/data.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "kiln/data/example.h"

namespace kiln::data::detail {

// Makes batches begin to end - 1, at most `workers` * `prefetch` of them ahead of the consumer, and
// hands them out in order. To be used by one thread.
class Prefetcher {
 public:
  using Make = std::function<Batch(int64_t batch)>;

  // `make` is called by the workers, several at once.
  Prefetcher(Make make, int64_t begin, int64_t end, int workers, int prefetch);
  // Waits for batches that are being made; the others are not begun.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // The next batch, or the exception that making it threw; after that there are no more.
  Batch next();

 private:
  struct Slot {
    std::optional<Batch> batch;
    std::exception_ptr error;
  };

  void work();
  void stop() noexcept;
  Slot& slot_of(int64_t batch) { return slots_[static_cast<size_t>(batch) % slots_.size()]; }

  Make make_;
  std::mutex mutex_;
  std::condition_variable made_;   // a batch was made
  std::condition_variable taken_;  // a batch was taken, or it is time to stop
  int64_t next_to_make_;
  int64_t next_to_take_;
  int64_t end_;  // shrinks to the first batch that failed
  bool stopping_ = false;
  std::vector<Slot> slots_;  // a ring: batch b goes into slot b modulo its size
  std::vector<std::thread> threads_;
};

}  // namespace kiln::data::detail
