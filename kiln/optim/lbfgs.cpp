#include "kiln/optim/lbfgs.h"

#include <algorithm>
#include <cmath>

#include "kiln/core/error.h"
#include "kiln/optim/lbfgs_search.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"

namespace kiln::optim {

namespace {

double dot(const Tensor& a, const Tensor& b) { return (a * b).sum().item<double>(); }
double largest(const Tensor& x) { return x.abs().max().item<double>(); }

// All gradients as one vector; zeros where a parameter has none.
Tensor flat_gradient(const std::vector<Tensor>& params, const std::vector<Tensor>& gradients) {
  std::vector<Tensor> parts;
  for (size_t i = 0; i < params.size(); ++i) {
    const Tensor& grad = gradients[i];
    parts.push_back(
        (grad.defined() ? grad.detach() : zeros_like(params[i].detach())).reshape({-1}));
  }
  return cat(parts);
}

// The quasi-Newton direction -H g by the two loops over the pairs (Nocedal & Wright,
// algorithm 7.4).
Tensor direction(const LBFGSState& state, const Tensor& gradient) {
  Tensor q = -gradient;
  std::vector<double> alpha(state.old_dirs.size());
  for (size_t i = alpha.size(); i-- > 0;) {
    alpha[i] = dot(state.old_stps[i], q) * state.ro[i];
    q.add_(state.old_dirs[i], -alpha[i]);
  }
  Tensor r = q * state.H_diag;
  for (size_t i = 0; i < alpha.size(); ++i) {
    const double beta = dot(state.old_dirs[i], r) * state.ro[i];
    r.add_(state.old_stps[i], alpha[i] - beta);
  }
  return r;
}

// Takes the last change of gradient and parameters into the history, if the loss curves upward.
void remember(LBFGSState& state, const Tensor& gradient, int64_t history_size) {
  const Tensor y = gradient - state.prev_flat_grad;
  const Tensor s = state.d * state.t;
  const double ys = dot(y, s);
  if (!(ys > 1e-10)) return;
  if (static_cast<int64_t>(state.old_dirs.size()) == history_size) {
    state.old_dirs.pop_front();
    state.old_stps.pop_front();
    state.ro.pop_front();
  }
  state.old_dirs.push_back(y);
  state.old_stps.push_back(s);
  state.ro.push_back(1.0 / ys);
  state.H_diag = ys / dot(y, y);
}

// A loss of the parameters along a direction.
class Line {
 public:
  Line(std::vector<Tensor>& params, const detail::LossAndGradients& evaluate)
      : params_(params), evaluate_(evaluate) {}

  // The loss where the parameters are, and its gradient.
  Tensor loss(Tensor* gradient) {
    std::vector<Tensor> gradients(params_.size());
    Tensor out;
    {
      EnableGradGuard record;
      out = evaluate_(gradients);
    }
    *gradient = flat_gradient(params_, gradients);
    return out;
  }
  void begin(const Tensor& d) {
    d_ = d;
    start_.clear();
    for (const Tensor& p : params_) start_.push_back(p.detach().clone());
  }
  // Puts the parameters at start + t d.
  void move(double t) {
    int64_t at = 0;
    for (size_t i = 0; i < params_.size(); ++i) {
      const int64_t n = params_[i].numel();
      const Tensor part = d_.slice(0, at, at + n).reshape(start_[i].shape());
      params_[i].detach().copy_(start_[i] + part * t);
      at += n;
    }
  }
  detail::Probe probe(double t) {
    move(t);
    Tensor gradient;
    const auto value = loss(&gradient).item<double>();
    const double slope = dot(gradient, d_);
    return {t, value, std::move(gradient), slope};
  }

