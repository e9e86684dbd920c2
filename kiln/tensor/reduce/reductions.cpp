#include "kiln/tensor/reduce/reductions.h"

#include <cmath>

#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/complex/complex_impl.h"
#include "kiln/tensor/complex/complex_ops.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/operands.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln {

using namespace detail;

// ---- Methods of Tensor

namespace {

Dims every_dim(const Value& x) { return all_dims(shape_of(x).rank()); }

// No dims mean all of them. A 0-d tensor may be reduced over dim 0 or -1: that changes nothing, so
// the dim is dropped.
Dims checked_dims(const char* op, const Value& x, const Dims& dims) {
  const int rank = shape_of(x).rank();
  const Dims normalized = dims.empty() ? all_dims(rank) : normalize_dims(op, dims, rank);
  return rank == 0 ? Dims{} : normalized;
}

// Extrema have no value over nothing.
void check_not_empty(const char* op, const Value& x, const Dims& dims) {
  for (int64_t d : dims) {
    if (shape_of(x)[static_cast<int>(d)] == 0) {
      throw_error<ShapeError>(op, ": cannot reduce over an empty dim; got shape ", shape_of(x),
                              ", dim ", d, "; expected at least one element");
    }
  }
}

Value as_float(const char* op, const Value& x) {
  if (kind_of_value(x) != Kind::floating) {
    throw_wrong_dtype(op, dtype_of_value(x), "a floating point tensor, try to(f32)");
  }
  return x;
}

// In f32 at least: squares of half-precision numbers soon leave their range.
Value widened(const char* op, const Value& x) {
  const DType dtype = dtype_of_value(as_float(op, x));
  return cast(x, dtype == f16 || dtype == bf16 ? f32 : dtype);
}

// sqrt(x), whose gradient is taken as 0 where x is 0: there every square in the sum is at its
// minimum.
Value root_of_squares(const Value& x) {
  if (!x.node || !autodiff::is_recording<Dispatch>()) return AD::float_sqrt(x);
  const ErasedTensor zero = AD::float_equal_scalar(x, Scalar(0.0));
  const Value root = AD::float_sqrt(AD::float_mask_fill(x, zero, Scalar(1.0)));
  return AD::float_mask_fill(root, zero, Scalar(0.0));
}

Tensor sum_over(const Value& x, const Dims& dims, bool keepdim) {
  const Kind kind = kind_of_value(x);
  if (kind == Kind::floating) return wrap(AD::float_sum(x, dims, keepdim));
  if (kind == Kind::boolean) return wrap(Dispatch::bool_count(x.inner, dims, keepdim));
  const Value numbers = kind == Kind::integer ? x : cast(x, i64);  // refuses other kinds
  return wrap(Dispatch::int_sum(numbers.inner, dims, keepdim));
}

Tensor prod_over(const Value& x, const Dims& dims, bool keepdim) {
  if (kind_of_value(x) == Kind::floating) return wrap(AD::float_prod(x, dims, keepdim));
  return wrap(Dispatch::int_prod(cast(x, i64).inner, dims, keepdim));
}

Tensor extremum(const char* op, const Value& x, const Dims& dims, bool keepdim, bool largest) {
  check_not_empty(op, x, dims);
  switch (kind_of_value(x)) {
    case Kind::floating:
      return wrap(largest ? AD::float_amax(x, dims, keepdim) : AD::float_amin(x, dims, keepdim));
    case Kind::integer:
      return wrap(largest ? Dispatch::int_amax(x.inner, dims, keepdim)
                          : Dispatch::int_amin(x.inner, dims, keepdim));
    case Kind::boolean:
      return wrap(largest ? Dispatch::bool_any(x.inner, dims, keepdim)
                          : Dispatch::bool_all(x.inner, dims, keepdim));
    default:
      throw_wrong_dtype(op, dtype_of_value(x), "a floating point, integer or bool tensor");
  }
}

ErasedTensor arg_extremum(const char* op, const Value& x, int dim, bool keepdim, bool largest) {
  if (shape_of(x).rank() == 0) return Dispatch::int_full(Shape{}, 0, i64, x.inner->device());
  check_not_empty(op, x, Dims{dim});
  if (kind_of_value(x) == Kind::floating) {
    return largest ? Dispatch::float_argmax(x.inner, dim, keepdim)
                   : Dispatch::float_argmin(x.inner, dim, keepdim);
  }
  if (kind_of_value(x) == Kind::quantized) {
    throw_wrong_dtype(op, DType::q8, "a floating point, integer or bool tensor");
  }
  const Value ints = kind_of_value(x) == Kind::boolean ? cast(x, u8) : x;
  return largest ? Dispatch::int_argmax(ints.inner, dim, keepdim)
                 : Dispatch::int_argmin(ints.inner, dim, keepdim);
}

std::pair<Tensor, Tensor> with_indices(const char* op, const Tensor& x, int64_t dim, bool keepdim,
                                       bool largest) {
  const Value& value = value_of(op, x);
  const int d = normalize_dim(op, dim, shape_of(value).rank());
  Tensor index = wrap(arg_extremum(op, value, d, true, largest));
  if (shape_of(value).rank() == 0) return {x.clone(), index};
  Tensor values = x.gather(d, index);
  if (keepdim) return {values, index};
  return {values.squeeze(d), index.squeeze(d)};
}

Tensor flat_arg_extremum(const char* op, const Tensor& x, bool largest) {
  if (shape_of(value_of(op, x)).numel() == 0) {
    throw_error<ShapeError>(op, ": has no value over nothing; got shape ", x.shape(),
                            "; expected at least one element");
  }
  const Value flat = value_of(op, x.detach().reshape({-1}));
  return wrap(arg_extremum(op, flat, 0, false, largest));
}

}  // namespace

