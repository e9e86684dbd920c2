// What the library gives to libkiln, which opens it: the backend, registered for each runtime that
// is asked for, and the functions of kiln/core/accelerator.h.
#include <cstring>

#include "kiln/backend/dispatch/register.h"
#include "kiln/backend/gpu/gpu.h"
#include "kiln/core/accelerator.h"

namespace kiln::gpu {
namespace {

// What one runtime gives. Its device type is that which the backend got.
template <const Runtime& runtime>
struct Plugged {
  static DeviceType type;

  static GpuDevice& at(int index) {
    if (index < 0 || index >= runtime.count()) {
      throw_error<DeviceError>(runtime.name, ": no such device; got ", runtime.name, ":", index,
                               "; expected 0 to ", runtime.count() - 1);
    }
    return GpuDevice::of(Device(type, index));
  }
  static accelerator::DeviceProperties properties(int index) {
    const Properties& p = at(index).properties();
    return {p.name, p.vendor, p.driver, p.memory_bytes, p.has_f64, p.major, p.minor};
  }
  static accelerator::Counters counters(int index) {
    const GpuDevice::Counters c = at(index).counters();
    return {c.compiled, c.from_disk, c.launches, c.reads};
  }

  static void* address(const void* primitive) {
    const auto* plain = dynamic_cast<const GpuTensor*>(static_cast<const TensorBase*>(primitive));
    if (plain == nullptr) {
      throw_error<DeviceError>(runtime.name,
                               ": a quantized tensor has no plain memory; try dequantize()");
    }
    const GpuTensor& x = *plain;
    if (!x.gpu().properties().has_addresses) {
      throw_error<DeviceError>(runtime.name,
                               ": its memory has no addresses that other libraries "
                               "could use; move the tensor to the cpu first");
    }
    x.gpu().synchronize();
    return static_cast<std::byte*>(x.storage()->memory()) +
           x.offset() * static_cast<int64_t>(size_of(x.dtype()));
  }

  // The tensor with `data`'s shape and dtype; null for a primitive of another kind.
  static const GpuTensor* plain(const void* primitive, const TensorData& data) {
    const auto* x = dynamic_cast<const GpuTensor*>(static_cast<const TensorBase*>(primitive));
    const bool fits = x != nullptr && x->shape() == data.shape() && x->dtype() == data.dtype();
    return fits && GpuDevice::is_pinned(runtime, data.data(), data.bytes()) ? x : nullptr;
  }
  static bool write_pinned(const void* primitive, const TensorData& data) {
    const GpuTensor* x = plain(primitive, data);
    if (x == nullptr || !x->is_contiguous() || x->offset() != 0) return false;
    if (data.bytes() != 0) x->gpu().write_pinned(*x->storage(), data);
    return true;
  }
  static bool read_pinned(const void* primitive, const TensorData& data) {
    const GpuTensor* x = plain(primitive, data);
    if (x == nullptr) return false;
    if (data.bytes() == 0) return true;
    const H rows = contiguous(H::share(const_cast<GpuTensor*>(x)));
    const size_t offset = static_cast<size_t>(rows->offset()) * size_of(rows->dtype());
    rows->gpu().read_pinned(*rows->storage(), offset, data);
    return true;
  }

  static constexpr detail::GpuPlugin plugin = {
      [] { return runtime.count(); },
      [] { return runtime.absence(); },
      &properties,
      [](int index) { at(index).synchronize(); },
      [](int index) { return at(index).memory_stats(); },
      [](int index) { at(index).reset_memory_stats(); },
      [](int index) { at(index).empty_cache(); },
      [](size_t bytes, int index) { at(index).set_memory_limit(bytes); },
      &counters,
      [](int index) { return static_cast<uintptr_t>(at(index).mark()); },
      [](int index, uintptr_t mark) { return at(index).passed(static_cast<Mark>(mark)); },
      [](int index, uintptr_t mark) { at(index).wait(static_cast<Mark>(mark)); },
      [](int index, uintptr_t from, uintptr_t to) {
        return at(index).milliseconds(static_cast<Mark>(from), static_cast<Mark>(to));
      },
      [](int index, uintptr_t mark) { at(index).release(static_cast<Mark>(mark)); },
      &address,
      [](int index) {
        return index >= 0 && index < runtime.count() && runtime.is_processor(index);
      },
      [](size_t bytes, int index) { return at(index).allocate_pinned(bytes); },
      [](const void* address, size_t bytes) {
        return GpuDevice::is_pinned(runtime, address, bytes);
      },
      [](int index) { return at(index).pinned_memory_stats(); },
      &write_pinned,
      &read_pinned,
      &GpuDevice::finish_all,
  };

  static const detail::GpuPlugin* open() {
    if (runtime.count() > 0) {
      type = register_backend<Gpu>(runtime.name);
      GpuDevice::set_runtime(type, runtime);
    }
    return &plugin;
  }
};
template <const Runtime& runtime>
DeviceType Plugged<runtime>::type = 0;

}  // namespace
}  // namespace kiln::gpu

// Called once for each name. Null for another version of Kiln, whose op table may be another.
extern "C" const kiln::detail::GpuPlugin* kiln_open_gpu(const char* version, const char* runtime) {
  using namespace kiln::gpu;
  if (std::strcmp(version, KILN_VERSION) != 0) return nullptr;
  if (std::strcmp(runtime, "opencl") == 0) return Plugged<kOpenClRuntime>::open();
  if (std::strcmp(runtime, "cuda") == 0) return Plugged<kCudaRuntime>::open();
  return nullptr;
}
