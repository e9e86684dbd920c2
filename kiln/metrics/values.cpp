#include "kiln/metrics/values.h"

#include <algorithm>
#include <cmath>

#include "kiln/core/error.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"

namespace kiln::metrics {

void MeanMetric::update(const Tensor& values, double weight) {
  for (const double value : values.detach().to_vector<double>()) update(value, weight);
}

void MeanMetric::update(double value, double weight) {
  if (!(weight >= 0 && std::isfinite(weight))) {
    throw_error<ValueError>(name_, ": a weight must be finite and not negative; got ", weight);
  }
  sum_ += value * weight;
  weight_ += weight;
}

Tensor MeanMetric::compute() const {
  return value_tensor(ratio(sum_, weight_, std::numeric_limits<double>::quiet_NaN()));
}

void MeanMetric::visit_state(StateVisitor& visitor) {
  visitor("sum", sum_, Join::sum);
  visitor("weight", weight_, Join::sum);
}

std::string Perplexity::description() const {
  return ignore_index_ ? concat("Perplexity(ignore_index=", *ignore_index_, ")") : "Perplexity()";
}

void Perplexity::visit_state(StateVisitor& visitor) {
  visitor("sum", sum_, Join::sum);
  visitor("count", count_, Join::sum);
}

void Perplexity::update(const Tensor& logits, const Tensor& target) {
  bool fits = logits.dim() == target.dim() + 1 && logits.size(-1) > 0;
  for (int d = 0; fits && d < target.dim(); ++d) fits = logits.size(d) == target.size(d);
  if (!fits) {
    throw_error<ShapeError>("Perplexity: the shapes do not fit; got logits ", logits.shape(),
                            " and targets ", target.shape(), "; expected [.., V] and [..]");
  }
  if (!logits.is_floating_point() || logits.is_complex()) {
    throw_error<DTypeError>("Perplexity: logits must be floating point; got ", logits.dtype());
  }
  if (target.is_floating_point() || target.is_complex()) {
    throw_error<DTypeError>("Perplexity: targets must be integers; got ", target.dtype());
  }
  const int64_t classes = logits.size(-1);
  std::vector<int64_t> wanted = target.to_vector<int64_t>();
  std::vector<bool> counts(wanted.size(), true);
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (ignore_index_ && wanted[i] == *ignore_index_) {
      counts[i] = false;
      wanted[i] = 0;
    } else if (wanted[i] < 0 || wanted[i] >= classes) {
      throw_error<IndexError>("Perplexity: a target is out of range; got ", wanted[i],
                              "; expected 0 to ", classes - 1);
    }
  }
  const auto rows = static_cast<int64_t>(wanted.size());
  if (rows == 0) return;
  const Tensor x = logits.detach().reshape({rows, classes});
  const Tensor index = from_vector(wanted, {rows, 1}, {.dtype = i64, .device = x.device()});
  const Tensor loss = x.logsumexp(-1).to(f64) - x.gather(1, index).squeeze(1).to(f64);
  const std::vector<double> losses = loss.to_vector<double>();
  for (size_t i = 0; i < losses.size(); ++i) {
    if (!counts[i]) continue;
    sum_ += losses[i];
    ++count_;
  }
}

Tensor Perplexity::compute() const {
  return value_tensor(
      std::exp(ratio(sum_, static_cast<double>(count_), std::numeric_limits<double>::quiet_NaN())));
}

void IterationSpeed::visit_state(StateVisitor& visitor) {
  visitor("iterations", iterations_, Join::sum);
  visitor("seconds", seconds_, Join::sum);
}

void IterationSpeed::reset() {
  Metric::reset();
  last_.reset();
}

void IterationSpeed::update(int64_t count, std::optional<double> seconds) {
  if (count < 0 || (seconds && !(*seconds >= 0))) {
    throw_error<ValueError>("IterationSpeed: expected numbers that are not negative; got ", count,
                            " iterations", seconds ? concat(" in ", *seconds, " seconds") : "");
  }
  const auto now = std::chrono::steady_clock::now();
  if (last_ && !seconds) seconds = std::chrono::duration<double>(now - *last_).count();
  last_ = now;
  if (!seconds) return;
  iterations_ += static_cast<double>(count);
  seconds_ += *seconds;
}

Tensor IterationSpeed::compute() const {
  return value_tensor(ratio(iterations_, seconds_, std::numeric_limits<double>::quiet_NaN()));
}

}  // namespace kiln::metrics
