#include "nn_layer_use.h"

#include <algorithm>

namespace kiln::python {

void FreeLayerState::operator()(LayerState* state) const noexcept { delete state; }

namespace layers {

namespace {

class Slots final : public nn::MemberVisitor {
 public:
  void parameter(std::string_view name, nn::Param<Tensor>& value) override {
    all.push_back({interned(name), &value, nullptr});
  }
  void buffer(std::string_view name, nn::Buffer& value) override {
    all.push_back({interned(name), nullptr, &value});
  }
  void module(std::string_view name, nn::Module&) override { refuse(name); }
  void group(std::string_view name, nn::MemberGroup&) override { refuse(name); }

  std::vector<Slot> all;

 private:
  static PyObject* interned(std::string_view name) {
    return PyUnicode_InternFromString(std::string(name).c_str());
  }
  [[noreturn]] static void refuse(std::string_view name) {
    throw_error<NotImplementedError>(
        "layers.def: a layer in it has parameters and buffers only; got '", name, "'");
  }
};

}  // namespace

Box::Box(std::unique_ptr<nn::Module> made, size_t options) : layer(std::move(made)), seen(options) {
  Slots slots_of_layer;
  layer->visit_parts(slots_of_layer);
  slots = std::move(slots_of_layer.all);
}

const LayerNames& layer_names() {
  static const LayerNames all;
  return all;
}

nb::object dict_of(PyObject* self) {
  nb::object dict = nb::steal(PyObject_GenericGetDict(self, nullptr));
  if (!dict.is_valid()) throw nb::python_error();
  return dict;
}

PyObject* item(PyObject* dict, PyObject* name) {
  if (!PyDict_Check(dict)) return nullptr;
  PyObject* found = PyDict_GetItemWithError(dict, name);
  if (found == nullptr && PyErr_Occurred() != nullptr) [[unlikely]]
    throw nb::python_error();
  return found;
}

nb::object attribute(PyObject* self, PyObject* name) {
  nb::object value = nb::steal(PyObject_GetAttr(self, name));
  if (!value.is_valid()) throw nb::python_error();
  return value;
}

LayerState& state_of(PyObject* self, LayerClass& of) {
  LayerStatePointer* place = &layer_state(self);
  while (*place != nullptr && (*place)->of != &of) place = &(*place)->next;
  if (*place == nullptr) place->reset(new LayerState(&of));
  return **place;
}

namespace {

// Which options are attributes: those that share their name with a part only say whether it is
// there.
void find_attributes(LayerClass& of, const Box& box) {
  of.is_attribute.assign(of.options.size(), true);
  for (size_t i = 0; i < of.options.size(); ++i) {
    for (const Slot& slot : box.slots) {
      if (slot.name == of.names[i].ptr()) of.is_attribute[i] = false;
    }
  }
}

}  // namespace

Box& add_box(LayerState& state, std::unique_ptr<nn::Module> layer) {
  LayerClass& of = *state.of;
  state.boxes.push_back(std::make_unique<Box>(std::move(layer), of.options.size()));
  Box& box = *state.boxes.back();
  if (of.is_attribute.empty()) find_attributes(of, box);
  return box;
}

namespace {

// The value of an option that a module has: for one that is no attribute, whether the part is
// there.
nb::object option_of(PyObject* self, const LayerClass& of, size_t index) {
  PyObject* const name = of.names[index].ptr();
  nb::object value = nb::steal(PyObject_GetAttr(self, name));
  if (!value.is_valid()) {
    if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) throw nb::python_error();
    if (!of.options[index].standard.is_valid()) throw nb::python_error();
    PyErr_Clear();
    return of.options[index].standard;
  }
  const Tensor* const tensor = tensor_pointer(value.ptr());
  // A bool option named like a part; an option that is a tensor is lent later.
  if (tensor == nullptr) return value;
  return of.options[index].annotation == "bool" ? nb::bool_(true) : nb::none();
}

// For a module that has no layer yet: one that was unpickled or copied.
std::unique_ptr<nn::Module> layer_from_attributes(PyObject* self, const LayerClass& of) {
  std::vector<nb::object> values;
  for (size_t i = 0; i < of.options.size(); ++i) values.push_back(option_of(self, of, i));
  return of.type->make(values, {});
}

Box& new_box(PyObject* self, LayerState& state) {
  const LayerType& type = *state.of->type;
  std::unique_ptr<nn::Module> layer = state.boxes.empty() ? layer_from_attributes(self, *state.of)
                                                          : type.copy(*state.boxes[0]->layer);
  Box& box = add_box(state, std::move(layer));
  box.take_back();
  return box;
}

// Whether nobody can change the object.
bool is_constant(PyObject* x) {
  if (x == Py_None || PyBool_Check(x) || PyLong_CheckExact(x) || PyFloat_CheckExact(x) ||
      PyUnicode_CheckExact(x)) {
    return true;
  }
  if (!PyTuple_CheckExact(x)) return false;
  for (Py_ssize_t i = 0; i < tuple_size(x); ++i) {
    PyObject* const part = tuple_item(x, i);
    if (!PyLong_CheckExact(part) && !PyFloat_CheckExact(part)) return false;
  }
  return true;
}

bool class_shadows(PyTypeObject* type, const LayerClass& of, const Box& box) {
  const auto has = [type](PyObject* name) { return class_has(type, name); };
  for (const nb::object& name : of.names) {
    if (has(name.ptr())) return true;
  }
  return std::any_of(box.slots.begin(), box.slots.end(),
                     [&](const Slot& slot) { return has(slot.name); });
}

// Whether attributes must be asked for, for the class may have some of the names.
bool shadows(PyObject* self, LayerState& state, const Box& box) {
  PyTypeObject* const type = Py_TYPE(self);
  const unsigned int version = class_version(type);
  if (type != state.seen_type || version != state.seen_version || version == 0) [[unlikely]] {
    state.shadows = class_shadows(type, *state.of, box);
    state.seen_type = type;
    state.seen_version = watch_class(type);
  }
  return state.shadows;
}

void update_options(PyObject* self, PyObject* dict, bool ask, const LayerClass& of, Box& box) {
  for (size_t i = 0; i < of.options.size(); ++i) {
    if (!of.is_attribute[i]) continue;
    PyObject* const found = ask ? nullptr : item(dict, of.names[i].ptr());
    if (found != nullptr && found == box.seen[i].ptr()) [[likely]]
      continue;
    const nb::object value =
        found != nullptr ? nb::borrow(found) : attribute(self, of.names[i].ptr());
    box.seen[i].reset();
    of.type->set_option(*box.layer, i, value);
    if (is_constant(value.ptr())) box.seen[i] = value;
  }
  PyObject* const training = item(dict, layer_names().training);
  if (training == (box.training ? Py_True : Py_False)) [[likely]]
    return;
  const int trains = training == nullptr ? 0 : PyObject_IsTrue(training);
  if (trains < 0) throw nb::python_error();
  if (trains != static_cast<int>(box.training)) {
    box.training = trains != 0;
    box.layer->train(box.training);
  }
}

// What a slot's name is in the module: in its dicts, or else an attribute (a parametrization's).
nb::object value_of(PyObject* self, PyObject* dict, bool ask, PyObject* parts, const Slot& slot) {
  PyObject* found = ask ? nullptr : item(dict, slot.name);
  if (found == nullptr && !ask && parts != nullptr) found = item(parts, slot.name);
  if (found == nullptr || (found == Py_None && item(dict, layer_names().params) != nullptr)) {
    return attribute(self, slot.name);
  }
  return nb::borrow(found);
}

// Gives the layer the module's tensors; the elements of the largest one.
int64_t lend_tensors(PyObject* self, PyObject* dict, bool ask, const LayerClass& of,
                     const Box& box) {
  int64_t numel = 0;
  if (box.slots.empty()) return numel;
  PyObject* const parameters = item(dict, layer_names().parameters);
  PyObject* const buffers = item(dict, layer_names().buffers);
  for (const Slot& slot : box.slots) {
    const nb::object value =
        value_of(self, dict, ask, slot.param != nullptr ? parameters : buffers, slot);
    if (value.is_none()) continue;
    const Tensor& x = tensor_arg(of.type->name(), value);
    slot.lend(x);
    numel = std::max(numel, x.numel());
  }
  return numel;
}

}  // namespace

LayerInUse::LayerInUse(PyObject* self, LayerClass& of) : state_(state_of(self, of)) {
  if (state_.idle.empty()) {
    box_ = &new_box(self, state_);
    state_.idle.reserve(state_.boxes.size());
  } else {
    box_ = state_.idle.back();
    state_.idle.pop_back();
  }
  try {
    const nb::object dict = dict_of(self);
    const bool ask = shadows(self, state_, *box_);
    update_options(self, dict.ptr(), ask, *state_.of, *box_);
    numel_ = lend_tensors(self, dict.ptr(), ask, *state_.of, *box_);
  } catch (...) {
    give_back();
    throw;
  }
}

}  // namespace layers
}  // namespace kiln::python
