// Reference: plain readable loops in double precision, the oracle that every other backend is held
// against.
//
// Every float op reads its operands as doubles, computes in double, and rounds once when it stores
// the result in the tensor's dtype. Int ops compute in int64 and wrap to the dtype. One thread, no
// SIMD, no tricks. It implements every op of the table itself, also those that have a default, so
// that the defaults can be held against it.
#pragma once

#include "kiln/backend/backend.h"
#include "kiln/backend/host_tensor.h"

namespace kiln {

struct ReferenceTypes {
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

template <class Types, class R, class... P>
using Function = typename Return<Types, R>::Type(typename Param<Types, P>::Type...);

// Each op of the table as the table gives it; defined in this folder, one file per family.
struct ReferenceOps {
#define KILN_OP(level, name, ...) static Function<ReferenceTypes, __VA_ARGS__> name;
#include "kiln/backend/ops.def"
};

}  // namespace op

struct Reference : ReferenceTypes, op::ReferenceOps, host::Metadata {
  static std::string name(Device) { return "reference"; }
  static void seed(Device, uint64_t) {}  // random ops are functions of their stream alone
  static void sync(Device) {}            // every op has finished when it returns
};

}  // namespace kiln
