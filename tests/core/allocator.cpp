#include "kiln/core/allocator.h"

#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "kiln/core/block_pool.h"
#include "kiln/core/error.h"
#include "kiln/core/memory_limit.h"
#include "kiln/core/out_of_memory.h"
#include "kiln/core/sanitizers.h"
#include "kiln/core/storage.h"
#include "kiln/core/system_limits.h"

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

constexpr size_t kMiB = size_t{1} << 20;

// Other tests change the limit; this puts it back however a test ends.
struct LimitRestored {
  ~LimitRestored() { set_cache_limit(static_cast<size_t>(detail::available_memory() / 4)); }
};

}  // namespace

TEST_CASE("size classes waste at most an eighth and never shrink") {
  size_t previous = 0;
  for (size_t k = 0; k < detail::kBlockClasses; ++k) {
    const size_t size = detail::class_size(k);
    CHECK(size > previous);
    CHECK(size % 64 == 0);
    CHECK(detail::size_class(size).index == k);
    CHECK(detail::size_class(size).size == size);
    CHECK(detail::size_class(previous + 1).index == k);
    if (previous >= 1024) CHECK((size - previous) * 8 <= previous);
    previous = size;
  }
  CHECK(previous == size_t{1} << 47);
}

TEST_CASE("blocks are aligned, large enough and separate") {
  struct Block {
    unsigned char* data;
    size_t bytes;
    size_t block;
  };
  std::vector<Block> blocks;
  for (size_t bytes : {0, 1, 63, 64, 65, 1000, 1024, 1025, 4096, 65535, 65536, 65537, 1 << 20}) {
    for (int copy = 0; copy < 3; ++copy) {
      size_t block = 0;
      auto* data = static_cast<unsigned char*>(allocate_block(bytes, &block));
      CHECK(reinterpret_cast<uintptr_t>(data) % 64 == 0);
      CHECK(block >= bytes);
      CHECK(block <= bytes + bytes / 8 + 64);
      std::memset(data, static_cast<int>(blocks.size()), bytes);
      blocks.push_back({data, bytes, block});
    }
  }
  int wrong = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    for (size_t j = 0; j < blocks[i].bytes; ++j) wrong += blocks[i].data[j] != i;
    free_block(blocks[i].data, blocks[i].block);
  }
  CHECK(wrong == 0);
}

TEST_CASE("a freed block is handed out again") {
  for (size_t bytes : {size_t{100}, size_t{20000}, 8 * kMiB}) {
    size_t block = 0;
    void* first = allocate_block(bytes, &block);
    free_block(first, block);
    const MemoryStats before = memory_stats();
    void* second = allocate_block(bytes - 1, &block);
    CHECK(second == first);
    CHECK(memory_stats().system_allocations == before.system_allocations);
    CHECK(memory_stats().allocations == before.allocations + 1);
    free_block(second, block);
  }
}

TEST_CASE("statistics follow what is handed out and given back") {
  empty_cache();
  reset_memory_stats();
  const MemoryStats start = memory_stats();
  CHECK(start.allocations == 0);
  CHECK(start.system_allocations == 0);
  CHECK(start.peak_bytes_in_use == start.bytes_in_use);

  size_t small = 0;
  size_t large = 0;
  void* a = allocate_block(100, &small);
  void* b = allocate_block(3 * kMiB, &large);
  CHECK(small == 128);
  CHECK(large == 3 * kMiB);
  MemoryStats now = memory_stats();
  CHECK(now.allocations == 2);
  CHECK(now.system_allocations == 2);
  CHECK(now.bytes_in_use == start.bytes_in_use + small + large);

  free_block(b, large);
  free_block(a, small);
  now = memory_stats();
  CHECK(now.bytes_in_use == start.bytes_in_use);
  CHECK(now.bytes_cached == start.bytes_cached + small + large);
  CHECK(now.peak_bytes_in_use >= start.bytes_in_use + large);
  CHECK(now.peak_bytes_in_use <= start.bytes_in_use + large + 64 * 1024);

  reset_memory_stats();
  now = memory_stats();
  CHECK(now.allocations == 0);
  CHECK(now.peak_bytes_in_use == start.bytes_in_use);
}

TEST_CASE("the peak counts small blocks to within 64 KiB") {
  reset_memory_stats();
  const size_t start = memory_stats().bytes_in_use;
  std::vector<void*> blocks;
  size_t block = 0;
  for (int i = 0; i < 5000; ++i) blocks.push_back(allocate_block(1024, &block));
  for (void* data : blocks) free_block(data, block);
  const MemoryStats stats = memory_stats();
  CHECK(stats.bytes_in_use == start);
  CHECK(stats.peak_bytes_in_use <= start + 5000 * 1024);
  CHECK(stats.peak_bytes_in_use + 64 * 1024 >= start + 5000 * 1024);
}

TEST_CASE("empty_cache gives everything back") {
  size_t block = 0;
  std::vector<void*> blocks;
  for (int i = 0; i < 300; ++i) blocks.push_back(allocate_block(512, &block));
  for (void* data : blocks) free_block(data, block);
  size_t large = 0;
  void* data = allocate_block(16 * kMiB, &large);
  free_block(data, large);
  const size_t cached = memory_stats().bytes_cached;
  CHECK(cached >= 300 * 512 + 16 * kMiB);
  empty_cache();
  CHECK(memory_stats().bytes_cached <= cached - 300 * 512 - 16 * kMiB);
  const uint64_t from_system = memory_stats().system_allocations;
  data = allocate_block(16 * kMiB, &large);
  CHECK(memory_stats().system_allocations == from_system + 1);
  free_block(data, large);
}

