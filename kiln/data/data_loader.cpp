#include "kiln/data/data_loader.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "kiln/core/error.h"
#include "kiln/data/batch_maker.h"
#include "kiln/data/prefetcher.h"

namespace kiln::data {

namespace {

void check_options(const DataLoaderOptions& options) {
  const auto bad = [](const char* name, int64_t got, const char* expected) {
    throw_error<ValueError>("DataLoader: bad ", name, "; got ", got, "; expected ", expected);
  };
  constexpr int kMostWorkers = 1024;
  if (options.batch_size < 1) bad("batch_size", options.batch_size, "1 or more");
  if (options.num_workers < 0 || options.num_workers > kMostWorkers) {
    bad("num_workers", options.num_workers, "0 to 1024");
  }
  if (options.prefetch < 1) bad("prefetch", options.prefetch, "1 or more");
  if (options.shuffle && options.sampler) {
    throw ValueError("DataLoader: shuffle and a sampler exclude each other; got both");
  }
}

// Of a sampler that is not Kiln's own.
void check_order(const std::vector<int64_t>& order, int64_t size, int64_t samples) {
  if (static_cast<int64_t>(order.size()) != size) {
    throw_error<ValueError>(
        "DataLoader: the sampler's order has another length than its size(); "
        "got ",
        order.size(), " and ", size);
  }
  for (const int64_t index : order) {
    if (index < 0 || index >= samples) {
      throw_error<IndexError>("DataLoader: the sampler gives an index out of range; got ", index,
                              " for ", samples, " samples");
    }
  }
}

}  // namespace

DataLoader::DataLoader(DatasetHandle dataset, DataLoaderOptions options)
    : dataset_(std::move(dataset)), options_(std::move(options)) {
  check_options(options_);
  if (options_.sampler) {
    sampler_ = options_.sampler;
  } else if (options_.shuffle) {
    sampler_ = std::make_shared<RandomSampler>(dataset_->size(), options_.seed);
  } else {
    sampler_ = std::make_shared<SequentialSampler>(dataset_->size());
  }
}

void DataLoader::check_not_moved() const {
  if (sampler_ == nullptr) {
    throw_error<ValueError>("DataLoader: it was moved away; got an object that was moved from");
  }
}

int64_t DataLoader::size() const {
  check_not_moved();
  const int64_t samples = sampler_->size();
  const int64_t full = samples / options_.batch_size;
  return options_.drop_last || samples % options_.batch_size == 0 ? full : full + 1;
}

int64_t DataLoader::num_samples() const {
  check_not_moved();
  return options_.drop_last ? size() * options_.batch_size : sampler_->size();
}

void DataLoader::set_epoch(int64_t epoch, int64_t first_batch) {
  if (epoch < 0 || first_batch < 0) {
    throw_error<ValueError>("DataLoader::set_epoch: negative; got epoch ", epoch, " and batch ",
                            first_batch);
  }
  epoch_ = epoch;
  first_batch_ = first_batch;
}

// What one loop works on: batches in order, from workers or made here.
class DataLoader::Iterator::Pass {
 public:
  Pass(detail::BatchMaker maker, int64_t begin, int64_t end, int workers, int prefetch)
      : maker_(std::move(maker)), next_(begin), end_(end) {
    if (workers > 0 && begin < end) {
      workers = static_cast<int>(std::min<int64_t>(workers, end - begin));
      prefetcher_.emplace([this](int64_t batch) { return maker_.make(batch); }, begin, end, workers,
                          prefetch);
    }
  }

  bool done() const { return next_ >= end_; }
  int64_t batch_index() const { return next_ - 1; }
  Batch next() {
    const int64_t batch = next_++;
    return prefetcher_ ? prefetcher_->next() : maker_.make(batch);
  }

 private:
  detail::BatchMaker maker_;
  int64_t next_;
  int64_t end_;
  std::optional<detail::Prefetcher> prefetcher_;  // last: its threads use the members above
};

DataLoader::Iterator DataLoader::begin() {
  check_not_moved();
  const int64_t epoch = epoch_++;
  const int64_t first = std::exchange(first_batch_, 0);
  std::vector<int64_t> order = sampler_->order(epoch);
  if (options_.sampler) check_order(order, sampler_->size(), dataset_->size());
  return Iterator(std::make_unique<Iterator::Pass>(
      detail::BatchMaker(dataset_, options_, epoch, std::move(order)), first, size(),
      options_.num_workers, options_.prefetch));
}

DataLoader::Iterator::Iterator(std::unique_ptr<Pass> pass) : pass_(std::move(pass)) { load(); }
DataLoader::Iterator::~Iterator() = default;
DataLoader::Iterator::Iterator(Iterator&&) noexcept = default;
DataLoader::Iterator& DataLoader::Iterator::operator=(Iterator&&) noexcept = default;

DataLoader::Iterator& DataLoader::Iterator::operator++() {
  load();
  return *this;
}

int64_t DataLoader::Iterator::batch_index() const { return pass_ ? pass_->batch_index() : -1; }

void DataLoader::Iterator::load() {
  batch_.reset();
  // Taken out while it may throw: an exception ends the pass.
  std::unique_ptr<Pass> pass = std::move(pass_);
  if (!pass || pass->done()) return;
  batch_ = std::make_unique<Batch>(pass->next());
  pass_ = std::move(pass);
}

}  // namespace kiln::data
