#include "kiln/tensor/complex/complex.h"

#include <atomic>

#include "kiln/backend/host_tensor.h"
#include "kiln/core/warning.h"
#include "kiln/graph/capture.h"
#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/complex/complex_impl.h"
#include "kiln/tensor/ops.h"

namespace kiln {

using namespace detail;

namespace detail {

Tensor parts_of(const Tensor& z) { return wrap_view(z, parts_or_value("complex", z)); }

Tensor from_parts(const Tensor& parts) {
  const TensorImpl& real = *parts.impl();
  Tensor out = wrap_complex(real.value);
  if (out.impl()->value.inner == real.value.inner) {  // else it was copied
    out.impl()->root = real.root;
    out.impl()->root_writes = real.root_writes;
    if (real.root) out.impl()->view_kind = real.view_kind;
  }
  return out;
}

Parts split_parts(const Tensor& z) {
  if (!has_complex(z)) return {z, {}};
  const Tensor parts = parts_of(z);
  return {parts.select(-1, 0), parts.select(-1, 1)};
}

Tensor join_parts(const Tensor& re, const Tensor& im) { return from_parts(stack({re, im}, -1)); }

int parts_dim(const char* op, const Tensor& z, int64_t dim) {
  return normalize_dim(op, dim, z.dim());
}

Dims parts_dims(const char* op, const Tensor& z, const Dims& dims) {
  return normalize_dims(op, dims, z.dim());
}

Shape parts_shape(const Shape& shape) {
  Shape out = shape;
  out.push_back(2);
  return out;
}

DType complex_result_type(const char* op, const Tensor& x, const Tensor& y) {
  const DType a = x.dtype();
  const DType b = y.dtype();
  if (kind_of(a) == Kind::quantized || kind_of(b) == Kind::quantized) {
    throw_wrong_dtype(op, DType::q8, "tensors that are not quantized, try dequantize()");
  }
  const bool a_counts = x.dim() > 0;
  const bool b_counts = y.dim() > 0;
  if (a_counts != b_counts) {
    const DType major = a_counts ? a : b;
    if (kiln::is_complex(major)) return major;
    if (kiln::is_floating_point(major)) return complex_dtype(major);
  }
  return complex_dtype(promote_types(a, b));
}

Tensor complex_cast(const Tensor& x, DType dtype) {
  if (!has_complex(x)) {
    const Tensor re = x.to(real_dtype(dtype));
    return join_parts(re, zeros_like(re));
  }
  if (kiln::is_complex(dtype)) {
    return through_parts(x, [&](const Tensor& parts) { return parts.to(real_dtype(dtype)); });
  }
  if (dtype == bool_) return parts_of(x).to(bool_).any(-1);
  static std::atomic_flag warned;
  if (!warned.test_and_set()) {
    warn("to: casting complex values to a real dtype discards the imaginary part; try real()");
  }
  return real(x).to(dtype);
}

Tensor wrap_host(const Shape& shape, DType dtype, const Strides& strides, int64_t offset,
                 Handle<Storage> storage) {
  if (!kiln::is_complex(dtype)) {
    ErasedTensor x =
        make_handle<HostTensor>(shape, dtype, Device(kCpu), strides, offset, std::move(storage));
    graph::note_host_tensor(x);
    return wrap(std::move(x));
  }
  Strides steps;
  for (const int64_t s : strides) steps.push_back(2 * s);
  steps.push_back(1);
  ErasedTensor parts = make_handle<HostTensor>(parts_shape(shape), real_dtype(dtype), Device(kCpu),
                                               steps, 2 * offset, std::move(storage));
  graph::note_host_tensor(parts);
  return wrap_complex(Value{std::move(parts)});
}

std::complex<double> complex_item(const Tensor& x) {
  if (!has_complex(x)) return x.item();
  if (x.numel() != 1) {
    throw_error<ValueError>("item: only a tensor of one element is a number; got shape ",
                            x.shape());
  }
  const TensorData data = x.to_data();
  if (data.dtype() == c128) return data.as<std::complex<double>>()[0];
  return std::complex<double>(data.as<std::complex<float>>()[0]);
}

Tensor complex_full(const Shape& shape, std::complex<double> value, const TensorOptions& options) {
  checked_numel("full", shape);
  const DType dtype = options.dtype.value_or(complex_dtype(default_dtype()));
  TensorData one(Shape{}, c128);
  one.as_mutable<std::complex<double>>()[0] = value;
  Tensor out = Tensor(one.cast(dtype), options.device);
  if (shape.rank() > 0) out = out.expand(shape).clone();
  if (options.requires_grad) out.requires_grad_();
  return out;
}

Tensor number_like(const Tensor& x, std::complex<double> value) {
  const DType t = x.dtype();
  const DType dtype =
      is_integral(t) || t == bool_ ? complex_dtype(default_dtype()) : complex_dtype(t);
  return full(Shape{}, value, {dtype, x.device()});
}

}  // namespace detail

namespace {

// Two real tensors of one dtype that complex numbers are made of, broadcast.
std::pair<Tensor, Tensor> checked_parts(const char* op, const Tensor& x, const Tensor& y) {
  const Value& a = value_of(op, x);
  const Value& b = value_of(op, y);
  check_same_device(op, a, b);
  const DType dtype = dtype_of_value(a);
  if (dtype != dtype_of_value(b) || (dtype != f32 && dtype != f64)) {
    throw_error<DTypeError>(op, ": expected two tensors of float32, or two of float64; got ", dtype,
                            " and ", dtype_of_value(b));
  }
  const Shape shape = broadcast_shapes(op, shape_of(a), shape_of(b));
  return {x.expand(shape), y.expand(shape)};
}

}  // namespace

Tensor complex(const Tensor& real, const Tensor& imag) {
  const auto [re, im] = checked_parts("complex", real, imag);
  return join_parts(re, im);
}

Tensor polar(const Tensor& abs, const Tensor& angle) {
  KILN_AUTOCAST(f32, polar, abs, angle);
  const auto [r, phi] = checked_parts("polar", abs, angle);
  return join_parts(r.mul(phi.cos()), r.mul(phi.sin()));
}

Tensor real(const Tensor& x) {
  impl_of("real", x);
  return has_complex(x) ? parts_of(x).select(-1, 0) : x;
}

Tensor imag(const Tensor& x) {
  if (impl_of("imag", x).is_complex()) return parts_of(x).select(-1, 1);
  throw_wrong_dtype("imag", x.dtype(), "a complex tensor");
}

Tensor view_as_real(const Tensor& x) {
  if (!impl_of("view_as_real", x).is_complex()) {
    throw_wrong_dtype("view_as_real", x.dtype(), "a complex tensor");
  }
  // A reshape, so that the result is not itself the leaf that x may be.
  return parts_of(x).reshape(parts_shape(x.shape()));
}

Tensor view_as_complex(const Tensor& x) {
  KILN_AUTOCAST(f32, view_as_complex, x);
  const Value& value = value_of("view_as_complex", x);
  const DType dtype = dtype_of_value(value);
  if (dtype != f32 && dtype != f64) {
    throw_wrong_dtype("view_as_complex", dtype, "float32 or float64");
  }
  const Shape& shape = shape_of(value);
  if (shape.rank() == 0 || shape.back() != 2) {
    throw_error<ShapeError>("view_as_complex: the last dim must hold the two parts; got ", shape,
                            "; expected a last dim of size 2");
  }
  const Tensor view = x.reshape(shape);
  Tensor out = from_parts(view);
  if (!(out.impl()->value.inner == view.impl()->value.inner)) {
    throw_error<ShapeError>(
        "view_as_complex: the parts are not interleaved; got strides ", x.stride(),
        "; expected a last stride of 1 and even ones before it, try contiguous()");
  }
  return out;
}

Tensor conj(const Tensor& x) {
  impl_of("conj", x);
  if (!has_complex(x)) return x;
  return wrap_complex(AD::float_complex_unary(parts_or_value("conj", x), ComplexFunction::conj));
}

Tensor adjoint(const Tensor& x) {
  if (x.dim() < 2) {
    throw_error<ShapeError>("adjoint: expected at least 2 dims; got ", x.shape());
  }
  return conj(x.transpose(-2, -1));
}

Tensor isreal(const Tensor& x) {
  impl_of("isreal", x);
  if (has_complex(x)) return imag(x).eq(0);
  return full(x.shape(), true, {bool_, x.device()});
}

}  // namespace kiln
