// CUDA's runtime on a driver that tests play (tests/gpu_host/fake): what it asks of a driver, and
// what becomes of a driver's errors. Each part is a process of its own: a driver is opened once.
#include <cstdlib>
#include <functional>
#include <string>

#include <doctest/doctest.h>

#include "kiln/core/accelerator.h"
#include "kiln/kiln.h"
#include "tests/gpu/cuda_part.h"

using namespace kiln;

namespace {

using test::Ended;
using test::has;
using test::say;

Ended run_part(const char* part, const std::string& settings, const std::string& more = "") {
  return test::run_part("cuda part", part, settings, more);
}

// The message, with its type's first letters, of what a call throws.
std::string thrown(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const DeviceError& error) {
    return concat("DeviceError: ", std::string(error.what()));
  } catch (const ValueError& error) {
    return concat("ValueError: ", std::string(error.what()));
  } catch (const RuntimeError& error) {
    return concat("RuntimeError: ", std::string(error.what()));
  }
  return "nothing";
}

Tensor on_cuda(const Shape& shape) { return ones(shape, {.dtype = f32, .device = "cuda"}); }

void run_named(const std::string& part) {
  if (part == "absence") {
    say(cuda::is_available() ? "available" : "not available");
    say(cuda::absence());
    say(thrown([] { on_cuda({2}); }));
  } else if (part == "devices") {
    say(concat("count ", cuda::device_count()));
    const Tensor x = ones({3}, {.dtype = f32, .device = "cuda:1"}) * 2.0;
    say(concat("sum ", x.sum().item<float>()));
    say(cuda::device_properties(1).name);
    say(thrown([] { ones({3}, {.dtype = f32, .device = "cuda:2"}); }));
    say(thrown([&] { static_cast<void>(x + on_cuda({3})); }));
    say(concat("across ", x.to("cuda:0").sum().item<float>()));
  } else if (part == "memory") {
    // 64 MiB: eight blocks of 8 MiB are more than there is room for beside another.
    std::vector<Tensor> held;
    say(thrown([&] {
      for (int i = 0; i < 9; ++i) held.push_back(on_cuda({2 << 20}));
    }));
    held.clear();
    // What was kept is given back for a block of another size.
    say(concat("whole ", on_cuda({12 << 20}).sum().item<float>()));
    say(concat("cached ", cuda::memory_stats().bytes_cached));
  } else if (part == "large") {
    // More than the staging memory at once, both ways.
    const Tensor x = arange(3 << 20, {.dtype = f32});
    const Tensor there = x.to("cuda");
    say(there.to("cpu").equal(x) ? "same" : "differs");
  } else if (part == "lost") {
    const Tensor x = on_cuda({4});
    say(thrown([&] {
      const Tensor y = (x * 3.0).exp().softmax(0);
      cuda::synchronize();
    }));
    say(thrown([&] { static_cast<void>(x.sum().item<float>()); }));
    say(concat("cpu ", ones({3}).sum().item<float>()));
  } else if (part == "ahead") {
    const Tensor x = arange(12, {.dtype = f32, .device = "cuda"}).reshape({3, 4});
    const Tensor y = (x + x).softmax(1).sum();
    say(concat("sum ", y.item<float>()));
    const auto counters = cuda::counters();
    say(concat("compiled ", counters.kernels_compiled, ", loaded ",
               counters.kernels_loaded > 2 ? "several" : "few"));
  } else if (part == "events") {
    accelerator::Event first = cuda::record_event();
    const Tensor x = on_cuda({4}) * 2.0;
    const accelerator::Event last = cuda::record_event();
    say(last.is_passed() ? "passed" : "not passed");
    say(thrown([&] { static_cast<void>(last.milliseconds_since(first)); }));
    last.wait();
    say(concat(first.is_passed() && last.is_passed() ? "both" : "not both", " ",
               last.milliseconds_since(first) >= 0 ? "in order" : "out of order"));
    say(thrown([] { accelerator::Event().wait(); }));
    first = cuda::record_event();  // the one before is released
  } else if (part == "refused") {
    const Tensor x = on_cuda({4});
    cuda::synchronize();
    say(thrown([&] { static_cast<void>((x * 3.0).to("cpu")); }));
    say(concat("after ", (x * 3.0).sum().item<float>()));
  } else if (part == "unread") {
    const Tensor x = arange(1000, {.dtype = f32, .device = "cuda"});
    cuda::synchronize();
    // Its kernel can raise, so the values are read and then the word of faults.
    const Tensor picked = x.gather(0, arange(1000, {.dtype = i64, .device = "cuda"}));
    say(thrown([&] { static_cast<void>(picked.to("cpu")); }));
    // What the failed read was to fill is gone.
    const Tensor y = picked.to("cpu");
    say(concat("after ", y.sum().item<float>()));
  } else if (part == "gone") {
    // An event is released before it is passed.
    const Tensor x = on_cuda({4}) * 2.0;
    static_cast<void>(cuda::record_event());
    say(concat("sum ", x.sum().item<float>()));
  }
}

}  // namespace

TEST_CASE("cuda part" * doctest::skip()) {
  const char* part = std::getenv("KILN_CUDA_PART");
  if (part != nullptr) run_named(part);
}

