// DistributedDataParallel: one model in several processes, each with its own part of a batch.
#pragma once

#include <memory>
#include <utility>

#include "kiln/distributed/gradient_reducer.h"
#include "kiln/nn/module.h"
#include "kiln/train/team.h"

namespace kiln::distributed {

// Gives all processes the tensors of `root`.
void broadcast_tensors(ProcessGroup& group, std::span<const Tensor> tensors, int root = 0);
// The same with the parameters and buffers of a module.
void broadcast_module(ProcessGroup& group, const nn::Module& module, int root = 0);

struct DataParallelOptions {
  double bucket_cap_mb = 25;  // MiB that travel at once
  // Whether all processes begin with the parameters and buffers of rank 0.
  bool init_sync = true;
};

// While one lives, each backward() and backward_accumulate() of the model gives gradients that are
// the mean over the processes of the group: with a loss that is a mean over samples, and equally
// large parts, that is the gradient of the whole batch. Every process then takes the same step.
//
//   distributed::DistributedDataParallel replicas(model, group);
//   optimizer.step(loss.backward());
//
// A train::Learner takes team() as its option `team`. Buffers, such as the statistics of BatchNorm,
// stay each process's own, until sync_buffers().
class DistributedDataParallel {
 public:
  // The model must outlive it. Throws ValueError for a model without parameters that require a
  // gradient, DistBackendError when the models of the processes differ in shape.
  DistributedDataParallel(nn::Module& model, std::shared_ptr<ProcessGroup> group,
                          DataParallelOptions options = {});

  const std::shared_ptr<ProcessGroup>& group() const { return group_; }
  GradientReducer& reducer() { return reducer_; }
  // Exchanges gradients by the hook, as compressed_gradients() or an own one.
  void register_comm_hook(GradientHook hook) { reducer_.set_hook(std::move(hook)); }
  // The group as a Learner sees it.
  train::Team team() const;
  // All processes take the buffers of rank 0.
  void sync_buffers() { broadcast_tensors(*group_, model_.buffers()); }

  // While one lives, gradients add up in each process alone: for the batches of a step but the
  // last.
  class NoSync {
   public:
    explicit NoSync(GradientReducer& reducer) : reducer_(reducer), before_(reducer.is_enabled()) {
      reducer_.set_enabled(false);
    }
    ~NoSync() { reducer_.set_enabled(before_); }
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    GradientReducer& reducer_;
    bool before_;
  };
  [[nodiscard]] NoSync no_sync() { return NoSync(reducer_); }

 private:
  nn::Module& model_;
  std::shared_ptr<ProcessGroup> group_;
  GradientReducer reducer_;
};

}  // namespace kiln::distributed
