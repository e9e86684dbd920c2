// Convolution, pooling, normalization, dropout, embedding and the activations that are more than
// one function.
#include "kiln/backend/random_fill.h"
#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/complex/complex_impl.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/elementwise/function_call.h"
#include "kiln/tensor/elementwise/pointwise.h"
#include "kiln/tensor/index/ordered_floats.h"
#include "kiln/tensor/nn/channel_norm.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln {

using namespace detail;

Tensor softmax(TensorArg x, int64_t dim) {
  const ValueArg value = arg_of("softmax", x);
  const int d = normalize_dim("softmax", dim, shape_of(value).rank());
  if (kind_of_value(value) != Kind::floating) {
    throw_wrong_dtype("softmax", dtype_of_value(value), "a floating point tensor");
  }
  if (shape_of(value).rank() == 0)
    return wrap(
        AD::float_reshape(AD::float_softmax(AD::float_reshape(value, Shape{1}), 0), Shape{}));
  return wrap(AD::float_softmax(value, d));
}

Tensor log_softmax(TensorArg x, int64_t dim) {
  const ValueArg value = arg_of("log_softmax", x);
  const int d = normalize_dim("log_softmax", dim, shape_of(value).rank());
  if (kind_of_value(value) != Kind::floating) {
    throw_wrong_dtype("log_softmax", dtype_of_value(value), "a floating point tensor");
  }
  if (shape_of(value).rank() == 0)
    return wrap(
        AD::float_reshape(AD::float_log_softmax(AD::float_reshape(value, Shape{1}), 0), Shape{}));
  return wrap(AD::float_log_softmax(value, d));
}

Tensor Tensor::softmax(int64_t dim) const { return kiln::softmax(*this, dim); }
Tensor Tensor::log_softmax(int64_t dim) const { return kiln::log_softmax(*this, dim); }

namespace functional {

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
                            const Shape& expected) {
  if (!param.defined()) return nullptr;
  const Value& p = value_of(op, param);
  check_alike(op, x, p, what);
  if (!(shape_of(p) == expected)) {
    throw_error<ShapeError>(op, ": the ", what, " has the wrong shape; got ", shape_of(p),
                            " for input ", shape_of(x), "; expected ", expected);
  }
  return &p;
}

// Sizes and steps of windows; the upper bound keeps what is computed from them from overflowing.
constexpr int64_t kWindowLimit = int64_t{1} << 31;
bool all_at_least(const IntPair& values, int64_t low) {
  return values[0] >= low && values[1] >= low && values[0] < kWindowLimit &&
         values[1] < kWindowLimit;
}

std::string pair_text(const IntPair& p) { return concat("[", p[0], ", ", p[1], "]"); }

// Runs `f` on [N, C, H, W]; an input [C, H, W] becomes a batch of one for it.
template <class F>
Tensor batched(const char* op, const TensorArg& x, F f) {
  const ValueArg value = arg_of(op, x);
  check_floating(op, value);
  const Shape s = shape_of(value);
  if (s.rank() == 4) return f(value);
  if (s.rank() != 3) {
    throw_error<ShapeError>(op, ": expected an input [N, C, H, W] or [C, H, W]; got ", s);
  }
  const Tensor out = f(ValueArg(AD::float_reshape(value, Shape{1, s[0], s[1], s[2]})));
  return out.squeeze(0);
}

}  // namespace

Tensor conv2d(TensorArg x, const Tensor& weight, const Tensor& bias, const ConvOptions& options) {
  KILN_AUTOCAST(lower, conv2d, x, weight, bias, options);
  return batched("conv2d", x, [&](const ValueArg& input) {
    const Value& w = value_of("conv2d", weight);
    check_alike("conv2d", input, w, "weight");
    const Shape& xs = shape_of(input);
    const Shape& ws = shape_of(w);
    if (!all_at_least(options.stride, 1) || !all_at_least(options.dilation, 1) ||
        !all_at_least(options.padding, 0) || options.groups < 1 || options.groups >= kWindowLimit) {
      throw_error<ValueError>(
          "conv2d: expected stride, dilation and groups >= 1 and padding >= 0, "
          "all below 2^31; got stride ",
          pair_text(options.stride), ", dilation ", pair_text(options.dilation), ", groups ",
          options.groups, ", padding ", pair_text(options.padding));
    }
    if (ws.rank() != 4 || ws[1] * options.groups != xs[1] || ws[0] % options.groups != 0) {
      throw_error<ShapeError>("conv2d: the weight does not fit the input; got input ", xs,
                              ", weight ", ws, ", groups ", options.groups,
                              "; expected weight [O, C / groups, KH, KW] with O and C divisible "
                              "by groups");
    }
    for (int i = 0; i < 2; ++i) {
      const size_t k = static_cast<size_t>(i);
      if (conv_output_size(xs[2 + i], ws[2 + i], options.stride[k], options.padding[k],
                           options.dilation[k]) < 1 ||
          ws[2 + i] < 1) {
        throw_error<ShapeError>("conv2d: the kernel is larger than the padded input; got input ",
                                xs, ", weight ", ws, ", padding ", pair_text(options.padding),
                                ", dilation ", pair_text(options.dilation));
      }
    }
    const Value* b = optional_value("conv2d", "bias", input, bias, Shape{ws[0]});
    return wrap(AD::float_conv2d(input, w, b, options));
  });
}

