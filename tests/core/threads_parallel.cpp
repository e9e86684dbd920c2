// Loops on several threads.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "kiln/core/parallel.h"
#include "kiln/core/random.h"
#include "kiln/core/thread_pool.h"

using namespace kiln;

namespace {

using Pieces = std::set<std::pair<int64_t, int64_t>>;

// The pieces that the body is called with; a piece that comes twice is an error.
Pieces pieces_of(int64_t n, int64_t grain) {
  std::mutex mutex;
  Pieces pieces;
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    std::lock_guard lock(mutex);
    if (!pieces.emplace(begin, end).second) throw std::logic_error("a piece came twice");
  });
  return pieces;
}

// Sets the number of threads for one scope.
class Threads {
 public:
  explicit Threads(int n) : before_(num_threads()) { set_num_threads(n); }
  ~Threads() { set_num_threads(before_); }

 private:
  int before_;
};

}  // namespace

TEST_CASE("pieces are the same at any number of threads") {
  for (const auto& [n, grain] : std::vector<std::pair<int64_t, int64_t>>{
           {2, 1}, {100, 1}, {100, 7}, {101, 100}, {1000, 64}, {3, 0}}) {
    Pieces expected;
    const int64_t step = grain < 1 ? 1 : grain;
    for (int64_t b = 0; b < n; b += step) expected.emplace(b, b + step < n ? b + step : n);
    for (int threads = 1; threads <= max_num_threads(); ++threads) {
      const Threads scope(threads);
      CHECK(pieces_of(n, grain) == expected);
    }
  }
}

TEST_CASE("lengths near the end of 64 bits do not overflow") {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  CHECK(pieces_of(kMax, kMax - 1) == Pieces{{0, kMax - 1}, {kMax - 1, kMax}});
  const Threads one(1);
  CHECK(pieces_of(kMax, kMax - 1) == Pieces{{0, kMax - 1}, {kMax - 1, kMax}});
}

TEST_CASE("every element is visited once, and the writes are seen afterwards") {
  std::vector<int> counts(200000, 0);
  parallel_for(200000, 1000, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) ++counts[static_cast<size_t>(i)];
  });
  int wrong = 0;
  for (int count : counts) wrong += count != 1;
  CHECK(wrong == 0);
}

TEST_CASE("results are bit-identical at one and at all threads") {
  const auto total = [] {
    std::vector<double> parts(100);
    parallel_for(100000, 1000, [&](int64_t begin, int64_t end) {
      double sum = 0;
      for (int64_t i = begin; i < end; ++i) sum += 1.0 / static_cast<double>(i + 1);
      parts[static_cast<size_t>(begin / 1000)] = sum;
    });
    double sum = 0;
    for (double part : parts) sum += part;
    return sum;
  };
  const double all = total();
  const Threads one(1);
  CHECK(total() == all);
}

TEST_CASE("an exception reaches the caller and the next loop works") {
  for (int threads = 1; threads <= max_num_threads(); ++threads) {
    const Threads scope(threads);
    CHECK_THROWS_WITH_AS(parallel_for(1000, 10,
                                      [](int64_t begin, int64_t) {
                                        if (begin == 500) throw std::runtime_error("piece 50");
                                      }),
                         "piece 50", std::runtime_error);
    CHECK_FALSE(in_parallel_region());
    CHECK_THROWS_AS(parallel_for(1000, 10, [](int64_t, int64_t) { throw 1; }), int);
    CHECK(pieces_of(100, 10).size() == 10);
  }
}

TEST_CASE("a nested loop runs on its own thread") {
  std::atomic<int> wrong{0};
  std::atomic<int64_t> visited{0};
  parallel_for(8, 1, [&](int64_t, int64_t) {
    if (!in_parallel_region()) ++wrong;
    const std::thread::id outer = std::this_thread::get_id();
    parallel_for(100, 10, [&](int64_t begin, int64_t end) {
      if (std::this_thread::get_id() != outer) ++wrong;
      visited += end - begin;
    });
    if (!in_parallel_region()) ++wrong;
  });
  CHECK(wrong == 0);
  CHECK(visited == 800);
  CHECK_FALSE(in_parallel_region());
}

TEST_CASE("several threads may run loops at once") {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&wrong] {
      for (int round = 0; round < 20; ++round) {
        std::vector<int64_t> values(5000, 0);
        parallel_for(5000, 100, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) values[static_cast<size_t>(i)] = i;
        });
        for (int64_t i = 0; i < 5000; ++i) wrong += values[static_cast<size_t>(i)] != i;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("threads reserve separate stretches of random numbers") {
  Generator generator(1);
  std::vector<std::vector<uint64_t>> offsets(4);
  std::vector<std::thread> threads;
  for (auto& mine : offsets) {
    threads.emplace_back([&generator, &mine] {
      for (int i = 0; i < 500; ++i) mine.push_back(generator.reserve(5).offset);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<uint64_t> all;
  for (const auto& mine : offsets) all.insert(mine.begin(), mine.end());
  CHECK(all.size() == 2000);
  CHECK(*all.rbegin() == 3998);
  CHECK(generator.state().offset == 4000);
}

TEST_CASE("loops of several threads of the program share the threads, and nested ones take none") {
  constexpr int kCallers = 4;
  constexpr int64_t kPieces = 40;
  std::atomic<int> active{0}, most{0};
  std::atomic<int64_t> done{0};
  const auto enter = [&] {
    const int now = ++active;
    int seen = most.load();
    while (now > seen && !most.compare_exchange_weak(seen, now)) {
    }
  };
  std::vector<std::thread> callers;
  for (int i = 0; i < kCallers; ++i) {
    callers.emplace_back([&] {
      parallel_for(kPieces, 1, [&](int64_t, int64_t) {
        enter();
        parallel_for(4, 1, [&](int64_t, int64_t) {
          std::this_thread::sleep_for(std::chrono::microseconds(100));
          ++done;
        });
        --active;
      });
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(done == 4 * kPieces * kCallers);
  // The first loop may have had all the threads; each of the others has its caller's then.
  CHECK(most <= num_threads() + kCallers - 1);
}

TEST_CASE("callers side by side have helpers of their own") {
  using Clock = std::chrono::steady_clock;
  struct Meeting {
    std::atomic<int> present{0};
    Clock::time_point end = Clock::now() + std::chrono::seconds(20);
  } meeting;
  // Stays until two callers and a helper of each are there.
  const auto wait = [](void* context, int) noexcept {
    auto& at = *static_cast<Meeting*>(context);
    ++at.present;
    while (at.present < 4 && Clock::now() < at.end) std::this_thread::yield();
  };
  std::thread other([&] { detail::run_team(1, wait, &meeting); });
  detail::run_team(1, wait, &meeting);
  other.join();
  CHECK(meeting.present == 4);
}
