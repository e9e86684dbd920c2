#include "kiln/data/data_loader.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include <doctest/doctest.h>

#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "tests/support/throws.h"

using namespace kiln;
using namespace kiln::data;
using kiln::test::message_of;

namespace {

using Numbers = std::vector<int64_t>;

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

// Sample i is the number i.
TensorDataset counting(int64_t n) { return TensorDataset{arange(n)}; }

// The batches of one epoch, as numbers.
std::vector<Numbers> batches_of(DataLoader& loader) {
  std::vector<Numbers> all;
  for (const Batch& batch : loader) all.push_back(batch[0].to_vector<int64_t>());
  return all;
}

Numbers flat(const std::vector<Numbers>& batches) {
  Numbers all;
  for (const Numbers& b : batches) all.insert(all.end(), b.begin(), b.end());
  return all;
}

}  // namespace

TEST_CASE("batches in order, the last one short or dropped") {
  DataLoader loader(counting(7), {.batch_size = 3});
  CHECK(loader.size() == 3);
  CHECK(loader.num_samples() == 7);
  CHECK(batches_of(loader) == std::vector<Numbers>{{0, 1, 2}, {3, 4, 5}, {6}});
  DataLoader dropping(counting(7), {.batch_size = 3, .drop_last = true});
  CHECK(dropping.size() == 2);
  CHECK(dropping.num_samples() == 6);
  CHECK(batches_of(dropping) == std::vector<Numbers>{{0, 1, 2}, {3, 4, 5}});
  DataLoader even(counting(6), {.batch_size = 3});
  CHECK(even.size() == 2);
}

TEST_CASE("no samples, and fewer than a batch") {
  DataLoader none(counting(0), {.batch_size = 3});
  CHECK(none.size() == 0);
  CHECK(batches_of(none).empty());
  DataLoader few(counting(2), {.batch_size = 3});
  CHECK(batches_of(few) == std::vector<Numbers>{{0, 1}});
  DataLoader dropped(counting(2), {.batch_size = 3, .drop_last = true});
  CHECK(batches_of(dropped).empty());
}

TEST_CASE("names for input and target") {
  DataLoader loader(TensorDataset(arange(8, {f32}).reshape({4, 2}), arange(4)), {.batch_size = 2});
  int64_t seen = 0;
  for (const auto& [x, y] : loader) {
    CHECK(x.shape() == Shape{2, 2});
    CHECK(y.shape() == Shape{2});
    CHECK(x[0][0].item<int64_t>() == 2 * y[0].item<int64_t>());
    ++seen;
  }
  CHECK(seen == loader.size());
}

TEST_CASE("shuffling depends on seed and epoch; each loop is an epoch") {
  DataLoader loader(counting(50), {.batch_size = 8, .shuffle = true, .seed = 1});
  CHECK(loader.epoch() == 0);
  const auto first = batches_of(loader);
  CHECK(loader.epoch() == 1);
  const auto second = batches_of(loader);
  CHECK(first != second);
  Numbers sorted = flat(first);
  std::sort(sorted.begin(), sorted.end());
  Numbers expected(50);
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(sorted == expected);

  loader.set_epoch(0);
  CHECK(batches_of(loader) == first);
  CHECK(batches_of(loader) == second);
  DataLoader same(counting(50), {.batch_size = 8, .shuffle = true, .seed = 1});
  same.set_epoch(1);
  CHECK(batches_of(same) == second);
  DataLoader other(counting(50), {.batch_size = 8, .shuffle = true, .seed = 2});
  CHECK(batches_of(other) != first);
  // The batch size cuts the same order elsewhere.
  DataLoader wider(counting(50), {.batch_size = 25, .shuffle = true, .seed = 1});
  CHECK(flat(batches_of(wider)) == flat(first));
}

TEST_CASE("an epoch continues from a batch") {
  DataLoader loader(counting(10), {.batch_size = 3, .shuffle = true, .seed = 4});
  loader.set_epoch(5);
  auto whole = batches_of(loader);
  loader.set_epoch(5, 2);
  const auto rest = batches_of(loader);
  whole.erase(whole.begin(), whole.begin() + 2);
  CHECK(rest == whole);
  CHECK(loader.epoch() == 6);
  CHECK(batches_of(loader).size() == 4);
  loader.set_epoch(0, 99);
  CHECK(batches_of(loader).empty());
  CHECK_THROWS_AS(loader.set_epoch(-1), ValueError);
  CHECK_THROWS_AS(loader.set_epoch(0, -1), ValueError);
}

TEST_CASE("the iterator: number of the batch, end, independence of the loader") {
  auto loader = std::make_unique<DataLoader>(counting(5), DataLoaderOptions{.batch_size = 2});
  auto it = loader->begin();
  auto other = loader->begin();
  loader.reset();
  CHECK(it.batch_index() == 0);
  ++it;
  CHECK(it.batch_index() == 1);
  CHECK((*it)[0].to_vector<int64_t>() == Numbers{2, 3});
  CHECK((*other)[0].to_vector<int64_t>() == Numbers{0, 1});
  ++it;
  CHECK(it->size() == 1);
  CHECK(it != std::default_sentinel);
  ++it;
  CHECK(it == std::default_sentinel);
  CHECK(it.batch_index() == -1);
  ++it;
  CHECK(it == std::default_sentinel);
  static_assert(std::input_iterator<DataLoader::Iterator>);
}

