#include "kiln/backend/gpu/device.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <unordered_set>

#include "kiln/backend/gpu/forks.h"
#include "kiln/backend/gpu/kernel_texts.h"
#include "kiln/core/out_of_memory.h"

namespace kiln::gpu {
namespace {

// Ops that have raised or may, by number, with what their fault is. Never destroyed.
struct FaultNames {
  std::mutex mutex;
  std::vector<std::pair<std::string, FaultKind>> names;
};
FaultNames& fault_names() {
  static auto& names = *new FaultNames;
  return names;
}

constexpr const char* kKernelName = "kiln_kernel";

// The whole of what a compiler is given.
std::string full_text(const Kernel& kernel) {
  std::string out(kernel_text("prelude"));
  out += concat("#define NAME ", kKernelName, "\n");
  out += kernel.defines();
  for (const Literal& library : kernel.libraries) {
    if (library) out += kernel_text(library.get());
  }
  out += kernel_text(kernel.file.get());
  return out;
}

}  // namespace

Literal Literal::kept(const std::string& text) {
  // Never destroyed, and a set does not move what it holds.
  static auto& mutex = *new std::mutex;
  static auto& texts = *new std::unordered_set<std::string>;
  std::lock_guard lock(mutex);
  return at(texts.insert(text).first->c_str());
}

Buffer::~Buffer() {
  if (!root_) device_->release(memory_, bytes_);
}

Handle<Buffer> Buffer::alias(const Handle<Buffer>& of) {
  Handle<Buffer> out = make_handle<Buffer>(of->device_, of->memory_, of->bytes_);
  out->root_ = of->root_ ? of->root_ : of;
  return out;
}

// ---- Devices

GpuDevice::GpuDevice(const Runtime& runtime, int index)
    : runtime_(runtime),
      index_(index),
      process_(process_generation()),
      driver_(runtime.open(index)),
      programs_(ProgramCache::default_folder()),
      limit_(driver_->properties().memory_bytes) {
  if (properties().largest_group < 256) {
    throw_error<DeviceError>(runtime_.name, ": ", properties().name, " has work-groups of at most ",
                             properties().largest_group, "; expected 256 or more");
  }
  fault_ = driver_->allocate(64);
  if (fault_ == nullptr)
    throw_error<DeviceError>(runtime_.name, ": ", properties().name, " has no memory left");
  const std::array<int32_t, 16> zeros{};
  driver_->write(fault_, 0, zeros.data(), sizeof zeros);
}

namespace {

// Never destroyed: buffers may outlive everything static.
std::array<std::atomic<const Runtime*>, kMaxDeviceTypes>& runtimes() {
  static auto& all = *new std::array<std::atomic<const Runtime*>, kMaxDeviceTypes>{};
  return all;
}
using Opened = std::array<std::array<std::atomic<GpuDevice*>, 128>, kMaxDeviceTypes>;
Opened& opened_devices() {
  static auto& all = *new Opened{};
  return all;
}

}  // namespace

void GpuDevice::set_runtime(DeviceType type, const Runtime& runtime) {
  runtimes()[type] = &runtime;
}

GpuDevice& GpuDevice::of(Device device) {
  static auto& mutex = *new std::mutex;
  Opened& opened = opened_devices();
  auto& place = opened[device.type][static_cast<size_t>(device.index)];
  if (GpuDevice* found = place.load(std::memory_order_acquire)) {
    found->refuse_child();
    return *found;
  }
  std::lock_guard lock(mutex);
  if (place.load() == nullptr) {
    const Runtime* runtime = runtimes()[device.type];
    auto* opened_now = new GpuDevice(*runtime, device.index);
    opened_now->times_.announce(opened_now->name());
    place.store(opened_now, std::memory_order_release);
  }
  return *place.load();
}

std::string GpuDevice::name() const { return concat(runtime_.name, ":", index_); }

bool GpuDevice::is_child() const { return process_generation() != process_; }

void GpuDevice::refuse_child() const {
  if (!is_child()) return;
  throw_error<DeviceError>(runtime_.name, ": ", name(),
                           " was opened before this process was forked, and drivers do not survive "
                           "that; use it in the first process, or start this one anew (spawn)");
}

// ---- Memory

// With the lock held.
Memory GpuDevice::obtain(size_t bytes) {
  if (auto found = kept_.find(bytes); found != kept_.end() && !found->second.empty()) {
    Memory memory = found->second.back();
    found->second.pop_back();
    stats_.bytes_cached -= bytes;
    return memory;
  }
  const auto fresh = [&]() -> Memory {
    if (bytes > limit_ || stats_.bytes_in_use + stats_.bytes_cached > limit_ - bytes)
      return nullptr;
    return driver_->allocate(bytes);
  };
  Memory memory = fresh();
  if (memory == nullptr && stats_.bytes_cached > 0) {
    give_back_all();
    memory = fresh();
  }
  if (memory != nullptr) ++stats_.system_allocations;
  return memory;
}

Handle<Buffer> GpuDevice::allocate(size_t wanted) {
  refuse_child();
  std::lock_guard lock(mutex_);
  if (wanted > properties().memory_bytes) {
    throw_error<OutOfMemoryError>(runtime_.name, ": out of memory; cannot allocate ", wanted,
                                  " bytes on ", properties().name, ", which has ",
                                  properties().memory_bytes);
  }
  const size_t bytes = properties().exact_blocks ? std::max<size_t>(wanted, 1) : size_class(wanted);
  Memory memory = obtain(bytes);
  if (memory == nullptr) {
    throw_error<OutOfMemoryError>(runtime_.name, ": out of memory on ", properties().name,
                                  "; got a request for ", wanted, " bytes while ",
                                  stats_.bytes_in_use, " are in use; expected at most ", limit_,
                                  " in all and ", properties().largest_allocation, " at once");
  }
  ++stats_.allocations;
  stats_.bytes_in_use += bytes;
  stats_.peak_bytes_in_use = std::max(stats_.peak_bytes_in_use, stats_.bytes_in_use);
  return Handle<Buffer>::adopt(new Buffer(this, memory, bytes));
}

void GpuDevice::release(Memory memory, size_t bytes) noexcept {
  if (is_child()) return;  // a forked process has no driver
  std::lock_guard lock(mutex_);
  stats_.bytes_in_use -= bytes;
  if (properties().exact_blocks) return driver_->release(memory);
  try {
    kept_[bytes].push_back(memory);
    stats_.bytes_cached += bytes;
  } catch (...) {
    driver_->release(memory);
  }
}

void GpuDevice::give_back_all() {
  for (auto& [bytes, blocks] : kept_) {
    for (Memory memory : blocks) driver_->release(memory);
    blocks.clear();
  }
  stats_.bytes_cached = 0;
}

MemoryStats GpuDevice::memory_stats() {
  std::lock_guard lock(mutex_);
  return stats_;
}
void GpuDevice::reset_memory_stats() {
  std::lock_guard lock(mutex_);
  stats_.allocations = 0;
  stats_.system_allocations = 0;
  stats_.peak_bytes_in_use = stats_.bytes_in_use;
  pinned_stats_.allocations = 0;
  pinned_stats_.system_allocations = 0;
  pinned_stats_.peak_bytes_in_use = pinned_stats_.bytes_in_use;
}
void GpuDevice::empty_cache() {
  refuse_child();
  {
    Memories over;
    std::lock_guard lock(mutex_);
    over = copied();
  }
  std::lock_guard lock(mutex_);
  give_back_all();
  give_back_pinned();
}
void GpuDevice::set_memory_limit(size_t bytes) {
  std::lock_guard lock(mutex_);
  limit_ = std::min(bytes, properties().memory_bytes);
}
GpuDevice::Counters GpuDevice::counters() {
  std::lock_guard lock(mutex_);
  return counters_;
}

// ---- Transfers

void GpuDevice::write(const Buffer& to, const void* from, size_t bytes) {
  refuse_child();
  std::lock_guard lock(mutex_);
  times_.around([&] { driver_->write(to.memory(), 0, from, bytes); });
}

// With the lock held: waits, and throws what a kernel has raised. The word is read with whatever
// else is.
void GpuDevice::finish() {
  int32_t code = 0;
  try {
    if (may_fault_) driver_->read(fault_, 0, &code, sizeof code);
    driver_->finish();
  } catch (...) {
    driver_->abandon_reads();
    throw;
  }
  may_fault_ = false;
  if (counters_.launches > 0) will_finish_at_exit();
  if (code == 0) return;
  const int32_t zero = 0;
  driver_->write(fault_, 0, &zero, sizeof zero);
  std::pair<std::string, FaultKind> op;
  {
    FaultNames& faults = fault_names();
    std::lock_guard names(faults.mutex);
    op = faults.names.at(static_cast<size_t>(code - 1));
  }
  if (op.second == FaultKind::index) {
    throw_error<IndexError>(op.first, ": index out of range; found by a kernel on ", name());
  }
  throw_error<ValueError>(op.first, ": division by zero; found by a kernel on ", name());
}

void GpuDevice::read(const Buffer& from, size_t offset, void* to, size_t bytes, bool whole) {
  refuse_child();
  std::lock_guard lock(mutex_);
  try {
    times_.around([&] { driver_->read(from.memory(), offset, to, bytes); });
  } catch (...) {
    driver_->abandon_reads();
    throw;
  }
  counters_.read_bytes += bytes;
  if (whole) ++counters_.reads;
  finish();
}

void GpuDevice::synchronize() {
  refuse_child();
  Memories over;
  std::lock_guard lock(mutex_);
  finish();
  over = copied();
}

// Called once a kernel has run: all that the driver's libraries do at the end is registered by
// then, and what is registered now runs before it.
void GpuDevice::will_finish_at_exit() {
  if (!finishes_at_exit_) finishes_at_exit_ = std::atexit(&GpuDevice::finish_all) == 0;
}

void GpuDevice::finish_all() noexcept {
  for (const auto& of_type : opened_devices()) {
    for (const auto& place : of_type) {
      if (GpuDevice* device = place.load(std::memory_order_acquire)) device->finish_quietly();
    }
  }
}

void GpuDevice::finish_quietly() noexcept {
  if (is_child()) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  try {
    finish();
  } catch (const std::exception&) {
    // What a kernel has found wrong, and nobody asked for.
  }
}

// ---- Places in the queue

Mark GpuDevice::mark() {
  refuse_child();
  std::lock_guard lock(mutex_);
  return driver_->mark();
}
bool GpuDevice::passed(Mark mark) {
  refuse_child();
  std::lock_guard lock(mutex_);
  return driver_->passed(mark);
}
void GpuDevice::wait(Mark mark) {
  refuse_child();
  std::lock_guard lock(mutex_);
  driver_->wait(mark);
}
double GpuDevice::milliseconds(Mark from, Mark to) {
  refuse_child();
  std::lock_guard lock(mutex_);
  return driver_->milliseconds(from, to);
}
void GpuDevice::release(Mark mark) noexcept {
  if (is_child()) return;
  std::lock_guard lock(mutex_);
  driver_->release(mark);
}

// ---- Kernels

// With the lock held.
Function GpuDevice::function(const Kernel& kernel) {
  const KernelKey key = kernel.key();
  if (auto found = functions_.find(key); found != functions_.end()) return found->second;
  const Function function = made(kernel);
  functions_.emplace(key, function);
  return function;
}

// With the lock held: compiled, unless another key has led to the same text, or the folder has it.
Function GpuDevice::made(const Kernel& kernel) {
  const std::string text = full_text(kernel);
  if (auto found = by_text_.find(text); found != by_text_.end()) return found->second;
  const std::string disk_key = concat(properties().name, "\n", properties().driver, "\n", text);
  Function function = driver_->find_ahead(text);
  if (function != nullptr) {
    ++counters_.from_disk;
    by_text_.emplace(text, function);
    return function;
  }
  if (const auto binary = programs_.find(disk_key)) {
    function = driver_->load(*binary, kKernelName);
    if (function != nullptr) ++counters_.from_disk;
  }
  if (function == nullptr) {
    const std::vector<std::byte> binary = driver_->compile(text);
    ++counters_.compiled;
    function = driver_->load(binary, kKernelName);
    if (function == nullptr) {
      throw_error<RuntimeError>(runtime_.name, ": ", properties().name,
                                " does not load the kernel '", kernel.file.get(),
                                "' that its own driver compiled");
    }
    programs_.keep(disk_key, binary);
  }
  by_text_.emplace(text, function);
  return function;
}

void GpuDevice::launch(const Kernel& kernel, size_t items, std::span<const Argument> arguments) {
  if (items == 0) return;
  launch_groups(kernel, {(items + kGroup - 1) / kGroup, 1, 1}, {kGroup, 1, 1}, arguments);
}

void GpuDevice::launch_groups(const Kernel& kernel, Extent groups, Extent group,
                              std::span<const Argument> arguments) {
  refuse_child();
  if (groups.x == 0 || groups.y == 0 || groups.z == 0) return;
  std::lock_guard lock(mutex_);
  const Function compiled = function(kernel);
  const LaunchName names{kernel.file.get(), kernel.parts[0].get(), kernel.local_bytes};
  if (!times_.is_on()) [[likely]] {
    driver_->launch(compiled, names, groups, group, arguments, nullptr);
  } else {
    Timed timed;
    try {
      driver_->launch(compiled, names, groups, group, arguments, &timed);
    } catch (...) {
      times_.drop(timed);
      throw;
    }
    times_.note(timed);
  }
  ++counters_.launches;
  for (const Argument& a : arguments) {
    may_fault_ |= a.kind == Argument::Kind::memory && a.data == fault_;
  }
  // A processor's driver compiles the first kernel now, in a thread; a program that ends at once
  // waits for it here.
  if (!finishes_at_exit_ && runtime_.is_processor(index_)) {
    driver_->finish();
    will_finish_at_exit();
  }
}

template <class F>
bool GpuDevice::by_library(const F& enqueue) {
  refuse_child();
  std::lock_guard lock(mutex_);
  if (!times_.is_on()) [[likely]] {
    if (!enqueue(nullptr)) return false;
  } else {
    Timed timed;
    bool done = false;
    try {
      done = enqueue(&timed);
    } catch (...) {
      times_.drop(timed);
      throw;
    }
    if (!done) {
      times_.drop(timed);
      return false;
    }
    times_.note(timed);
  }
  ++counters_.launches;
  return true;
}

bool GpuDevice::multiply(const Product& product) {
  return by_library([&](Timed* timed) { return driver_->multiply(product, timed); });
}
bool GpuDevice::convolve(const Convolution& convolution) {
  return by_library([&](Timed* timed) { return driver_->convolve(convolution, timed); });
}
bool GpuDevice::convolves() {
  refuse_child();
  std::lock_guard lock(mutex_);
  return driver_->convolves();
}
bool GpuDevice::multiplies() {
  refuse_child();
  std::lock_guard lock(mutex_);
  return driver_->multiplies();
}

Memory GpuDevice::fault_word() { return fault_; }

int32_t GpuDevice::fault_code(const char* op, FaultKind kind) {
  FaultNames& faults = fault_names();
  std::lock_guard lock(faults.mutex);
  for (size_t i = 0; i < faults.names.size(); ++i) {
    if (faults.names[i].first == op && faults.names[i].second == kind) {
      return static_cast<int32_t>(i + 1);
    }
  }
  faults.names.emplace_back(op, kind);
  return static_cast<int32_t>(faults.names.size());
}

}  // namespace kiln::gpu
