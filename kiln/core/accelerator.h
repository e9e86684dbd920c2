// GPUs: whether there are any, and their memory. Device("opencl") and Device("cuda") open them.
//
// They are reached through a library of their own, libkiln_gpu, which is opened when one of these
// functions or the device's name is first used; the driver's library is opened then too, of that
// name alone. Without that library, without a driver or without a device, is_available() is false,
// and asking for the device throws DeviceError, which says what is missing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "kiln/core/allocator.h"
#include "kiln/core/storage.h"

namespace kiln {
class TensorData;
}
namespace kiln::detail {
struct GpuPlugin;
}

namespace kiln::accelerator {

struct DeviceProperties {
  std::string name;
  std::string vendor;
  std::string driver;
  size_t memory_bytes = 0;
  bool has_float64 = false;
  int major = 0;  // CUDA's compute capability; 0 elsewhere
  int minor = 0;
};

// Counts since a device was opened.
struct Counters {
  uint64_t kernels_compiled = 0;  // by the driver
  uint64_t kernels_loaded = 0;    // compiled with Kiln, or by an earlier process and found on disk
  uint64_t launches = 0;
  uint64_t reads = 0;  // of more than one element, to the host
};

// A place in what a device is to compute: it is passed when all that was asked for before it is
// done. It can be moved, not copied, and may be used by any thread.
class Event {
 public:
  Event() = default;
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;
  ~Event();

  // Throw DeviceError for an event that was not recorded, RuntimeError when the driver fails. What
  // went wrong in a kernel is thrown by the next synchronize() or read.
  bool is_passed() const;
  void wait() const;
  // From an earlier event of the same device to this one, both passed; by the device's clock.
  double milliseconds_since(const Event& earlier) const;

 private:
  friend Event record_event(const char* runtime, int index);
  const detail::GpuPlugin& plugin() const;
  const detail::GpuPlugin* plugin_ = nullptr;
  int index_ = 0;
  uintptr_t mark_ = 0;
};

}  // namespace kiln::accelerator

// The same functions for each way to GPUs.
#define KILN_ACCELERATOR_FUNCTIONS                                                              \
  using accelerator::Counters;                                                                  \
  using accelerator::DeviceProperties;                                                          \
  bool is_available();                                                                          \
  int device_count();                                                                           \
  /* Why is_available() is false; empty where it is true. */                                    \
  std::string absence();                                                                        \
  /* What follows throws DeviceError where there is no such device. */                          \
  DeviceProperties device_properties(int index = 0);                                            \
  /* Waits for all that was computed on the device. Throws what its kernels have found wrong */ \
  /* (an index out of range, an integer division by zero) and nobody has been told yet. */      \
  void synchronize(int index = 0);                                                              \
  /* As kiln::memory_stats(), of the device's memory. */                                        \
  MemoryStats memory_stats(int index = 0);                                                      \
  /* The same of the host's memory that pin_memory() and copies without waiting take. */        \
  MemoryStats pinned_memory_stats(int index = 0);                                               \
  void reset_memory_stats(int index = 0);                                                       \
  /* Gives the driver back what was freed and kept, of both kinds. */                           \
  void empty_cache(int index = 0);                                                              \
  /* The most that may be allocated, kept blocks included; what needs more is a ValueError. */  \
  void set_memory_limit(size_t bytes, int index = 0);                                           \
  Counters counters(int index = 0);                                                             \
  accelerator::Event record_event(int index = 0);

namespace kiln::accelerator {
// Waits for all devices that this process has opened; at once where there are none. A program that
// ends while they compute may be cut off in the middle of their driver: call it before exit() where
// no result was waited for. Python does.
void finish() noexcept;
}  // namespace kiln::accelerator

namespace kiln::opencl {
KILN_ACCELERATOR_FUNCTIONS
}
namespace kiln::cuda {
KILN_ACCELERATOR_FUNCTIONS
}
#undef KILN_ACCELERATOR_FUNCTIONS

namespace kiln::detail {

// What libkiln_gpu gives for one of the names: the functions above. Its one exported function
// registers the backend where there is a device.
struct GpuPlugin {
  int (*device_count)();
  std::string (*absence)();
  accelerator::DeviceProperties (*properties)(int);
  void (*synchronize)(int);
  MemoryStats (*memory_stats)(int);
  void (*reset_memory_stats)(int);
  void (*empty_cache)(int);
  void (*set_memory_limit)(size_t, int);
  accelerator::Counters (*counters)(int);
  uintptr_t (*mark)(int);
  bool (*is_passed)(int, uintptr_t);
  void (*wait)(int, uintptr_t);
  double (*milliseconds)(int, uintptr_t, uintptr_t);
  void (*release_mark)(int, uintptr_t);
  // Of a primitive of this runtime (a TensorBase): the address of its first element, when all that
  // writes to it is done. Throws DeviceError where memory has no addresses.
  void* (*address)(const void*);

  // Whether the device is the host's processor, whose memory needs no copies.
  bool (*is_processor)(int);
  // Memory that the driver keeps in place; null where there is none left.
  Handle<Storage> (*allocate_pinned)(size_t, int);
  bool (*is_pinned)(const void* address, size_t bytes);
  MemoryStats (*pinned_memory_stats)(int);
  // Between a row-major primitive of this runtime and pinned memory of it: false where one of the
  // two is none, else the copy is enqueued. `data`'s memory is kept until it is done.
  bool (*write_pinned)(const void* primitive, const TensorData& data);
  bool (*read_pinned)(const void* primitive, const TensorData& data);
  // Waits for all devices that are open, of every runtime.
  void (*finish)() noexcept;
};
using OpenGpuPlugin = const GpuPlugin* (*)(const char* version, const char* runtime);

// Opens the plug-in that has devices of that name, if one does. False for every other name; throws
// DeviceError where the name is known and there is no device.
bool open_device_plugin(std::string_view name);

// Null for a name of no runtime, or where there is no device of it.
const GpuPlugin* gpu_plugin(std::string_view name);
// Null also where nothing has asked for a device of that name yet.
const GpuPlugin* opened_gpu_plugin(std::string_view name);

}  // namespace kiln::detail
