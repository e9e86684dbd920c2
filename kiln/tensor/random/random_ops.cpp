#include "kiln/tensor/random/random_ops.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "kiln/backend/random_fill.h"
#include "kiln/core/parallel.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/complex/complex_impl.h"
#include "kiln/tensor/host.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln {

using namespace detail;

namespace {

Generator& generator_or_default(Generator* generator) {
  return generator != nullptr ? *generator : default_generator();
}

void check_deviation(const char* op, double std) {
  if (!(std >= 0.0)) throw_error<ValueError>(op, ": expected std >= 0; got ", std);
}
void check_deviation(const char* op, const Tensor& std) {
  if (!std.is_floating_point()) throw_wrong_dtype(op, std.dtype(), "a floating point std");
  if (std.numel() > 0 && !std.ge(0).all().item<bool>()) {
    throw_error<ValueError>(op, ": expected std >= 0; got a negative one or NaN");
  }
}

void check_probability(const char* op, double p) {
  if (!(p >= 0.0 && p <= 1.0)) throw_error<ValueError>(op, ": expected 0 <= p <= 1; got ", p);
}

// The draws of one element, as many as it asks for, from a counter of its own.
class Draws {
 public:
  Draws(RandomStream stream, uint64_t element)
      : seed_(stream.seed), counter_(stream.offset + element) {}
  // In [0, 1).
  double uniform() {
    if (used_ == 4) {
      block_ = philox(seed_, counter_, ++round_);
      used_ = 0;
    }
    used_ += 2;
    return uniform_f64(block_[used_ - 2], block_[used_ - 1]);
  }

 private:
  uint64_t seed_;
  uint64_t counter_;
  uint64_t round_ = 0;
  std::array<uint32_t, 4> block_{};
  size_t used_ = 4;
};

double log_factorial(double k) {
  int sign = 0;
  return ::lgamma_r(k + 1.0, &sign);
}

// Below 10 by multiplying uniform numbers (Knuth); else by transformed rejection: Hörmann, "The
// transformed rejection method for generating Poisson random variables" (1993), algorithm PTRS.
double draw_poisson(double rate, Draws draws) {
  if (std::isnan(rate)) return rate;
  if (rate < 10.0) {
    const double limit = std::exp(-rate);
    double product = draws.uniform();
    double count = 0.0;
    for (; product > limit; count += 1.0) product *= draws.uniform();
    return count;
  }
  const double root = std::sqrt(rate);
  const double b = 0.931 + 2.53 * root;
  const double a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  const double limit = 0.9277 - 3.6224 / (b - 2.0);
  const double log_rate = std::log(rate);
  for (;;) {
    const double u = draws.uniform() - 0.5;
    const double v = 1.0 - draws.uniform();
    const double distance = 0.5 - std::fabs(u);
    const double k = std::floor((2.0 * a / distance + b) * u + rate + 0.43);
    if (distance >= 0.07 && v <= limit) return k;
    if (k < 0.0 || (distance < 0.013 && v > distance)) continue;
    const double accept = std::log(v * inverse_alpha / (a / (distance * distance) + b));
    if (accept <= k * log_rate - rate - log_factorial(k)) return k;
  }
}

// For p <= 1/2: below a mean of 10 by the distances between successes, which are geometric; else by
// transformed rejection, algorithm BTRS of Hörmann, "The generation of binomial random variates"
// (1993).
double draw_binomial_small(double n, double p, Draws& draws) {
  if (n * p < 10.0) {
    const double log_failure = std::log1p(-p);
    if (log_failure == 0.0) return 0.0;
    double count = 0.0;
    double place = 0.0;
    for (;;) {
      place += std::ceil(std::log(1.0 - draws.uniform()) / log_failure);
      if (place > n) return count;
      count += 1.0;
      if (place == n) return count;
    }
  }
  const double deviation = std::sqrt(n * p * (1.0 - p));
  const double b = 1.15 + 2.53 * deviation;
  const double a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double c = n * p + 0.5;
  const double limit = 0.92 - 4.2 / b;
  const double alpha = (2.83 + 5.1 / b) * deviation;
  const double log_odds = std::log(p / (1.0 - p));
  const double mode = std::floor((n + 1.0) * p);
  const double at_mode = log_factorial(mode) + log_factorial(n - mode);
  for (;;) {
    const double u = draws.uniform() - 0.5;
    double v = 1.0 - draws.uniform();
    const double distance = 0.5 - std::fabs(u);
    const double k = std::floor((2.0 * a / distance + b) * u + c);
    if (k < 0.0 || k > n) continue;
    if (distance >= 0.07 && v <= limit) return k;
    v = std::log(v * alpha / (a / (distance * distance) + b));
    if (v <= at_mode - log_factorial(k) - log_factorial(n - k) + (k - mode) * log_odds) return k;
  }
}

double draw_binomial(double n, double p, Draws draws) {
  if (std::isnan(n) || std::isnan(p)) return std::numeric_limits<double>::quiet_NaN();
  if (n <= 0.0 || p <= 0.0) return 0.0;
  if (p >= 1.0) return n;
  return p <= 0.5 ? draw_binomial_small(n, p, draws) : n - draw_binomial_small(n, 1.0 - p, draws);
}

// draw(element) for each element of a fresh f64 tensor, in parallel.
template <class Draw>
Tensor drawn(const Shape& shape, DType dtype, Device device, Generator* generator, Draw draw) {
  const int64_t n = shape.numel();
  const RandomStream stream = generator_or_default(generator).reserve(4 * n);
  TensorData out(shape, f64);
  const std::span<double> values = out.as_mutable<double>();
  parallel_for(n, 2048, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      values[static_cast<size_t>(i)] =
          draw(static_cast<size_t>(i), Draws(stream, static_cast<uint64_t>(i)));
    }
  });
  return from_data(out, {dtype, device});
}

}  // namespace

