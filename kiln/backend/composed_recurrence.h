// A recurrence composed from other ops, step by step. It serves two: backends without a recurrence
// of their own, and gradients of gradients, where Autodiff differentiates these very ops.
#pragma once

#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "kiln/backend/defaults_support.h"
#include "kiln/backend/recurrence_options.h"

namespace kiln::defaults {

template <class X>
class ComposedRecurrence {
 public:
  using T = FloatOf<X>;

  // As float_recurrence in ops.def.
  static std::tuple<T, T, T> forward(const T& x, const T& h, const T* c, const T& w, const T* b,
                                     const RecurrenceOptions& options) {
    const ComposedRecurrence r(options, w);
    return r.run(x, h, c, b);
  }

  // As float_recurrent_cell: its gradient is that of the two rows.
  static std::pair<T, T> cell(const T& x, const T& h, const T* c, const T& w_ih, const T& w_hh,
                              const T* b_ih, const T* b_hh, const RecurrenceOptions& options) {
    const Shape state = X::shape(h);
    const RecurrenceOptions one{.cell = options.cell, .saves = false, .batch_sizes = {state[0]}};
    const T last =
        std::get<1>(X::float_recurrence(X::float_linear(x, w_ih, b_ih), h, c, w_hh, b_hh, one));
    const auto at = [&](int64_t s) { return T(X::float_reshape(rows(last, s, 1), state)); };
    return {at(0), c != nullptr ? at(1) : T(X::float_empty(Shape{0}, X::dtype(h), X::device(h)))};
  }

  // As float_recurrence_backward.
  static std::tuple<T, T, T> backward(const T* g_out, const T* g_last, const T* g_kept,
                                      const T& out, const T& kept, const T& h, const T* c,
                                      const T& w, const RecurrenceOptions& options) {
    const ComposedRecurrence r(options, w);
    return r.run_backward(g_out, g_last, g_kept, out, kept, h, c);
  }

  // The hidden state before each row: of the step that was computed before, or the first one.
  static T states_before(const T& out, const T& h, const RecurrenceOptions& options) {
    struct Piece {
      const T* from;
      int64_t begin, count;
    };
    std::vector<Piece> pieces;  // by growing time; what lies together is one
    const auto add = [&](const T& from, int64_t begin, int64_t count) {
      if (count <= 0) return;
      if (!pieces.empty() && pieces.back().from == &from &&
          pieces.back().begin + pieces.back().count == begin) {
        pieces.back().count += count;
      } else {
        pieces.push_back({&from, begin, count});
      }
    };
    const std::vector<int64_t>& sizes = options.batch_sizes;
    int64_t begin = 0;
    for (size_t t = 0; t < sizes.size(); begin += sizes[t++]) {
      int64_t known = 0;
      if (options.reverse && t + 1 < sizes.size()) {
        known = sizes[t + 1];
        add(out, begin + sizes[t], known);
      } else if (!options.reverse && t > 0) {
        known = sizes[t];
        add(out, begin - sizes[t - 1], known);
      }
      add(h, known, sizes[t] - known);
    }
    if (pieces.empty()) return rows(out, 0, 0);
    Parts parts;
    for (const Piece& p : pieces) parts.push_back(rows(*p.from, p.begin, p.count));
    return joined(parts, 0);
  }

 private:
  // The parts of a step's gates or of what is kept of it, each [n, H].
  using Parts = std::vector<T>;

  ComposedRecurrence(const RecurrenceOptions& options, const T& w)
      : options_(options), dtype_(X::dtype(w)), w_(widen<X>(w)), size_(X::shape(w)[1]) {}

  static T rows(const T& x, int64_t begin, int64_t count) {
    return X::float_slice(x, 0, Range{begin, begin + count, 1});
  }
  static T joined(const Parts& parts, int dim) {
    return parts.size() == 1 ? parts[0] : T(X::float_cat(std::span<const T>(parts), dim));
  }
  // Part i of [n, parts H].
  T part(const T& x, int64_t i) const {
    return X::float_slice(x, 1, Range{i * size_, (i + 1) * size_, 1});
  }
  // `first` in place of the first rows of x.
  static T replaced(const T& x, const T& first) {
    const int64_t n = X::shape(first)[0], all = X::shape(x)[0];
    return n == all ? first : joined({first, rows(x, n, all - n)}, 0);
  }
  static T added(const T& x, const T& y) { return X::float_add(x, y); }
  static T times(const T& x, const T& y) { return X::float_mul(x, y); }
  static T less(const T& x, const T& y) { return X::float_sub(x, y); }

