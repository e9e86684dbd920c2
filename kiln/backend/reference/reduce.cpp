// Reductions.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kiln/backend/reference/elements.h"

namespace kiln {

using reference::make;
using reference::Ops;
using reference::reduce;
using reference::Tensor;

namespace {

using FloatRow = std::span<const double>;
using IntRow = std::span<const int64_t>;

double sum(FloatRow row) {
  double total = 0.0;
  for (double x : row) total += x;
  return total;
}
int64_t sum(IntRow row) {
  uint64_t total = 0;
  for (int64_t x : row) total += static_cast<uint64_t>(x);
  return static_cast<int64_t>(total);
}

double nansum(FloatRow row) {
  double total = 0.0;
  for (double x : row) total += x == x ? x : 0.0;
  return total;
}

double product(FloatRow row) {
  double total = 1.0;
  for (double x : row) total *= x;
  return total;
}
int64_t product(IntRow row) {
  uint64_t total = 1;
  for (int64_t x : row) total *= static_cast<uint64_t>(x);
  return static_cast<int64_t>(total);
}

// Where the first element stands that no other beats; beats(a, b) tells whether a replaces b. NaN
// beats all.
template <class Row, class Beats>
int64_t arg_best(Row row, Beats&& beats) {
  size_t best = 0;
  for (size_t i = 1; i < row.size(); ++i) {
    if (row[best] != row[best]) break;
    if (row[i] != row[i] || beats(row[i], row[best])) best = i;
  }
  return static_cast<int64_t>(best);
}
template <class Row>
int64_t arg_max(Row row) {
  return arg_best(row, [](auto a, auto b) { return a > b; });
}
template <class Row>
int64_t arg_min(Row row) {
  return arg_best(row, [](auto a, auto b) { return a < b; });
}

double variance(FloatRow row, double correction) {
  const auto n = static_cast<double>(row.size());
  const double mean = sum(row) / n;
  double squares = 0.0;
  for (double x : row) squares += (x - mean) * (x - mean);
  return squares / std::max(0.0, n - correction);
}

double logsumexp(FloatRow row) {
  if (row.empty()) return -std::numeric_limits<double>::infinity();
  const double largest = row[static_cast<size_t>(arg_max(row))];
  if (std::isinf(largest)) return largest;
  double total = 0.0;
  for (double x : row) total += std::exp(x - largest);
  return largest + std::log(total);
}

double norm(FloatRow row, double p) {
  if (p == 0.0)
    return static_cast<double>(std::ranges::count_if(row, [](double x) { return x != 0; }));
  if (std::isinf(p)) {
    std::vector<double> sizes(row.begin(), row.end());
    for (double& x : sizes) x = std::abs(x);
    return sizes[static_cast<size_t>(p > 0 ? arg_max(FloatRow(sizes)) : arg_min(FloatRow(sizes)))];
  }
  double total = 0.0;
  for (double x : row) total += std::pow(std::abs(x), p);
  return std::pow(total, 1.0 / p);
}

}  // namespace

#define KILN_REDUCE(name, Row, V, expression)                                           \
  HostHandle Ops::name(Tensor x, const Dims& dims, bool keepdim) {                      \
    return reduce<V>(x, dims, keepdim, x->dtype(), [](Row row) { return expression; }); \
  }
KILN_REDUCE(float_sum, FloatRow, double, sum(row))
KILN_REDUCE(float_nansum, FloatRow, double, nansum(row))
KILN_REDUCE(float_mean, FloatRow, double, sum(row) / static_cast<double>(row.size()))
KILN_REDUCE(float_prod, FloatRow, double, product(row))
KILN_REDUCE(float_amax, FloatRow, double, row[static_cast<size_t>(arg_max(row))])
KILN_REDUCE(float_amin, FloatRow, double, row[static_cast<size_t>(arg_min(row))])
KILN_REDUCE(float_logsumexp, FloatRow, double, logsumexp(row))
KILN_REDUCE(int_prod, IntRow, int64_t, product(row))
KILN_REDUCE(int_amax, IntRow, int64_t, row[static_cast<size_t>(arg_max(row))])
KILN_REDUCE(int_amin, IntRow, int64_t, row[static_cast<size_t>(arg_min(row))])
KILN_REDUCE(bool_any, IntRow, int64_t, int64_t{std::ranges::find(row, 1) != row.end()})
KILN_REDUCE(bool_all, IntRow, int64_t, int64_t{std::ranges::find(row, 0) == row.end()})
#undef KILN_REDUCE

HostHandle Ops::int_sum(Tensor x, const Dims& dims, bool keepdim) {
  return reduce<int64_t>(x, dims, keepdim, DType::i64, [](IntRow row) { return sum(row); });
}

HostHandle Ops::bool_count(Tensor x, const Dims& dims, bool keepdim) {
  return reduce<int64_t>(x, dims, keepdim, DType::i64, [](IntRow row) {
    return static_cast<int64_t>(std::ranges::count(row, 1));
  });
}

HostHandle Ops::float_var(Tensor x, const Dims& dims, double correction, bool keepdim) {
  return reduce<double>(x, dims, keepdim, x->dtype(),
                        [=](FloatRow row) { return variance(row, correction); });
}

#define KILN_ARG_REDUCE(name, Row, V, best)                                                 \
  HostHandle Ops::name(Tensor x, int dim, bool keepdim) {                                   \
    return reduce<V>(x, Dims{dim}, keepdim, DType::i64, [](Row row) { return best(row); }); \
  }
KILN_ARG_REDUCE(float_argmax, FloatRow, double, arg_max)
KILN_ARG_REDUCE(float_argmin, FloatRow, double, arg_min)
KILN_ARG_REDUCE(int_argmax, IntRow, int64_t, arg_max)
KILN_ARG_REDUCE(int_argmin, IntRow, int64_t, arg_min)
#undef KILN_ARG_REDUCE

HostHandle Ops::float_norm(Tensor x, double p, const Dims& dims, bool keepdim) {
  return reduce<double>(x, dims, keepdim, x->dtype(), [=](FloatRow row) { return norm(row, p); });
}

}  // namespace kiln