Tensor Tensor::sum() const {
  if (has_complex(*this)) [[unlikely]]
    return complex_ops::sum(*this, {}, false);
  const Value& x = value_of("sum", *this);
  return sum_over(x, every_dim(x), false);
}
Tensor Tensor::sum(const Dims& dims, bool keepdim) const {
  if (has_complex(*this)) [[unlikely]]
    return complex_ops::sum(*this, dims, keepdim);
  const Value& x = value_of("sum", *this);
  return sum_over(x, checked_dims("sum", x, dims), keepdim);
}

Tensor Tensor::mean() const {
  if (has_complex(*this)) [[unlikely]]
    return complex_ops::mean(*this, {}, false);
  const Value& x = value_of("mean", *this);
  return wrap(AD::float_mean(as_float("mean", x), every_dim(x), false));
}
Tensor Tensor::mean(const Dims& dims, bool keepdim) const {
  if (has_complex(*this)) [[unlikely]]
    return complex_ops::mean(*this, dims, keepdim);
  const Value& x = value_of("mean", *this);
  return wrap(AD::float_mean(as_float("mean", x), checked_dims("mean", x, dims), keepdim));
}

Tensor Tensor::prod() const {
  KILN_AUTOCAST(
      f32, [](const Tensor& x) { return x.prod(); }, *this);
  if (has_complex(*this)) [[unlikely]]
    return complex_ops::prod(reshape({-1}), 0, false);
  const Value& x = value_of("prod", *this);
  return prod_over(x, every_dim(x), false);
}
Tensor Tensor::prod(int64_t dim, bool keepdim) const {
  const auto again = [=](const Tensor& x) { return x.prod(dim, keepdim); };
  KILN_AUTOCAST(f32, again, *this);
  if (has_complex(*this)) [[unlikely]]
    return complex_ops::prod(*this, dim, keepdim);
  const Value& x = value_of("prod", *this);
  return prod_over(x, checked_dims("prod", x, Dims{dim}), keepdim);
}

Tensor Tensor::var() const { return var(Dims{}); }
Tensor Tensor::var(const Dims& dims, double correction, bool keepdim) const {
  if (has_complex(*this)) [[unlikely]]
    return complex_ops::var(*this, dims, correction, keepdim);
  const Value& x = value_of("var", *this);
  return wrap(AD::float_var(as_float("var", x), checked_dims("var", x, dims), correction, keepdim));
}
Tensor Tensor::std() const { return std(Dims{}); }
Tensor Tensor::std(const Dims& dims, double correction, bool keepdim) const {
  if (has_complex(*this)) [[unlikely]] {
    return wrap(
        root_of_squares(value_of("std", complex_ops::var(*this, dims, correction, keepdim))));
  }
  const Value& x = value_of("std", *this);
  const Value squares =
      AD::float_var(widened("std", x), checked_dims("std", x, dims), correction, keepdim);
  return wrap(cast(root_of_squares(squares), dtype_of_value(x)));
}

