// Activations, convolution, pooling, normalization, losses, dropout, optimizer steps.
//
// Note [Fused gradients]. A backend has fused ops for these gradients (float_gelu_backward, ...).
// They are ops of Autodiff too: on untracked operands they call the fused op; on tracked ones (a
// recorded pass) they are composed from ops that have gradients of their own, so that any order of
// derivative is right without further formulas. The compositions are those that a backend without
// the fused op computes (defaults_nn.h), on tensors with history. Statistics that a fused op takes
// (means, variances, logsumexp) are functions of its input: a recorded pass computes them again.
#pragma once

#include "kiln/autodiff/formulas_scan.h"
#include "kiln/backend/composed_attention.h"
#include "kiln/backend/defaults_nn.h"
#include "kiln/backend/defaults_window.h"

namespace kiln::autodiff {

template <class B>
struct FormulasNeural : FormulasScan<B> {
  using Base = AutodiffBase<B>;
  using Reduce = FormulasReduce<B>;
  using Base::attach;
  using Base::edges;
  using Base::has_node;
  using Base::in;
  using Base::recipe;
  using Base::save;
  using Base::save_constant;
  using Base::save_if;
  using Base::save_output;
  using Base::tracked;
  using Reduce::count;
  using Reduce::spread;
  using typename Base::A;
  using typename Base::F;
  using typename Base::Inner;
  using typename Base::Int;
  using typename Base::P;
  using typename Base::T;
  using Defaults = defaults::NnDefaults<A>;
  using Norms = defaults::NormDefaults<A>;

  // ---- Activations

  KILN_FROM_OUTPUT(float_relu, "relu", A::float_relu_backward(std::move(g), y0))
  KILN_FROM_OUTPUT(float_sigmoid, "sigmoid", A::float_sigmoid_backward(std::move(g), y0))
  KILN_FROM_INPUT(float_silu, "silu", A::float_silu_backward(std::move(g), x0))

  static T float_relu_backward(F g, F y) {
    if (!tracked(g, y)) return {B::float_relu_backward(in(g), in(y))};
    return Defaults::template float_relu_backward<A>(g, y);
  }
  static T float_sigmoid_backward(F g, F y) {
    if (!tracked(g, y)) return {B::float_sigmoid_backward(in(g), in(y))};
    return Defaults::template float_sigmoid_backward<A>(g, y);
  }
  static T float_tanh_backward(F g, F y) {
    if (!tracked(g, y)) return {B::float_tanh_backward(in(g), in(y))};
    return Defaults::template float_tanh_backward<A>(g, y);
  }
  static T float_silu_backward(F g, F x) {
    if (!tracked(g, x)) return {B::float_silu_backward(in(g), in(x))};
    return Defaults::template float_silu_backward<A>(g, x);
  }
  static T float_gelu(F x, bool approximate) {
    if (!tracked(x)) return {B::float_gelu(in(x), approximate)};
    auto formula = [x_ = save(x), approximate](P& p) {
      p.give(0, A::float_gelu_backward(p.take(), x_.get(p), approximate));
    };
    auto to = edges(x);
    auto again = recipe(x, KILN_AGAIN(B::float_gelu(a, o.a.to_bool())), {.a = approximate});
    return attach("gelu", B::float_gelu(in(x), approximate), std::move(to), std::move(formula),
                  std::move(again));
  }
  static T float_gelu_backward(F g, F x, bool approximate) {
    if (!tracked(g, x)) return {B::float_gelu_backward(in(g), in(x), approximate)};
    return Defaults::template float_gelu_backward<A>(g, x, approximate);
  }

