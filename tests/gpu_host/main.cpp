// kiln_gpu_host: the GPU backend on kernels compiled as C++, under sanitizers (script/gpu_host).
#define DOCTEST_CONFIG_IMPLEMENT
#include <cstdlib>
#include <cstring>

#include <doctest/doctest.h>

#include "kiln/backend/dispatch/register.h"
#include "kiln/backend/gpu/gpu.h"
#include "tests/gpu/device_under_test.h"
#include "tests/gpu_host/driver.h"
#include "tests/gpu_host/planted.h"

namespace kiln {
namespace {

DeviceType host_type = 0;

gpu::GpuDevice& host_device() { return gpu::GpuDevice::of(Device(host_type, 0)); }

}  // namespace

const test::Gpu& test::gpu() {
  static const Gpu instance{
      "host",
      [] { return true; },
      [] { return std::string(); },
      [](int) { host_device().synchronize(); },
      [](int) {
        const auto c = host_device().counters();
        return accelerator::Counters{c.compiled, c.from_disk, c.launches, c.reads};
      },
      [](int) {
        const gpu::Properties& p = host_device().properties();
        return accelerator::DeviceProperties{p.name,    p.vendor, p.driver, p.memory_bytes,
                                             p.has_f64, 0,        0};
      },
      [](int) { return host_device().memory_stats(); },
      [](int) { host_device().reset_memory_stats(); },
      [](int) { host_device().empty_cache(); },
      [](size_t bytes, int) { host_device().set_memory_limit(bytes); },
      [] { return 1; },
      [](int) { return accelerator::Event(); },
      [](int) { return host_device().pinned_memory_stats(); },
  };
  return instance;
}

}  // namespace kiln

int main(int argc, char** argv) {
  using namespace kiln;
  // A fault on purpose, for a process of its own: AddressSanitizer ends it.
  if (argc == 3 && std::strcmp(argv[1], "--plant") == 0) return gpu_host::run_planted(argv[2]);
  setenv("KILN_KERNEL_CACHE", "", 1);  // texts are no binaries
  host_type = register_backend<gpu::Gpu>("host");
  gpu::GpuDevice::set_runtime(host_type, gpu_host::kHostRuntime);
  doctest::Context context(argc, argv);
  return context.run();
}
