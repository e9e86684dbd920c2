#include "kiln/optim/sgd.h"

#include "kiln/core/error.h"
#include "kiln/tensor/nn/optimizer_steps.h"

namespace kiln::optim {

SGD::SGD(std::vector<ParamGroupOptions> groups, const SGDOptions& options) : options_(options) {
  add_groups(std::move(groups));
}

void SGD::check_options() const {
  detail::check_not_negative("SGD", "lr", options_.lr);
  detail::check_not_negative("SGD", "momentum", options_.momentum);
  detail::check_not_negative("SGD", "weight_decay", options_.weight_decay);
  if (options_.nesterov && (options_.momentum == 0.0 || options_.dampening != 0.0)) {
    throw_error<ValueError>("SGD: nesterov needs momentum and no dampening; got momentum ",
                            options_.momentum, " and dampening ", options_.dampening);
  }
}

std::vector<const char*> SGD::slot_names() const {
  if (options_.momentum == 0.0) return {};
  return {"momentum_buffer"};
}

void SGD::update(const Batch& batch) {
  const SgdStep step = {.lr = batch.group.lr,
                        .momentum = options_.momentum,
                        .dampening = options_.dampening,
                        .weight_decay = batch.group.weight_decay,
                        .nesterov = options_.nesterov,
                        .first_step = batch.steps_before == 0};
  const std::span<Tensor> momentum = batch.slots.empty() ? std::span<Tensor>() : batch.slots[0];
  kiln::detail::sgd_step(batch.params, batch.grads, momentum, step);
}

void SGD::visit_options(OptionVisitor& visitor) {
  visitor.number("momentum", options_.momentum);
  visitor.number("dampening", options_.dampening);
  visitor.flag("nesterov", options_.nesterov);
}

}  // namespace kiln::optim
