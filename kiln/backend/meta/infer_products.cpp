#include "kiln/backend/meta/infer.h"

namespace kiln::infer {

Shape matmul(const Shape& a, const Shape& b) {
  const auto batch = [](const Shape& x) {
    Shape out;
    for (int d = 0; d + 2 < x.rank(); ++d) out.push_back(x[d]);
    return out;
  };
  Shape out = broadcast_shapes("matmul", batch(a), batch(b));
  out.push_back(a[a.rank() - 2]);
  out.push_back(b[b.rank() - 1]);
  return out;
}

Shape linear(Shape x, int64_t out) {
  x.back() = out;
  return x;
}

DType statistics(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16 ? DType::f32 : dtype;
}

}  // namespace kiln::infer