  static T float_softmax(F x, int dim) {
    if (!tracked(x)) return {B::float_softmax(in(x), dim)};
    auto to = edges(x);
    Inner out = B::float_softmax(in(x), dim);
    auto formula = [y_ = save_output(out), dim](P& p) {
      p.give(0, A::float_softmax_backward(p.take(), y_.get(p), dim));
    };
    return attach("softmax", std::move(out), std::move(to), std::move(formula));
  }
  static T float_softmax_backward(F g, F y, int dim) {
    if (!tracked(g, y)) return {B::float_softmax_backward(in(g), in(y), dim)};
    return Defaults::template float_softmax_backward<A>(g, y, dim);
  }
  static T float_log_softmax(F x, int dim) {
    if (!tracked(x)) return {B::float_log_softmax(in(x), dim)};
    auto to = edges(x);
    Inner out = B::float_log_softmax(in(x), dim);
    auto formula = [y_ = save_output(out), dim](P& p) {
      p.give(0, A::float_log_softmax_backward(p.take(), y_.get(p), dim));
    };
    return attach("log_softmax", std::move(out), std::move(to), std::move(formula));
  }
  static T float_log_softmax_backward(F g, F y, int dim) {
    if (!tracked(g, y)) return {B::float_log_softmax_backward(in(g), in(y), dim)};
    return Defaults::template float_log_softmax_backward<A>(g, y, dim);
  }

  // ---- Convolution

  static T float_conv2d(F x, F weight, const T* bias, const ConvOptions& options) {
    if (!tracked(x, weight, bias)) {
      return {B::float_conv2d(in(x), in(weight), in(bias), options)};
    }
    auto formula = [conv = ConvOperands<ConvOptions>(x, weight, options)](P& p) {
      conv.give(p, p.grad());
    };
    auto to = edges(x, weight, bias);
    return attach("conv2d", B::float_conv2d(in(x), in(weight), in(bias), options), std::move(to),
                  std::move(formula));
  }
  // Fused where the gradient can do without what the activation was given.
  static T float_conv2d_activation(F x, F weight, const T* bias, const T* residual,
                                   Activation activation, const ConvOptions& options) {
    if (!tracked(x, weight, bias, residual)) {
      return {B::float_conv2d_activation(in(x), in(weight), in(bias), in(residual), activation,
                                         options)};
    }
    const bool from_output = activation == Activation::none || activation == Activation::relu ||
                             activation == Activation::tanh || activation == Activation::sigmoid;
    if (!from_output) {
      T out = A::float_conv2d(x, weight, bias, options);
      if (residual != nullptr) out = A::float_add(std::move(out), *residual);
      return activated<A>(std::move(out), activation);
    }
    auto to = edges(x, weight, bias, residual);
    ConvOperands<ConvOptions> conv(x, weight, options);
    Inner out =
        B::float_conv2d_activation(in(x), in(weight), in(bias), in(residual), activation, options);
    if (activation == Activation::none) {
      auto formula = [conv = std::move(conv)](P& p) {
        const T g = p.take();
        if (p.needs(3)) p.give(3, g);
        conv.give(p, g);
      };
      return attach("conv2d", std::move(out), std::move(to), std::move(formula));
    }
    auto formula = [conv = std::move(conv), y_ = save_output(out), activation](P& p) {
      const T y = y_.get(p);
      const T g = activation == Activation::relu   ? A::float_relu_backward(p.take(), y)
                  : activation == Activation::tanh ? A::float_tanh_backward(p.take(), y)
                                                   : A::float_sigmoid_backward(p.take(), y);
      if (p.needs(3)) p.give(3, g);
      conv.give(p, g);
    };
    return attach("conv2d", std::move(out), std::move(to), std::move(formula));
  }
  static T float_separable_block(F x, const T* expand, const T* expand_bias, Activation expanded,
                                 F weight, const T* bias, Activation activation, const T* project,
                                 const T* project_bias, const T* residual, Activation projected,
                                 const ConvOptions& options) {
    if (!tracked(x, expand, expand_bias, weight, bias, project, project_bias, residual)) {
      return {B::float_separable_block(in(x), in(expand), in(expand_bias), expanded, in(weight),
                                       in(bias), activation, in(project), in(project_bias),
                                       in(residual), projected, options)};
    }
    return defaults::WindowDefaults<A>::template float_separable_block<A>(
        x, expand, expand_bias, expanded, weight, bias, activation, project, project_bias, residual,
        projected, options);
  }
  static T float_conv2d_input_grad(F weight, F g, const Shape& x_shape,
                                   const ConvOptions& options) {
    if (!tracked(weight, g)) {
      return {B::float_conv2d_input_grad(in(weight), in(g), x_shape, options)};
    }
    auto formula = [ws = Shape(B::shape(weight->inner)), w_ = save(weight), g_ = save(g),
                    options](P& p) {
      const T& v = p.grad();
      if (p.needs(0)) p.give(0, A::float_conv2d_weight_grad(v, g_.get(p), ws, options));
      if (p.needs(1)) p.give(1, A::float_conv2d(v, w_.get(p), nullptr, options));
    };
    auto to = edges(weight, g);
    return attach("conv2d_input_grad",
                  B::float_conv2d_input_grad(in(weight), in(g), x_shape, options), std::move(to),
                  std::move(formula));
  }
  static T float_conv2d_weight_grad(F x, F g, const Shape& w_shape, const ConvOptions& options) {
    if (!tracked(x, g)) return {B::float_conv2d_weight_grad(in(x), in(g), w_shape, options)};
    auto formula = [xs = Shape(B::shape(x->inner)), x_ = save(x), g_ = save(g), options](P& p) {
      const T& v = p.grad();
      if (p.needs(0)) p.give(0, A::float_conv2d_input_grad(v, g_.get(p), xs, options));
      if (p.needs(1)) p.give(1, A::float_conv2d(x_.get(p), v, nullptr, options));
    };
    auto to = edges(x, g);
    return attach("conv2d_weight_grad", B::float_conv2d_weight_grad(in(x), in(g), w_shape, options),
                  std::move(to), std::move(formula));
  }
  static T float_conv_transpose2d(F x, F weight, const T* bias, Activation activation,
                                  const Shape& shape, const ConvOptions& options) {
    if (!tracked(x, weight, bias)) {
      return {B::float_conv_transpose2d(in(x), in(weight), in(bias), activation, shape, options)};
    }
    T out = A::float_conv2d_input_grad(weight, x, shape, options);
    if (bias != nullptr) {
      out = A::float_add(std::move(out), A::float_reshape(*bias, Shape{1, shape[1], 1, 1}));
    }
    return activated<A>(std::move(out), activation);
  }

