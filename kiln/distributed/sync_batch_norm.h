// SyncBatchNorm: batch norm over the batches of all processes.
#pragma once

#include <memory>
#include <utility>

#include "kiln/distributed/process_group.h"
#include "kiln/nn/batch_norm.h"

namespace kiln::distributed {

// x [N, C], [N, C, L], [N, C, H, W] or [N, C, D, H, W] -> the same shape: nn::BatchNorm with the
// statistics of all processes' batches together, which may differ in size. In a group of one, and
// in eval mode, it is nn::BatchNorm.
class SyncBatchNorm : public nn::BatchNormLayer<nn::BatchNormConfig> {
 public:
  // Throws ValueError without a group.
  SyncBatchNorm(int64_t num_features, std::shared_ptr<ProcessGroup> group,
                const nn::BatchNormOptions& options = {},
                const nn::ParamOptions& param_options = {});
  Tensor forward(TensorArg x) const;
  KILN_MODULE_DECLARED(SyncBatchNorm)

 private:
  void track(const Tensor& mean, const Tensor& variance) const;

  std::shared_ptr<ProcessGroup> group_;
};

}  // namespace kiln::distributed
