// Gradients: a tensor's part in a graph, backward passes, hooks.
#include "binding.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln::python {

namespace {

// What x.grad_fn is: the op that made a tensor, or a leaf behind one.
struct GradFn {
  Handle<autodiff::Node<Dispatch>> node;

  std::string name() const { return node->is_leaf() ? "AccumulateGrad" : node->name(); }

  // For each operand of the op a pair: where its gradient goes, or None, and which of that one's
  // results it is.
  nb::tuple next_functions() const {
    nb::list out;
    for (const autodiff::Edge<Dispatch>& edge : node->edges()) {
      const nb::object function = edge.node ? nb::cast(GradFn{edge.node}) : nb::none();
      out.append(nb::make_tuple(function, edge.slot));
    }
    return nb::tuple(out);
  }
};

// The hook of a tensor, from a Python function. See Note [The interpreter's lock].
Tensor call_hook(void* function, const Tensor& grad) {
  Locked lock;
  const nb::object result = HeldObject::from(function)(grad);
  if (result.is_none()) return {};
  const Tensor* replaced = tensor_pointer(result.ptr());
  if (replaced == nullptr) {
    throw nb::type_error(
        concat("hook: expected a tensor or None; got ", name_of_type(result)).c_str());
  }
  return *replaced;
}

std::function<Tensor(const Tensor&)> hook_of(nb::object function) {
  return interop::ForeignCall<Tensor(const Tensor&)>{HeldObject(std::move(function)).foreign(),
                                                     &call_hook};
}

void accumulate_into(const std::vector<Tensor>& inputs, const Tensor& x, const Tensor& gradient,
                     std::optional<bool> retain_graph, bool create_graph) {
  GradOptions options;
  if (gradient.defined()) options.grad_outputs = {gradient};
  options.retain_graph = retain_graph;
  options.create_graph = create_graph;
  options.allow_unused = true;
  const std::vector<Tensor> grads = grad(std::span(&x, 1), inputs, options);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!grads[i].defined()) continue;
    Tensor input = inputs[i];
    const Tensor before = input.grad();
    if (before.defined()) {
      input.set_grad(before.add(grads[i]));
      continue;
    }
    const Tensor rows = grads[i].contiguous();  // as backward() leaves them
    input.set_grad(rows.is_same(grads[i]) ? rows.clone() : rows);
  }
}

autograd::PackHook pack_of(nb::object function) {
  return [held = HeldObject(std::move(function))](const Tensor& x) -> std::any {
    Locked lock;
    return HeldObject(held.get()(x));
  };
}

autograd::UnpackHook unpack_of(nb::object function) {
  return [held = HeldObject(std::move(function))](const std::any& kept) -> Tensor {
    Locked lock;
    const nb::object result = held.get()(std::any_cast<const HeldObject&>(kept).get());
    return tensor_arg("saved_tensors_hooks", result);
  };
}

void bind_state(TensorClass& c) {
  c.def_prop_rw(
       "requires_grad", [](const Tensor& x) { return x.requires_grad(); },
       [](Tensor& x, bool value) { x.requires_grad_(value); })
      .def(
          "requires_grad_", [](Tensor& x, bool value) { return x.requires_grad_(value); },
          "requires_grad"_a = true, "Marks a leaf as wanting a gradient, or not.")
      .def_prop_ro("is_leaf", [](const Tensor& x) { return x.is_leaf(); })
      .def_prop_rw(
          "grad",
          [](const Tensor& x) -> OptionalTensor {
            if (x.is_leaf()) return {x.grad()};
            // Its node may be at work on another thread, which must not wait for the lock held
            // here.
            Unlocked lock;
            return {x.grad()};
          },
          [](Tensor& x, const OptionalTensor& grad) { x.set_grad(grad.value); },
          nb::arg("grad").none(), "The accumulated gradient, or None.",
          nb::for_getter(nb::sig("def grad(self) -> Tensor | None")),
          nb::for_setter(nb::sig("def grad(self, grad: Tensor | None) -> None")))
      .def_prop_ro("grad_fn",
                   [](const Tensor& x) -> std::optional<GradFn> {
                     if (x.is_leaf()) return std::nullopt;
                     return GradFn{kiln::detail::parts_or_value("grad_fn", x).node};
                   })
      .def_prop_rw(
          "data", [](const Tensor& x) { return x.variable_data(); },
          [](Tensor& x, const Tensor& source) { interop::set_data(x, source); }, "data"_a,
          "The same memory without history; assigning replaces the memory. What is written "
          "through\n"
          "it does not raise `_version`: a backward pass does not see it.")
      .def(
          "detach", [](const Tensor& x) { return x.detach(); },
          "The same values without history; shares memory.")
      .def(
          "retain_grad", [](Tensor& x) { x.retain_grad(); },
          "Keeps the gradient of a tensor that is no leaf in grad.")
      .def(
          "register_hook",
          [](const Tensor& x, nb::object hook) { return x.register_hook(hook_of(hook)); }, "hook"_a,
          "Calls hook(grad) when this tensor's gradient is computed; a tensor that it returns "
          "replaces the gradient.");
}