Tensor normal(double mean, double std, const Shape& shape, TensorOptions options,
              Generator* generator) {
  check_deviation("normal", std);
  const bool requires_grad = std::exchange(options.requires_grad, false);
  Tensor out = add(mul(randn(shape, options, generator), std), mean);
  if (requires_grad) out.requires_grad_();
  return out;
}

Tensor normal(const Tensor& mean, const Tensor& std, Generator* generator) {
  check_deviation("normal", std);
  const NoGradGuard no_grad;
  const Shape shape = broadcast_shapes("normal", mean.shape(), std.shape());
  const DType dtype = mean.is_floating_point() ? mean.dtype() : std.dtype();
  const Tensor noise = randn(shape, {dtype, mean.device()}, generator);
  return add(mul(noise, std), mean).to(dtype);
}
Tensor normal(const Tensor& mean, double std, Generator* generator) {
  check_deviation("normal", std);
  const NoGradGuard no_grad;
  const DType dtype = mean.is_floating_point() ? mean.dtype() : default_dtype();
  return add(mul(randn(mean.shape(), {dtype, mean.device()}, generator), std), mean).to(dtype);
}
Tensor normal(double mean, const Tensor& std, Generator* generator) {
  check_deviation("normal", std);
  const NoGradGuard no_grad;
  return add(mul(randn(std.shape(), {std.dtype(), std.device()}, generator), std), mean);
}

Tensor bernoulli(const Tensor& x, double p, Generator* generator) {
  check_probability("bernoulli", p);
  Tensor out = empty_like(x);
  return bernoulli_(out, p, generator);
}

namespace {

// The place of the first of some rising numbers that is above x, or their count: std::upper_bound
// without branches, which draws make unpredictable.
int64_t first_above(std::span<const double> rising, double x) {
  const double* first = rising.data();
  for (size_t n = rising.size(); n > 0;) {
    const size_t half = (n + 1) / 2;
    // Not above: neither are the `half` from `first` on.
    first += static_cast<size_t>(first[half - 1] <= x) * half;
    n -= half;
  }
  return first - rising.data();
}

}  // namespace

