// kiln.optim: the steps that its Python classes take, each on one parameter group.
#include "kiln/tensor/nn/optimizer_steps.h"
#include "optim_group.h"

namespace kiln::python {

namespace {

using Slot = GroupMembers::Slot;

void refuse_differentiable(const GroupOptions& options) {
  static const DictKey kDifferentiable("differentiable");
  if (options.flag(kDifferentiable)) {
    throw_error<NotImplementedError>(options.op(),
                                     ": a step with differentiable=True is not there; try "
                                     "kiln.autograd.grad with create_graph=True and updates "
                                     "written with tensor ops");
  }
}

// What each step returns: how many parameters it changed.

size_t sgd_step(nb::handle group, nb::handle state, const Gradients* gradients) {
  static const DictKey kLr("lr"), kMomentum("momentum"), kDampening("dampening"),
      kDecay("weight_decay"), kNesterov("nesterov"), kBuffer("momentum_buffer");
  const GroupOptions options("SGD", group);
  refuse_differentiable(options);
  SgdStep step = {.lr = options.number(kLr),
                  .momentum = options.number(kMomentum),
                  .dampening = options.number(kDampening),
                  .weight_decay = options.number(kDecay),
                  .nesterov = options.flag(kNesterov)};
  NoGradGuard no_grad;
  GroupMembers members(options, state, gradients);
  if (members.size() == 0) return 0;
  Slot buffers;
  std::vector<std::pair<Tensor, size_t>> others;  // buffers of another dtype, and whose they are
  const bool has_momentum = step.momentum != 0.0;
  if (has_momentum) {
    members.find_state();
    buffers = members.slot(kBuffer, true);
    for (size_t i = 0; i < members.size(); ++i) {
      Tensor& buffer = buffers.tensors[i];
      if (buffer.dtype() == members.params[i].dtype()) continue;
      others.emplace_back(buffer, i);
      buffer = buffer.to(members.params[i].dtype());
    }
  }
  Slot* const slots[] = {&buffers};
  const std::span<Slot* const> used(slots, has_momentum ? 1 : 0);
  {
    const Unlocked lock(members.numel);
    for_each_batch(
        members, used,
        [&](size_t i, size_t j) { return !has_momentum || buffers.made[i] == buffers.made[j]; },
        [&](size_t first, auto params, auto grads, auto& tensors) {
          step.first_step = has_momentum && buffers.made[first];
          kiln::detail::sgd_step(params, grads, tensors[0], step);
        });
    for (auto& [buffer, i] : others) buffer.copy_(buffers.tensors[i]);
  }
  members.keep(used);
  return members.size();
}

size_t adam_step(nb::handle group, nb::handle state, const Gradients* gradients) {
  static const DictKey kLr("lr"), kBetas("betas"), kEps("eps"), kDecay("weight_decay"),
      kDecoupled("decoupled_weight_decay"), kAmsgrad("amsgrad"), kFirst("exp_avg"),
      kSecond("exp_avg_sq"), kLargest("max_exp_avg_sq");
  const bool decoupled = GroupOptions("Adam", group).flag(kDecoupled);
  const GroupOptions options(decoupled ? "AdamW" : "Adam", group);
  refuse_differentiable(options);
  const auto [beta1, beta2] = options.pair(kBetas);
  AdamStep step = {.lr = options.number(kLr),
                   .beta1 = beta1,
                   .beta2 = beta2,
                   .eps = options.number(kEps),
                   .weight_decay = options.number(kDecay),
                   .decoupled = decoupled,
                   .amsgrad = options.flag(kAmsgrad)};
  NoGradGuard no_grad;
  GroupMembers members(options, state, gradients);
  if (members.size() == 0) return 0;
  members.find_state();
  Slot first = members.slot(kFirst);
  Slot second = members.slot(kSecond);
  Slot largest;
  if (step.amsgrad) largest = members.slot(kLargest);
  Slot* const slots[] = {&first, &second, &largest};
  const std::span<Slot* const> used(slots, step.amsgrad ? 3 : 2);
  members.count_steps();
  {
    const Unlocked lock(members.numel);
    for_each_batch(
        members, used, [&](size_t i, size_t j) { return members.steps[i] == members.steps[j]; },
        [&](size_t at, auto params, auto grads, auto& tensors) {
          step.step = members.steps[at] + 1;
          kiln::detail::adam_step(params, grads, tensors[0], tensors[1], tensors[2], step);
        });
  }
  members.keep(used);
  return members.size();
}

void zero_grad(nb::handle params, bool set_to_none) {
  for (nb::handle item : params) {
    Tensor param = tensor_arg("zero_grad", item);
    param.zero_grad(set_to_none);
  }
}

}  // namespace

void bind_optim(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("_optim", "Optimizers' steps, and gradient clipping.");
  const auto gradients = nb::arg("gradients").none() = nb::none();
  m.def("sgd_step", &sgd_step, "group"_a, "state"_a, gradients,
        "A step of SGD on a parameter group; how many parameters had a gradient.");
  m.def("adam_step", &adam_step, "group"_a, "state"_a, gradients,
        "A step of Adam or AdamW on a parameter group; how many parameters had a gradient.");
  m.def("zero_grad", &zero_grad, "params"_a, "set_to_none"_a = true);
  m.def(
      "clip_grad_norm_",
      [](const std::vector<Tensor>& params, double max_norm, double norm_type,
         bool error_if_nonfinite) {
        Unlocked lock;
        return optim::clip_grad_norm_(params, max_norm, norm_type, error_if_nonfinite);
      },
      "parameters"_a, "max_norm"_a, "norm_type"_a = 2.0, "error_if_nonfinite"_a = false);
  m.def(
      "clip_grad_value_",
      [](const std::vector<Tensor>& params, double clip_value) {
        Unlocked lock;
        optim::clip_grad_value_(params, clip_value);
      },
      "parameters"_a, "clip_value"_a);
}

}  // namespace kiln::python