Tensor Tensor::max() const {
  const Value& x = value_of("max", *this);
  return extremum("max", x, every_dim(x), false, true);
}
Tensor Tensor::min() const {
  const Value& x = value_of("min", *this);
  return extremum("min", x, every_dim(x), false, false);
}
std::pair<Tensor, Tensor> Tensor::max(int64_t dim, bool keepdim) const {
  return with_indices("max", *this, dim, keepdim, true);
}
std::pair<Tensor, Tensor> Tensor::min(int64_t dim, bool keepdim) const {
  return with_indices("min", *this, dim, keepdim, false);
}
Tensor Tensor::amax(const Dims& dims, bool keepdim) const {
  const Value& x = value_of("amax", *this);
  return extremum("amax", x, checked_dims("amax", x, dims), keepdim, true);
}
Tensor Tensor::amin(const Dims& dims, bool keepdim) const {
  const Value& x = value_of("amin", *this);
  return extremum("amin", x, checked_dims("amin", x, dims), keepdim, false);
}

Tensor Tensor::argmax() const { return flat_arg_extremum("argmax", *this, true); }
Tensor Tensor::argmax(int64_t dim, bool keepdim) const {
  const Value& x = value_of("argmax", *this);
  return wrap(
      arg_extremum("argmax", x, normalize_dim("argmax", dim, shape_of(x).rank()), keepdim, true));
}
Tensor Tensor::argmin() const { return flat_arg_extremum("argmin", *this, false); }
Tensor Tensor::argmin(int64_t dim, bool keepdim) const {
  const Value& x = value_of("argmin", *this);
  return wrap(
      arg_extremum("argmin", x, normalize_dim("argmin", dim, shape_of(x).rank()), keepdim, false));
}

Tensor Tensor::any() const {
  if (has_complex(*this)) [[unlikely]]
    return to(bool_).any();
  const Value x = cast(value_of("any", *this), bool_);
  return wrap(Dispatch::bool_any(x.inner, every_dim(x), false));
}
Tensor Tensor::any(int64_t dim, bool keepdim) const {
  if (has_complex(*this)) [[unlikely]]
    return to(bool_).any(dim, keepdim);
  const Value x = cast(value_of("any", *this), bool_);
  return wrap(Dispatch::bool_any(x.inner, checked_dims("any", x, Dims{dim}), keepdim));
}
Tensor Tensor::all() const {
  if (has_complex(*this)) [[unlikely]]
    return to(bool_).all();
  const Value x = cast(value_of("all", *this), bool_);
  return wrap(Dispatch::bool_all(x.inner, every_dim(x), false));
}
Tensor Tensor::all(int64_t dim, bool keepdim) const {
  if (has_complex(*this)) [[unlikely]]
    return to(bool_).all(dim, keepdim);
  const Value x = cast(value_of("all", *this), bool_);
  return wrap(Dispatch::bool_all(x.inner, checked_dims("all", x, Dims{dim}), keepdim));
}

Tensor Tensor::cumsum(int64_t dim) const {
  if (has_complex(*this)) [[unlikely]] {
    const int d = parts_dim("cumsum", *this, dim);
    if (this->dim() == 0) return clone();
    return through_parts(*this, [&](const Tensor& p) { return p.cumsum(d); });
  }
  const Value& x = value_of("cumsum", *this);
  const int d = normalize_dim("cumsum", dim, shape_of(x).rank());
  if (shape_of(x).rank() == 0) return kind_of_value(x) == Kind::floating ? clone() : to(i64);
  if (kind_of_value(x) == Kind::floating) return wrap(AD::float_cumsum(x, d));
  return wrap(Dispatch::int_cumsum(cast(x, i64).inner, d));
}

Tensor Tensor::logsumexp(const Dims& dims, bool keepdim) const {
  if (has_complex(*this)) [[unlikely]]
    return complex_ops::logsumexp(*this, dims, keepdim);
  const Value& given = value_of("logsumexp", *this);
  const bool whole = kind_of_value(given) == Kind::integer || kind_of_value(given) == Kind::boolean;
  const Value x = whole ? cast(given, default_dtype()) : given;
  return wrap(
      AD::float_logsumexp(as_float("logsumexp", x), checked_dims("logsumexp", x, dims), keepdim));
}

