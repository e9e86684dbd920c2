#include "kiln/core/parallel.h"

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#if defined(__unix__)
#include <sys/wait.h>
#include <unistd.h>
#endif

#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/core/system_limits.h"

using namespace kiln;

TEST_CASE("the number of threads has its bounds") {
  const int before = num_threads();
  CHECK(before >= 1);
  CHECK(before <= max_num_threads());
  CHECK(max_num_threads() <= detail::available_processors());
  CHECK_THROWS_AS(set_num_threads(0), ValueError);
  CHECK_THROWS_AS(set_num_threads(-3), ValueError);
  set_num_threads(1);
  CHECK(num_threads() == 1);
  set_num_threads(1 << 20);
  CHECK(num_threads() == max_num_threads());
  set_num_threads(before);
}

TEST_CASE("this process has memory") { CHECK(detail::available_memory() > (1 << 20)); }

TEST_CASE("a loop of one piece is a call") {
  std::vector<std::pair<int64_t, int64_t>> pieces;
  const auto record = [&pieces](int64_t begin, int64_t end) { pieces.emplace_back(begin, end); };
  parallel_for(0, 10, record);
  parallel_for(-5, 10, record);
  CHECK(pieces.empty());
  parallel_for(1, 10, record);
  parallel_for(10, 10, record);
  CHECK(pieces == std::vector<std::pair<int64_t, int64_t>>{{0, 1}, {0, 10}});
}

TEST_CASE("one thread still gets the pieces one by one, in order") {
  const int before = num_threads();
  set_num_threads(1);
  std::vector<std::pair<int64_t, int64_t>> pieces;
  parallel_for(25, 10, [&](int64_t begin, int64_t end) {
    pieces.emplace_back(begin, end);
    CHECK(in_parallel_region());
  });
  CHECK(pieces == std::vector<std::pair<int64_t, int64_t>>{{0, 10}, {10, 20}, {20, 25}});
  CHECK_FALSE(in_parallel_region());
  set_num_threads(before);
}

#if defined(__unix__)
// The child's sum over a loop with n threads, or -1 when the child did not come to an end.
static int sum_in_child(int n) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);  // a child that hangs dies of it
    if (num_threads() != 1) _exit(200);
    set_num_threads(n);
    std::atomic<int> sum{0};
    for (int repeat = 0; repeat < 3; ++repeat) {
      parallel_for(30, 1, [&](int64_t begin, int64_t) { sum += begin == 7; });
    }
    _exit(sum);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_CASE("a process made by fork() begins with one thread, and may have more") {
  std::atomic<int> pieces{0};
  parallel_for(1000, 1, [&](int64_t, int64_t) { ++pieces; });  // the runtime has its threads now
  CHECK(pieces == 1000);
  CHECK(sum_in_child(1) == 3);
  CHECK(sum_in_child(max_num_threads()) == 3);
}
#endif
