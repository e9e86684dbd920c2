#include "overrides.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kiln::python {

namespace overrides {

namespace {

// What one thread has switched off, and the modes that it is in.
struct State {
  int64_t classes_off = 0;
  int64_t all_off = 0;
  PyObject* running = nullptr;   // the function that a class left to itself
  std::vector<PyObject*> modes;  // owned
};

State& state() {
  thread_local State own;
  return own;
}

int64_t classes = 0;       // that derive from Tensor and may override
int64_t modes_in_use = 0;  // in all threads

void update() { active = classes > 0 || modes_in_use > 0; }

// The functions that can be overridden, and what a handler is told for each: Tensor.__add__ is
// Tensor.add, the reader of a property its __get__.
std::unordered_map<PyObject*, PyObject*>& functions() {
  static auto* all = new std::unordered_map<PyObject*, PyObject*>();
  return *all;
}

// The functions in the place of layers' forwards.
std::unordered_map<PyObject*, PyObject*>& forms() {
  static auto* all = new std::unordered_map<PyObject*, PyObject*>();
  return *all;
}

struct Known {
  PyObject* name = PyUnicode_InternFromString("__torch_function__");
  PyObject* function = PyUnicode_InternFromString("__func__");
  PyObject* standard = nullptr;    // Tensor's own
  PyObject* disabled = nullptr;    // that of classes which override nothing
  PyObject* keep_class = nullptr;  // a set: functions whose results stay of the class that they are
  PyTypeObject* tensor = nullptr;
  PyTypeObject* parameter = nullptr;
  PyTypeObject* buffer = nullptr;
};
Known& known() {
  static Known all;
  return all;
}

// Adds to a number as long as it lives.
class Raised {
 public:
  explicit Raised(int64_t& number) : number_(number) { ++number_; }
  ~Raised() { --number_; }
  Raised(const Raised&) = delete;
  Raised& operator=(const Raised&) = delete;

 private:
  int64_t& number_;
};

bool is_plain(PyObject* x) {
  PyTypeObject* const type = Py_TYPE(x);
  return type == known().tensor || type == known().parameter || type == known().buffer ||
         x == Py_None || x == Py_Ellipsis || PyLong_Check(x) || PyFloat_Check(x) ||
         PyUnicode_Check(x) || PySlice_Check(x);
}

// The __torch_function__ of the object's class; invalid where there is none that overrides.
nb::object handler_of(PyObject* x) {
  if (is_plain(x)) return {};
  nb::object own =
      nb::steal(PyObject_GetAttr(reinterpret_cast<PyObject*>(Py_TYPE(x)), known().name));
  if (!own.is_valid()) PyErr_Clear();
  return own.is_valid() && own.ptr() != known().disabled ? own : nb::object();
}

// Arguments that override, one of each class: derived classes before their bases, else in order.
class Overriding {
 public:
  void look_at(PyObject* x) {
    if (PyTuple_Check(x) || PyList_Check(x)) {
      for (Py_ssize_t i = 0; i < sequence_size(x); ++i) add(sequence_item(x, i));
    } else {
      add(x);
    }
  }

  bool empty() const { return found_.empty(); }
  const std::vector<PyObject*>& arguments() const { return found_; }

  nb::object types() const {
    nb::object out = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(found_.size())));
    if (!out.is_valid()) throw nb::python_error();
    for (size_t i = 0; i < found_.size(); ++i) {
      set_tuple_item(out.ptr(), static_cast<Py_ssize_t>(i),
                     Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(found_[i]))));
    }
    return out;
  }

 private:
  void add(PyObject* x) {
    if (!handler_of(x).is_valid()) return;
    const auto same = [x](PyObject* other) { return Py_TYPE(other) == Py_TYPE(x); };
    if (std::any_of(found_.begin(), found_.end(), same)) return;
    const auto base = [x](PyObject* other) {
      return PyType_IsSubtype(Py_TYPE(x), Py_TYPE(other)) != 0;
    };
    found_.insert(std::find_if(found_.begin(), found_.end(), base), x);
  }

  std::vector<PyObject*> found_;
};

// A call as a handler takes it.
struct Call {
  PyObject* function;
  PyObject* const* args;
  size_t count;
  PyObject* names;

  nb::object positional() const {
    nb::object out = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(count)));
    if (!out.is_valid()) throw nb::python_error();
    for (size_t i = 0; i < count; ++i) {
      set_tuple_item(out.ptr(), static_cast<Py_ssize_t>(i), Py_NewRef(args[i]));
    }
    return out;
  }
  nb::dict keywords() const {
    nb::dict out;
    for (Py_ssize_t i = 0; names != nullptr && i < tuple_size(names); ++i) {
      out[nb::handle(tuple_item(names, i))] = nb::handle(args[count + static_cast<size_t>(i)]);
    }
    return out;
  }
};

