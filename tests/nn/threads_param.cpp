// Lazy parameters under threads.
#include <atomic>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/nn/init.h"
#include "kiln/nn/linear.h"
#include "kiln/tensor/creation.h"
#include "tests/support/near.h"

using namespace kiln;
using kiln::nn::Param;
using kiln::nn::ParamId;

namespace {

constexpr int kThreads = 8;

// f(thread) on every thread, started together.
template <class F>
void on_threads(const F& f) {
  std::atomic<int> ready{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      ready.fetch_add(1);
      while (ready.load() < kThreads) std::this_thread::yield();
      f(t);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

TEST_CASE("Param: 8 threads initialize once and see one value") {
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> runs{0};
    const auto param = Param<Tensor>::uninitialized(
        ParamId(),
        [&runs](Device, bool) {
          runs.fetch_add(1);
          std::this_thread::yield();
          return full({16}, 3.0);
        },
        Device(), false, {16}, f32);
    std::vector<Tensor> seen(kThreads);
    on_threads([&](int t) {
      // Half of them ask what is known without a value first.
      if (t % 2 == 0) CHECK(param.lazy_shape() == Shape{16});
      seen[static_cast<size_t>(t)] = param.val();
    });
    CHECK(runs == 1);
    for (const Tensor& value : seen) CHECK(value.is_same(seen[0]));
  }
}

TEST_CASE("Param: copies taken while others initialize") {
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> runs{0};
    const auto param = Param<Tensor>::uninitialized(
        ParamId(), [&runs](Device, bool) { return full({4}, 1.0 + 0.0 * runs.fetch_add(1)); },
        Device(), false, {4}, f32);
    std::atomic<int> good{0};
    on_threads([&](int t) {
      if (t % 2 == 0) {
        good += test::near(*param, {1, 1, 1, 1}) ? 1 : 0;
      } else {
        const Param<Tensor> copy = param;
        good += test::near(*copy, {1, 1, 1, 1}) ? 1 : 0;
      }
    });
    CHECK(good == kThreads);
  }
}

TEST_CASE("Param: threads that meet a failing function try again") {
  std::atomic<int> runs{0};
  const auto param = Param<Tensor>::uninitialized(ParamId(),
                                                  [&runs](Device, bool) {
                                                    if (runs.fetch_add(1) < 3)
                                                      throw ValueError("not yet");
                                                    return ones({2});
                                                  },
                                                  Device(), false, {2});
  std::atomic<int> failed{0};
  on_threads([&](int) {
    for (;;) {
      try {
        param.val();
        return;
      } catch (const ValueError&) {
        failed.fetch_add(1);
      }
    }
  });
  CHECK(failed == 3);
  CHECK(runs == 4);
}

TEST_CASE("module: 8 threads evaluate a fresh model") {
  manual_seed(1);
  const nn::Linear model(4, 2);
  const Tensor x = ones({1, 4});
  std::vector<Tensor> outputs(kThreads);
  on_threads([&](int t) { outputs[static_cast<size_t>(t)] = model(x); });
  for (const Tensor& output : outputs) CHECK(output.equal(outputs[0]));
}
