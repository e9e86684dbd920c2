// Sets of numbers, vectors and matrices: which parameters are allowed, which values draws have.
#pragma once

#include <functional>
#include <string>

#include "kiln/tensor/tensor.h"

namespace kiln::distributions {

// A set, and a test whether values are in it.
class Constraint {
 public:
  // value -> whether each of its events is in the set: bools without the last event_dim dims.
  using Check = std::function<Tensor(const Tensor&)>;

  // text: what is legal, as in "x must be <text>".
  Constraint(std::string text, Check check, int event_dim = 0, bool is_discrete = false)
      : text_(std::move(text)),
        check_(std::move(check)),
        event_dim_(event_dim),
        is_discrete_(is_discrete) {}

  const std::string& text() const { return text_; }
  // How many dims on the right together make one value.
  int event_dim() const { return event_dim_; }
  // Whether the set is countable.
  bool is_discrete() const { return is_discrete_; }
  // Throws ShapeError for a value of fewer than event_dim dims.
  Tensor check(const Tensor& value) const;
  // The first event of value for which inside = check(value) is false, as text.
  std::string first_outside(const Tensor& value, const Tensor& inside) const;

 private:
  std::string text_;
  Check check_;
  int event_dim_;
  bool is_discrete_;
};

namespace constraints {

Constraint real();                 // everything but NaN
Constraint positive();             // x > 0
Constraint nonnegative();          // x >= 0
Constraint unit_interval();        // 0 <= x <= 1
Constraint boolean();              // 0 and 1
Constraint nonnegative_integer();  // 0, 1, 2, ..
// Bounds broadcast with the values. Both are in the set, but of half_open_interval only the lower.
Constraint greater_than_eq(const Tensor& low);
Constraint interval(const Tensor& low, const Tensor& high);
Constraint interval(double low, double high);
Constraint half_open_interval(double low, double high);
Constraint integer_interval(int64_t low, int64_t high);
Constraint integer_interval(int64_t low, const Tensor& high);

// ---- Vectors

Constraint real_vector();
Constraint simplex();  // numbers >= 0 with sum 1, within 1e-6
Constraint weights();  // numbers >= 0 with a finite sum > 0
Constraint one_hot();  // one 1 and else zeros
// Whole numbers >= 0 with a sum of at most total.
Constraint multinomial(int64_t total);

// ---- Square matrices

Constraint lower_cholesky();     // zeros above a positive diagonal
Constraint positive_definite();  // symmetric within 1e-6, with a Cholesky factor

// Tensors of `dims` more dims, all of whose parts are in the base set. Throws ValueError for a
// negative number.
Constraint independent(const Constraint& base, int dims);

}  // namespace constraints
}  // namespace kiln::distributions
