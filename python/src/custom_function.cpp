// What kiln.autograd.Function is built on: a function of Python with a derivative in Python.
#include "kiln/tensor/autograd/custom_function.h"

#include "binding.h"

namespace kiln::python {

namespace {

std::string class_name(nb::handle object) { return std::string(name_of_type(object)); }

// The items of a tuple, or the one object that stands for it.
std::vector<nb::object> items_of(const nb::object& result) {
  std::vector<nb::object> items;
  if (PyTuple_Check(result.ptr())) {
    for (nb::handle item : nb::borrow<nb::tuple>(result)) items.push_back(nb::borrow(item));
  } else {
    items.push_back(result);
  }
  return items;
}

// Undefined where the object is no tensor.
TensorList tensors_of(const std::vector<nb::object>& items) {
  TensorList out;
  for (const nb::object& item : items) {
    const Tensor* x = tensor_pointer(item.ptr());
    out.push_back(x == nullptr ? Tensor() : *x);
  }
  return out;
}

TensorList gradients_of(const std::string& name, const nb::object& result) {
  const bool is_list = PyList_Check(result.ptr());
  const std::vector<nb::object> items =
      items_of(is_list ? nb::steal(PySequence_Tuple(result.ptr())) : result);
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].is_none() || tensor_pointer(items[i].ptr()) != nullptr) continue;
    throw nb::type_error(concat(name, ".backward: gradient ", i, " is no tensor; got ",
                                class_name(items[i]), "; expected a tensor or None")
                             .c_str());
  }
  return tensors_of(items);
}

// See Note [The interpreter's lock]: a pass runs without it.
FunctionBackward backward_of(const std::string& name, nb::object function) {
  const HeldObject both(nb::make_tuple(name, function));
  const auto call = [](void* object, FunctionContext&, const TensorList& grads) -> TensorList {
    Locked lock;
    const nb::object both = HeldObject::from(object);
    return gradients_of(nb::cast<std::string>(both[0]), both[1](*tuple_of(grads)));
  };
  return interop::ForeignCall<TensorList(FunctionContext&, const TensorList&)>{both.foreign(),
                                                                               call};
}

// forward(state) gives what the call gives; its tensors come back with their history. `backward` is
// called with the gradient of each output.
nb::object call(const std::string& name, const nb::args& arguments, const nb::object& forward,
                nb::object backward) {
  TensorList inputs;
  for (nb::handle argument : arguments) {
    const Tensor* x = tensor_pointer(argument.ptr());
    inputs.push_back(x == nullptr ? Tensor() : *x);
  }
  nb::object result;
  const TensorList outputs = call_function(
      name, inputs,
      [&](FunctionContext& ctx, const TensorList&) {
        result = forward(ctx);
        return tensors_of(items_of(result));
      },
      backward_of(name, std::move(backward)));
  if (!PyTuple_Check(result.ptr())) {
    return outputs[0].defined() ? nb::steal(tensor_object(outputs[0])) : result;
  }
  nb::list items;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].defined()) {
      items.append(nb::steal(tensor_object(outputs[i])));
    } else {
      items.append(nb::borrow<nb::tuple>(result)[i]);
    }
  }
  return nb::tuple(items);
}

// The tensors among the arguments; None gives an undefined one where that is legal.
TensorList list_of(const char* op, const nb::args& arguments, bool none_is_legal) {
  TensorList out;
  for (nb::handle argument : arguments) {
    if (none_is_legal && argument.is_none()) {
      out.emplace_back();
    } else {
      out.push_back(tensor_arg(op, argument));
    }
  }
  return out;
}

}  // namespace

void bind_custom_function(nb::module_& m) {
  nb::class_<FunctionContext>(m, "_FunctionContext")
      .def("save_for_backward",
           [](FunctionContext& ctx, const nb::args& tensors) {
             ctx.save_for_backward(list_of("save_for_backward", tensors, true));
           })
      .def("saved_tensors",
           [](const FunctionContext& ctx) { return tuple_of(ctx.saved_tensors()); })
      .def("needs_input_grad",
           [](const FunctionContext& ctx, size_t i) { return ctx.needs_input_grad(i); })
      .def("mark_non_differentiable",
           [](FunctionContext& ctx, const nb::args& tensors) {
             ctx.mark_non_differentiable(list_of("mark_non_differentiable", tensors, false));
           })
      .def("mark_dirty",
           [](FunctionContext& ctx, const nb::args& tensors) {
             ctx.mark_dirty(list_of("mark_dirty", tensors, false));
           })
      .def("set_materialize_grads", &FunctionContext::set_materialize_grads);
  m.def(
      "_call_function",
      [](const std::string& name, const nb::object& forward, const nb::object& backward,
         const nb::args& arguments) { return call(name, arguments, forward, backward); },
      "name"_a, "forward"_a, "backward"_a, "arguments"_a);
}

}  // namespace kiln::python
