// Profiles begin and end while other threads compute.
#include <atomic>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "kiln/backend/dispatch/profile.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"

using namespace kiln;

TEST_CASE("profiles begin and end while threads compute") {
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      const Tensor x = ones({4});
      while (!done) {
        if ((x + x).sum().item() != 8.0) ++wrong;
      }
    });
  }
  int64_t seen = 0;
  for (int i = 0; i < 50; ++i) {
    const Profile profile;
    std::this_thread::yield();
    for (const ProfileRow& row : profile.rows()) seen += row.count;
    if (i % 10 == 0) CHECK(profile.trace().find("traceEvents") != std::string::npos);
  }
  while (seen == 0) {  // on a machine where nobody else got a turn
    const Profile profile;
    std::this_thread::yield();
    for (const ProfileRow& row : profile.rows()) seen += row.count;
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(seen > 0);
}
