// Kernels that nvcc compiled when Kiln was built (script/cuda_kernels.py): libkiln_cuda_kernels.so,
// beside the plug-in, has them and one function. Internal.
#pragma once

#include <cstdint>

namespace kiln::gpu {

struct CudaImages {
  struct Kernel {
    uint64_t number;  // of the kernel's text; it is named kiln_<16 hexadecimal digits>
    uint32_t image;
  };
  const void* const* images;  // fatbins: sm_80, sm_90a and PTX
  const Kernel* kernels;      // by rising number
  uint32_t count;
};

// FNV-1a of the whole text.
inline uint64_t kernel_number(const char* text, uint64_t size) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (uint64_t i = 0; i < size; ++i) {
    hash = (hash ^ static_cast<unsigned char>(text[i])) * 0x100000001b3u;
  }
  return hash;
}

}  // namespace kiln::gpu

extern "C" const kiln::gpu::CudaImages* kiln_cuda_images();
