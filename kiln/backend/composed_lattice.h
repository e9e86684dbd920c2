// What the losses of sequences that are composed from other ops have in common: walks along a
// lattice, in log probabilities.
#pragma once

#include <limits>
#include <span>

#include "kiln/backend/defaults_support.h"

namespace kiln::defaults {

template <class X>
class ComposedLattice {
 protected:
  using T = FloatOf<X>;
  using Int = IntOf<X>;
  using Bool = BoolOf<X>;
  // Stands for the logarithm of 0. Finite, so that what has probability 0 adds exact zeros to sums
  // and gradients instead of NaN.
  static constexpr double kImpossible = -1e30;
  static constexpr double kInfinite = std::numeric_limits<double>::infinity();

  // `ends` and `sizes` [N]: how many steps and labels each sequence has.
  ComposedLattice(const T& x, const Int& ends, const Int& sizes)
      : x_(widen<X>(x)), ends_(column(ends)), sizes_(column(sizes)) {}

  static Int column(const Int& x) { return X::int_reshape(x, Shape{X::shape(x).numel(), 1}); }
  T filled(const Shape& shape, double value) const {
    return X::float_full(shape, Scalar(value), X::dtype(x_), X::device(x_));
  }
  Int filled_with(const Shape& shape, int64_t label) const {
    return X::int_full(shape, Scalar(label), DType::i64, X::device(x_));
  }
  Int counted(int64_t count) const { return X::int_arange(0, 1, count, DType::i64, X::device(x_)); }
  // `targets` [N, S] with `blank` behind each sequence's labels.
  Int known_labels(const Int& targets, int64_t blank) const {
    const int64_t longest = Shape(X::shape(targets))[1];
    return X::int_mask_fill(targets, X::int_greater_equal(counted(longest), sizes_), Scalar(blank));
  }

  // The logarithm of the sum of the exponentials of matrices, element by element.
  template <class... Terms>
  static T log_sum(const Terms&... terms) {
    const auto plane = [](const T& x) {
      const Shape shape = X::shape(x);
      return X::float_reshape(x, Shape{1, shape[0], shape[1]});
    };
    const T planes[] = {plane(terms)...};
    const T all = X::float_cat(std::span<const T>(planes), 0);
    return X::float_clamp(X::float_logsumexp(all, Dims{0}, false), kImpossible, kInfinite);
  }
  // Where a loss says that no walk is possible.
  static Bool hopeless(const T& loss) {
    return X::float_greater_scalar(loss, Scalar(-kImpossible * 0.5));
  }
  // `loss` as the caller gets it: infinite where no walk is possible, in the dtype of `x`.
  static T finished(const T& loss, const T& x) {
    return narrow<X>(X::float_mask_fill(loss, hopeless(loss), Scalar(kInfinite)), X::dtype(x));
  }

  T x_;
  Int ends_, sizes_;  // [N, 1]
};

}  // namespace kiln::defaults
