// Order statistics of a handful of measurements.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace kiln::bench {

// The value below which the fraction q of the values lies, interpolated. `values` is not empty.
inline double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double position = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, values.size() - 1);
  const double weight = position - static_cast<double>(below);
  return values[below] * (1 - weight) + values[above] * weight;
}

inline double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

struct Summary {
  double median = 0;
  double minimum = 0;
  double quartile1 = 0;
  double quartile3 = 0;

  // The interquartile range as a fraction of the median.
  double spread() const { return (quartile3 - quartile1) / median; }
};

inline Summary summarize(const std::vector<double>& values) {
  return {median(values), quantile(values, 0), quantile(values, 0.25), quantile(values, 0.75)};
}

}  // namespace kiln::bench
