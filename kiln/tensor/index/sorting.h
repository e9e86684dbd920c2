// What is found by order. Tensor's methods of the same names say more.
#pragma once

#include "kiln/tensor/tensor.h"

namespace kiln {

inline std::pair<Tensor, Tensor> sort(const Tensor& x, int64_t dim = -1, bool descending = false) {
  return x.sort(dim, descending);
}
inline Tensor argsort(const Tensor& x, int64_t dim = -1, bool descending = false) {
  return x.argsort(dim, descending);
}
inline std::pair<Tensor, Tensor> topk(const Tensor& x, int64_t k, int64_t dim = -1,
                                      bool largest = true) {
  return x.topk(k, dim, largest);
}
inline std::pair<Tensor, Tensor> kthvalue(const Tensor& x, int64_t k, int64_t dim = -1,
                                          bool keepdim = false) {
  return x.kthvalue(k, dim, keepdim);
}
// Sorted along dim 0.
Tensor msort(const Tensor& x);

// Where each value [.., m] belongs in the ascending rows of `sorted` [.., n], or in its only row
// [n]: the first place that keeps the order or, with `right`, the last one. i64, or i32 with
// `out_int32`. `sorter` (undefined: none) holds indices that sort each row. NaN belongs at the end.
Tensor searchsorted(const Tensor& sorted, const Tensor& values, bool right = false,
                    bool out_int32 = false, const Tensor& sorter = {});
Tensor searchsorted(const Tensor& sorted, Scalar value, bool right = false, bool out_int32 = false,
                    const Tensor& sorter = {});
// The same with one row of boundaries.
Tensor bucketize(const Tensor& x, const Tensor& boundaries, bool right = false,
                 bool out_int32 = false);
Tensor bucketize(Scalar x, const Tensor& boundaries, bool right = false, bool out_int32 = false);

}  // namespace kiln
