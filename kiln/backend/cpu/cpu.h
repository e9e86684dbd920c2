// Cpu: the fast backend for host memory. Highway kernels throughout, products of matrices
// and convolutions among them.
#pragma once

#include "kiln/backend/cpu/cpu_neural.h"

namespace kiln {

struct Cpu : CpuNeural, host::Metadata {
  using Device = kiln::Device;
  using FloatElem = float;
  using IntElem = int64_t;
  using BoolElem = bool;
  using FloatTensorPrimitive = HostHandle;
  using IntTensorPrimitive = HostHandle;
  using BoolTensorPrimitive = HostHandle;
  using QuantizedTensorPrimitive = QuantizedHandle;

  // "cpu (AVX3)": with the instruction set that the kernels use on this machine.
  static std::string name(Device device);
  static void seed(Device device, uint64_t seed);
  // Ops are done when they return.
  static void sync(Device) {}
};

}  // namespace kiln
