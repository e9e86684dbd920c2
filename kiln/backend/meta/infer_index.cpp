#include "kiln/backend/meta/infer.h"

namespace kiln::infer {

Shape resized(Shape x, int dim, int64_t n) {
  x[dim] = n;
  return x;
}

Shape cat(std::span<const MetaHandle> parts, int dim) {
  Shape out = parts[0]->shape();
  out[dim] = 0;
  for (const MetaHandle& part : parts) out[dim] += part->shape()[dim];
  return out;
}

}  // namespace kiln::infer
