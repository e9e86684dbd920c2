// Threads that use one CUDA device at once, on the driver that tests play; in the stage of the
// thread sanitizer too.
#include <atomic>
#include <barrier>
#include <cstdlib>
#include <thread>

#include <doctest/doctest.h>

#include "kiln/core/accelerator.h"
#include "kiln/kiln.h"
#include "tests/gpu/cuda_part.h"
#include "tests/support/temp_dir.h"

using namespace kiln;

namespace {

constexpr int kThreads = 4;

// Each thread's own numbers: copies in, kernels that all threads compile at once, events, copies
// out, blocks that go back to what is kept. Returns how many results were wrong.
int use_device(int thread, int rounds) {
  int wrong = 0;
  const double scale = thread + 1;
  accelerator::Event before = cuda::record_event();
  for (int i = 0; i < rounds; ++i) {
    const Tensor x = arange(100 + 10 * i, {.dtype = f32}).to("cuda");
    const Tensor y = x * scale + 1.0;
    accelerator::Event after = cuda::record_event();
    const float n = static_cast<float>(100 + 10 * i);
    const float want = static_cast<float>(scale) * n * (n - 1) / 2 + n;
    wrong += y.sum().item<float>() != want;
    after.wait();
    wrong += !after.is_passed() || after.milliseconds_since(before) < 0;
    before = std::move(after);
    wrong += !y.to("cpu").equal(arange(100 + 10 * i, {.dtype = f32}) * scale + 1.0);
    // Copies that nobody waits for, whose memory other threads get afterwards.
    const Tensor pinned = pin_memory(arange(64, {.dtype = f32}) * scale);
    const Tensor there = to_non_blocking(pinned, "cuda");
    const Tensor back = to_non_blocking(there + scale, "cpu");
    cuda::record_event().wait();
    wrong += !back.equal(arange(64, {.dtype = f32}) * scale + scale);
    wrong += !is_pinned(back) || is_pinned(y.to("cpu"));
    if (i % 4 == thread) cuda::empty_cache();
    if (i % 4 == 3) cuda::synchronize();
    wrong += cuda::memory_stats().bytes_in_use == 0 || cuda::counters().launches == 0;
    wrong += cuda::pinned_memory_stats().allocations == 0;
  }
  return wrong;
}

// One thread makes tensors and events; the other waits for them, reads and frees them.
int hand_over(int rounds) {
  int wrong = 0;
  for (int i = 0; i < rounds; ++i) {
    Tensor made = ones({64}, {.dtype = f32, .device = "cuda"}) * static_cast<double>(i);
    accelerator::Event event = cuda::record_event();
    std::thread reader([&, x = std::move(made), e = std::move(event)]() mutable {
      e.wait();
      wrong += x.sum().item<float>() != static_cast<float>(64 * i);
      x = Tensor();
      e = accelerator::Event();
    });
    // Beside it.
    const float sum = ones({32}, {.dtype = f32, .device = "cuda"}).sum().item<float>();
    reader.join();
    wrong += sum != 32.0f;
  }
  return wrong;
}

// Profiles begin, are read and end while other threads enqueue.
int profile_meanwhile(const std::atomic<bool>& over) {
  int64_t seen = 0;
  double seconds = 0;
  while (!over) {
    Profile profile;
    std::this_thread::yield();
    for (const ProfileRow& row : profile.rows()) {
      seen += row.count;
      seconds += row.device_seconds;
    }
    if (profile.trace().find("traceEvents") == std::string::npos) return 1;
  }
  return seen < 0 || seconds < 0;
}

// An index out of range is one thread's fault, told once, to whichever thread waits next.
int raise_once() {
  const Tensor x = arange(4, {.dtype = f32, .device = "cuda"});
  const Tensor bad = tensor({0, 9}, {.dtype = i64, .device = "cuda"});
  const Tensor enqueued = x.gather(0, bad);
  std::atomic<int> told = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      try {
        cuda::synchronize();
      } catch (const IndexError&) {
        ++told;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  return told;
}

}  // namespace

TEST_CASE("cuda threads part" * doctest::skip()) {
  if (std::getenv("KILN_CUDA_PART") == nullptr) return;
  // All of them open the device.
  std::barrier start(kThreads + 1);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      wrong += use_device(i, 12);
    });
  }
  std::atomic<bool> over = false;
  std::thread profiler([&] {
    start.arrive_and_wait();
    wrong += profile_meanwhile(over);
  });
  for (std::thread& t : threads) t.join();
  over = true;
  profiler.join();
  test::say(concat("wrong ", wrong.load()));
  test::say(concat("handed over wrong ", hand_over(8)));
  test::say(concat("told ", raise_once()));
  test::say(concat("in use ", cuda::memory_stats().bytes_in_use));
  test::say(concat("pinned ", cuda::pinned_memory_stats().bytes_in_use));
}

TEST_CASE("cuda: several threads use one device") {
  // Kernels are compiled and kept on disk by all of them at once.
  const test::TempDir folder;
  const test::Ended ended = test::run_part("cuda threads part", "threads", "",
                                           "KILN_KERNEL_CACHE=" + folder.path("kernels"));
  INFO(ended.text);
  CHECK(ended.status == 0);
  CHECK(test::has(ended, "said: wrong 0\n"));
  CHECK(test::has(ended, "said: handed over wrong 0\n"));
  CHECK(test::has(ended, "said: told 1\n"));
  CHECK(test::has(ended, "said: in use 0\n"));
  CHECK(test::has(ended, "said: pinned 0\n"));
}
