// DataLoader: a dataset in batches, in order or shuffled, made ahead of time by worker threads.
#pragma once

#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <string>

#include "kiln/data/dataset.h"
#include "kiln/data/sample_random.h"
#include "kiln/data/sampler.h"

namespace kiln::data {

struct DataLoaderOptions {
  int64_t batch_size = 1;
  bool shuffle = false;    // another order in every epoch
  uint64_t seed = 0;       // of the order and of the transform
  bool drop_last = false;  // leaves out a last batch that is not full
  // Threads that make batches while the caller works on another; 0: each batch is made when it is
  // asked for, on the caller's thread. The batches and their order are the same either way.
  int num_workers = 0;
  // Batches that each worker makes ahead.
  int prefetch = 2;
  // Changes each sample before it is batched, such as random augmentation; it may write into the
  // tensors it is given. Its random numbers are a function of (seed, epoch, index of the sample).
  // Called by several threads at once when there are workers.
  std::function<Example(Example, SampleRandom&)> transform = {};
  // Makes a batch of samples, for those that collate() cannot stack.
  std::function<Batch(std::span<const Example>)> collate = {};
  // Which samples, in which order; not together with shuffle.
  std::shared_ptr<const Sampler> sampler = {};
  // Batches come in pinned memory (pin_memory()) of this device's driver: "cuda", "opencl:1";
  // empty: of the first GPU. Where there is no GPU that changes nothing.
  bool pin_memory = false;
  std::string pin_memory_device = {};
};

// for (const auto& [images, labels] : loader) ...   is one epoch; the next such loop is the next
// epoch. The order of epoch e depends on (seed, e) alone.
//
// An exception in the dataset, the transform or the collate function is thrown when the loop
// reaches its batch, at any number of workers. A kiln::Error keeps its type and says which sample
// of which batch and epoch it came from; another std::exception arrives as a kiln::Error that
// says so and has the original nested (std::rethrow_if_nested). It ends the loop's pass, and so
// does leaving the loop early: the workers are stopped and joined.
class DataLoader {
 public:
  // Throws ValueError for options out of range.
  explicit DataLoader(DatasetHandle dataset, DataLoaderOptions options = {});

  // Batches in an epoch. As the others, throws ValueError for a loader that was moved away.
  int64_t size() const;
  // Samples in an epoch.
  int64_t num_samples() const;
  const Dataset& dataset() const {
    check_not_moved();
    return *dataset_;
  }
  const DataLoaderOptions& options() const { return options_; }

  // The epoch of the next loop, from 0 on.
  int64_t epoch() const { return epoch_; }
  // Makes the next loop that epoch, from batch `first_batch` on: how an interrupted epoch is
  // continued. Throws ValueError when one is negative.
  void set_epoch(int64_t epoch, int64_t first_batch = 0);

  class Iterator;
  Iterator begin();
  std::default_sentinel_t end() const { return {}; }

 private:
  void check_not_moved() const;

  DatasetHandle dataset_;
  DataLoaderOptions options_;
  std::shared_ptr<const Sampler> sampler_;
  int64_t epoch_ = 0;
  int64_t first_batch_ = 0;
};

// One pass over the batches of an epoch; single-pass, to be used by one thread. It may outlive its
// loader.
class DataLoader::Iterator {
 public:
  using iterator_concept = std::input_iterator_tag;
  using value_type = Batch;
  using difference_type = std::ptrdiff_t;

  ~Iterator();
  Iterator(Iterator&&) noexcept;
  Iterator& operator=(Iterator&&) noexcept;

  Batch& operator*() const { return *batch_; }
  Batch* operator->() const { return batch_.get(); }
  Iterator& operator++();
  void operator++(int) { ++*this; }
  friend bool operator==(const Iterator& it, std::default_sentinel_t) { return !it.batch_; }

  // Of the present batch, from 0 on; -1 at the end.
  int64_t batch_index() const;

 private:
  friend class DataLoader;
  class Pass;
  explicit Iterator(std::unique_ptr<Pass> pass);
  void load();

  std::unique_ptr<Pass> pass_;
  std::unique_ptr<Batch> batch_;  // null at the end
};

}  // namespace kiln::data
