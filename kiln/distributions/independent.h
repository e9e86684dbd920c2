// Batch dims that become dims of the event.
#pragma once

#include "kiln/distributions/distribution.h"

namespace kiln::distributions {

// A distribution whose last `dims` batch dims belong to the event; log_prob and entropy are summed
// over them: Independent(Normal(zeros({8, 3}), 1.0), 1) has 8 vectors of 3 numbers. Throws
// ValueError unless dims is from 0 to the number of batch dims.
class Independent : public Distribution {
 public:
  Independent(const Shared<Distribution>& base, int64_t dims,
              std::optional<bool> validate_args = {});
  const Distribution& base() const { return *base_; }
  int64_t dims() const { return dims_; }

  std::unique_ptr<Distribution> expand(const Shape& batch_shape) const override;
  Constraint support() const override;
  bool has_rsample() const override { return base_->has_rsample(); }
  bool has_enumerate_support() const override;
  Tensor sample(const Shape& sample_shape = {}) const override;
  Tensor rsample(const Shape& sample_shape = {}) const override;
  std::pair<Tensor, Tensor> rsample_with_log_prob(const Shape& sample_shape = {}) const override;
  Tensor log_prob(const Tensor& value) const override;
  Tensor mean() const override { return base_->mean(); }
  Tensor mode() const override { return base_->mode(); }
  Tensor variance() const override { return base_->variance(); }
  Tensor stddev() const override { return base_->stddev(); }
  Tensor entropy() const override;
  Tensor enumerate_support(bool expand = true) const override;

 private:
  void set_shapes_of_base();

  Shared<Distribution> base_;
  int64_t dims_;
};

}  // namespace kiln::distributions
