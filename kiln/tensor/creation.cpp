#include "kiln/tensor/creation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>

#include "kiln/backend/random_fill.h"
#include "kiln/core/parallel.h"
#include "kiln/tensor/complex/complex_impl.h"
#include "kiln/tensor/elementwise/scalar_fit.h"
#include "kiln/tensor/host_memory.h"
#include "kiln/tensor/interop.h"
#include "kiln/tensor/memory_order.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/sequences.h"
#include "kiln/tensor/value_check.h"

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
  *this = kiln::is_complex(data.dtype()) ? wrap_complex(std::move(value)) : wrap(std::move(value));
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
  if (is_integral(*options.dtype) && *options.dtype != natural) {
    for (size_t i = 0; i < found.ints.size(); ++i) {
      check_fits("tensor", floats ? Scalar(found.doubles[i]) : Scalar(found.ints[i]),
                 *options.dtype);
    }
  }
  if (floats) return from_values(found.doubles.data(), found.doubles.size(), f64, shape, options);
  return from_values(found.ints.data(), found.ints.size(), i64, shape, options);
}

Tensor tensor(Scalar value, TensorOptions options) { return full(Shape{}, value, options); }

Tensor empty(const Shape& shape, TensorOptions options) {
  checked_numel("empty", shape);
  const DType dtype = dtype_or_default(options);
  // Any bytes are numbers, but only 0 and 1 are bools.
  if (dtype == bool_) return zeros(shape, options);
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

namespace {

Tensor filled(const char* op, const Shape& shape, Scalar value, const TensorOptions& options) {
  checked_numel(op, shape);
  const DType natural = value.is_bool() ? bool_ : value.is_integral() ? i64 : default_dtype();
  if (options.dtype && is_complex(*options.dtype)) {
    if (value.to_double() != 0.0)
      return full(shape, std::complex<double>(value.to_double()), options);
    return finished(wrap_complex(AD::float_full(parts_shape(shape), 0, real_dtype(*options.dtype),
                                                options.device)),
                    options);
  }
  check_fits(op, value, options.dtype.value_or(natural));
  return finished(wrap(full_value(shape, value, options.dtype.value_or(natural), options.device)),
                  options);
}

}  // namespace

Tensor full(const Shape& shape, Scalar value, TensorOptions options) {
  return filled("full", shape, value, options);
}

Tensor zeros(const Shape& shape, TensorOptions options) {
  options.dtype = dtype_or_default(options);
  return filled("zeros", shape, 0, options);
}
Tensor ones(const Shape& shape, TensorOptions options) {
  options.dtype = dtype_or_default(options);
  return filled("ones", shape, 1, options);
}

Tensor empty_like(const Tensor& x) {
  return made_like(x, [&](const Shape& s) { return empty(s, {x.dtype(), x.device()}); });
}
Tensor zeros_like(const Tensor& x) {
  return made_like(x, [&](const Shape& s) { return zeros(s, {x.dtype(), x.device()}); });
}
Tensor ones_like(const Tensor& x) {
  return made_like(x, [&](const Shape& s) { return ones(s, {x.dtype(), x.device()}); });
}
Tensor full_like(const Tensor& x, Scalar value) {
  return made_like(x, [&](const Shape& s) { return full(s, value, {x.dtype(), x.device()}); });
}
Tensor rand_like(const Tensor& x) {
  return made_like(x, [&](const Shape& s) { return rand(s, {x.dtype(), x.device()}); });
}
Tensor randn_like(const Tensor& x) {
  return made_like(x, [&](const Shape& s) { return randn(s, {x.dtype(), x.device()}); });
}

Tensor eye(int64_t n, TensorOptions options) { return eye(n, n, options); }

namespace detail {

void throw_rows_differ(int64_t got, int64_t expected) {
  throw_error<ShapeError>("tensor: rows differ in length; got ", got, " and ", expected);
}

}  // namespace detail

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
  if ((by > 0 && from > to) || (by < 0 && from < to)) {
    throw_error<ValueError>("arange: the step leads away from the end; got ", from, ", ", to, ", ",
                            by);
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
  const DType dtype = dtype_or_default(options);
  const bool direct = kind_of(dtype) == Kind::floating && !is_complex(dtype);
  const double step = steps > 1 ? (end - start) / static_cast<double>(steps - 1) : 0.0;
  const auto line = [&](double origin, double by, int64_t count) {
    return wrap(AD::float_arange(origin, by, count, direct ? dtype : f64, options.device));
  };
  // From both ends, so that each is exact.
  const int64_t half = (steps + 1) / 2;
  Tensor out = line(start, step, half);
  if (half < steps) out = cat({out, line(end, -step, steps - half).flip({0})}, 0);
  return finished(out.to(dtype), options);
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

namespace {

constexpr int64_t kDrawBits = 53;

// 0, 1, .. n - 1 in an order that n draws of kDrawBits bits choose: Fisher-Yates from the last
// place down, with a bias below n / 2^kDrawBits.
template <class T>
void shuffle(T* values, int64_t n, const int64_t* draws) {
  std::iota(values, values + n, T(0));
  // Where a run of steps goes is known before the first of them: memory answers meanwhile.
  constexpr int64_t kRun = 128;
  std::array<T, kRun> to;
  for (int64_t end = n; end > 1;) {
    const int64_t begin = std::max<int64_t>(1, end - kRun);
    for (int64_t i = begin; i < end; ++i) {
      __extension__ using Wide = unsigned __int128;
      const Wide product = Wide{static_cast<uint64_t>(draws[i])} * static_cast<uint64_t>(i + 1);
      const auto place = static_cast<T>(product >> kDrawBits);
      to[static_cast<size_t>(i - begin)] = place;
      __builtin_prefetch(values + place, 1);
    }
    for (int64_t i = end - 1; i >= begin; --i) {
      std::swap(values[i], values[to[static_cast<size_t>(i - begin)]]);
    }
    end = begin;
  }
}

}  // namespace

Tensor randperm(int64_t n, TensorOptions options, Generator* generator) {
  if (n < 0) throw_error<ValueError>("randperm: expected n >= 0; got ", n);
  checked_numel("randperm", Shape{n});
  const auto range = Distribution::integers(0, int64_t{1} << kDrawBits);
  const Tensor drawn =
      wrap(Dispatch::int_random(Shape{n}, range, reserve(generator, n, i64), i64, kCpu));
  const int64_t* draws = drawn.data_ptr<int64_t>();
  TensorData data(Shape{n}, i64);
  int64_t* values = data.as_mutable<int64_t>().data();
  if (n <= std::numeric_limits<int32_t>::max()) {
    // Half the memory to jump about in.
    TensorData places(Shape{n}, i32);
    int32_t* small = places.as_mutable<int32_t>().data();
    shuffle(small, n, draws);
    parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
      std::copy(small + begin, small + end, values + begin);
    });
  } else {
    shuffle(values, n, draws);
  }
  return finished(tensor_over(data).to(options.dtype.value_or(i64)).to(options.device), options);
}

