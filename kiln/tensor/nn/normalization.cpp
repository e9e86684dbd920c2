#include "kiln/tensor/nn/normalization.h"

#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/complex/complex_impl.h"
#include "kiln/tensor/elementwise/pointwise.h"
#include "kiln/tensor/nn/channel_norm.h"
#include "kiln/tensor/nn/functional_support.h"
#include "kiln/tensor/nn/pooling.h"

namespace kiln::functional {

using namespace detail;

namespace {

// The operands of a layer: one device, one floating point dtype.
void check_alike(const char* op, const Value& x, const Value& other, const char* what) {
  check_same_device(op, x, other);
  if (kind_of_value(x) != Kind::floating || dtype_of_value(x) != dtype_of_value(other)) {
    throw_error<DTypeError>(op, ": input and ", what, " must have one floating point dtype; got ",
                            dtype_of_value(x), " and ", dtype_of_value(other));
  }
}

void check_floating(const char* op, const Value& x) {
  if (kind_of_value(x) != Kind::floating) {
    throw_wrong_dtype(op, dtype_of_value(x), "a floating point tensor");
  }
}

// A parameter that may be undefined; checked against its one legal shape.
const Value* optional_value(const char* op, const char* what, const Value& x, const Tensor& param,
                            const Shape& expected, bool may_be_wide = false) {
  if (!param.defined()) return nullptr;
  const Value& p = value_of(op, param);
  if (may_be_wide) {
    check_same_device(op, x, p);
  } else {
    check_alike(op, x, p, what);
  }
  if (!(shape_of(p) == expected)) {
    throw_error<ShapeError>(op, ": the ", what, " has the wrong shape; got ", shape_of(p),
                            " for input ", shape_of(x), "; expected ", expected);
  }
  return &p;
}

// y w + b by channel (dim 1).
Tensor affine(const Tensor& y, const Tensor& weight, const Tensor& bias) {
  if (!weight.defined() && !bias.defined()) return y;
  const TensorOptions options{y.dtype(), y.device()};
  const Shape channels{y.size(1)};
  return affine_normalized(y, zeros(channels, options), ones(channels, options), weight, bias, 0.0);
}

void require_channels(const char* op, const Tensor& x) {
  require_floating(op, x);
  if (x.dim() < 2) {
    throw_error<ShapeError>(op, ": expected an input [N, C, ..]; got ", x.shape());
  }
}

double epsilon_of(DType dtype) {
  switch (dtype) {
    case f64:
      return 0x1p-52;
    case f16:
      return 0x1p-10;
    case bf16:
      return 0x1p-7;
    default:
      return 0x1p-23;
  }
}

}  // namespace

Tensor batch_norm(TensorArg x, const Tensor& running_mean, const Tensor& running_var,
                  const Tensor& weight, const Tensor& bias, bool training, double momentum,
                  double eps) {
  const ValueArg input = arg_of("batch_norm", x);
  check_floating("batch_norm", input);
  const Shape xs = shape_of(input);
  if (xs == Shape{0}) return wrap(input.get()).clone();
  if (xs.rank() < 2) {
    throw_error<ShapeError>("batch_norm: expected an input [N, C, ..]; got ", xs);
  }
  const Shape channels{xs[1]};
  const auto of_channels = [&](const char* what, const Tensor& param) {
    const bool wide = is_mixed(x, {&param});
    return optional_value("batch_norm", what, input, param, channels, wide);
  };
  const Value* w = of_channels("weight", weight);
  const Value* b = of_channels("bias", bias);
  const Value* rm = of_channels("running_mean", running_mean);
  const Value* rv = of_channels("running_var", running_var);
  if (!training) {
    if (rm == nullptr || rv == nullptr) {
      throw_error<ValueError>("batch_norm: inference needs running_mean and running_var; got none");
    }
    const auto wants = [](const Tensor& t) { return t.defined() && t.requires_grad(); };
    const Tensor in = wrap(input.get());
    if (is_grad_enabled() && (wants(in) || wants(weight) || wants(bias)) && xs.numel() > 0 &&
        !wants(running_mean) && !wants(running_var)) {
      return detail::affine_normalized(in, running_mean, running_var, weight, bias, eps);
    }
    return wrap(AD::float_batch_norm_inference(input, *rm, *rv, w, b, eps));
  }
  const int64_t n = xs.numel() / std::max<int64_t>(1, xs[1]);
  if (n <= 1 && xs.numel() > 0) {
    throw_error<ValueError>(
        "batch_norm: training needs more than one value for each channel; got "
        "input ",
        xs);
  }
  auto [out, mean, var] = AD::float_batch_norm(input, w, b, eps);
  if (n > 1) {
    const autodiff::RecordingGuard<Dispatch> no_grad(false);
    if (running_mean.defined()) {
      const Tensor moved = kiln::mul(wrap(std::move(mean)), momentum);
      Tensor(running_mean).mul_(1.0 - momentum).add_(moved.to(running_mean.dtype()));
    }
    if (running_var.defined()) {  // the unbiased estimate
      const double scale = momentum * static_cast<double>(n) / static_cast<double>(n - 1);
      const Tensor moved = kiln::mul(wrap(std::move(var)), scale);
      Tensor(running_var).mul_(1.0 - momentum).add_(moved.to(running_var.dtype()));
    }
  }
  return wrap(std::move(out));
}

Tensor layer_norm(TensorArg x, const Shape& normalized_shape, const Tensor& weight,
                  const Tensor& bias, double eps) {
  if (is_mixed(x, {&weight, &bias})) {
    return layer_norm(x->to(f32), normalized_shape, weight, bias, eps).to(x->dtype());
  }
  const ValueArg input = arg_of("layer_norm", x);
  check_floating("layer_norm", input);
  const Shape& xs = shape_of(input);
  const int n = normalized_shape.rank();
  bool fits = n >= 1 && n <= xs.rank();
  for (int i = 0; fits && i < n; ++i) fits = xs[xs.rank() - n + i] == normalized_shape[i];
  if (!fits) {
    throw_error<ShapeError>("layer_norm: the input does not end in the normalized shape; got ", xs,
                            "; expected [.., ", normalized_shape, "]");
  }
  const Value* w = optional_value("layer_norm", "weight", input, weight, normalized_shape);
  const Value* b = optional_value("layer_norm", "bias", input, bias, normalized_shape);
  return wrap(std::get<0>(AD::float_layer_norm(input, w, b, n, eps)));
}

Tensor group_norm(const Tensor& x, int64_t num_groups, const Tensor& weight, const Tensor& bias,
                  double eps) {
  constexpr const char* op = "group_norm";
  if (is_mixed(x, {&weight, &bias})) {
    return group_norm(x.to(f32), num_groups, weight, bias, eps).to(x.dtype());
  }
  require_channels(op, x);
  const Shape s = x.shape();
  if (num_groups < 1 || s[1] % num_groups != 0) {
    throw_error<ValueError>(op, ": num_groups must divide the number of channels; got ", num_groups,
                            " for input ", s);
  }
  require_param(op, x, weight, "weight", Shape{s[1]});
  require_param(op, x, bias, "bias", Shape{s[1]});
  if (s.numel() == 0) return affine(x.clone(), weight, bias);
  return group_normalized(x, num_groups, weight, bias, eps);
}

Tensor instance_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var,
                     const Tensor& weight, const Tensor& bias, bool use_input_stats,
                     double momentum, double eps) {
  constexpr const char* op = "instance_norm";
  if (is_mixed(x, {&running_mean, &running_var, &weight, &bias})) {
    return instance_norm(x.to(f32), running_mean, running_var, weight, bias, use_input_stats,
                         momentum, eps)
        .to(x.dtype());
  }
  require_channels(op, x);
  const Shape s = x.shape();
  const Shape channels{s[1]};
  require_param(op, x, weight, "weight", channels);
  require_param(op, x, bias, "bias", channels);
  require_param(op, x, running_mean, "running_mean", channels);
  require_param(op, x, running_var, "running_var", channels);
  if (!use_input_stats) {
    if (!running_mean.defined() || !running_var.defined()) {
      throw_error<ValueError>(op,
                              ": without use_input_stats it needs running_mean and running_var");
    }
    return batch_norm(x, running_mean, running_var, weight, bias, false, momentum, eps);
  }
  int64_t places = 1;
  for (int i = 2; i < s.rank(); ++i) places *= s[i];
  if (places <= 1 && s.numel() > 0) {
    throw_error<ValueError>(op, ": expected more than 1 spatial element; got input ", s);
  }
  if (s.numel() == 0) return affine(x.clone(), weight, bias);
  // Each instance's channel is a channel of one batch.
  const auto repeated = [&](const Tensor& v) {
    return v.defined() ? v.expand({s[0], s[1]}).reshape({s[0] * s[1]}) : v;
  };
  const Tensor w = repeated(weight), b = repeated(bias);
  const Tensor rows = x.reshape({1, s[0] * s[1], places});
  const Value* wv = w.defined() ? &value_of(op, w) : nullptr;
  const Value* bv = b.defined() ? &value_of(op, b) : nullptr;
  auto [out, mean, var] = AD::float_batch_norm(value_of(op, rows), wv, bv, eps);
  const auto move_towards = [&](Tensor running, const Tensor& batch, double scale) {
    if (!running.defined()) return;
    const autodiff::RecordingGuard<Dispatch> no_grad(false);
    const Tensor moved = batch.reshape({s[0], s[1]}).mean(0) * (momentum * scale);
    running.mul_(1.0 - momentum).add_(moved.to(running.dtype()));
  };
  move_towards(running_mean, wrap(std::move(mean)), 1.0);
  const double unbiased = static_cast<double>(places) / static_cast<double>(places - 1);
  move_towards(running_var, wrap(std::move(var)), unbiased);
  return wrap(std::move(out)).reshape(s);
}