// Makes a result that nobody but its owner has seen one of that class itself.
bool became(PyObject* x, nb::handle type) {
  if (Py_REFCNT(x) != 1 || Py_TYPE(x) != known().tensor) return false;
  if (PyObject_SetAttrString(x, "__class__", type.ptr()) == 0) return true;
  PyErr_Clear();  // the class has slots
  return false;
}

// A result of a function as Tensor's own __torch_function__ gives it: its tensors are of that
// class.
nb::object of_class(nb::object result, nb::handle type) {
  if (type.ptr() == reinterpret_cast<PyObject*>(known().tensor)) return result;
  if (const Tensor* const tensor = tensor_pointer(result.ptr())) {
    if (became(result.ptr(), type)) return result;
    const int is = PyObject_IsInstance(result.ptr(), type.ptr());
    if (is < 0) throw nb::python_error();
    return is > 0 ? result : as_subclass(type, *tensor);
  }
  if (!PyTuple_Check(result.ptr()) && !PyList_Check(result.ptr())) return result;
  nb::list parts;
  bool changed = false;
  const bool own = Py_REFCNT(result.ptr()) == 1;
  for (Py_ssize_t i = 0; i < sequence_size(result.ptr()); ++i) {
    PyObject* const item = sequence_item(result.ptr(), i);
    nb::object part =
        own && became(item, type) ? nb::borrow(item) : of_class(nb::borrow(item), type);
    changed = changed || part.ptr() != item;
    parts.append(part);
  }
  if (!changed) return result;
  return nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(result.ptr())))(parts);
}

// Whether the handler is Tensor's own.
bool is_standard(const nb::object& handler) {
  const nb::object function = nb::steal(PyObject_GetAttr(handler.ptr(), known().function));
  if (!function.is_valid()) PyErr_Clear();
  return function.ptr() == known().standard;
}

bool is_below_all(PyObject* type, nb::handle types) {
  for (nb::handle other : types) {
    const int is = PyObject_IsSubclass(type, other.ptr());
    if (is < 0) throw nb::python_error();
    if (is == 0) return false;
  }
  return true;
}

bool keeps_class(PyObject* function) {
  if (known().keep_class == nullptr) return false;
  const int found = PySet_Contains(known().keep_class, function);
  if (found < 0) PyErr_Clear();  // it has no hash
  return found > 0;
}

nb::object checked(PyObject* result) {
  if (result == nullptr) throw nb::python_error();
  return nb::steal(result);
}

// The function's own call, with results of that class.
nb::object call_standard(const Call& of, nb::handle shown, nb::handle type) {
  nb::object result;
  {
    const Raised off(state().classes_off);
    result = checked(PyObject_Vectorcall(of.function, of.args, of.count, of.names));
  }
  return keeps_class(shown.ptr()) ? result : of_class(std::move(result), type);
}

nb::object call_handler(nb::handle handler, const Call& of, nb::handle shown, nb::handle types) {
  return checked(PyObject_CallFunctionObjArgs(handler.ptr(), shown.ptr(), types.ptr(),
                                              of.positional().ptr(), of.keywords().ptr(), nullptr));
}

// The innermost mode's answer; modes within it see what it does.
nb::object call_mode(const Call& of, nb::handle shown, nb::handle types) {
  std::vector<PyObject*>& modes = state().modes;
  PyObject* const mode = modes.back();
  modes.pop_back();
  struct Back {
    std::vector<PyObject*>& modes;
    PyObject* mode;
    ~Back() { modes.push_back(mode); }
  } const back{modes, mode};
  return call_handler(nb::handle(mode).attr(known().name), of, shown, types);
}

std::string nobody_handled(const std::string& name, nb::handle types) {
  std::string text = concat("Multiple dispatch failed for '", name,
                            "'; all __torch_function__ handlers returned NotImplemented:\n");
  for (nb::handle type : types) {
    const bool tensor =
        PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type.ptr()), known().tensor) != 0;
    text += concat("\n  - ", tensor ? "tensor subclass " : "", repr_of(type));
  }
  return text;
}

nb::object call_overridden(const Call& of, nb::handle shown, const Overriding& overriding) {
  const nb::object types = overriding.types();
  if (!state().modes.empty()) {
    nb::object result = call_mode(of, shown, types);
    if (result.ptr() != Py_NotImplemented) return result;
  }
  for (PyObject* argument : overriding.arguments()) {
    const nb::object standard = handler_of(argument);
    PyObject* const type = reinterpret_cast<PyObject*>(Py_TYPE(argument));
    nb::object result;
    if (!is_standard(standard)) {
      result = call_handler(nb::handle(argument).attr(known().name), of, shown, types);
    } else if (is_below_all(type, types)) {
      return call_standard(of, shown, type);
    } else {
      result = nb::borrow(Py_NotImplemented);
    }
    if (result.ptr() != Py_NotImplemented) return result;
  }
  const nb::object name = nb::getattr(shown, "__name__", nb::str("a function"));
  throw nb::type_error(nobody_handled(nb::cast<std::string>(name), types).c_str());
}