  static T float_conv3d(F x, F weight, const T* bias, const Conv3dOptions& options) {
    if (!tracked(x, weight, bias)) {
      return {B::float_conv3d(in(x), in(weight), in(bias), options)};
    }
    auto formula = [conv = ConvOperands<Conv3dOptions>(x, weight, options)](P& p) {
      conv.give(p, p.grad());
    };
    auto to = edges(x, weight, bias);
    return attach("conv3d", B::float_conv3d(in(x), in(weight), in(bias), options), std::move(to),
                  std::move(formula));
  }
  static T float_conv3d_input_grad(F weight, F g, const Shape& x_shape,
                                   const Conv3dOptions& options) {
    if (!tracked(weight, g)) {
      return {B::float_conv3d_input_grad(in(weight), in(g), x_shape, options)};
    }
    auto formula = [ws = Shape(B::shape(weight->inner)), w_ = save(weight), g_ = save(g),
                    options](P& p) {
      const T& v = p.grad();
      if (p.needs(0)) p.give(0, A::float_conv3d_weight_grad(v, g_.get(p), ws, options));
      if (p.needs(1)) p.give(1, A::float_conv3d(v, w_.get(p), nullptr, options));
    };
    auto to = edges(weight, g);
    return attach("conv3d_input_grad",
                  B::float_conv3d_input_grad(in(weight), in(g), x_shape, options), std::move(to),
                  std::move(formula));
  }
  static T float_conv3d_weight_grad(F x, F g, const Shape& w_shape, const Conv3dOptions& options) {
    if (!tracked(x, g)) return {B::float_conv3d_weight_grad(in(x), in(g), w_shape, options)};
    auto formula = [xs = Shape(B::shape(x->inner)), x_ = save(x), g_ = save(g), options](P& p) {
      const T& v = p.grad();
      if (p.needs(0)) p.give(0, A::float_conv3d_input_grad(v, g_.get(p), xs, options));
      if (p.needs(1)) p.give(1, A::float_conv3d(x_.get(p), v, nullptr, options));
    };
    auto to = edges(x, g);
    return attach("conv3d_weight_grad", B::float_conv3d_weight_grad(in(x), in(g), w_shape, options),
                  std::move(to), std::move(formula));
  }