Tensor rms_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight,
                std::optional<double> eps) {
  constexpr const char* op = "rms_norm";
  if (is_mixed(x, {&weight})) {
    return rms_norm(x.to(f32), normalized_shape, weight, eps.value_or(epsilon_of(x.dtype())))
        .to(x.dtype());
  }
  if (!is_complex(x.dtype())) require_floating(op, x);
  const int n = normalized_shape.rank();
  bool fits = n >= 1 && n <= x.dim();
  for (int i = 0; fits && i < n; ++i) fits = x.size(x.dim() - n + i) == normalized_shape[i];
  if (!fits) {
    throw_error<ShapeError>(op, ": the input does not end in the normalized shape; got ", x.shape(),
                            "; expected [.., ", normalized_shape, "]");
  }
  const DType dtype = x.dtype();
  const bool complex = is_complex(dtype);
  if (!complex) {
    require_param(op, x, weight, "weight", normalized_shape);
  } else if (weight.defined() &&
             (weight.dtype() != dtype || !(weight.shape() == normalized_shape))) {
    throw_error<ShapeError>(op, ": expected a weight ", normalized_shape, " of ", dtype, "; got ",
                            weight.shape(), " of ", weight.dtype());
  }
  const Tensor wide = complex ? x : x.to(wide_dtype(dtype));
  Dims last;
  for (int i = x.dim() - n; i < x.dim(); ++i) last.push_back(i);
  const Tensor scale = kiln::rsqrt(wide.square().mean(last, true) +
                                   eps.value_or(epsilon_of(complex ? real_dtype(dtype) : dtype)));
  Tensor y = wide * scale;
  if (weight.defined()) y = std::move(y) * weight.to(wide.dtype());
  return y.to(dtype);
}

