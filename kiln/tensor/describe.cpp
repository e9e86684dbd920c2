// What a tensor is, and its values on the way out.
#include <cmath>
#include <limits>

#include "kiln/backend/batched/batched_tensor.h"
#include "kiln/backend/dispatch/views.h"
#include "kiln/backend/host_tensor.h"
#include "kiln/backend/meta/meta_tensor.h"
#include "kiln/core/kept_data.h"
#include "kiln/graph/capture.h"
#include "kiln/tensor/complex/complex_impl.h"
#include "kiln/tensor/memory_order.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln {

using namespace detail;

namespace {

// The strided view behind a tensor of a host backend.
const HostTensor& host_of(const char* op, const Tensor& x) {
  graph::note_read(op, parts_or_value(op, x).inner);
  const auto* host = dynamic_cast<const HostTensor*>(parts_or_value(op, x).inner.get());
  if (host == nullptr) {
    if (x.device().type == kMeta) meta::throw_no_values(op);
    batched::check_has_memory(op, parts_or_value(op, x).inner);
    throw_error<DeviceError>(op, ": the tensor is not in host memory; got device ", x.device(),
                             "; try to_data()");
  }
  return *host;
}

Layout known_layout(const char* op, const Tensor& x) {
  const Layout layout = layout_of(parts_or_value(op, x).inner);
  if (!layout) {
    throw_error<DeviceError>(op, ": it is not known where the tensor lies in memory; got a ",
                             x.dtype(), " tensor on ", x.device(), "; try contiguous().to('cpu')");
  }
  return layout;
}

// The integers of a quantized tensor, one for each element.
TensorData unpacked(const ErasedTensor& x) {
  const TensorData values = Dispatch::int_into_data(Dispatch::q_values(x));
  const QuantLayout layout(x->shape(), Dispatch::q_scheme(x));
  if (layout.values_dtype == DType::i8) return values;
  TensorData out(x->shape(), DType::i8);
  const auto packed = values.as<uint8_t>();
  auto to = out.as_mutable<int8_t>();
  for (int64_t r = 0; r < layout.rows; ++r) {
    for (int64_t c = 0; c < layout.cols; ++c) {
      const uint8_t byte = packed[static_cast<size_t>(r * layout.bytes_per_row + c / 2)];
      const auto half = static_cast<int8_t>(c % 2 == 0 ? byte & 15 : byte >> 4);
      to[static_cast<size_t>(r * layout.cols + c)] =
          static_cast<int8_t>(half < 8 ? half : half - 16);
    }
  }
  return out;
}

}  // namespace

const Shape& Tensor::shape() const { return impl_of("shape", *this).shape(); }
int64_t Tensor::size(int64_t dim) const {
  const Shape& s = impl_of("size", *this).shape();
  if (s.rank() == 0) throw_error<IndexError>("size: a 0-d tensor has no dims; got dim ", dim);
  return s[normalize_dim("size", dim, s.rank())];
}
int Tensor::dim() const { return shape().rank(); }
int64_t Tensor::numel() const { return shape().numel(); }
DType Tensor::dtype() const { return impl_of("dtype", *this).dtype(); }
Device Tensor::device() const { return impl_of("device", *this).device(); }

Strides Tensor::stride() const {
  Strides strides = *known_layout("stride", *this).strides;
  if (!state_of(*this).is_complex()) return strides;
  strides.erase(strides.rank() - 1);
  for (int64_t& s : strides) s /= 2;
  return strides;
}
bool Tensor::is_complex() const { return impl_of("is_complex", *this).is_complex(); }
bool Tensor::is_contiguous() const {
  const Layout layout = known_layout("is_contiguous", *this);
  return kiln::is_contiguous(parts_or_value("is_contiguous", *this).inner->shape(),
                             *layout.strides);
}

void* Tensor::data_ptr(DType expected) const {
  const HostTensor& host = host_of("data_ptr", *this);
  if (state_of(*this).dtype() != expected) {
    throw_error<DTypeError>("data_ptr: wrong type; got a pointer to ", expected,
                            " for a tensor of ", state_of(*this).dtype());
  }
  detail::stop_keeping(*host.storage());
  return host.data();
}

uint32_t Tensor::version() const {
  return Dispatch::version(parts_or_value("version", *this).inner);
}