TEST_CASE("cuda: what is missing is named, and nothing is computed elsewhere") {
  const Ended none = run_part("absence", "devices=0");
  CHECK(has(none, "said: not available"));
  CHECK(has(none, "said: NVIDIA's driver finds no GPU"));
  CHECK(has(none, "said: DeviceError: cuda: no device; NVIDIA's driver finds no GPU"));
  CHECK(has(run_part("absence", "devices=0", "CUDA_VISIBLE_DEVICES=7"),
            "CUDA_VISIBLE_DEVICES is '7'"));
  CHECK(has(run_part("absence", "version=11040"),
            "the installed NVIDIA driver is for CUDA 11.4; expected 12.0 or newer"));
  CHECK(has(run_part("absence", "init=803"), "of different versions of NVIDIA's driver"));
  CHECK(has(run_part("absence", "init=34"), "is the CUDA toolkit's stub"));
  CHECK(has(run_part("absence", "init=999"), "does not start: CUDA_ERROR_UNKNOWN"));
  CHECK(has(run_part("absence", "fail=cuDeviceGetCount:1:999"), "does not start"));
  const Ended here = run_part("absence", "");
  CHECK(has(here, "said: available"));
}

TEST_CASE("cuda: several devices, and more than there are") {
  const Ended ended = run_part("devices", "devices=2");
  INFO(ended.text);
  CHECK(ended.status == 0);
  CHECK(has(ended, "said: count 2"));
  CHECK(has(ended, "said: sum 6"));
  CHECK(has(ended, "said: Fake GPU 1"));
  CHECK(has(ended, "said: DeviceError: cuda: no such device; got cuda:2; expected 0 to 1"));
  CHECK(has(ended, "said: DeviceError: "));
  CHECK(has(ended, "said: across 6"));
}

TEST_CASE("cuda: out of memory gives back what is kept, then says the sizes") {
  const Ended ended = run_part("memory", "memory=64");
  INFO(ended.text);
  CHECK(ended.status == 0);
  CHECK(has(ended,
            "said: ValueError: cuda: out of memory on Fake GPU 0; got a request for 8388608 "
            "bytes while"));
  CHECK(has(ended, "said: whole 1.25829e+07"));
}

TEST_CASE("cuda: copies larger than the pinned memory they go through") {
  const Ended ended = run_part("large", "");
  INFO(ended.text);
  CHECK(has(ended, "said: same"));
}

TEST_CASE("cuda: a kernel that fails ends the device with an error that names kernels") {
  // The first kernel fills x.
  const Ended ended = run_part("lost", "fail=kernel:2:700");
  INFO(ended.text);
  CHECK(ended.status == 0);
  CHECK(has(ended,
            "said: DeviceError: cuda: cuda:0 is lost: cuStreamSynchronize gave "
            "CUDA_ERROR_ILLEGAL_ADDRESS"));
  CHECK(has(ended, "launched since the last wait, the last first: softmax"));
  CHECK(has(ended, "KILN_GPU_BLOCKING=1"));
  CHECK(ended.text.find("is lost") != ended.text.rfind("is lost"));
  CHECK(has(ended, "said: cpu 3"));
  const Ended blocking = run_part("lost", "fail=kernel:2:719", "KILN_GPU_BLOCKING=1");
  INFO(blocking.text);
  CHECK(has(blocking, "CUDA_ERROR_LAUNCH_FAILED"));
  CHECK(has(blocking, "the last first: map ("));
  CHECK(!has(blocking, "softmax"));
}

TEST_CASE("cuda: a launch that is refused is an error, and the device goes on") {
  const Ended ended = run_part("refused", "fail=cuLaunchKernel:2:701");
  INFO(ended.text);
  CHECK(has(ended,
            "said: RuntimeError: cuda: cuLaunchKernel failed; got "
            "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"));
  CHECK(has(ended, "said: after 12"));
}

TEST_CASE("cuda: a read that fails fills nothing later") {
  for (const char* settings : {"fail=cuStreamSynchronize:2:1", "fail=cuMemcpyDtoHAsync:2:1"}) {
    const Ended ended = run_part("unread", settings);
    INFO(ended.text);
    CHECK(ended.status == 0);
    CHECK(has(ended, "said: RuntimeError: cuda: "));
    CHECK(has(ended, "CUDA_ERROR_INVALID_VALUE"));
    CHECK(has(ended, "said: after 499500"));
  }
}

TEST_CASE("cuda: an event may go before it is passed") {
  const Ended ended = run_part("gone", "");
  INFO(ended.text);
  CHECK(ended.status == 0);
  CHECK(has(ended, "said: sum 8"));
}

TEST_CASE("cuda: without NVRTC a kernel that was not compiled ahead says what to install") {
  const Ended ended = run_part("refused", "", "KILN_NVRTC=/nowhere KILN_KERNEL_CACHE=");
  INFO(ended.text);
  CHECK(has(ended, "NVRTC was not found"));
  CHECK(has(ended, "nvidia-cuda-nvrtc"));
}

TEST_CASE("cuda: events are passed when what is before them is done") {
  const Ended ended = run_part("events", "");
  INFO(ended.text);
  CHECK(ended.status == 0);
  CHECK(has(ended, "said: not passed"));
  CHECK(has(ended, "said: DeviceError: Event: one of the two is not passed yet"));
  CHECK(has(ended, "said: both in order"));
  CHECK(has(ended, "said: DeviceError: Event: it was not recorded"));
}

#ifdef KILN_CUDA_TEXTS
TEST_CASE("cuda: kernels that nvcc compiled ahead need no NVRTC") {
  const Ended ended = run_part(
      "ahead", "", "KILN_NVRTC=/nowhere KILN_KERNEL_CACHE= KILN_FAKE_CUDA_TEXTS=" KILN_CUDA_TEXTS);
  INFO(ended.text);
  CHECK(ended.status == 0);
  CHECK(has(ended, "said: sum 3"));
  CHECK(has(ended, "said: compiled 0, loaded several"));
}
#endif
