#include "kiln/tensor/reduce/statistics.h"

#include <cmath>
#include <limits>

#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/complex/complex.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/index/sorting.h"
#include "kiln/tensor/operands.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/reduce/cumulative.h"
#include "kiln/tensor/shape/rearranging.h"
#include "kiln/tensor/shape/views.h"
#include "kiln/tensor/value_check.h"

namespace kiln {

using namespace detail;

namespace {

enum class Between { linear, lower, higher, midpoint, nearest };

Between between_of(const char* op, const std::string& name) {
  if (name == "linear") return Between::linear;
  if (name == "lower") return Between::lower;
  if (name == "higher") return Between::higher;
  if (name == "midpoint") return Between::midpoint;
  if (name == "nearest") return Between::nearest;
  throw_error<ValueError>(op,
                          ": expected interpolation 'linear', 'lower', 'higher', 'midpoint' or "
                          "'nearest'; got '",
                          name, "'");
}

void check_quantiles(const char* op, const Tensor& x, const Tensor& q) {
  if (x.dtype() != f32 && x.dtype() != f64) {
    throw_wrong_dtype(op, x.dtype(), "a tensor of 32-bit or 64-bit floats");
  }
  if (q.dim() > 1 || q.dtype() != x.dtype()) {
    throw_error<ShapeError>(op, ": expected q of the tensor's dtype with at most 1 dim; got ",
                            q.dtype(), " ", q.shape(), " for ", x.dtype());
  }
  detail::check_values(op, q, [op](const Tensor& values) {
    if (values.numel() > 0 && !(values.min().item() >= 0.0 && values.max().item() <= 1.0)) {
      throw_error<ValueError>(op, ": expected 0 <= q <= 1; got ", values.min().item(), " to ",
                              values.max().item());
    }
  });
}

// The elements of rows [.., n] that sorting brings to the places [.., k].
Tensor at_places(const Tensor& rows, const Tensor& places) {
  const ErasedTensor index = Dispatch::float_argplace(
      value_of("quantile", rows).inner, value_of("quantile", places).inner, rows.dim() - 1);
  return rows.gather(-1, wrap(index));
}

Tensor quantiles(const char* op, const Tensor& x, const Tensor& q, std::optional<int64_t> dim,
                 bool keepdim, const std::string& interpolation, bool skip_nan) {
  const Between between = between_of(op, interpolation);
  check_quantiles(op, x, q);
  if (x.numel() == 0) {
    throw_error<ShapeError>(op, ": has no value over nothing; got shape ", x.shape());
  }
  // Rows last, whatever the dim; a place for q last.
  Shape out_shape = dim ? x.shape() : Shape::filled(x.dim(), 1);
  Tensor rows = x.reshape({-1});
  if (dim && x.dim() > 0) {
    const int d = normalize_dim(op, *dim, x.dim());
    out_shape[d] = 1;
    rows = movedim(x, {d}, {-1});
  }
  const int64_t n = rows.size(-1);
  const Tensor count = Tensor(q.reshape({-1}));
  const Tensor is_nan = rows.detach().isnan();
  const bool any_nan = is_nan.any().item<bool>();
  Tensor ranks;
  if (!any_nan) {
    Shape shape = rows.shape();
    shape.back() = count.numel();
    ranks = count.mul(n - 1).expand(shape);
  } else if (skip_nan) {
    const Tensor numbers = is_nan.logical_not().sum(-1, true).sub(1).clamp(0);
    ranks = count.mul(numbers.to(x.dtype()));
  } else {
    // NaN stands last.
    ranks = where(is_nan.sum(-1, true).gt(0), full({}, n - 1, {x.dtype(), x.device()}),
                  count.mul(n - 1));
  }
  Tensor values;
  switch (between) {
    case Between::lower:
      values = at_places(rows, ranks.floor().to(i64));
      break;
    case Between::higher:
      values = at_places(rows, ranks.ceil().to(i64));
      break;
    case Between::nearest:
      values = at_places(rows, ranks.round().to(i64));
      break;
    default: {
      const Tensor below = ranks.floor();
      const int64_t k = count.numel();
      const Tensor both = at_places(rows, cat({below.to(i64), ranks.ceil().to(i64)}, -1));
      const Tensor low = both.narrow(-1, 0, k);
      const Tensor step = both.narrow(-1, k, k).sub(low);
      // Equal infinities would give inf - inf.
      const Tensor share = between == Between::midpoint ? full_like(ranks, 0.5) : ranks.sub(below);
      values =
          where(step.isnan().logical_and(low.isnan().logical_not()), low, low.add(share.mul(step)));
    }
  }
  // The place for q in front, and dims as asked for.
  values = movedim(values, {-1}, {0});
  Shape shape;
  if (q.dim() == 1) shape.push_back(q.numel());
  for (int i = 0; i < out_shape.rank(); ++i) {
    const bool reduced = !dim || i == normalize_dim(op, *dim, x.dim());
    if (keepdim || !reduced) shape.push_back(out_shape[i]);
  }
  return values.reshape(shape);
}

Tensor number_like(const Tensor& x, double q) { return full({}, q, {x.dtype(), x.device()}); }

}  // namespace

Tensor quantile(const Tensor& x, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                const std::string& interpolation) {
  KILN_AUTOCAST(f32, quantile, x, q, dim, keepdim, interpolation);
  return quantiles("quantile", x, q, dim, keepdim, interpolation, false);
}
Tensor quantile(const Tensor& x, double q, std::optional<int64_t> dim, bool keepdim,
                const std::string& interpolation) {
  KILN_AUTOCAST(f32, quantile, x, q, dim, keepdim, interpolation);
  return quantiles("quantile", x, number_like(x, q), dim, keepdim, interpolation, false);
}
Tensor nanquantile(const Tensor& x, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                   const std::string& interpolation) {
  KILN_AUTOCAST(f32, nanquantile, x, q, dim, keepdim, interpolation);
  return quantiles("nanquantile", x, q, dim, keepdim, interpolation, true);
}
Tensor nanquantile(const Tensor& x, double q, std::optional<int64_t> dim, bool keepdim,
                   const std::string& interpolation) {
  KILN_AUTOCAST(f32, nanquantile, x, q, dim, keepdim, interpolation);
  return quantiles("nanquantile", x, number_like(x, q), dim, keepdim, interpolation, true);
}

std::pair<Tensor, Tensor> mode(const Tensor& x, int64_t dim, bool keepdim) {
  const int d = normalize_dim("mode", dim, x.dim());
  if (x.dim() == 0) return {x.clone(), zeros({}, {i64, x.device()})};
  const int64_t n = x.shape()[d];
  if (n == 0) {
    throw_error<ShapeError>("mode: has no value over nothing; got shape ", x.shape());
  }
  const auto [sorted, order] = x.detach().sort(d);
  // Each element's place in its run of equals: the longest run ends where that is largest first.
  Shape row = Shape::filled(x.dim(), 1);
  row[d] = n;
  const Tensor places = arange(n, {i64, x.device()}).reshape(row).expand(x.shape());
  const Tensor differs = sorted.narrow(d, 1, n - 1).ne(sorted.narrow(d, 0, n - 1));
  Shape edge = x.shape();
  edge[d] = 1;
  const Tensor starts = cat({ones(edge, {bool_, x.device()}), differs}, d);
  const Tensor start = cummax(where(starts, places, 0), d).first;
  const Tensor index = order.gather(d, places.sub(start).argmax(d, true));
  const Tensor values = x.gather(d, index);
  if (keepdim) return {values, index};
  return {values.squeeze(d), index.squeeze(d)};
}

Tensor bincount(const Tensor& x, const Tensor& weights, int64_t minlength) {
  if (x.dim() != 1 || !is_integral(x.dtype())) {
    throw_error<ShapeError>("bincount: expected integers in 1 dim; got ", x.dtype(), " ",
                            x.shape());
  }
  if (minlength < 0) throw_error<ValueError>("bincount: expected minlength >= 0; got ", minlength);
  if (weights.defined() && !(weights.shape() == x.shape())) {
    throw_error<ShapeError>("bincount: expected a weight for each element; got ", weights.shape(),
                            " for ", x.shape());
  }
  int64_t size = minlength;
  if (x.numel() > 0) {
    if (x.min().item<int64_t>() < 0) {
      throw_error<ValueError>("bincount: expected numbers >= 0; got ", x.min().item<int64_t>());
    }
    const auto largest = x.max().item<int64_t>();
    size = std::max(size, largest == std::numeric_limits<int64_t>::max() ? largest : largest + 1);
  }
  checked_numel("bincount", {size});
  const Tensor index = x.to(i64);
  if (!weights.defined()) {
    return zeros({size}, {i64, x.device()})
        .index_add(0, index, ones({}, {i64, x.device()}).expand({x.numel()}));
  }
  const Tensor counted = weights.detach().to(weights.dtype() == f32 ? f32 : f64);
  return zeros({size}, {counted.dtype(), x.device()}).index_add(0, index, counted);
}

// ---- Histograms

namespace {

// The range of a histogram: x's own where none is given, never empty. Throws ValueError unless
// finite.
std::pair<double, double> range_of(const char* op, const Tensor& x, double low, double high,
                                   bool given, double widened = 1.0) {
  if (!given && x.numel() > 0) {
    low = x.min().item();
    high = x.max().item();
  }
  if (!std::isfinite(low) || !std::isfinite(high)) {
    throw_error<ValueError>(op, ": the range must be finite; got ", low, " to ", high);
  }
  if (low > high) {
    throw_error<ValueError>(op, ": the range must not end before it starts; got ", low, " to ",
                            high);
  }
  if (widened < 1.0 && !given && x.numel() == 0) return {0.0, 1.0};
  if (low == high) return {low - widened, high + widened};
  return {low, high};
}

Tensor floats(const char* op, const Tensor& x) {
  floats_of(op, x);
  return x.detach().reshape({-1});
}

// Sums of weights (or counts) in the bins that `index` names; -1 names none.
Tensor counted(const Tensor& index, int64_t bins, const Tensor& weights) {
  return zeros({bins + 1}, {weights.dtype(), index.device()})
      .index_add(0, index.add(1), weights.expand(index.shape()))
      .narrow(0, 1, bins)
      .clone();
}

std::pair<Tensor, Tensor> histogram_over(const Tensor& x, const Tensor& edges,
                                         const HistogramOptions& options) {
  const Tensor values = floats("histogram", x);
  const int64_t bins = edges.numel() - 1;
  Tensor weights = ones({}, {x.dtype(), x.device()});
  if (options.weight.defined()) {
    if (!(options.weight.shape() == x.shape()) || options.weight.dtype() != x.dtype()) {
      throw_error<ShapeError>("histogram: expected weights like the tensor; got ",
                              options.weight.dtype(), " ", options.weight.shape(), " for ",
                              x.dtype(), " ", x.shape());
    }
    weights = options.weight.detach().reshape({-1});
  }
  const Tensor last = edges.select(0, bins);
  Tensor index = searchsorted(edges, values, true).sub(1);
  index = where(values.eq(last), full({}, bins - 1, {i64, x.device()}), index);
  index = where(values.le(last), index, -1);  // NaN among them
  Tensor counts = counted(index, bins, weights);
  if (options.density) counts = counts.div(counts.sum()).div(diff(edges));
  return {counts, edges};
}

}  // namespace

Tensor histc(const Tensor& x, int64_t bins, double min, double max) {
  if (bins < 1) throw_error<ValueError>("histc: expected at least 1 bin; got ", bins);
  const Tensor values = floats("histc", x);
  const auto [low, high] = range_of("histc", values, min, max, min != max);
  const Tensor place = values.sub(low).mul_(bins).div_(high - low);
  const Tensor inside = values.ge(low).logical_and(values.le(high));
  const Tensor index = where(inside, place, full({}, -1, {x.dtype(), x.device()})).to(i64);
  // Counts in i64: half-precision ones would stop to grow.
  return counted(index.clamp({}, bins - 1), bins, ones({}, {i64, x.device()})).to(x.dtype());
}

std::pair<Tensor, Tensor> histogram(const Tensor& x, int64_t bins,
                                    const HistogramOptions& options) {
  if (bins < 1) throw_error<ValueError>("histogram: expected at least 1 bin; got ", bins);
  const Tensor values = floats("histogram", x);
  const bool given = options.range.has_value();
  const auto [low, high] = range_of("histogram", values, given ? options.range->first : 0.0,
                                    given ? options.range->second : 0.0, given, 0.5);
  return histogram_over(x, linspace(low, high, bins + 1, {x.dtype(), x.device()}), options);
}

std::pair<Tensor, Tensor> histogram(const Tensor& x, const Tensor& edges,
                                    const HistogramOptions& options) {
  if (edges.dim() != 1 || edges.numel() < 2 || edges.dtype() != x.dtype()) {
    throw_error<ShapeError>("histogram: expected at least 2 edges of the tensor's dtype; got ",
                            edges.dtype(), " ", edges.shape());
  }
  return histogram_over(x, edges.detach().clone(), options);
}

// ---- Covariances

Tensor cov(const Tensor& x, int64_t correction, const Tensor& fweights, const Tensor& aweights) {
  if (x.dim() > 2) throw_error<ShapeError>("cov: expected at most 2 dims; got ", x.shape());
  if (x.dtype() == bool_) throw_wrong_dtype("cov", bool_, "numbers");
  const Tensor rows = x.dim() < 2 ? x.reshape({1, -1}) : x;
  const int64_t n = rows.shape()[1];
  Tensor weights;
  for (const Tensor& given : {fweights, aweights}) {
    if (!given.defined()) continue;
    const bool frequencies = given.is_same(fweights);
    if (given.dim() > 1 || given.numel() != n || (frequencies && !is_integral(given.dtype())) ||
        (!frequencies && !is_floating_point(given.dtype()))) {
      throw_error<ShapeError>(
          "cov: expected ", frequencies ? "integer fweights" : "floating point aweights",
          ", one for each of ", n, " observations; got ", given.dtype(), " ", given.shape());
    }
    detail::check_values("cov", given, [](const Tensor& x) {
      if (x.numel() > 0 && x.min().item() < 0) {
        throw_error<ValueError>("cov: expected weights >= 0; got ", x.min().item());
      }
    });
    weights = weights.defined() ? weights.mul(given) : given;
  }
  const bool has_floats = is_floating_point(x.dtype()) || is_complex(x.dtype());
  DType dtype = has_floats ? x.dtype() : default_dtype();
  if (aweights.defined()) dtype = promote_types(dtype, aweights.dtype());
  const Tensor numbers = rows.to(dtype);
  if (n == 0) {
    const Shape square{rows.shape()[0], rows.shape()[0]};
    return full(square, std::nan(""), {dtype, x.device()}).squeeze();
  }
  Tensor total = full({}, n, {i64, x.device()});
  if (weights.defined()) total = weights.sum();
  const Tensor mean =
      weights.defined() ? numbers.mul(weights).sum(1, true).div(total) : numbers.mean(1, true);
  Tensor divisor = total.sub(correction);
  if (weights.defined() && aweights.defined() && correction != 0) {
    divisor = total.sub(weights.mul(aweights).sum().div(total).mul(correction));
  }
  const Tensor away = numbers.sub(mean);
  const Tensor weighted = (weights.defined() ? away.mul(weights) : away).to(dtype);
  const Tensor out =
      weighted.matmul(conj(away.to(dtype).t())).div(divisor.clamp(0).to(real_dtype(dtype)));
  return out.squeeze();
}

Tensor corrcoef(const Tensor& x) {
  const Tensor c = cov(x);
  if (c.dim() == 0) return c.div(c);
  const Tensor deviations = kiln::real(diagonal(c)).sqrt();
  const Tensor out = c.div(deviations.unsqueeze(1)).div(deviations.unsqueeze(0));
  // Rounding leads out of the range by a little.
  if (is_complex(out)) return complex(clamp(kiln::real(out), -1, 1), clamp(imag(out), -1, 1));
  return out.clamp(-1, 1);
}

}  // namespace kiln