TensorData Tensor::to_data() const {
  const Value& x = parts_or_value("to_data", *this);
  if (x.inner->device().type == kMeta) meta::throw_no_values("to_data");
  switch (kind_of_value(x)) {
    case Kind::floating:
      if (state_of(*this).is_complex()) {
        const TensorData parts = Dispatch::float_into_data(x.inner);
        return TensorData(state_of(*this).shape(), state_of(*this).dtype(), parts.storage(),
                          parts.byte_offset());
      }
      return Dispatch::float_into_data(x.inner);
    case Kind::integer:
      return Dispatch::int_into_data(x.inner);
    case Kind::boolean:
      return Dispatch::bool_into_data(x.inner);
    default:
      return unpacked(x.inner);
  }
}

int64_t Tensor::item_integer(int64_t least, int64_t most) const {
  const Scalar value = item_scalar();
  if (value.is_floating_point()) {
    const double number = value.to_double();
    // 2^63, which no int64 is, is the double nearest to the largest.
    const double end =
        most == std::numeric_limits<int64_t>::max() ? 0x1p63 : static_cast<double>(most) + 1;
    if (std::trunc(number) >= static_cast<double>(least) && number < end) return value.to_int();
  } else if (value.to_int() >= least && value.to_int() <= most) {
    return value.to_int();
  }
  throw_error<ValueError>(
      "item: the integer type cannot hold the number; got ",
      value.is_floating_point() ? concat(value.to_double()) : concat(value.to_int()),
      "; expected one from ", least, " to ", most);
}

Scalar Tensor::item_scalar() const {
  const Shape& s = impl_of("item", *this).shape();
  if (s.numel() != 1) {
    throw_error<ValueError>("item: only a tensor of one element is a number; got shape ", s);
  }
  if (state_of(*this).is_complex()) {
    throw_error<DTypeError>("item: a complex number is none of this type; got ",
                            state_of(*this).dtype(), "; try item<std::complex<double>>()");
  }
  if (device().type == kMeta) meta::throw_no_values("item");
  const TensorData data = to_data();
  switch (kind_of(data.dtype())) {
    case Kind::floating:
      return Scalar(data.item(0));
    case Kind::integer:
      return Scalar(data.cast(i64).as<int64_t>()[0]);
    case Kind::boolean:
      return Scalar(data.as<bool>()[0]);
    default:
      throw_wrong_dtype("item", data.dtype(), "dequantize() first");
  }
}

Tensor Tensor::to(DType dtype) const {
  const Value& x = parts_or_value("to", *this);
  if (state_of(*this).dtype() == dtype) return *this;
  if (state_of(*this).is_complex() || kiln::is_complex(dtype)) return complex_cast(*this, dtype);
  return wrap(cast(x, dtype));
}

Tensor Tensor::to(Device device) const {
  const Value& x = parts_or_value("to", *this);
  if (x.inner->device() == device) return *this;
  if (x.inner->device().type == kMeta && device.type != kMeta) meta::throw_no_values("to");
  if (state_of(*this).is_complex()) return wrap_complex(AD::float_to_device(x, device));
  if (kind_of_value(x) == Kind::quantized) {
    return wrap(
        Dispatch::q_from_parts(Dispatch::int_to_device(Dispatch::q_values(x.inner), device),
                               Dispatch::float_to_device(Dispatch::q_scales(x.inner), device),
                               Dispatch::q_scheme(x.inner), shape_of(x)));
  }
  return wrap(by_kind(
      "to", kind_of_value(x), [&] { return AD::float_to_device(x, device); },
      [&] { return Dispatch::int_to_device(x.inner, device); },
      [&] { return Dispatch::bool_to_device(x.inner, device); }, dtype_of_value(x)));
}

Tensor Tensor::to(Device device, DType dtype) const { return to(dtype).to(device); }

Tensor Tensor::contiguous() const {
  const Value& x = parts_or_value("contiguous", *this);
  if (kind_of_value(x) == Kind::quantized) return *this;
  const Layout layout = layout_of(x.inner);
  if (layout && kiln::is_contiguous(shape_of(x), *layout.strides)) return *this;
  if (state_of(*this).is_complex()) return wrap_complex(AD::float_contiguous(x));
  return wrap(by_kind(
      "contiguous", kind_of_value(x), [&] { return AD::float_contiguous(x); },
      [&] { return Dispatch::int_contiguous(x.inner); },
      [&] { return Dispatch::bool_contiguous(x.inner); }, dtype_of_value(x)));
}

