#include "kiln/tensor/reduce/reductions.h"

#include <cmath>

#include "kiln/tensor/complex/complex_impl.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/operands.h"
#include "kiln/tensor/ops.h"

namespace kiln {

using namespace detail;

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
