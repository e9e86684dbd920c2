// Loss scaling: gradients in f16 keep what would be too small for it.
//
//   amp::GradScaler scaler;
//   scaler.scale(loss).backward_accumulate();
//   scaler.step(optimizer);  // unscales the gradients; leaves the step out when one is not finite
//   scaler.update();
#pragma once

#include <map>
#include <optional>
#include <span>

#include "kiln/optim/optimizer.h"
#include "kiln/tensor/tensor.h"

namespace kiln::amp {

struct GradScalerOptions {
  double init_scale = 65536.0;
  double growth_factor = 2.0;      // > 1
  double backoff_factor = 0.5;     // in (0, 1)
  int64_t growth_interval = 2000;  // so many steps without a skipped one, and the scale grows
  bool enabled = true;             // otherwise every function passes on what it is given
};

// What a scaler saves.
struct GradScalerState {
  double scale = 1.0;
  double growth_factor = 2.0;
  double backoff_factor = 0.5;
  int64_t growth_interval = 2000;
  int64_t growth_tracker = 0;  // steps since the scale changed
};

// Scale and its changes are f32, as in PyTorch.
class GradScaler {
 public:
  // Throws ValueError for options that make no sense.
  explicit GradScaler(GradScalerOptions options = {});

  // output * scale.
  Tensor scale(const Tensor& output) const;

  // Divides the gradients of the optimizer's parameters by the scale, so that they can be clipped
  // before step(). Throws RuntimeError when called twice for an optimizer before update(), and
  // ValueError for gradients in f16: the parameters are to be f32.
  void unscale_(optim::Optimizer& optimizer);
  void unscale_(const optim::Optimizer& optimizer, Gradients& gradients);

  // unscale_() unless that has been done; then optimizer.step(), unless a gradient was infinite or
  // NaN. Whether the optimizer stepped. Throws RuntimeError when called twice before update(), and
  // ValueError when no parameter has a gradient.
  bool step(optim::Optimizer& optimizer);
  bool step(optim::Optimizer& optimizer, Gradients& gradients);

  // At the end of an iteration: backs off when a step was left out, grows after growth_interval
  // iterations in which none was; or takes a new scale. Throws RuntimeError when no optimizer has
  // been unscaled.
  void update(std::optional<double> new_scale = {});

  double get_scale() const { return enabled_ ? state_.scale : 1.0; }
  bool is_enabled() const { return enabled_; }
  GradScalerState state() const { return state_; }
  // Throws ValueError for a state that makes no sense.
  void load_state(const GradScalerState& state);

 private:
  enum class Stage : uint8_t { ready, unscaled, stepped };
  struct Seen {
    Stage stage = Stage::ready;
    bool checked = false;  // whether there were gradients
    bool found_inf = false;
  };
  template <class Access>
  void unscale(const optim::Optimizer& optimizer, Access access);
  Seen& seen_for_step(const optim::Optimizer& optimizer);
  bool may_step(Seen& seen);

  bool enabled_;
  GradScalerState state_;
  std::map<const optim::Optimizer*, Seen> seen_;
};

namespace detail {

// Multiplies the gradients, in place. Whether all were finite before.
bool unscale_gradients(std::span<Tensor> gradients, double factor);
// The scale after an iteration, and the tracker in `state`.
void update_scale(GradScalerState& state, bool found_inf);

}  // namespace detail
}  // namespace kiln::amp
