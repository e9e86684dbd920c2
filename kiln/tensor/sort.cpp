// sort and what is picked from a sorted row.
#include <cmath>

#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln {

using namespace detail;

namespace {

using ValuesAndIndices = std::pair<Tensor, Tensor>;

ValuesAndIndices sorted(const char* op, const Tensor& x, int64_t dim, bool descending) {
  const Value& value = value_of(op, x);
  const int d = normalize_dim(op, dim, shape_of(value).rank());
  if (shape_of(value).rank() == 0) {
    return {x.clone(), wrap(Dispatch::int_full(Shape{}, 0, i64, value.inner->device()))};
  }
  switch (kind_of_value(value)) {
    case Kind::floating: {
      auto [values, indices] = AD::float_sort(value, d, descending);
      return {wrap(std::move(values)), wrap(std::move(indices))};
    }
    case Kind::integer:
    case Kind::boolean: {
      const Value ints = kind_of_value(value) == Kind::boolean ? cast(value, u8) : value;
      Tensor indices = wrap(Dispatch::int_argsort(ints.inner, d, descending));
      return {x.gather(d, indices), indices};
    }
    default:
      throw_wrong_dtype(op, dtype_of_value(value), "a floating point, integer or bool tensor");
  }
}

// The size of a dim that something is picked from; a 0-d tensor is one element.
int64_t row_length(const char* op, const Tensor& x, int64_t dim) {
  const Shape& shape = shape_of(value_of(op, x));
  const int d = normalize_dim(op, dim, shape.rank());
  return shape.rank() == 0 ? 1 : shape[d];
}

// Element `place` of each row of what was sorted.
ValuesAndIndices pick(const ValuesAndIndices& from, int64_t place, int64_t dim, bool keepdim) {
  const auto one = [&](const Tensor& x) {
    if (x.dim() == 0) return x;
    const Tensor row = x.narrow(dim, place, 1);
    return keepdim ? row : row.squeeze(dim);
  };
  return {one(from.first), one(from.second)};
}

void check_row(const char* op, const Tensor& x, int64_t n) {
  if (n == 0) {
    throw_error<IndexError>(op, ": has no value over nothing; got shape ", x.shape(),
                            "; expected at least one element along the dim");
  }
}

bool may_hold_nan(const Tensor& x) { return is_floating_point(x.dtype()); }

// In ascending order NaN stands last. Each row's place is the middle of its numbers, or where its
// first NaN is.
ValuesAndIndices median_along(const char* op, const Tensor& x, int64_t dim, bool keepdim,
                              bool skip_nan) {
  const int64_t n = row_length(op, x, dim);
  check_row(op, x, n);
  const ValuesAndIndices row = sorted(op, x, dim, false);
  if (!may_hold_nan(x) || x.dim() == 0) return pick(row, (n - 1) / 2, dim, keepdim);
  const Tensor missing = row.first.detach().isnan().to(i64).sum(dim, true);
  const Tensor numbers = missing.mul(-1).add(n);
  // All NaN: the first of them.
  const Tensor middle = skip_nan ? numbers.sub(1).clamp(0).floor_divide(2)
                                 : where(missing.gt(0), numbers, full_like(numbers, (n - 1) / 2));
  ValuesAndIndices out = {row.first.gather(dim, middle), row.second.gather(dim, middle)};
  if (keepdim) return out;
  return {out.first.squeeze(dim), out.second.squeeze(dim)};
}

}  // namespace

std::pair<Tensor, Tensor> Tensor::sort(int64_t dim, bool descending) const {
  return sorted("sort", *this, dim, descending);
}

Tensor Tensor::argsort(int64_t dim, bool descending) const {
  return sorted("argsort", detach(), dim, descending).second;
}

std::pair<Tensor, Tensor> Tensor::topk(int64_t k, int64_t dim, bool largest) const {
  const int64_t n = row_length("topk", *this, dim);
  if (k < 0 || k > n) {
    throw_error<IndexError>("topk: k is out of range; got ", k, "; expected 0 to ", n,
                            ", the size of the dim");
  }
  auto [values, indices] = sorted("topk", *this, dim, largest);
  if (values.dim() == 0) return {values, indices};
  return {values.narrow(dim, 0, k).contiguous(), indices.narrow(dim, 0, k).contiguous()};
}

std::pair<Tensor, Tensor> Tensor::kthvalue(int64_t k, int64_t dim, bool keepdim) const {
  const int64_t n = row_length("kthvalue", *this, dim);
  if (k < 1 || k > n) {
    throw_error<IndexError>("kthvalue: k is out of range; got ", k, "; expected 1 to ", n,
                            ", the size of the dim");
  }
  return pick(sorted("kthvalue", *this, dim, false), k - 1, dim, keepdim);
}

Tensor Tensor::median() const {
  if (numel() == 0 && may_hold_nan(*this)) return full_like(sum(), std::nan(""));
  return reshape({-1}).median(0).first;
}
std::pair<Tensor, Tensor> Tensor::median(int64_t dim, bool keepdim) const {
  return median_along("median", *this, dim, keepdim, false);
}
Tensor Tensor::nanmedian() const {
  if (numel() == 0) return median();
  return reshape({-1}).nanmedian(0).first;
}
std::pair<Tensor, Tensor> Tensor::nanmedian(int64_t dim, bool keepdim) const {
  return median_along("nanmedian", *this, dim, keepdim, true);
}

}  // namespace kiln
