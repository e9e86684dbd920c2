// The processes of `kiln launch -n N kiln train ...`, which train one model.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "kiln/data/data_loader.h"
#include "kiln/distributed/data_parallel.h"

namespace kiln::cli {

class RunTeam {
 public:
  // The group that a launcher made, or this process alone. Throws ValueError for variables of a
  // launcher that are none.
  RunTeam();

  bool is_main() const { return group_->rank() == 0; }
  int size() const { return group_->size(); }
  // Until all processes have come here.
  void wait() { group_->barrier(); }
  // All have the weights of the first one, and share gradients from here on.
  void share(nn::Module& module);
  // All have the buffers of the first one.
  void take_buffers(const nn::Module& module);
  // The first one's number.
  int64_t of_main(int64_t number) const;
  // Nothing for a process alone.
  std::optional<train::Team> team() const;
  // `options` for this process's part of a set: of a batch, too. Throws UsageError when the batch
  // cannot be divided.
  data::DataLoaderOptions part_of(data::DataLoaderOptions options, int64_t samples) const;

 private:
  std::shared_ptr<distributed::ProcessGroup> group_;
  std::unique_ptr<distributed::DistributedDataParallel> replicas_;
};

}  // namespace kiln::cli
