// Convolutions by NVIDIA's cuDNN, where it is installed. Internal.
//
// The library is opened when a convolution is wanted for the first time; nothing of it is needed to
// build. Without it, and for what it does not take, the backend's own kernels compute. Of its
// algorithms only those are used whose results are the same in every run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>

#include "kiln/backend/gpu/runtime/cuda_api.h"
#include "kiln/backend/gpu/runtime/driver.h"

namespace kiln::gpu {

// The functions, by the numbers and layouts of NVIDIA's ABI.
struct CudnnApi {
  using Handle = struct CudnnHandleOf*;
  using Tensor = struct CudnnTensorOf*;
  using Filter = struct CudnnFilterOf*;
  using Convolution = struct CudnnConvolutionOf*;
  struct Choice {
    int algorithm;
    int status;
    float time;
    size_t memory;
    int deterministic;
    int math;
    int reserved[3];
  };
  int (*create)(Handle*) = nullptr;
  int (*set_stream)(Handle, CuStream) = nullptr;
  int (*tensor_create)(Tensor*) = nullptr;
  int (*tensor_set)(Tensor, int format, int type, int n, int c, int h, int w) = nullptr;
  int (*tensor_destroy)(Tensor) = nullptr;
  int (*filter_create)(Filter*) = nullptr;
  int (*filter_set)(Filter, int type, int format, int k, int c, int h, int w) = nullptr;
  int (*filter_destroy)(Filter) = nullptr;
  int (*convolution_create)(Convolution*) = nullptr;
  int (*convolution_set)(Convolution, int pad_h, int pad_w, int stride_h, int stride_w,
                         int dilation_h, int dilation_w, int mode, int compute) = nullptr;
  int (*convolution_groups)(Convolution, int) = nullptr;
  int (*convolution_math)(Convolution, int) = nullptr;
  int (*convolution_destroy)(Convolution) = nullptr;
  int (*choose_forward)(Handle, Tensor x, Filter, Convolution, Tensor y, int, int*,
                        Choice*) = nullptr;
  int (*choose_input)(Handle, Filter, Tensor dy, Convolution, Tensor dx, int, int*,
                      Choice*) = nullptr;
  int (*choose_weight)(Handle, Tensor x, Tensor dy, Convolution, Filter, int, int*,
                       Choice*) = nullptr;
  int (*forward)(Handle, const void* alpha, Tensor, const void* x, Filter, const void* w,
                 Convolution, int algorithm, void* workspace, size_t, const void* beta, Tensor,
                 void* y) = nullptr;
  int (*input)(Handle, const void* alpha, Filter, const void* w, Tensor, const void* dy,
               Convolution, int algorithm, void* workspace, size_t, const void* beta, Tensor,
               void* dx) = nullptr;
  int (*weight)(Handle, const void* alpha, Tensor, const void* x, Tensor, const void* dy,
                Convolution, int algorithm, void* workspace, size_t, const void* beta, Filter,
                void* dw) = nullptr;
  std::string absence;  // why the functions are not there; empty where they are
};
// From $KILN_CUDNN, or libcudnn.so.9 where the loader or $KILN_CUDA_LIBRARIES has it.
const CudnnApi& cudnn_api();

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
  struct Plan {
    bool fine = false;
    CudnnApi::Tensor x = nullptr, y = nullptr;
    CudnnApi::Filter w = nullptr;
    CudnnApi::Convolution convolution = nullptr;
    int algorithm = 0;
    size_t memory = 0;
  };
  static Key key_of(const Convolution& c);
  Plan planned(const Convolution& c);
  void drop(const Plan& plan);
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
