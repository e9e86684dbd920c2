// Convolutions by NVIDIA's cuDNN, where it is installed. Internal.
//
// The library is opened when a convolution is wanted for the first time; nothing of it is needed to
// build. Without it, and for what it does not take, the backend's own kernels compute. Of its
// engines only those are used whose results are the same in every run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "kiln/backend/gpu/runtime/cudnn_api.h"
#include "kiln/backend/gpu/runtime/driver.h"

namespace kiln::gpu {

// A device's convolutions. Its context is the calling thread's.
class Cudnn {
 public:
  // Memory of the device, or 0; and its way back, which waits for what uses it.
  using Allocate = std::function<CuAddress(size_t)>;
  using Release = std::function<void(CuAddress)>;
  Cudnn(Allocate allocate, Release release, CuStream stream);
  bool is_there() const { return handle_ != nullptr; }
  // Enqueues it; false where the library does not take it.
  bool convolve(const Convolution& convolution);

 private:
  using Key = std::array<int64_t, 16>;
  struct KeyHash {
    size_t operator()(const Key& key) const;
  };
  // Descriptors in the order in which they were made, which is that of what they are made of; the
  // last one is the plan. None where the library does not take the convolution.
  struct Plan {
    Plan() = default;
    Plan(Plan&&) = default;
    Plan& operator=(Plan&&) = default;
    ~Plan() {
      while (!made.empty()) made.pop_back();
    }
    std::vector<std::unique_ptr<cudnn::Descriptor>> made;
    int64_t workspace = 0;
  };
  static Key key_of(const Convolution& c);
  Plan planned(const Convolution& c);
  bool has_workspace(size_t bytes);

  const CudnnApi& api_;
  Allocate allocate_;
  Release release_;
  CudnnApi::Handle handle_ = nullptr;
  CuAddress workspace_ = 0;
  size_t workspace_bytes_ = 0;
  std::unordered_map<Key, Plan, KeyHash> plans_;
};

}  // namespace kiln::gpu
