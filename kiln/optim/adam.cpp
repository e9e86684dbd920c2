#include "kiln/optim/adam.h"

#include "kiln/core/error.h"
#include "kiln/tensor/nn/optimizer_steps.h"

namespace kiln::optim {

Adam::Adam(std::vector<ParamGroupOptions> groups, const AdamOptions& options) : options_(options) {
  add_groups(std::move(groups));
}

void Adam::check_options() const {
  const std::string op = type_name();
  detail::check_not_negative(op, "lr", options_.lr);
  detail::check_not_negative(op, "eps", options_.eps);
  detail::check_not_negative(op, "weight_decay", options_.weight_decay);
  for (const double beta : {options_.beta1, options_.beta2}) {
    if (!(beta >= 0.0 && beta < 1.0)) {
      throw_error<ValueError>(op, ": beta1 and beta2 must be in [0, 1); got ", options_.beta1,
                              " and ", options_.beta2);
    }
  }
}

std::vector<const char*> Adam::slot_names() const {
  if (options_.amsgrad) return {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"};
  return {"exp_avg", "exp_avg_sq"};
}

void Adam::update(const Batch& batch) {
  const AdamStep step = {.lr = batch.group.lr,
                         .beta1 = options_.beta1,
                         .beta2 = options_.beta2,
                         .eps = options_.eps,
                         .weight_decay = batch.group.weight_decay,
                         .decoupled = decoupled_,
                         .amsgrad = options_.amsgrad,
                         .step = batch.steps_before + 1};
  const std::span<Tensor> largest = options_.amsgrad ? batch.slots[2] : std::span<Tensor>();
  kiln::detail::adam_step(batch.params, batch.grads, batch.slots[0], batch.slots[1], largest, step);
}

void Adam::visit_options(OptionVisitor& visitor) {
  visitor.number("beta1", options_.beta1);
  visitor.number("beta2", options_.beta2);
  visitor.number("eps", options_.eps);
  visitor.flag("amsgrad", options_.amsgrad);
}

}  // namespace kiln::optim