Tensor from_blob(void* data, const Shape& shape, const Strides& strides,
                 std::function<void(void*)> release, TensorOptions options) {
  if (options.device.type != kCpu) {
    throw_error<DeviceError>("from_blob: the memory is the host's; got device ", options.device,
                             "; expected cpu, and to() afterwards");
  }
  struct Owner {
    void* data;
    std::function<void(void*)> release;
  };
  auto owner = std::make_unique<Owner>(Owner{data, std::move(release)});
  const auto end = [](void* context) {
    const std::unique_ptr<Owner> ended(static_cast<Owner*>(context));
    if (ended->release) ended->release(ended->data);
  };
  Tensor out = interop::from_blob(data, shape, strides, options.dtype.value_or(default_dtype()),
                                  end, owner.get());
  (void)owner.release();  // the tensor has it
  return finished(std::move(out), options);
}

Tensor from_blob(void* data, const Shape& shape, TensorOptions options) {
  return from_blob(data, shape, contiguous_strides(shape), {}, options);
}

Tensor bernoulli(const Tensor& p, Generator* generator) {
  if (kind_of_value(value_of("bernoulli", p)) != Kind::floating) {
    throw_wrong_dtype("bernoulli", p.dtype(), "probabilities in a floating point dtype");
  }
  detail::check_values("bernoulli", p, [](const Tensor& x) {
    if (x.numel() > 0 && !(x.min().item() >= 0.0 && x.max().item() <= 1.0)) {
      throw_error<ValueError>("bernoulli: expected probabilities in [0, 1]; got some outside");
    }
  });
  return rand(p.shape(), {p.dtype(), p.device()}, generator).lt(p).to(p.dtype());
}

}  // namespace kiln
