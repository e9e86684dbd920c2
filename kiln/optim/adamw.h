// AdamW: Adam with weight decay apart from the gradient (Loshchilov & Hutter, 2019).
#pragma once

#include "kiln/core/config.h"
#include "kiln/optim/adam.h"

namespace kiln::optim {

// As AdamOptions, but p *= 1 - lr weight_decay instead of g += weight_decay p.
struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false;
  KILN_CONFIG(AdamWOptions, lr, beta1, beta2, eps, weight_decay, amsgrad)
};

class AdamW : public Adam {
 public:
  explicit AdamW(std::vector<Tensor> params, const AdamWOptions& options = {})
      : AdamW(detail::one_group(std::move(params)), options) {}
  explicit AdamW(std::vector<ParamGroupOptions> groups, const AdamWOptions& options = {})
      : Adam({options.lr, options.beta1, options.beta2, options.eps, options.weight_decay,
              options.amsgrad},
             true) {
    add_groups(std::move(groups));
  }

  std::string type_name() const override { return "AdamW"; }
};

}  // namespace kiln::optim
