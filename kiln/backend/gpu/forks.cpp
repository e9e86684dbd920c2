#include "kiln/backend/gpu/forks.h"

#include <atomic>

#include <pthread.h>

namespace kiln::gpu {
namespace {

std::atomic<int> generation{0};

}  // namespace

int process_generation() {
  [[maybe_unused]] static const int registered =
      pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });
  return generation.load(std::memory_order_relaxed);
}

}  // namespace kiln::gpu
