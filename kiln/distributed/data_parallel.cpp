#include "kiln/distributed/data_parallel.h"

#include <algorithm>
#include <vector>

#include "kiln/core/error.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"

namespace kiln::distributed {

namespace {

std::vector<Tensor> trained(const nn::Module& model) {
  std::vector<Tensor> out;
  for (const Tensor& x : model.parameters()) {
    if (x.requires_grad()) out.push_back(x);
  }
  return out;
}

// The rows of all processes, one behind another.
Tensor gather_rows(ProcessGroup& group, const Tensor& rows) {
  if (group.size() == 1) return rows;
  const auto size = static_cast<size_t>(group.size());
  const Tensor own = rows.dim() == 0 ? rows.reshape({1}) : rows.contiguous();
  std::vector<Tensor> counts(size);
  for (Tensor& count : counts) count = zeros({1}, {i64});
  group.all_gather(counts, tensor({own.size(0)}, {i64}));
  std::vector<Tensor> all(size);
  for (size_t rank = 0; rank < size; ++rank) {
    std::vector<int64_t> shape(own.shape().begin(), own.shape().end());
    shape[0] = counts[rank].item<int64_t>();
    all[rank] = empty(Shape(shape), own.options());
  }
  group.all_to_all(all, std::vector<Tensor>(size, own));
  return cat(all, 0);
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

train::Team DistributedDataParallel::team() const {
  train::Team out;
  out.rank = group_->rank();
  out.size = group_->size();
  out.sum = [group = group_](std::span<double> numbers) {
    Tensor x = tensor(std::vector<double>(numbers.begin(), numbers.end()), {f64});
    group->all_reduce(x);
    const std::vector<double> sums = x.to_vector<double>();
    std::ranges::copy(sums, numbers.begin());
  };
  out.gather = [group = group_](const Tensor& rows) { return gather_rows(*group, rows); };
  return out;
}

}  // namespace kiln::distributed