  // ---- Pooling

  static std::pair<T, Int> float_max_pool2d(F x, const PoolOptions& options) {
    const bool record = tracked(x);
    auto to = edges(x);
    const Shape from = B::shape(x->inner);
    auto [out, index] = B::float_max_pool2d(in(x), options);
    if (!record) return {T{std::move(out)}, std::move(index)};
    auto formula = [from, options, i = save_constant(index)](P& p) {
      p.give(0, A::float_max_pool2d_backward(p.take(), i.get(p), from, options));
    };
    return {attach("max_pool2d", std::move(out), std::move(to), std::move(formula)),
            std::move(index)};
  }
  static T float_max_pool2d_values(F x, const PoolOptions& options) {
    if (tracked(x)) return float_max_pool2d(x, options).first;
    return {B::float_max_pool2d_values(in(x), options)};
  }
  static T float_max_pool2d_backward(F g, const Arg<Int>& index, const Shape& x_shape,
                                     const PoolOptions& options) {
    if (!tracked(g)) return {B::float_max_pool2d_backward(in(g), index, x_shape, options)};
    auto formula = [gs = Shape(B::shape(g->inner)), x_shape, i = save_constant(index.get())](P& p) {
      // The gradient of placing values at positions is picking them up there.
      const T plane =
          A::float_reshape(p.take(), Shape{x_shape[0], x_shape[1], x_shape[2] * x_shape[3]});
      const Int flat = B::int_reshape(i.get(p), Shape{gs[0], gs[1], gs[2] * gs[3]});
      p.give(0, A::float_reshape(A::float_gather(plane, 2, flat), gs));
    };
    auto to = edges(g);
    return attach("max_pool2d_backward",
                  B::float_max_pool2d_backward(in(g), index, x_shape, options), std::move(to),
                  std::move(formula));
  }
  static T float_avg_pool2d(F x, const PoolOptions& options) {
    if (!tracked(x)) return {B::float_avg_pool2d(in(x), options)};
    auto formula = [from = Shape(B::shape(x->inner)), options](P& p) {
      p.give(0, A::float_avg_pool2d_backward(p.take(), from, options));
    };
    auto to = edges(x);
    return attach("avg_pool2d", B::float_avg_pool2d(in(x), options), std::move(to),
                  std::move(formula));
  }
  static T float_avg_pool2d_backward(F g, const Shape& x_shape, const PoolOptions& options) {
    if (!tracked(g)) return {B::float_avg_pool2d_backward(in(g), x_shape, options)};
    auto formula = [options](P& p) { p.give(0, A::float_avg_pool2d(p.take(), options)); };
    auto to = edges(g);
    return attach("avg_pool2d_backward", B::float_avg_pool2d_backward(in(g), x_shape, options),
                  std::move(to), std::move(formula));
  }

  // ---- Normalization

  // Weights may have another dtype than what they are beside, and their gradients come in a third.
  static std::optional<DType> dtype_of(const T* x) {
    return x == nullptr ? std::nullopt : std::optional(B::dtype(x->inner));
  }
  static T in_dtype(T x, std::optional<DType> dtype) {
    return !dtype || *dtype == B::dtype(x.inner) ? std::move(x) : A::float_cast(x, *dtype);
  }