void bind_passes(nb::module_& m, TensorClass& c) {
  c.def(
      "backward",
      [](const Tensor& x, const OptionalTensor& gradient, std::optional<bool> retain_graph,
         bool create_graph, nb::handle inputs) {
        std::vector<Tensor> wanted;
        if (const Tensor* one = tensor_pointer(inputs.ptr())) {
          wanted.push_back(*one);
        } else if (!inputs.is_none()) {
          for (nb::handle item : nb::list(nb::borrow(inputs))) {
            wanted.push_back(tensor_arg("backward: inputs", item));
          }
          if (wanted.empty()) {
            throw_error<RuntimeError>("backward: the list of inputs is empty; expected a tensor");
          }
        }
        Unlocked lock;
        if (!wanted.empty()) {
          accumulate_into(wanted, x, gradient, retain_graph, create_graph);
        } else {
          x.backward_accumulate(gradient, retain_graph.value_or(create_graph), create_graph);
        }
      },
      nb::arg("gradient").none() = nb::none(), "retain_graph"_a = nb::none(),
      "create_graph"_a = false, "inputs"_a = nb::none(),
      "Adds the gradients of this scalar (or of the sum weighted by gradient) into the grad of "
      "each leaf that requires one.");
  c.def(
      "gradients",
      [](const Tensor& x, const OptionalTensor& gradient, std::optional<bool> retain_graph,
         bool create_graph) {
        Unlocked lock;
        return x.backward(gradient, retain_graph.value_or(create_graph), create_graph);
      },
      nb::arg("gradient").none() = nb::none(), "retain_graph"_a = nb::none(),
      "create_graph"_a = false,
      "The gradients of this scalar with respect to each leaf that requires one, as an object of "
      "their own; touches no grad.");
  m.def(
      "grad",
      [](const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
         const std::vector<OptionalTensor>& grad_outputs, std::optional<bool> retain_graph,
         bool create_graph, bool allow_unused) {
        GradOptions options;
        for (const OptionalTensor& g : grad_outputs) options.grad_outputs.push_back(g.value);
        options.retain_graph = retain_graph;
        options.create_graph = create_graph;
        options.allow_unused = allow_unused;
        std::vector<Tensor> grads;
        {
          Unlocked lock;
          grads = grad(outputs, inputs, options);
        }
        return tuple_of(grads);
      },
      "outputs"_a, "inputs"_a, "grad_outputs"_a, "retain_graph"_a = nb::none(),
      "create_graph"_a = false, "allow_unused"_a = false);
  m.def("is_grad_enabled", &is_grad_enabled);
  m.def("_set_grad_enabled", &set_grad_enabled);
  m.def("_push_saved_tensors_hooks", [](nb::object pack, nb::object unpack) {
    autograd::push_saved_tensors_hooks(pack_of(std::move(pack)), unpack_of(std::move(unpack)));
  });
  m.def("_pop_saved_tensors_hooks", &autograd::pop_saved_tensors_hooks);
}

}  // namespace

void bind_autograd(nb::module_& m, TensorClass& c) {
  nb::class_<GradFn>(m, "GradFn", "The op that made a tensor.")
      .def("name", &GradFn::name)
      .def_prop_ro("next_functions", &GradFn::next_functions,
                   "For each operand where its gradient goes, as a pair of a GradFn (or None) and "
                   "an index.",
                   nb::sig("def next_functions(self) -> tuple[tuple[GradFn | None, int], ...]"))
      .def("__eq__",
           [](const GradFn& a, nb::handle b) {
             return nb::isinstance<GradFn>(b) &&
                    nb::inst_ptr<GradFn>(b)->node.get() == a.node.get();
           })
      .def("__hash__", [](const GradFn& f) { return std::hash<const void*>()(f.node.get()); })
      .def("__repr__", [](const GradFn& f) { return "<" + f.name() + ">"; });
  nb::class_<HookHandle>(m, "RemovableHandle", "Removes a hook; as a context manager, at its end.")
      .def("remove", &HookHandle::remove)
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__exit__", [](HookHandle& h, const nb::args&) { h.remove(); });
  nb::class_<Gradients>(m, "Gradients", "A gradient for each leaf, apart from the leaves.")
      .def("__len__", &Gradients::size)
      .def("__contains__",
           [](const Gradients& g, const Tensor& x) { return x.grad(g).has_value(); })
      .def(
          "get", [](const Gradients& g, const Tensor& x) { return x.grad(g); }, "tensor"_a,
          "The gradient of a tensor, or None.")
      .def("__getitem__",
           [](const Gradients& g, const Tensor& x) {
             std::optional<Tensor> found = x.grad(g);
             if (!found) throw nb::key_error("Gradients: no gradient for this tensor");
             return *found;
           })
      .def("__setitem__",
           [](Gradients& g, const Tensor& x, const Tensor& value) { x.grad_replace(g, value); })
      .def(
          "replace",
          [](Gradients& g, const Tensor& x, const Tensor& value) { x.grad_replace(g, value); },
          "tensor"_a, "grad"_a,
          "Puts grad in the place of a tensor's gradient, or adds it. An error unless it is like "
          "the "
          "tensor.")
      .def(
          "remove", [](Gradients& g, const Tensor& x) { return x.grad_remove(g); }, "tensor"_a,
          "Takes the gradient of a tensor out, or None.");
  bind_state(c);
  bind_passes(m, c);
}

}  // namespace kiln::python
