// How a DataLoader makes one batch of an epoch. Internal to kiln/data.
#pragma once

#include <cstdint>
#include <vector>

#include "kiln/data/data_loader.h"

namespace kiln::data::detail {

class BatchMaker {
 public:
  // `order`: the samples of the epoch.
  BatchMaker(DatasetHandle dataset, const DataLoaderOptions& options, int64_t epoch,
             std::vector<int64_t> order);

  // Batch `batch` of the epoch. Several threads may ask at once. Its exceptions say where they
  // come from.
  Batch make(int64_t batch) const;

 private:
  Example make_example(int64_t index) const;
  Batch pinned(Batch batch) const;
  Batch make_each(std::span<const int64_t> indices, int64_t& at) const;

  DatasetHandle dataset_;
  DataLoaderOptions options_;
  int64_t epoch_;
  std::vector<int64_t> order_;
};

}  // namespace kiln::data::detail