  std::tuple<T, T, T> run(const T& x0, const T& h0, const T* c0, const T* b0) const {
    const T x = widen<X>(x0);
    const std::optional<T> b = b0 == nullptr ? std::nullopt : std::optional<T>(widen<X>(*b0));
    T h = widen<X>(h0);
    std::optional<T> c = c0 == nullptr ? std::nullopt : std::optional<T>(widen<X>(*c0));
    const DType wide = X::dtype(x);
    const auto device = X::device(x);
    const std::vector<RecurrenceStep> steps = options_.steps();
    Parts out, kept;
    for (const RecurrenceStep& step : steps) {
      const T before = rows(h, 0, step.rows);
      const T y = X::float_linear(before, w_, b ? &*b : nullptr);
      const T in = rows(x, step.begin, step.rows);
      Parts keep;
      std::optional<T> next_c;
      const T next =
          one_step(in, y, before, c ? std::optional<T>(rows(*c, 0, step.rows)) : c, &next_c, &keep);
      if (options_.saves && !keep.empty()) kept.push_back(joined(keep, 1));
      out.push_back(next);
      h = replaced(h, next);
      if (next_c) c = replaced(*c, *next_c);
    }
    const Shape state = X::shape(h);
    const Shape one{1, state[0], state[1]};
    T last = c ? joined({X::float_reshape(h, one), X::float_reshape(*c, one)}, 0)
               : T(X::float_reshape(h, one));
    const Shape shape{options_.rows(), options_.kept(), size_};
    T all = out.empty() ? T(X::float_empty(Shape{0, size_}, wide, device)) : in_order(out);
    T saved = !options_.saves ? T(X::float_empty(Shape{0}, wide, device))
              : kept.empty()  ? T(X::float_empty(shape, wide, device))
                              : T(X::float_reshape(in_order(kept), shape));
    return {narrow<X>(std::move(all), dtype_), narrow<X>(std::move(last), dtype_),
            std::move(saved)};
  }

  // What the steps gave, one after another, by growing time.
  T in_order(const Parts& parts) const {
    return joined(options_.reverse ? Parts(parts.rbegin(), parts.rend()) : parts, 0);
  }

  // The next hidden state; writes the next cell state, and what is to be kept.
  T one_step(const T& x, const T& y, const T& h, const std::optional<T>& c,
             std::optional<T>* next_c, Parts* keep) const {
    switch (options_.cell) {
      case RecurrenceCell::tanh:
        return X::float_tanh(added(x, y));
      case RecurrenceCell::relu:
        return X::float_relu(added(x, y));
      case RecurrenceCell::gru: {
        const T r = X::float_sigmoid(added(part(x, 0), part(y, 0)));
        const T z = X::float_sigmoid(added(part(x, 1), part(y, 1)));
        const T n = X::float_tanh(added(part(x, 2), times(r, part(y, 2))));
        *keep = {r, z, n, part(y, 2)};
        return added(n, times(z, less(h, n)));
      }
      case RecurrenceCell::lstm:
        break;
    }
    const T sum = added(x, y);
    const T i = X::float_sigmoid(part(sum, 0)), f = X::float_sigmoid(part(sum, 1));
    const T g = X::float_tanh(part(sum, 2)), o = X::float_sigmoid(part(sum, 3));
    *next_c = added(times(f, *c), times(i, g));
    *keep = {i, f, g, o, **next_c};
    return times(o, X::float_tanh(**next_c));
  }

  // The state before each row of step `at`: of the step computed before, or the first one.
  static T before(const std::vector<RecurrenceStep>& steps, size_t at, const T& all,
                  const T& first) {
    const int64_t n = steps[at].rows;
    if (at == 0) return rows(first, 0, n);
    const RecurrenceStep& previous = steps[at - 1];
    const int64_t known = std::min(previous.rows, n);
    const T state = rows(all, previous.begin, known);
    return known == n ? state : joined({state, rows(first, known, n - known)}, 0);
  }

