#include "kiln/distributions/probs_or_logits.h"

#include "kiln/distributions/support.h"
#include "kiln/tensor/ops.h"

namespace kiln::distributions {

namespace {

void check_one(std::string_view owner, bool has_probs, bool has_logits) {
  if (has_probs != has_logits) return;
  throw_error<ValueError>(owner, ": expected one of probs and logits; got ",
                          has_probs ? "both" : "none");
}

// Moved away from 0 and 1, so that logs are finite.
Tensor inner_probs(const Tensor& probs) {
  const double eps = epsilon_of(probs.dtype());
  return probs.clamp(eps, 1 - eps);
}

}  // namespace

Tensor BinaryDistribution::probs() const { return probs_.defined() ? probs_ : logits_.sigmoid(); }

Tensor BinaryDistribution::logits() const {
  if (logits_.defined()) return logits_;
  const Tensor inner = inner_probs(probs_);
  return inner.log() - (-inner).log1p();
}

void BinaryDistribution::take(const Chances& chances) {
  check_one(name(), chances.probs.is_given(), chances.logits.is_given());
  if (chances.probs.is_given()) {
    broadcast_parameters(name(), {{"probs", chances.probs, &probs_}});
  } else {
    broadcast_parameters(name(), {{"logits", chances.logits, &logits_}});
  }
}

void BinaryDistribution::take(const Chances& chances, std::string_view other_name,
                              const TensorOrNumber& other, Tensor* result) {
  check_one(name(), chances.probs.is_given(), chances.logits.is_given());
  if (chances.probs.is_given()) {
    broadcast_parameters(name(), {{"probs", chances.probs, &probs_}, {other_name, other, result}});
  } else {
    broadcast_parameters(name(),
                         {{"logits", chances.logits, &logits_}, {other_name, other, result}});
  }
}

void BinaryDistribution::check_chances(const Constraint& set) const {
  if (probs_.defined()) {
    check_parameter("probs", probs_, set);
  } else {
    check_parameter("logits", logits_, constraints::real());
  }
}

Tensor ClassDistribution::probs() const { return probs_.defined() ? probs_ : logits_.softmax(-1); }

Tensor ClassDistribution::logits() const {
  return logits_.defined() ? logits_ : inner_probs(probs_).log();
}

void ClassDistribution::take(const ClassChances& chances) {
  const bool has_probs = chances.probs.defined();
  check_one(name(), has_probs, chances.logits.defined());
  const Tensor given = tensor_parameter(name(), has_probs ? "probs" : "logits",
                                        has_probs ? chances.probs : chances.logits, 1);
  if (given.size(-1) == 0) {
    throw_error<ShapeError>(name(), ": expected one class or more; got shape ", given.shape());
  }
  if (has_probs) {
    check_parameter("probs", given, constraints::weights());
    probs_ = given / given.sum(-1, true);
  } else {
    logits_ = given - given.logsumexp(-1, true);
    check_parameter("logits", logits_, constraints::real_vector());
  }
}

Shape ClassDistribution::classes_batch() const {
  const std::span<const int64_t> shape = param().shape();
  return Shape(shape.first(shape.size() - 1));
}

}  // namespace kiln::distributions
