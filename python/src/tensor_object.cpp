// Tensors and the Python objects that stand for them. See Note [Identity].
#include <algorithm>
#include <array>

#include "overrides.h"

namespace kiln::python {

namespace {

template <class T>
PyObject* new_object(Tensor x) noexcept {
  T held(std::move(x));
  PyObject* object = nb::detail::nb_type_put(&typeid(T), &held, nb::rv_policy::move, nullptr);
  if (object != nullptr) {
    interop::foreign_object(*nb::inst_ptr<T>(nb::handle(object))) = object;
  }
  return object;
}

// Note [Cycles]
// A hook of a tensor, or the backward of a function that made it, may refer to the tensor again.
// Such a reference goes through C++, where the collector sees nothing; so a tensor shows what its
// place in a graph owns of Python, as far as nobody but the tensor's object leads there.
struct Visit {
  visitproc function;
  void* argument;
  int result = 0;
};

// Where each class has its instances' dict; classes of Python's have it where their base does.
struct DictPlace {
  PyTypeObject* type = nullptr;
  Py_ssize_t offset = 0;
};
std::array<DictPlace, 3> dict_places;

// _PyObject_GetDictPtr, which the limited API lacks. Null when there is none.
PyObject** dict_of(PyObject* self) {
  const auto at = [self](const DictPlace& place) {
    return reinterpret_cast<PyObject**>(reinterpret_cast<char*>(self) + place.offset);
  };
  for (const DictPlace& place : dict_places) {
    if (place.type == Py_TYPE(self)) return at(place);
  }
  for (const DictPlace& place : dict_places) {
    if (place.type != nullptr && PyType_IsSubtype(Py_TYPE(self), place.type)) return at(place);
  }
  return nullptr;
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  if (PyObject** dict = dict_of(self)) Py_VISIT(*dict);
  Py_VISIT(Py_TYPE(self));
  // Threads that compute take and drop handles all the time, and the collector must see the same
  // each time that it asks: its work and the sections begin and end under the interpreter's lock.
  if (!nb::inst_ready(self) || interop::ReadSection::running() > 0) return 0;
  Visit state{visit, arg};
  interop::visit_foreign(
      *nb::inst_ptr<PyTensor>(self),
      [](void* object, void* context) {
        auto& v = *static_cast<Visit*>(context);
        if (v.result == 0) v.result = v.function(HeldObject::from(object).ptr(), v.argument);
      },
      &state);
  return state.result;
}

// Tensors are keys of dicts by their identity. As a slot, it costs next to nothing: an optimizer's
// state is such a dict.
Py_hash_t hash_of(PyObject* self) { return reinterpret_cast<Py_hash_t>(self) >> 4; }

int clear(PyObject* self) {
  if (PyObject** dict = dict_of(self)) Py_CLEAR(*dict);
  if (nb::inst_ready(self)) interop::drop_foreign(*nb::inst_ptr<PyTensor>(self));
  return 0;
}

}  // namespace

const PyType_Slot* tensor_slots() {
  static const PyType_Slot slots[] = {{Py_tp_hash, reinterpret_cast<void*>(&hash_of)},
                                      {Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
                                      {Py_tp_clear, reinterpret_cast<void*>(&clear)},
                                      {0, nullptr}};
  return slots;
}

bool is_own_class(nb::handle object) {
  const auto is = [&](const DictPlace& place) { return place.type == Py_TYPE(object.ptr()); };
  return std::any_of(dict_places.begin(), dict_places.end(), is);
}

void find_dicts(nb::handle tensor, nb::handle parameter, nb::handle buffer) {
  const auto place = [](nb::handle type) {
    return DictPlace{reinterpret_cast<PyTypeObject*>(type.ptr()),
                     nb::cast<Py_ssize_t>(type.attr("__dictoffset__"))};
  };
  dict_places = {place(buffer), place(parameter), place(tensor)};
}

PyObject* tensor_object(Tensor x) noexcept {
  if (!x.defined()) return nb::none().release().ptr();
  auto* known = static_cast<PyObject*>(interop::foreign_object(x));
  // An object whose count is zero is on its way out, and weak references' callbacks run now.
  if (known != nullptr && Py_REFCNT(known) > 0) {
    Py_INCREF(known);
    return known;
  }
  return new_object<PyTensor>(std::move(x));
}

PyObject* parameter_object(Tensor x) noexcept { return new_object<PyParameter>(std::move(x)); }

Tensor* tensor_pointer(PyObject* object) noexcept {
  void* found = nullptr;
  if (!nb::detail::nb_type_get(&typeid(PyTensor), object, 0, nullptr, &found)) return nullptr;
  return static_cast<PyTensor*>(found);
}

const Tensor& tensor_arg(const char* op, nb::handle argument) {
  const Tensor* x = tensor_pointer(argument.ptr());
  if (x == nullptr) {
    throw nb::type_error(concat(op, ": expected a tensor; got ", name_of_type(argument)).c_str());
  }
  return *x;
}

nb::tuple tuple_of(const std::vector<Tensor>& tensors) {
  nb::object out = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(tensors.size())));
  if (!out.is_valid()) throw nb::python_error();
  for (size_t i = 0; i < tensors.size(); ++i) {
    set_tuple_item(out.ptr(), static_cast<Py_ssize_t>(i), tensor_object(tensors[i]));
  }
  return nb::borrow<nb::tuple>(out);
}

}  // namespace kiln::python
