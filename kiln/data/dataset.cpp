#include "kiln/data/dataset.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kiln/core/error.h"
#include "kiln/data/rows.h"
#include "kiln/data/sampler.h"

namespace kiln::data {

namespace {

void check_index(const char* op, int64_t index, int64_t size) {
  if (index < 0 || index >= size) {
    throw_error<IndexError>(op, ": index out of range; got ", index, " for ", size, " samples");
  }
}

std::vector<int64_t> range(int64_t begin, int64_t end) {
  if (begin > end) {
    throw_error<IndexError>("Subset: the range ends before it begins; got ", begin, " to ", end);
  }
  std::vector<int64_t> out(static_cast<size_t>(end - begin));
  std::iota(out.begin(), out.end(), begin);
  return out;
}

}  // namespace

Batch Dataset::get_batch(std::span<const int64_t> indices) const {
  if (std::optional<Batch> batch = gather(indices)) return std::move(*batch);
  std::vector<Example> examples;
  examples.reserve(indices.size());
  for (const int64_t i : indices) examples.push_back(get(i));
  return collate(examples);
}

std::optional<Batch> Dataset::gather(std::span<const int64_t>) const { return {}; }

DatasetHandle::DatasetHandle(std::shared_ptr<const Dataset> dataset)
    : dataset_(std::move(dataset)) {
  if (!dataset_) throw ValueError("DatasetHandle: no dataset; got a null pointer");
}

TensorDataset::TensorDataset(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {
  if (tensors_.empty()) throw ValueError("TensorDataset: no tensors; expected at least one");
  for (Tensor& t : tensors_) {
    if (t.dim() == 0) throw ShapeError("TensorDataset: a 0-d tensor has no rows");
    if (t.size(0) != tensors_[0].size(0)) {
      throw_error<ShapeError>("TensorDataset: the tensors differ in their number of rows; got ",
                              tensors_[0].shape(), " and ", t.shape());
    }
    t = t.detach();
    if (const DeviceType type = t.device().type; type == kCpu || type == kReference) {
      t = t.contiguous();
    }
  }
  size_ = tensors_[0].size(0);
}

TensorDataset::TensorDataset(const ImageSet& set)
    : TensorDataset({Tensor(set.images).unsqueeze(1), Tensor(set.labels)}) {}

Example TensorDataset::get(int64_t index) const {
  check_index("TensorDataset::get", index, size_);
  std::vector<Tensor> out;
  out.reserve(tensors_.size());
  for (const Tensor& t : tensors_) {
    if (detail::is_plain(t)) {
      out.push_back(detail::gather_rows(t, {&index, 1}).squeeze(0));
    } else {
      out.push_back(t.select(0, index).clone());
    }
  }
  return Example(std::move(out));
}

std::optional<Batch> TensorDataset::gather(std::span<const int64_t> indices) const {
  for (const int64_t i : indices) check_index("TensorDataset", i, size_);
  std::vector<Tensor> out;
  out.reserve(tensors_.size());
  for (const Tensor& t : tensors_) {
    if (detail::is_plain(t)) {
      out.push_back(detail::gather_rows(t, indices));
    } else {
      const TensorData rows(indices, Shape{static_cast<int64_t>(indices.size())});
      out.push_back(t.index_select(0, Tensor(rows, t.device())));
    }
  }
  return Batch(std::move(out));
}

FunctionDataset::FunctionDataset(int64_t size, Function get) : size_(size), get_(std::move(get)) {
  if (size < 0) throw_error<ValueError>("FunctionDataset: negative size; got ", size);
  if (!get_) throw ValueError("FunctionDataset: no function");
}

Example FunctionDataset::get(int64_t index) const {
  check_index("FunctionDataset::get", index, size_);
  return get_(index);
}

MapDataset::MapDataset(DatasetHandle dataset, Function f)
    : dataset_(std::move(dataset)), f_(std::move(f)) {
  if (!f_) throw ValueError("MapDataset: no function");
}

Subset::Subset(DatasetHandle dataset, std::vector<int64_t> indices)
    : dataset_(std::move(dataset)), indices_(std::move(indices)) {
  for (const int64_t i : indices_) check_index("Subset", i, dataset_->size());
}

Subset::Subset(DatasetHandle dataset, int64_t begin, int64_t end)
    : Subset(std::move(dataset), range(begin, end)) {}

Example Subset::get(int64_t index) const {
  check_index("Subset::get", index, size());
  return dataset_->get(indices_[static_cast<size_t>(index)]);
}

std::optional<Batch> Subset::gather(std::span<const int64_t> indices) const {
  std::vector<int64_t> inner;
  inner.reserve(indices.size());
  for (const int64_t i : indices) {
    check_index("Subset", i, size());
    inner.push_back(indices_[static_cast<size_t>(i)]);
  }
  return dataset_->gather(inner);
}

ConcatDataset::ConcatDataset(std::vector<DatasetHandle> datasets) : datasets_(std::move(datasets)) {
  int64_t end = 0;
  for (const DatasetHandle& d : datasets_) ends_.push_back(end += d->size());
}

Example ConcatDataset::get(int64_t index) const {
  check_index("ConcatDataset::get", index, size());
  const auto which = std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin();
  const int64_t begin = which == 0 ? 0 : ends_[static_cast<size_t>(which - 1)];
  return datasets_[static_cast<size_t>(which)]->get(index - begin);
}

std::vector<Subset> random_split(const DatasetHandle& dataset, const std::vector<int64_t>& sizes,
                                 uint64_t seed) {
  int64_t left = dataset->size();
  for (const int64_t size : sizes) {
    if (size < 0 || size > left) {
      throw_error<ValueError>("random_split: the sizes do not fit; got a part of ", size, " with ",
                              left, " of ", dataset->size(), " samples left");
    }
    left -= size;
  }
  if (left != 0) {
    throw_error<ValueError>("random_split: the sizes must add up to the dataset's; got ",
                            dataset->size() - left, "; expected ", dataset->size());
  }
  const std::vector<int64_t> order = RandomSampler(dataset->size(), seed).order(0);
  std::vector<Subset> parts;
  auto at = order.begin();
  for (const int64_t size : sizes) {
    parts.emplace_back(dataset, std::vector<int64_t>(at, at + size));
    at += size;
  }
  return parts;
}

std::vector<Subset> detail::split_by_fractions(const DatasetHandle& dataset,
                                               const std::vector<double>& fractions,
                                               uint64_t seed) {
  double sum = 0.0;
  bool legal = !fractions.empty();
  for (const double fraction : fractions) {
    legal = legal && fraction >= 0.0 && fraction <= 1.0;
    sum += fraction;
  }
  if (!legal || std::abs(sum - 1.0) > 1e-9) {
    throw_error<ValueError>("random_split: fractions must be in [0, 1] and add up to 1; got ",
                            fractions.size(), " of them, with the sum ", sum);
  }
  std::vector<int64_t> sizes;
  int64_t left = dataset->size();
  for (const double fraction : fractions) {
    sizes.push_back(
        static_cast<int64_t>(std::floor(static_cast<double>(dataset->size()) * fraction)));
    left -= sizes.back();
  }
  // What is left over, one for each part by turns, as in PyTorch.
  for (size_t i = 0; left > 0; --left, ++i) ++sizes[i % sizes.size()];
  return random_split(dataset, sizes, seed);
}

}  // namespace kiln::data
