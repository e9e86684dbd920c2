#include "kiln/backend/gpu/runtime/cudnn.h"

#include <algorithm>

#include <dlfcn.h>

#include "kiln/backend/gpu/runtime/cuda_library.h"

namespace kiln::gpu {
namespace {

using cudnn::Descriptor;

constexpr int64_t kMostCudnnWorkspace = int64_t{1} << 30;
constexpr size_t kMostCudnnPlans = 4096;
constexpr size_t kMostConfigs = 24;  // that a plan is looked for among
enum : int64_t { kX = 1, kW = 2, kY = 3 };

int cudnn_type(Product::Element element) {
  switch (element) {
    case Product::Element::f64:
      return cudnn::kDouble;
    case Product::Element::f32:
      return cudnn::kFloat;
    case Product::Element::f16:
      return cudnn::kHalf;
    default:
      return cudnn::kBfloat16;
  }
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
  load(api.descriptor, "cudnnBackendCreateDescriptor");
  load(api.destroy, "cudnnBackendDestroyDescriptor");
  load(api.set, "cudnnBackendSetAttribute");
  load(api.get, "cudnnBackendGetAttribute");
  load(api.finalize, "cudnnBackendFinalize");
  load(api.execute, "cudnnBackendExecute");
  return api;
}

// Whether its results are the same in every run, and as exact as a sum of products is: not rounded
// to TF32, and not by transforms (FFT, Winograd), whose results have fewer right bits.
bool is_fit(const CudnnApi& api, const Descriptor& config, bool narrow) {
  Descriptor engine(api, cudnn::kEngine);
  CudnnApi::Descriptor place = engine.it();
  if (config.get(cudnn::kConfigEngine, cudnn::kTypeDescriptor, 1, &place) != 1) return false;
  int notes[cudnn::kNotes] = {};
  const int64_t count = engine.get(cudnn::kEngineNotes, cudnn::kTypeNote, cudnn::kNotes, notes);
  if (count < 0) return false;
  return std::ranges::none_of(
      std::span(notes).first(static_cast<size_t>(std::min<int64_t>(count, cudnn::kNotes))),
      [&](int note) {
        switch (note) {
          case cudnn::kNoteTensorCore:
          case cudnn::kNoteDownConvert:
            return !narrow;
          case cudnn::kNoteReducedSums:
          case cudnn::kNoteFft:
          case cudnn::kNoteNondeterministic:
          case cudnn::kNoteWinograd:
          case cudnn::kNoteWinograd4:
          case cudnn::kNoteWinograd6:
          case cudnn::kNoteWinograd13:
            return true;
          default:
            return false;
        }
      });
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

Cudnn::Plan Cudnn::planned(const Convolution& c) {
  Plan plan;
  const auto make = [&](cudnn::Kind kind) -> Descriptor& {
    return *plan.made.emplace_back(std::make_unique<Descriptor>(api_, kind));
  };
  const int type = cudnn_type(c.element);
  const bool wide = type == cudnn::kDouble;
  const auto tensor = [&](int64_t id, const std::array<int64_t, 4>& n) -> Descriptor& {
    const auto [a, b, h, w] = n;
    const std::array<int64_t, 4> steps = c.channels_last
                                             ? std::array<int64_t, 4>{h * w * b, 1, w * b, b}
                                             : std::array<int64_t, 4>{b * h * w, h * w, w, 1};
    const int64_t alignment = 16;
    return make(cudnn::kTensor)
        .set(cudnn::kTensorType, cudnn::kTypeDataType, 1, &type)
        .set(cudnn::kTensorDims, n)
        .set(cudnn::kTensorStrides, steps)
        .set(cudnn::kTensorId, {&id, 1})
        .set(cudnn::kTensorAlignment, {&alignment, 1})
        .finalize();
  };
  const Descriptor& x = tensor(kX, {c.batch, c.in, c.height, c.width});
  const Descriptor& w = tensor(kW, {c.out, c.in / c.groups, c.kernel[0], c.kernel[1]});
  const Descriptor& y = tensor(kY, {c.batch, c.out, c.rows, c.columns});
  const int compute = wide ? cudnn::kDouble : cudnn::kFloat;
  const int mode = cudnn::kCrossCorrelation;
  const int64_t spatial = 2;
  const Descriptor& convolution = make(cudnn::kConvolution)
                                      .set(cudnn::kSpatialDims, {&spatial, 1})
                                      .set(cudnn::kComputeType, cudnn::kTypeDataType, 1, &compute)
                                      .set(cudnn::kMode, cudnn::kTypeMode, 1, &mode)
                                      .set(cudnn::kPaddingBefore, c.padding)
                                      .set(cudnn::kPaddingBehind, c.padding)
                                      .set(cudnn::kStrides, c.stride)
                                      .set(cudnn::kDilations, c.dilation)
                                      .finalize();
  const auto [kind, first] = c.part == Convolution::Part::forward
                                 ? std::pair{cudnn::kForward, cudnn::kForwardFirst}
                             : c.part == Convolution::Part::input_grad
                                 ? std::pair{cudnn::kBackwardData, cudnn::kDataFirst}
                                 : std::pair{cudnn::kBackwardFilter, cudnn::kFilterFirst};
  const float factors[] = {1, 0};
  const double wide_factors[] = {1, 0};
  Descriptor& operation = make(kind);
  for (int i = 0; i < 2; ++i) {
    operation.set(first + i, wide ? cudnn::kTypeDouble : cudnn::kTypeFloat, 1,
                  wide ? static_cast<const void*>(wide_factors + i) : factors + i);
  }
  operation.set(first + 2, convolution).set(first + 3, w).set(first + 4, x).set(first + 5, y);
  operation.finalize();
  const Descriptor& graph = make(cudnn::kGraph)
                                .set(cudnn::kGraphHandle, cudnn::kTypeHandle, 1, &handle_)
                                .set(cudnn::kGraphOperations, operation)
                                .finalize();
  if (!graph.fine()) return {};
  for (const int heuristics : {cudnn::kModeA, cudnn::kModeFallback}) {
    Descriptor ranked(api_, cudnn::kHeuristics);
    ranked.set(cudnn::kHeuristicsGraph, graph)
        .set(cudnn::kHeuristicsMode, cudnn::kTypeHeuristicsMode, 1, &heuristics)
        .finalize();
    std::vector<std::unique_ptr<Descriptor>> configs;
    std::vector<CudnnApi::Descriptor> places;
    for (size_t i = 0; i < kMostConfigs; ++i) {
      configs.push_back(std::make_unique<Descriptor>(api_, cudnn::kEngineConfig));
      places.push_back(configs.back()->it());
    }
    const int64_t count = ranked.get(cudnn::kHeuristicsResults, cudnn::kTypeDescriptor,
                                     static_cast<int64_t>(places.size()), places.data());
    // The first is the one that the library expects to be the fastest.
    for (int64_t i = 0; i < std::min(count, static_cast<int64_t>(configs.size())); ++i) {
      auto& config = configs[static_cast<size_t>(i)];
      if (!is_fit(api_, *config, type == cudnn::kHalf || type == cudnn::kBfloat16)) continue;
      auto chosen = std::make_unique<Descriptor>(api_, cudnn::kPlan);
      chosen->set(cudnn::kPlanHandle, cudnn::kTypeHandle, 1, &handle_)
          .set(cudnn::kPlanConfig, *config)
          .finalize();
      if (chosen->get(cudnn::kPlanWorkspace, cudnn::kTypeInt64, 1, &plan.workspace) != 1) continue;
      if (plan.workspace > kMostCudnnWorkspace) continue;
      plan.made.push_back(std::move(config));
      plan.made.push_back(std::move(chosen));
      return plan;
    }
  }
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
    if (plans_.size() >= kMostCudnnPlans) plans_.clear();
    place = plans_.emplace(key, planned(c)).first;
  }
  const Plan& plan = place->second;
  if (plan.made.empty() || !has_workspace(static_cast<size_t>(plan.workspace))) return false;
  const int64_t ids[] = {kX, kW, kY};
  const void* pointers[] = {c.x, c.weight, c.y};
  Descriptor pack(api_, cudnn::kPack);
  pack.set(cudnn::kPackIds, ids)
      .set(cudnn::kPackPointers, cudnn::kTypePointer, 3, pointers)
      .set(cudnn::kPackWorkspace, cudnn::kTypePointer, 1, &workspace_)
      .finalize();
  return pack.fine() && api_.execute(handle_, plan.made.back()->it(), pack.it()) == 0;
}

}  // namespace kiln::gpu