  // The statistics returned beside the output carry no gradient.
  static std::tuple<T, T, T> float_batch_norm(F x, const T* weight, const T* bias, double eps) {
    const bool record = tracked(x, weight, bias);
    auto to = edges(x, weight, bias);
    auto x_ = record ? std::optional(save(x)) : std::nullopt;
    auto w_ = save_if(record, weight);
    const std::array params = {dtype_of(weight), dtype_of(bias)};
    auto [out, mean, var] = B::float_batch_norm(in(x), in(weight), in(bias), eps);
    if (!record) return {T{std::move(out)}, T{std::move(mean)}, T{std::move(var)}};
    auto formula = [x_ = std::move(x_), w_ = std::move(w_), m_ = save_constant(mean),
                    v_ = save_constant(var), params, eps](P& p) {
      const T x0 = x_->get(p);
      const std::optional<T> w0 = w_ ? std::optional(w_->get(p)) : std::nullopt;
      auto [gx, gw, gb] = A::float_batch_norm_backward(p.take(), x0, w0 ? &*w0 : nullptr,
                                                       T{m_.get(p)}, T{v_.get(p)}, eps);
      p.give(0, std::move(gx));
      p.give(1, in_dtype(std::move(gw), params[0]));
      p.give(2, in_dtype(std::move(gb), params[1]));
    };
    return {attach("batch_norm", std::move(out), std::move(to), std::move(formula)),
            T{std::move(mean)}, T{std::move(var)}};
  }
  static std::tuple<T, T, T> float_batch_norm_backward(F g, F x, const T* weight, F mean, F var,
                                                       double eps) {
    if (!tracked(g, x, weight, mean, var)) {
      auto [gx, gw, gb] =
          B::float_batch_norm_backward(in(g), in(x), in(weight), in(mean), in(var), eps);
      return {T{std::move(gx)}, T{std::move(gw)}, T{std::move(gb)}};
    }
    const T& x0 = x.get();
    const T wide = defaults::widen<A>(x0);
    const Dims dims = defaults::all_but_channels(Shape(B::shape(x->inner)).rank());
    return Norms::template float_batch_norm_backward<A>(g.get(), x0, weight,
                                                        A::float_mean(wide, dims, false),
                                                        A::float_var(wide, dims, 0.0, false), eps);
  }

  static std::tuple<T, T, T> float_layer_norm(F x, const T* weight, const T* bias, int n,
                                              double eps) {
    const bool record = tracked(x, weight, bias);
    auto to = edges(x, weight, bias);
    auto x_ = record ? std::optional(save(x)) : std::nullopt;
    auto w_ = save_if(record, weight);
    auto [out, mean, rstd] = B::float_layer_norm(in(x), in(weight), in(bias), n, eps);
    if (!record) return {T{std::move(out)}, T{std::move(mean)}, T{std::move(rstd)}};
    auto formula = [x_ = std::move(x_), w_ = std::move(w_), m_ = save_constant(mean),
                    r_ = save_constant(rstd), n, eps](P& p) {
      const T x0 = x_->get(p);
      const std::optional<T> w0 = w_ ? std::optional(w_->get(p)) : std::nullopt;
      auto [gx, gw, gb] = layer_norm_gradients(p.take(), x0, w0 ? &*w0 : nullptr, T{m_.get(p)},
                                               T{r_.get(p)}, n, eps);
      p.give(0, std::move(gx));
      p.give(1, std::move(gw));
      p.give(2, std::move(gb));
    };
    return {attach("layer_norm", std::move(out), std::move(to), std::move(formula)),
            T{std::move(mean)}, T{std::move(rstd)}};
  }
  static std::tuple<T, T, T> float_layer_norm_backward(F g, F x, const T* weight, F mean, F rstd,
                                                       int n) {
    if (tracked(g, x, weight, mean, rstd)) {
      throw_error<AutodiffError>(
          "layer_norm_backward: is not differentiable by itself, since it does not know eps; "
          "expected float_layer_norm with create_graph");
    }
    auto [gx, gw, gb] =
        B::float_layer_norm_backward(in(g), in(x), in(weight), in(mean), in(rstd), n);
    return {T{std::move(gx)}, T{std::move(gw)}, T{std::move(gb)}};
  }

  // ---- Cross-entropy

