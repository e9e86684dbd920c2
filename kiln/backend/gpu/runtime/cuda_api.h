// CUDA's driver API, from the libcuda.so.1 that this machine has, and NVRTC. Internal.
//
// The declarations are ours (the numbers and layouts are NVIDIA's ABI), so that nothing of CUDA is
// needed to build. Functions whose meaning changed have the suffix that cuda.h would choose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace kiln::gpu {

using CuResult = int;
using CuDevice = int;
using CuContext = struct CuContextOf*;
using CuModule = struct CuModuleOf*;
using CuFunction = struct CuFunctionOf*;
using CuStream = struct CuStreamOf*;
using CuEvent = struct CuEventOf*;
using CuAddress = unsigned long long;

enum : CuResult {
  kCuSuccess = 0,
  kCuInvalidValue = 1,
  kCuOutOfMemory = 2,
  kCuNotInitialized = 3,
  kCuStubLibrary = 34,
  kCuDeviceUnavailable = 46,
  kCuNoDevice = 100,
  kCuInvalidContext = 201,
  kCuNoBinaryForGpu = 209,
  kCuEccUncorrectable = 214,
  kCuNvlinkUncorrectable = 220,
  kCuUnsupportedPtxVersion = 222,
  kCuInvalidHandle = 400,
  kCuNotFound = 500,
  kCuNotReady = 600,
  kCuIllegalAddress = 700,
  kCuOutOfResources = 701,
  kCuLaunchFailed = 719,
  kCuDriverMismatch = 803,
};
// Of cuDeviceGetAttribute, cuMemHostAlloc, cuStreamCreate, cuEventCreate.
enum : int {
  kCuMaxThreadsPerBlock = 1,
  kCuMaxGridX = 5,
  kCuMaxGridY = 6,
  kCuMaxGridZ = 7,
  kCuMultiprocessors = 16,
  kCuComputeMajor = 75,
  kCuComputeMinor = 76,
};
inline constexpr int kCuMostLocalBytes = 8;     // of cuFuncSetAttribute
inline constexpr unsigned kCuHostPortable = 1;  // pinned for the contexts of all devices
inline constexpr unsigned kCuStreamNonBlocking = 1;
inline constexpr unsigned kCuEventDisableTiming = 2;

// name, what cuda.h calls it, its type
#define KILN_CUDA_FUNCTIONS(X)                                                                   \
  X(init, cuInit, (unsigned))                                                                    \
  X(driver_version, cuDriverGetVersion, (int*))                                                  \
  X(error_name, cuGetErrorName, (CuResult, const char**))                                        \
  X(error_text, cuGetErrorString, (CuResult, const char**))                                      \
  X(device_count, cuDeviceGetCount, (int*))                                                      \
  X(device_get, cuDeviceGet, (CuDevice*, int))                                                   \
  X(device_name, cuDeviceGetName, (char*, int, CuDevice))                                        \
  X(device_memory, cuDeviceTotalMem_v2, (size_t*, CuDevice))                                     \
  X(device_attribute, cuDeviceGetAttribute, (int*, int, CuDevice))                               \
  X(context_retain, cuDevicePrimaryCtxRetain, (CuContext*, CuDevice))                            \
  X(context_set, cuCtxSetCurrent, (CuContext))                                                   \
  X(module_load, cuModuleLoadData, (CuModule*, const void*))                                     \
  X(module_function, cuModuleGetFunction, (CuFunction*, CuModule, const char*))                  \
  X(function_set, cuFuncSetAttribute, (CuFunction, int, int))                                    \
  X(allocate, cuMemAlloc_v2, (CuAddress*, size_t))                                               \
  X(release, cuMemFree_v2, (CuAddress))                                                          \
  X(allocate_host, cuMemHostAlloc, (void**, size_t, unsigned))                                   \
  X(release_host, cuMemFreeHost, (void*))                                                        \
  X(copy_to_device, cuMemcpyHtoDAsync_v2, (CuAddress, const void*, size_t, CuStream))            \
  X(copy_to_host, cuMemcpyDtoHAsync_v2, (void*, CuAddress, size_t, CuStream))                    \
  X(launch, cuLaunchKernel,                                                                      \
    (CuFunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CuStream, \
     void**, void**))                                                                            \
  X(stream_create, cuStreamCreate, (CuStream*, unsigned))                                        \
  X(stream_synchronize, cuStreamSynchronize, (CuStream))                                         \
  X(event_create, cuEventCreate, (CuEvent*, unsigned))                                           \
  X(event_record, cuEventRecord, (CuEvent, CuStream))                                            \
  X(event_query, cuEventQuery, (CuEvent))                                                        \
  X(event_synchronize, cuEventSynchronize, (CuEvent))                                            \
  X(event_elapsed, cuEventElapsedTime, (float*, CuEvent, CuEvent))                               \
  X(event_destroy, cuEventDestroy_v2, (CuEvent))

struct CudaApi {
#define KILN_CUDA_POINTER(name, symbol, arguments) CuResult(*name) arguments = nullptr;
  KILN_CUDA_FUNCTIONS(KILN_CUDA_POINTER)
#undef KILN_CUDA_POINTER
  std::string absence;  // why the functions are not there; empty where they are
};

// Opened once; never closed.
const CudaApi& cuda_api();
// "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)".
std::string describe_cuda_error(const CudaApi& api, CuResult result);

struct NvrtcApi {
  using Program = struct NvrtcProgramOf*;
  int (*create)(Program*, const char*, const char*, int, const char* const*,
                const char* const*) = nullptr;
  int (*compile)(Program, int, const char* const*) = nullptr;
  int (*destroy)(Program*) = nullptr;
  int (*log_size)(Program, size_t*) = nullptr;
  int (*log)(Program, char*) = nullptr;
  int (*cubin_size)(Program, size_t*) = nullptr;
  int (*cubin)(Program, char*) = nullptr;
  int (*version)(int*, int*) = nullptr;
  std::string absence;
};
// From $KILN_NVRTC, or libnvrtc.so.13 or .12 where the loader or $KILN_CUDA_LIBRARIES has it.
const NvrtcApi& nvrtc_api();

}  // namespace kiln::gpu
