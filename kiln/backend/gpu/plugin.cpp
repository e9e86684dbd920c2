// What the library gives to libkiln, which opens it: the backend, registered, and the functions of
// kiln/core/accelerator.h.
#include <cstring>

#include "kiln/backend/dispatch/register.h"
#include "kiln/backend/gpu/gpu.h"
#include "kiln/core/accelerator.h"

namespace kiln::gpu {
namespace {

GpuDevice& device_at(int index) {
  if (index < 0 || index >= opencl_device_count()) {
    throw_error<DeviceError>("opencl: no such device; got opencl:", index, "; expected 0 to ",
                             opencl_device_count() - 1);
  }
  return GpuDevice::of(Device(0, index));
}

opencl::DeviceProperties properties(int index) {
  const Properties& p = device_at(index).properties();
  return {p.name, p.vendor, p.driver, p.memory_bytes, p.has_f64};
}

opencl::Counters counters(int index) {
  const GpuDevice::Counters c = device_at(index).counters();
  return {c.compiled, c.from_disk, c.launches, c.reads};
}

constexpr detail::GpuPlugin kPlugin = {
    &opencl_device_count,
    [] { return opencl_absence(); },
    &properties,
    [](int index) { device_at(index).synchronize(); },
    [](int index) { return device_at(index).memory_stats(); },
    [](int index) { device_at(index).reset_memory_stats(); },
    [](int index) { device_at(index).empty_cache(); },
    [](size_t bytes, int index) { device_at(index).set_memory_limit(bytes); },
    &counters,
};

}  // namespace
}  // namespace kiln::gpu

// Null for another version of Kiln, whose op table may be another.
extern "C" const kiln::detail::GpuPlugin* kiln_open_gpu(const char* version) {
  if (std::strcmp(version, KILN_VERSION) != 0) return nullptr;
  if (kiln::gpu::opencl_device_count() > 0) kiln::register_backend<kiln::gpu::Gpu>("opencl");
  return &kiln::gpu::kPlugin;
}
