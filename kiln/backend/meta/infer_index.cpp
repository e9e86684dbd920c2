#include "kiln/backend/meta/infer.h"

namespace kiln::infer {

Shape resized(Shape x, int dim, int64_t n) {
  x[dim] = n;
  return x;
}

Shape with_parts(Shape x) {
  x.push_back(2);
  return x;
}

Shape without_parts(Shape x) {
  x.erase(x.rank() - 1);
  return x;
}

Shape cat(std::span<const MetaHandle> parts, int dim) {
  Shape out = parts[0]->shape();
  out[dim] = 0;
  for (const MetaHandle& part : parts) out[dim] += part->shape()[dim];
  return out;
}

}  // namespace kiln::infer
