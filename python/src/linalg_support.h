// What bindings of linear algebra have in common.
#pragma once

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <Python.h>
#include <structseq.h>

#include "binding.h"

namespace kiln::python {

// The functions and methods outside kiln.linalg: linalg_old_names.cpp.
void bind_linalg_old_names(nb::module_& m, TensorClass& c);

namespace linalg_support {

using T = const Tensor&;

// A class of named tuples of tensors, as PyTorch's functions of several results give.
class NamedTuple {
 public:
  NamedTuple(const std::string& name, std::initializer_list<const char*> fields) {
    // Both live as long as the class does: always.
    auto* list = new std::vector<PyStructSequence_Field>();
    for (const char* field : fields) list->push_back({field, ""});
    list->push_back({nullptr, nullptr});
    auto* full = new std::string("kiln.return_types." + name);
    PyStructSequence_Desc description{full->c_str(), "Named results.", list->data(),
                                      static_cast<int>(fields.size())};
    type_ = PyStructSequence_NewType(&description);
    if (type_ == nullptr) throw nb::python_error();
  }
  template <class... X>
  nb::object operator()(const std::tuple<X...>& values) const {
    nb::object out = nb::steal(PyStructSequence_New(type_));
    if (!out.is_valid()) throw nb::python_error();
    Py_ssize_t i = 0;
    std::apply(
        [&](const auto&... x) {
          (PyStructSequence_SetItem(out.ptr(), i++, tensor_object(x)), ...);
        },
        values);
    return out;
  }
  nb::object operator()(const std::pair<Tensor, Tensor>& pair) const {
    return (*this)(std::tuple<Tensor, Tensor>(pair));
  }

 private:
  PyTypeObject* type_;
};

// f() without the interpreter's lock where the tensor is large.
template <class F>
auto unlocked(T x, F&& f) {
  Unlocked lock(x);
  return f();
}

}  // namespace linalg_support
}  // namespace kiln::python
