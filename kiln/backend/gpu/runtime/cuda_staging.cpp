#include "kiln/backend/gpu/runtime/cuda_staging.h"

#include <algorithm>
#include <cstring>

namespace kiln::gpu {

void CudaStaging::open() {
  for (Half& half : halves_) {
    void* memory = nullptr;
    check_("cuMemHostAlloc", api_.allocate_host(&memory, kHalf, 0));
    half.memory = static_cast<std::byte*>(memory);
    check_("cuEventCreate", api_.event_create(&half.done, kCuEventDisableTiming));
  }
  void* memory = nullptr;
  check_("cuMemHostAlloc", api_.allocate_host(&memory, kHalf, 0));
  incoming_ = static_cast<std::byte*>(memory);
}

std::byte* CudaStaging::room(size_t bytes) {
  if (incoming_ == nullptr) open();
  if (halves_[turn_].used + bytes > kHalf) {
    Half& full = halves_[turn_];
    check_("cuEventRecord", api_.event_record(full.done, stream_));
    full.pending = true;
    turn_ ^= 1;
    Half& next = halves_[turn_];
    if (next.pending) check_("cuEventSynchronize", api_.event_synchronize(next.done));
    next.pending = false;
    next.used = 0;
  }
  Half& half = halves_[turn_];
  std::byte* place = half.memory + half.used;
  half.used = std::min(kHalf, half.used + (bytes + 63) / 64 * 64);
  return place;
}

void CudaStaging::write(CuAddress to, const void* from, size_t bytes) {
  const auto* source = static_cast<const std::byte*>(from);
  for (size_t at = 0; at < bytes;) {
    const size_t piece = std::min(bytes - at, kHalf);
    std::byte* place = room(piece);
    std::memcpy(place, source + at, piece);
    check_("cuMemcpyHtoDAsync", api_.copy_to_device(to + at, place, piece, stream_));
    at += piece;
  }
}

void CudaStaging::read(CuAddress from, void* to, size_t bytes) {
  if (incoming_ == nullptr) open();
  auto* target = static_cast<std::byte*>(to);
  for (size_t at = 0; at < bytes;) {
    if (incoming_used_ == kHalf) {
      check_("cuStreamSynchronize", api_.stream_synchronize(stream_));
      filled();
    }
    const size_t piece = std::min(bytes - at, kHalf - incoming_used_);
    std::byte* place = incoming_ + incoming_used_;
    check_("cuMemcpyDtoHAsync", api_.copy_to_host(place, from + at, piece, stream_));
    readings_.push_back({target + at, place, piece});
    incoming_used_ = std::min(kHalf, incoming_used_ + (piece + 63) / 64 * 64);
    at += piece;
  }
}

void CudaStaging::filled() {
  for (const Reading& r : readings_) std::memcpy(r.to, r.from, r.bytes);
  abandon_reads();
}

}  // namespace kiln::gpu
