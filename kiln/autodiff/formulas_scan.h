// Running results along a dim, scattered reductions, norms.
//
// Note [Linear scans]. The gradients of running products are linear recurrences, h[i] = a[i] h[i -
// 1]
// + b[i], and so are the gradients of those: written with float_linear_scan they divide by nothing,
// hold where elements are zero, and can be differentiated to any order.
#pragma once

#include "kiln/autodiff/formulas_reduce.h"

namespace kiln::autodiff {

template <class B>
struct FormulasScan : FormulasReduce<B> {
  using Base = AutodiffBase<B>;
  using Reduce = FormulasReduce<B>;
  using Base::attach;
  using Base::edges;
  using Base::in;
  using Base::save;
  using Base::save_constant;
  using Base::save_output;
  using Base::tracked;
  using Base::zeros_like;
  using Reduce::count;
  using Reduce::kept;
  using Reduce::shift_in;
  using Reduce::spread;
  using typename Base::A;
  using typename Base::Bool;
  using typename Base::F;
  using typename Base::Inner;
  using typename Base::Int;
  using typename Base::P;
  using typename Base::T;

  static Int float_argtopk(F x, int64_t k, int dim, bool largest) {
    return B::float_argtopk(in(x), k, dim, largest);
  }
  static Int float_argplace(F x, const Arg<Int>& places, int dim) {
    return B::float_argplace(in(x), places, dim);
  }
  static Int float_searchsorted(F sorted, F values, bool right) {
    return B::float_searchsorted(in(sorted), in(values), right);
  }
  static Int float_cumarg(F x, int dim, bool largest) {
    return B::float_cumarg(in(x), dim, largest);
  }

  // dy[i]/dx[j] is the product of all before j times that of those behind j up to i.
  static T float_cumprod(F x, int dim) {
    if (!tracked(x)) return {B::float_cumprod(in(x), dim)};
    auto to = edges(x);
    auto x_ = save(x);
    Inner out = B::float_cumprod(in(x), dim);
    auto formula = [x_ = std::move(x_), y_ = save_output(out), dim](P& p) {
      const T behind =
          A::float_linear_scan(shift_in(x_.get(p), dim, 0.0, true), p.take(), dim, true);
      p.give(0, A::float_mul(shift_in(y_.get(p), dim, 1.0, false), behind));
    };
    return attach("cumprod", std::move(out), std::move(to), std::move(formula));
  }

  static T float_linear_scan(F a, F b, int dim, bool reversed) {
    if (!tracked(a, b)) return {B::float_linear_scan(in(a), in(b), dim, reversed)};
    auto to = edges(a, b);
    auto a_ = save(a);
    Inner out = B::float_linear_scan(in(a), in(b), dim, reversed);
    auto formula = [a_ = std::move(a_), h_ = save_output(out), dim, reversed](P& p) {
      const T next = shift_in(a_.get(p), dim, 0.0, !reversed);
      const T g = A::float_linear_scan(next, p.take(), dim, !reversed);
      if (p.needs(0)) {
        p.give(0, A::float_mul(g, shift_in(h_.get(p), dim, 0.0, reversed)));
      }
      if (p.needs(1)) p.give(1, g);
    };
    return attach("linear_scan", std::move(out), std::move(to), std::move(formula));
  }

  // dy[i]/dx[j] = exp(x[j] - y[i]): the shares of steps exp(y[i] - y[i + 1]), none above 1.
  static T float_logcumsumexp(F x, int dim) {
    if (!tracked(x)) return {B::float_logcumsumexp(in(x), dim)};
    auto to = edges(x);
    auto x_ = save(x);
    Inner out = B::float_logcumsumexp(in(x), dim);
    auto formula = [x_ = std::move(x_), y_ = save_output(out), dim](P& p) {
      const double inf = std::numeric_limits<double>::infinity();
      const T x0 = x_.get(p);
      const T y0 = y_.get(p);
      // exp(-inf + inf), of nothing in nothing, would be NaN.
      const auto share = [&](const T& part, const T& whole) {
        return A::float_mask_fill(A::float_exp(A::float_sub(part, whole)),
                                  A::float_equal_scalar(part, Scalar(-inf)), Scalar(0.0));
      };
      const T steps = share(y0, shift_in(y0, dim, inf, true));
      const T later = A::float_linear_scan(steps, p.take(), dim, true);
      p.give(0, A::float_mul(share(x0, y0), later));
    };
    return attach("logcumsumexp", std::move(out), std::move(to), std::move(formula));
  }

