// Tensors and the Python objects that stand for them. See Note [Identity].
#include "binding.h"

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

}  // namespace

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
    throw nb::type_error(
        concat(op, ": expected a tensor; got ", std::string_view(Py_TYPE(argument.ptr())->tp_name))
            .c_str());
  }
  return *x;
}

nb::tuple tuple_of(const std::vector<Tensor>& tensors) {
  nb::object out = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(tensors.size())));
  if (!out.is_valid()) throw nb::python_error();
  for (size_t i = 0; i < tensors.size(); ++i) {
    PyTuple_SET_ITEM(out.ptr(), static_cast<Py_ssize_t>(i), tensor_object(tensors[i]));
  }
  return nb::borrow<nb::tuple>(out);
}

}  // namespace kiln::python
