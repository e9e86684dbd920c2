#include "compile_guard.h"

#include <array>
#include <cstring>

#include "nn_module.h"

namespace kiln::python {

namespace {

struct Names {
  PyObject* parameters = PyUnicode_InternFromString("_parameters");
  PyObject* buffers = PyUnicode_InternFromString("_buffers");
  PyObject* modules = PyUnicode_InternFromString("_modules");
  std::array<PyObject*, 4> hooks = {PyUnicode_InternFromString("_forward_hooks"),
                                    PyUnicode_InternFromString("_forward_pre_hooks"),
                                    PyUnicode_InternFromString("_backward_hooks"),
                                    PyUnicode_InternFromString("_backward_pre_hooks")};

  // Whether the contents of a module's dict of this name count.
  bool count(PyObject* key) const {
    return key == parameters || key == buffers || key == modules || key == hooks[0] ||
           key == hooks[1] || key == hooks[2] || key == hooks[3];
  }
};

const Names& names() {
  static const Names all;
  return all;
}

// Whether a value means the same as another: one object, or equal numbers or strings.
bool same(PyObject* a, PyObject* b) {
  if (a == b) return true;
  PyTypeObject* type = Py_TYPE(a);
  if (type != Py_TYPE(b)) return false;
  if (type == &PyFloat_Type) {  // by bits: 0.0 is not -0.0, and NaN is NaN
    const double x = PyFloat_AsDouble(a);
    const double y = PyFloat_AsDouble(b);
    return std::memcmp(&x, &y, sizeof x) == 0;
  }
  if (type != &PyLong_Type && type != &PyUnicode_Type && type != &PyBytes_Type) return false;
  return PyObject_RichCompareBool(a, b, Py_EQ) == 1;
}

// Where an object stands: among a module's attributes or buffers, in `dict` by `key`, or elsewhere.
struct Place {
  PyObject* dict = nullptr;  // of attributes and buffers alone
  PyObject* key = nullptr;
  bool is_attribute = false;
};

// Calls see(object, place) for every object of the state, in one order, until one is refused.
template <class See>
class Walk {
 public:
  explicit Walk(See& see) : see_(see) {}

  bool contents(PyObject* dict, bool are_buffers = false) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(dict, &at, &key, &value) != 0) {
      if (!see_(value, are_buffers ? Place{dict, key} : Place())) return false;
    }
    return true;
  }

  bool value(PyObject* object) { return is_module(object) ? tree(object) : see_(object, Place()); }

 private:
  bool tree(PyObject* root) {
    modules_.assign(1, root);
    while (!modules_.empty()) {
      PyObject* module = modules_.back();
      modules_.pop_back();
      if (!see_(module, Place()) || !attributes(module)) return false;
    }
    return true;
  }

  bool attributes(PyObject* module) {
    const nb::object held = nb::steal(PyObject_GenericGetDict(module, nullptr));
    if (!held.is_valid()) throw nb::python_error();
    PyObject *key, *value;
    Py_ssize_t at = 0;
    PyObject* children = nullptr;
    while (PyDict_Next(held.ptr(), &at, &key, &value) != 0) {
      if (!see_(value, Place{held.ptr(), key, true})) return false;
      if (!PyDict_Check(value) || !names().count(key)) continue;
      if (key == names().modules) {
        children = value;
      } else if (!contents(value, key == names().buffers)) {
        return false;
      }
    }
    return children == nullptr || add(children);
  }

  // Children are looked at later, each with all that it has.
  bool add(PyObject* children) {
    PyObject *key, *child;
    Py_ssize_t at = 0;
    while (PyDict_Next(children, &at, &key, &child) != 0) {
      if (is_module(child)) {
        modules_.push_back(child);
        continue;
      }
      if (!see_(child, Place())) return false;
      if (child == Py_None) continue;
      // A compiled module stands for another.
      const nb::object inner = nb::getattr(nb::handle(child), "_orig_mod", nb::none());
      if (is_module(inner.ptr())) modules_.push_back(inner.ptr());
    }
    return true;
  }

  See& see_;
  std::vector<PyObject*> modules_;
};

// ---- Structures of arguments, as _flatten describes them

// The marks in a structure: kiln._compile's _TENSOR, _Plain and _Object.
struct Marks {
  PyObject* tensor;
  PyObject* plain;
  PyObject* object;

  Marks() {
    const nb::object module = nb::module_::import_("kiln._compile");
    tensor = nb::object(module.attr("_TENSOR")).release().ptr();
    plain = nb::object(module.attr("_Plain")).release().ptr();
    object = nb::object(module.attr("_Object")).release().ptr();
  }
};

const Marks& marks() {
  static const Marks all;
  return all;
}

// Whether a value has a structure; its tensors and other objects go into the lists.
class Match {
 public:
  bool value(nb::handle structure, nb::handle x) {
    if (structure.ptr() == marks().tensor) {
      if (tensor_pointer(x.ptr()) == nullptr) return false;
      tensors.append(x);
      return true;
    }
    const nb::handle kind = item(structure, 0);
    if (kind.ptr() == marks().plain) {
      const nb::handle known = item(structure, 1);
      return Py_TYPE(known.ptr()) == Py_TYPE(x.ptr()) && equal(known, x);
    }
    if (kind.ptr() == marks().object) {
      if (item(structure, 1).ptr() != x.ptr()) return false;
      objects.push_back(x.ptr());
      return true;
    }
    if (reinterpret_cast<PyObject*>(Py_TYPE(x.ptr())) != kind.ptr()) return false;
    const nb::handle items = item(structure, 1);
    if (PyDict_CheckExact(x.ptr())) return dict(items, x);
    if (PyDict_Check(x.ptr())) return pairs(items, x);
    return sequence(items, x);
  }

