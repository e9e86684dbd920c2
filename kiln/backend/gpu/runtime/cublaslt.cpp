// Note [Column-major]: the library's matrices are column-major. A row-major matrix is its transpose
// in columns, so out = a b is asked for as out^T = b^T a^T, whose first operand is b.
#include "kiln/backend/gpu/runtime/cublaslt.h"

#include <algorithm>

#include <dlfcn.h>

#include "kiln/backend/gpu/runtime/cuda_library.h"

namespace kiln::gpu {
namespace {

// cudaDataType, cublasComputeType_t
enum : int { kReal32 = 0, kReal64 = 1, kReal16 = 2, kRealB16 = 14 };
enum : int { kCompute32 = 68, kCompute64 = 70 };
// Of cublasLtMatmulDescSetAttribute.
enum : int { kTransposeA = 3, kTransposeB = 4, kEpilogue = 7, kBiasPointer = 8, kBiasType = 26 };
constexpr uint32_t kEpilogueBias = 4;
// Of cublasLtMatrixLayoutSetAttribute.
enum : int { kBatchCount = 5, kBatchStep = 6 };
// Of cublasLtMatmulPreferenceSetAttribute: the alignments are a's, b's, c's and d's.
enum : int { kMostWorkspace = 1, kAlignments = 5 };

constexpr size_t kWorkspace = size_t{32} << 20;
constexpr size_t kMostPlans = 4096;

int type_of(Product::Element element) {
  switch (element) {
    case Product::Element::f64:
      return kReal64;
    case Product::Element::f32:
      return kReal32;
    case Product::Element::f16:
      return kReal16;
    default:
      return kRealB16;
  }
}
int64_t size_of(Product::Element element) {
  return element == Product::Element::f64 ? 8 : element == Product::Element::f32 ? 4 : 2;
}

// Bytes that all of an operand's matrices are aligned to.
int64_t alignment(int64_t offset, int64_t batch_step, int64_t size) {
  int64_t bytes = 256;
  while (bytes > size && (offset * size % bytes != 0 || batch_step * size % bytes != 0)) bytes /= 2;
  return bytes;
}

CublasLtApi open_cublaslt() {
  CublasLtApi api;
  void* library = open_cuda_library("KILN_CUBLASLT", {"libcublasLt.so.13", "libcublasLt.so.12"});
  if (library == nullptr) {
    api.absence =
        "cuBLASLt was not found (libcublasLt.so.13 or .12); it is in the CUDA toolkit and in the "
        "Python package nvidia-cublas; KILN_CUBLASLT may name the file";
    return api;
  }
  const auto load = [&](auto& function, const char* symbol) {
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
    if (function == nullptr) api.absence = std::string("cuBLASLt has no ") + symbol;
  };
  load(api.create, "cublasLtCreate");
  load(api.operation_create, "cublasLtMatmulDescCreate");
  load(api.operation_set, "cublasLtMatmulDescSetAttribute");
  load(api.operation_destroy, "cublasLtMatmulDescDestroy");
  load(api.matrix_create, "cublasLtMatrixLayoutCreate");
  load(api.matrix_set, "cublasLtMatrixLayoutSetAttribute");
  load(api.matrix_destroy, "cublasLtMatrixLayoutDestroy");
  load(api.preference_create, "cublasLtMatmulPreferenceCreate");
  load(api.preference_set, "cublasLtMatmulPreferenceSetAttribute");
  load(api.preference_destroy, "cublasLtMatmulPreferenceDestroy");
  load(api.heuristic, "cublasLtMatmulAlgoGetHeuristic");
  load(api.multiply, "cublasLtMatmul");
  return api;
}

}  // namespace

const CublasLtApi& cublaslt_api() {
  static const CublasLtApi& api = *new CublasLtApi(open_cublaslt());
  return api;
}

CublasLt::CublasLt(std::function<CuAddress(size_t)> allocate) : api_(cublaslt_api()) {
  if (!api_.absence.empty() || api_.create(&handle_) != 0) {
    handle_ = nullptr;
    return;
  }
  workspace_ = allocate(kWorkspace);
  workspace_bytes_ = workspace_ == 0 ? 0 : kWorkspace;
}

size_t CublasLt::KeyHash::operator()(const Key& key) const {
  uint64_t hash = 0x9e3779b97f4a7c15u;
  for (int64_t each : key) {
    hash = (hash ^ static_cast<uint64_t>(each)) * 0xff51afd7ed558ccdu;
    hash ^= hash >> 32;
  }
  return hash;
}

CublasLt::Key CublasLt::key_of(const Product& p) {
  const int64_t size = size_of(p.element);
  return {static_cast<int64_t>(p.element) * 8 + p.a.transposed * 4 + p.b.transposed * 2 +
              (p.bias != nullptr),
          p.n,
          p.m,
          p.depth,
          p.batch,
          p.a.step,
          p.b.step,
          p.a.batch_step,
          p.b.batch_step,
          alignment(p.a.offset, p.a.batch_step, size),
          alignment(p.b.offset, p.b.batch_step, size),
          alignment(p.out_offset, p.n * p.m, size),
          p.bias == nullptr ? 0 : alignment(p.bias_offset, 0, size)};
}

void CublasLt::drop(const Plan& plan) {
  if (plan.operation != nullptr) static_cast<void>(api_.operation_destroy(plan.operation));
  for (CublasLtApi::Matrix each : {plan.a, plan.b, plan.out}) {
    if (each != nullptr) static_cast<void>(api_.matrix_destroy(each));
  }
}

CublasLt::Plan CublasLt::planned(const Product& p, const Key& key) {
  Plan plan;
  const int type = type_of(p.element);
  const bool wide = p.element == Product::Element::f64;
  bool fine = api_.operation_create(&plan.operation, wide ? kCompute64 : kCompute32,
                                    wide ? kReal64 : kReal32) == 0;
  const auto set = [&](int which, auto value) {
    fine = fine && api_.operation_set(plan.operation, which, &value, sizeof value) == 0;
  };
  set(kTransposeA, static_cast<int32_t>(p.b.transposed));
  set(kTransposeB, static_cast<int32_t>(p.a.transposed));
  if (p.bias != nullptr) {
    set(kEpilogue, kEpilogueBias);
    set(kBiasType, static_cast<int32_t>(type));
  }
  const auto matrix = [&](CublasLtApi::Matrix& to, int64_t rows, int64_t columns, int64_t step,
                          int64_t batch_step) {
    fine = fine && api_.matrix_create(&to, type, static_cast<uint64_t>(rows),
                                      static_cast<uint64_t>(columns), step) == 0;
    const auto count = static_cast<int32_t>(p.batch);
    fine = fine && api_.matrix_set(to, kBatchCount, &count, sizeof count) == 0 &&
           api_.matrix_set(to, kBatchStep, &batch_step, sizeof batch_step) == 0;
  };
  const auto operand = [&](CublasLtApi::Matrix& to, const Product::Operand& o, int64_t rows,
                           int64_t columns) {
    matrix(to, o.transposed ? rows : columns, o.transposed ? columns : rows, o.step, o.batch_step);
  };
  operand(plan.a, p.a, p.n, p.depth);
  operand(plan.b, p.b, p.depth, p.m);
  matrix(plan.out, p.m, p.n, p.m, p.n * p.m);
  CublasLtApi::Preference preference = nullptr;
  fine = fine && api_.preference_create(&preference) == 0;
  const auto prefer = [&](int which, auto value) {
    fine = fine && api_.preference_set(preference, which, &value, sizeof value) == 0;
  };
  prefer(kMostWorkspace, static_cast<uint64_t>(workspace_bytes_));
  // In the library's order: its a is our b.
  const int64_t alignments[] = {key[10], key[9], key[11], key[11]};
  for (int k = 0; k < 4; ++k) prefer(kAlignments + k, static_cast<uint32_t>(alignments[k]));
  CublasLtApi::Heuristic found{};
  int count = 0;
  fine = fine &&
         api_.heuristic(handle_, plan.operation, plan.b, plan.a, plan.out, plan.out, preference, 1,
                        &found, &count) == 0 &&
         count == 1 && found.state == 0;
  if (preference != nullptr) static_cast<void>(api_.preference_destroy(preference));
  if (!fine) {
    drop(plan);
    return {};
  }
  plan.algorithm = found.algorithm;
  return plan;
}

bool CublasLt::multiply(const Product& p, CuStream stream) {
  if (handle_ == nullptr || p.batch > INT32_MAX) return false;
  const Key key = key_of(p);
  auto place = plans_.find(key);
  if (place == plans_.end()) {
    if (plans_.size() >= kMostPlans) {
      for (const auto& each : plans_) drop(each.second);
      plans_.clear();
    }
    place = plans_.emplace(key, planned(p, key)).first;
  }
  const Plan& plan = place->second;
  if (plan.operation == nullptr) return false;
  const auto address = [&](Memory memory, int64_t offset) {
    return static_cast<std::byte*>(memory) + offset * size_of(p.element);
  };
  if (p.bias != nullptr) {
    const void* bias = address(p.bias, p.bias_offset);
    if (api_.operation_set(plan.operation, kBiasPointer, &bias, sizeof bias) != 0) return false;
  }
  const float one = 1, zero = 0;
  const double wide_one = 1, wide_zero = 0;
  const bool wide = p.element == Product::Element::f64;
  void* out = address(p.out, p.out_offset);
  return api_.multiply(handle_, plan.operation, wide ? static_cast<const void*>(&wide_one) : &one,
                       address(p.b.memory, p.b.offset), plan.b, address(p.a.memory, p.a.offset),
                       plan.a, wide ? static_cast<const void*>(&wide_zero) : &zero, out, plan.out,
                       out, plan.out, &plan.algorithm, reinterpret_cast<void*>(workspace_),
                       workspace_bytes_, stream) == 0;
}

}  // namespace kiln::gpu