Tensor multinomial(const Tensor& weights, int64_t num_samples, bool replacement,
                   Generator* generator) {
  const Value& value = value_of("multinomial", weights);
  if (kind_of_value(value) != Kind::floating) {
    throw_wrong_dtype("multinomial", weights.dtype(), "weights in a floating point dtype");
  }
  const int rank = weights.dim();
  if (rank != 1 && rank != 2) {
    throw_error<ShapeError>("multinomial: expected weights [n] or [rows, n]; got shape ",
                            weights.shape());
  }
  const int64_t n = weights.size(-1);
  const int64_t rows = rank == 2 ? weights.size(0) : 1;
  if (num_samples <= 0) {
    throw_error<ValueError>("multinomial: expected num_samples > 0; got ", num_samples);
  }
  if (!replacement && num_samples > n) {
    throw_error<ValueError>(
        "multinomial: cannot draw more samples than there are without "
        "replacement; got ",
        num_samples, " of ", n);
  }
  Shape shape = weights.shape();
  shape[rank - 1] = num_samples;
  checked_numel("multinomial", shape);
  const NoGradGuard no_grad;
  const TensorData data = host_values(weights, f64);
  const std::span<const double> all = data.as<double>();
  const RandomStream stream =
      generator_or_default(generator).reserve(4 * rows * (replacement ? num_samples : n));
  TensorData out(shape, i64);
  const std::span<int64_t> indices = out.as_mutable<int64_t>();
  std::vector<double> sums(static_cast<size_t>(n));
  std::vector<double> left;
  for (int64_t r = 0; r < rows; ++r) {
    const std::span<const double> row =
        all.subspan(static_cast<size_t>(r * n), static_cast<size_t>(n));
    double sum = 0.0;
    int64_t positive = 0;
    for (size_t i = 0; i < row.size(); ++i) {
      if (!(row[i] >= 0.0) || std::isinf(row[i])) {
        throw_error<ValueError>("multinomial: weights must be finite and not negative; got ",
                                row[i]);
      }
      positive += row[i] > 0.0;
      sums[i] = sum += row[i];
    }
    if (!(sum > 0.0) || (!replacement && positive < num_samples)) {
      throw_error<ValueError>("multinomial: too few weights above 0; got ", positive, " for ",
                              replacement ? 1 : num_samples, " samples");
    }
    const std::span<int64_t> to =
        indices.subspan(static_cast<size_t>(r * num_samples), static_cast<size_t>(num_samples));
    if (replacement) {
      parallel_for(num_samples, 2048, [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) {
          const auto i = static_cast<size_t>(k);
          Draws draws(stream, static_cast<uint64_t>(r) * to.size() + i);
          // The first place whose sum is above: never one of weight 0.
          to[i] = first_above(sums, draws.uniform() * sum);
          if (to[i] == n) {  // rounded up to the very end
            for (--to[i]; row[static_cast<size_t>(to[i])] == 0.0;) --to[i];
          }
        }
      });
      continue;
    }
    // The smallest of exponential numbers with the weights as rates come in the order of a draw
    // without replacement (Efraimidis and Spirakis, 2006).
    left.resize(row.size());
    std::vector<int64_t> order(row.size());
    for (size_t i = 0; i < row.size(); ++i) {
      order[i] = static_cast<int64_t>(i);
      Draws draws(stream, static_cast<uint64_t>(r) * row.size() + i);
      left[i] = row[i] > 0.0 ? -std::log(1.0 - draws.uniform()) / row[i]
                             : std::numeric_limits<double>::infinity();
    }
    std::partial_sort(order.begin(), order.begin() + num_samples, order.end(),
                      [&](int64_t a, int64_t b) {
                        return left[static_cast<size_t>(a)] < left[static_cast<size_t>(b)];
                      });
    std::copy_n(order.begin(), num_samples, to.begin());
  }
  return from_data(out, {i64, weights.device()});
}

