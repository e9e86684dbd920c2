// Datasets: samples by number, from memory or made on demand, and views of other datasets.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "kiln/data/example.h"
#include "kiln/data/image_set.h"

namespace kiln::data {

// A DataLoader with workers calls get() and gather() from several threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;

  // The number of samples.
  virtual int64_t size() const = 0;
  // Sample `index`, 0 <= index < size(). A transform may write into the tensors, so they must not
  // share memory with what the dataset keeps.
  virtual Example get(int64_t index) const = 0;
  // Several samples as one batch, by gather() where the dataset has it.
  Batch get_batch(std::span<const int64_t> indices) const;
  // The same, to be overridden where it is cheaper than get() for each; by default nothing.
  virtual std::optional<Batch> gather(std::span<const int64_t> indices) const;

 protected:
  Dataset() = default;
  Dataset(const Dataset&) = default;
  Dataset(Dataset&&) = default;
  Dataset& operator=(const Dataset&) = default;
  Dataset& operator=(Dataset&&) = default;
};

// How datasets and loaders hold a dataset: made from one by value, or from a shared one.
class DatasetHandle {
 public:
  template <class D>
    requires std::derived_from<std::remove_cvref_t<D>, Dataset>
  DatasetHandle(D&& dataset)
      : dataset_(std::make_shared<std::remove_cvref_t<D>>(std::forward<D>(dataset))) {}
  // Throws ValueError for a null pointer.
  DatasetHandle(std::shared_ptr<const Dataset> dataset);
  template <class D>
    requires std::derived_from<D, Dataset>
  DatasetHandle(std::shared_ptr<D> dataset)
      : DatasetHandle(std::shared_ptr<const Dataset>(std::move(dataset))) {}

  const Dataset& operator*() const { return *dataset_; }
  const Dataset* operator->() const { return dataset_.get(); }

 private:
  std::shared_ptr<const Dataset> dataset_;
};

// Sample i is row i of each tensor. Batches are gathered by copying rows, without a tensor per
// sample.
class TensorDataset final : public Dataset {
 public:
  // Tensors [N, ..] of one N. Throws ShapeError.
  explicit TensorDataset(std::vector<Tensor> tensors);
  TensorDataset(std::initializer_list<Tensor> tensors)
      : TensorDataset(std::vector<Tensor>(tensors)) {}
  TensorDataset(const Tensor& input, const Tensor& target) : TensorDataset({input, target}) {}
  // Images u8 [N, 1, H, W] and labels i64 [N].
  explicit TensorDataset(const ImageSet& set);

  int64_t size() const override { return size_; }
  Example get(int64_t index) const override;
  std::optional<Batch> gather(std::span<const int64_t> indices) const override;
  const std::vector<Tensor>& tensors() const { return tensors_; }

 private:
  std::vector<Tensor> tensors_;
  int64_t size_ = 0;
};

// Samples made by a function of their number: read from a file each, computed, or held in some
// other form.
class FunctionDataset final : public Dataset {
 public:
  using Function = std::function<Example(int64_t index)>;
  // Throws ValueError for a negative size or no function.
  FunctionDataset(int64_t size, Function get);

  int64_t size() const override { return size_; }
  Example get(int64_t index) const override;

 private:
  int64_t size_;
  Function get_;
};

// Each sample of another dataset, changed by a function that draws no random numbers (for those
// that do see DataLoaderOptions::transform).
class MapDataset final : public Dataset {
 public:
  using Function = std::function<Example(Example)>;
  // Throws ValueError for no function.
  MapDataset(DatasetHandle dataset, Function f);

  int64_t size() const override { return dataset_->size(); }
  Example get(int64_t index) const override { return f_(dataset_->get(index)); }

 private:
  DatasetHandle dataset_;
  Function f_;
};

// Some samples of another dataset, in a given order; an index may occur twice.
class Subset final : public Dataset {
 public:
  // Throws IndexError for an index that the dataset does not have.
  Subset(DatasetHandle dataset, std::vector<int64_t> indices);
  // Samples begin to end - 1.
  Subset(DatasetHandle dataset, int64_t begin, int64_t end);

  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  Example get(int64_t index) const override;
  std::optional<Batch> gather(std::span<const int64_t> indices) const override;

 private:
  DatasetHandle dataset_;
  std::vector<int64_t> indices_;
};

// One dataset after the other.
class ConcatDataset final : public Dataset {
 public:
  explicit ConcatDataset(std::vector<DatasetHandle> datasets);

  int64_t size() const override { return ends_.empty() ? 0 : ends_.back(); }
  Example get(int64_t index) const override;

 private:
  std::vector<DatasetHandle> datasets_;
  std::vector<int64_t> ends_;  // one past the last index of each
};

// Disjoint random subsets of these sizes; a function of the seed. Throws ValueError for a negative
// size, and unless the sizes add up to the dataset's.
std::vector<Subset> random_split(const DatasetHandle& dataset, const std::vector<int64_t>& sizes,
                                 uint64_t seed);
namespace detail {
std::vector<Subset> split_by_fractions(const DatasetHandle& dataset,
                                       const std::vector<double>& fractions, uint64_t seed);
}
// The same by parts of the dataset, {0.8, 0.2}, as in PyTorch: each size is rounded down, and what
// is left over goes to the first parts, one sample each. Throws ValueError unless the fractions are
// in [0, 1] and add up to 1.
template <std::floating_point T>
std::vector<Subset> random_split(const DatasetHandle& dataset, std::initializer_list<T> fractions,
                                 uint64_t seed) {
  return detail::split_by_fractions(dataset, {fractions.begin(), fractions.end()}, seed);
}
template <std::floating_point T>
std::vector<Subset> random_split(const DatasetHandle& dataset, const std::vector<T>& fractions,
                                 uint64_t seed) {
  return detail::split_by_fractions(dataset, {fractions.begin(), fractions.end()}, seed);
}

}  // namespace kiln::data
