// Pinned memory of a device's driver: blocks of the host that copies go on from and to while the
// program does.
//
// Note [Copies under way]: a copy is enqueued and its memory kept in a list, with a place in the
// queue behind the copy. So a tensor may go before its copy is done, and its block is not handed
// out again before. The list is looked through at the next copy, allocation or wait.
#include <algorithm>
#include <memory>

#include "kiln/backend/gpu/device.h"
#include "kiln/core/error.h"

namespace kiln::gpu {
namespace {

// Freed blocks that are kept for the next tensors: pinned memory is taken from everybody on the
// machine.
constexpr size_t kMostKept = size_t{256} << 20;

struct Block {
  GpuDevice* device;
  HostBlock host;
  size_t bytes;
};

// All living blocks, by address. Never destroyed: tensors may outlive everything static.
struct Living {
  std::mutex mutex;
  struct Entry {
    const Runtime* runtime;
    size_t bytes;
  };
  std::map<uintptr_t, Entry> blocks;
};
Living& living() {
  static auto& all = *new Living;
  return all;
}

uintptr_t number_of(const void* address) { return reinterpret_cast<uintptr_t>(address); }

// Of a tensor's memory, when the last tensor goes.
void release_block(void* context) {
  const std::unique_ptr<Block> block(static_cast<Block*>(context));
  if (block->device->is_child()) return;  // a forked process has no driver
  {
    Living& all = living();
    std::lock_guard lock(all.mutex);
    all.blocks.erase(number_of(block->host.address));
  }
  block->device->release_pinned(block->host, block->bytes);
}

}  // namespace

bool GpuDevice::is_pinned(const Runtime& runtime, const void* address, size_t bytes) {
  Living& all = living();
  std::lock_guard lock(all.mutex);
  auto found = all.blocks.upper_bound(number_of(address));
  if (found == all.blocks.begin()) return false;
  --found;
  const size_t offset = number_of(address) - found->first;
  return found->second.runtime == &runtime && offset <= found->second.bytes &&
         bytes <= found->second.bytes - offset;
}

Handle<Storage> GpuDevice::allocate_pinned(size_t wanted) {
  refuse_child();
  const size_t bytes = properties().exact_blocks ? std::max<size_t>(wanted, 1) : size_class(wanted);
  if (bytes < wanted) return {};
  Memories over;
  std::unique_lock lock(mutex_);
  over = copied();
  lock.unlock();
  over.clear();  // one of them may be what is asked for
  lock.lock();
  HostBlock host;
  if (auto found = kept_pinned_.find(bytes);
      found != kept_pinned_.end() && !found->second.empty()) {
    host = found->second.back();
    found->second.pop_back();
    pinned_stats_.bytes_cached -= bytes;
  } else {
    host = driver_->allocate_host(bytes);
    if (host.address == nullptr && pinned_stats_.bytes_cached > 0) {
      give_back_pinned();
      host = driver_->allocate_host(bytes);
    }
    if (host.address == nullptr) return {};
    ++pinned_stats_.system_allocations;
  }
  ++pinned_stats_.allocations;
  pinned_stats_.bytes_in_use += bytes;
  pinned_stats_.peak_bytes_in_use =
      std::max(pinned_stats_.peak_bytes_in_use, pinned_stats_.bytes_in_use);
  lock.unlock();
  auto block = std::make_unique<Block>(Block{this, host, bytes});
  {
    Living& all = living();
    std::lock_guard names(all.mutex);
    all.blocks[number_of(host.address)] = {&runtime_, bytes};
  }
  Handle<Storage> out = Storage::borrow(host.address, wanted, &release_block, block.get());
  static_cast<void>(block.release());
  return out;
}

void GpuDevice::release_pinned(const HostBlock& block, size_t bytes) noexcept {
  std::lock_guard lock(mutex_);
  pinned_stats_.bytes_in_use -= bytes;
  if (properties().exact_blocks || pinned_stats_.bytes_cached + bytes > kMostKept) {
    return driver_->release_host(block);
  }
  try {
    kept_pinned_[bytes].push_back(block);
    pinned_stats_.bytes_cached += bytes;
  } catch (...) {
    driver_->release_host(block);
  }
}

void GpuDevice::give_back_pinned() {
  for (auto& [bytes, blocks] : kept_pinned_) {
    for (const HostBlock& block : blocks) driver_->release_host(block);
    blocks.clear();
  }
  pinned_stats_.bytes_cached = 0;
}

MemoryStats GpuDevice::pinned_memory_stats() {
  Memories over;
  std::unique_lock lock(mutex_);
  over = copied();
  lock.unlock();
  over.clear();
  lock.lock();
  return pinned_stats_;
}

GpuDevice::Memories GpuDevice::copied() {
  Memories over;
  while (!copies_.empty() && driver_->passed(copies_.front().done)) {
    driver_->release(copies_.front().done);
    over.push_back(std::move(copies_.front().memory));
    copies_.pop_front();
  }
  return over;
}

void GpuDevice::keep_until_copied(Handle<Storage> memory) {
  copies_.push_back({Mark::none, std::move(memory)});
  try {
    copies_.back().done = driver_->mark();
  } catch (...) {
    // The copy may be under way all the same, and nobody will know when it is done.
    static_cast<void>(new Handle<Storage>(std::move(copies_.back().memory)));
    copies_.pop_back();
    throw;
  }
}

void GpuDevice::write_pinned(const Buffer& to, const TensorData& data) {
  refuse_child();
  Memories over;
  std::lock_guard lock(mutex_);
  over = copied();
  times_.around([&] { driver_->write_from_host(to.memory(), 0, data.data(), data.bytes()); });
  keep_until_copied(data.storage());
}

void GpuDevice::read_pinned(const Buffer& from, size_t offset, const TensorData& data) {
  refuse_child();
  Memories over;
  std::lock_guard lock(mutex_);
  over = copied();
  auto* to = static_cast<std::byte*>(data.storage()->data()) + data.byte_offset();
  times_.around([&] { driver_->read_to_host(from.memory(), offset, to, data.bytes()); });
  keep_until_copied(data.storage());
  counters_.read_bytes += data.bytes();
  if (data.numel() > 1) ++counters_.reads;
}

}  // namespace kiln::gpu