  static std::pair<T, T> float_cross_entropy(F x, const Arg<Int>& target,
                                             const CrossEntropyOptions& options) {
    const bool record = tracked(x);
    auto to = edges(x);
    auto x_ = record ? std::optional(save(x)) : std::nullopt;
    auto [loss, lse] = B::float_cross_entropy(in(x), target, options);
    if (!record) return {T{std::move(loss)}, T{std::move(lse)}};
    auto formula = [x_ = std::move(x_), t_ = save_constant(target.get()), l_ = save_constant(lse),
                    options](P& p) {
      p.give(0, A::float_cross_entropy_backward(p.take(), x_->get(p), t_.get(p), T{l_.get(p)},
                                                options));
    };
    return {attach("cross_entropy", std::move(loss), std::move(to), std::move(formula)),
            T{std::move(lse)}};
  }
  static T float_cross_entropy_backward(F g, F x, const Arg<Int>& target, F lse,
                                        const CrossEntropyOptions& options) {
    if (!tracked(g, x, lse)) {
      return {B::float_cross_entropy_backward(in(g), in(x), target, in(lse), options)};
    }
    return Defaults::template float_cross_entropy_backward<A>(
        g.get(), x.get(), target.get(), A::float_logsumexp(x, Dims{1}, false), options);
  }

  // ---- Negative log-likelihood: each of the two is the other's derivative

  static T float_nll_loss(F x, const Arg<Int>& classes, const T* weight, int64_t ignored) {
    if (tracked(weight)) {
      return Defaults::template float_nll_loss<A>(x.get(), classes.get(), weight, ignored);
    }
    if (!tracked(x)) return {B::float_nll_loss(in(x), classes, in(weight), ignored)};
    auto formula = [count = Shape(B::shape(x->inner))[1], c_ = save_constant(classes.get()),
                    w_ = save_if(true, weight), ignored](P& p) {
      const std::optional<T> w0 = w_ ? std::optional(w_->get(p)) : std::nullopt;
      p.give(0,
             A::float_nll_loss_backward(p.take(), c_.get(p), w0 ? &*w0 : nullptr, count, ignored));
    };
    return attach("nll_loss", B::float_nll_loss(in(x), classes, in(weight), ignored), edges(x),
                  std::move(formula));
  }
  static T float_nll_loss_backward(F g, const Arg<Int>& classes, const T* weight, int64_t count,
                                   int64_t ignored) {
    if (tracked(weight)) {
      return Defaults::template float_nll_loss_backward<A>(g.get(), classes.get(), weight, count,
                                                           ignored);
    }
    if (!tracked(g)) {
      return {B::float_nll_loss_backward(in(g), classes, in(weight), count, ignored)};
    }
    auto formula = [c_ = save_constant(classes.get()), w_ = save_if(true, weight), ignored](P& p) {
      const std::optional<T> w0 = w_ ? std::optional(w_->get(p)) : std::nullopt;
      p.give(0, A::float_nll_loss(p.take(), c_.get(p), w0 ? &*w0 : nullptr, ignored));
    };
    return attach("nll_loss_backward",
                  B::float_nll_loss_backward(in(g), classes, in(weight), count, ignored), edges(g),
                  std::move(formula));
  }

  // ---- Connectionist temporal classification

  static T float_ctc_loss(F x, const Arg<Int>& targets, const Arg<Int>& ends, const Arg<Int>& sizes,
                          int64_t blank) {
    if (!tracked(x)) return {B::float_ctc_loss(in(x), targets, ends, sizes, blank)};
    auto formula = [x_ = save(x), t_ = save_constant(targets.get()), e_ = save_constant(ends.get()),
                    s_ = save_constant(sizes.get()), blank](P& p) {
      p.give(0, A::float_ctc_loss_backward(p.take(), x_.get(p), t_.get(p), e_.get(p), s_.get(p),
                                           blank));
    };
    return attach("ctc_loss", B::float_ctc_loss(in(x), targets, ends, sizes, blank), edges(x),
                  std::move(formula));
  }
  static T float_ctc_loss_backward(F g, F x, const Arg<Int>& targets, const Arg<Int>& ends,
                                   const Arg<Int>& sizes, int64_t blank) {
    if (!tracked(g, x)) {
      return {B::float_ctc_loss_backward(in(g), in(x), targets, ends, sizes, blank)};
    }
    return Defaults::template float_ctc_loss_backward<A>(g.get(), x.get(), targets.get(),
                                                         ends.get(), sizes.get(), blank);
  }

