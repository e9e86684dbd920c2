#include "kiln/tensor/creation.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "kiln/backend/random_fill.h"
#include "kiln/tensor/complex_impl.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/scalar_fit.h"

namespace kiln {

using namespace detail;

namespace {

Tensor finished(Tensor x, const TensorOptions& options) {
  if (options.requires_grad) x.requires_grad_();
  return x;
}

DType dtype_or_default(const TensorOptions& options) {
  return options.dtype.value_or(default_dtype());
}

Value upload(const TensorData& data, Device device) {
  switch (kind_of(data.dtype())) {
    case Kind::floating:
      if (is_complex(data.dtype())) {
        return AD::float_from_data(TensorData(parts_shape(data.shape()), real_dtype(data.dtype()),
                                              data.storage(), data.byte_offset()),
                                   device);
      }
      return AD::float_from_data(data, device);
    case Kind::integer:
      return {Dispatch::int_from_data(data, device)};
    case Kind::boolean:
      return {Dispatch::bool_from_data(data, device)};
    default:
      throw_wrong_dtype("from_data", data.dtype(), "a floating point, integer or bool dtype");
  }
}

}  // namespace

Tensor::Tensor(const TensorData& data, Device device) {
  Value value = upload(data, device);
  *this = is_complex(data.dtype()) ? wrap_complex(std::move(value)) : wrap(std::move(value));
}

Tensor from_data(const TensorData& data, TensorOptions options) {
  return finished(Tensor(data.cast(options.dtype.value_or(data.dtype())), options.device), options);
}

namespace detail {

Tensor from_values(const void* values, size_t count, DType dtype, const Shape& shape,
                   const TensorOptions& options) {
  if (checked_numel("tensor", shape) != static_cast<int64_t>(count)) {
    throw_error<ShapeError>("tensor: the values do not fill the shape; got ", count, " values for ",
                            shape, "; expected ", shape.numel());
  }
  TensorData data(shape, dtype);
  if (count != 0) std::memcpy(data.mutable_data(), values, count * size_of(dtype));
  return from_data(data, options);
}

}  // namespace detail

namespace {

struct NestedValues {
  std::vector<double> doubles;
  std::vector<int64_t> ints;  // the same values, exact for integers
  bool any_float = false;
  bool any_int = false;
};

// Collects the numbers; `depth` counts the braces above `list`.
void collect(const NestedList& list, Shape& shape, int depth, NestedValues& out) {
  if (!list.is_list()) {
    if (depth != shape.rank()) {
      throw_error<ShapeError>(
          "tensor: the braces are not nested evenly; got a number where a "
          "list of ",
          shape[depth], " was expected");
    }
    const Scalar value = list.value();
    out.any_float = out.any_float || value.is_floating_point();
    out.any_int = out.any_int || value.is_integral();
    out.doubles.push_back(value.to_double());
    out.ints.push_back(value.to_int());
    return;
  }
  const auto size = static_cast<int64_t>(list.items().size());
  if (depth >= shape.rank() || shape[depth] != size) {
    throw_error<ShapeError>("tensor: rows differ in length; got a list of ", size, " at depth ",
                            depth, "; expected shape ", shape);
  }
  for (const NestedList& item : list.items()) collect(item, shape, depth + 1, out);
}

}  // namespace

Tensor tensor(std::initializer_list<NestedList> values, TensorOptions options) {
  const NestedList root(values);
  Shape shape;
  for (const NestedList* level = &root; level->is_list(); level = &level->items().front()) {
    shape.push_back(static_cast<int64_t>(level->items().size()));
    if (level->items().empty()) break;
  }
  NestedValues found;
  collect(root, shape, 0, found);
  const bool floats = found.any_float || found.doubles.empty();
  const DType natural = floats ? default_dtype() : found.any_int ? i64 : bool_;
  if (!options.dtype) options.dtype = natural;
  if (floats) return from_values(found.doubles.data(), found.doubles.size(), f64, shape, options);
  return from_values(found.ints.data(), found.ints.size(), i64, shape, options);
}

Tensor tensor(Scalar value, TensorOptions options) { return full(Shape{}, value, options); }

Tensor empty(const Shape& shape, TensorOptions options) {
  checked_numel("empty", shape);
  const DType dtype = dtype_or_default(options);
  if (is_complex(dtype)) {
    return finished(
        wrap_complex(AD::float_empty(parts_shape(shape), real_dtype(dtype), options.device)),
        options);
  }
  return finished(
      wrap(by_kind(
          "empty", kind_of(dtype), [&] { return AD::float_empty(shape, dtype, options.device); },
          [&] { return Dispatch::int_empty(shape, dtype, options.device); },
          [&] { return Dispatch::bool_empty(shape, options.device); }, dtype)),
      options);
}

Tensor full(const Shape& shape, Scalar value, TensorOptions options) {
  checked_numel("full", shape);
  const DType natural = value.is_bool() ? bool_ : value.is_integral() ? i64 : default_dtype();
  if (options.dtype && is_complex(*options.dtype)) {
    if (value.to_double() != 0.0)
      return full(shape, std::complex<double>(value.to_double()), options);
    return finished(wrap_complex(AD::float_full(parts_shape(shape), 0, real_dtype(*options.dtype),
                                                options.device)),
                    options);
  }
  check_fits("full", value, options.dtype.value_or(natural));
  return finished(wrap(full_value(shape, value, options.dtype.value_or(natural), options.device)),
                  options);
}

Tensor zeros(const Shape& shape, TensorOptions options) {
  options.dtype = dtype_or_default(options);
  return full(shape, 0, options);
}
Tensor ones(const Shape& shape, TensorOptions options) {
  options.dtype = dtype_or_default(options);
  return full(shape, 1, options);
}

Tensor empty_like(const Tensor& x) { return empty(x.shape(), {x.dtype(), x.device()}); }
Tensor zeros_like(const Tensor& x) { return zeros(x.shape(), {x.dtype(), x.device()}); }
Tensor ones_like(const Tensor& x) { return ones(x.shape(), {x.dtype(), x.device()}); }
Tensor full_like(const Tensor& x, Scalar value) {
  return full(x.shape(), value, {x.dtype(), x.device()});
}
Tensor rand_like(const Tensor& x) { return rand(x.shape(), {x.dtype(), x.device()}); }
Tensor randn_like(const Tensor& x) { return randn(x.shape(), {x.dtype(), x.device()}); }

Tensor eye(int64_t n, TensorOptions options) {
  if (n < 0) throw_error<ValueError>("eye: expected n >= 0; got ", n);
  checked_numel("eye", Shape{n, n});
  TensorData data(Shape{n, n}, f32);
  const std::span<float> values = data.as_mutable<float>();
  std::fill(values.begin(), values.end(), 0.0f);
  for (int64_t i = 0; i < n; ++i) values[static_cast<size_t>(i * n + i)] = 1.0f;
  options.dtype = dtype_or_default(options);
  return from_data(data, options);
}

Tensor arange(Scalar end, TensorOptions options) { return arange(0, end, 1, options); }

Tensor arange(Scalar start, Scalar end, Scalar step, TensorOptions options) {
  const bool ints = start.is_integral() && end.is_integral() && step.is_integral();
  const double from = start.to_double();
  const double to = end.to_double();
  const double by = step.to_double();
  if (!std::isfinite(from) || !std::isfinite(to) || !(by != 0.0) || !std::isfinite(by)) {
    throw_error<ValueError>("arange: expected finite bounds and a step that is not 0; got ", from,
                            ", ", to, ", ", by);
  }
  int64_t count = 0;
  if (ints) {
    const int64_t a = start.to_int();
    const int64_t b = end.to_int();
    const int64_t s = step.to_int();
    // Unsigned, since the distance of two int64 may not fit one.
    if (s > 0 && a < b) {
      const uint64_t distance = static_cast<uint64_t>(b) - static_cast<uint64_t>(a);
      count = static_cast<int64_t>((distance - 1) / static_cast<uint64_t>(s) + 1);
    } else if (s < 0 && a > b) {
      const uint64_t distance = static_cast<uint64_t>(a) - static_cast<uint64_t>(b);
      count = static_cast<int64_t>((distance - 1) / (0 - static_cast<uint64_t>(s)) + 1);
    }
  } else {
    const double steps = std::ceil((to - from) / by);
    if (steps > 0x1p47) throw_error<ValueError>("arange: too many values; got ", steps);
    count = steps > 0 ? static_cast<int64_t>(steps) : 0;
  }
  const DType dtype = options.dtype.value_or(ints ? i64 : default_dtype());
  if (is_complex(dtype)) throw_wrong_dtype("arange", dtype, "a floating point or integer dtype");
  checked_numel("arange", Shape{count});
  switch (kind_of(dtype)) {
    case Kind::floating:
      return finished(wrap(AD::float_arange(from, by, count, dtype, options.device)), options);
    case Kind::integer:
      return finished(
          wrap(Dispatch::int_arange(start.to_int(), step.to_int(), count, dtype, options.device)),
          options);
    default:
      throw_wrong_dtype("arange", dtype, "a floating point or integer dtype");
  }
}

Tensor linspace(double start, double end, int64_t steps, TensorOptions options) {
  if (steps < 0) throw_error<ValueError>("linspace: expected steps >= 0; got ", steps);
  checked_numel("linspace", Shape{steps});
  TensorData data(Shape{steps}, f64);
  const std::span<double> values = data.as_mutable<double>();
  const double step = steps > 1 ? (end - start) / static_cast<double>(steps - 1) : 0.0;
  // From both ends, so that each is exact.
  for (int64_t i = 0; i < steps; ++i) {
    values[static_cast<size_t>(i)] = i < (steps + 1) / 2
                                         ? start + step * static_cast<double>(i)
                                         : end - step * static_cast<double>(steps - 1 - i);
  }
  options.dtype = dtype_or_default(options);
  return from_data(data, options);
}

namespace {

RandomStream reserve(Generator* generator, int64_t numel, DType dtype) {
  return (generator != nullptr ? *generator : default_generator())
      .reserve(host::random_words(numel, dtype));
}

Tensor random_floats(const char* op, const Shape& shape, Distribution distribution,
                     const TensorOptions& options, Generator* generator) {
  const int64_t n = checked_numel(op, shape);
  const DType dtype = dtype_or_default(options);
  if (is_complex(dtype)) {
    // Parts of half the variance, so that the numbers have the distribution's own.
    TensorOptions real = options;
    real.dtype = real_dtype(dtype);
    real.requires_grad = false;
    Tensor parts = random_floats(op, parts_shape(shape), distribution, real, generator);
    if (distribution.type == Distribution::Type::normal) parts.mul_(std::sqrt(0.5));
    return finished(from_parts(parts), options);
  }
  if (kind_of(dtype) != Kind::floating) throw_wrong_dtype(op, dtype, "a floating point dtype");
  return finished(wrap(AD::float_random(shape, distribution, reserve(generator, n, dtype), dtype,
                                        options.device)),
                  options);
}

}  // namespace

Tensor rand(const Shape& shape, TensorOptions options, Generator* generator) {
  return random_floats("rand", shape, Distribution::uniform(), options, generator);
}

Tensor randn(const Shape& shape, TensorOptions options, Generator* generator) {
  return random_floats("randn", shape, Distribution::normal(), options, generator);
}

Tensor randint(int64_t low, int64_t high, const Shape& shape, TensorOptions options,
               Generator* generator) {
  constexpr int64_t kLimit = int64_t{1} << 53;
  if (low >= high || low < -kLimit || high > kLimit) {
    throw_error<ValueError>("randint: expected low < high, both within 2^53; got ", low, " and ",
                            high);
  }
  const int64_t n = checked_numel("randint", shape);
  const DType dtype = options.dtype.value_or(i64);
  if (kind_of(dtype) == Kind::integer && dtype != i64) {
    const int bits = 8 * static_cast<int>(size_of(dtype));
    const int64_t smallest = dtype == u8 ? 0 : -(int64_t{1} << (bits - 1));
    const int64_t largest = dtype == u8 ? 255 : (int64_t{1} << (bits - 1)) - 1;
    if (low < smallest || high - 1 > largest) {
      throw_error<ValueError>("randint: the range does not fit the dtype; got ", low, " to ",
                              high - 1, " for ", dtype, "; expected ", smallest, " to ", largest);
    }
  }
  const RandomStream stream = reserve(generator, n, i64);
  const Value ints = {
      Dispatch::int_random(shape, Distribution::integers(low, high), stream, i64, options.device)};
  return finished(wrap(cast(ints, dtype)), options);
}

Tensor randperm(int64_t n, TensorOptions options, Generator* generator) {
  if (n < 0) throw_error<ValueError>("randperm: expected n >= 0; got ", n);
  checked_numel("randperm", Shape{n});
  TensorData data(Shape{n}, i64);
  const std::span<int64_t> values = data.as_mutable<int64_t>();
  std::iota(values.begin(), values.end(), int64_t{0});
  // Fisher-Yates with 64 bits for each step: the bias is below n / 2^64.
  const RandomStream stream = reserve(generator, n, i64);
  for (int64_t i = n - 1; i > 0; --i) {
    const auto words = stream.block(static_cast<uint64_t>(i) / 2);
    const size_t at = 2 * (static_cast<size_t>(i) % 2);
    const uint64_t bits = (static_cast<uint64_t>(words[at]) << 32) | words[at + 1];
    const auto j = static_cast<size_t>(
        (static_cast<unsigned __int128>(bits) * static_cast<uint64_t>(i + 1)) >> 64);
    std::swap(values[static_cast<size_t>(i)], values[j]);
  }
  if (!options.dtype) options.dtype = i64;
  return from_data(data, options);
}

Tensor bernoulli(const Tensor& p, Generator* generator) {
  if (kind_of_value(value_of("bernoulli", p)) != Kind::floating) {
    throw_wrong_dtype("bernoulli", p.dtype(), "probabilities in a floating point dtype");
  }
  if (p.numel() > 0 && !(p.min().item() >= 0.0 && p.max().item() <= 1.0)) {
    throw_error<ValueError>("bernoulli: expected probabilities in [0, 1]; got some outside");
  }
  return rand(p.shape(), {p.dtype(), p.device()}, generator).lt(p).to(p.dtype());
}

}  // namespace kiln
