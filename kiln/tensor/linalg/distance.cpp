// Distances between all rows of two matrices.
#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/linalg/host.h"
#include "kiln/tensor/linalg/linalg.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln {

Tensor cdist(const Tensor& x, const Tensor& y, double p, const std::string& compute_mode) {
  KILN_AUTOCAST(f32, cdist, x, y, p, compute_mode);
  constexpr const char* kOp = "cdist";
  if (x.dtype() == y.dtype() && (x.dtype() == f16 || x.dtype() == bf16)) {
    return cdist(x.to(f32), y.to(f32), p, compute_mode).to(x.dtype());
  }
  linalg::detail::check_matrix(kOp, x);
  linalg::detail::check_matrix(kOp, y);
  linalg::detail::check_like(kOp, x, y);
  if (x.size(-1) != y.size(-1)) {
    throw_error<ShapeError>(kOp, ": rows of different lengths; got ", x.shape(), " and ",
                            y.shape());
  }
  if (!(p >= 0)) throw_error<ValueError>(kOp, ": p must not be negative; got ", p);
  const bool many = x.size(-2) > 25 || y.size(-2) > 25;
  bool by_product = p == 2;
  if (compute_mode == "use_mm_for_euclid_dist_if_necessary") {
    by_product = by_product && many;
  } else if (compute_mode == "donot_use_mm_for_euclid_dist") {
    by_product = false;
  } else if (compute_mode != "use_mm_for_euclid_dist") {
    throw_error<ValueError>(kOp, ": unknown compute_mode; got '", compute_mode, "'");
  }
  const Shape batch =
      broadcast_shapes(kOp, linalg::detail::batch_shape(x), linalg::detail::batch_shape(y));
  const Tensor a = linalg::detail::expand_batch(x, batch);
  const Tensor b = linalg::detail::expand_batch(y, batch);
  using kiln::detail::value_of;
  return kiln::detail::wrap(AD::float_cdist(value_of(kOp, a), value_of(kOp, b), p, by_product));
}

}  // namespace kiln
