#include "cli/train/run_team.h"

#include "cli/usage_error.h"
#include "kiln/core/error.h"
#include "kiln/data/sampler.h"
#include "kiln/distributed/environment.h"
#include "kiln/tensor/creation.h"

namespace kiln::cli {

RunTeam::RunTeam() : group_(distributed::init_process_group({.allow_alone = true})) {}

void RunTeam::share(nn::Module& module) {
  if (size() > 1) {
    replicas_ = std::make_unique<distributed::DistributedDataParallel>(module, group_);
  }
}

void RunTeam::take_buffers(const nn::Module& module) {
  distributed::broadcast_tensors(*group_, module.buffers());
}

int64_t RunTeam::of_main(int64_t number) const {
  const Tensor x = tensor({number}, {i64});
  group_->broadcast(x, 0);
  return x.item<int64_t>();
}

std::optional<train::Team> RunTeam::team() const {
  return replicas_ == nullptr ? std::nullopt : std::optional(replicas_->team());
}

data::DataLoaderOptions RunTeam::part_of(data::DataLoaderOptions options, int64_t samples) const {
  if (size() == 1) return options;
  if (options.batch_size % size() != 0) {
    throw UsageError(concat("batch_size must be a multiple of the number of processes; got ",
                            options.batch_size, " and ", size()));
  }
  options.batch_size /= size();
  options.sampler = std::make_shared<data::DistributedSampler>(
      samples, size(), group_->rank(),
      data::DistributedSamplerOptions{.shuffle = options.shuffle, .seed = options.seed});
  options.shuffle = false;
  return options;
}

}  // namespace kiln::cli