Tensor Tensor::norm() const {
  if (has_complex(*this)) [[unlikely]]
    return parts_of(*this).norm();
  const Value& x = value_of("norm", *this);
  const Value squares = AD::float_sum(AD::float_square(widened("norm", x)), every_dim(x), false);
  return wrap(cast(root_of_squares(squares), dtype_of_value(x)));
}

// ---- Functions

namespace {

bool is_half(DType dtype) { return dtype == f16 || dtype == bf16; }

Tensor truth(const char* op, const Tensor& x, const Dims& dims, bool keepdim, bool every) {
  const Value bools = cast(value_of(op, x), bool_);
  const Dims d = reduced_dims(op, bools, dims);
  const Tensor out = wrap(every ? Dispatch::bool_all(bools.inner, d, keepdim)
                                : Dispatch::bool_any(bools.inner, d, keepdim));
  return x.dtype() == u8 ? out.to(u8) : out;
}

}  // namespace

Tensor nansum(const Tensor& x, const Dims& dims, bool keepdim) {
  const Value& value = value_of("nansum", x);
  if (kind_of_value(value) != Kind::floating) return x.sum(dims, keepdim);
  return wrap(AD::float_nansum(value, reduced_dims("nansum", value, dims), keepdim));
}

Tensor nanmean(const Tensor& x, const Dims& dims, bool keepdim) {
  const Tensor numbers = wrap(Value{floats_of("nanmean", x).inner}).isnan().logical_not();
  const Tensor count = numbers.sum(dims, keepdim);
  return nansum(x, dims, keepdim).div(count.to(x.dtype()));
}

std::pair<Tensor, Tensor> var_mean(const Tensor& x, const Dims& dims, double correction,
                                   bool keepdim) {
  return {x.var(dims, correction, keepdim), x.mean(dims, keepdim)};
}
std::pair<Tensor, Tensor> std_mean(const Tensor& x, const Dims& dims, double correction,
                                   bool keepdim) {
  return {x.std(dims, correction, keepdim), x.mean(dims, keepdim)};
}

Tensor norm(const Tensor& x, double p, const Dims& dims, bool keepdim) {
  if (x.defined() && is_complex(x.dtype())) return norm(abs(x), p, dims, keepdim);
  const Value& value = floats_of("norm", x);
  const DType dtype = dtype_of_value(value);
  const Dims d = reduced_dims("norm", value, dims);
  if (p < 0 || std::isinf(p)) {
    for (const int64_t dim : d) {
      if (shape_of(value)[static_cast<int>(dim)] != 0) continue;
      throw_error<ShapeError>("norm: has no value of order ", p, " over nothing; got shape ",
                              x.shape(), "; expected at least one element");
    }
  }
  if (p == 0.0) {  // how many are not 0
    const Tensor found =
        wrap(cast(Value{Dispatch::float_not_equal_scalar(value.inner, Scalar(0.0))}, dtype));
    return constant_of(x, d.empty() ? found : found.sum(d, keepdim));
  }
  if (d.empty()) return wrap(AD::float_abs(value));  // of one number
  // Powers of half-precision numbers soon leave their range.
  const Value wide = is_half(dtype) ? cast(value, f32) : value;
  return wrap(cast(AD::float_norm(wide, p, d, keepdim), dtype));
}

std::pair<Tensor, Tensor> aminmax(const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  if (dim) return {x.amin(*dim, keepdim), x.amax(*dim, keepdim)};
  if (x.numel() == 0) {
    throw_error<ShapeError>("aminmax: has no value over nothing; got shape ", x.shape());
  }
  return {x.amin(Dims{}, keepdim), x.amax(Dims{}, keepdim)};
}

Tensor any(const Tensor& x, const Dims& dims, bool keepdim) {
  if (x.defined() && is_complex(x.dtype())) return any(x.ne(Scalar(0)), dims, keepdim);
  return truth("any", x, dims, keepdim, false);
}
Tensor all(const Tensor& x, const Dims& dims, bool keepdim) {
  if (x.defined() && is_complex(x.dtype())) return all(x.ne(Scalar(0)), dims, keepdim);
  return truth("all", x, dims, keepdim, true);
}

Tensor count_nonzero(const Tensor& x, const Dims& dims) {
  if (has_complex(x)) return x.ne(Scalar(0)).sum(dims);
  return wrap(cast(value_of("count_nonzero", x), bool_)).sum(dims);
}

}  // namespace kiln