Tensor poisson(const Tensor& rates, Generator* generator) {
  const Value& value = value_of("poisson", rates);
  if (kind_of_value(value) != Kind::floating) {
    throw_wrong_dtype("poisson", rates.dtype(), "rates in a floating point dtype");
  }
  if (rates.numel() > 0 && rates.lt(0).any().item<bool>()) {
    throw_error<ValueError>("poisson: expected rates >= 0; got a negative one");
  }
  const TensorData data = host_values(rates, f64);
  const std::span<const double> rate = data.as<double>();
  return drawn(rates.shape(), rates.dtype(), rates.device(), generator,
               [&](size_t i, Draws draws) { return draw_poisson(rate[i], draws); });
}

Tensor binomial(const Tensor& count, const Tensor& p, Generator* generator) {
  if (kind_of_value(value_of("binomial", p)) != Kind::floating) {
    throw_wrong_dtype("binomial", p.dtype(), "probabilities in a floating point dtype");
  }
  if (p.numel() > 0 && (p.lt(0).any().item<bool>() || p.gt(1).any().item<bool>())) {
    throw_error<ValueError>("binomial: expected probabilities in [0, 1]; got some outside");
  }
  if (count.numel() > 0 && count.lt(0).any().item<bool>()) {
    throw_error<ValueError>("binomial: expected counts >= 0; got a negative one");
  }
  const Shape shape = broadcast_shapes("binomial", count.shape(), p.shape());
  const TensorData counts = host_values(count.expand(shape), f64);
  const TensorData chances = host_values(p.expand(shape), f64);
  const std::span<const double> n = counts.as<double>();
  const std::span<const double> chance = chances.as<double>();
  return drawn(shape, p.dtype(), p.device(), generator,
               [&](size_t i, Draws draws) { return draw_binomial(n[i], chance[i], draws); });
}

Tensor randint_like(const Tensor& x, int64_t low, int64_t high, Generator* generator) {
  return randint(low, high, x.shape(), {x.dtype(), x.device()}, generator);
}

// ---- In place

namespace {

// A float tensor that may be written.
void check_filled(const char* op, const Tensor& x) {
  check_writable(op, x, false);
  if (kind_of_value(value_of(op, x)) != Kind::floating) {
    throw_wrong_dtype(op, x.dtype(), "a floating point tensor");
  }
}

// Uniform numbers in (0, 1], whose logarithm is finite, as x's dtype computes.
Tensor positive_uniform(const Tensor& x, Generator* generator) {
  const DType dtype = x.dtype() == f64 ? f64 : f32;
  return sub(Scalar(1.0), rand(x.shape(), {dtype, x.device()}, generator));
}

Tensor& fill(const char* op, Tensor& x, Distribution distribution, Generator* generator) {
  check_filled(op, x);
  const Shape shape = x.shape();
  const RandomStream stream =
      generator_or_default(generator).reserve(host::random_words(shape.numel(), x.dtype()));
  return x.copy_(wrap(AD::float_random(shape, distribution, stream, x.dtype(), x.device())));
}

// Complex numbers whose parts are drawn alike.
Tensor& fill_complex(const char* op, Tensor& x, Distribution distribution, Generator* generator) {
  check_writable(op, x, false);
  Tensor parts = empty_like(parts_of(x.detach()));
  fill(op, parts, distribution, generator);
  return x.copy_(from_parts(parts));
}

// The first whole number that a float dtype does not hold, 2^digits.
int64_t whole_limit(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return int64_t{1} << 11;
    case DType::bf16:
      return int64_t{1} << 8;
    case DType::f32:
      return int64_t{1} << 24;
    default:
      return int64_t{1} << 53;
  }
}

int64_t largest_of(DType dtype) {
  switch (dtype) {
    case DType::u8:
      return 255;
    case DType::i8:
      return 127;
    case DType::i16:
      return 32767;
    case DType::i32:
      return 2147483647;
    default:
      return std::numeric_limits<int64_t>::max();
  }
}

}  // namespace