  static T float_index_copy(F x, int dim, const Arg<Int>& index, F src) {
    if (!tracked(x, src)) return {B::float_index_copy(in(x), dim, index, in(src))};
    auto to = edges(x, src);
    auto formula = [from = Shape(B::shape(src->inner)), dim, i = save_constant(index.get())](P& p) {
      if (p.needs(0)) {
        p.give(0, A::float_index_copy(p.grad(), dim, i.get(p), zeros_like(p.grad(), from)));
      }
      if (p.needs(1)) p.give(1, A::float_index_select(p.grad(), dim, i.get(p)));
    };
    return attach("index_copy", B::float_index_copy(in(x), dim, index, in(src)), std::move(to),
                  std::move(formula));
  }

  static T float_scatter_reduce(F x, int dim, const Arg<Int>& index, F src,
                                ScatterReduction reduction) {
    if (!tracked(x, src)) {
      return {B::float_scatter_reduce(in(x), dim, index, in(src), reduction)};
    }
    auto to = edges(x, src);
    auto x_ = save(x);
    auto src_ = save(src);
    auto i_ = save_constant(index.get());
    Inner out = B::float_scatter_reduce(in(x), dim, index, in(src), reduction);
    auto formula = [x_ = std::move(x_), src_ = std::move(src_), i_ = std::move(i_),
                    y_ = save_output(out), dim, reduction](P& p) {
      const T x0 = x_.get(p);
      const T src0 = src_.get(p);
      const Int& i = i_.get(p);
      if (reduction == ScatterReduction::prod) {
        give_scattered_product(p, x0, dim, i, src0);
      } else {
        give_scattered_extremum(p, x0, dim, i, src0, y_.get(p).inner);
      }
    };
    return attach("scatter_reduce", std::move(out), std::move(to), std::move(formula));
  }

  static T float_nansum(F x, const Dims& dims, bool keepdim) {
    if (!tracked(x)) return {B::float_nansum(in(x), dims, keepdim)};
    auto formula = [from = Shape(B::shape(x->inner)), nan = B::float_is_nan(x->inner), dims](P& p) {
      p.give(0, A::float_mask_fill(spread(p.take(), from, dims), nan, Scalar(0.0)));
    };
    return attach("nansum", B::float_nansum(in(x), dims, keepdim), edges(x), std::move(formula));
  }

  // g sign(x) (|x| / norm)^(p - 1). Zeros get 0, as PyTorch has it: there the norm has a kink.
  static T float_norm(F x, double order, const Dims& dims, bool keepdim) {
    if (!tracked(x)) return {B::float_norm(in(x), order, dims, keepdim)};
    auto to = edges(x);
    auto x_ = save(x);
    Inner out = B::float_norm(in(x), order, dims, keepdim);
    auto formula = [x_ = std::move(x_), y_ = save_output(out), order, dims](P& p) {
      const T x0 = x_.get(p);
      const Shape from = B::shape(x0.inner);
      const T g = kept(p.take(), from, dims);
      const T y0 = kept(y_.get(p), from, dims);
      if (order == 0.0)
        return p.give(0, A::float_expand(A::float_mul_scalar(g, Scalar(0.0)), from));
      if (order == 1.0) return p.give(0, A::float_mul(g, A::float_sign(x0)));
      if (std::isinf(order)) {
        const Bool equal = B::float_equal(B::float_abs(x0.inner), y0.inner);
        const T ones = {B::bool_into_float(equal, B::dtype(x0.inner))};
        const T each = A::float_mul(A::float_sign(x0), ones);
        return p.give(0, A::float_mul(A::float_div(g, A::float_sum(ones, dims, true)), each));
      }
      const T whole = without_zeros(y0);
      if (order == 2.0) return p.give(0, A::float_mul(A::float_div(g, whole), x0));
      const T size = without_zeros(A::float_abs(x0));
      const T ratio = A::float_pow_scalar(A::float_div(size, whole), Scalar(order - 1.0));
      p.give(0, A::float_mul(A::float_mul(g, A::float_sign(x0)), ratio));
    };
    return attach("norm", std::move(out), std::move(to), std::move(formula));
  }

