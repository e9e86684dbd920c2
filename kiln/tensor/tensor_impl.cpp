#include "kiln/tensor/tensor_impl.h"

#include "kiln/backend/dispatch/views.h"

namespace kiln::detail {

void throw_undefined(const char* op) {
  throw_error<ValueError>(op,
                          ": the tensor is undefined; got a default-constructed Tensor; "
                          "expected one that holds values");
}

void throw_device_mismatch(const char* op, Device a, Device b) {
  throw_error<DeviceError>(op, ": the tensors live on different devices; got ", a, " and ", b,
                           "; expected one device, try to(device)");
}

void throw_wrong_dtype(const char* op, DType got, const char* expected) {
  throw_error<DTypeError>(op, ": wrong dtype; got ", got, "; expected ", expected);
}

void throw_complex(const char* op, DType got) {
  throw_error<DTypeError>(op, ": is not defined for complex tensors; got ", got,
                          "; expected a real dtype, try real(), imag(), abs() or view_as_real()");
}

namespace {

// Whether parts [.., 2] lie in memory as complex numbers do. Not asked of a backend that tells no
// layouts.
bool is_interleaved(const ErasedTensor& x) {
  const Layout layout = layout_of(x);
  if (!layout) return true;
  const Strides& strides = *layout.strides;
  if (strides.back() != 1 || layout.offset % 2 != 0) return false;
  for (int i = 0; i + 1 < strides.rank(); ++i) {
    if (strides[i] % 2 != 0 && x->shape()[i] > 1) return false;
  }
  return true;
}

}  // namespace

Tensor wrap_complex(Value parts) {
  if (!is_interleaved(parts.inner)) parts = AD::float_contiguous(parts);
  Shape shape = shape_of(parts);
  shape.erase(shape.rank() - 1);
  auto impl = make_handle<TensorImpl>(std::move(parts));
  impl->complex_shape = std::make_unique<const Shape>(shape);
  return Tensor(std::move(impl));
}

std::string renamed(const char* op, std::string_view message) {
  const size_t colon = message.find(':');
  return concat(op, colon == std::string_view::npos ? ": " : "",
                colon == std::string_view::npos ? message : message.substr(colon));
}

Value cast(const ValueArg& x, DType to) {
  const DType from = x->inner->dtype();
  if (from == to) return x.get();
  const Arg<ErasedTensor> inner = x.with(x->inner);
  switch (kind_of(from)) {
    case Kind::floating:
      switch (kind_of(to)) {
        case Kind::floating:
          return AD::float_cast(x, to);
        case Kind::integer:
          return {Dispatch::float_into_int(inner, to)};
        case Kind::boolean:
          return {Dispatch::float_into_bool(inner)};
        default:
          break;
      }
      break;
    case Kind::integer:
      switch (kind_of(to)) {
        case Kind::floating:
          return {Dispatch::int_into_float(inner, to)};
        case Kind::integer:
          return {Dispatch::int_cast(inner, to)};
        case Kind::boolean:
          return {Dispatch::int_into_bool(inner)};
        default:
          break;
      }
      break;
    case Kind::boolean:
      if (kind_of(to) == Kind::floating) return {Dispatch::bool_into_float(inner, to)};
      if (kind_of(to) == Kind::integer) return {Dispatch::bool_into_int(inner, to)};
      break;
    default:
      break;
  }
  throw_error<DTypeError>("to: no conversion; got ", from, " to ", to,
                          "; expected quantize() and dequantize() for quantized tensors");
}

Value full_value(const Shape& shape, Scalar value, DType dtype, Device device) {
  switch (kind_of(dtype)) {
    case Kind::floating:
      return AD::float_full(shape, value, dtype, device);
    case Kind::integer:
      return {Dispatch::int_full(shape, value, dtype, device)};
    case Kind::boolean:
      return {Dispatch::bool_full(shape, value.to_bool(), device)};
    default:
      throw_wrong_dtype("full", dtype, "a floating point, integer or bool dtype");
  }
}

Value scalar_value(Scalar value, DType dtype, Device device) {
  return full_value(Shape{}, value, dtype, device);
}

namespace {

int rank_of_kind(Kind kind) { return kind == Kind::boolean ? 0 : kind == Kind::integer ? 1 : 2; }

}  // namespace

DType result_type(const char* op, const Value& x, const Value& y) {
  const DType a = dtype_of_value(x);
  const DType b = dtype_of_value(y);
  if (kind_of(a) == Kind::quantized || kind_of(b) == Kind::quantized) {
    throw_wrong_dtype(op, DType::q8, "tensors that are not quantized, try dequantize()");
  }
  if (a == b) return a;
  const bool a_counts = shape_of(x).rank() > 0;
  const bool b_counts = shape_of(y).rank() > 0;
  if (a_counts != b_counts) {
    const DType major = a_counts ? a : b;
    const DType minor = a_counts ? b : a;
    if (rank_of_kind(kind_of(minor)) <= rank_of_kind(kind_of(major))) return major;
  }
  return promote_types(a, b);
}

DType result_type(const char* op, const Value& x, Scalar y) {
  const DType a = dtype_of_value(x);
  if (kind_of(a) == Kind::quantized) {
    throw_wrong_dtype(op, a, "a tensor that is not quantized, try dequantize()");
  }
  if (rank_of_kind(y.kind()) <= rank_of_kind(kind_of(a))) return a;
  return y.is_floating_point() ? default_dtype() : i64;
}

ErasedTensor index_value(const char* op, const Tensor& index) {
  const Value& v = value_of(op, index);
  if (kind_of_value(v) != Kind::integer) {
    throw_wrong_dtype(op, dtype_of_value(v), "an index of integers (int64)");
  }
  return dtype_of_value(v) == i64 ? v.inner : Dispatch::int_cast(v.inner, i64);
}

ErasedTensor index_value(const char* op, const Tensor& index, const Value& x) {
  check_same_device(op, x, value_of(op, index));
  return index_value(op, index);
}

const ErasedTensor& bool_value(const char* op, const Tensor& mask) {
  const Value& v = value_of(op, mask);
  if (kind_of_value(v) != Kind::boolean) {
    throw_wrong_dtype(op, dtype_of_value(v), "a bool mask");
  }
  return v.inner;
}

void finish_in_place(const char* op, Tensor& x, Value result) {
  TensorImpl& impl = state_of(x);
  if (!(result.inner == impl.value.inner)) {
    if (!(shape_of(result) == shape_of(impl.value))) {
      throw_error<ShapeError>(op, ": the result does not fit in place; got ", shape_of(result),
                              "; expected ", shape_of(impl.value));
    }
    if (rank_of_kind(kind_of_value(result)) > rank_of_kind(impl.kind())) {
      throw_error<DTypeError>(op, ": the result cannot be stored in place; got ",
                              dtype_of_value(result), " for a tensor of ", impl.dtype());
    }
    result = cast(std::move(result), dtype_of_value(impl.value));
    switch (impl.kind()) {
      case Kind::floating:
        return assign_recorded(impl, result);
      case Kind::integer:
        return Dispatch::int_assign(impl.value.inner, result.inner);
      default:
        return Dispatch::bool_assign(impl.value.inner, result.inner);
    }
  }
  record_write(impl, std::move(result));
}

}  // namespace kiln::detail
