// Products of matrices by NVIDIA's cuBLASLt, where it is installed. Internal.
//
// The library is opened when a product is wanted for the first time; nothing of it is needed to
// build. Without it, and for what it does not take, the backend's own kernels compute.
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
struct CublasLtApi {
  using Handle = struct CublasLtHandleOf*;
  using Operation = struct CublasLtOperationOf*;
  using Matrix = struct CublasLtMatrixOf*;
  using Preference = struct CublasLtPreferenceOf*;
  struct Algorithm {
    uint64_t data[8];
  };
  struct Heuristic {
    Algorithm algorithm;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
  };
  int (*create)(Handle*) = nullptr;
  int (*operation_create)(Operation*, int compute, int scale) = nullptr;
  int (*operation_set)(Operation, int, const void*, size_t) = nullptr;
  int (*operation_destroy)(Operation) = nullptr;
  int (*matrix_create)(Matrix*, int, uint64_t rows, uint64_t columns, int64_t step) = nullptr;
  int (*matrix_set)(Matrix, int, const void*, size_t) = nullptr;
  int (*matrix_destroy)(Matrix) = nullptr;
  int (*preference_create)(Preference*) = nullptr;
  int (*preference_set)(Preference, int, const void*, size_t) = nullptr;
  int (*preference_destroy)(Preference) = nullptr;
  int (*heuristic)(Handle, Operation, Matrix, Matrix, Matrix, Matrix, Preference, int, Heuristic*,
                   int*) = nullptr;
  int (*multiply)(Handle, Operation, const void* alpha, const void* a, Matrix, const void* b,
                  Matrix, const void* beta, const void* c, Matrix, void* d, Matrix,
                  const Algorithm*, void* workspace, size_t, CuStream) = nullptr;
  std::string absence;  // why the functions are not there; empty where they are
};
// From $KILN_CUBLASLT, or libcublasLt.so.13 or .12 where the loader or $KILN_CUDA_LIBRARIES has it.
const CublasLtApi& cublaslt_api();

// A device's products. Its context is the calling thread's.
class CublasLt {
 public:
  // `allocate` gives memory of the device for good, or 0.
  explicit CublasLt(std::function<CuAddress(size_t)> allocate);
  bool is_there() const { return handle_ != nullptr; }
  // Enqueues the product; false where the library does not take it.
  bool multiply(const Product& product, CuStream stream);

 private:
  // What a product's plan hangs on.
  using Key = std::array<int64_t, 15>;
  struct KeyHash {
    size_t operator()(const Key& key) const;
  };
  struct Plan {
    CublasLtApi::Operation operation = nullptr;  // null: not to be had
    CublasLtApi::Matrix a = nullptr, b = nullptr, out = nullptr;
    CublasLtApi::Algorithm algorithm{};
  };
  static Key key_of(const Product& product);
  Plan planned(const Product& product, const Key& key);
  void drop(const Plan& plan);

  const CublasLtApi& api_;
  CublasLtApi::Handle handle_ = nullptr;
  CuAddress workspace_ = 0;
  size_t workspace_bytes_ = 0;
  std::unordered_map<Key, Plan, KeyHash> plans_;
};

}  // namespace kiln::gpu
