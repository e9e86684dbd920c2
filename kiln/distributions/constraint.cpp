#include "kiln/distributions/constraint.h"

#include "kiln/distributions/support.h"
#include "kiln/tensor/elementwise/comparison.h"
#include "kiln/tensor/linalg/linalg.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/sequences.h"

namespace kiln::distributions {

namespace {

constexpr double kCloseSums = 1e-6;

Tensor is_whole(const Tensor& x) { return x == x.to(default_float(x)).floor(); }

}  // namespace

Tensor Constraint::check(const Tensor& value) const {
  if (value.dim() < event_dim_) {
    throw_error<ShapeError>("Constraint: a value that is ", text_, " has ", event_dim_,
                            " dims or more; got shape ", value.shape());
  }
  return check_(value);
}

std::string Constraint::first_outside(const Tensor& value, const Tensor& inside) const {
  const int lead = value.dim() - event_dim_;
  const Shape event(std::span(value.shape().begin() + lead, value.shape().end()));
  // Bounds may have given the test a larger batch than the value has.
  const Tensor events = value.expand(joined(inside.shape(), event)).reshape(joined({-1}, event));
  const auto place = inside.logical_not().reshape({-1}).to(i64).argmax().item<int64_t>();
  const Tensor found = events.select(0, place).detach();
  return event_dim_ == 0 ? concat(found.item<double>()) : to_string(found);
}

namespace constraints {

Constraint real() {
  return {"a number", [](const Tensor& x) { return x == x; }};
}

Constraint positive() {
  return {"> 0", [](const Tensor& x) { return x > 0; }};
}

Constraint nonnegative() {
  return {">= 0", [](const Tensor& x) { return x >= 0; }};
}

Constraint unit_interval() { return interval(0.0, 1.0); }

Constraint boolean() {
  return {"0 or 1", [](const Tensor& x) { return (x == 0) | (x == 1); }, 0, true};
}

Constraint nonnegative_integer() {
  return {"a whole number >= 0", [](const Tensor& x) { return is_whole(x) & (x >= 0); }, 0, true};
}

Constraint greater_than_eq(const Tensor& low) {
  return {concat(">= ", brief(low)), [low](const Tensor& x) { return x >= low; }};
}

Constraint interval(const Tensor& low, const Tensor& high) {
  return {concat("from ", brief(low), " to ", brief(high)),
          [low, high](const Tensor& x) { return (x >= low) & (x <= high); }};
}

Constraint interval(double low, double high) {
  return {concat("from ", low, " to ", high),
          [low, high](const Tensor& x) { return (x >= low) & (x <= high); }};
}

Constraint half_open_interval(double low, double high) {
  return {concat("from ", low, " to less than ", high),
          [low, high](const Tensor& x) { return (x >= low) & (x < high); }};
}

Constraint integer_interval(int64_t low, int64_t high) {
  return {concat("a whole number from ", low, " to ", high),
          [low, high](const Tensor& x) { return is_whole(x) & (x >= low) & (x <= high); }, 0, true};
}

Constraint integer_interval(int64_t low, const Tensor& high) {
  return {concat("a whole number from ", low, " to ", brief(high)),
          [low, high](const Tensor& x) { return is_whole(x) & (x >= low) & (x <= high); }, 0, true};
}

Constraint real_vector() { return independent(real(), 1); }

Constraint simplex() {
  return {"numbers >= 0 with sum 1",
          [](const Tensor& x) { return (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < kCloseSums); },
          1};
}

Constraint weights() {
  return {"numbers >= 0 with a sum > 0",
          [](const Tensor& x) {
            const Tensor total = x.sum(-1);
            return (x >= 0).all(-1) & (total > 0) & total.isfinite();
          },
          1};
}

Constraint one_hot() {
  return {"one 1 and else zeros",
          [](const Tensor& x) { return ((x == 0) | (x == 1)).all(-1) & (x.sum(-1) == 1); }, 1,
          true};
}

Constraint multinomial(int64_t total) {
  return {
      concat("whole numbers >= 0 with a sum of at most ", total),
      [total](const Tensor& x) { return (is_whole(x) & (x >= 0)).all(-1) & (x.sum(-1) <= total); },
      1, true};
}

Constraint lower_cholesky() {
  return {"a matrix with zeros above a positive diagonal",
          [](const Tensor& x) {
            const Tensor lower = (tril(x) == x).all(-1).all(-1);
            return lower & (diagonal_of_matrix(x) > 0).all(-1);
          },
          2};
}

Constraint positive_definite() {
  return {"a symmetric positive definite matrix",
          [](const Tensor& x) {
            const Tensor same = isclose(x, x.transpose(-2, -1), 1e-5, kCloseSums).all(-1).all(-1);
            return same & (linalg::cholesky_ex(x.detach()).second == 0);
          },
          2};
}

Constraint independent(const Constraint& base, int dims) {
  if (dims < 0) throw_error<ValueError>("independent: dims must be >= 0; got ", dims);
  if (dims == 0) return base;
  return {concat(dims == 1 ? "a vector, each element " : "a tensor, each element ", base.text()),
          [base, dims](const Tensor& x) {
            Tensor inside = base.check(x);
            for (int i = 0; i < dims; ++i) inside = inside.all(-1);
            return inside;
          },
          base.event_dim() + dims, base.is_discrete()};
}

}  // namespace constraints
}  // namespace kiln::distributions
