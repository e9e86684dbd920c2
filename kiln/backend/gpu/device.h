// A GPU and what is kept for it: its queue, its memory, its kernels. Internal.
//
// Note [Order]: everything on a device runs in the order in which it was enqueued, whichever thread
// enqueued it. So memory that is given back may be handed out again at once: what reads it was
// enqueued before what will write it. Only reading values waits.
//
// Note [Faults]: a kernel that meets a bad value (an index out of range, a divisor of 0) goes on
// and raises the device's fault word: the number of what it was computing. Who waits for the device
// next reads the word, and throws the error that the op would have thrown.
#pragma once

#include <atomic>
#include <bit>
#include <deque>
#include <map>
#include <mutex>
#include <unordered_map>

#include "kiln/backend/gpu/device_times.h"
#include "kiln/backend/gpu/kernel.h"
#include "kiln/backend/gpu/runtime/driver.h"
#include "kiln/backend/gpu/runtime/program_cache.h"
#include "kiln/core/allocator.h"
#include "kiln/core/device.h"
#include "kiln/core/handle.h"
#include "kiln/core/storage.h"
#include "kiln/core/tensor_data.h"

namespace kiln::gpu {

class GpuDevice;

// A block of a device's memory.
class Buffer final : public RefCounted {
 public:
  Buffer(GpuDevice* device, Memory memory, size_t bytes)
      : device_(device), memory_(memory), bytes_(bytes) {}
  ~Buffer() override;
  // The same block, with a version of its own (Storage::alias).
  static Handle<Buffer> alias(const Handle<Buffer>& of);
  const Buffer& root() const { return root_ ? *root_ : *this; }
  Memory memory() const { return memory_; }
  GpuDevice& device() const { return *device_; }
  size_t bytes() const { return bytes_; }
  uint32_t version() const { return version_.load(std::memory_order_relaxed); }
  void bump_version() { version_.fetch_add(1, std::memory_order_relaxed); }

 private:
  GpuDevice* device_;
  Memory memory_;
  size_t bytes_;  // as the allocator counts them
  std::atomic<uint32_t> version_{0};
  Handle<Buffer> root_;  // what this is an alias of, or null
};

// What a bad value in a kernel becomes.
enum class FaultKind : uint8_t { index, divisor };

class GpuDevice {
 public:
  // Devices of that type are this runtime's.
  static void set_runtime(DeviceType type, const Runtime& runtime);
  // The device, opened at the first call. Throws DeviceError: there is none, or this process was
  // forked from one that had opened it.
  static GpuDevice& of(Device device);

  // Whether this process was forked from the one that opened the device.
  bool is_child() const;

  // Of the runtime, for messages.
  const char* runtime_name() const { return runtime_.name; }

  const Properties& properties() const { return driver_->properties(); }

  // Throws ValueError where there is no such block, also after all that is kept was given back.
  Handle<Buffer> allocate(size_t bytes);
  void release(Memory memory, size_t bytes) noexcept;

  void write(const Buffer& to, const void* from, size_t bytes);
  // Waits. Throws what kernels have raised. `whole`: more than one element of a tensor is read.
  void read(const Buffer& from, size_t offset, void* to, size_t bytes, bool whole);
  void synchronize();
  // Waits for all devices that are open, but for those that another thread uses now: for the end of
  // the process. A driver whose threads still work then (PoCL compiles a kernel when it first runs)
  // would do so while its libraries are taken down.
  static void finish_all() noexcept;

  // Pinned memory (device_pinned.cpp). Null where there is none left.
  Handle<Storage> allocate_pinned(size_t bytes);
  // Whether all of that is a living block of pinned memory of the runtime.
  static bool is_pinned(const Runtime& runtime, const void* address, size_t bytes);
  // Enqueued; the memory of `data`, which is pinned, is kept until the copy is done.
  void write_pinned(const Buffer& to, const TensorData& data);
  void read_pinned(const Buffer& from, size_t offset, const TensorData& data);
  void release_pinned(const HostBlock& block, size_t bytes) noexcept;
  MemoryStats pinned_memory_stats();

  // Places in the queue (Driver::mark).
  Mark mark();
  bool passed(Mark mark);
  void wait(Mark mark);
  double milliseconds(Mark from, Mark to);
  void release(Mark mark) noexcept;

  // Rows of work-items: `items` of them in groups of kGroup, or as many groups as asked for.
  void launch(const Kernel& kernel, size_t items, std::span<const Argument> arguments);
  void launch_groups(const Kernel& kernel, Extent groups, Extent group,
                     std::span<const Argument> arguments);
  // False where no library of the runtime takes the product: nothing is enqueued then.
  bool multiply(const Product& product);
  bool multiplies();
  bool convolve(const Convolution& convolution);
  bool convolves();
  // Arguments for a kernel that can raise: the word, and the number of the op and its fault.
  Memory fault_word();
  int32_t fault_code(const char* op, FaultKind kind);

  MemoryStats memory_stats();
  void reset_memory_stats();
  void empty_cache();
  void set_memory_limit(size_t bytes);
  struct Counters {
    uint64_t compiled = 0;   // by the driver
    uint64_t from_disk = 0;  // compiled before: with Kiln, or kept in the folder of kernels
    uint64_t launches = 0;
    uint64_t reads = 0;  // of more than one element
    uint64_t read_bytes = 0;
  };
  Counters counters();

 private:
  GpuDevice(const Runtime& runtime, int index);
  // Whether `enqueue`, which is handed what is wanted of it for times, has enqueued something.
  template <class F>
  bool by_library(const F& enqueue);
  Function function(const Kernel& kernel);
  Function made(const Kernel& kernel);
  Memory obtain(size_t bytes);
  void give_back_all();
  void finish();
  void refuse_child() const;
  void finish_quietly() noexcept;
  void will_finish_at_exit();
  // With the lock held. What it returns is to go when the lock is free.
  using Memories = std::vector<Handle<Storage>>;
  Memories copied();
  void keep_until_copied(Handle<Storage> memory);
  void give_back_pinned();

  // "opencl:1", for messages.
  std::string name() const;

  const Runtime& runtime_;
  int index_;
  int process_;  // forks.h
  std::unique_ptr<Driver> driver_;
  ProgramCache programs_;
  std::mutex mutex_;
  bool finishes_at_exit_ = false;
  DeviceTimes times_{*driver_, mutex_};
  std::unordered_map<KernelKey, Function, KernelKeyHash> functions_;
  std::unordered_map<std::string, Function> by_text_;
  std::map<size_t, std::vector<Memory>> kept_;  // by size
  MemoryStats stats_;
  struct Copy {
    Mark done;
    Handle<Storage> memory;
  };
  std::deque<Copy> copies_;                               // of pinned memory, perhaps under way
  std::map<size_t, std::vector<HostBlock>> kept_pinned_;  // by size
  MemoryStats pinned_stats_;
  size_t limit_;
  Memory fault_ = nullptr;
  bool may_fault_ = false;
  Counters counters_;
};

inline constexpr size_t kGroup = 128;  // GROUP of the kernels

// What a block's size is rounded up to: quarters of powers of two, so that a block wastes at most a
// fifth; from 1 MiB on sixteenths, of which a block wastes at most 6 %.
inline size_t size_class(size_t bytes) {
  if (bytes <= 512) return 512;
  const size_t parts = bytes > (size_t{1} << 20) ? 16 : 4;
  const size_t step = std::bit_floor(bytes - 1) / parts;
  return (bytes + step - 1) / step * step;
}

}  // namespace kiln::gpu