namespace {

void check_pool(const char* op, const Shape& xs, const PoolOptions& o) {
  if (!all_at_least(o.kernel, 1) || !all_at_least(o.stride, 1) || !all_at_least(o.dilation, 1) ||
      !all_at_least(o.padding, 0)) {
    throw_error<ValueError>(op,
                            ": expected kernel, stride and dilation >= 1 and padding >= 0, all "
                            "below 2^31; got kernel ",
                            pair_text(o.kernel), ", stride ", pair_text(o.stride), ", padding ",
                            pair_text(o.padding), ", dilation ", pair_text(o.dilation));
  }
  for (size_t i = 0; i < 2; ++i) {
    if (2 * o.padding[i] > o.kernel[i]) {
      throw_error<ValueError>(op, ": padding may be at most half the kernel; got padding ",
                              pair_text(o.padding), ", kernel ", pair_text(o.kernel));
    }
    if (pool_output_size(xs[2 + static_cast<int>(i)], o.kernel[i], o.stride[i], o.padding[i],
                         o.dilation[i], o.ceil_mode) < 1) {
      throw_error<ShapeError>(op, ": the window is larger than the padded input; got input ", xs,
                              ", kernel ", pair_text(o.kernel), ", padding ", pair_text(o.padding));
    }
  }
}

}  // namespace

std::pair<Tensor, Tensor> max_pool2d_with_indices(TensorArg x, const PoolOptions& options) {
  if (is_whole(x->dtype())) {
    const OrderedFloats numbers(x.get());
    auto [values, index] = max_pool2d_with_indices(numbers.floats, options);
    return {numbers.integers(values), std::move(index)};
  }
  Tensor index;
  Tensor out = batched("max_pool2d", x, [&](const ValueArg& input) {
    check_pool("max_pool2d", shape_of(input), options);
    auto [values, positions] = AD::float_max_pool2d(input, options);
    index = wrap(std::move(positions));
    return wrap(std::move(values));
  });
  if (out.dim() == 3) index = index.squeeze(0);
  return {out, index};
}

Tensor max_pool2d(TensorArg x, const PoolOptions& options) {
  return max_pool2d_with_indices(x, options).first;
}

Tensor avg_pool2d(TensorArg x, const PoolOptions& options) {
  return batched("avg_pool2d", x, [&](const ValueArg& input) {
    check_pool("avg_pool2d", shape_of(input), options);
    return wrap(AD::float_avg_pool2d(input, options));
  });
}

Tensor batch_norm(TensorArg x, const Tensor& running_mean, const Tensor& running_var,
                  const Tensor& weight, const Tensor& bias, bool training, double momentum,
                  double eps) {
  if (detail::is_mixed(x, {&running_mean, &running_var, &weight, &bias})) {
    return batch_norm(x->to(f32), running_mean, running_var, weight, bias, training, momentum, eps)
        .to(x->dtype());
  }
  const ValueArg input = arg_of("batch_norm", x);
  check_floating("batch_norm", input);
  const Shape xs = shape_of(input);
  if (xs == Shape{0}) return wrap(input.get()).clone();
  if (xs.rank() < 2) {
    throw_error<ShapeError>("batch_norm: expected an input [N, C, ..]; got ", xs);
  }
  const Shape channels{xs[1]};
  const Value* w = optional_value("batch_norm", "weight", input, weight, channels);
  const Value* b = optional_value("batch_norm", "bias", input, bias, channels);
  const Value* rm = optional_value("batch_norm", "running_mean", input, running_mean, channels);
  const Value* rv = optional_value("batch_norm", "running_var", input, running_var, channels);
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
      Tensor(running_mean).mul_(1.0 - momentum).add_(kiln::mul(wrap(std::move(mean)), momentum));
    }
    if (running_var.defined()) {  // the unbiased estimate
      const double scale = momentum * static_cast<double>(n) / static_cast<double>(n - 1);
      Tensor(running_var).mul_(1.0 - momentum).add_(kiln::mul(wrap(std::move(var)), scale));
    }
  }
  return wrap(std::move(out));
}

