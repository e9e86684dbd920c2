// kiln._C.ModuleBase: what kiln.nn.Module derives from.
//
// A type written against Python's own interface, not through nanobind: modules are mixed with
// other base classes and metaclasses, which nanobind's types do not allow.
#include "nn_module.h"

#include <algorithm>

namespace kiln::python {

namespace {

struct ModuleObject {
  PyObject base;
  PyModule* core;
  LayerStatePointer layer;
};

PyTypeObject* module_type = nullptr;

struct Names {
  PyObject* forward = PyUnicode_InternFromString("forward");
  PyObject* parameters = PyUnicode_InternFromString("_parameters");
  PyObject* buffers = PyUnicode_InternFromString("_buffers");
  PyObject* modules = PyUnicode_InternFromString("_modules");
  PyObject* params = PyUnicode_InternFromString("_params");
  PyObject* make_param = PyUnicode_InternFromString("_make_param");
  PyObject* call_with_hooks = nullptr;
};

Names& names() {
  static Names all;
  return all;
}

ModuleObject* cast(PyObject* self) { return reinterpret_cast<ModuleObject*>(self); }

bool has_hooks(const ModuleObject* self) {
  return self->core != nullptr ? self->core->has_forward_hooks()
                               : nn::detail::global_hook_count.load(std::memory_order_relaxed) != 0;
}

// Without hooks a call is that of forward, and nothing else.
PyObject* call_module(PyObject* self, PyObject* args, PyObject* kwargs) {
  if (has_hooks(cast(self))) [[unlikely]] {
    const nb::object none = nb::dict();
    PyObject* arguments[] = {self, args, kwargs == nullptr ? none.ptr() : kwargs};
    return PyObject_Vectorcall(names().call_with_hooks, arguments, 3, nullptr);
  }
  const Py_ssize_t n = tuple_size(args);
  if (kwargs == nullptr && n == 1) [[likely]] {
    PyObject* arguments[] = {self, tuple_item(args, 0)};
    return PyObject_VectorcallMethod(names().forward, arguments, 2, nullptr);
  }
  PyObject* forward = PyObject_GetAttr(self, names().forward);
  if (forward == nullptr) return nullptr;
  PyObject* result = PyObject_Call(forward, args, kwargs);
  Py_DECREF(forward);
  return result;
}

// Whether a call of one of the modules runs hooks. Throws TypeError for what is no module.
bool any_hooks(const nb::tuple& modules) {
  return std::any_of(modules.begin(), modules.end(), [](nb::handle module) {
    if (!is_module(module.ptr())) {
      throw nb::type_error(
          concat("_any_hooks: expected modules; got ", name_of_type(module)).c_str());
    }
    return has_hooks(cast(module.ptr()));
  });
}

// `facts`: a dict, a key and the object that stands there, or a dict, None and its length; and so
// on. Whether all of them hold.
bool facts_hold(const nb::tuple& facts) {
  PyObject* const list = facts.ptr();
  for (Py_ssize_t i = 0; i + 2 < tuple_size(list); i += 3) {
    PyObject* const dict = tuple_item(list, i);
    PyObject* const key = tuple_item(list, i + 1);
    PyObject* const value = tuple_item(list, i + 2);
    if (!PyDict_Check(dict)) return false;
    if (key == Py_None) {
      if (PyDict_Size(dict) != PyLong_AsSsize_t(value)) return false;
      continue;
    }
    PyObject* const found = PyDict_GetItemWithError(dict, key);
    if (found == nullptr && PyErr_Occurred() != nullptr) throw nb::python_error();
    if (found != value) return false;
  }
  return true;
}

// Attributes that are none of the instance's or class's own: the parts.
PyObject* get_missing(PyObject* self, PyObject* name) {
  PyObject* state = PyObject_GenericGetDict(self, nullptr);
  if (state == nullptr) return nullptr;
  PyObject* found = nullptr;
  for (PyObject* place : {names().parameters, names().buffers, names().modules}) {
    PyObject* parts = PyDict_GetItemWithError(state, place);
    if (parts == nullptr || !PyDict_Check(parts)) continue;
    found = PyDict_GetItemWithError(parts, name);
    if (found != nullptr || PyErr_Occurred() != nullptr) break;
  }
  // None may stand for a kiln.nn.Param that waits to be made.
  if (found == Py_None && PyDict_GetItemWithError(state, names().params) != nullptr) {
    Py_DECREF(state);
    PyObject* arguments[] = {self, name};
    return PyObject_VectorcallMethod(names().make_param, arguments, 2, nullptr);
  }
  Py_XINCREF(found);
  Py_DECREF(state);
  if (found == nullptr && PyErr_Occurred() == nullptr) {
    PyErr_Format(PyExc_AttributeError, "'%.100s' object has no attribute '%U'",
                 name_of_type(nb::handle(self)).data(), name);
  }
  return found;
}

void deallocate(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete std::exchange(cast(self)->core, nullptr);
  cast(self)->layer.~LayerStatePointer();
  free_object(type, self);
  Py_DECREF(type);
}

PyMethodDef methods[] = {
    {"__getattr__", get_missing, METH_O, "A parameter, buffer or child module by its name."},
    {nullptr, nullptr, 0, nullptr}};

PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(PyType_GenericNew)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
                       {Py_tp_call, reinterpret_cast<void*>(call_module)},
                       {Py_tp_methods, methods},
                       {0, nullptr}};

PyType_Spec spec = {"kiln._C.ModuleBase", sizeof(ModuleObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

}  // namespace

LayerStatePointer& layer_state(PyObject* object) noexcept { return cast(object)->layer; }

bool is_module(PyObject* object) noexcept { return PyObject_TypeCheck(object, module_type) != 0; }

PyModule* module_pointer(PyObject* object) {
  if (!is_module(object)) return nullptr;
  ModuleObject* self = cast(object);
  if (self->core == nullptr) self->core = new PyModule(object);
  return self->core;
}

PyModule& module_arg(const char* op, nb::handle object) {
  PyModule* module = module_pointer(object.ptr());
  if (module == nullptr) {
    throw nb::type_error(
        concat(op, ": expected a kiln.nn.Module; got ", name_of_type(object)).c_str());
  }
  return *module;
}

std::shared_ptr<nn::Module> shared_module(nb::handle object) {
  PyModule* module = module_pointer(object.ptr());
  if (module == nullptr) return nullptr;
  return {module, [held = HeldObject(nb::borrow(object))](nn::Module*) {}};
}

void bind_module(nb::module_& m) {
  nb::object type = nb::steal(PyType_FromSpec(&spec));
  if (!type.is_valid()) throw nb::python_error();
  m.attr("ModuleBase") = type;
  module_type = reinterpret_cast<PyTypeObject*>(nb::object(type).release().ptr());
  m.def("_call_with_hooks", &call_with_hooks, "module"_a, "args"_a, "kwargs"_a);
  names().call_with_hooks = nb::object(m.attr("_call_with_hooks")).release().ptr();

  m.def("_any_hooks", &any_hooks, "modules"_a);
  m.def("_facts_hold", &facts_hold, "facts"_a);

  bind_layers(m);
  bind_packed_sequences(m);
  bind_param_records(m);
  bind_param(m);
  m.def("_as_parameter", &as_parameter);

  // How C++ sees a module: for whoever wants to know, and for tests.
  m.def("_cpp_num_params", [](nb::handle x) { return module_arg("num_params", x).num_params(); });
  m.def("_cpp_named_parameters",
        [](nb::handle x) { return module_arg("named_parameters", x).named_parameters(); });
  m.def("_cpp_named_buffers",
        [](nb::handle x) { return module_arg("named_buffers", x).named_buffers(); });
  m.def("_cpp_repr", [](nb::handle x) { return to_string(module_arg("repr", x)); });
  m.def("_cpp_to", [](nb::handle x, DType t) {
    PyModule& module = module_arg("to", x);
    module.to(t);
    sync_tree(module);
  });
  // A C++ Sequential of Python modules, called with one tensor.
  m.def("_cpp_sequential_call", [](const std::vector<nb::object>& modules, const Tensor& x) {
    nn::Sequential sequential;
    for (const nb::object& module : modules) {
      module_arg("Sequential", module);
      sequential.push_back(nn::AnyModule(shared_module(module)));
    }
    return sequential(x);
  });
  m.def(
      "_save_model",
      [](nb::handle module, const std::string& path) {
        io::save_model(module_arg("save_model", module), path);
      },
      "module"_a, "path"_a);
  m.def(
      "_load_model",
      [](nb::handle module, const std::string& path, bool strict) {
        const auto loaded = io::load_model(module_arg("load_model", module), path, strict);
        sync_tree(module_arg("load_model", module));
        return nb::make_tuple(loaded.keys.missing_keys, loaded.keys.unexpected_keys);
      },
      "module"_a, "path"_a, "strict"_a = true);
}

}  // namespace kiln::python
