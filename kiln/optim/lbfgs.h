// L-BFGS: a quasi-Newton method for small problems with exact gradients (Liu & Nocedal, 1989).
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "kiln/core/config.h"
#include "kiln/optim/optimizer.h"

namespace kiln::optim {

// none: steps of length lr. strong_wolfe: Nocedal & Wright (2006), algorithms 3.5 and 3.6, with
// c1 = 1e-4 and c2 = 0.9.
class LineSearch {
  KILN_CHOICE(LineSearch, none, strong_wolfe)
};

struct LBFGSOptions {
  double lr = 1.0;
  int64_t max_iter = 20;                 // directions in one step()
  std::optional<int64_t> max_eval = {};  // evaluations of the loss in one step(); else 5/4 max_iter
  double tolerance_grad = 1e-7;          // ends where no element of the gradient is larger
  double tolerance_change = 1e-9;        // ends where loss and parameters change less
  int64_t history_size = 100;            // pairs of changes that stand for the curvature
  LineSearch line_search_fn = LineSearch::none;
  KILN_CONFIG(LBFGSOptions, lr, max_iter, max_eval, tolerance_grad, tolerance_change, history_size,
              line_search_fn)
};

// What is known of the curvature, over all parameters as one vector.
struct LBFGSState {
  int64_t func_evals = 0;
  int64_t n_iter = 0;
  Tensor d;                     // the direction of the last step
  double t = 0.0;               // and how far it went
  std::deque<Tensor> old_dirs;  // changes of the gradient, y
  std::deque<Tensor> old_stps;  // changes of the parameters, s
  std::deque<double> ro;        // 1 / (y s)
  double H_diag = 1.0;
  Tensor prev_flat_grad;
  double prev_loss = 0.0;
};

namespace detail {

// Computes the loss anew and the gradient of each parameter, undefined where it has none.
using LossAndGradients = std::function<Tensor(std::vector<Tensor>& gradients)>;

// One step of LBFGS on these parameters: up to max_iter directions. Returns the loss it began with.
Tensor lbfgs_step(std::vector<Tensor>& params, const LBFGSOptions& options, LBFGSState& state,
                  const LossAndGradients& evaluate);

}  // namespace detail

// Minimizes a loss over all its parameters at once. Parameters are leaf tensors of one floating
// dtype and device: ValueError otherwise, and for options that make no sense.
//
//   optim::LBFGS lbfgs(net.parameters(), {.line_search_fn = optim::LineSearch::strong_wolfe});
//   lbfgs.step([&] { return functional::mse_loss(net(x), y); });
class LBFGS {
 public:
  explicit LBFGS(std::vector<Tensor> params, const LBFGSOptions& options = {});

  // Calls loss() for each evaluation and differentiates what it returns. Returns the loss of the
  // parameters as they were. PyTorch's closures are legal, too: one that calls zero_grad() and
  // backward_accumulate() itself; then the gradients are the parameters' grad(). Throws
  // AutodiffError for one that differentiates the loss and drops its gradients.
  Tensor step(const std::function<Tensor()>& loss);
  // Forgets the parameters' grad(), or fills it with zeros.
  void zero_grad(bool set_to_none = true);
  const LBFGSOptions& options() const { return options_; }
  const LBFGSState& state() const { return state_; }

  // As Optimizer's. Throws ValueError, and changes nothing, for the state of another optimizer or
  // of other parameters.
  OptimizerState state_dict() const;
  void load_state_dict(const OptimizerState& state);

 private:
  std::vector<Tensor> params_;
  LBFGSOptions options_;
  LBFGSState state_;
};

}  // namespace kiln::optim
