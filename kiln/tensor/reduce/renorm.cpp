#include "kiln/tensor/reduce/renorm.h"

#include "kiln/tensor/creation.h"
#include "kiln/tensor/elementwise/function_call.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/reduce/reductions.h"

namespace kiln {

using namespace detail;

Tensor renorm(const Tensor& x, double p, int64_t dim, double max_norm) {
  const DType dtype = parts_or_value("renorm", x).inner->dtype();
  if (!is_floating_point(dtype)) {
    throw_wrong_dtype("renorm", x.dtype(), "a floating point or complex tensor");
  }
  if (!(p > 0)) throw_error<ValueError>("renorm: expected p > 0; got ", p);
  if (!(max_norm >= 0)) throw_error<ValueError>("renorm: expected max_norm >= 0; got ", max_norm);
  if (x.dim() < 2) throw_error<ShapeError>("renorm: expected at least 2 dims; got ", x.shape());
  const int kept = normalize_dim("renorm", dim, x.dim());
  Dims others;
  for (int d = 0; d < x.dim(); ++d) {
    if (d != kept) others.push_back(d);
  }
  const DType wide = size_of(dtype) < 4 ? f32 : dtype;
  const Tensor length = norm(is_complex(x.dtype()) ? x : x.to(wide), p, others, true);
  // The small number is PyTorch's; it keeps the result below max_norm in the face of rounding.
  const Tensor factor =
      where(length.gt(max_norm), length.add(1e-7).reciprocal().mul(max_norm), ones_like(length));
  return is_complex(x.dtype()) ? x.mul(factor) : x.to(wide).mul(factor).to(dtype);
}

Tensor& renorm_(Tensor& x, double p, int64_t dim, double max_norm) {
  return write_over("renorm_", x, renorm(read_before_write("renorm_", x), p, dim, max_norm));
}

}  // namespace kiln
