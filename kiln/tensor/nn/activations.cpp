#include "kiln/tensor/nn/activations.h"

#include <cmath>
#include <limits>

#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/complex/complex_impl.h"
#include "kiln/tensor/elementwise/function_call.h"
#include "kiln/tensor/nn/activations_in_place.h"
#include "kiln/tensor/nn/functional_support.h"

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

}  // namespace kiln

namespace kiln::functional {

using namespace detail;
using Unary = UnaryFunction::Type;

namespace {

constexpr double kSeluAlpha = 1.6732632423543772848170429916717;
constexpr double kSeluScale = 1.0507009873554804934193349852946;

// f(x), computed in f32 at least: intermediate results would leave the range of half precision, and
// lose its digits.
template <class Function>
Tensor in_wide(const char* op, const Tensor& x, Function f) {
  require_floating(op, x);
  const DType dtype = x.dtype();
  if (dtype != f16 && dtype != bf16) return f(x);
  return f(x.to(f32)).to(dtype);
}

// x, or integers in the default dtype.
Tensor floats_of(const Tensor& x) {
  const bool whole = !x.is_floating_point() && x.dtype() != bool_ && x.dtype() != DType::q8;
  return whole ? x.to(default_dtype()) : x;
}

// Both halves of x along dim.
std::pair<Tensor, Tensor> halves(const char* op, const Tensor& x, int64_t dim) {
  require_floating(op, x);
  if (x.dim() == 0) throw_error<ShapeError>(op, ": a 0-d tensor has no halves");
  const int d = normalize_dim(op, dim, x.dim());
  if (x.size(d) % 2 != 0) {
    throw_error<ShapeError>(op, ": the dim to be halved has an odd size; got ", x.shape(), ", dim ",
                            d);
  }
  const int64_t half = x.size(d) / 2;
  return {x.narrow(d, 0, half), x.narrow(d, half, half)};
}

// f of a floating point x.
Tensor activation(const char* op, const Tensor& x, const UnaryFunction& f) {
  require_floating(op, x);
  return unary_function(op, x, f);
}

Tensor& activation_(const char* op, Tensor& x, const UnaryFunction& f) {
  require_floating(op, x);
  return unary_function_(op, x, f);
}

}  // namespace

#define KILN_HOME_activation(type, doc, name) \
  Tensor name(const Tensor& x) { return activation(#name, x, {Unary::type}); }
#define KILN_HOME_activation_ KILN_HOME_activation
#define KILN_HOME_activation_number(type, doc, name, number, value) \
  Tensor name(const Tensor& x, double number) {                     \
    return activation(#name, x, {Unary::type, number});             \
  }
#define KILN_HOME_activation_number_ KILN_HOME_activation_number
#include "kiln/backend/functions.def"

#define KILN_HOME_activation_(type, doc, name) \
  Tensor& name##_(Tensor& x) { return activation_(#name "_", x, {Unary::type}); }
#define KILN_HOME_activation_number_(type, doc, name, number, value) \
  Tensor& name##_(Tensor& x, double number) {                        \
    return activation_(#name "_", x, {Unary::type, number});         \
  }
#include "kiln/backend/functions.def"

namespace {

void check_limits(double min_val, double max_val) {
  if (!(min_val <= max_val)) {
    throw_error<ValueError>("hardtanh: expected min_val <= max_val; got ", min_val, " and ",
                            max_val);
  }
}

UnaryFunction celu_function(double alpha) {
  if (alpha == 0.0) throw_error<ValueError>("celu: alpha must not be 0");
  return {Unary::elu, alpha, 1.0 / alpha, 1.0};
}

constexpr UnaryFunction elu_function(double alpha) { return {Unary::elu, alpha, 1.0, 1.0}; }
constexpr UnaryFunction kSelu{Unary::elu, kSeluAlpha, 1.0, kSeluScale};

}  // namespace

Tensor hardtanh(const Tensor& x, double min_val, double max_val) {
  check_limits(min_val, max_val);
  if (is_floating_point(value_of("hardtanh", x).inner->dtype())) {
    return unary_function("hardtanh", x, {Unary::hardtanh, min_val, max_val});
  }
  if (x.dtype() == bool_) throw_wrong_dtype("hardtanh", bool_, "integers or floats");
  if (x.dtype() == u8 && min_val < 0) {
    throw_error<DTypeError>("hardtanh: an unsigned tensor has no negative limits; got ", min_val);
  }
  return x.clamp(Scalar(min_val).to_int(), Scalar(max_val).to_int());
}
Tensor& hardtanh_(Tensor& x, double min_val, double max_val) {
  check_limits(min_val, max_val);
  if (!is_floating_point(value_of("hardtanh_", x).inner->dtype())) {
    return x.copy_(hardtanh(x, min_val, max_val));
  }
  return unary_function_("hardtanh_", x, {Unary::hardtanh, min_val, max_val});
}

Tensor relu6(const Tensor& x) { return hardtanh(x, 0.0, 6.0); }
Tensor& relu6_(Tensor& x) { return hardtanh_(x, 0.0, 6.0); }

Tensor rrelu(const Tensor& x, double lower, double upper, bool training) {
  require_floating("rrelu", x);
  if (!(lower <= upper)) {
    throw_error<ValueError>("rrelu: expected lower <= upper; got ", lower, " and ", upper);
  }
  if (!training) return leaky_relu(x, (lower + upper) / 2);
  const Tensor slope = empty_like(x.detach()).uniform_(lower, upper);
  return binary_function("rrelu", x, slope, BinaryFunction::Type::prelu);
}

Tensor elu(const Tensor& x, double alpha) { return activation("elu", x, elu_function(alpha)); }
Tensor& elu_(Tensor& x, double alpha) { return activation_("elu_", x, elu_function(alpha)); }
Tensor selu(const Tensor& x) { return activation("selu", x, kSelu); }
Tensor& selu_(Tensor& x) { return activation_("selu_", x, kSelu); }
Tensor celu(const Tensor& x, double alpha) { return activation("celu", x, celu_function(alpha)); }
Tensor& celu_(Tensor& x, double alpha) { return activation_("celu_", x, celu_function(alpha)); }

Tensor glu(const Tensor& x, int64_t dim) {
  const auto [a, b] = halves("glu", x, dim);
  return binary_function("glu", a, b, BinaryFunction::Type::glu);
}
Tensor swiglu(const Tensor& x, int64_t dim) {
  const auto [a, b] = halves("swiglu", x, dim);
  return kiln::silu(a) * b;
}

Tensor softplus(const Tensor& x, double beta, double threshold) {
  require_floating("softplus", x);
  return unary_function("softplus", x, {UnaryFunction::Type::softplus, beta, threshold});
}

Tensor softsign(const Tensor& x) {
  if (has_complex(x)) return x / (x.abs() + 1.0);
  return in_wide("softsign", floats_of(x), [](const Tensor& v) { return v / (v.abs() + 1.0); });
}

Tensor mish(const Tensor& x) {
  return in_wide("mish", x, [](const Tensor& v) { return v * kiln::tanh(softplus(v)); });
}

Tensor tanhshrink(const Tensor& x) {
  if (has_complex(x)) return x - kiln::tanh(x);
  return in_wide("tanhshrink", floats_of(x), [](const Tensor& v) { return v - kiln::tanh(v); });
}

Tensor softshrink(const Tensor& x, double lambd) {
  require_floating("softshrink", x);
  if (!(lambd >= 0.0)) {
    throw_error<ValueError>("softshrink: lambd must not be negative; got ", lambd);
  }
  return activation("softshrink", x, {Unary::softshrink, lambd});
}

Tensor shrink(const Tensor& x, double lambd, double bias) {
  require_floating("shrink", x);
  return where(x.gt(lambd), x - bias, where(x.lt(-lambd), x + bias, x * 0.0));
}

Tensor thresholded_relu(const Tensor& x, double alpha) {
  require_floating("thresholded_relu", x);
  return threshold(x, alpha, 0.0);
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
  require_alike("prelu", x, weight, "weight");
  const Shape& xs = x.shape();
  const int64_t channels = xs.rank() >= 2 ? xs[1] : 1;
  if (weight.dim() > 1 || (weight.numel() != 1 && weight.numel() != channels)) {
    throw_error<ValueError>(
        "prelu: expected a weight of 1 element, or one for each channel (dim "
        "1); got weight ",
        weight.shape(), " for input ", xs);
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

Tensor softmin(const Tensor& x, int64_t dim) {
  require_floating("softmin", x);
  return kiln::softmax(-x, dim);
}

Tensor quiet_softmax(const Tensor& x, int64_t dim) {
  require_floating("quiet_softmax", x);
  const int d = normalize_dim("quiet_softmax", dim, x.dim());
  if (x.dim() == 0) return kiln::sigmoid(x);
  // A softmax with one more class, whose logit is 0.
  return kiln::softmax(padded_dim(x, d, 0, 1), d).narrow(d, 0, x.size(d));
}

Tensor gumbel_softmax(const Tensor& logits, double tau, bool hard, int64_t dim) {
  require_floating("gumbel_softmax", logits);
  if (!(tau > 0.0)) throw_error<ValueError>("gumbel_softmax: expected tau > 0; got ", tau);
  const int d = normalize_dim("gumbel_softmax", dim, logits.dim());
  // -log of exponential noise; -log1p(-u) is exponential and may be 0, whose logarithm is kept
  // finite.
  const DType dtype = logits.dtype();
  const Tensor u = rand(logits.shape(), {wide_dtype(dtype), logits.device()});
  const Tensor exponential = (-kiln::log1p(-u)).clamp(std::numeric_limits<float>::min(), {});
  const Tensor noise = (-kiln::log(exponential)).to(dtype);
  const Tensor soft = kiln::softmax((logits + noise) / tau, d);
  if (!hard) return soft;
  const Tensor fixed = soft.detach();
  const Tensor zero = zeros_like(fixed);
  const Tensor best = fixed.argmax(d, true);
  if (logits.dim() == 0) return ones_like(fixed) - fixed + soft;
  const Tensor one_hot = zero.scatter(d, best, full(best.shape(), 1.0, {dtype, logits.device()}));
  return one_hot - fixed + soft;
}

Tensor softmax(const Tensor& x, int64_t dim, std::optional<DType> dtype) {
  return kiln::softmax(dtype ? x.to(*dtype) : x, dim);
}
Tensor log_softmax(const Tensor& x, int64_t dim, std::optional<DType> dtype) {
  return kiln::log_softmax(dtype ? x.to(*dtype) : x, dim);
}
Tensor softmin(const Tensor& x, int64_t dim, std::optional<DType> dtype) {
  return softmin(dtype ? x.to(*dtype) : x, dim);
}

}  // namespace kiln::functional