  std::tuple<T, T, T> run_backward(const T* g_out, const T* g_last, const T* g_kept, const T& out0,
                                   const T& kept0, const T& h0, const T* c0) const {
    const T out = widen<X>(out0), kept = widen<X>(kept0), h = widen<X>(h0);
    const DType wide = X::dtype(h);
    const auto device = X::device(h);
    const Shape state = X::shape(h);
    const int64_t keeps = options_.kept();
    const Shape flat{options_.rows(), keeps * size_};
    const auto zeros = [&](const Shape& shape) {
      return T(X::float_full(shape, Scalar(0.0), wide, device));
    };
    const auto last = [&](int64_t s) {
      if (g_last == nullptr) return zeros(state);
      return T(X::float_reshape(rows(widen<X>(*g_last), s, 1), state));
    };
    T dh = last(0);
    std::optional<T> dc, cells, c;
    std::optional<T> saved, g_saved;
    if (keeps > 0) saved = X::float_reshape(kept, flat);
    if (keeps > 0 && g_kept != nullptr) g_saved = X::float_reshape(widen<X>(*g_kept), flat);
    if (c0 != nullptr) {
      dc = last(1);
      c = widen<X>(*c0);
      cells = part(*saved, 4);
    }
    const std::vector<RecurrenceStep> steps = options_.steps();
    Parts g_x, g_y;
    for (size_t at = steps.size(); at-- > 0;) {
      const RecurrenceStep& step = steps[at];
      T d = rows(dh, 0, step.rows);
      if (g_out != nullptr) d = added(d, rows(widen<X>(*g_out), step.begin, step.rows));
      const auto of = [&](const std::optional<T>& all) {
        Parts parts;
        if (!all) return parts;
        const T here = rows(*all, step.begin, step.rows);
        for (int64_t i = 0; i < keeps; ++i) parts.push_back(part(here, i));
        return parts;
      };
      Step s{std::move(d), of(saved), of(g_saved)};
      if (c0 != nullptr) {
        s.dc = rows(*dc, 0, step.rows);
        s.c = before(steps, at, *cells, *c);
      } else if (options_.cell == RecurrenceCell::gru) {
        s.h = before(steps, at, out, h);
      } else {
        s.out = rows(out, step.begin, step.rows);
      }
      backward_step(s);
      T next = X::float_matmul(s.g_y, w_);
      if (s.to_h) next = added(next, *s.to_h);
      dh = replaced(dh, next);
      if (c0 != nullptr) dc = replaced(*dc, *s.dc);
      g_x.push_back(s.g_x);
      g_y.push_back(s.g_y);
    }
    const auto all = [&](const Parts& parts) {
      if (parts.empty()) {
        return T(X::float_empty(Shape{0, options_.gates() * size_}, dtype_, device));
      }
      return narrow<X>(in_order(Parts(parts.rbegin(), parts.rend())), dtype_);
    };
    const Shape one{1, state[0], state[1]};
    T first = X::float_reshape(dh, one);
    if (dc) first = joined({first, X::float_reshape(*dc, one)}, 0);
    return {all(g_x), all(g_y), narrow<X>(std::move(first), dtype_)};
  }

  struct Step {
    T d;                 // the gradient of the hidden state
    Parts kept, g_kept;  // what is kept, and its own gradient, if there is one
    std::optional<T> dc = std::nullopt, c = std::nullopt, h = std::nullopt, out = std::nullopt;
    T g_x = d, g_y = d;                    // the gradients of the two parts of the gates
    std::optional<T> to_h = std::nullopt;  // what of d goes to the state before
  };

  static T with_own(T g, const Step& s, size_t i) {
    return s.g_kept.empty() ? g : added(g, s.g_kept[i]);
  }

  void backward_step(Step& s) const {
    switch (options_.cell) {
      case RecurrenceCell::tanh:
        s.g_x = s.g_y = X::float_tanh_backward(s.d, *s.out);
        return;
      case RecurrenceCell::relu:
        s.g_x = s.g_y = X::float_relu_backward(s.d, *s.out);
        return;
      case RecurrenceCell::gru:
        return backward_of_gru(s);
      case RecurrenceCell::lstm:
        return backward_of_lstm(s);
    }
  }

  void backward_of_gru(Step& s) const {
    const T &r = s.kept[0], &z = s.kept[1], &n = s.kept[2], &y = s.kept[3];
    const T to_h = times(s.d, z);
    const T dn = X::float_tanh_backward(with_own(less(s.d, to_h), s, 2), n);
    const T dz = X::float_sigmoid_backward(with_own(times(s.d, less(*s.h, n)), s, 1), z);
    const T dr = X::float_sigmoid_backward(with_own(times(dn, y), s, 0), r);
    s.g_x = joined({dr, dz, dn}, 1);
    s.g_y = joined({dr, dz, with_own(times(dn, r), s, 3)}, 1);
    s.to_h = to_h;
  }

  void backward_of_lstm(Step& s) const {
    const T &i = s.kept[0], &f = s.kept[1], &g = s.kept[2], &o = s.kept[3];
    const T squashed = X::float_tanh(s.kept[4]);
    const T d_o = X::float_sigmoid_backward(with_own(times(s.d, squashed), s, 3), o);
    const T dc = with_own(added(*s.dc, X::float_tanh_backward(times(s.d, o), squashed)), s, 4);
    const T d_i = X::float_sigmoid_backward(with_own(times(dc, g), s, 0), i);
    const T d_f = X::float_sigmoid_backward(with_own(times(dc, *s.c), s, 1), f);
    const T d_g = X::float_tanh_backward(with_own(times(dc, i), s, 2), g);
    s.g_x = s.g_y = joined({d_i, d_f, d_g, d_o}, 1);
    s.dc = times(dc, f);
  }

  const RecurrenceOptions& options_;
  DType dtype_;
  T w_;
  int64_t size_;
};

}  // namespace kiln::defaults
