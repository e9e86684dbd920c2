// The loss of an RNN transducer composed from other ops, a diagonal of all lattices at a time. It
// serves two: backends without kernels of their own for it, and gradients of gradients, where
// Autodiff differentiates these very ops.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "kiln/backend/composed_lattice.h"

namespace kiln::defaults {

// Note [Lattice of a transducer]. A place (t, u) of a lattice of T steps by U + 1 columns says that
// t steps are over and u labels are out. From there a walk emits the blank and goes to (t + 1, u),
// or the next label and goes to (t, u + 1). It begins in (0, 0) and ends with a blank in the last
// step and the column of the target's length. On diagonal d = t + u all places depend on diagonal
// d - 1 alone. alpha is the log probability of all walks to a place, beta that of all from it.
template <class X>
class ComposedRnnt : private ComposedLattice<X> {
  using Base = ComposedLattice<X>;
  using typename Base::Bool;

 public:
  using typename Base::Int;
  using typename Base::T;

  // As float_rnnt_loss and float_rnnt_loss_backward in ops.def.
  static T loss(const T& x, const Int& targets, const Int& ends, const Int& sizes, int64_t blank,
                bool softmax) {
    const ComposedRnnt c(x, targets, ends, sizes, blank, softmax);
    if (c.n_ == 0 || c.steps_ == 0) return narrow<X>(c.filled(Shape{c.n_}, 0.0), X::dtype(x));
    return c.finished(c.loss_of(c.alphas()), x);
  }

  static T gradient(const T& g, const T& x, const Int& targets, const Int& ends, const Int& sizes,
                    int64_t blank, double clamp, bool softmax) {
    const ComposedRnnt c(x, targets, ends, sizes, blank, softmax);
    const T zeros = c.filled(X::shape(x), 0.0);
    if (zeros_only(X::shape(x))) return narrow<X>(zeros, X::dtype(x));
    const auto [blanks, labels] = c.shares();
    // d loss / d log probabilities, and of the scores behind them.
    T slope = X::float_scatter_add(zeros, 3, c.index(c.blank_labels()), X::float_neg(blanks));
    slope = X::float_scatter_add(slope, 3, c.index(c.labels_), X::float_neg(labels));
    if (softmax) {
      const T here = X::float_add(blanks, labels);
      slope = X::float_add(slope, X::float_mul(X::float_softmax(widen<X>(x), 3), here));
    }
    if (clamp > 0.0) slope = X::float_clamp(slope, -clamp, clamp);
    const T scale = X::float_reshape(widen<X>(g), Shape{c.n_, 1, 1, 1});
    return narrow<X>(X::float_mul(slope, scale), X::dtype(x));
  }

 private:
  using Base::counted;
  using Base::ends_;
  using Base::filled;
  using Base::hopeless;
  using Base::kImpossible;
  using Base::kInfinite;
  using Base::log_sum;
  using Base::sizes_;
  using Base::x_;

  ComposedRnnt(const T& x, const Int& targets, const Int& ends, const Int& sizes, int64_t blank,
               bool softmax)
      : Base(x, ends, sizes), labels_(targets), blank_(blank) {
    const Shape shape = X::shape(x);
    n_ = shape[0];
    steps_ = shape[1];
    columns_ = shape[2];
    diagonals_ = steps_ + columns_ - 1;
    labels_ = labels_of(targets);
    if (zeros_only(shape)) return;
    if (softmax) x_ = X::float_log_softmax(x_, 3);
  }

  static bool zeros_only(const Shape& shape) { return shape.numel() == 0; }
  // The label that each column emits; the blank behind the target: [N, U + 1].
  Int labels_of(const Int& targets) const {
    const Int row[] = {this->known_labels(targets, blank_),
                       this->filled_with(Shape{n_, 1}, blank_)};
    return X::int_cat(std::span<const Int>(row), 1);
  }
  Int blank_labels() const { return this->filled_with(Shape{n_, columns_}, blank_); }
  Int index(const Int& labels) const {
    return X::int_expand(X::int_reshape(labels, Shape{n_, 1, columns_, 1}),
                         Shape{n_, steps_, columns_, 1});
  }