TEST_CASE("a transform draws numbers that belong to the sample") {
  const auto noisy = [](Example e, SampleRandom& random) {
    return Example{e[0] * 1000 + random.integer(0, 1000)};
  };
  DataLoader loader(counting(20), {.batch_size = 6, .seed = 3, .transform = noisy});
  const auto plain = flat(batches_of(loader));
  for (size_t i = 0; i < 20; ++i) CHECK(plain[i] / 1000 == static_cast<int64_t>(i));
  const auto next = flat(batches_of(loader));
  CHECK(plain != next);
  // Another order and other batches, the same numbers.
  DataLoader shuffled(counting(20),
                      {.batch_size = 4, .shuffle = true, .seed = 3, .transform = noisy});
  auto sorted = flat(batches_of(shuffled));
  CHECK(sorted != plain);
  std::sort(sorted.begin(), sorted.end());
  CHECK(sorted == plain);
  DataLoader other(counting(20), {.batch_size = 6, .seed = 4, .transform = noisy});
  CHECK(flat(batches_of(other)) != plain);
}

TEST_CASE("a transform may write into what it is given") {
  const Tensor kept = arange(4);
  DataLoader loader(TensorDataset{kept},
                    {.batch_size = 4, .transform = [](Example e, SampleRandom&) {
                       e[0].fill_(9);
                       return e;
                     }});
  CHECK(batches_of(loader) == std::vector<Numbers>{{9, 9, 9, 9}});
  CHECK(kept.to_vector<int64_t>() == Numbers{0, 1, 2, 3});
}

TEST_CASE("a collate function") {
  // Sequences of different lengths, padded with -1.
  const FunctionDataset sequences(4, [](int64_t i) { return Example{full({i + 1}, i)}; });
  const auto pad = [](std::span<const Example> examples) {
    int64_t longest = 0;
    for (const Example& e : examples) longest = std::max(longest, e[0].size(0));
    std::vector<Tensor> rows;
    for (const Example& e : examples) {
      rows.push_back(cat({e[0], full({longest - e[0].size(0)}, -1)}));
    }
    return Batch{stack(rows)};
  };
  DataLoader loader(sequences, {.batch_size = 2, .collate = pad});
  CHECK(batches_of(loader) == std::vector<Numbers>{{0, -1, 1, 1}, {2, 2, 2, -1, 3, 3, 3, 3}});
  DataLoader failing(sequences, {.batch_size = 2});
  CHECK(contains(message_of<ShapeError>([&] { batches_of(failing); }),
                 "DataLoader: batch 0 of epoch 0: collate: "));
}

TEST_CASE("a sampler") {
  struct Reversed final : Sampler {
    int64_t size() const override { return 3; }
    std::vector<int64_t> order(int64_t epoch) const override { return {2, 1, epoch}; }
  };
  DataLoader loader(counting(3), {.batch_size = 2, .sampler = std::make_shared<Reversed>()});
  CHECK(loader.size() == 2);
  CHECK(batches_of(loader) == std::vector<Numbers>{{2, 1}, {0}});
  CHECK(batches_of(loader) == std::vector<Numbers>{{2, 1}, {1}});
  loader.set_epoch(3);
  CHECK(contains(message_of<IndexError>([&] { batches_of(loader); }), "got 3 for 3 samples"));

  struct Lying final : Sampler {
    int64_t size() const override { return 3; }
    std::vector<int64_t> order(int64_t) const override { return {0}; }
  };
  DataLoader lying(counting(3), {.sampler = std::make_shared<Lying>()});
  CHECK_THROWS_AS(batches_of(lying), ValueError);
}

TEST_CASE("options out of range") {
  const auto error = [](const DataLoaderOptions& options) {
    return message_of<ValueError>([&] { DataLoader loader(counting(3), options); });
  };
  CHECK(contains(error({.batch_size = 0}), "bad batch_size; got 0; expected 1 or more"));
  CHECK(contains(error({.num_workers = -1}), "num_workers"));
  CHECK(contains(error({.prefetch = 0}), "prefetch"));
  CHECK(contains(error({.shuffle = true, .sampler = std::make_shared<SequentialSampler>(3)}),
                 "exclude each other"));
}

TEST_CASE("errors keep their type, say where they come from, and end the loop") {
  const FunctionDataset broken(10, [](int64_t i) {
    if (i == 5) throw IoError("open: 5.png is missing");
    return Example{tensor(Scalar(i))};
  });
  DataLoader loader(broken, {.batch_size = 2});
  Numbers seen;
  auto it = loader.begin();
  const auto message = message_of<IoError>([&] {
    for (; it != std::default_sentinel; ++it) seen.push_back((*it)[0][0].item<int64_t>());
  });
  CHECK(message == "DataLoader: sample 5 of batch 2 of epoch 0: open: 5.png is missing");
  CHECK(seen == Numbers{0, 2});
  CHECK(it == std::default_sentinel);
  ++it;
  CHECK(it == std::default_sentinel);
}

TEST_CASE("exceptions that are not Kiln's are nested in one that says where") {
  const auto thrown_by = [](auto f) {
    DataLoader loader(FunctionDataset(1, f), {});
    std::string inner = "none";
    try {
      for (const Batch& batch : loader) static_cast<void>(batch);
    } catch (const Error& e) {
      CHECK(contains(e.what(), "DataLoader: "));
      try {
        std::rethrow_if_nested(e);
      } catch (const std::out_of_range& original) {
        inner = original.what();
      } catch (int) {
        inner = "int";
      }
    }
    return inner;
  };
  CHECK(thrown_by([](int64_t) -> Example { throw std::out_of_range("mine"); }) == "mine");
  CHECK(thrown_by([](int64_t) -> Example { throw 3; }) == "int");
}

TEST_CASE("nothing is recorded while batches are made") {
  const Tensor weight = ones({1}).requires_grad_();
  DataLoader loader(
      counting(2), {.transform = [&](Example e, SampleRandom&) { return Example{e[0] * weight}; }});
  for (const Batch& batch : loader) CHECK_FALSE(batch[0].requires_grad());
  CHECK(is_grad_enabled());
}
