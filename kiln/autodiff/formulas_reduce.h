// Reductions and products of matrices.
#pragma once

#include "kiln/autodiff/formulas_functions.h"
#include "kiln/backend/activated.h"

namespace kiln::autodiff {

template <class B>
struct FormulasReduce : FormulasFunctions<B> {
  using Base = AutodiffBase<B>;
  using Base::attach;
  using Base::edges;
  using Base::has_node;
  using Base::in;
  using Base::save;
  using Base::save_constant;
  using Base::save_if;
  using Base::save_output;
  using Base::sum_to;
  using Base::tracked;
  using Base::zeros_like;
  using typename Base::A;
  using typename Base::Bool;
  using typename Base::F;
  using typename Base::Inner;
  using typename Base::Int;
  using typename Base::P;
  using typename Base::Quantized;
  using typename Base::T;

  static T float_sum(F x, const Dims& dims, bool keepdim) {
    if (!tracked(x)) return {B::float_sum(in(x), dims, keepdim)};
    auto formula = [from = Shape(B::shape(x->inner)), dims](P& p) {
      p.give(0, spread(p.take(), from, dims));
    };
    return attach("sum", B::float_sum(in(x), dims, keepdim), edges(x), std::move(formula));
  }
  static T float_mean(F x, const Dims& dims, bool keepdim) {
    if (!tracked(x)) return {B::float_mean(in(x), dims, keepdim)};
    auto formula = [from = Shape(B::shape(x->inner)), dims](P& p) {
      T g = A::float_div_scalar(p.take(), Scalar(static_cast<double>(count(from, dims))));
      p.give(0, spread(std::move(g), from, dims));
    };
    return attach("mean", B::float_mean(in(x), dims, keepdim), edges(x), std::move(formula));
  }
  // Each element's gradient is the product of the others, found without dividing (an element may be
  // zero).
  static T float_prod(F x, const Dims& dims, bool keepdim) {
    if (!tracked(x)) return {B::float_prod(in(x), dims, keepdim)};
    auto formula = [x_ = save(x), dims](P& p) {
      const T x0 = x_.get(p);
      const Shape from = B::shape(x0.inner);
      p.give(0, A::float_mul(kept(p.take(), from, dims), product_of_others(x0, dims)));
    };
    return attach("prod", B::float_prod(in(x), dims, keepdim), edges(x), std::move(formula));
  }
  static T float_amax(F x, const Dims& dims, bool keepdim) {
    if (!tracked(x)) return {B::float_amax(in(x), dims, keepdim)};
    auto to = edges(x);
    auto x_ = save(x);
    Inner out = B::float_amax(in(x), dims, keepdim);
    auto formula = extremum_formula(std::move(x_), out, dims);
    return attach("amax", std::move(out), std::move(to), std::move(formula));
  }
  static T float_amin(F x, const Dims& dims, bool keepdim) {
    if (!tracked(x)) return {B::float_amin(in(x), dims, keepdim)};
    auto to = edges(x);
    auto x_ = save(x);
    Inner out = B::float_amin(in(x), dims, keepdim);
    auto formula = extremum_formula(std::move(x_), out, dims);
    return attach("amin", std::move(out), std::move(to), std::move(formula));
  }
  static T float_var(F x, const Dims& dims, double correction, bool keepdim) {
    if (!tracked(x)) return {B::float_var(in(x), dims, correction, keepdim)};
    auto formula = [x_ = save(x), dims, correction](P& p) {
      const T x0 = x_.get(p);
      const Shape from = B::shape(x0.inner);
      const double n = static_cast<double>(count(from, dims)) - correction;
      T deviation = A::float_sub(x0, A::float_mean(x0, dims, true));
      T g = A::float_mul_scalar(kept(p.take(), from, dims), Scalar(2.0 / std::max(0.0, n)));
      p.give(0, A::float_mul(std::move(g), std::move(deviation)));
    };
    return attach("var", B::float_var(in(x), dims, correction, keepdim), edges(x),
                  std::move(formula));
  }
  static Int float_argmax(F x, int dim, bool keepdim) {
    return B::float_argmax(in(x), dim, keepdim);
  }
  static Int float_argmin(F x, int dim, bool keepdim) {
    return B::float_argmin(in(x), dim, keepdim);
  }
  static T float_cumsum(F x, int dim) {
    if (!tracked(x)) return {B::float_cumsum(in(x), dim)};
    auto formula = [dim](P& p) {
      const Dims d{dim};
      p.give(0, A::float_flip(A::float_cumsum(A::float_flip(p.take(), d), dim), d));
    };
    return attach("cumsum", B::float_cumsum(in(x), dim), edges(x), std::move(formula));
  }
  static std::pair<T, Int> float_sort(F x, int dim, bool descending) {
    const bool record = tracked(x);
    auto to = edges(x);
    auto [out, index] = B::float_sort(in(x), dim, descending);
    if (!record) return {T{std::move(out)}, std::move(index)};
    auto formula = [dim, i = save_constant(index)](P& p) {
      const T zeros = zeros_like(p.grad(), B::shape(p.grad().inner));
      p.give(0, A::float_scatter(zeros, dim, i.get(p), p.take()));
    };
    return {attach("sort", std::move(out), std::move(to), std::move(formula)), std::move(index)};
  }
  static T float_logsumexp(F x, const Dims& dims, bool keepdim) {
    if (!tracked(x)) return {B::float_logsumexp(in(x), dims, keepdim)};
    auto to = edges(x);
    auto x_ = save(x);
    Inner out = B::float_logsumexp(in(x), dims, keepdim);
    auto formula = [x_ = std::move(x_), y_ = save_output(out), dims](P& p) {
      const T x0 = x_.get(p);
      const Shape from = B::shape(x0.inner);
      T shares = A::float_exp(A::float_sub(x0, kept(y_.get(p), from, dims)));
      // A row of -inf alone has no shares: its exp(-inf + inf) would be NaN.
      shares = A::float_mask_fill(
          shares, A::float_equal_scalar(x0, Scalar(-std::numeric_limits<double>::infinity())),
          Scalar(0.0));
      p.give(0, A::float_mul(kept(p.take(), from, dims), std::move(shares)));
    };
    return attach("logsumexp", std::move(out), std::move(to), std::move(formula));
  }

