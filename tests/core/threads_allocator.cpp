// Blocks, objects and storages that cross threads, and threads that end.
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "kiln/core/allocator.h"
#include "kiln/core/storage.h"

using namespace kiln;
using detail::allocate_block;
using detail::allocate_object;
using detail::free_block;
using detail::free_object;

namespace {

// Two statements: the size must be known before it is passed on.
void allocate_and_free(size_t bytes) {
  size_t block = 0;
  void* data = allocate_block(bytes, &block);
  free_block(data, block);
}

template <class F>
void run_threads(int count, F body) {
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) threads.emplace_back(body, t);
  for (std::thread& thread : threads) thread.join();
}

// Both halves wait for each other.
class Meeting {
 public:
  explicit Meeting(int count) : missing_(count) {}
  void wait() {
    std::unique_lock lock(mutex_);
    if (--missing_ == 0) changed_.notify_all();
    changed_.wait(lock, [this] { return missing_ <= 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int missing_;
};

}  // namespace

TEST_CASE("threads get separate blocks, under empty_cache and statistics from others") {
  const size_t start = memory_stats().bytes_in_use;
  std::atomic<int> wrong{0};
  run_threads(4, [&wrong](int t) {
    struct Held {
      unsigned char* data;
      size_t bytes;
      size_t block;
      unsigned char mark;
    };
    std::vector<Held> held;
    std::mt19937 random(static_cast<unsigned>(t));
    const auto free_one = [&] {
      const size_t i = random() % held.size();
      const Held h = held[i];
      wrong += h.data[0] != h.mark || h.data[h.bytes - 1] != h.mark;
      free_block(h.data, h.block);
      held[i] = held.back();
      held.pop_back();
    };
    for (int i = 0; i < 3000; ++i) {
      const size_t bytes = 1 + random() % (i % 10 == 0 ? 200000 : 3000);
      size_t block = 0;
      auto* data = static_cast<unsigned char*>(allocate_block(bytes, &block));
      const auto mark = static_cast<unsigned char>(random());
      data[0] = data[bytes - 1] = mark;
      held.push_back({data, bytes, block, mark});
      if (held.size() > 50) free_one();
      if (i % 500 == 0) empty_cache();
      if (i % 100 == 0) wrong += memory_stats().bytes_in_use > (size_t{1} << 40);
    }
    while (!held.empty()) free_one();
  });
  CHECK(wrong == 0);
  CHECK(memory_stats().bytes_in_use == start);
}

TEST_CASE("blocks and objects may be freed on another thread") {
  const size_t start = memory_stats().bytes_in_use;
  constexpr int kRounds = 50;
  constexpr int kCount = 400;
  std::vector<void*> blocks(kCount);
  std::vector<void*> objects(kCount);
  std::atomic<int> wrong{0};
  for (int round = 0; round < kRounds; ++round) {
    std::thread producer([&] {
      for (int i = 0; i < kCount; ++i) {
        size_t block = 0;
        blocks[i] = allocate_block(500, &block);
        objects[i] = allocate_object(80);
        std::memset(blocks[i], i, 500);
        std::memset(objects[i], i, 80);
      }
    });
    producer.join();
    for (int i = 0; i < kCount; ++i) {
      wrong += static_cast<unsigned char*>(blocks[i])[499] != static_cast<unsigned char>(i);
      wrong += static_cast<unsigned char*>(objects[i])[79] != static_cast<unsigned char>(i);
      free_block(blocks[i], 512);
      free_object(objects[i], 80);
    }
  }
  CHECK(wrong == 0);
  const MemoryStats stats = memory_stats();
  CHECK(stats.bytes_in_use == start);
}

TEST_CASE("memory that flows from one thread to another does not pile up") {
  empty_cache();
  reset_memory_stats();
  // One thread allocates, the other frees; what the second collects must find its way back.
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<void*> queue;
  constexpr int kBlocks = 20000;
  std::thread consumer([&] {
    for (int freed = 0; freed < kBlocks;) {
      std::vector<void*> batch;
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return !queue.empty(); });
        batch.swap(queue);
      }
      changed.notify_all();
      for (void* data : batch) free_block(data, 256);
      freed += static_cast<int>(batch.size());
    }
  });
  for (int i = 0; i < kBlocks; ++i) {
    size_t block = 0;
    void* data = allocate_block(256, &block);
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return queue.size() < 100; });
    queue.push_back(data);
    changed.notify_all();
  }
  consumer.join();
  CHECK(memory_stats().allocations == kBlocks);
  CHECK(memory_stats().system_allocations < 1000);
}

