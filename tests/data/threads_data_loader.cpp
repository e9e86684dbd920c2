// DataLoader with worker threads.
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include <doctest/doctest.h>

#include "kiln/data/data_loader.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "tests/support/throws.h"

using namespace kiln;
using namespace kiln::data;
using kiln::test::message_of;

namespace {

using Numbers = std::vector<int64_t>;

// Sample i is the number i; every fifth takes a moment, so that batches are ready out of order.
FunctionDataset uneven(int64_t n) {
  return FunctionDataset(n, [](int64_t i) {
    if (i % 5 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
    return Example{tensor(Scalar(i))};
  });
}

std::vector<Numbers> batches_in_threads(DataLoader& loader) {
  std::vector<Numbers> all;
  for (const Batch& batch : loader) all.push_back(batch[0].to_vector<int64_t>());
  return all;
}

Example add_noise(Example e, SampleRandom& random) {
  return Example{e[0] * 100 + random.integer(0, 100)};
}

}  // namespace

TEST_CASE("the batches are the same at any number of workers") {
  DataLoader alone(uneven(101),
                   {.batch_size = 7, .shuffle = true, .seed = 8, .transform = add_noise});
  const auto first = batches_in_threads(alone);
  const auto second = batches_in_threads(alone);
  for (const int workers : {1, 2, 5, 40}) {
    for (const int prefetch : {1, 3}) {
      DataLoader loader(uneven(101), {.batch_size = 7,
                                      .shuffle = true,
                                      .seed = 8,
                                      .num_workers = workers,
                                      .prefetch = prefetch,
                                      .transform = add_noise});
      CHECK(batches_in_threads(loader) == first);
      CHECK(batches_in_threads(loader) == second);
    }
  }
}

TEST_CASE("rows gathered by workers") {
  const TensorDataset set(arange(2000, {f32}).reshape({500, 4}), arange(500));
  DataLoader loader(set, {.batch_size = 16, .shuffle = true, .num_workers = 3});
  int64_t samples = 0;
  bool right = true;
  for (const auto& [x, y] : loader) {
    samples += y.numel();
    right = right && x.select(1, 0).equal((y * 4).to(f32));
  }
  CHECK(samples == 500);
  CHECK(right);
}

TEST_CASE("workers stay within what they may make ahead") {
  std::atomic<int> made{0};
  const FunctionDataset counted(100, [&made](int64_t i) {
    ++made;
    return Example{tensor(Scalar(i))};
  });
  DataLoader loader(counted, {.num_workers = 2, .prefetch = 3});
  auto it = loader.begin();
  // Time to run too far, if they did.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(made <= 1 + 6);
  for (int i = 0; i < 10; ++i) ++it;
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(made <= 11 + 6);
}

TEST_CASE("leaving the loop early stops the workers") {
  std::atomic<int> made{0};
  const auto set = std::make_shared<FunctionDataset>(1000, [&made](int64_t i) {
    ++made;
    return Example{tensor(Scalar(i))};
  });
  DataLoader loader(set, {.num_workers = 4});
  for (int round = 0; round < 20; ++round) {
    for (const Batch& batch : loader) {
      if (batch[0].item<int>() == 3) break;
    }
  }
  const int after = made;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(made == after);
  CHECK(after < 20 * 20);
  for (const Batch& batch : loader) {
    CHECK(batch.size() == 1);
    CHECK_THROWS_AS(throw std::runtime_error("the body fails"), std::runtime_error);
    break;
  }
}

TEST_CASE("an exception arrives with its batch, whatever the other workers do") {
  const FunctionDataset broken(200, [](int64_t i) {
    if (i == 61) throw ShapeError("no such shape");
    if (i == 90) throw IoError("a later batch fails too");
    return Example{tensor(Scalar(i))};
  });
  for (const int workers : {1, 3, 8}) {
    DataLoader loader(broken, {.batch_size = 4, .num_workers = workers, .prefetch = 4});
    for (int round = 0; round < 5; ++round) {
      int64_t batches = 0;
      const std::string message = message_of<ShapeError>([&] {
        for (const Batch& batch : loader) batches += batch.size() == 1;
      });
      CHECK(message ==
            concat("DataLoader: sample 61 of batch 15 of epoch ", round, ": no such shape"));
      CHECK(batches == 15);
    }
  }
}

TEST_CASE("a foreign exception crosses the threads nested") {
  const FunctionDataset broken(1, [](int64_t) -> Example { throw std::out_of_range("mine"); });
  DataLoader loader(broken, {.num_workers = 2});
  try {
    loader.begin();
    CHECK(false);
  } catch (const Error& e) {
    CHECK_THROWS_AS(std::rethrow_if_nested(e), std::out_of_range);
  }
}

TEST_CASE("two loops over one loader at once, and loops on several threads") {
  DataLoader loader(uneven(60), {.batch_size = 4, .num_workers = 2});
  auto a = loader.begin();
  auto b = loader.begin();
  for (int i = 0; i < 5; ++i) {
    CHECK((*a)[0].equal((*b)[0]));
    ++a;
    ++b;
  }
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&sum] {
      DataLoader mine(uneven(60), {.batch_size = 4, .num_workers = 2});
      for (const Batch& batch : mine) sum += batch[0].sum().item<int64_t>();
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(sum == 3 * 59 * 60 / 2);
}

TEST_CASE("tensor ops in workers") {
  const FunctionDataset heavy(12, [](int64_t i) {
    Generator generator(static_cast<uint64_t>(i));
    return Example{randn({300, 300}, {}, &generator).exp().sum()};
  });
  DataLoader alone(heavy, {.batch_size = 3});
  DataLoader helped(heavy, {.batch_size = 3, .num_workers = 3});
  auto it = helped.begin();
  for (const Batch& batch : alone) {
    CHECK(batch[0].equal((*it)[0]));
    ++it;
  }
}
