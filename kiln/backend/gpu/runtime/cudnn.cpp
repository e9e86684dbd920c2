#include "kiln/backend/gpu/runtime/cudnn.h"

#include <algorithm>
#include <climits>

#include <dlfcn.h>

#include "kiln/backend/gpu/runtime/cuda_library.h"

namespace kiln::gpu {
namespace {

// cudnnDataType_t
enum : int { kFloat = 0, kDouble = 1, kHalf = 2, kBfloat16 = 9 };
// cudnnTensorFormat_t
enum : int { kNchw = 0, kNhwc = 1 };
constexpr int kCrossCorrelation = 1;
// cudnnMathType_t: 32-bit floats are not rounded to TF32.
enum : int { kTensorMath = 1, kFmaMath = 3 };

constexpr size_t kMostWorkspace = size_t{1} << 30;
constexpr size_t kMostPlans = 4096;
constexpr int kMostChoices = 10;

int type_of(Product::Element element) {
  switch (element) {
    case Product::Element::f64:
      return kDouble;
    case Product::Element::f32:
      return kFloat;
    case Product::Element::f16:
      return kHalf;
    default:
      return kBfloat16;
  }
}

// Whether it adds products of 32-bit floats as they are: not rounded to TF32, and not by transforms
// (FFT, Winograd), whose results have fewer right bits.
bool is_exact(Convolution::Part part, const CudnnApi::Choice& choice) {
  constexpr int kMostForward = 3;  // implicit and explicit products, direct
  constexpr int kBackward = 1;     // products, of the algorithms that are the same in every run
  if (choice.math != kFmaMath && choice.math != 0) return false;
  return part == Convolution::Part::forward ? choice.algorithm <= kMostForward
                                            : choice.algorithm == kBackward;
}

CudnnApi open_cudnn() {
  CudnnApi api;
  void* library = open_cuda_library("KILN_CUDNN", {"libcudnn.so.9"});
  if (library == nullptr) {
    api.absence =
        "cuDNN was not found (libcudnn.so.9); it is in the Python package nvidia-cudnn-cu13; "
        "KILN_CUDNN may name the file";
    return api;
  }
  const auto load = [&](auto& function, const char* symbol) {
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
    if (function == nullptr) api.absence = std::string("cuDNN has no ") + symbol;
  };
  load(api.create, "cudnnCreate");
  load(api.set_stream, "cudnnSetStream");
  load(api.tensor_create, "cudnnCreateTensorDescriptor");
  load(api.tensor_set, "cudnnSetTensor4dDescriptor");
  load(api.tensor_destroy, "cudnnDestroyTensorDescriptor");
  load(api.filter_create, "cudnnCreateFilterDescriptor");
  load(api.filter_set, "cudnnSetFilter4dDescriptor");
  load(api.filter_destroy, "cudnnDestroyFilterDescriptor");
  load(api.convolution_create, "cudnnCreateConvolutionDescriptor");
  load(api.convolution_set, "cudnnSetConvolution2dDescriptor");
  load(api.convolution_groups, "cudnnSetConvolutionGroupCount");
  load(api.convolution_math, "cudnnSetConvolutionMathType");
  load(api.convolution_destroy, "cudnnDestroyConvolutionDescriptor");
  load(api.choose_forward, "cudnnGetConvolutionForwardAlgorithm_v7");
  load(api.choose_input, "cudnnGetConvolutionBackwardDataAlgorithm_v7");
  load(api.choose_weight, "cudnnGetConvolutionBackwardFilterAlgorithm_v7");
  load(api.forward, "cudnnConvolutionForward");
  load(api.input, "cudnnConvolutionBackwardData");
  load(api.weight, "cudnnConvolutionBackwardFilter");
  return api;
}

}  // namespace

const CudnnApi& cudnn_api() {
  static const CudnnApi& api = *new CudnnApi(open_cudnn());
  return api;
}

Cudnn::Cudnn(Allocate allocate, Release release, CuStream stream)
    : api_(cudnn_api()), allocate_(std::move(allocate)), release_(std::move(release)) {
  if (!api_.absence.empty() || api_.create(&handle_) != 0 ||
      api_.set_stream(handle_, stream) != 0) {
    handle_ = nullptr;
  }
}

size_t Cudnn::KeyHash::operator()(const Key& key) const {
  uint64_t hash = 0x9e3779b97f4a7c15u;
  for (int64_t each : key) {
    hash = (hash ^ static_cast<uint64_t>(each)) * 0xff51afd7ed558ccdu;
    hash ^= hash >> 32;
  }
  return hash;
}

Cudnn::Key Cudnn::key_of(const Convolution& c) {
  return {static_cast<int64_t>(c.element) * 8 + static_cast<int64_t>(c.part) * 2 + c.channels_last,
          c.batch,
          c.in,
          c.height,
          c.width,
          c.out,
          c.kernel[0],
          c.kernel[1],
          c.stride[0],
          c.stride[1],
          c.padding[0],
          c.padding[1],
          c.dilation[0],
          c.dilation[1],
          c.groups,
          c.rows * 65536 + c.columns};
}

void Cudnn::drop(const Plan& plan) {
  if (plan.x != nullptr) static_cast<void>(api_.tensor_destroy(plan.x));
  if (plan.y != nullptr) static_cast<void>(api_.tensor_destroy(plan.y));
  if (plan.w != nullptr) static_cast<void>(api_.filter_destroy(plan.w));
  if (plan.convolution != nullptr) static_cast<void>(api_.convolution_destroy(plan.convolution));
}

Cudnn::Plan Cudnn::planned(const Convolution& c) {
  Plan plan;
  const int64_t sizes[] = {c.batch, c.in,      c.height,    c.width,     c.out,
                           c.rows,  c.columns, c.kernel[0], c.kernel[1], c.groups};
  if (std::ranges::max(sizes) > INT_MAX) return plan;
  const int type = type_of(c.element);
  const auto n = [](int64_t size) { return static_cast<int>(size); };
  const int format = c.channels_last ? kNhwc : kNchw;
  const bool narrow = c.element == Product::Element::f16 || c.element == Product::Element::bf16;
  bool made =
      api_.tensor_create(&plan.x) == 0 && api_.tensor_create(&plan.y) == 0 &&
      api_.filter_create(&plan.w) == 0 && api_.convolution_create(&plan.convolution) == 0 &&
      api_.tensor_set(plan.x, format, type, n(c.batch), n(c.in), n(c.height), n(c.width)) == 0 &&
      api_.tensor_set(plan.y, format, type, n(c.batch), n(c.out), n(c.rows), n(c.columns)) == 0 &&
      api_.filter_set(plan.w, type, format, n(c.out), n(c.in / c.groups), n(c.kernel[0]),
                      n(c.kernel[1])) == 0 &&
      api_.convolution_set(plan.convolution, n(c.padding[0]), n(c.padding[1]), n(c.stride[0]),
                           n(c.stride[1]), n(c.dilation[0]), n(c.dilation[1]), kCrossCorrelation,
                           type == kDouble ? kDouble : kFloat) == 0 &&
      api_.convolution_groups(plan.convolution, n(c.groups)) == 0 &&
      api_.convolution_math(plan.convolution, narrow ? kTensorMath : kFmaMath) == 0;
  CudnnApi::Choice choices[kMostChoices];
  int count = 0;
  if (made) {
    switch (c.part) {
      case Convolution::Part::forward:
        made = api_.choose_forward(handle_, plan.x, plan.w, plan.convolution, plan.y, kMostChoices,
                                   &count, choices) == 0;
        break;
      case Convolution::Part::input_grad:
        made = api_.choose_input(handle_, plan.w, plan.y, plan.convolution, plan.x, kMostChoices,
                                 &count, choices) == 0;
        break;
      case Convolution::Part::weight_grad:
        made = api_.choose_weight(handle_, plan.x, plan.y, plan.convolution, plan.w, kMostChoices,
                                  &count, choices) == 0;
        break;
    }
  }
  // The first is the one that the library expects to be the fastest.
  for (int i = 0; made && i < count; ++i) {
    const CudnnApi::Choice& choice = choices[i];
    if (choice.status != 0 || choice.deterministic != 1 || choice.memory > kMostWorkspace) continue;
    if (!narrow && !is_exact(c.part, choice)) continue;
    if (api_.convolution_math(plan.convolution, narrow ? choice.math : kFmaMath) != 0) continue;
    plan.algorithm = choice.algorithm;
    plan.memory = choice.memory;
    plan.fine = true;
    return plan;
  }
  drop(plan);
  return {};
}

bool Cudnn::has_workspace(size_t bytes) {
  if (bytes <= workspace_bytes_) return true;
  if (workspace_ != 0) release_(workspace_);
  workspace_ = allocate_(bytes);
  workspace_bytes_ = workspace_ == 0 ? 0 : bytes;
  return workspace_ != 0;
}

bool Cudnn::convolve(const Convolution& c) {
  if (handle_ == nullptr) return false;
  const Key key = key_of(c);
  auto place = plans_.find(key);
  if (place == plans_.end()) {
    if (plans_.size() >= kMostPlans) {
      for (const auto& each : plans_) drop(each.second);
      plans_.clear();
    }
    place = plans_.emplace(key, planned(c)).first;
  }
  const Plan& plan = place->second;
  if (!plan.fine || !has_workspace(plan.memory)) return false;
  const float one = 1, zero = 0;
  const double wide_one = 1, wide_zero = 0;
  const bool wide = c.element == Product::Element::f64;
  const void* alpha = wide ? static_cast<const void*>(&wide_one) : &one;
  const void* beta = wide ? static_cast<const void*>(&wide_zero) : &zero;
  auto* workspace = reinterpret_cast<void*>(workspace_);
  switch (c.part) {
    case Convolution::Part::forward:
      return api_.forward(handle_, alpha, plan.x, c.x, plan.w, c.weight, plan.convolution,
                          plan.algorithm, workspace, plan.memory, beta, plan.y, c.y) == 0;
    case Convolution::Part::input_grad:
      return api_.input(handle_, alpha, plan.w, c.weight, plan.y, c.y, plan.convolution,
                        plan.algorithm, workspace, plan.memory, beta, plan.x, c.x) == 0;
    default:
      return api_.weight(handle_, alpha, plan.x, c.x, plan.y, c.y, plan.convolution, plan.algorithm,
                         workspace, plan.memory, beta, plan.w, c.weight) == 0;
  }
}

}  // namespace kiln::gpu