  // ---- RNN transducer

  static T float_rnnt_loss(F x, const Arg<Int>& targets, const Arg<Int>& ends,
                           const Arg<Int>& sizes, int64_t blank, double clamp, bool softmax) {
    if (!tracked(x)) {
      return {B::float_rnnt_loss(in(x), targets, ends, sizes, blank, clamp, softmax)};
    }
    auto formula = [x_ = save(x), t_ = save_constant(targets.get()), e_ = save_constant(ends.get()),
                    s_ = save_constant(sizes.get()), blank, clamp, softmax](P& p) {
      p.give(0, A::float_rnnt_loss_backward(p.take(), x_.get(p), t_.get(p), e_.get(p), s_.get(p),
                                            blank, clamp, softmax));
    };
    return attach("rnnt_loss",
                  B::float_rnnt_loss(in(x), targets, ends, sizes, blank, clamp, softmax), edges(x),
                  std::move(formula));
  }
  static T float_rnnt_loss_backward(F g, F x, const Arg<Int>& targets, const Arg<Int>& ends,
                                    const Arg<Int>& sizes, int64_t blank, double clamp,
                                    bool softmax) {
    if (!tracked(g, x)) {
      return {
          B::float_rnnt_loss_backward(in(g), in(x), targets, ends, sizes, blank, clamp, softmax)};
    }
    return Defaults::template float_rnnt_loss_backward<A>(
        g.get(), x.get(), targets.get(), ends.get(), sizes.get(), blank, clamp, softmax);
  }

  // ---- Attention

  static std::pair<T, T> float_attention(F q, F k, F v, const T* mask,
                                         const AttentionOptions& options) {
    // The fused gradient has none for the mask: then everything is composed.
    if (tracked(mask)) return defaults::ComposedAttention<A>::forward(q, k, v, mask, options);
    if (!tracked(q, k, v)) {
      auto [out, lse] = B::float_attention(in(q), in(k), in(v), in(mask), options);
      return {T{std::move(out)}, T{std::move(lse)}};
    }
    auto to = edges(q, k, v);
    auto q_ = save(q);
    auto k_ = save(k);
    auto v_ = save(v);
    auto m_ = save_if(true, mask);
    auto [out, lse] = B::float_attention(in(q), in(k), in(v), in(mask), options);
    auto formula = [q_ = std::move(q_), k_ = std::move(k_), v_ = std::move(v_), m_ = std::move(m_),
                    o_ = save_output(out), l_ = save_constant(lse), options](P& p) {
      const std::optional<T> m0 = m_ ? std::optional(m_->get(p)) : std::nullopt;
      auto [gq, gk, gv] =
          A::float_attention_backward(p.take(), q_.get(p), k_.get(p), v_.get(p),
                                      m0 ? &*m0 : nullptr, o_.get(p), T{l_.get(p)}, options);
      if (p.needs(0)) p.give(0, std::move(gq));
      if (p.needs(1)) p.give(1, std::move(gk));
      if (p.needs(2)) p.give(2, std::move(gv));
    };
    return {attach("attention", std::move(out), std::move(to), std::move(formula)),
            T{std::move(lse)}};
  }
  // Output and logsumexp are functions of q, k and v: a recorded pass computes everything from
  // those.
  static std::tuple<T, T, T> float_attention_backward(F g, F q, F k, F v, const T* mask, F out,
                                                      F lse, const AttentionOptions& options) {
    if (tracked(g, q, k, v, mask)) {
      return defaults::ComposedAttention<A>::backward(g, q, k, v, mask, options);
    }
    auto [gq, gk, gv] = B::float_attention_backward(in(g), in(q), in(k), in(v), in(mask), in(out),
                                                    in(lse), options);
    return {T{std::move(gq)}, T{std::move(gk)}, T{std::move(gv)}};
  }