nb::object allocate(nb::handle type) {
  if (!PyType_Check(type.ptr()) ||
      !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type.ptr()), known().tensor)) {
    throw nb::type_error("expected Tensor or a class derived from it");
  }
  return nb::inst_alloc(type);
}

// The parameters of a layer, and tensors that stand in their place.
void look_at_tensors(nb::handle layer, Overriding& overriding) {
  for (const auto& [name, value] : nb::cast<nb::dict>(layer.attr("__dict__"))) {
    if (tensor_pointer(value.ptr()) != nullptr) overriding.look_at(value.ptr());
  }
  for (const auto& [name, value] : nb::cast<nb::dict>(layer.attr("_parameters"))) {
    overriding.look_at(value.ptr());
  }
}

}  // namespace

PyObject* call(PyObject* function, PyObject* const* args, size_t count, PyObject* names,
               bool& handled) noexcept {
  handled = false;
  State& own = state();
  if (own.all_off > 0 || (own.classes_off > 0 && own.modes.empty())) return nullptr;
  try {
    const auto found = functions().find(function);
    if (found == functions().end()) return nullptr;
    Overriding overriding;
    const size_t all = count + (names == nullptr ? 0 : static_cast<size_t>(tuple_size(names)));
    if (own.classes_off == 0) {
      for (size_t i = 0; i < all; ++i) overriding.look_at(args[i]);
    }
    if (overriding.empty() && own.modes.empty()) return nullptr;
    handled = true;
    return call_overridden({function, args, count, names}, found->second, overriding)
        .release()
        .ptr();
  } catch (...) {
    handled = true;
    set_python_error();
  }
  return nullptr;
}

PyObject* call_layer(PyObject* forward, PyObject* const* args, size_t count, PyObject* names,
                     bool& handled) noexcept {
  handled = false;
  const State& own = state();
  if (own.all_off > 0 || (own.classes_off > 0 && own.modes.empty())) return nullptr;
  try {
    const auto form = forms().find(forward);
    if (form == forms().end()) return call(forward, args, count, names, handled);
    const size_t all = count + (names == nullptr ? 0 : static_cast<size_t>(tuple_size(names)));
    Overriding overriding;
    for (size_t i = 1; i < all && own.classes_off == 0; ++i) overriding.look_at(args[i]);
    if (own.modes.empty() && overriding.empty()) {
      look_at_tensors(args[0], overriding);
      if (overriding.empty()) return nullptr;
    }
    handled = true;
    nb::object result = checked(PyObject_Vectorcall(form->second, args, count, names));
    if (result.ptr() != Py_NotImplemented) return result.release().ptr();
  } catch (...) {
    handled = true;
    set_python_error();
    return nullptr;
  }
  return call(forward, args, count, names, handled);
}

nb::object as_subclass(nb::handle type, const Tensor& x) {
  nb::object out = allocate(type);
  Tensor alias = x.requires_grad() ? x.view_as(x) : x.detach();
  PyTensor* place = nullptr;
  if (PyObject_TypeCheck(out.ptr(), known().buffer)) {
    place = new (nb::inst_ptr<PyBuffer>(out)) PyBuffer(std::move(alias));
  } else if (PyObject_TypeCheck(out.ptr(), known().parameter)) {
    place = new (nb::inst_ptr<PyParameter>(out)) PyParameter(std::move(alias));
  } else {
    place = new (nb::inst_ptr<PyTensor>(out)) PyTensor(std::move(alias));
  }
  nb::inst_mark_ready(out);
  interop::foreign_object(*place) = out.ptr();
  return out;
}

}  // namespace overrides

namespace {

using namespace overrides;

// func(*args, **kwargs), with nothing overridden. NotImplemented when that comes back here: another
// framework's function that is called with Kiln's tensors asks their class what to do.
nb::object call_itself(nb::handle func, const nb::tuple& args, const nb::object& kwargs) {
  if (state().running == func.ptr()) return nb::borrow(Py_NotImplemented);
  const Raised off(state().classes_off);
  struct Running {
    PyObject* before;
    explicit Running(PyObject* now) : before(std::exchange(state().running, now)) {}
    ~Running() { state().running = before; }
  } const running(func.ptr());
  PyObject* const words = kwargs.is_none() ? nullptr : kwargs.ptr();
  return checked(PyObject_Call(func.ptr(), args.ptr(), words));
}

// func(*args, **kwargs) with its results of the class, where all others are among its bases.
nb::object torch_function(nb::handle cls, nb::handle func, nb::handle types, const nb::tuple& args,
                          const nb::object& kwargs) {
  if (!is_below_all(cls.ptr(), types)) return nb::borrow(Py_NotImplemented);
  nb::object result = call_itself(func, args, kwargs);
  if (result.ptr() == Py_NotImplemented) return result;
  return keeps_class(func.ptr()) ? result : of_class(std::move(result), cls);
}

}  // namespace

