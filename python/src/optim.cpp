// kiln.optim: what its Python classes stand on.
#include <nanobind/stl/map.h>

#include "binding.h"

namespace kiln::python {

namespace {

using optim::Optimizer;
using optim::ParamGroup;
using optim::ParamGroupOptions;

// A group of parameters, read and changed as a dict: group['lr'] = 0.1.
nb::object group_item(const ParamGroup& g, const std::string& key) {
  if (key == "lr") return nb::float_(g.lr);
  if (key == "weight_decay") return nb::float_(g.weight_decay);
  if (key == "initial_lr") return nb::float_(g.initial_lr);
  if (key == "params") return nb::cast(g.params);
  throw nb::key_error(key.c_str());
}

void set_group_item(ParamGroup& g, const std::string& key, double value) {
  if (key == "lr") {
    g.lr = value;
  } else if (key == "weight_decay") {
    g.weight_decay = value;
  } else if (key == "initial_lr") {
    g.initial_lr = value;
  } else {
    throw nb::key_error(key.c_str());
  }
}

ParamGroupOptions group_of(nb::handle dict) {
  ParamGroupOptions group;
  for (const auto& [key, value] : nb::cast<nb::dict>(dict)) {
    const auto name = nb::cast<std::string>(key);
    if (name == "params") {
      group.params = nb::cast<std::vector<Tensor>>(value);
    } else if (name == "lr") {
      group.lr = nb::cast<double>(value);
    } else if (name == "weight_decay") {
      group.weight_decay = nb::cast<double>(value);
    } else {
      throw_error<ValueError>(
          "param group: only params, lr and weight_decay are a group's own; "
          "got '",
          name, "'");
    }
  }
  return group;
}

std::vector<ParamGroupOptions> groups_of(const nb::list& dicts) {
  std::vector<ParamGroupOptions> groups;
  for (nb::handle dict : dicts) groups.push_back(group_of(dict));
  return groups;
}

void bind_optimizers(nb::module_& m) {
  nb::class_<ParamGroup>(m, "ParamGroup", "Parameters with settings of their own.")
      .def_rw("lr", &ParamGroup::lr)
      .def_rw("weight_decay", &ParamGroup::weight_decay)
      .def_rw("initial_lr", &ParamGroup::initial_lr)
      .def_prop_ro("params", [](const ParamGroup& g) { return g.params; })
      .def("__getitem__", &group_item)
      .def("__setitem__", &set_group_item)
      .def("__contains__",
           [](const ParamGroup&, const std::string& key) {
             return key == "lr" || key == "weight_decay" || key == "initial_lr" || key == "params";
           })
      .def("keys", [](const ParamGroup&) {
        return std::vector<std::string>{"params", "lr", "weight_decay", "initial_lr"};
      });
  nb::class_<Optimizer>(m, "Optimizer", nb::dynamic_attr(), nb::is_weak_referenceable())
      .def("_step",
           [](Optimizer& o) {
             Unlocked lock;
             o.step();
           })
      .def("_step_with",
           [](Optimizer& o, const Gradients& gradients) {
             Unlocked lock;
             o.step(gradients);
           })
      .def("zero_grad", &Optimizer::zero_grad, "set_to_none"_a = true)
      .def_prop_ro("param_groups",
                   [](nb::handle self) {
                     auto& groups = nb::inst_ptr<Optimizer>(self)->param_groups();
                     nb::list out;
                     for (ParamGroup& group : groups) {
                       nb::object item = nb::cast(&group, nb::rv_policy::reference);
                       nb::detail::keep_alive(item.ptr(), self.ptr());
                       out.append(item);
                     }
                     return out;
                   })
      .def("_add_param_group",
           [](Optimizer& o, const nb::dict& group) { o.add_param_group(group_of(group)); })
      .def("_type_name", &Optimizer::type_name)
      .def("_state",
           [](const Optimizer& o) {
             const optim::OptimizerState state = o.state_dict();
             nb::dict tensors;
             for (const auto& [name, value] : state.tensors) tensors[name.c_str()] = value;
             return nb::make_tuple(tensors, state.scalars);
           })
      .def("_load_state", [](Optimizer& o, const nb::dict& tensors,
                             const std::map<std::string, std::string>& scalars) {
        optim::OptimizerState state;
        for (const auto& [name, value] : tensors) {
          state.tensors.set(nb::cast<std::string>(name), nb::cast<Tensor>(value));
        }
        state.scalars = scalars;
        o.load_state_dict(state);
      });
  nb::class_<optim::SGD, Optimizer>(m, "SGD").def(
      "__init__",
      [](optim::SGD* self, const nb::list& groups, double lr, double momentum, double dampening,
         double weight_decay, bool nesterov) {
        new (self) optim::SGD(groups_of(groups), {lr, momentum, dampening, weight_decay, nesterov});
      },
      "groups"_a, "lr"_a, "momentum"_a, "dampening"_a, "weight_decay"_a, "nesterov"_a);
  nb::class_<optim::Adam, Optimizer>(m, "Adam").def(
      "__init__",
      [](optim::Adam* self, const nb::list& groups, double lr, std::pair<double, double> betas,
         double eps, double weight_decay, bool amsgrad) {
        new (self) optim::Adam(groups_of(groups),
                               {lr, betas.first, betas.second, eps, weight_decay, amsgrad});
      },
      "groups"_a, "lr"_a, "betas"_a, "eps"_a, "weight_decay"_a, "amsgrad"_a);
  nb::class_<optim::AdamW, optim::Adam>(m, "AdamW")
      .def(
          "__init__",
          [](optim::AdamW* self, const nb::list& groups, double lr, std::pair<double, double> betas,
             double eps, double weight_decay, bool amsgrad) {
            new (self) optim::AdamW(groups_of(groups),
                                    {lr, betas.first, betas.second, eps, weight_decay, amsgrad});
          },
          "groups"_a, "lr"_a, "betas"_a, "eps"_a, "weight_decay"_a, "amsgrad"_a);
}

void bind_schedulers(nb::module_& m) {
  using optim::LRScheduler;
  nb::class_<LRScheduler>(m, "LRScheduler", nb::dynamic_attr())
      .def("step", [](LRScheduler& s) { s.step(); })
      .def_prop_rw("last_epoch", &LRScheduler::last_epoch, &LRScheduler::set_epoch)
      .def("get_last_lr", &LRScheduler::get_last_lr)
      .def("lr_at", &LRScheduler::lr_at, "base"_a, "epoch"_a,
           "The rate at an epoch for a group that began with base.")
      .def("state_dict",
           [](const LRScheduler& s) {
             nb::dict out;
             out["last_epoch"] = s.last_epoch();
             return out;
           })
      .def(
          "load_state_dict",
          [](LRScheduler& s, const nb::dict& state) {
            s.set_epoch(nb::cast<int64_t>(state["last_epoch"]));
          },
          "state_dict"_a);
  // A scheduler looks at its optimizer, and keeps it.
  const auto keep = nb::keep_alive<1, 2>();
  nb::class_<optim::StepLR, LRScheduler>(m, "StepLR")
      .def(nb::init<Optimizer&, int64_t, double>(), "optimizer"_a, "step_size"_a, "gamma"_a = 0.1,
           keep);
  nb::class_<optim::CosineAnnealingLR, LRScheduler>(m, "CosineAnnealingLR")
      .def(nb::init<Optimizer&, int64_t, double>(), "optimizer"_a, "T_max"_a, "eta_min"_a = 0.0,
           keep);
  nb::class_<optim::LinearLR, LRScheduler>(m, "LinearLR")
      .def(nb::init<Optimizer&, double, double, int64_t>(), "optimizer"_a,
           "start_factor"_a = 1.0 / 3.0, "end_factor"_a = 1.0, "total_iters"_a = 5, keep);
  nb::class_<optim::SequentialLR, LRScheduler>(m, "SequentialLR")
      .def(
          "__init__",
          [](optim::SequentialLR* self, Optimizer& optimizer, const nb::list& schedulers,
             const std::vector<int64_t>& milestones) {
            std::vector<std::shared_ptr<LRScheduler>> parts;
            for (nb::handle item : schedulers) {
              // Owned by its Python object, which the pointer keeps.
              auto* raw = nb::cast<LRScheduler*>(item);
              parts.push_back({raw, [held = HeldObject(nb::borrow(item))](LRScheduler*) {}});
            }
            new (self) optim::SequentialLR(optimizer, std::move(parts), milestones);
          },
          "optimizer"_a, "schedulers"_a, "milestones"_a, keep);
}

}  // namespace

void bind_optim(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("_optim", "Optimizers and schedules.");
  bind_optimizers(m);
  bind_schedulers(m);
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
