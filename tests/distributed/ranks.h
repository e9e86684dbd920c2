// Groups of processes whose ranks are threads.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "kiln/distributed/distributed.h"

namespace kiln::test {

// Calls `work` with each rank's group, on a thread of its own, and throws what one of them threw.
inline void in_group(int size, const std::function<void(distributed::ProcessGroup&)>& work,
                     distributed::milliseconds timeout = std::chrono::seconds(60)) {
  const auto store = std::make_shared<distributed::HashStore>();
  std::vector<std::exception_ptr> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        distributed::ProcessGroup group(store, rank, size, {.timeout = timeout});
        work(group);
        group.barrier();  // nobody leaves while another still computes
      } catch (...) {
        errors[static_cast<size_t>(rank)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace kiln::test
