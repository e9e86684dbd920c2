// cat: tensors one after another along a dim.
#include <cstring>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise.h"

namespace kiln {
namespace cpu {
namespace {

HostHandle cat(std::span<const HostHandle> parts, int dim) {
  Shape shape = parts[0]->shape();
  shape[dim] = 0;
  for (const HostHandle& part : parts) shape[dim] += part->shape()[dim];
  HostHandle out = host::empty(shape, parts[0]->dtype(), parts[0]->device());
  int64_t at = 0;
  for (const HostHandle& part : parts) {
    const int64_t size = part->shape()[dim];
    if (part->numel() != 0) {
      copy_elements(*part, *host::slice(out, dim, Range{at, at + size, 1}), /*fresh=*/true);
    }
    at += size;
  }
  return out;
}

}  // namespace
}  // namespace cpu

HostHandle CpuBasic::float_cat(std::span<const HostHandle> parts, int dim) {
  return cpu::cat(parts, dim);
}
HostHandle CpuBasic::int_cat(std::span<const HostHandle> parts, int dim) {
  return cpu::cat(parts, dim);
}
HostHandle CpuBasic::bool_cat(std::span<const HostHandle> parts, int dim) {
  return cpu::cat(parts, dim);
}

}  // namespace kiln