Tensor& uniform_(Tensor& x, double from, double to, Generator* generator) {
  if (!(from <= to)) {
    throw_error<ValueError>("uniform_: expected from <= to; got ", from, " and ", to);
  }
  const Distribution parts = Distribution::uniform(from, to);
  if (is_complex(x.dtype())) return fill_complex("uniform_", x, parts, generator);
  return fill("uniform_", x, parts, generator);
}

Tensor& normal_(Tensor& x, double mean, double std, Generator* generator) {
  check_deviation("normal_", std);
  if (is_complex(x.dtype())) {  // the deviation is that of a number
    const Distribution parts = Distribution::normal(mean, std / std::numbers::sqrt2);
    return fill_complex("normal_", x, parts, generator);
  }
  return fill("normal_", x, Distribution::normal(mean, std), generator);
}

Tensor& exponential_(Tensor& x, double lambd, Generator* generator) {
  if (!(lambd > 0.0)) throw_error<ValueError>("exponential_: expected lambd > 0; got ", lambd);
  return fill("exponential_", x, Distribution::exponential(lambd), generator);
}

Tensor& bernoulli_(Tensor& x, double p, Generator* generator) {
  check_probability("bernoulli_", p);
  check_writable("bernoulli_", x, false);
  return x.copy_(rand(x.shape(), {f32, x.device()}, generator).lt(p));
}

Tensor& bernoulli_(Tensor& x, const Tensor& p, Generator* generator) {
  check_writable("bernoulli_", x, false);
  return x.copy_(bernoulli(p.detach().expand(x.shape()), generator));
}

Tensor& geometric_(Tensor& x, double p, Generator* generator) {
  if (!(p > 0.0 && p < 1.0)) {
    throw_error<ValueError>("geometric_: expected 0 < p < 1; got ", p);
  }
  check_writable("geometric_", x, false);
  const Tensor trials = ceil(div(log(positive_uniform(x, generator)), std::log1p(-p)));
  return x.copy_(clamp(trials, Scalar(1)));
}

Tensor& cauchy_(Tensor& x, double median, double sigma, Generator* generator) {
  if (!(sigma > 0.0)) throw_error<ValueError>("cauchy_: expected sigma > 0; got ", sigma);
  check_filled("cauchy_", x);
  const Tensor turns = sub(positive_uniform(x, generator), 0.5);
  return x.copy_(add(mul(tan(mul(turns, std::numbers::pi)), sigma), median));
}

Tensor& log_normal_(Tensor& x, double mean, double std, Generator* generator) {
  if (!(std > 0.0)) throw_error<ValueError>("log_normal_: expected std > 0; got ", std);
  check_filled("log_normal_", x);
  const DType dtype = x.dtype() == f64 ? f64 : f32;
  return x.copy_(exp(normal(mean, std, x.shape(), {dtype, x.device()}, generator)));
}

Tensor& random_(Tensor& x, int64_t from, int64_t to, Generator* generator) {
  if (from >= to) {
    throw_error<ValueError>("random_: expected from < to; got ", from, " and ", to);
  }
  check_writable("random_", x, false);
  return x.copy_(randint(from, to, x.shape(), {i64, x.device()}, generator));
}
Tensor& random_(Tensor& x, int64_t to, Generator* generator) {
  return random_(x, 0, to, generator);
}
Tensor& random_(Tensor& x, Generator* generator) {
  const DType dtype = x.dtype();
  if (dtype == bool_) return random_(x, 0, 2, generator);
  if (kind_of(dtype) == Kind::floating) return random_(x, 0, whole_limit(dtype), generator);
  if (dtype != i64) return random_(x, 0, largest_of(dtype) + 1, generator);
  // Two halves: randint's range ends at 2^53.
  check_writable("random_", x, false);
  const TensorOptions options = {i64, x.device()};
  const Tensor high = randint(0, int64_t{1} << 31, x.shape(), options, generator);
  const Tensor low = randint(0, int64_t{1} << 32, x.shape(), options, generator);
  return x.copy_(add(mul(high, int64_t{1} << 32), low));
}

}  // namespace kiln
