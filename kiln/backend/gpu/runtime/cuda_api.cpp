#include "kiln/backend/gpu/runtime/cuda_api.h"

#include <dlfcn.h>

#include "kiln/backend/gpu/runtime/cuda_library.h"
#include "kiln/core/error.h"

namespace kiln::gpu {
namespace {

CudaApi open_cuda_api() {
  CudaApi api;
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    api.absence =
        "NVIDIA's driver is not installed: there is no libcuda.so.1 (Debian: nvidia-driver; in a "
        "container: start it with the NVIDIA container toolkit)";
    return api;
  }
#define KILN_CUDA_LOAD(name, symbol, arguments)                                              \
  api.name = reinterpret_cast<decltype(api.name)>(dlsym(library, #symbol));                  \
  if (api.name == nullptr) {                                                                 \
    api.absence = "the installed NVIDIA driver is too old: its libcuda.so.1 has no " #symbol \
                  "; expected driver 525 or newer";                                          \
  }
  KILN_CUDA_FUNCTIONS(KILN_CUDA_LOAD)
#undef KILN_CUDA_LOAD
  return api;
}

// NVRTC opens a second library by its bare name, which the loader finds only where it is in a
// system's folder. It is beside the first: opened once, it is found.
void open_builtins_of(void* nvrtc) {
  const auto version = reinterpret_cast<int (*)(int*, int*)>(dlsym(nvrtc, "nvrtcVersion"));
  int major = 0, minor = 0;
  Dl_info info{};
  if (version == nullptr || version(&major, &minor) != 0) return;
  if (dladdr(reinterpret_cast<void*>(version), &info) == 0 || info.dli_fname == nullptr) return;
  const std::string path = info.dli_fname;
  const std::string name = concat("libnvrtc-builtins.so.", major, ".", minor);
  dlopen((path.substr(0, path.rfind('/') + 1) + name).c_str(), RTLD_NOW | RTLD_GLOBAL);
}

NvrtcApi open_nvrtc_api() {
  NvrtcApi api;
  void* library = open_cuda_library("KILN_NVRTC", {"libnvrtc.so.13", "libnvrtc.so.12"});
  if (library == nullptr) {
    api.absence =
        "NVRTC was not found (libnvrtc.so.13 or .12); it is in the CUDA toolkit and in the Python "
        "package nvidia-cuda-nvrtc; KILN_NVRTC may name the file";
    return api;
  }
  open_builtins_of(library);
  const auto load = [&](auto& function, const char* symbol) {
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
    if (function == nullptr) api.absence = concat("the NVRTC that was found has no ", symbol);
  };
  load(api.create, "nvrtcCreateProgram");
  load(api.compile, "nvrtcCompileProgram");
  load(api.destroy, "nvrtcDestroyProgram");
  load(api.log_size, "nvrtcGetProgramLogSize");
  load(api.log, "nvrtcGetProgramLog");
  load(api.cubin_size, "nvrtcGetCUBINSize");
  load(api.cubin, "nvrtcGetCUBIN");
  load(api.version, "nvrtcVersion");
  return api;
}

}  // namespace

const CudaApi& cuda_api() {
  static const CudaApi& api = *new CudaApi(open_cuda_api());
  return api;
}

const NvrtcApi& nvrtc_api() {
  static const NvrtcApi& api = *new NvrtcApi(open_nvrtc_api());
  return api;
}

std::string describe_cuda_error(const CudaApi& api, CuResult result) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (api.error_name(result, &name) != kCuSuccess || name == nullptr) {
    return concat("CUDA error ", result);
  }
  if (api.error_text(result, &text) != kCuSuccess || text == nullptr) return name;
  return concat(name, " (", text, ")");
}

}  // namespace kiln::gpu
