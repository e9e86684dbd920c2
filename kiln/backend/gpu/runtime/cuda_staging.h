// Pinned host memory that copies to and from a CUDA device go through. Internal.
//
// A copy from memory that is not pinned makes the driver wait, and its source may change while it
// is under way. So what is written is first copied here: into one of two halves, in turns. A half
// is used again when the copies out of it are over, which an event says.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <vector>

#include "kiln/backend/gpu/runtime/cuda_api.h"

namespace kiln::gpu {

class CudaStaging {
 public:
  using Check = std::function<void(const char*, CuResult)>;
  CudaStaging(const CudaApi& api, CuStream stream, Check check)
      : api_(api), stream_(stream), check_(std::move(check)) {}

  // Enqueued; `from` may change afterwards.
  void write(CuAddress to, const void* from, size_t bytes);
  // `to` is filled by filled(), after the stream was waited for; large ones at once.
  void read(CuAddress from, void* to, size_t bytes);
  void filled();
  // What reads were to fill is gone.
  void abandon_reads() noexcept {
    readings_.clear();
    incoming_used_ = 0;
  }

 private:
  static constexpr size_t kHalf = size_t{2} << 20;
  struct Half {
    std::byte* memory = nullptr;
    size_t used = 0;
    CuEvent done = nullptr;
    bool pending = false;
  };
  struct Reading {
    void* to;
    const std::byte* from;
    size_t bytes;
  };
  // Room for `bytes` (at most kHalf) in a half whose copies are over.
  std::byte* room(size_t bytes);
  void open();

  const CudaApi& api_;
  CuStream stream_;
  Check check_;
  std::array<Half, 2> halves_;
  size_t turn_ = 0;
  std::byte* incoming_ = nullptr;
  size_t incoming_used_ = 0;
  std::vector<Reading> readings_;
};

}  // namespace kiln::gpu