TEST_CASE("what a thread cached is there for others after its end") {
  empty_cache();
  reset_memory_stats();
  std::thread([] {
    for (int i = 0; i < 10; ++i) allocate_and_free(300);
  }).join();
  CHECK(memory_stats().allocations == 10);
  CHECK(memory_stats().system_allocations == 1);
  size_t block = 0;
  void* data = allocate_block(300, &block);
  CHECK(memory_stats().system_allocations == 1);
  free_block(data, block);
}

TEST_CASE("a running thread's blocks are counted, and its front follows empty_cache") {
  empty_cache();
  reset_memory_stats();
  const MemoryStats start = memory_stats();
  Meeting allocated(2);
  Meeting looked(2);
  Meeting freed(2);
  Meeting emptied(2);
  std::thread thread([&] {
    size_t block = 0;
    void* data = allocate_block(128, &block);
    allocated.wait();
    looked.wait();
    free_block(data, block);
    freed.wait();
    emptied.wait();
    allocate_and_free(128);
  });
  allocated.wait();
  CHECK(memory_stats().bytes_in_use == start.bytes_in_use + 128);
  CHECK(memory_stats().allocations == 1);
  looked.wait();
  freed.wait();
  CHECK(memory_stats().bytes_in_use == start.bytes_in_use);
  CHECK(memory_stats().bytes_cached == start.bytes_cached + 128);
  empty_cache();
  emptied.wait();
  thread.join();
  CHECK(memory_stats().system_allocations == 2);  // the second found its front emptied
  empty_cache();
  CHECK(memory_stats().bytes_cached == start.bytes_cached);
}

namespace {

// Made before its thread's caches, so destroyed after them.
struct Late {
  void* object = nullptr;
  void* block = nullptr;
  Handle<Storage> storage;
  ~Late() {
    if (object != nullptr) free_object(object, 96);
    if (block != nullptr) free_block(block, 256);
    storage.reset();
    // Allocating this late works too.
    free_object(allocate_object(96), 96);
    allocate_and_free(256);
    Storage::allocate(100000);
  }
};

thread_local Late late;

}  // namespace

TEST_CASE("thread-local destructors may free and allocate after the caches' end") {
  const size_t start = memory_stats().bytes_in_use;
  for (int i = 0; i < 5; ++i) {
    std::thread([] {
      late.storage.reset();
      size_t size = 0;
      late.object = allocate_object(96);
      late.block = allocate_block(256, &size);
      late.storage = Storage::allocate(8);
    }).join();
  }
  CHECK(memory_stats().bytes_in_use == start);
}

TEST_CASE("one storage shared by many threads is freed once") {
  const size_t start = memory_stats().bytes_in_use;
  for (int round = 0; round < 20; ++round) {
    Handle<Storage> storage = Storage::allocate(64);
    static_cast<int*>(storage->data())[0] = round;
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([copy = storage, round, &wrong] {
        for (int i = 0; i < 200; ++i) {
          const Handle<Storage> another = copy;
          wrong += static_cast<int*>(another->data())[0] != round;
        }
      });
    }
    storage.reset();
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
  }
  CHECK(memory_stats().bytes_in_use == start);
}
