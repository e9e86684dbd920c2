// Hooks of modules with Python functions.
//
// The functions stand in dicts of the module (_forward_hooks and so on), by number, where the
// garbage collector and pickle see them. What C++ holds is that number.
#include "gil.h"
#include "kiln/core/warning.h"
#include "kiln/nn/backward_hooks.h"
#include "nn_module.h"

namespace kiln::python {

namespace {

// Where a hook's function is: in a module's own dict, or in the one of all modules.
struct Place {
  std::string dict;
  int64_t id = 0;
  bool global = false;
};

nb::object function_of(const Place& place, nn::Module& module, nb::object* self) {
  const auto* python = dynamic_cast<const PyModule*>(&module);
  *self = python == nullptr ? nb::none() : nb::borrow(python->self());
  nb::object owner = place.global
                         ? nb::object(nb::module_::import_("kiln.nn.module_hooks").attr("_global"))
                         : nb::object(self->attr("__dict__"));
  const nb::object dict = owner[place.dict.c_str()];
  return dict.attr("get")(place.id);
}

nb::tuple tuple_of_args(nn::HookArgs& args) {
  nb::list out;
  for (const nn::HookValue& value : args.args) {
    if (auto* python = value.get_if<PyValue>()) {
      out.append(python->get());
    } else if (const Tensor* x = value.tensor_if()) {
      out.append(nb::cast(*x));
    } else {
      out.append(nb::none());
    }
  }
  return nb::tuple(out);
}

nb::dict dict_of_args(nn::HookArgs& args) {
  nb::dict out;
  for (auto& [name, value] : args.kwargs) {
    if (auto* python = value.get_if<PyValue>()) out[name.c_str()] = python->get();
  }
  return out;
}

nn::HookValue value_of_object(nb::handle object) {
  return nn::HookValue::own(PyValue(nb::borrow(object)));
}

// In the call of a C++ module an argument keeps its C++ type.
void replace(nn::HookValue& place, nb::handle object) {
  if (place.has_value() && place.get_if<PyValue>() == nullptr) {
    if (const Tensor* x = tensor_pointer(object.ptr())) place.tensor() = *x;
    return;
  }
  place = value_of_object(object);
}

void set_args(nn::HookArgs& args, const nb::tuple& values) {
  const bool python = args.args.empty() || args.args[0].get_if<PyValue>() != nullptr;
  if (python) args.args.resize(values.size());
  for (size_t i = 0; i < std::min(args.args.size(), values.size()); ++i) {
    replace(args.args[i], values[i]);
  }
}

void set_kwargs(nn::HookArgs& args, const nb::dict& values) {
  args.kwargs.clear();
  for (nb::handle item : values.items()) {
    const nb::object name = nb::borrow<nb::tuple>(item)[0], value = nb::borrow<nb::tuple>(item)[1];
    args.kwargs.emplace_back(nb::cast<std::string>(name), value_of_object(value));
  }
}

void run_forward_pre(const Place& place, bool with_kwargs, nn::Module& module, nn::HookArgs& args) {
  Locked lock;
  nb::object self;
  const nb::object hook = function_of(place, module, &self);
  if (hook.is_none()) return;
  if (!with_kwargs) {
    const nb::object result = hook(self, tuple_of_args(args));
    if (result.is_none()) return;
    set_args(args,
             PyTuple_Check(result.ptr()) ? nb::borrow<nb::tuple>(result) : nb::make_tuple(result));
    return;
  }
  const nb::object result = hook(self, tuple_of_args(args), dict_of_args(args));
  if (result.is_none()) return;
  if (!PyTuple_Check(result.ptr()) || tuple_size(result.ptr()) != 2) {
    throw_error<RuntimeError>(
        "forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got ",
        repr_of(result), ".");
  }
  const nb::object first = result[0];
  set_args(args, PyTuple_Check(first.ptr()) ? nb::borrow<nb::tuple>(first) : nb::make_tuple(first));
  const nb::object second = result[1];
  if (!PyDict_Check(second.ptr())) {
    throw_error<RuntimeError>("forward pre-hook must return a dict of keyword arguments; got ",
                              name_of_type(second));
  }
  set_kwargs(args, nb::borrow<nb::dict>(second));
}

void run_forward(const Place& place, bool with_kwargs, nn::Module& module, nn::HookArgs& args,
                 nn::HookValue& output) {
  Locked lock;
  nb::object self;
  const nb::object hook = function_of(place, module, &self);
  if (hook.is_none()) return;
  nb::object value = nb::none();
  if (auto* python = output.get_if<PyValue>()) {
    value = python->get();
  } else if (const Tensor* x = output.tensor_if()) {
    value = nb::cast(*x);
  }
  const nb::object result = with_kwargs ? hook(self, tuple_of_args(args), dict_of_args(args), value)
                                        : hook(self, tuple_of_args(args), value);
  if (!result.is_none()) replace(output, result);
}

std::optional<nn::Gradient> gradient_of(nb::handle result) {
  if (result.is_none()) return std::nullopt;
  nn::Gradient out;
  if (const Tensor* x = tensor_pointer(result.ptr())) {
    out.push_back(*x);
    return out;
  }
  if (!PyTuple_Check(result.ptr()) && !PyList_Check(result.ptr())) {
    throw nb::type_error(concat("backward hook: expected None, a tensor or a tuple of them; got ",
                                name_of_type(result))
                             .c_str());
  }
  for (nb::handle item : nb::tuple(result)) {
    out.push_back(item.is_none() ? Tensor() : tensor_arg("backward hook", item));
  }
  return out;
}

std::optional<nn::Gradient> run_backward(const Place& place, nn::Module& module,
                                         const nn::Gradient& grad_input,
                                         const nn::Gradient& grad_output) {
  Locked lock;
  nb::object self;
  const nb::object hook = function_of(place, module, &self);
  if (hook.is_none()) return std::nullopt;
  return gradient_of(hook(self, tuple_of(grad_input), tuple_of(grad_output)));
}

std::optional<nn::Gradient> run_backward_pre(const Place& place, nn::Module& module,
                                             const nn::Gradient& grad_output) {
  Locked lock;
  nb::object self;
  const nb::object hook = function_of(place, module, &self);
  if (hook.is_none()) return std::nullopt;
  return gradient_of(hook(self, tuple_of(grad_output)));
}

// A module of Python's lives as long as a graph that calls its hooks, as in PyTorch.
std::shared_ptr<void> keep_module(nn::Module& module) {
  const auto* python = dynamic_cast<const PyModule*>(&module);
  if (python == nullptr) return nullptr;
  const Locked lock;
  return HeldObject(nb::borrow(python->self())).foreign();
}

// Registers a hook whose function is in `dict` under `id`; module: None for all modules.
HookHandle register_hook(nb::handle module, const std::string& kind, const std::string& dict,
                         int64_t id, bool prepend, bool with_kwargs, bool always_call) {
  const bool global = module.is_none();
  const Place place{dict, id, global};
  nn::Module* m = global ? nullptr : &module_arg("register_hook", module);
  if (kind == "forward_pre") {
    nn::ForwardPreHook hook = [place, with_kwargs](nn::Module& x, nn::HookArgs& args) {
      run_forward_pre(place, with_kwargs, x, args);
    };
    return global ? nn::register_module_forward_pre_hook(std::move(hook))
                  : m->register_forward_pre_hook(std::move(hook), prepend);
  }
  if (kind == "forward") {
    nn::ForwardHook hook = [place, with_kwargs](nn::Module& x, nn::HookArgs& args,
                                                nn::HookValue& output) {
      run_forward(place, with_kwargs, x, args, output);
    };
    return global ? nn::register_module_forward_hook(std::move(hook), always_call)
                  : m->register_forward_hook(std::move(hook), {prepend, always_call});
  }
  if (kind == "backward_pre") {
    nn::BackwardPreHook hook = [place](nn::Module& x, const nn::Gradient& grad_output) {
      return run_backward_pre(place, x, grad_output);
    };
    return global ? nn::register_module_full_backward_pre_hook(std::move(hook))
                  : m->register_full_backward_pre_hook(std::move(hook), prepend);
  }
  nn::BackwardHook hook = [place](nn::Module& x, const nn::Gradient& grad_input,
                                  const nn::Gradient& grad_output) {
    return run_backward(place, x, grad_input, grad_output);
  };
  if (kind == "backward") {
    return global ? nn::register_module_full_backward_hook(std::move(hook))
                  : m->register_full_backward_hook(std::move(hook), prepend);
  }
  return global ? nn::register_module_backward_hook(std::move(hook))
                : m->register_backward_hook(std::move(hook));
}

}  // namespace

PyValue::PyValue(nb::object object) : object_(std::move(object)) {
  if (const Tensor* x = tensor_pointer(object_.ptr())) {
    kind_ = Kind::tensor;
    tensors_.push_back(*x);
  } else if (PyTuple_CheckExact(object_.ptr()) || PyList_CheckExact(object_.ptr())) {
    kind_ = Kind::collection;
    for (nb::handle item : nb::tuple(object_)) {
      const Tensor* element = tensor_pointer(item.ptr());
      tensors_.push_back(element == nullptr ? Tensor() : *element);
    }
  }
}

nb::object PyValue::get() {
  if (kind_ == Kind::tensor && !tensors_[0].is_same(*tensor_pointer(object_.ptr()))) {
    object_ = nb::cast(tensors_[0]);
  }
  if (kind_ != Kind::collection) return object_;
  nb::list items;
  bool changed = false;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    nb::object item = object_[i];
    if (tensors_[i].defined() && !tensors_[i].is_same(tensor_arg("hook", item))) {
      item = nb::cast(tensors_[i]);
      changed = true;
    }
    items.append(item);
  }
  if (changed) object_ = PyTuple_Check(object_.ptr()) ? nb::object(nb::tuple(items)) : items;
  return object_;
}

nb::object call_with_hooks(nb::handle self, const nb::tuple& args, const nb::dict& kwargs) {
  PyModule& module = module_arg("call", self);
  nn::HookArgs held;
  for (nb::handle arg : args) held.args.push_back(value_of_object(arg));
  set_kwargs(held, kwargs);
  nn::HookValue output = nn::detail::call_module(module, held, [&] {
    const nb::object forward = self.attr("forward");
    const nb::tuple positional = tuple_of_args(held);
    const nb::dict keywords = dict_of_args(held);
    nb::object result = nb::steal(PyObject_Call(forward.ptr(), positional.ptr(), keywords.ptr()));
    if (!result.is_valid()) throw nb::python_error();
    return nn::HookValue::own(PyValue(std::move(result)));
  });
  if (auto* value = output.get_if<PyValue>()) return value->get();
  return output.is_tensor() ? nb::cast(output.tensor()) : nb::none();
}

void bind_module_hooks(nb::module_& m) {
  nn::detail::set_module_keeper(&keep_module);
  m.def("_register_hook", &register_hook, nb::arg("module").none(), "kind"_a, "dict"_a, "id"_a,
        "prepend"_a, "with_kwargs"_a, "always_call"_a);
}

}  // namespace kiln::python
