#include "kiln/core/slabs.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <unistd.h>

#include "kiln/core/huge_pages.h"

using namespace kiln::detail;

namespace {

struct Block {
  unsigned char* data;
  size_t bytes;
};

Block take(size_t bytes) { return {static_cast<unsigned char*>(slab_allocate(bytes)), bytes}; }
void give(const Block& block) { slab_free(block.data, block.bytes); }

// Bytes of this process that lie in memory.
size_t resident() {
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;
  return pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// Takes and gives back 2000 blocks at random, each filled with a number of its own, which must
// still be there at its end.
void work_at_random(unsigned seed) {
  std::mt19937_64 draw(seed);
  std::uniform_int_distribution<size_t> sizes(kLeastSlabBytes / 64, size_t{600} * 1024 / 64);
  std::map<unsigned char*, size_t> blocks;
  const auto check_and_give = [&](auto at) {
    const auto mark = static_cast<unsigned char>(at->second / 64);
    REQUIRE(at->first[0] == mark);
    const bool same = std::memcmp(at->first, at->first + 1, at->second - 1) == 0;
    REQUIRE(same);
    slab_free(at->first, at->second);
    blocks.erase(at);
  };
  for (int k = 0; k < 2000; ++k) {
    if (blocks.size() > 100 || (!blocks.empty() && draw() % 3 == 0)) {
      check_and_give(std::next(blocks.begin(), static_cast<long>(draw() % blocks.size())));
      continue;
    }
    const Block block = take(sizes(draw) * 64);
    REQUIRE(block.data != nullptr);
    REQUIRE(reinterpret_cast<uintptr_t>(block.data) % 4096 == 0);
    std::memset(block.data, static_cast<int>(block.bytes / 64 % 256), block.bytes);
    blocks.emplace(block.data, block.bytes);
  }
  while (!blocks.empty()) check_and_give(blocks.begin());
}

}  // namespace

TEST_CASE("blocks of a slab keep what is written to them") { work_at_random(1); }

TEST_CASE("threads take blocks of slabs side by side") {
  std::vector<std::thread> threads;
  for (unsigned seed = 2; seed < 5; ++seed) threads.emplace_back(work_at_random, seed);
  for (std::thread& thread : threads) thread.join();
}

TEST_CASE("the largest blocks fill regions without a gap between them") {
  std::vector<Block> blocks;
  for (int k = 0; k < 20; ++k) blocks.push_back(take(kMostSlabBytes));
  size_t side_by_side = 0;
  for (size_t k = 1; k < blocks.size(); ++k) {
    side_by_side += blocks[k].data == blocks[k - 1].data + kMostSlabBytes;
  }
  CHECK(side_by_side >= 15);  // eight in a region
  for (const Block& block : blocks) give(block);
}

TEST_CASE("what a block leaves is taken again first") {
  const Block a = take(100 * 1024);
  const Block b = take(40 * 1024);
  const Block c = take(100 * 1024);
  give(b);
  const Block d = take(40 * 1024);
  CHECK(d.data == b.data);
  for (const Block& block : {a, c, d}) give(block);
}

TEST_CASE("slabs in which nothing lies go back to the system") {
  constexpr size_t kBytes = size_t{300} * 1024;
  constexpr size_t kBlocks = 400;  // 120 MB
  const size_t before = resident();
  std::vector<Block> blocks;
  for (size_t k = 0; k < kBlocks; ++k) {
    blocks.push_back(take(kBytes));
    std::memset(blocks.back().data, 1, kBytes);
  }
  CHECK(resident() >= before + kBytes * kBlocks * 9 / 10);
  // Where one block in each huge page stays, that page stays.
  for (size_t k = 0; k < kBlocks; ++k) {
    if (k % 50 != 0) give(blocks[k]);
  }
  CHECK(resident() <= before + kBlocks / 50 * 2 * kHugePage + 4 * kHugePage);
  for (size_t k = 0; k < kBlocks; k += 50) {
    CHECK(blocks[k].data[kBytes - 1] == 1);
    give(blocks[k]);
  }
  CHECK(resident() <= before + 4 * kHugePage);
}
