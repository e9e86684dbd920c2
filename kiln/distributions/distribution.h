// Distribution: the base of all distributions.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "kiln/distributions/constraint.h"
#include "kiln/distributions/shared.h"
#include "kiln/distributions/tensor_or_number.h"
#include "kiln/tensor/tensor.h"

namespace kiln::distributions {

// A batch of independent distributions of one kind. batch_shape says how many, event_shape is the
// shape of one draw. Draws have the shape sample_shape + batch_shape + event_shape. log_prob has
// one number for each event. Parameters may be tensors with gradients, which reach them through
// log_prob, entropy, rsample and the other members.
//
// Objects are values: a copy shares the tensors. They do not change, so threads may share them.
//
// Every constructor takes validate_args: whether parameters and values are checked. Without it the
// setting of set_default_validate_args() holds. A check reads a result, so a recording or vmap
// needs `false`. Checked are parameters (ValueError; the message names class, parameter, set and
// the first wrong value), and the values of log_prob and cdf (ShapeError, ValueError).
//
// A member that a class does not have throws NotImplementedError.
class Distribution {
 public:
  virtual ~Distribution() = default;

  std::string_view name() const { return name_; }
  const Shape& batch_shape() const { return batch_shape_; }
  const Shape& event_shape() const { return event_shape_; }
  bool validates_args() const { return validate_; }
  // True at start. For all threads.
  static void set_default_validate_args(bool validate);

  // The same distributions in a larger batch; parameters are expanded, not copied. Throws
  // ShapeError where batch_shape does not broadcast to the new one.
  virtual std::unique_ptr<Distribution> expand(const Shape& batch_shape) const = 0;

  // The values that draws can have.
  virtual Constraint support() const = 0;
  // Whether rsample() exists.
  virtual bool has_rsample() const { return false; }
  virtual bool has_enumerate_support() const { return false; }

  // Draws from the default generator, without gradients.
  virtual Tensor sample(const Shape& sample_shape = {}) const;
  // Draws as a differentiable function of the parameters.
  virtual Tensor rsample(const Shape& sample_shape = {}) const;
  // Draws like those of rsample(), and their log_prob. A TransformedDistribution does not have to
  // invert its transforms for it, so nothing is lost where they saturate.
  virtual std::pair<Tensor, Tensor> rsample_with_log_prob(const Shape& sample_shape = {}) const;

  // The log of the probability, or of the density, at value: the shape of value without
  // event_shape, broadcast with batch_shape.
  virtual Tensor log_prob(const Tensor& value) const;
  // The probability of draws <= value, and its inverse at probabilities.
  virtual Tensor cdf(const Tensor& value) const;
  virtual Tensor icdf(const Tensor& p) const;

  // Of each distribution, in the shape batch_shape + event_shape. NaN or infinite where there is
  // none.
  virtual Tensor mean() const;
  virtual Tensor mode() const;  // where the probability or density is largest
  virtual Tensor variance() const;
  virtual Tensor stddev() const;  // the root of the variance

  // In nats, in the shape batch_shape; and its exponential.
  virtual Tensor entropy() const;
  Tensor perplexity() const;

  // All values of a discrete distribution along a new first dim. Without `expand` the dims of the
  // batch have size 1.
  virtual Tensor enumerate_support(bool expand = true) const;

 protected:
  explicit Distribution(const char* name, std::optional<bool> validate_args);
  Distribution(const Distribution&) = default;
  Distribution(Distribution&&) = default;
  Distribution& operator=(const Distribution&) = default;
  Distribution& operator=(Distribution&&) = default;

  void set_shapes(const Shape& batch_shape, const Shape& event_shape = {});
  // Throws ValueError unless all values are in the set. Does nothing without validation.
  void check_parameter(std::string_view parameter, const Tensor& value,
                       const Constraint& set) const;
  // Throws ShapeError unless value broadcasts with the shapes, ValueError unless it is in the
  // support. Does nothing without validation.
  void check_value(const Tensor& value) const;
  void check_value_shape(const Tensor& value) const;  // the first of the two
  [[noreturn]] void throw_missing(std::string_view member) const;
  // sample_shape + batch_shape + event_shape.
  Shape draw_shape(const Shape& sample_shape) const;
  // Throws ShapeError unless batch_shape broadcasts to the new one.
  void check_expand(const Shape& batch_shape) const;

  // For expand(): a copy of self whose parameters, [batch_shape, ..], have the new batch_shape.
  template <class D>
  static std::unique_ptr<Distribution> widened(
      const D& self, const Shape& batch_shape,
      std::initializer_list<Tensor std::type_identity_t<D>::*> parameters) {
    self.check_expand(batch_shape);
    auto result = std::make_unique<D>(self);
    for (Tensor D::*const parameter : parameters) {
      (*result).*parameter = self.widened_parameter((*result).*parameter, batch_shape);
    }
    result->set_shapes(batch_shape, self.event_shape());
    return result;
  }

 private:
  Tensor widened_parameter(const Tensor& x, const Shape& batch_shape) const;

  const char* name_;
  bool validate_;
  Shape batch_shape_;
  Shape event_shape_;
};

}  // namespace kiln::distributions
