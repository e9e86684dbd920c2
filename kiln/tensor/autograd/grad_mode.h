// Whether ops on tracked tensors are recorded, and differentiation without backward().
#pragma once

#include <span>
#include <vector>

#include "kiln/tensor/tensor.h"

namespace kiln {

// Per thread; true at start.
bool is_grad_enabled();
void set_grad_enabled(bool enabled);

// While it lives, ops of this thread are recorded, or not.
class AutoGradMode {
 public:
  explicit AutoGradMode(bool enabled) : before_(is_grad_enabled()) { set_grad_enabled(enabled); }
  ~AutoGradMode() { set_grad_enabled(before_); }
  AutoGradMode(const AutoGradMode&) = delete;
  AutoGradMode& operator=(const AutoGradMode&) = delete;

 private:
  bool before_;
};
class NoGradGuard : public AutoGradMode {
 public:
  NoGradGuard() : AutoGradMode(false) {}
};
class EnableGradGuard : public AutoGradMode {
 public:
  EnableGradGuard() : AutoGradMode(true) {}
};

// f() without recording.
template <class F>
decltype(auto) no_grad(F&& f) {
  NoGradGuard guard;
  return f();
}

// As NoGradGuard: nothing is recorded, so nothing is kept. (PyTorch's also forbids the later use of
// results in a graph; that stays legal here.)
using InferenceMode = NoGradGuard;

// While anomaly mode is on, for all threads, recorded ops remember where they were called (the
// interpreter's stack, from Python), and a backward pass that throws or, with check_nan, meets a
// NaN throws an AutodiffError that names the op of the forward pass. Slow; for hunting.
void set_detect_anomaly(bool enabled, bool check_nan = true);
bool is_anomaly_enabled();
bool is_anomaly_check_nan_enabled();

class DetectAnomalyGuard {
 public:
  explicit DetectAnomalyGuard(bool check_nan = true)
      : before_(is_anomaly_enabled()), before_check_(is_anomaly_check_nan_enabled()) {
    set_detect_anomaly(true, check_nan);
  }
  ~DetectAnomalyGuard() { set_detect_anomaly(before_, before_check_); }
  DetectAnomalyGuard(const DetectAnomalyGuard&) = delete;
  DetectAnomalyGuard& operator=(const DetectAnomalyGuard&) = delete;

 private:
  bool before_;
  bool before_check_;
};

// Calls hook(x) each time that backward_accumulate() has added to x.grad(), so that an optimizer
// can step at once and free the gradient. x is a leaf that requires a gradient (AutodiffError
// otherwise); the hook gets another name for it.
HookHandle register_post_accumulate_grad_hook(const Tensor& x,
                                              std::function<void(const Tensor&)> hook);

struct GradOptions {
  std::vector<Tensor> grad_outputs = {};  // one for each output; may be left out for scalars
  std::optional<bool> retain_graph = {};  // default: create_graph
  bool create_graph = false;              // record the backward pass: derivatives of any order
  bool allow_unused =
      false;  // an input that no output depends on: undefined instead of AutodiffError
};
// The gradients of the sum of `outputs` with respect to each of `inputs`; touches no .grad.
std::vector<Tensor> grad(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                         const GradOptions& options = {});
inline std::vector<Tensor> grad(std::initializer_list<Tensor> outputs,
                                std::initializer_list<Tensor> inputs,
                                const GradOptions& options = {}) {
  return grad(std::span<const Tensor>(outputs.begin(), outputs.size()),
              std::span<const Tensor>(inputs.begin(), inputs.size()), options);
}

}  // namespace kiln
