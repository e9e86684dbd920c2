// Plan: a graph that is ready to run again and again.
#pragma once

#include <atomic>
#include <memory>

#include "kiln/core/cached_vector.h"
#include "kiln/graph/plan_times.h"
#include "kiln/graph/rows.h"

namespace kiln::graph {

// Thrown by a replay when a value that the captured function read is another one now.
struct ValueChanged {
  std::string what;
};

class Plan {
 public:
  using Results = kiln::detail::CachedVector<ErasedTensor>;

  // Finds where each value is needed last: there its memory may become that of a result, and where
  // it does not, it is given back.
  explicit Plan(Graph graph);
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  // The outputs for these inputs. `tape` moves random numbers on. Throws what a node throws, and
  // ValueChanged. Any number of threads may run a plan.
  Results run(std::span<const ErasedTensor> inputs, const RandomTape* tape = nullptr) const;

  const Graph& graph() const { return graph_; }
  // What its nodes took in the replays that were measured.
  std::vector<std::string> times() const { return times_.lines(graph_); }

 private:
  std::unique_ptr<Frame> take_frame() const;
  void clear(Frame& frame) const;
  void run_measured(Frame& frame) const;

  Graph graph_;
  std::vector<ValueId> constants_;
  std::vector<ValueId> computed_;
  mutable std::atomic<Frame*> spare_{nullptr};  // of the last call, for the next
  mutable PlanTimes times_;
};

}  // namespace kiln::graph
