// Cpu: the fast backend for host memory. Highway kernels throughout, products of matrices
// and convolutions among them.
//
// 16-bit floats are computed in float. Results are bit-identical at any number of threads: work is
// cut into pieces that depend on shapes alone, and what pieces sum is added up in their order.
#pragma once

#include "kiln/backend/defaults.h"
#include "kiln/backend/host_tensor.h"

namespace kiln {

struct CpuTypes {
  using Device = kiln::Device;
  using FloatElem = float;
  using IntElem = int64_t;
  using BoolElem = bool;
  using FloatTensorPrimitive = HostHandle;
  using IntTensorPrimitive = HostHandle;
  using BoolTensorPrimitive = HostHandle;
  using QuantizedTensorPrimitive = QuantizedHandle;
};

namespace op {

// Each op of the table as the table gives it, defined in the folder of its family; what each
// computes stands in ops.def, what it writes to in arg.h. What a kernel does not serve, and an op
// without one, is left to the composition: return BackendDefaults<Cpu>::name(...).
struct CpuOps {
  template <class R, class... P>
  using Function = typename Return<CpuTypes, R>::Type(typename Param<CpuTypes, P>::Type...);
#define KILN_OP(level, name, ...) static Function<__VA_ARGS__> name;
#include "kiln/backend/ops.def"
};

}  // namespace op

using op::CpuOps;

struct Cpu : CpuTypes, CpuOps, host::Metadata {
  // "cpu (AVX3)": with the instruction set that the kernels use on this machine.
  static std::string name(Device device);
  static void seed(Device device, uint64_t seed);
  // Ops are done when they return.
  static void sync(Device) {}
};

}  // namespace kiln
