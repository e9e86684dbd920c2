// Ten thousand steps of training on the device (device_under_test.h): what they leave behind.
#include <fstream>
#include <map>
#include <string>

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include "kiln/core/sanitizers.h"
#include "kiln/kiln.h"
#include "tests/gpu/device_under_test.h"

using namespace kiln;

namespace {

struct Left {
  MemoryStats device;
  MemoryStats pinned;
  MemoryStats host;
  size_t resident = 0;
  std::map<std::string, int> handles;  // of the CUDA driver that tests play, where that is the one
};

size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  size_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

Left look() {
  Left out;
  test::gpu().synchronize(0);
  out.pinned = test::gpu().pinned_memory_stats(0);  // after which nothing is under way
  out.device = test::gpu().memory_stats(0);
  out.host = memory_stats();
  out.resident = resident_bytes();
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return out;
  const auto count = reinterpret_cast<int (*)(const char*)>(dlsym(driver, "kiln_fake_cuda_count"));
  for (const char* kind : {"events", "pinned", "functions", "streams", "blocks"}) {
    if (count != nullptr) out.handles[kind] = count(kind);
  }
  dlclose(driver);
  return out;
}

}  // namespace

TEST_CASE("gpu: ten thousand steps leave nothing behind") {
  if (!test::has_gpu()) return;
  manual_seed(1);
  nn::Linear layer(6, 3);
  layer.to(test::gpu_device());
  optim::SGD optimizer(layer.parameters(), {.lr = 0.01, .momentum = 0.9});
  const Tensor rows = rand({4, 6});
  const Tensor bad = tensor({9}, {.dtype = i64, .device = test::gpu_device()});
  int told = 0;
  const auto step = [&](int i) {
    // Each way of asking something of a device: copies, kernels, places in the queue, reads,
    // faults.
    const Tensor x = to_non_blocking(pin_memory(rows, test::gpu_device()), test::gpu_device());
    const accelerator::Event before = test::gpu().record_event(0);
    const Tensor loss = layer(x).square().mean();
    optimizer.step(loss.backward());
    if (i % 8 == 0) {
      const Tensor copy = to_non_blocking(loss.detach(), "cpu");
      const accelerator::Event after = test::gpu().record_event(0);
      after.wait();
      if (!(after.milliseconds_since(before) >= 0)) ++told;
    }
    if (i % 16 == 0 && !(loss.item<float>() >= 0)) ++told;
    if (i % 64 == 0) {
      try {
        x.index_select(0, bad).to("cpu");
        ++told;
      } catch (const IndexError&) {
      }
    }
    if (i % 256 == 0) {
      const Profile profile;
      layer(x).sum();
      if (profile.rows().empty()) ++told;
    }
  };
  for (int i = 0; i < 600; ++i) step(i);
  const Left before = look();
  for (int i = 0; i < 10000; ++i) step(i);
  const Left after = look();
  CHECK(told == 0);
  CHECK(after.device.bytes_in_use == before.device.bytes_in_use);
  CHECK(after.pinned.bytes_in_use == before.pinned.bytes_in_use);
  CHECK(after.host.bytes_in_use == before.host.bytes_in_use);
  // A queue may once be longer than ever before; it does not grow with the steps.
  CHECK(after.device.system_allocations < before.device.system_allocations + 100);
  CHECK(after.pinned.system_allocations < before.pinned.system_allocations + 100);
  CHECK(after.device.allocations > before.device.allocations + 10000);
  CHECK(after.pinned.allocations >= before.pinned.allocations + 10000);
#ifndef KILN_ASAN
  // An object of 200 bytes in each step would be 2 MB. (AddressSanitizer keeps what was freed.)
  CHECK(after.resident < before.resident + 1500000);
#endif
  for (const auto& [kind, count] : before.handles) {
    INFO(kind);
    if (kind == "blocks" || kind == "pinned") continue;  // counted above
    CHECK(after.handles.at(kind) == count);
  }
}
