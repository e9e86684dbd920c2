#include "kiln/data/batch_maker.h"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "kiln/core/error.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/pinned_memory.h"

namespace kiln::data::detail {

namespace {

constexpr int64_t kWholeBatch = -1;

// Called in a handler: throws what was caught again, with `where` before its message.
[[noreturn]] void rethrow_with(const std::string& where) {
  try {
    throw;
  } catch (const ShapeError& e) {
    throw ShapeError(where + e.what());
  } catch (const DTypeError& e) {
    throw DTypeError(where + e.what());
  } catch (const DeviceError& e) {
    throw DeviceError(where + e.what());
  } catch (const IndexError& e) {
    throw IndexError(where + e.what());
  } catch (const ValueError& e) {
    throw ValueError(where + e.what());
  } catch (const IoError& e) {
    throw IoError(where + e.what());
  } catch (const AutodiffError& e) {
    throw AutodiffError(where + e.what());
  } catch (const NotImplementedError& e) {
    throw NotImplementedError(where + e.what());
  } catch (const Error& e) {
    throw Error(where + e.what());
  } catch (const std::exception& e) {
    std::throw_with_nested(Error(where + e.what()));
  } catch (...) {
    std::throw_with_nested(Error(where + "an exception of unknown type"));
  }
}

}  // namespace

BatchMaker::BatchMaker(DatasetHandle dataset, const DataLoaderOptions& options, int64_t epoch,
                       std::vector<int64_t> order)
    : dataset_(std::move(dataset)), options_(options), epoch_(epoch), order_(std::move(order)) {}

Example BatchMaker::make_example(int64_t index) const {
  Example example = dataset_->get(index);
  if (!options_.transform) return example;
  SampleRandom random(options_.seed, epoch_, index);
  return options_.transform(std::move(example), random);
}

// `at` is the sample that is being made, for messages.
Batch BatchMaker::make_each(std::span<const int64_t> indices, int64_t& at) const {
  std::vector<Example> examples;
  examples.reserve(indices.size());
  for (const int64_t index : indices) {
    at = index;
    examples.push_back(make_example(index));
  }
  at = kWholeBatch;
  return options_.collate ? options_.collate(examples) : collate(examples);
}

Batch BatchMaker::pinned(Batch batch) const {
  if (!options_.pin_memory) return batch;
  std::optional<Device> device;
  if (!options_.pin_memory_device.empty()) device = Device(options_.pin_memory_device);
  for (Tensor& x : batch) {
    if (x.defined() && x.device() == Device(kCpu)) x = pin_memory(x, device);
  }
  return batch;
}

Batch BatchMaker::make(int64_t batch) const {
  const NoGradGuard no_grad;
  const auto begin = static_cast<size_t>(batch * options_.batch_size);
  const size_t length = std::min(static_cast<size_t>(options_.batch_size), order_.size() - begin);
  const auto indices = std::span<const int64_t>(order_).subspan(begin, length);
  int64_t at = kWholeBatch;
  try {
    // Without anything to do for single samples the dataset may gather them its own way.
    if (!options_.transform && !options_.collate) {
      if (std::optional<Batch> made = dataset_->gather(indices)) return pinned(std::move(*made));
    }
    return pinned(make_each(indices, at));
  } catch (...) {
    const std::string sample = at == kWholeBatch ? "" : concat("sample ", at, " of ");
    rethrow_with(concat("DataLoader: ", sample, "batch ", batch, " of epoch ", epoch_, ": "));
  }
}

}  // namespace kiln::data::detail
