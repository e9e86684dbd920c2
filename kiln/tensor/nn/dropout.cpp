#include "kiln/tensor/nn/dropout.h"

#include <cmath>

#include "kiln/backend/random_fill.h"
#include "kiln/tensor/complex/complex_impl.h"
#include "kiln/tensor/nn/functional_support.h"

namespace kiln::functional {

using namespace detail;

Tensor dropout(TensorArg x, double p, bool training) {
  require_probability("dropout", p);
  if (has_complex(x.get())) {
    if (!training || p == 0.0) return x.get();
    const Tensor& z = x.get();
    return z * dropout(ones(z.shape(), {real_dtype(z.dtype()), z.device()}), p, true);
  }
  const ValueArg input = arg_of("dropout", x);
  if (kind_of_value(input) != Kind::floating) {
    throw_wrong_dtype("dropout", dtype_of_value(input), "a floating point tensor");
  }
  if (!training || p == 0.0) return x.get();
  if (p == 1.0) return wrap(AD::float_mul_scalar(input, Scalar(0.0)));
  const RandomStream stream =
      default_generator().reserve(host::random_words(shape_of(input).numel(), f32));
  return wrap(AD::float_dropout(input, p, stream));
}

namespace {

// One entry for each channel of each instance, broadcast to x.
Shape channels_of(const char* op, const Tensor& x) {
  if (x.dim() < 2) {
    throw_error<ShapeError>(op, ": expected an input [N, C, ..]; got ", x.shape());
  }
  Shape shape = Shape::filled(x.dim(), 1);
  shape[0] = x.size(0);
  shape[1] = x.size(1);
  return shape;
}

Tensor channel_dropout(const char* op, const Tensor& x, double p, bool training) {
  if (!training || p == 0.0) return x;
  const DType dtype = has_complex(x) ? real_dtype(x.dtype()) : x.dtype();
  const Tensor kept = dropout(ones(channels_of(op, x), {dtype, x.device()}), p, true);
  return x * kept;
}

// Dropout where an input of `spatial` + 1 dims lacks the batch.
Tensor instance_dropout(const char* op, const Tensor& x, double p, bool training, int spatial) {
  require_probability(op, p);
  if (training && !has_complex(x)) require_floating(op, x);
  if (x.dim() != spatial + 1 && x.dim() != spatial + 2) {
    throw_error<ShapeError>(op, ": the input has the wrong number of dims; got ", x.shape(),
                            "; expected ", spatial + 2, ", or ", spatial + 1, " without N");
  }
  if (x.dim() == spatial + 2) return channel_dropout(op, x, p, training);
  return channel_dropout(op, x.unsqueeze(0), p, training).squeeze(0);
}

Tensor alpha_noise(const Tensor& x, double p, bool training, const Shape& shape) {
  constexpr double kLimit = 1.7580993408473766;  // selu's, negated
  if (!training || p == 0.0) return x;
  if (p == 1.0) return x * 0.0;
  const double a = 1.0 / std::sqrt((kLimit * kLimit * p + 1.0) * (1.0 - p));
  const Tensor kept = empty(shape, {x.dtype(), x.device()}).bernoulli_(1.0 - p);
  // Dropped ones become -limit, and then all are scaled and moved.
  const Tensor shift = (kept - 1.0) * (kLimit * a) + kLimit * a * p;
  return x * (kept * a) + shift;
}

}  // namespace

Tensor dropout1d(const Tensor& x, double p, bool training) {
  return instance_dropout("dropout1d", x, p, training, 1);
}

Tensor dropout2d(const Tensor& x, double p, bool training) {
  require_probability("dropout2d", p);
  if (training && !has_complex(x)) require_floating("dropout2d", x);
  if (x.dim() != 3 && x.dim() != 4) {
    throw_error<ShapeError>("dropout2d: the input has the wrong number of dims; got ", x.shape(),
                            "; expected [N, C, H, W] or [N, C, L]");
  }
  return channel_dropout("dropout2d", x, p, training);
}

Tensor dropout3d(const Tensor& x, double p, bool training) {
  return instance_dropout("dropout3d", x, p, training, 3);
}

Tensor alpha_dropout(const Tensor& x, double p, bool training) {
  require_probability("alpha_dropout", p);
  if (!training) return x;
  require_floating("alpha_dropout", x);
  return alpha_noise(x, p, training, x.shape());
}

Tensor feature_alpha_dropout(const Tensor& x, double p, bool training) {
  require_probability("feature_alpha_dropout", p);
  if (!training) return x;
  require_floating("feature_alpha_dropout", x);
  if (p == 0.0) return x;
  return alpha_noise(x, p, training, channels_of("feature_alpha_dropout", x));
}

}  // namespace kiln::functional
