#include "kiln/optim/grad_scaler.h"

#include <cmath>

#include "kiln/core/error.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"

namespace kiln::amp {

namespace {

double rounded(double x) { return static_cast<double>(static_cast<float>(x)); }

void check(const GradScalerState& state) {
  if (!(state.scale > 0.0) || !std::isfinite(state.scale)) {
    throw_error<ValueError>("GradScaler: the scale must be positive and finite; got ", state.scale);
  }
  if (!(state.growth_factor > 1.0)) {
    throw_error<ValueError>("GradScaler: growth_factor must be > 1; got ", state.growth_factor);
  }
  if (!(state.backoff_factor > 0.0 && state.backoff_factor < 1.0)) {
    throw_error<ValueError>("GradScaler: backoff_factor must be in (0, 1); got ",
                            state.backoff_factor);
  }
  if (state.growth_interval < 1) {
    throw_error<ValueError>("GradScaler: growth_interval must be at least 1; got ",
                            state.growth_interval);
  }
}

}  // namespace

namespace detail {

bool unscale_gradients(std::span<Tensor> gradients, double factor) {
  const NoGradGuard no_grad;
  bool finite = true;
  for (Tensor& gradient : gradients) {
    finite = finite && gradient.isfinite().all().item<bool>();
    if (factor != 1.0) gradient.mul_(factor);
  }
  return finite;
}

void update_scale(GradScalerState& state, bool found_inf) {
  if (found_inf) {
    state.scale = rounded(state.scale * state.backoff_factor);
    state.growth_tracker = 0;
  } else if (++state.growth_tracker >= state.growth_interval) {
    const double grown = rounded(state.scale * state.growth_factor);
    if (std::isfinite(grown)) state.scale = grown;
    state.growth_tracker = 0;
  }
}

}  // namespace detail

GradScaler::GradScaler(GradScalerOptions options)
    : enabled_(options.enabled),
      state_{.scale = rounded(options.init_scale),
             .growth_factor = options.growth_factor,
             .backoff_factor = options.backoff_factor,
             .growth_interval = options.growth_interval} {
  if (enabled_) check(state_);
}

Tensor GradScaler::scale(const Tensor& output) const {
  if (!enabled_) return output;
  return output * full({}, state_.scale, {f32, output.device()});
}

template <class Access>
void GradScaler::unscale(const optim::Optimizer& optimizer, Access access) {
  if (!enabled_) return;
  Seen& seen = seen_[&optimizer];
  if (seen.stage == Stage::unscaled) {
    throw_error<RuntimeError>(
        "GradScaler: unscale_() has already been called on this optimizer since the last update()");
  }
  if (seen.stage == Stage::stepped) {
    throw_error<RuntimeError>("GradScaler: unscale_() is being called after step()");
  }
  std::vector<Tensor> params, gradients;
  for (const optim::ParamGroup& group : optimizer.param_groups()) {
    for (const Tensor& param : group.params) {
      Tensor gradient = access.get(param);
      if (!gradient.defined()) continue;
      if (gradient.dtype() == f16) {
        throw_error<ValueError>("GradScaler: gradients in f16 cannot be unscaled; got a parameter ",
                                param.shape(),
                                " in f16; expected parameters in f32, with autocast for the ops");
      }
      params.push_back(param);
      gradients.push_back(gradient.clone());
    }
  }
  const double inverse = rounded(1.0 / state_.scale);
  seen.found_inf = !detail::unscale_gradients(gradients, inverse);
  for (size_t i = 0; i < params.size(); ++i) access.set(params[i], gradients[i]);
  seen.checked = !params.empty();
  seen.stage = Stage::unscaled;
}

namespace {

struct Accumulated {
  Tensor get(const Tensor& param) const { return param.grad(); }
  void set(Tensor param, const Tensor& gradient) const { param.set_grad(gradient); }
};
struct Inside {
  Gradients& gradients;
  Tensor get(const Tensor& param) const { return gradients.get(param).value_or(Tensor()); }
  void set(const Tensor& param, const Tensor& gradient) const {
    param.grad_replace(gradients, gradient);
  }
};

}  // namespace

void GradScaler::unscale_(optim::Optimizer& optimizer) { unscale(optimizer, Accumulated{}); }
void GradScaler::unscale_(const optim::Optimizer& optimizer, Gradients& gradients) {
  unscale(optimizer, Inside{gradients});
}

GradScaler::Seen& GradScaler::seen_for_step(const optim::Optimizer& optimizer) {
  Seen& seen = seen_[&optimizer];
  if (seen.stage == Stage::stepped) {
    throw_error<RuntimeError>("GradScaler: step() has already been called since the last update()");
  }
  return seen;
}

bool GradScaler::may_step(Seen& seen) {
  if (!seen.checked) {
    throw_error<ValueError>("GradScaler: none of the optimizer's parameters has a gradient");
  }
  seen.stage = Stage::stepped;
  return !seen.found_inf;
}

bool GradScaler::step(optim::Optimizer& optimizer) {
  if (enabled_) {
    Seen& seen = seen_for_step(optimizer);
    if (seen.stage == Stage::ready) unscale_(optimizer);
    if (!may_step(seen)) return false;
  }
  optimizer.step();
  return true;
}

bool GradScaler::step(optim::Optimizer& optimizer, Gradients& gradients) {
  if (enabled_) {
    Seen& seen = seen_for_step(optimizer);
    if (seen.stage == Stage::ready) unscale_(optimizer, gradients);
    if (!may_step(seen)) return false;
  }
  optimizer.step(gradients);
  return true;
}

void GradScaler::update(std::optional<double> new_scale) {
  if (!enabled_) return;
  if (new_scale) {
    GradScalerState next = state_;
    next.scale = rounded(*new_scale);
    check(next);
    state_ = next;
  } else {
    bool any = false;
    bool found_inf = false;
    for (const auto& [optimizer, seen] : seen_) {
      any = any || seen.checked;
      found_inf = found_inf || seen.found_inf;
    }
    if (!any) {
      throw_error<RuntimeError>(
          "GradScaler: update() was called before any optimizer was unscaled or stepped");
    }
    detail::update_scale(state_, found_inf);
  }
  seen_.clear();
}

void GradScaler::load_state(const GradScalerState& state) {
  if (!enabled_) return;
  check(state);
  if (state.growth_tracker < 0) {
    throw_error<ValueError>("GradScaler: growth_tracker must not be negative; got ",
                            state.growth_tracker);
  }
  state_ = state;
}

}  // namespace kiln::amp
