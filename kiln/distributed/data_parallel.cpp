#include "kiln/distributed/data_parallel.h"

#include <vector>

#include "kiln/core/error.h"

namespace kiln::distributed {

namespace {

std::vector<Tensor> trained(const nn::Module& model) {
  std::vector<Tensor> out;
  for (const Tensor& x : model.parameters()) {
    if (x.requires_grad()) out.push_back(x);
  }
  return out;
}

}  // namespace

void broadcast_tensors(ProcessGroup& group, std::span<const Tensor> tensors, int root) {
  if (group.size() == 1) return;
  for (const Tensor& x : tensors) group.broadcast(x, root);
}

void broadcast_module(ProcessGroup& group, const nn::Module& module, int root) {
  broadcast_tensors(group, module.parameters(), root);
  broadcast_tensors(group, module.buffers(), root);
}

DistributedDataParallel::DistributedDataParallel(nn::Module& model,
                                                 std::shared_ptr<ProcessGroup> group,
                                                 DataParallelOptions options)
    : model_(model),
      group_(std::move(group)),
      reducer_(trained(model), group_, options.bucket_cap_mb) {
  if (options.init_sync) broadcast_module(*group_, model_);
}

}  // namespace kiln::distributed