  // What [N, T, U + 1] holds on the diagonals: [N, D, U + 1], step d - u of column u at [d, u].
  // What lies outside the lattice is never reached from the start.
  T to_diagonals(const T& x) const {
    std::vector<int64_t> step;
    for (int64_t d = 0; d < diagonals_; ++d) {
      for (int64_t u = 0; u < columns_; ++u) {
        step.push_back(std::clamp<int64_t>(d - u, 0, steps_ - 1));
      }
    }
    return moved(x, step, diagonals_);
  }
  T from_diagonals(const T& x) const {
    std::vector<int64_t> diagonal;
    for (int64_t t = 0; t < steps_; ++t) {
      for (int64_t u = 0; u < columns_; ++u) diagonal.push_back(t + u);
    }
    return moved(x, diagonal, steps_);
  }
  T moved(const T& x, const std::vector<int64_t>& from, int64_t rows) const {
    const Int index = X::int_from_data(TensorData(from, Shape{1, rows, columns_}), X::device(x_));
    return X::float_gather(x, 1, X::int_expand(index, Shape{n_, rows, columns_}));
  }
  T emitted(const Int& labels) const {
    const T all = X::float_clamp(X::float_gather(x_, 3, index(labels)), kImpossible, kInfinite);
    return to_diagonals(X::float_reshape(all, Shape{n_, steps_, columns_}));
  }
  T diagonal(const T& x, int64_t d) const {
    return X::float_reshape(X::float_slice(x, 1, Range{d, d + 1, 1}), Shape{n_, columns_});
  }
  // x one column to the right or to the left, with what is impossible in the column left free.
  T shifted(const T& x, bool right) const {
    const T edge = filled(Shape{n_, 1}, kImpossible);
    const T rest = X::float_slice(x, 1, right ? Range{0, columns_ - 1, 1} : Range{1, columns_, 1});
    const T row[] = {right ? edge : rest, right ? rest : edge};
    return X::float_cat(std::span<const T>(row), 1);
  }
  // The place where walks end, on diagonal d: [N, U + 1].
  Bool is_end(int64_t d) const {
    const Int last = X::int_add(ends_, sizes_);  // its diagonal and one
    return X::bool_and(X::int_equal(counted(columns_), sizes_),
                       X::int_equal_scalar(last, Scalar(d + 1)));
  }

  struct Alphas {
    T blanks, labels;      // what a place emits: [N, D, U + 1]
    std::vector<T> alpha;  // of each diagonal: [N, U + 1]
  };
  Alphas alphas() const {
    Alphas out{emitted(blank_labels()), emitted(labels_), {}};
    for (int64_t d = 0; d < diagonals_; ++d) {
      if (d == 0) {
        const T row[] = {filled(Shape{n_, 1}, 0.0), filled(Shape{n_, columns_ - 1}, kImpossible)};
        out.alpha.push_back(X::float_cat(std::span<const T>(row), 1));
        continue;
      }
      const T& before = out.alpha.back();
      const T stays = X::float_add(before, diagonal(out.blanks, d - 1));
      const T goes = shifted(X::float_add(before, diagonal(out.labels, d - 1)), true);
      // Column u has a step on diagonals u to u + T - 1.
      std::vector<double> closed;
      for (int64_t u = 0; u < columns_; ++u) closed.push_back(d >= u && d - u < steps_ ? 0.0 : 1.0);
      const T outside = X::float_from_data(
          TensorData(closed, Shape{1, columns_}).cast(X::dtype(x_)), X::device(x_));
      out.alpha.push_back(X::float_mask_fill(log_sum(stays, goes),
                                             X::float_greater_scalar(outside, Scalar(0.5)),
                                             Scalar(kImpossible)));
    }
    return out;
  }

  // The loss [N]; where no walk is possible, about -kImpossible.
  T loss_of(const Alphas& a) const {
    T found = filled(Shape{n_, columns_}, kImpossible);
    for (int64_t d = 0; d < diagonals_; ++d) {
      const T here = X::float_add(a.alpha[static_cast<size_t>(d)], diagonal(a.blanks, d));
      found = X::float_mask_where(found, is_end(d), here);
    }
    return X::float_neg(X::float_reshape(X::float_gather(found, 1, sizes_), Shape{n_}));
  }

  // How probable it is to emit the blank, and the label, at each place: [N, T, U + 1, 1].
  std::pair<T, T> shares() const {
    const Alphas a = alphas();
    const T loss = loss_of(a);
    const Bool none = X::bool_reshape(hopeless(loss), Shape{n_, 1});
    const T shift = X::float_mask_fill(X::float_reshape(loss, Shape{n_, 1}), none, Scalar(0.0));
    const Shape row = {n_, 1, columns_};
    std::vector<T> blanks(a.alpha), labels(a.alpha);
    T beta = filled(Shape{n_, columns_}, kImpossible);
    for (int64_t d = diagonals_ - 1; d >= 0; --d) {
      const auto at = static_cast<size_t>(d);
      const T after = X::float_mask_fill(beta, is_end(d), Scalar(0.0));
      const T stays = X::float_add(diagonal(a.blanks, d), after);
      const T goes = X::float_add(diagonal(a.labels, d), shifted(beta, false));
      const T here = X::float_add(a.alpha[at], shift);
      const auto share = [&](const T& walk) {
        const T p = X::float_exp(X::float_add(here, walk));
        return T(X::float_reshape(X::float_mask_fill(p, none, Scalar(0.0)), row));
      };
      blanks[at] = share(stays);
      labels[at] = share(goes);
      beta = log_sum(stays, goes);
    }
    const Shape places = {n_, steps_, columns_, 1};
    return {X::float_reshape(from_diagonals(X::float_cat(std::span<const T>(blanks), 1)), places),
            X::float_reshape(from_diagonals(X::float_cat(std::span<const T>(labels), 1)), places)};
  }

  Int labels_;
  int64_t blank_;
  int64_t n_ = 0, steps_ = 0, columns_ = 1, diagonals_ = 0;
};

}  // namespace kiln::defaults