  static T float_matmul(F x, F y) {
    if (!tracked(x, y)) return {B::float_matmul(in(x), in(y))};
    auto formula = [xs = Shape(B::shape(x->inner)), ys = Shape(B::shape(y->inner)),
                    x_ = save_if(has_node(y), x), y_ = save_if(has_node(x), y)](P& p) {
      if (p.needs(0)) p.give(0, sum_to(A::float_matmul(p.grad(), transposed(y_->get(p))), xs));
      if (p.needs(1)) p.give(1, sum_to(A::float_matmul(transposed(x_->get(p)), p.grad()), ys));
    };
    auto to = edges(x, y);
    return attach("matmul", B::float_matmul(in(x), in(y)), std::move(to), std::move(formula));
  }
  static T float_linear(F x, F weight, const T* bias) {
    if (!tracked(x, weight, bias)) {
      return {B::float_linear(in(x), in(weight), in(bias))};
    }
    auto formula = [linear = LinearOperands(x, weight)](P& p) { linear.give(p, p.take()); };
    auto to = edges(x, weight, bias);
    return attach("linear", B::float_linear(in(x), in(weight), in(bias)), std::move(to),
                  std::move(formula));
  }
  // Fused where the gradient can do without what the activation was given.
  static T float_linear_activation(F x, F weight, const T* bias, const T* residual,
                                   Activation activation) {
    if (!tracked(x, weight, bias, residual)) {
      return {B::float_linear_activation(in(x), in(weight), in(bias), in(residual), activation)};
    }
    if (activation == Activation::none) {
      auto formula = [linear = LinearOperands(x, weight)](P& p) {
        const T g = p.take();
        if (p.needs(3)) p.give(3, g);
        linear.give(p, g);
      };
      auto to = edges(x, weight, bias, residual);
      return attach(
          "linear",
          B::float_linear_activation(in(x), in(weight), in(bias), in(residual), activation),
          std::move(to), std::move(formula));
    }
    if (residual != nullptr) {
      return A::float_add(A::float_linear_activation(x, weight, bias, nullptr, activation),
                          *residual);
    }
    if (activation != Activation::relu && activation != Activation::tanh &&
        activation != Activation::sigmoid) {
      return activated<A>(A::float_linear(x, weight, bias), activation);
    }
    LinearOperands linear(x, weight);
    auto to = edges(x, weight, bias);
    Inner out = B::float_linear_activation(in(x), in(weight), in(bias), nullptr, activation);
    auto formula = [linear = std::move(linear), y_ = save_output(out), activation](P& p) {
      const T y = y_.get(p);
      T g = p.take();
      linear.give(p, activation == Activation::relu   ? A::float_relu_backward(std::move(g), y)
                     : activation == Activation::tanh ? A::float_tanh_backward(std::move(g), y)
                                                      : A::float_sigmoid_backward(std::move(g), y));
    };
    return attach("linear", std::move(out), std::move(to), std::move(formula));
  }
  // The weight is not trained; it is kept quantized until the gradient needs it. Where x is
  // quantized too, its rounding counts as the identity.
  static T float_linear_quantized(F x, const Arg<Quantized>& weight, const T* bias) {
    if (!tracked(x, bias)) return {B::float_linear_quantized(in(x), weight, in(bias))};
    auto formula = [xs = Shape(B::shape(x->inner)), w_ = Quantized(weight.get()),
                    dtype = B::dtype(x->inner)](P& p) {
      const T g = p.take();
      const Shape gs = B::shape(g.inner);
      int64_t rows = 1;
      for (int i = 0; i + 1 < xs.rank(); ++i) rows *= xs[i];
      const T g2 = A::float_reshape(g, Shape{rows, gs[gs.rank() - 1]});
      if (p.needs(0)) {
        const T w = {B::q_dequantize(w_, dtype)};
        p.give(0, A::float_reshape(A::float_matmul(g2, w), xs));
      }
      if (p.needs(1)) p.give(1, A::float_sum(g2, Dims{0}, false));
    };
    auto to = edges(x, bias);
    return attach("linear", B::float_linear_quantized(in(x), weight, in(bias)), std::move(to),
                  std::move(formula));
  }