Tensor layer_norm(TensorArg x, const Shape& normalized_shape, const Tensor& weight,
                  const Tensor& bias, double eps) {
  if (detail::is_mixed(x, {&weight, &bias})) {
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

Tensor dropout(TensorArg x, double p, bool training) {
  if (!(p >= 0.0 && p <= 1.0)) {
    throw_error<ValueError>("dropout: expected a probability in [0, 1]; got ", p);
  }
  if (has_complex(x.get())) {
    if (!training || p == 0.0) return x.get();
    const Tensor& z = x.get();
    return z * dropout(ones(z.shape(), {real_dtype(z.dtype()), z.device()}), p, true);
  }
  const ValueArg input = arg_of("dropout", x);
  check_floating("dropout", input);
  if (!training || p == 0.0) return x.get();
  if (p == 1.0) return wrap(AD::float_mul_scalar(input, Scalar(0.0)));
  const RandomStream stream =
      default_generator().reserve(host::random_words(shape_of(input).numel(), f32));
  return wrap(AD::float_dropout(input, p, stream));
}

Tensor embedding(const Tensor& index, const Tensor& weight) {
  if (has_complex(weight) && weight.dim() == 2) {
    Shape shape = impl_of("embedding", index).shape();
    shape.push_back(weight.size(1));
    const Tensor rows = parts_of(weight).reshape({weight.size(0), 2 * weight.size(1)});
    return from_parts(embedding(index, rows).reshape(parts_shape(shape)));
  }
  const Value& w = value_of("embedding", weight);
  const Kind kind = kind_of_value(w);
  if (kind == Kind::quantized) check_floating("embedding", w);
  if (shape_of(w).rank() != 2) {
    throw_error<ShapeError>("embedding: expected a weight [n, d]; got ", shape_of(w));
  }
  const ErasedTensor rows = index_value("embedding", index, w);
  Shape out = index.shape();
  if (kind != Kind::floating) {  // a table to look up
    out.push_back(shape_of(w)[1]);
    return naming<IndexError>("embedding", [&] {
      return weight.index_select(0, index.reshape({index.numel()})).reshape(out);
    });
  }
  const Value picked = naming<IndexError>("embedding", [&] {
    return AD::float_index_select(w, 0, Dispatch::int_reshape(rows, Shape{index.numel()}));
  });
  out.push_back(shape_of(w)[1]);
  return wrap(AD::float_reshape(picked, out));
}

Tensor threshold(const Tensor& x, double threshold, double value) {
  const Value& v = value_of("threshold", x);
  if (kind_of_value(v) == Kind::floating) {
    return unary_function("threshold", x, {UnaryFunction::Type::threshold, threshold, value});
  }
  // An integer tensor stays one: both numbers are converted, as PyTorch does.
  const Tensor replacement = full(Shape{}, value, {v.inner->dtype(), v.inner->device()});
  return where(x.le(Scalar(threshold).to_int()), replacement, x);
}

Tensor prelu(const Tensor& x, const Tensor& weight) {
  KILN_AUTOCAST(lower, prelu, x, weight);
  const Value& v = value_of("prelu", x);
  const Value& w = value_of("prelu", weight);
  check_alike("prelu", v, w, "weight");
  const Shape& xs = shape_of(v);
  const int64_t channels = xs.rank() >= 2 ? xs[1] : 1;
  if (shape_of(w).rank() > 1 || (weight.numel() != 1 && weight.numel() != channels)) {
    throw_error<ValueError>(
        "prelu: expected a weight of 1 element, or one for each channel (dim "
        "1); got weight ",
        shape_of(w), " for input ", xs);
  }
  Tensor slope = weight.reshape({-1});
  if (weight.numel() != 1) {
    Shape broadcast = Shape::filled(xs.rank(), 1);
    broadcast[1] = channels;
    slope = slope.reshape(broadcast);
  } else {
    slope = slope.reshape({});
  }
  return binary_function("prelu", x, slope, BinaryFunction::Type::prelu);
}

}  // namespace functional
}  // namespace kiln