 private:
  // Ones in place of zeros.
  static T without_zeros(const T& x) {
    return A::float_mask_fill(x, A::float_equal_scalar(x, Scalar(0.0)), Scalar(1.0));
  }

  // Elements equal to the extremum share its gradient evenly.
  static void give_scattered_extremum(P& p, const T& x, int dim, const Int& index, const T& src,
                                      const Inner& out) {
    const DType dtype = B::dtype(x.inner);
    const T in_x = {B::bool_into_float(B::float_equal(x.inner, out), dtype)};
    const T in_src = {
        B::bool_into_float(B::float_equal(src.inner, B::float_gather(out, dim, index)), dtype)};
    const T shares = {B::float_scatter_add(in_x.inner, dim, index, in_src.inner)};
    const T g = A::float_div(p.take(), shares);
    if (p.needs(1)) p.give(1, A::float_mul(A::float_gather(g, dim, index), in_src));
    if (p.needs(0)) p.give(0, A::float_mul(g, in_x));
  }

  // Each element's gradient is the product of the others that meet it. All elements, of x and src,
  // are sorted by the place they go to; running products within each place, from both sides, then
  // leave out just the element itself, without dividing.
  static void give_scattered_product(P& p, const T& x, int dim, const Int& index, const T& src) {
    const Shape xs = B::shape(x.inner);
    const Shape is = B::shape(src.inner);
    const Device device = B::device(x.inner);
    const int64_t n = xs.numel();
    const int64_t total = n + is.numel();
    const Int at_x = B::int_arange(0, 1, n, DType::i64, device);
    const Int parts[2] = {at_x,
                          B::int_reshape(flat_places(at_x, xs, dim, index, is), Shape{is.numel()})};
    const Int places = B::int_cat(std::span<const Int>(parts), 0);
    const Int order = B::int_argsort(places, 0, false);
    const Int sorted = B::int_gather(places, 0, order);
    const T values[2] = {A::float_reshape(x, Shape{n}), A::float_reshape(src, Shape{is.numel()})};
    const T line = A::float_index_select(A::float_cat(std::span<const T>(values), 0), 0, order);
    const T others =
        A::float_mul(running_within(line, sorted, false), running_within(line, sorted, true));
    const T g = A::float_index_select(A::float_reshape(p.take(), Shape{n}), 0, sorted);
    const Int back = B::int_scatter(B::int_full(Shape{total}, Scalar(0), DType::i64, device), 0,
                                    order, B::int_arange(0, 1, total, DType::i64, device));
    const T grads = A::float_index_select(A::float_mul(g, others), 0, back);
    if (p.needs(0)) {
      p.give(0, A::float_reshape(A::float_slice(grads, 0, Range{0, n, 1}), xs));
    }
    if (p.needs(1)) {
      p.give(1, A::float_reshape(A::float_slice(grads, 0, Range{n, total, 1}), is));
    }
  }
  // Where in row-major order of `xs` the elements of the index point.
  static Int flat_places(const Int& at_x, const Shape& xs, int dim, const Int& index,
                         const Shape& is) {
    Int base = B::int_reshape(at_x, xs);
    int64_t step = 1;
    for (int d = 0; d < xs.rank(); ++d) {
      base = B::int_slice(base, d, Range{0, d == dim ? std::min<int64_t>(1, xs[d]) : is[d], 1});
      if (d > dim) step *= xs[d];
    }
    return B::int_add(B::int_mul_scalar(index, Scalar(step)), base);
  }
  // The product of the elements before each one (or, reversed, behind it) at the same place.
  static T running_within(const T& line, const Int& sorted, bool reversed) {
    const int64_t n = Shape(B::shape(line.inner))[0];
    const Bool change = B::int_not_equal(B::int_slice(sorted, 0, Range{1, n, 1}),
                                         B::int_slice(sorted, 0, Range{0, n - 1, 1}));
    const Bool edge = B::bool_full(Shape{1}, true, B::device(line.inner));
    const Bool parts[2] = {reversed ? change : edge, reversed ? edge : change};
    const Bool first = B::bool_cat(std::span<const Bool>(parts), 0);
    const T factors = A::float_mask_fill(shift_in(line, 0, 0.0, reversed), first, Scalar(0.0));
    const T starts = {B::bool_into_float(first, B::dtype(line.inner))};
    return A::float_linear_scan(factors, starts, 0, reversed);
  }
};

}  // namespace kiln::autodiff