 private:
  std::vector<Tensor>& params_;
  const detail::LossAndGradients& evaluate_;
  Tensor d_;
  std::vector<Tensor> start_;
};

}  // namespace

Tensor detail::lbfgs_step(std::vector<Tensor>& params, const LBFGSOptions& options,
                          LBFGSState& state, const LossAndGradients& evaluate) {
  NoGradGuard no_grad;
  const int64_t max_eval = options.max_eval.value_or(options.max_iter * 5 / 4);
  Line line(params, evaluate);
  Tensor gradient;
  Tensor first_loss = line.loss(&gradient);
  auto loss = first_loss.item<double>();
  int64_t evaluations = 1;
  ++state.func_evals;
  if (gradient.numel() == 0 || largest(gradient) <= options.tolerance_grad) return first_loss;
  for (int64_t i = 1; i <= options.max_iter; ++i) {
    ++state.n_iter;
    if (state.n_iter == 1) {
      state.d = -gradient;
      state.old_dirs.clear();
      state.old_stps.clear();
      state.ro.clear();
      state.H_diag = 1.0;
      state.t = std::min(1.0, 1.0 / gradient.abs().sum().item<double>()) * options.lr;
    } else {
      remember(state, gradient, options.history_size);
      state.d = direction(state, gradient);
      state.t = options.lr;
    }
    state.prev_flat_grad = gradient;
    state.prev_loss = loss;
    const double slope = dot(gradient, state.d);
    if (slope > -options.tolerance_change) break;
    line.begin(state.d);
    int64_t made = 0;
    if (options.line_search_fn == LineSearch::strong_wolfe) {
      const detail::Probe start = {0.0, loss, gradient, slope};
      const detail::Probe end = detail::strong_wolfe(
          [&line](double t) { return line.probe(t); }, start, state.t, largest(state.d),
          options.tolerance_change, max_eval - evaluations, &made);
      state.t = end.t;
      loss = end.loss;
      gradient = end.gradient;
      line.move(state.t);
    } else {
      line.move(state.t);
      if (i != options.max_iter) {  // after the last step nobody asks for it
        loss = line.loss(&gradient).item<double>();
        made = 1;
      }
    }
    evaluations += made;
    state.func_evals += made;
    if (evaluations >= max_eval || largest(gradient) <= options.tolerance_grad ||
        largest(state.d) * std::abs(state.t) <= options.tolerance_change ||
        std::abs(loss - state.prev_loss) < options.tolerance_change) {
      break;
    }
  }
  return first_loss;
}

LBFGS::LBFGS(std::vector<Tensor> params, const LBFGSOptions& options)
    : params_(std::move(params)), options_(options) {
  if (params_.empty()) throw_error<ValueError>("LBFGS: there are no parameters to optimize");
  for (const Tensor& p : params_) {
    if (!p.defined() || !p.is_leaf() || !p.is_floating_point()) {
      throw_error<ValueError>("LBFGS: parameters must be floating-point leaf tensors");
    }
    if (p.dtype() != params_[0].dtype() || p.device() != params_[0].device()) {
      throw_error<ValueError>("LBFGS: parameters must be of one dtype and device; got ",
                              params_[0].dtype(), " on ", params_[0].device(), " and ", p.dtype(),
                              " on ", p.device());
    }
  }
  detail::check_not_negative("LBFGS", "lr", options_.lr);
  if (options_.max_iter < 0 || options_.history_size < 1) {
    throw_error<ValueError>("LBFGS: max_iter must be >= 0 and history_size >= 1; got ",
                            options_.max_iter, " and ", options_.history_size);
  }
}

namespace {

// Takes the grad() of parameters away, and gives it back at the end where there is none by then.
class GradsAside {
 public:
  explicit GradsAside(std::vector<Tensor>& params) : params_(params) {
    for (Tensor& param : params_) {
      kept_.push_back(param.grad());
      param.zero_grad();
    }
  }
  ~GradsAside() {
    for (size_t i = 0; i < params_.size(); ++i) {
      if (kept_[i].defined() && !params_[i].grad().defined()) params_[i].set_grad(kept_[i]);
    }
  }
  GradsAside(const GradsAside&) = delete;
  GradsAside& operator=(const GradsAside&) = delete;

 private:
  std::vector<Tensor>& params_;
  std::vector<Tensor> kept_;
};

}  // namespace

Tensor LBFGS::step(const std::function<Tensor()>& loss) {
  return detail::lbfgs_step(params_, options_, state_, [&](std::vector<Tensor>& gradients) {
    const GradsAside aside(params_);
    const Tensor value = loss();
    try {
      const Gradients of = value.backward();
      for (size_t i = 0; i < params_.size(); ++i) {
        gradients[i] = of.get(params_[i]).value_or(Tensor());
      }
    } catch (const FreedGraphError&) {
      // loss() differentiated its result itself, as PyTorch's closures do.
      bool any = false;
      for (size_t i = 0; i < params_.size(); ++i) {
        const Tensor grad = params_[i].grad();
        if (!grad.defined()) continue;
        gradients[i] = grad.clone();
        any = true;
      }
      if (!any) {
        throw_error<AutodiffError>(
            "LBFGS::step: the closure differentiated the loss, but grad() of no parameter is set; "
            "expected a closure that returns the loss, or one that calls backward_accumulate() "
            "before");
      }
    }
    return value.detach();
  });
}

void LBFGS::zero_grad(bool set_to_none) {
  for (Tensor& param : params_) param.zero_grad(set_to_none);
}

}  // namespace kiln::optim
