// The functions of NVIDIA's cuDNN that convolutions need: those of its graphs of operations, by the
// numbers of its ABI. Internal.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "kiln/backend/gpu/runtime/cuda_api.h"

namespace kiln::gpu {

struct CudnnApi {
  using Handle = struct CudnnHandleOf*;
  using Descriptor = struct CudnnDescriptorOf*;
  int (*create)(Handle*) = nullptr;
  int (*set_stream)(Handle, CuStream) = nullptr;
  int (*descriptor)(int kind, Descriptor*) = nullptr;
  int (*destroy)(Descriptor) = nullptr;
  int (*set)(Descriptor, int attribute, int type, int64_t count, const void*) = nullptr;
  int (*get)(Descriptor, int attribute, int type, int64_t wanted, int64_t* count, void*) = nullptr;
  int (*finalize)(Descriptor) = nullptr;
  int (*execute)(Handle, Descriptor plan, Descriptor pack) = nullptr;
  std::string absence;  // why the functions are not there; empty where they are
};
// From $KILN_CUDNN, or libcudnn.so.9 where the loader or $KILN_CUDA_LIBRARIES has it.
const CudnnApi& cudnn_api();

namespace cudnn {

// cudnnBackendDescriptorType_t
enum Kind : int {
  kConvolution = 1,
  kEngine = 2,
  kEngineConfig = 3,
  kHeuristics = 4,
  kPlan = 5,
  kForward = 10,
  kBackwardFilter = 11,
  kBackwardData = 12,
  kGraph = 15,
  kPack = 16,
  kTensor = 17,
};
// cudnnBackendAttributeName_t
enum Attribute : int {
  kComputeType = 100,
  kMode = 101,
  kDilations = 102,
  kStrides = 103,
  kPaddingBehind = 104,
  kPaddingBefore = 105,
  kSpatialDims = 106,
  kHeuristicsMode = 200,
  kHeuristicsGraph = 201,
  kHeuristicsResults = 202,
  kConfigEngine = 300,
  kPlanHandle = 400,
  kPlanConfig = 401,
  kPlanWorkspace = 402,
  kForwardFirst = 700,  // alpha, beta, convolution, w, x, y
  kDataFirst = 706,     // alpha, beta, convolution, w, dx, dy
  kFilterFirst = 712,   // alpha, beta, convolution, dw, x, dy
  kGraphHandle = 800,
  kGraphOperations = 801,
  kTensorAlignment = 900,
  kTensorType = 901,
  kTensorDims = 902,
  kTensorStrides = 903,
  kTensorId = 906,
  kPackIds = 1000,
  kPackPointers = 1001,
  kPackWorkspace = 1003,
  kEngineNotes = 1303,
};
// cudnnBackendAttributeType_t
enum Type : int {
  kTypeHandle = 0,
  kTypeDataType = 1,
  kTypeInt64 = 3,
  kTypeFloat = 4,
  kTypeDouble = 5,
  kTypePointer = 6,
  kTypeMode = 7,
  kTypeHeuristicsMode = 8,
  kTypeNote = 11,
  kTypeDescriptor = 15,
};
// cudnnDataType_t
enum : int { kFloat = 0, kDouble = 1, kHalf = 2, kBfloat16 = 9 };
// cudnnBackendNumericalNote_t
enum Note : int {
  kNoteTensorCore = 0,
  kNoteDownConvert = 1,
  kNoteReducedSums = 2,
  kNoteFft = 3,
  kNoteNondeterministic = 4,
  kNoteWinograd = 5,
  kNoteWinograd4 = 6,
  kNoteWinograd6 = 7,
  kNoteWinograd13 = 8,
  kNotes = 16,  // as many are asked for
};
// cudnnBackendHeurMode_t
enum : int { kModeFallback = 2, kModeA = 3 };
constexpr int kCrossCorrelation = 1;

// A descriptor, and whether all that was done with it went well.
class Descriptor {
 public:
  Descriptor(const CudnnApi& api, Kind kind) : api_(&api) {
    fine_ = api.descriptor(kind, &it_) == 0;
  }
  ~Descriptor() {
    if (it_ != nullptr) static_cast<void>(api_->destroy(it_));
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  Descriptor& set(int attribute, Type type, int64_t count, const void* values) {
    fine_ = fine_ && api_->set(it_, attribute, type, count, values) == 0;
    return *this;
  }
  Descriptor& set(int attribute, std::span<const int64_t> values) {
    return set(attribute, kTypeInt64, static_cast<int64_t>(values.size()), values.data());
  }
  Descriptor& set(int attribute, const Descriptor& other) {
    fine_ = fine_ && other.fine_;
    return set(attribute, kTypeDescriptor, 1, &other.it_);
  }
  Descriptor& finalize() {
    fine_ = fine_ && api_->finalize(it_) == 0;
    return *this;
  }
  // How many of at most `wanted` values there are; -1 where it cannot be asked.
  int64_t get(int attribute, Type type, int64_t wanted, void* values) const {
    int64_t count = 0;
    if (!fine_ || api_->get(it_, attribute, type, wanted, &count, values) != 0) return -1;
    return count;
  }
  bool fine() const { return fine_; }
  CudnnApi::Descriptor it() const { return it_; }

 private:
  const CudnnApi* api_;
  CudnnApi::Descriptor it_ = nullptr;
  bool fine_ = false;
};

}  // namespace cudnn
}  // namespace kiln::gpu
