// What libraries beside the played driver (fake_cuda.h) share: work in its streams, and its blocks.
// Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>

#define FAKE extern "C" __attribute__((visibility("default"))) int

// Of the driver: puts work into a stream; whether a block of its memory holds all of a range.
extern "C" void kiln_fake_cuda_enqueue(void* stream, const std::function<void()>& work);
extern "C" bool kiln_fake_cuda_holds(const void* address, size_t bytes);

namespace kiln::fake_cuda {

[[noreturn]] inline void library_violation(const char* what) {
  std::fprintf(stderr, "fake cuda: %s\n", what);
  std::abort();
}

#ifdef __aarch64__
using Half = __fp16;  // GCC 12 has no _Float16 in C++ there
#else
using Half = _Float16;
#endif

// cudaDataType and cudnnDataType_t, as one.
enum class Real : uint8_t { f32, f64, f16, bf16 };
inline size_t size_of(Real type) { return type == Real::f64 ? 8 : type == Real::f32 ? 4 : 2; }

inline double load(const void* data, int64_t i, Real type) {
  switch (type) {
    case Real::f32:
      return static_cast<const float*>(data)[i];
    case Real::f64:
      return static_cast<const double*>(data)[i];
    case Real::f16:
      return static_cast<double>(static_cast<const Half*>(data)[i]);
    default: {
      const uint32_t bits = static_cast<uint32_t>(static_cast<const uint16_t*>(data)[i]) << 16;
      float value = 0;
      std::memcpy(&value, &bits, 4);
      return value;
    }
  }
}
inline void store(void* data, int64_t i, Real type, double value) {
  switch (type) {
    case Real::f32:
      static_cast<float*>(data)[i] = static_cast<float>(value);
      break;
    case Real::f64:
      static_cast<double*>(data)[i] = value;
      break;
    case Real::f16:
      static_cast<Half*>(data)[i] = static_cast<Half>(static_cast<float>(value));
      break;
    default: {
      const auto narrow = static_cast<float>(value);
      uint32_t bits = 0;
      std::memcpy(&bits, &narrow, 4);
      bits += 0x7fffu + ((bits >> 16) & 1u);  // to nearest, ties to even; no NaN comes here
      static_cast<uint16_t*>(data)[i] = static_cast<uint16_t>(bits >> 16);
    }
  }
}

}  // namespace kiln::fake_cuda
