#include "kiln/backend/gpu/runtime/opencl_api.h"

#include <dlfcn.h>

#include "kiln/core/error.h"

namespace kiln::gpu {
namespace {

OpenClApi open_api() {
  OpenClApi api;
  void* library = nullptr;
  for (const char* name : {"libOpenCL.so.1", "libOpenCL.so"}) {
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
  }
  if (library == nullptr) {
    api.absence = "the OpenCL loader libOpenCL.so.1 is not installed (Debian: ocl-icd-libopencl1)";
    return api;
  }
#define KILN_OPENCL_LOAD(name)                                                               \
  api.name = reinterpret_cast<decltype(api.name)>(dlsym(library, #name));                    \
  if (api.name == nullptr) {                                                                 \
    api.absence = "the installed libOpenCL.so.1 is older than OpenCL 1.2: it has no " #name; \
  }
  KILN_OPENCL_FUNCTIONS(KILN_OPENCL_LOAD)
#undef KILN_OPENCL_LOAD
  return api;
}

}  // namespace

const OpenClApi& opencl_api() {
  static const OpenClApi& api = *new OpenClApi(open_api());
  return api;
}

std::string name_of_opencl_error(cl_int error) {
  switch (error) {
#define KILN_OPENCL_ERROR(name) \
  case name:                    \
    return #name;
    KILN_OPENCL_ERROR(CL_DEVICE_NOT_AVAILABLE)
    KILN_OPENCL_ERROR(CL_COMPILER_NOT_AVAILABLE)
    KILN_OPENCL_ERROR(CL_MEM_OBJECT_ALLOCATION_FAILURE)
    KILN_OPENCL_ERROR(CL_OUT_OF_RESOURCES)
    KILN_OPENCL_ERROR(CL_OUT_OF_HOST_MEMORY)
    KILN_OPENCL_ERROR(CL_BUILD_PROGRAM_FAILURE)
    KILN_OPENCL_ERROR(CL_INVALID_VALUE)
    KILN_OPENCL_ERROR(CL_INVALID_BINARY)
    KILN_OPENCL_ERROR(CL_INVALID_KERNEL_NAME)
    KILN_OPENCL_ERROR(CL_INVALID_KERNEL_ARGS)
    KILN_OPENCL_ERROR(CL_INVALID_ARG_SIZE)
    KILN_OPENCL_ERROR(CL_INVALID_WORK_GROUP_SIZE)
    KILN_OPENCL_ERROR(CL_INVALID_BUFFER_SIZE)
#undef KILN_OPENCL_ERROR
    default:
      return concat("OpenCL error ", error);
  }
}

}  // namespace kiln::gpu
