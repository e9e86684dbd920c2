// SGD: stochastic gradient descent, with momentum (Sutskever et al., 2013, for Nesterov's).
#pragma once

#include "kiln/core/config.h"
#include "kiln/optim/optimizer.h"

namespace kiln::optim {

// g += weight_decay p;  buf = momentum buf + (1 - dampening) g  (buf = g at first);
// g = nesterov ? g + momentum buf : buf;  p -= lr g.
struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0.0;
  double dampening = 0.0;
  double weight_decay = 0.0;
  bool nesterov = false;  // needs momentum, and no dampening
  KILN_CONFIG(SGDOptions, lr, momentum, dampening, weight_decay,
              doc(nesterov, "needs momentum, and no dampening"))
};

class SGD : public Optimizer {
 public:
  explicit SGD(std::vector<Tensor> params, const SGDOptions& options = {})
      : SGD(detail::one_group(std::move(params)), options) {}
  explicit SGD(std::vector<ParamGroupOptions> groups, const SGDOptions& options = {});

  std::string type_name() const override { return "SGD"; }
  const SGDOptions& options() const { return options_; }

 protected:
  std::vector<const char*> slot_names() const override;
  void update(const Batch& batch) override;
  void visit_options(OptionVisitor& visitor) override;
  void check_options() const override;
  double default_lr() const override { return options_.lr; }
  double default_weight_decay() const override { return options_.weight_decay; }

 private:
  SGDOptions options_;
};

}  // namespace kiln::optim
