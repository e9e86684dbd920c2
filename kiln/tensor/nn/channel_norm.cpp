#include "kiln/tensor/nn/channel_norm.h"

#include "kiln/backend/cpu/norm/channel_norm.h"
#include "kiln/tensor/autograd/custom_function.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/interop.h"
#include "kiln/tensor/nn/functional_support.h"
#include "kiln/tensor/ops.h"

namespace kiln::detail {

namespace {

template <class T>
const T* data_of(const Tensor& x) {
  return x.defined() ? static_cast<const T*>(interop::data(x)) : nullptr;
}
template <class T>
T* to_data(const Tensor& x) {
  return static_cast<T*>(interop::data(x));
}

template <class F>
void visit(DType dtype, F f) {
  dtype == f64 ? f.template operator()<double>() : f.template operator()<float>();
}

Tensor on_host(const Tensor& x) {
  return x.defined() ? x.detach().to(Device(kCpu)).contiguous() : x;
}

cpu::ChannelGroups groups_of(const Shape& s, int64_t groups) {
  const int64_t channels = s[1];
  return {s[0], groups, channels / groups, s.numel() / std::max<int64_t>(1, s[0] * channels)};
}

// All dims but that of the channels.
Dims other_dims(int rank) {
  Dims out{0};
  for (int d = 2; d < rank; ++d) out.push_back(d);
  return out;
}

// The gradients of group_normalized() in ordinary ops.
TensorList recorded_group_gradients(const Tensor& x, int64_t groups, const Tensor& weight,
                                    const Tensor& bias, double eps, const Tensor& g) {
  const Shape s = x.shape();
  const Shape rows{s[0], groups, -1};
  const Tensor gap = x.reshape(rows) - x.reshape(rows).mean({2}, true);
  const Tensor rstd = kiln::rsqrt(gap.square().mean({2}, true) + eps);
  const Tensor unit = gap * rstd;
  const Tensor weighted =
      (weight.defined() ? g * weight.reshape(shape_along(s.rank(), 1, s[1])) : g).reshape(rows);
  const Tensor dx =
      rstd * (weighted - weighted.mean({2}, true) - unit * (weighted * unit).mean({2}, true));
  const Dims others = other_dims(s.rank());
  return {dx.reshape(s), weight.defined() ? (g * unit.reshape(s)).sum(others) : Tensor(),
          bias.defined() ? g.sum(others) : Tensor()};
}

TensorList recorded_affine_gradients(const Tensor& x, const Tensor& mean, const Tensor& var,
                                     const Tensor& weight, const Tensor& bias, double eps,
                                     const Tensor& g) {
  const Shape along = shape_along(x.dim(), 1, x.size(1));
  const Tensor rstd = kiln::rsqrt(var + eps).reshape(along);
  const Dims others = other_dims(x.dim());
  return {g * (weight.defined() ? rstd * weight.reshape(along) : rstd),
          weight.defined() ? (g * (x - mean.reshape(along)) * rstd).sum(others) : Tensor(),
          bias.defined() ? g.sum(others) : Tensor()};
}

}  // namespace

Tensor group_normalized(const Tensor& x, int64_t groups, const Tensor& weight, const Tensor& bias,
                        double eps) {
  const DType wide = wide_dtype(x.dtype());
  if (wide != x.dtype()) {
    const auto widened = [&](const Tensor& t) { return t.defined() ? t.to(wide) : t; };
    return group_normalized(x.to(wide), groups, widened(weight), widened(bias), eps).to(x.dtype());
  }
  const auto forward = [&](FunctionContext& ctx, const TensorList& in) -> TensorList {
    const Tensor z = on_host(in[0]), w = on_host(in[1]), b = on_host(in[2]);
    const TensorOptions options{z.dtype()};
    const Tensor y = empty(z.shape(), options);
    const Tensor mean = empty({z.size(0), groups}, options), rstd = empty_like(mean);
    visit(z.dtype(), [&]<class T>() {
      cpu::group_norm<T>(groups_of(z.shape(), groups), data_of<T>(z), data_of<T>(w), data_of<T>(b),
                         eps, to_data<T>(y), to_data<T>(mean), to_data<T>(rstd));
    });
    ctx.save_for_backward({in[0], in[1], in[2], mean, rstd});
    return {y.to(in[0].device())};
  };
  const auto backward = [groups, eps](FunctionContext& ctx, const TensorList& grads) -> TensorList {
    const TensorList saved = ctx.saved_tensors();
    if (is_grad_enabled()) {
      return recorded_group_gradients(saved[0], groups, saved[1], saved[2], eps, grads[0]);
    }
    const Tensor z = on_host(saved[0]), w = on_host(saved[1]), g = on_host(grads[0]);
    const Tensor dx = empty(z.shape(), {z.dtype()});
    const Tensor dw = empty({z.size(1)}, {z.dtype()}), db = empty_like(dw);
    visit(z.dtype(), [&]<class T>() {
      cpu::group_norm_backward<T>(groups_of(z.shape(), groups), data_of<T>(g), data_of<T>(z),
                                  data_of<T>(w), data_of<T>(saved[3]), data_of<T>(saved[4]),
                                  to_data<T>(dx), to_data<T>(dw), to_data<T>(db));
    });
    const Device device = saved[0].device();
    return {dx.to(device), saved[1].defined() ? dw.to(device) : Tensor(),
            saved[2].defined() ? db.to(device) : Tensor()};
  };
  return call_function("group_norm", {x, weight, bias}, forward, backward)[0];
}

Tensor affine_normalized(const Tensor& x, const Tensor& mean, const Tensor& var,
                         const Tensor& weight, const Tensor& bias, double eps) {
  const DType wide = wide_dtype(x.dtype());
  if (wide != x.dtype()) {
    const auto widened = [&](const Tensor& t) { return t.defined() ? t.to(wide) : t; };
    return affine_normalized(x.to(wide), mean.to(wide), var.to(wide), widened(weight),
                             widened(bias), eps)
        .to(x.dtype());
  }
  constexpr const char* op = "batch_norm";
  const auto forward = [&](FunctionContext& ctx, const TensorList& in) -> TensorList {
    const Value* w = in[1].defined() ? &value_of(op, in[1]) : nullptr;
    const Value* b = in[2].defined() ? &value_of(op, in[2]) : nullptr;
    ctx.save_for_backward({in[0], mean, var, in[1], in[2]});
    return {wrap(AD::float_batch_norm_inference(value_of(op, in[0]), value_of(op, mean),
                                                value_of(op, var), w, b, eps))};
  };
  const auto backward = [eps](FunctionContext& ctx, const TensorList& grads) -> TensorList {
    const TensorList saved = ctx.saved_tensors();
    if (is_grad_enabled()) {
      return recorded_affine_gradients(saved[0], saved[1], saved[2], saved[3], saved[4], eps,
                                       grads[0]);
    }
    const Tensor z = on_host(saved[0]), m = on_host(saved[1]), v = on_host(saved[2]);
    const Tensor w = on_host(saved[3]), g = on_host(grads[0]);
    const Tensor dx = empty(z.shape(), {z.dtype()});
    const Tensor dw = empty({z.size(1)}, {z.dtype()}), db = empty_like(dw);
    visit(z.dtype(), [&]<class T>() {
      cpu::affine_norm_backward<T>(groups_of(z.shape(), 1), data_of<T>(g), data_of<T>(z),
                                   data_of<T>(m), data_of<T>(v), data_of<T>(w), eps, to_data<T>(dx),
                                   to_data<T>(dw), to_data<T>(db));
    });
    const Device device = saved[0].device();
    return {dx.to(device), saved[3].defined() ? dw.to(device) : Tensor(),
            saved[4].defined() ? db.to(device) : Tensor()};
  };
  return call_function(op, {x, weight, bias}, forward, backward)[0];
}

}  // namespace kiln::detail
