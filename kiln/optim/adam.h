// Adam (Kingma & Ba, 2015) and AdamW (Loshchilov & Hutter, 2019).
#pragma once

#include "kiln/core/config.h"
#include "kiln/optim/optimizer.h"

namespace kiln::optim {

// g += weight_decay p;  m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;
// p -= lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps); amsgrad takes the largest v so
// far.
struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;
  bool amsgrad = false;
  KILN_CONFIG(AdamOptions, lr, beta1, beta2, eps, weight_decay, amsgrad)
};

class Adam : public Optimizer {
 public:
  explicit Adam(std::vector<Tensor> params, const AdamOptions& options = {})
      : Adam(detail::one_group(std::move(params)), options) {}
  explicit Adam(std::vector<ParamGroupOptions> groups, const AdamOptions& options = {});

  std::string type_name() const override { return "Adam"; }
  const AdamOptions& options() const { return options_; }

 protected:
  // For AdamW.
  Adam(const AdamOptions& options, bool decoupled) : options_(options), decoupled_(decoupled) {}

  std::vector<const char*> slot_names() const override;
  void update(const Batch& batch) override;
  void visit_options(OptionVisitor& visitor) override;
  void check_options() const override;
  double default_lr() const override { return options_.lr; }
  double default_weight_decay() const override { return options_.weight_decay; }

 private:
  AdamOptions options_;
  bool decoupled_ = false;
};

}  // namespace kiln::optim
