// Connectionist temporal classification composed from other ops, a step of all sequences at a time.
// It serves two: backends without kernels of their own for it, and gradients of gradients, where
// Autodiff differentiates these very ops.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "kiln/backend/composed_lattice.h"

namespace kiln::defaults {

// Note [Lattice of CTC]. A target of n labels is spelled by a walk over 2 n + 1 states: a blank
// before, between and after its labels. At each step of a sequence a walk stays in its state, goes
// to the next, or skips a blank between two labels that differ. It starts in one of the first two
// states and ends in one of the last two. alpha is the log probability of all walks to a state,
// with what it emits; beta that of all walks from there to the end, without.
template <class X>
class ComposedCtc : private ComposedLattice<X> {
  using Base = ComposedLattice<X>;
  using typename Base::Bool;

 public:
  using typename Base::Int;
  using typename Base::T;

  // As float_ctc_loss and float_ctc_loss_backward in ops.def.
  static T loss(const T& x, const Int& targets, const Int& ends, const Int& sizes, int64_t blank) {
    const ComposedCtc c(x, targets, ends, sizes, blank);
    return c.finished(c.loss_of(c.alphas()), x);
  }

  static T gradient(const T& g, const T& x, const Int& targets, const Int& ends, const Int& sizes,
                    int64_t blank) {
    const ComposedCtc c(x, targets, ends, sizes, blank);
    const T zeros = c.filled(X::shape(x), 0.0);
    if (c.steps_ == 0 || c.n_ == 0) return narrow<X>(zeros, X::dtype(x));
    const std::vector<T> alpha = c.alphas();
    const T loss = c.loss_of(alpha);
    const Bool none = c.hopeless(loss);
    const T shift = X::float_reshape(X::float_mask_fill(loss, none, Scalar(0.0)), Shape{c.n_, 1});
    const T scale = X::float_reshape(
        X::float_mask_fill(X::float_neg(widen<X>(g)), none, Scalar(0.0)), Shape{c.n_, 1});
    std::vector<T> rows(static_cast<size_t>(c.steps_), shift);
    T beta = c.last_beta();
    for (int64_t t = c.steps_ - 1; t >= 0; --t) {
      if (t + 1 < c.steps_) beta = c.step_back(beta, t);
      // How probable it is to be in a state at this step.
      T here = X::float_exp(X::float_add(X::float_add(alpha[static_cast<size_t>(t)], beta), shift));
      here = X::float_mask_fill(std::move(here), X::bool_not(c.open(t)), Scalar(0.0));
      rows[static_cast<size_t>(t)] =
          X::float_reshape(X::float_mul(std::move(here), scale), Shape{1, c.n_, c.states_});
    }
    const T all = X::float_cat(std::span<const T>(rows), 0);
    return narrow<X>(X::float_scatter_add(zeros, 2, c.index(), all), X::dtype(x));
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

  ComposedCtc(const T& x, const Int& targets, const Int& ends, const Int& sizes, int64_t blank)
      : Base(x, ends, sizes), labels_(ends_), skip_(x_), emitted_(x_) {
    const Shape shape = X::shape(x);
    steps_ = shape[0];
    n_ = shape[1];
    longest_ = Shape(X::shape(targets))[1];
    states_ = 2 * longest_ + 1;
    const Int known = this->known_labels(targets, blank);
    labels_ = labels_of(known, blank);
    skip_ = skip_of(known);
    emitted_ = X::float_clamp(X::float_gather(x_, 2, index()), kImpossible, kInfinite);
  }

  // Each target with a blank before, between and after its labels: [N, 2 S + 1].
  Int labels_of(const Int& known, int64_t blank) const {
    const Shape each = {n_, longest_, 1};
    const Int pairs[] = {this->filled_with(each, blank), X::int_reshape(known, each)};
    const Int row[] = {
        X::int_reshape(X::int_cat(std::span<const Int>(pairs), 2), Shape{n_, 2 * longest_}),
        this->filled_with(Shape{n_, 1}, blank)};
    return X::int_cat(std::span<const Int>(row), 1);
  }
  // 0 where a walk may come from the state two before, else impossible.
  T skip_of(const Int& known) const {
    if (longest_ == 0) return filled(Shape{n_, 1}, kImpossible);
    const Bool same = X::int_equal(X::int_slice(known, 1, Range{1, longest_, 1}),
                                   X::int_slice(known, 1, Range{0, longest_ - 1, 1}));
    const T rest =
        X::float_mask_fill(filled(Shape{n_, longest_ - 1}, 0.0), same, Scalar(kImpossible));
    const T label[] = {filled(Shape{n_, 1}, kImpossible), rest};
    const Shape each = {n_, longest_, 1};
    const T pairs[] = {filled(each, kImpossible),
                       X::float_reshape(X::float_cat(std::span<const T>(label), 1), each)};
    const T row[] = {
        X::float_reshape(X::float_cat(std::span<const T>(pairs), 2), Shape{n_, 2 * longest_}),
        filled(Shape{n_, 1}, kImpossible)};
    return X::float_cat(std::span<const T>(row), 1);
  }
  Int index() const {
    return X::int_expand(X::int_reshape(labels_, Shape{1, n_, states_}),
                         Shape{steps_, n_, states_});
  }

  // What each state emits at a step: [N, 2 S + 1].
  T emitted(int64_t t) const {
    return X::float_reshape(X::float_slice(emitted_, 0, Range{t, t + 1, 1}), Shape{n_, states_});
  }
  static T columns(const T& x, int64_t from, int64_t count) {
    return X::float_slice(x, 1, Range{from, from + count, 1});
  }
  // Which sequences have a step t: [N, 1].
  Bool open(int64_t t) const { return X::int_greater_scalar(ends_, Scalar(t)); }

  std::vector<T> alphas() const {
    std::vector<T> out;
    const T front = filled(Shape{n_, 2}, kImpossible);
    for (int64_t t = 0; t < steps_; ++t) {
      if (t == 0) {  // the first blank or the first label
        const int64_t starts = std::min<int64_t>(2, states_);
        const T row[] = {columns(emitted(0), 0, starts),
                         filled(Shape{n_, states_ - starts}, kImpossible)};
        out.push_back(X::float_cat(std::span<const T>(row), 1));
        continue;
      }
      const T row[] = {front, out.back()};
      const T before = X::float_cat(std::span<const T>(row), 1);
      const T next = X::float_add(log_sum(out.back(), columns(before, 1, states_),
                                          X::float_add(columns(before, 0, states_), skip_)),
                                  emitted(t));
      // A sequence that has ended keeps its last state.
      out.push_back(X::float_mask_where(out.back(), open(t), next));
    }
    return out;
  }

  // 0 in the states in which a walk may end, else impossible.
  T last_beta() const {
    const Int state = counted(states_);
    const Int last = X::int_mul_scalar(sizes_, Scalar(int64_t{2}));
    const Int before = X::int_add_scalar(last, Scalar(int64_t{-1}));
    const Bool ends = X::bool_or(X::int_equal(state, last), X::int_equal(state, before));
    return X::float_mask_fill(filled(Shape{n_, states_}, kImpossible), ends, Scalar(0.0));
  }
  // beta at step t from that at step t + 1.
  T step_back(const T& beta, int64_t t) const {
    const T back = filled(Shape{n_, 2}, kImpossible);
    const T row[] = {X::float_add(beta, emitted(t + 1)), back};
    const T after = X::float_cat(std::span<const T>(row), 1);
    const T skips[] = {skip_, back};
    const T two = X::float_add(columns(after, 2, states_),
                               columns(X::float_cat(std::span<const T>(skips), 1), 2, states_));
    const T next = log_sum(columns(after, 0, states_), columns(after, 1, states_), two);
    return X::float_mask_where(beta, open(t + 1), next);
  }

  // The loss [N]; where no walk is possible, about -kImpossible.
  T loss_of(const std::vector<T>& alphas) const {
    // No step spells the empty target, and nothing else.
    const Bool none = X::int_equal_scalar(ends_, Scalar(int64_t{0}));
    const Bool empty = X::int_equal_scalar(sizes_, Scalar(int64_t{0}));
    const T silent = X::float_mask_fill(filled(Shape{n_, 1}, -kImpossible), empty, Scalar(0.0));
    if (alphas.empty()) return X::float_reshape(silent, Shape{n_});
    const T walks = X::float_add(alphas.back(), last_beta());
    const T found = X::float_neg(X::float_logsumexp(walks, Dims{1}, true));
    return X::float_reshape(X::float_mask_where(found, none, silent), Shape{n_});
  }

  Int labels_;
  T skip_, emitted_;
  int64_t steps_ = 0, n_ = 0, longest_ = 0, states_ = 1;
};

}  // namespace kiln::defaults
