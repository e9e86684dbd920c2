#include "nn_layer_init.h"

#include "default_device.h"
#include "kiln/tensor/creation.h"
#include "nn_layer_use.h"

namespace kiln::python::layers {

namespace {

Tensor uninitialized(const nn::Param<Tensor>& param) {
  const TensorOptions options{param.lazy_dtype().value_or(default_dtype()), param.lazy_device()};
  return empty(param.lazy_shape(), options).requires_grad_(param.lazy_is_require_grad());
}

void adopt_parts(const Box& box, PyObject* dict, bool draws) {
  nb::handle parameters = item(dict, layer_names().parameters);
  nb::handle buffers = item(dict, layer_names().buffers);
  nb::handle hidden = item(dict, layer_names().hidden);
  if (!parameters.is_valid() || !buffers.is_valid() || !hidden.is_valid()) {
    throw_error<AttributeError>("cannot assign parameters before Module.__init__() call");
  }
  for (const Slot& slot : box.slots) {
    nb::object value = nb::none();
    if (slot.param != nullptr && slot.param->defined()) {
      value = as_parameter(draws ? slot.param->get() : uninitialized(*slot.param));
    } else if (slot.buffer != nullptr) {
      value = nb::steal(tensor_object(slot.buffer->get()));
      if (!slot.buffer->persistent()) PySet_Add(hidden.ptr(), slot.name);
    }
    PyObject* const place = (slot.param != nullptr ? parameters : buffers).ptr();
    if (PyDict_SetItem(place, slot.name, value.ptr()) != 0) throw nb::python_error();
  }
}

}  // namespace

void init_layer(size_t index, nb::handle self, const nb::tuple& values,
                const std::optional<Device>& device, std::optional<DType> dtype) {
  LayerClass& of = *classes()[index];
  if (PyObject_TypeCheck(self.ptr(), of.python) == 0) {
    throw nb::type_error(
        concat(of.type->name(), ": __init__ of an object of another class").c_str());
  }
  std::vector<nb::object> all;
  for (nb::handle value : values) all.push_back(nb::borrow(value));
  all.resize(of.options.size());
  auto layer = of.type->make(all, {dtype, device_or_default(device)});
  LayerState& state = state_of(self.ptr(), of);
  Box& box = add_box(state, std::move(layer));

  const nb::object dict = dict_of(self.ptr());
  for (size_t i = 0; i < of.options.size(); ++i) {
    if (!of.is_attribute[i]) continue;
    const nb::object value = of.type->option(*box.layer, i);
    if (PyDict_SetItem(dict.ptr(), of.names[i].ptr(), value.ptr()) != 0) throw nb::python_error();
  }
  // A subclass that has initial values of its own gives them itself.
  bool own = true;
  if (of.reset_parameters.is_valid()) {
    const nb::object method =
        attribute(reinterpret_cast<PyObject*>(Py_TYPE(self.ptr())), layer_names().reset);
    own = method.is(of.reset_parameters);
  }
  adopt_parts(box, dict.ptr(), own);
  box.take_back();
  state.idle.push_back(&box);
  if (!own) self.attr("reset_parameters")();
}

}  // namespace kiln::python::layers