void bind_overrides(nb::module_& m, TensorClass& c) {
  known().tensor = reinterpret_cast<PyTypeObject*>(c.ptr());
  known().parameter = reinterpret_cast<PyTypeObject*>(nb::object(m.attr("Parameter")).ptr());
  known().buffer = reinterpret_cast<PyTypeObject*>(nb::object(m.attr("Buffer")).ptr());
  m.def("_torch_function", &torch_function, "cls"_a, "func"_a, "types"_a, "args"_a,
        "kwargs"_a.none());
  m.def("_call_itself", &call_itself, "func"_a, "args"_a, "kwargs"_a.none());
  m.def(
      "_as_subclass", [](nb::handle type, const Tensor& x) { return as_subclass(type, x); },
      "type"_a, "input"_a);
  m.def("_allocate", &allocate, "type"_a,
        "An object of the class that waits for its tensor, which an __init__ makes.");
  m.def(
      "_set_torch_functions",
      [](nb::object standard, nb::object disabled) {
        known().standard = standard.release().ptr();
        known().disabled = disabled.release().ptr();
      },
      "Tensor's own __torch_function__, and that of classes which override nothing.");
  m.def(
      "_set_overridable",
      [](nb::dict all, nb::object keep_class) {
        for (const auto& [function, shown] : all) {
          route(function);
          functions()[function.inc_ref().ptr()] = shown.inc_ref().ptr();
        }
        known().keep_class = keep_class.release().ptr();
      },
      "The functions that can be overridden, and what a handler is told for each; those of them "
      "whose results stay what they are.");
  m.def(
      "_set_forms",
      [](nb::dict all) {
        for (const auto& [forward, form] : all) {
          forms()[forward.inc_ref().ptr()] = form.inc_ref().ptr();
        }
      },
      "Functions in the place of layers' forwards.");
  m.def("_nobody_handled", &nobody_handled, "name"_a, "types"_a);
  m.def("_classes_override", [] {
    ++classes;
    update();
  });
  m.def("_overriding", [] { return active; });
  m.def(
      "_override",
      [](nb::handle function, const nb::tuple& args, const nb::dict& kwargs) -> nb::object {
        Overriding overriding;
        State& own = state();
        if (own.all_off > 0) return nb::borrow(Py_NotImplemented);
        if (own.classes_off == 0) {
          for (nb::handle x : args) overriding.look_at(x.ptr());
          for (const auto& [name, x] : kwargs) overriding.look_at(x.ptr());
        }
        if (overriding.empty() && own.modes.empty()) return nb::borrow(Py_NotImplemented);
        std::vector<PyObject*> all;
        for (nb::handle x : args) all.push_back(x.ptr());
        nb::list names;
        for (const auto& [name, x] : kwargs) {
          names.append(name);
          all.push_back(x.ptr());
        }
        const nb::tuple words(names);
        return call_overridden({function.ptr(), all.data(), nb::len(args), words.ptr()}, function,
                               overriding);
      },
      "What overrides a call of a function of Python's; NotImplemented where nothing does.");
  m.def(
      "_overloaded_args",
      [](const nb::tuple& args) {
        Overriding overriding;
        for (nb::handle x : args) overriding.look_at(x.ptr());
        nb::list out;
        for (PyObject* x : overriding.arguments()) out.append(nb::handle(x));
        return out;
      },
      "One argument of each class that overrides functions, derived classes first.");
  m.def(
      "_switch_overrides",
      [](bool all, bool off) {
        int64_t& number = all ? state().all_off : state().classes_off;
        number += off ? 1 : -1;
      },
      "Switches this thread's overrides off (those of classes, or all), and on again.");
  m.def("_overrides_enabled", [] { return state().all_off == 0 && state().classes_off == 0; });
  m.def("_push_mode", [](nb::object mode) {
    state().modes.push_back(mode.release().ptr());
    ++modes_in_use;
    update();
  });
  m.def("_pop_mode", [] {
    if (state().modes.empty()) throw_error<RuntimeError>("no mode is on in this thread");
    nb::object mode = nb::steal(state().modes.back());
    state().modes.pop_back();
    --modes_in_use;
    update();
    return mode;
  });
  m.def("_modes", [] {
    nb::list out;
    for (PyObject* mode : state().modes) out.append(nb::handle(mode));
    return out;
  });
}

}  // namespace kiln::python