  nb::list tensors;
  std::vector<PyObject*> objects;

 private:
  static nb::handle item(nb::handle tuple, size_t i) { return tuple_item(tuple.ptr(), i); }

  // Functions, types, enumerators and the like are the same object; what has a value may be
  // another.
  static bool equal(nb::handle a, nb::handle b) {
    if (same(a.ptr(), b.ptr())) return true;
    if (PyFloat_CheckExact(a.ptr())) return false;
    const int is_equal = PyObject_RichCompareBool(a.ptr(), b.ptr(), Py_EQ);
    if (is_equal < 0) throw nb::python_error();
    return is_equal == 1;
  }

  bool sequence(nb::handle items, nb::handle x) {
    const Py_ssize_t n = tuple_size(items.ptr());
    if (PyTuple_Check(x.ptr()) ? PyTuple_Size(x.ptr()) != n : PyList_Size(x.ptr()) != n) {
      return false;
    }
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* element =
          PyTuple_Check(x.ptr()) ? PyTuple_GetItem(x.ptr(), i) : PyList_GetItem(x.ptr(), i);
      if (element == nullptr) throw nb::python_error();
      if (!value(item(items, i), element)) return false;
    }
    return true;
  }

  bool dict(nb::handle items, nb::handle x) {
    if (PyDict_Size(x.ptr()) != tuple_size(items.ptr())) return false;
    PyObject *key, *element;
    Py_ssize_t at = 0;
    for (size_t i = 0; PyDict_Next(x.ptr(), &at, &key, &element) != 0; ++i) {
      const nb::handle pair = item(items, i);
      const nb::object held = nb::borrow(element);  // comparing keys may run code
      if (!equal(item(pair, 0), nb::borrow(key)) || !value(item(pair, 1), held)) return false;
    }
    return true;
  }

  // Of a class derived from dict, which may have an order of its own.
  bool pairs(nb::handle items, nb::handle x) {
    const nb::list all(x.attr("items")());
    if (all.size() != static_cast<size_t>(tuple_size(items.ptr()))) return false;
    for (size_t i = 0; i < all.size(); ++i) {
      const nb::handle pair = item(items, i);
      const nb::tuple now(all[i]);
      if (!equal(item(pair, 0), now[0]) || !value(item(pair, 1), now[1])) return false;
    }
    return true;
  }
};

template <class See>
bool walk_all(See& see, const nb::tuple& watched, const std::vector<PyObject*>& objects,
              nb::handle values) {
  Walk<See> walk(see);
  for (nb::handle dict : watched) {
    if (!walk.contents(dict.ptr())) return false;
  }
  for (PyObject* object : objects) {
    if (!walk.value(object)) return false;
  }
  for (nb::handle value : values) {
    if (!walk.value(value.ptr())) return false;
  }
  return true;
}

}  // namespace

CallGuard::CallGuard(nb::object structure, nb::tuple watched, nb::handle args, nb::handle kwargs,
                     nb::handle values)
    : structure_(std::move(structure)), watched_(std::move(watched)) {
  Match match;
  if (!match.value(structure_, nb::make_tuple(args, kwargs))) {
    throw_error<RuntimeError>("compile: the arguments changed while the call was looked at");
  }
  const auto see = [this](PyObject* object, const Place& place) {
    seen_.push_back({nb::borrow(object), place.is_attribute});
    return true;
  };
  walk_all(see, watched_, match.objects, values);
}

nb::object CallGuard::match(nb::handle args, nb::handle kwargs, nb::handle values) const {
  if (!structure_.is_valid()) return nb::none();  // collected
  Match match;
  if (!match.value(structure_, nb::make_tuple(args, kwargs))) return nb::none();
  size_t i = 0;
  const auto see = [&](PyObject* object, const Place&) {
    if (i >= seen_.size()) return false;
    const Seen& seen = seen_[i++];
    return same(seen.object.ptr(), object) ||
           (seen.is_ignored && tensor_pointer(object) != nullptr);
  };
  if (!walk_all(see, watched_, match.objects, values) || i != seen_.size()) return nb::none();
  return std::move(match.tensors);
}

nb::list CallGuard::changes(nb::handle args, nb::handle kwargs, nb::handle values) const {
  nb::list out;
  if (!structure_.is_valid()) return out;  // collected
  Match match;
  if (!match.value(structure_, nb::make_tuple(args, kwargs))) return out;
  size_t i = 0;
  const auto see = [&](PyObject* object, const Place& place) {
    if (i >= seen_.size()) return false;
    const size_t number = i++;
    const nb::object& before = seen_[number].object;
    if (same(before.ptr(), object)) return true;
    if (place.dict == nullptr || tensor_pointer(before.ptr()) == nullptr ||
        tensor_pointer(object) == nullptr) {
      return false;
    }
    out.append(nb::make_tuple(number, nb::borrow(place.dict), nb::borrow(place.key), before));
    return true;
  };
  if (!walk_all(see, watched_, match.objects, values) || i != seen_.size()) return nb::list();
  return out;
}

void CallGuard::ignore(size_t number) { seen_.at(number).is_ignored = true; }

nb::list CallGuard::state() const {
  nb::list out;
  for (const Seen& seen : seen_) {
    if (seen.is_attribute || seen.is_ignored) continue;
    if (tensor_pointer(seen.object.ptr()) != nullptr) out.append(seen.object);
  }
  return out;
}

int CallGuard::traverse(visitproc visit, void* arg) const {
  Py_VISIT(structure_.ptr());
  Py_VISIT(watched_.ptr());
  for (const Seen& seen : seen_) Py_VISIT(seen.object.ptr());
  return 0;
}

void CallGuard::clear() {
  structure_.reset();
  watched_.reset();
  seen_.clear();
}

}  // namespace kiln::python
