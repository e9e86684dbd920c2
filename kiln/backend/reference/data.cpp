// Creation, conversion and copying.
#include <algorithm>

#include "kiln/backend/random_fill.h"
#include "kiln/backend/reference/elements.h"

namespace kiln {

using reference::make;
using reference::Ops;
using reference::overwrite;
using reference::read;
using reference::Tensor;
using reference::write;

namespace {

// A copy even where host::into_data would share: the operand stays writable while the data must not
// change.
TensorData copied(const HostHandle& x) {
  const HostHandle second_holder = x;
  return host::into_data(second_holder);
}

HostHandle random(const Shape& shape, Distribution distribution, RandomStream stream, DType dtype,
                  Device device) {
  TensorData data(shape, dtype);
  host::fill_random(data, distribution, stream);
  return host::from_data(data, device);
}

HostHandle to_device(const HostHandle& x, Device device) {
  return x->device() == device ? x : host::from_data(copied(x), device);
}

HostHandle contiguous(const HostHandle& x) {
  return x->is_contiguous() ? x : host::from_data(copied(x), x->device());
}

// Float to int truncates (convert_element).
template <class V>
HostHandle convert(const HostHandle& x, DType dtype) {
  return make(x->shape(), dtype, x->device(), read<V>(x));
}

// Memory first: a size that nothing can hold is refused there.
template <class V>
HostHandle filled(const Shape& shape, DType dtype, Device device, V value) {
  HostHandle out = host::empty(shape, dtype, device);
  visit_dtype("full", dtype, [&]<class T>() {
    std::fill_n(out->data_as<T>(), out->numel(), convert_element<T>(value));
  });
  return out;
}

}  // namespace

#define KILN_DATA_OPS(kind, V)                                                               \
  HostHandle Ops::kind##_from_data(const TensorData& data, Device device) {                  \
    return host::from_data(data, device);                                                    \
  }                                                                                          \
  TensorData Ops::kind##_into_data(Tensor x) { return copied(x); }                           \
  HostHandle Ops::kind##_to_device(Tensor x, Device device) { return to_device(x, device); } \
  HostHandle Ops::kind##_contiguous(Tensor x) { return contiguous(x); }                      \
  void Ops::kind##_assign(Tensor x, Tensor value) { overwrite(x, read<V>(value, x->shape())); }
KILN_DATA_OPS(float, double)
KILN_DATA_OPS(int, int64_t)
KILN_DATA_OPS(bool, int64_t)
#undef KILN_DATA_OPS

// ---- Float
HostHandle Ops::float_empty(const Shape& shape, DType dtype, Device device) {
  return host::empty(shape, dtype, device);
}
HostHandle Ops::float_full(const Shape& shape, Scalar value, DType dtype, Device device) {
  return filled(shape, dtype, device, value.to_double());
}
void Ops::float_fill(Tensor x, Scalar value) {
  overwrite(x, std::vector<double>(static_cast<size_t>(x->numel()), value.to_double()));
}
HostHandle Ops::float_random(const Shape& shape, Distribution distribution, RandomStream stream,
                             DType dtype, Device device) {
  return random(shape, distribution, stream, dtype, device);
}
HostHandle Ops::float_arange(double start, double step, int64_t count, DType dtype, Device device) {
  const HostHandle out = host::empty({count}, dtype, device);
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(start + static_cast<double>(i) * step);
  write(out, values);
  return out;
}
HostHandle Ops::float_cast(Tensor x, DType dtype) { return convert<double>(x, dtype); }
HostHandle Ops::float_into_int(Tensor x, DType dtype) { return convert<double>(x, dtype); }
HostHandle Ops::float_into_bool(Tensor x) { return convert<double>(x, DType::boolean); }

// ---- Int
HostHandle Ops::int_empty(const Shape& shape, DType dtype, Device device) {
  return host::empty(shape, dtype, device);
}
HostHandle Ops::int_full(const Shape& shape, Scalar value, DType dtype, Device device) {
  return filled(shape, dtype, device, value.to_int());
}
void Ops::int_fill(Tensor x, Scalar value) {
  overwrite(x, std::vector<int64_t>(static_cast<size_t>(x->numel()), value.to_int()));
}
HostHandle Ops::int_random(const Shape& shape, Distribution distribution, RandomStream stream,
                           DType dtype, Device device) {
  return random(shape, distribution, stream, dtype, device);
}
HostHandle Ops::int_arange(int64_t start, int64_t step, int64_t count, DType dtype, Device device) {
  const HostHandle out = host::empty({count}, dtype, device);
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(start + i * step);
  write(out, values);
  return out;
}
HostHandle Ops::int_cast(Tensor x, DType dtype) { return convert<int64_t>(x, dtype); }
HostHandle Ops::int_into_float(Tensor x, DType dtype) { return convert<int64_t>(x, dtype); }
HostHandle Ops::int_into_bool(Tensor x) { return convert<int64_t>(x, DType::boolean); }

// ---- Bool
HostHandle Ops::bool_empty(const Shape& shape, Device device) {
  return host::empty(shape, DType::boolean, device);
}
HostHandle Ops::bool_full(const Shape& shape, bool value, Device device) {
  return filled(shape, DType::boolean, device, int64_t{value});
}
void Ops::bool_fill(Tensor x, Scalar value) {
  overwrite(x, std::vector<int64_t>(static_cast<size_t>(x->numel()), value.to_bool()));
}
HostHandle Ops::bool_into_float(Tensor x, DType dtype) { return convert<int64_t>(x, dtype); }
HostHandle Ops::bool_into_int(Tensor x, DType dtype) { return convert<int64_t>(x, dtype); }

}  // namespace kiln