Tensor local_response_norm(const Tensor& x, int64_t size, double alpha, double beta, double k) {
  constexpr const char* op = "local_response_norm";
  require_floating(op, x);
  if (x.dim() > 3) KILN_AUTOCAST(f32, local_response_norm, x, size, alpha, beta, k);
  if (x.dim() < 3) {
    throw_error<ShapeError>(op, ": expected an input [N, C, L, ..]; got ", x.shape());
  }
  if (size < 1 || size >= int64_t{1} << 31) {
    throw_error<ValueError>(op, ": expected size >= 1; got ", size);
  }
  if (x.numel() == 0) return x.clone();
  const Tensor rows = x.square().reshape({x.size(0), 1, x.size(1), -1});
  const Tensor padded = padded_dim(rows, 2, size / 2, (size - 1) / 2);
  const Tensor mean = avg_pool2d(padded, {size, 1}, Sizes(1)).reshape(x.shape());
  return x / (mean * alpha + k).pow(beta);
}

Tensor normalize(const Tensor& x, double p, const Dims& dim, double eps) {
  if (!has_complex(x)) require_floating("normalize", x);
  const Dims dims = normalize_dims("normalize", dim, x.dim());
  return x / p_norm(x, p, x.dim() == 0 ? Dims{} : dims, true).clamp(eps, {});
}

}  // namespace kiln::functional
