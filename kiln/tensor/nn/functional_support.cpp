#include "kiln/tensor/nn/functional_support.h"

#include <cmath>
#include <limits>

#include "kiln/tensor/complex/complex_impl.h"
#include "kiln/tensor/reduce/reductions.h"

namespace kiln {

Padding::Padding(const char* mode) : before_(0), after_(0) {
  const std::string_view name = mode;
  if (name != "same" && name != "valid") {
    throw_error<ValueError>("padding: unknown mode; got '", name,
                            "'; expected 'same', 'valid' or sizes");
  }
  mode_ = name == "same" ? Mode::same : Mode::valid;
}

namespace detail {

Triple triple_of(const char* op, const char* what, const Sizes& sizes, int spatial, int64_t least,
                 int64_t lead) {
  const Shape& v = sizes.values();
  if (v.rank() != 1 && v.rank() != spatial) {
    throw_error<ValueError>(op, ": ", what, " has the wrong length; got ", v, "; expected one ",
                            "integer", spatial > 1 ? concat(", or ", spatial, " of them") : "");
  }
  Triple out{lead, lead, lead};
  for (int i = 0; i < spatial; ++i) {
    const int64_t value = v.rank() == 1 ? v[0] : v[i];
    if (value < least || value >= int64_t{1} << 31) {
      throw_error<ValueError>(op, ": ", what, " is out of range; got ", v,
                              "; expected numbers >= ", least, " and below 2^31");
    }
    out[static_cast<size_t>(3 - spatial + i)] = value;
  }
  return out;
}

std::string text_of(const Triple& sizes, int spatial) {
  Shape shape;
  for (int i = 3 - spatial; i < 3; ++i) shape.push_back(sizes[static_cast<size_t>(i)]);
  return to_string(shape);
}

void require_floating(const char* op, const Tensor& x) {
  const Value& value = value_of(op, x);
  if (kind_of_value(value) != Kind::floating) {
    throw_wrong_dtype(op, dtype_of_value(value), "a floating point tensor");
  }
}

void require_alike(const char* op, const Tensor& x, const Tensor& other, const char* what) {
  const Value& a = value_of(op, x);
  const Value& b = value_of(op, other);
  check_same_device(op, a, b);
  if (kind_of_value(a) != Kind::floating || dtype_of_value(a) != dtype_of_value(b)) {
    throw_error<DTypeError>(op, ": input and ", what, " must have one floating point dtype; got ",
                            dtype_of_value(a), " and ", dtype_of_value(b));
  }
}

void require_param(const char* op, const Tensor& x, const Tensor& param, const char* what,
                   const Shape& expected) {
  if (!param.defined()) return;
  require_alike(op, x, param, what);
  if (!(param.shape() == expected)) {
    throw_error<ShapeError>(op, ": the ", what, " has the wrong shape; got ", param.shape(),
                            " for input ", x.shape(), "; expected ", expected);
  }
}

void throw_wrong_rank(const char* op, const Shape& shape, int spatial) {
  constexpr const char* kShapes[] = {"", "[N, C, L] or [C, L]", "[N, C, H, W] or [C, H, W]",
                                     "[N, C, D, H, W] or [C, D, H, W]"};
  throw_error<ShapeError>(op, ": the input has the wrong number of dims; got ", shape,
                          "; expected ", kShapes[spatial]);
}

Planes::Planes(const char* op, const Tensor& input, int dims) : spatial(dims) {
  const Shape& s = impl_of(op, input).shape();
  batched = s.rank() == dims + 2;
  if (!batched && s.rank() != dims + 1) throw_wrong_rank(op, s, dims);
  Shape to{batched ? s[0] : 1, s[batched ? 1 : 0]};
  for (int i = dims; i < 3; ++i) to.push_back(1);
  for (int i = s.rank() - dims; i < s.rank(); ++i) to.push_back(s[i]);
  x = input.reshape(to);
}

Tensor Planes::restored(const Tensor& out) const {
  const Shape s = out.shape();
  Shape to;
  if (batched) to.push_back(s[0]);
  to.push_back(s[1]);
  for (int i = 5 - spatial; i < 5; ++i) to.push_back(s[i]);
  return out.reshape(to);
}

Tensor padded_dim(const Tensor& x, int64_t dim, int64_t before, int64_t after, double value) {
  Tensor inside = x;
  if (before < 0) inside = inside.slice(dim, -before, {});
  if (after < 0) inside = inside.slice(dim, 0, inside.size(dim) + after);
  std::vector<Tensor> parts;
  const auto add = [&](int64_t n) {
    if (n <= 0) return;
    Shape shape = inside.shape();
    shape[static_cast<int>(dim)] = n;
    parts.push_back(full(shape, value, {x.dtype(), x.device()}));
  };
  add(before);
  parts.push_back(inside);
  add(after);
  return parts.size() == 1 ? inside : cat(std::span<const Tensor>(parts), dim);
}

Tensor reduced_loss(const Tensor& loss, functional::Reduction reduction) {
  switch (reduction) {
    case functional::Reduction::mean:
      return loss.mean();
    case functional::Reduction::sum:
      return loss.sum();
    default:
      return loss;
  }
}

Tensor p_norm(const Tensor& x, double p, const Dims& dims, bool keepdim) {
  if (has_complex(x)) return p_norm(x.abs(), p, dims, keepdim);
  if (p < 0 && x.numel() == 0) {
    const bool nothing = dims.empty() || std::any_of(dims.begin(), dims.end(),
                                                     [&](int dim) { return x.size(dim) == 0; });
    if (nothing) {
      throw_error<ValueError>(
          "norm: a norm of a negative order of no elements is not defined; got p = ", p,
          " for shape ", x.shape());
    }
  }
  if (std::isinf(p)) {
    const Tensor size = x.abs();
    return p > 0 ? size.amax(dims, keepdim) : size.amin(dims, keepdim);
  }
  if (p == 0.0) return x.ne(0.0).to(x.dtype()).sum(dims, keepdim);
  if (p == 1.0) return x.abs().sum(dims, keepdim);
  if ((p == 1.0 || p == 2.0) && !x.requires_grad()) return kiln::norm(x, p, dims, keepdim);
  const DType dtype = x.dtype();
  const Tensor wide = x.to(wide_dtype(dtype));
  const Tensor total =
      p == 2.0 ? wide.square().sum(dims, keepdim) : wide.abs().pow(p).sum(dims, keepdim);
  if (!total.requires_grad()) {
    return (p == 2.0 ? total.sqrt() : total.pow(1.0 / p)).to(dtype);
  }
  // The root has no finite slope at 0.
  const Tensor zero = total.eq(0.0);
  const Tensor safe = total.masked_fill(zero, 1.0);
  return (p == 2.0 ? safe.sqrt() : safe.pow(1.0 / p)).masked_fill(zero, 0.0).to(dtype);
}

void require_probability(const char* op, double p) {
  if (!(p >= 0.0 && p <= 1.0)) {
    throw_error<ValueError>(op, ": expected a probability in [0, 1]; got ", p);
  }
}

}  // namespace detail
}  // namespace kiln
