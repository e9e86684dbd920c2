// Recurrences.
#pragma once

#include "kiln/autodiff/formulas_images.h"
#include "kiln/backend/composed_recurrence.h"

namespace kiln::autodiff {

template <class B>
struct FormulasRecurrence : FormulasImages<B> {
  using Base = AutodiffBase<B>;
  using Base::edges;
  using Base::in;
  using Base::save;
  using Base::save_if;
  using Base::save_output;
  using Base::tracked;
  using typename Base::A;
  using typename Base::F;
  using typename Base::P;
  using typename Base::T;
  using Composed = defaults::ComposedRecurrence<A>;

  // All three results have a gradient: a gradient of a gradient goes through what was kept.
  static std::tuple<T, T, T> float_recurrence(F x, F h, const T* c, F w, const T* b,
                                              const RecurrenceOptions& options) {
    if (!tracked(x, h, c, w, b)) {
      auto [out, last, kept] = B::float_recurrence(in(x), in(h), in(c), in(w), in(b), options);
      return {T{std::move(out)}, T{std::move(last)}, T{std::move(kept)}};
    }
    RecurrenceOptions wanted = options;
    wanted.saves = true;
    auto to = edges(x, h, c, w, b);
    auto h_ = save(h);
    auto c_ = save_if(true, c);
    auto w_ = save(w);
    auto [out, last, kept] = B::float_recurrence(in(x), in(h), in(c), in(w), in(b), wanted);
    auto formula = [h_ = std::move(h_), c_ = std::move(c_), w_ = std::move(w_),
                    o_ = save_output(out, 0), k_ = save_output(kept, 2),
                    options = std::move(wanted)](P& p) {
      const std::optional<T> g_out = p.take(0), g_last = p.take(1), g_kept = p.take(2);
      const auto given = [](const std::optional<T>& g) { return g ? &*g : nullptr; };
      const T o0 = o_.get(p), h0 = h_.get(p), w0 = w_.get(p);
      const std::optional<T> c0 = c_ ? std::optional(c_->get(p)) : std::nullopt;
      auto [g_x, g_y, g_first] = A::float_recurrence_backward(
          given(g_out), given(g_last), given(g_kept), o0, k_.get(p), h0, given(c0), w0, options);
      if (p.needs(3)) {
        p.give(3, A::float_matmul(A::float_permute(g_y, Dims{1, 0}),
                                  Composed::states_before(o0, h0, options)));
      }
      if (p.needs(4)) p.give(4, A::float_sum(g_y, Dims{0}, false));
      for (const size_t state : {size_t{0}, size_t{1}}) {
        if (!p.needs(1 + state)) continue;
        const auto at = static_cast<int64_t>(state);
        p.give(1 + state,
               A::float_reshape(A::float_slice(g_first, 0, Range{at, at + 1, 1}), A::shape(h0)));
      }
      if (p.needs(0)) p.give(0, std::move(g_x));
    };
    auto node = make_handle<OpNode<B, 5, decltype(formula)>>("recurrence", 3u, std::move(to),
                                                             std::move(formula));
    T y{std::move(out), node, 0}, z{std::move(last), node, 1};
    return {std::move(y), std::move(z), T{std::move(kept), std::move(node), 2}};
  }

  static std::tuple<T, T, T> float_recurrence_backward(const T* g_out, const T* g_last,
                                                       const T* g_kept, F out, F kept, F h,
                                                       const T* c, F w,
                                                       const RecurrenceOptions& options) {
    if (tracked(g_out, g_last, g_kept, out, kept, h, c, w)) {
      return Composed::backward(g_out, g_last, g_kept, out, kept, h, c, w, options);
    }
    auto [g_x, g_y, g_first] = B::float_recurrence_backward(
        in(g_out), in(g_last), in(g_kept), in(out), in(kept), in(h), in(c), in(w), options);
    return {T{std::move(g_x)}, T{std::move(g_y)}, T{std::move(g_first)}};
  }

  static std::pair<T, T> float_recurrent_cell(F x, F h, const T* c, F w_ih, F w_hh, const T* b_ih,
                                              const T* b_hh, const RecurrenceOptions& options) {
    if (tracked(x, h, c, w_ih, w_hh, b_ih, b_hh)) {
      return Composed::cell(x, h, c, w_ih, w_hh, b_ih, b_hh, options);
    }
    auto [hidden, cell] = B::float_recurrent_cell(in(x), in(h), in(c), in(w_ih), in(w_hh), in(b_ih),
                                                  in(b_hh), options);
    return {T{std::move(hidden)}, T{std::move(cell)}};
  }
};

}  // namespace kiln::autodiff
