// Functions as methods: x.repeat({2, 1}) is repeat(x, {2, 1}).
#include "kiln/tensor/creation.h"
#include "kiln/tensor/elementwise/comparison.h"
#include "kiln/tensor/elementwise/in_place.h"
#include "kiln/tensor/elementwise/pointwise.h"
#include "kiln/tensor/index/advanced_index.h"
#include "kiln/tensor/index/scatter.h"
#include "kiln/tensor/linalg/products.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/reduce/cumulative.h"
#include "kiln/tensor/reduce/statistics.h"
#include "kiln/tensor/sequences.h"
#include "kiln/tensor/shape/rearranging.h"
#include "kiln/tensor/shape/view_in_place.h"
#include "kiln/tensor/shape/views.h"

namespace kiln {

Tensor Tensor::repeat(const Shape& times) const { return kiln::repeat(*this, times); }
Tensor Tensor::tile(const Shape& times) const { return kiln::tile(*this, times); }
Tensor Tensor::repeat_interleave(int64_t repeats, std::optional<int64_t> dim) const {
  return kiln::repeat_interleave(*this, repeats, dim);
}
Tensor Tensor::roll(const Shape& shifts, const Dims& dims) const {
  return kiln::roll(*this, shifts, dims);
}
Tensor Tensor::movedim(const Dims& source, const Dims& destination) const {
  return kiln::movedim(*this, source, destination);
}
Tensor Tensor::swapaxes(int64_t dim0, int64_t dim1) const {
  return kiln::swapaxes(*this, dim0, dim1);
}
Tensor Tensor::rot90(int64_t k, const Dims& dims) const { return kiln::rot90(*this, k, dims); }
Tensor Tensor::unflatten(int64_t dim, const Shape& sizes) const {
  return kiln::unflatten(*this, dim, sizes);
}
Tensor Tensor::unfold(int64_t dim, int64_t size, int64_t step) const {
  return kiln::unfold(*this, dim, size, step);
}
Tensor Tensor::diag(int64_t diagonal) const { return kiln::diag(*this, diagonal); }
Tensor Tensor::diagonal(int64_t offset, int64_t dim1, int64_t dim2) const {
  return kiln::diagonal(*this, offset, dim1, dim2);
}
Tensor Tensor::tril(int64_t diagonal) const { return kiln::tril(*this, diagonal); }
Tensor Tensor::triu(int64_t diagonal) const { return kiln::triu(*this, diagonal); }
Tensor& Tensor::squeeze_() { return kiln::squeeze_(*this); }
Tensor& Tensor::unsqueeze_(int64_t dim) { return kiln::unsqueeze_(*this, dim); }
Tensor& Tensor::transpose_(int64_t dim0, int64_t dim1) {
  return kiln::transpose_(*this, dim0, dim1);
}
Tensor& Tensor::t_() { return kiln::t_(*this); }
Tensor& Tensor::detach_() { return kiln::detach_(*this); }
Tensor Tensor::nonzero() const { return kiln::nonzero(*this); }
Tensor Tensor::take(const Tensor& index) const { return kiln::take(*this, index); }
Tensor Tensor::masked_select(const Tensor& mask) const { return kiln::masked_select(*this, mask); }
Tensor Tensor::masked_scatter(const Tensor& mask, const Tensor& source) const {
  return kiln::masked_scatter(*this, mask, source);
}
Tensor& Tensor::masked_scatter_(const Tensor& mask, const Tensor& source) {
  return kiln::masked_scatter_(*this, mask, source);
}
Tensor& Tensor::scatter_(int64_t dim, const Tensor& index, const Tensor& src,
                         const std::string& reduce) {
  return kiln::scatter_(*this, dim, index, src, reduce);
}
Tensor& Tensor::scatter_(int64_t dim, const Tensor& index, Scalar value,
                         const std::string& reduce) {
  return kiln::scatter_(*this, dim, index, value, reduce);
}
Tensor& Tensor::scatter_add_(int64_t dim, const Tensor& index, const Tensor& src) {
  return kiln::scatter_add_(*this, dim, index, src);
}
Tensor Tensor::scatter_reduce(int64_t dim, const Tensor& index, const Tensor& src,
                              const std::string& reduce, bool include_self) const {
  return kiln::scatter_reduce(*this, dim, index, src, reduce, include_self);
}
Tensor& Tensor::scatter_reduce_(int64_t dim, const Tensor& index, const Tensor& src,
                                const std::string& reduce, bool include_self) {
  return kiln::scatter_reduce_(*this, dim, index, src, reduce, include_self);
}
Tensor Tensor::index_fill(int64_t dim, const Tensor& index, Scalar value) const {
  return kiln::index_fill(*this, dim, index, value);
}
Tensor& Tensor::index_fill_(int64_t dim, const Tensor& index, Scalar value) {
  return kiln::index_fill_(*this, dim, index, value);
}
Tensor Tensor::index_copy(int64_t dim, const Tensor& index, const Tensor& source) const {
  return kiln::index_copy(*this, dim, index, source);
}
Tensor& Tensor::index_copy_(int64_t dim, const Tensor& index, const Tensor& source) {
  return kiln::index_copy_(*this, dim, index, source);
}
Tensor& Tensor::index_add_(int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha) {
  return kiln::index_add_(*this, dim, index, source, alpha);
}
Tensor& Tensor::put_(const Tensor& index, const Tensor& source, bool accumulate) {
  return kiln::put_(*this, index, source, accumulate);
}
Tensor Tensor::addcmul(const Tensor& a, const Tensor& b, Scalar value) const {
  return kiln::addcmul(*this, a, b, value);
}
Tensor& Tensor::addcmul_(const Tensor& a, const Tensor& b, Scalar value) {
  return kiln::addcmul_(*this, a, b, value);
}
Tensor Tensor::addcdiv(const Tensor& a, const Tensor& b, Scalar value) const {
  return kiln::addcdiv(*this, a, b, value);
}
Tensor& Tensor::addcdiv_(const Tensor& a, const Tensor& b, Scalar value) {
  return kiln::addcdiv_(*this, a, b, value);
}
Tensor Tensor::lerp(const Tensor& end, const Tensor& weight) const {
  return kiln::lerp(*this, end, weight);
}
Tensor Tensor::lerp(const Tensor& end, Scalar weight) const {
  return kiln::lerp(*this, end, weight);
}
Tensor& Tensor::lerp_(const Tensor& end, const Tensor& weight) {
  return kiln::lerp_(*this, end, weight);
}
Tensor& Tensor::lerp_(const Tensor& end, Scalar weight) { return kiln::lerp_(*this, end, weight); }
Tensor Tensor::fmod(const Tensor& other) const { return kiln::fmod(*this, other); }
Tensor Tensor::fmod(Scalar other) const { return kiln::fmod(*this, other); }
Tensor Tensor::atan2(const Tensor& other) const { return kiln::atan2(*this, other); }
Tensor Tensor::clip(std::optional<Scalar> min, std::optional<Scalar> max) const {
  return kiln::clip(*this, min, max);
}
Tensor Tensor::nan_to_num(double nan, std::optional<double> posinf,
                          std::optional<double> neginf) const {
  return kiln::nan_to_num(*this, nan, posinf, neginf);
}
Tensor Tensor::isclose(const Tensor& other, double rtol, double atol, bool equal_nan) const {
  return kiln::isclose(*this, other, rtol, atol, equal_nan);
}
Tensor Tensor::dist(const Tensor& other, double p) const { return kiln::dist(*this, other, p); }
Tensor Tensor::mv(const Tensor& other) const { return kiln::mv(*this, other); }
Tensor Tensor::outer(const Tensor& other) const { return kiln::outer(*this, other); }
Tensor Tensor::addmm(const Tensor& x, const Tensor& y, Scalar beta, Scalar alpha) const {
  return kiln::addmm(*this, x, y, beta, alpha);
}
Tensor Tensor::addmv(const Tensor& x, const Tensor& y, Scalar beta, Scalar alpha) const {
  return kiln::addmv(*this, x, y, beta, alpha);
}
Tensor Tensor::baddbmm(const Tensor& x, const Tensor& y, Scalar beta, Scalar alpha) const {
  return kiln::baddbmm(*this, x, y, beta, alpha);
}
Tensor Tensor::trace() const { return kiln::trace(*this); }
Tensor Tensor::cumprod(int64_t dim) const { return kiln::cumprod(*this, dim); }
std::pair<Tensor, Tensor> Tensor::cummax(int64_t dim) const { return kiln::cummax(*this, dim); }
std::pair<Tensor, Tensor> Tensor::cummin(int64_t dim) const { return kiln::cummin(*this, dim); }
Tensor Tensor::diff(int64_t n, int64_t dim) const { return kiln::diff(*this, n, dim); }
Tensor Tensor::quantile(const Tensor& q, std::optional<int64_t> dim, bool keepdim) const {
  return kiln::quantile(*this, q, dim, keepdim);
}
Tensor Tensor::bernoulli() const { return kiln::bernoulli(*this); }

Tensor Tensor::new_empty(const Shape& shape) const { return empty(shape, options()); }
Tensor Tensor::new_zeros(const Shape& shape) const { return zeros(shape, options()); }
Tensor Tensor::new_ones(const Shape& shape) const { return ones(shape, options()); }
Tensor Tensor::new_full(const Shape& shape, Scalar value) const {
  return full(shape, value, options());
}

}  // namespace kiln
