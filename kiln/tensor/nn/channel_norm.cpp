#include "kiln/tensor/nn/channel_norm.h"

#include "kiln/tensor/nn/functional_support.h"
#include "kiln/tensor/ops.h"

namespace kiln::detail {

namespace {

const Value* optional_in(const char* op, const Tensor& x) {
  return x.defined() ? &value_of(op, x) : nullptr;
}

// f(x, weight, bias) in a float dtype that statistics can be kept in.
template <class F>
Tensor in_wide_dtype(const Tensor& x, const Tensor& weight, const Tensor& bias, F f) {
  const DType wide = wide_dtype(x.dtype());
  if (wide == x.dtype()) return f(x, weight, bias);
  const auto widened = [&](const Tensor& t) { return t.defined() ? t.to(wide) : t; };
  return f(x.to(wide), widened(weight), widened(bias)).to(x.dtype());
}

}  // namespace

Tensor group_normalized(const Tensor& x, int64_t groups, const Tensor& weight, const Tensor& bias,
                        double eps) {
  constexpr const char* op = "group_norm";
  return in_wide_dtype(x, weight, bias, [&](const Tensor& z, const Tensor& w, const Tensor& b) {
    return wrap(std::get<0>(AD::float_group_norm(value_of(op, z), optional_in(op, w),
                                                 optional_in(op, b), groups, eps)));
  });
}

Tensor affine_normalized(const Tensor& x, const Tensor& mean, const Tensor& var,
                         const Tensor& weight, const Tensor& bias, double eps) {
  constexpr const char* op = "batch_norm";
  return wrap(AD::float_batch_norm_inference(value_of(op, x), value_of(op, mean), value_of(op, var),
                                             optional_in(op, weight), optional_in(op, bias), eps));
}

bool is_mixed(const Tensor& x, std::initializer_list<const Tensor*> params) {
  if (!x.defined() || (x.dtype() != f16 && x.dtype() != bf16)) return false;
  bool any = false;
  for (const Tensor* param : params) {
    if (!param->defined()) continue;
    if (param->dtype() != f32) return false;
    any = true;
  }
  return any;
}

}  // namespace kiln::detail
