// What the nodes of a plan take, measured in some of its replays.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "kiln/graph/graph.h"

namespace kiln::graph {

// Times are those of the thread that replays: on a GPU what enqueuing takes. The first replay is
// left out, the next 16 are measured, and then one of 64: a clock is read once for each node.
class PlanTimes {
 public:
  explicit PlanTimes(size_t nodes) : nanoseconds_(nodes, 0) {}

  // Whether the replay that begins now is measured.
  bool begins() {
    const int64_t number = started_.fetch_add(1, std::memory_order_relaxed);
    return number > 0 && (number <= 16 || number % 64 == 0);
  }
  void add(std::span<const int64_t> nanoseconds);
  // "4 replays measured, 1.84 ms each" and a line for each kind of row and for each fused group
  // that takes more than 1 %; nothing before one was measured.
  std::vector<std::string> lines(const Graph& graph) const;

 private:
  std::atomic<int64_t> started_{0};
  mutable std::mutex mutex_;
  int64_t measured_ = 0;
  std::vector<int64_t> nanoseconds_;  // by node, of all measured replays
};

}  // namespace kiln::graph