 protected:
  // What the gradients of a linear layer need of its operands.
  struct LinearOperands {
    LinearOperands(const F& x, const F& weight)
        : xs(B::shape(x->inner)),
          out(B::shape(weight->inner)[0]),
          width(B::shape(weight->inner)[1]),
          x_(save_if(has_node(weight), x)),
          w_(save_if(has_node(x), weight)) {}

    // From g, the gradient of x weight^T + bias, to edges 0 to 2.
    void give(P& p, T g) const {
      int64_t rows = 1;
      for (int i = 0; i + 1 < xs.rank(); ++i) rows *= xs[i];
      const T g2 = A::float_reshape(std::move(g), Shape{rows, out});
      if (p.needs(0)) p.give(0, A::float_reshape(A::float_matmul(g2, w_->get(p)), xs));
      if (p.needs(1)) {
        const T x2 = A::float_reshape(x_->get(p), Shape{rows, width});
        p.give(1, A::float_matmul(transposed(g2), x2));
      }
      if (p.needs(2)) p.give(2, A::float_sum(g2, Dims{0}, false));
    }

    Shape xs;
    int64_t out, width;
    std::optional<SavedInput<B>> x_, w_;
  };

  static int64_t count(const Shape& shape, const Dims& dims) {
    int64_t n = 1;
    for (int64_t d : dims) n *= shape[static_cast<int>(d)];
    return n;
  }
  // The result of a reduction of `shape` over `dims` (kept or not) with the dims kept: it
  // broadcasts with what was reduced.
  static T kept(T g, const Shape& shape, const Dims& dims) {
    return A::float_reshape(std::move(g), reduced_shape(shape, dims, true));
  }
  // The same expanded back to `shape`.
  static T spread(T g, const Shape& shape, const Dims& dims) {
    return A::float_expand(kept(std::move(g), shape, dims), shape);
  }
  static T transposed(const T& x) {
    const int rank = Shape(B::shape(x.inner)).rank();
    Dims dims = all_dims(rank);
    std::swap(dims[rank - 1], dims[rank - 2]);
    return A::float_permute(x, dims);
  }

  // Elements equal to the extremum share its gradient evenly.
  static auto extremum_formula(SavedInput<B> x_, const Inner& out, const Dims& dims) {
    return [x_ = std::move(x_), y_ = save_output(out), dims](P& p) {
      const T x0 = x_.get(p);
      const Shape from = B::shape(x0.inner);
      const Bool equal = A::float_equal(x0, kept(y_.get(p), from, dims));
      const T ones = {B::bool_into_float(equal, B::dtype(x0.inner))};
      T g = A::float_div(kept(p.take(), from, dims), A::float_sum(ones, dims, true));
      p.give(0, A::float_mul(std::move(g), ones));
    };
  }

  // Moves x by one along dim towards higher indices (or, reversed, lower ones), with `value` coming
  // in.
  static T shift_in(const T& x, int dim, double value, bool reversed) {
    Shape shape = B::shape(x.inner);
    const int64_t n = shape[dim];
    shape[dim] = std::min<int64_t>(1, n);
    const T entering = {B::float_full(shape, Scalar(value), B::dtype(x.inner), B::device(x.inner))};
    const T rest =
        A::float_slice(x, dim, reversed ? Range{shape[dim], n, 1} : Range{0, n - shape[dim], 1});
    const T parts[2] = {reversed ? rest : entering, reversed ? entering : rest};
    return A::float_cat(std::span<const T>(parts), dim);
  }
  // The product of all other elements along the reduced dims: exclusive products from both sides.
  static T product_of_others(const T& x, const Dims& dims) {
    const Shape shape = B::shape(x.inner);
    Dims order;  // kept dims first, reduced ones last
    for (int i = 0; i < shape.rank(); ++i) {
      if (!dims.contains(i)) order.push_back(i);
    }
    const int kept = order.rank();
    for (int64_t d : dims) order.push_back(d);
    Shape flat;
    Shape permuted;
    for (int i = 0; i < order.rank(); ++i) {
      permuted.push_back(shape[static_cast<int>(order[i])]);
      if (i < kept) flat.push_back(permuted.back());
    }
    flat.push_back(count(shape, dims));
    const T line = A::float_reshape(A::float_permute(x, order), flat);
    const Dims last{kept};
    const T before = A::float_cumprod(shift_in(line, kept, 1.0, false), kept);
    const T after = A::float_flip(
        A::float_cumprod(A::float_flip(shift_in(line, kept, 1.0, true), last), kept), last);
    const T others = A::float_reshape(A::float_mul(before, after), permuted);
    Dims back = Shape::filled(order.rank(), 0);
    for (int i = 0; i < order.rank(); ++i) back[static_cast<int>(order[i])] = i;
    return A::float_permute(others, back);
  }
};

}  // namespace kiln::autodiff