  // ---- Dropout

  static T float_dropout(F x, double p_zero, RandomStream stream) {
    if (!tracked(x)) return {B::float_dropout(in(x), p_zero, stream)};
    auto formula = [p_zero, stream](P& p) {
      p.give(0, A::float_dropout(p.take(), p_zero, stream));
    };
    auto to = edges(x);
    return attach("dropout", B::float_dropout(in(x), p_zero, stream), std::move(to),
                  std::move(formula));
  }

  // ---- Optimizer steps

  // They write parameters in place and are not recorded.
  static void float_optimizer_step(std::span<T> params, std::span<const T> grads,
                                   std::span<T> state, const OptimizerStep& step) {
    std::vector<Inner> p = inners(params);
    const std::vector<Inner> g = inners(grads);
    std::vector<Inner> s = inners(state);
    B::float_optimizer_step(std::span<Inner>(p), std::span<const Inner>(g), std::span<Inner>(s),
                            step);
  }
  static void float_adamw_8bit(F p, F g, const Arg<Int>& codes1, F largest1, const Arg<Int>& codes2,
                               F largest2, const AdamW8bitStep& step) {
    B::float_adamw_8bit(in(p), in(g), codes1, in(largest1), codes2, in(largest2), step);
  }

 private:
  static T input_grad_of(const T& w, const T& g, const Shape& x, const ConvOptions& options) {
    return A::float_conv2d_input_grad(w, g, x, options);
  }
  static T input_grad_of(const T& w, const T& g, const Shape& x, const Conv3dOptions& options) {
    return A::float_conv3d_input_grad(w, g, x, options);
  }
  static T weight_grad_of(const T& x, const T& g, const Shape& w, const ConvOptions& options) {
    return A::float_conv2d_weight_grad(x, g, w, options);
  }
  static T weight_grad_of(const T& x, const T& g, const Shape& w, const Conv3dOptions& options) {
    return A::float_conv3d_weight_grad(x, g, w, options);
  }
  // What the gradients of conv2d or conv3d need of its operands.
  template <class Options>
  struct ConvOperands {
    ConvOperands(const F& x, const F& weight, const Options& o)
        : xs(B::shape(x->inner)),
          ws(B::shape(weight->inner)),
          options(o),
          x_(save_if(has_node(weight), x)),
          w_(save_if(has_node(x), weight)) {}

    // From g, the gradient of conv(x, weight, bias), to edges 0 to 2.
    void give(P& p, const T& g) const {
      if (p.needs(0)) p.give(0, input_grad_of(w_->get(p), g, xs, options));
      if (p.needs(1)) p.give(1, weight_grad_of(x_->get(p), g, ws, options));
      if (!p.needs(2)) return;
      p.give(2, A::float_sum(g, xs.rank() == 4 ? Dims{0, 2, 3} : Dims{0, 2, 3, 4}, false));
    }

    Shape xs, ws;
    Options options;
    std::optional<SavedInput<B>> x_, w_;
  };

  template <class X>
  static std::vector<Inner> inners(std::span<X> xs) {
    std::vector<Inner> out;
    out.reserve(xs.size());
    for (const T& x : xs) out.push_back(x.inner);
    return out;
  }

  static std::tuple<T, T, T> layer_norm_gradients(T g, const T& x, const T* weight, const T& mean,
                                                  const T& rstd, int n, double eps) {
    if (!tracked(F(g), F(x), weight)) {
      return A::float_layer_norm_backward(std::move(g), x, weight, mean, rstd, n);
    }
    const Dims dims = defaults::last_dims(Shape(B::shape(x.inner)).rank(), n);
    return Norms::template float_layer_norm_backward<A>(
        g, x, weight, A::float_mean(x, dims, true),
        A::float_rsqrt(A::float_add_scalar(A::float_var(x, dims, 0.0, true), Scalar(eps))), n);
  }
};

#undef KILN_FROM_INPUT
#undef KILN_FROM_OUTPUT
#undef KILN_FLAT

}  // namespace kiln::autodiff
