// OpenCL's functions, from the ICD loader that this machine has. Internal.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <string>

#include <CL/cl.h>

namespace kiln::gpu {

#define KILN_OPENCL_FUNCTIONS(X) \
  X(clGetPlatformIDs)            \
  X(clGetPlatformInfo)           \
  X(clGetDeviceIDs)              \
  X(clGetDeviceInfo)             \
  X(clCreateContext)             \
  X(clReleaseContext)            \
  X(clCreateCommandQueue)        \
  X(clReleaseCommandQueue)       \
  X(clCreateBuffer)              \
  X(clReleaseMemObject)          \
  X(clEnqueueWriteBuffer)        \
  X(clEnqueueReadBuffer)         \
  X(clEnqueueMapBuffer)          \
  X(clEnqueueUnmapMemObject)     \
  X(clCreateProgramWithSource)   \
  X(clCreateProgramWithBinary)   \
  X(clBuildProgram)              \
  X(clGetProgramBuildInfo)       \
  X(clGetProgramInfo)            \
  X(clReleaseProgram)            \
  X(clCreateKernel)              \
  X(clReleaseKernel)             \
  X(clSetKernelArg)              \
  X(clEnqueueNDRangeKernel)      \
  X(clEnqueueMarkerWithWaitList) \
  X(clGetEventInfo)              \
  X(clGetEventProfilingInfo)     \
  X(clWaitForEvents)             \
  X(clReleaseEvent)              \
  X(clFlush)                     \
  X(clFinish)

struct OpenClApi {
#define KILN_OPENCL_POINTER(name) decltype(&::name) name = nullptr;
  KILN_OPENCL_FUNCTIONS(KILN_OPENCL_POINTER)
#undef KILN_OPENCL_POINTER
  std::string absence;  // why the functions are not there; empty where they are
};

// Opened once; never closed, since drivers have threads.
const OpenClApi& opencl_api();

// "CL_OUT_OF_RESOURCES", or the number.
std::string name_of_opencl_error(cl_int error);

}  // namespace kiln::gpu