Tensor Tensor::clone() const {
  const Value& x = parts_or_value("clone", *this);
  const Device device = x.inner->device();
  const DType dtype = dtype_of_value(x);
  Dims order = memory_order(x.inner);
  // The parts of a complex number lie side by side.
  if (is_complex() && order.rank() != 0 && order.back() != order.rank() - 1) order = {};
  const bool plain = order.rank() == 0;
  const Shape shape = plain ? shape_of(x) : permuted(shape_of(x), order);
  const Dims dims = inverse(order);
  switch (kind_of(dtype)) {
    case Kind::floating: {
      ErasedTensor out = Dispatch::float_empty(shape, dtype, device);
      if (!plain) out = Dispatch::float_permute(out, dims);
      return wrap_like(*this, AD::assigned(Value{std::move(out)}, x));
    }
    case Kind::integer: {
      ErasedTensor out = Dispatch::int_empty(shape, dtype, device);
      if (!plain) out = Dispatch::int_permute(out, dims);
      Dispatch::int_assign(out, x.inner);
      return wrap(std::move(out));
    }
    case Kind::boolean: {
      ErasedTensor out = Dispatch::bool_empty(shape, device);
      if (!plain) out = Dispatch::bool_permute(out, dims);
      Dispatch::bool_assign(out, x.inner);
      return wrap(std::move(out));
    }
    default:
      return wrap(x.inner);  // nothing writes quantized tensors
  }
}

namespace {

void check_scheme(const char* op, const QuantScheme& scheme) {
  if (!(scheme.scale >= 0)) {
    throw_error<ValueError>(op, ": expected a scale > 0, or 0 to choose one; got ", scheme.scale);
  }
  if (scheme.scale > 0 && scheme.level != QuantLevel::tensor) {
    throw_error<ValueError>(op, ": a scale can be given for the whole tensor only; got ",
                            scheme.scale, " for channels or blocks");
  }
  if (scheme.bits != 8 && scheme.bits != 4) {
    throw_error<ValueError>(op, ": expected 8 or 4 bits; got ", scheme.bits);
  }
  if (scheme.block < 1) {
    throw_error<ValueError>(op, ": a block must have at least one value; got ", scheme.block);
  }
}

const Value& quantized_value(const char* op, const Tensor& x) {
  const Value& value = value_of(op, x);
  if (kind_of_value(value) != Kind::quantized) {
    throw_wrong_dtype(op, dtype_of_value(value), "a quantized tensor");
  }
  return value;
}

}  // namespace

Tensor quantize(const Tensor& x, const QuantScheme& scheme) {
  const Value& value = value_of("quantize", x);
  if (kind_of_value(value) != Kind::floating) {
    throw_wrong_dtype("quantize", dtype_of_value(value), "a floating point tensor");
  }
  check_scheme("quantize", scheme);
  return wrap(AD::float_quantize(value, scheme));
}

Tensor quantize_dynamic(const Tensor& x, const QuantScheme& scheme) {
  if (scheme.scale > 0) {
    throw_error<ValueError>("quantize_dynamic: the scale comes from the tensor; got ", scheme.scale,
                            ", try quantize()");
  }
  return quantize(x, scheme);
}

QuantScheme quant_scheme(const Tensor& x) {
  return Dispatch::q_scheme(quantized_value("quant_scheme", x).inner);
}
Tensor quantized_values(const Tensor& x) {
  return wrap(Dispatch::q_values(quantized_value("quantized_values", x).inner));
}
Tensor quantized_scales(const Tensor& x) {
  return wrap(Dispatch::q_scales(quantized_value("quantized_scales", x).inner));
}

Tensor make_quantized(const Tensor& values, const Tensor& scales, const QuantScheme& scheme,
                      const Shape& shape) {
  const char* op = "make_quantized";
  const Value& v = value_of(op, values);
  const Value& s = value_of(op, scales);
  check_same_device(op, v, s);
  check_scheme(op, scheme);
  const QuantLayout layout(shape, scheme);
  const auto check = [op](const char* what, const Value& got, const Shape& wanted, DType dtype) {
    if (!(shape_of(got) == wanted) || dtype_of_value(got) != dtype) {
      throw_error<ShapeError>(op, ": the ", what, " do not fit; got ", dtype_of_value(got), " ",
                              shape_of(got), "; expected ", dtype, " ", wanted);
    }
  };
  check("values", v, layout.values_shape, layout.values_dtype);
  check("scales", s, layout.scales_shape, layout.scales_dtype);
  return wrap(Dispatch::q_from_parts(v.inner, s.inner, scheme, shape));
}

Tensor dequantize(const Tensor& x, DType dtype) {
  const Value& value = value_of("dequantize", x);
  if (kind_of_value(value) != Kind::quantized) {
    throw_wrong_dtype("dequantize", dtype_of_value(value), "a quantized tensor");
  }
  if (!is_floating_point(dtype)) throw_wrong_dtype("dequantize", dtype, "a floating point dtype");
  return wrap(AD::q_dequantize(value.inner, dtype));
}

}  // namespace kiln