TEST_CASE("the cache limit holds") {
  const LimitRestored restored;
  empty_cache();
  set_cache_limit(20 * kMiB);
  const size_t start = memory_stats().bytes_cached;
  size_t block = 0;
  void* a = allocate_block(12 * kMiB, &block);
  void* b = allocate_block(12 * kMiB, &block);
  free_block(a, block);
  free_block(b, block);  // would exceed the limit
  CHECK(memory_stats().bytes_cached == start + 12 * kMiB);
  set_cache_limit(4 * kMiB);
  CHECK(memory_stats().bytes_cached == start);

  set_cache_limit(0);
  const uint64_t from_system = memory_stats().system_allocations;
  for (int i = 0; i < 3; ++i) allocate_and_free(100);
  CHECK(memory_stats().system_allocations == from_system + 3);
  CHECK(memory_stats().bytes_cached == start);

  set_cache_limit(SIZE_MAX);
  allocate_and_free(12 * kMiB);
  CHECK(memory_stats().bytes_cached == start + 12 * kMiB);
}

TEST_CASE("sizes that no system has throw and leave nothing behind") {
  const size_t start = memory_stats().bytes_in_use;
  size_t block = 0;
  for (size_t bytes : {SIZE_MAX, SIZE_MAX - 63, size_t{1} << 63, (size_t{1} << 47) + 1}) {
    CHECK_THROWS_WITH_AS(allocate_block(bytes, &block),
                         doctest::Contains(std::to_string(bytes).c_str()), OutOfMemoryError);
  }
  CHECK(memory_stats().bytes_in_use == start);
}

TEST_CASE("a request that the system refuses throws") {
  // 127 TiB: within the limit on sizes, beyond what an address space of 47 bits has left.
  size_t block = 0;
  CHECK_THROWS_AS(allocate_block(size_t{127} << 40, &block), OutOfMemoryError);
  allocate_and_free(100);
}

TEST_CASE("objects are aligned, separate and reused") {
  for (size_t bytes : {0, 1, 16, 17, 48, 64, 100, 512, 1024, 1025, 5000}) {
    std::set<void*> seen;
    std::vector<unsigned char*> objects;
    for (int i = 0; i < 200; ++i) {
      auto* object = static_cast<unsigned char*>(allocate_object(bytes));
      CHECK(reinterpret_cast<uintptr_t>(object) % 16 == 0);
      std::memset(object, i, bytes);
      seen.insert(object);
      objects.push_back(object);
    }
    CHECK(seen.size() == 200);
    int wrong = 0;
    for (size_t i = 0; i < objects.size(); ++i) {
      for (size_t j = 0; j < bytes; ++j) wrong += objects[i][j] != i;
      free_object(objects[i], bytes);
    }
    CHECK(wrong == 0);
  }
#ifndef KILN_ASAN
  void* object = allocate_object(40);
  free_object(object, 40);
  void* again = allocate_object(33);  // the same class: 33 to 48 bytes
  CHECK(again == object);
  free_object(again, 33);
#endif
}

TEST_CASE("more objects than a list keeps") {
  std::vector<uint64_t*> objects;
  for (int round = 0; round < 3; ++round) {
    for (uint64_t i = 0; i < 10000; ++i) {
      auto* object = static_cast<uint64_t*>(allocate_object(64));
      for (int w = 0; w < 8; ++w) object[w] = i;
      objects.push_back(object);
    }
    int wrong = 0;
    for (uint64_t i = 0; i < 10000; ++i) {
      for (int w = 0; w < 8; ++w) wrong += objects[i][w] != i;
      free_object(objects[i], 64);
    }
    CHECK(wrong == 0);
    objects.clear();
  }
}

namespace {

struct Node : Pooled {
  explicit Node(int* alive) : alive_(alive) { ++*alive_; }
  virtual ~Node() { --*alive_; }
  int* alive_;
};

struct WideNode : Node {
  using Node::Node;
  double values[20] = {};
};

}  // namespace

TEST_CASE("pooled classes are made and deleted through their base") {
  int alive = 0;
  std::vector<Node*> nodes;
  for (int i = 0; i < 100; ++i) {
    nodes.push_back(i % 2 == 0 ? new Node(&alive) : new WideNode(&alive));
  }
  CHECK(alive == 100);
  for (Node* node : nodes) delete node;
  CHECK(alive == 0);
}

#ifdef KILN_ASAN
TEST_CASE("AddressSanitizer sees what is cached and what was not asked for") {
  size_t block = 0;
  auto* data = static_cast<char*>(allocate_block(100, &block));
  CHECK_FALSE(__asan_address_is_poisoned(data + 99));
  CHECK(__asan_address_is_poisoned(data + 104));
  free_block(data, block);
  CHECK(__asan_address_is_poisoned(data));
}
#endif

TEST_CASE("memory_limit: a block beyond it is refused, and what is there stays good") {
  const size_t before = memory_limit();
  const Handle<Storage> held = Storage::allocate(1 << 20);
  empty_cache();
  set_memory_limit(memory_stats().bytes_in_use + (8 << 20));
  CHECK_THROWS_AS(Storage::allocate(64 << 20), OutOfMemoryError);
  Storage::allocate(4 << 20);  // cached afterwards
  Storage::allocate(6 << 20);  // which makes room for this one
  static_cast<char*>(held->data())[0] = 1;
  set_memory_limit(before);
  Storage::allocate(64 << 20);
}
