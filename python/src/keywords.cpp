// The keyword arguments that PyTorch takes beside a function's own ones: other names of arguments
// (axis= for dim=), and words that work on every function of a kind (out=, memory_format=).
//
// Each bound function holds a pointer to what calls it. Here that pointer is exchanged for one that
// goes straight on to nanobind's when a call has no keywords, and translates them otherwise. So no
// binding has to know of these words, and calls without keywords cost what they did.
#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "overrides.h"

namespace kiln::python {

namespace {

using Call = PyObject* (*)(PyObject*, PyObject* const*, size_t, PyObject*);

// How many positional arguments a call has. PyVectorcall_NARGS would count a flag among them that
// nanobind puts into the bit below Python's own when it calls constructors.
size_t count_of(size_t flags) {
  constexpr size_t flag_bits =
      PY_VECTORCALL_ARGUMENTS_OFFSET | (PY_VECTORCALL_ARGUMENTS_OFFSET >> 1);
  return flags & ~flag_bits;
}

// nanobind has a caller for each kind of function; there are few kinds.
constexpr size_t kKinds = 16;
std::array<Call, kKinds> callers{};

// What the words of one function mean, as a dict: a name for which this is another one, the
// position of the argument, None for a word that the function `finish` understands, or an ellipsis
// for a word that means what it says.
std::unordered_map<PyObject*, nb::dict>& meanings() {
  static auto* all = new std::unordered_map<PyObject*, nb::dict>();
  return *all;
}
// The same for every function that has an argument of that name; set once, at import.
PyObject* common = nullptr;
// Calls a function with words of its own: finish(function, words, args, kwargs).
PyObject* finish = nullptr;
// Calls a function that refused its arguments with others that mean the same: again(function, args,
// kwargs). NotImplemented: there are none.
PyObject* again = nullptr;

// Whether a signature of the function has an argument of this name.
bool takes(PyObject* function, std::string_view name) {
  const nb::object signatures = nb::getattr(nb::handle(function), "__nb_signature__", nb::none());
  if (signatures.is_none()) return false;
  for (nb::handle overload : signatures) {
    const auto text = nb::cast<std::string>(overload[0]);
    const std::string_view signature = text;
    for (size_t at = signature.find(name); at != std::string_view::npos;
         at = signature.find(name, at + 1)) {
      const char before = at == 0 ? ' ' : signature[at - 1];
      const size_t end = at + name.size();
      if ((before == ' ' || before == '(') && end < signature.size() && signature[end] == ':') {
        return true;
      }
    }
  }
  return false;
}

std::string_view text_of(PyObject* name) { return utf8_of(name); }

// What `name` means to the function, borrowed; null: what it says.
PyObject* meaning_of(PyObject* function, PyObject* name) {
  const auto found = meanings().find(function);
  PyObject* own = found == meanings().end() ? nullptr : PyDict_GetItem(found->second.ptr(), name);
  if (own != nullptr) return own == Py_Ellipsis ? nullptr : own;
  PyObject* other = common == nullptr ? nullptr : PyDict_GetItem(common, name);
  if (other == nullptr) return nullptr;
  const bool foreign = !takes(function, text_of(name)) && takes(function, text_of(other));
  meanings()[function][nb::handle(name)] = nb::handle(foreign ? other : Py_Ellipsis);
  return foreign ? other : nullptr;
}

[[noreturn]] void throw_twice(PyObject* function, PyObject* name) {
  const nb::str of(nb::getattr(nb::handle(function), "__name__"));
  throw nb::type_error(
      concat(of.c_str(), "() got multiple values for argument '", text_of(name), "'").c_str());
}

// The arguments of one call, while names are exchanged.
struct Arguments {
  Arguments(PyObject* function, PyObject* const* args, size_t n, PyObject* names)
      : function(function), positional(args, args + n) {
    const Py_ssize_t count = tuple_size(names);
    for (Py_ssize_t i = 0; i < count; ++i) {
      take(tuple_item(names, i), args[n + static_cast<size_t>(i)]);
    }
    place();
  }

  void take(PyObject* name, PyObject* value) {
    PyObject* meaning = meaning_of(function, name);
    if (meaning == nullptr) {
      add(name, value);
    } else if (meaning == Py_None) {
      words[nb::handle(name)] = nb::handle(value);
    } else if (PyLong_Check(meaning)) {
      placed.push_back({static_cast<size_t>(PyLong_AsLong(meaning)), name, value});
    } else {
      add(meaning, value);
    }
  }

  void add(PyObject* name, PyObject* value) {
    for (PyObject* other : keywords) {
      if (PyUnicode_Compare(other, name) == 0) throw_twice(function, name);
    }
    keywords.push_back(name);
    values.push_back(value);
  }

  // Arguments that have a position only: each must come right after those that are given.
  void place() {
    while (!placed.empty()) {
      const size_t before = placed.size();
      for (auto it = placed.begin(); it != placed.end(); ++it) {
        if (it->position > positional.size()) continue;
        if (it->position < positional.size()) throw_twice(function, it->name);
        positional.push_back(it->value);
        placed.erase(it);
        break;
      }
      if (placed.size() == before) {
        const nb::str of(nb::getattr(nb::handle(function), "__name__"));
        throw nb::type_error(
            concat(of.c_str(), "(): expected the arguments before '", text_of(placed[0].name), "'")
                .c_str());
      }
    }
  }

  struct Placed {
    size_t position;
    PyObject* name;
    PyObject* value;
  };
  PyObject* function;
  std::vector<PyObject*> positional;
  std::vector<PyObject*> keywords;
  std::vector<PyObject*> values;
  std::vector<Placed> placed;
  nb::dict words;
};

PyObject* call_with_words(PyObject* function, const Arguments& a) {
  nb::list args;
  for (PyObject* x : a.positional) args.append(nb::handle(x));
  nb::dict kwargs;
  for (size_t i = 0; i < a.keywords.size(); ++i) {
    kwargs[nb::handle(a.keywords[i])] = nb::handle(a.values[i]);
  }
  return PyObject_CallFunctionObjArgs(finish, function, a.words.ptr(), args.ptr(), kwargs.ptr(),
                                      nullptr);
}

PyObject* call_with_keywords(Call call, PyObject* function, PyObject* const* args, size_t flags,
                             PyObject* names) {
  bool plain = true;
  const Py_ssize_t count = tuple_size(names);
  for (Py_ssize_t i = 0; i < count && plain; ++i) {
    plain = meaning_of(function, tuple_item(names, i)) == nullptr;
  }
  if (plain) return call(function, args, flags, names);
  Arguments exchanged(function, args, count_of(flags), names);
  if (exchanged.words.size() > 0) return call_with_words(function, exchanged);
  std::vector<PyObject*>& all = exchanged.positional;
  const size_t positional = all.size();
  all.insert(all.end(), exchanged.values.begin(), exchanged.values.end());
  nb::object renamed = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(exchanged.keywords.size())));
  for (size_t i = 0; i < exchanged.keywords.size(); ++i) {
    set_tuple_item(renamed.ptr(), static_cast<Py_ssize_t>(i),
                   nb::handle(exchanged.keywords[i]).inc_ref().ptr());
  }
  return call(function, all.data(), positional,
              exchanged.keywords.empty() ? nullptr : renamed.ptr());
}

bool is_array_among(PyObject* const* args, size_t count) {
  return std::any_of(args, args + count,
                     [](PyObject* x) { return name_of_type(nb::handle(x)) == "numpy.ndarray"; });
}

// What is left when a call was refused: an operator by NotImplemented, a function by TypeError.
PyObject* call_again(PyObject* refusal, PyObject* function, PyObject* const* args, size_t flags,
                     PyObject* names) {
  if (again == nullptr) return refusal;  // while the package is imported
  const auto count = count_of(flags);
  std::optional<nb::python_error> error;
  if (refusal == nullptr) {
    if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) return nullptr;
    error.emplace();  // takes it
    const std::string_view why = error->what();
    if (why.find("incompatible function arguments") == std::string_view::npos &&
        why.find("got two numbers") == std::string_view::npos) {
      error->restore();
      return nullptr;
    }
  } else if (!is_array_among(args, count)) {
    return refusal;
  }
  nb::list positional;
  for (size_t i = 0; i < count; ++i) positional.append(nb::handle(args[i]));
  nb::dict keywords;
  for (Py_ssize_t i = 0; names != nullptr && i < tuple_size(names); ++i) {
    keywords[nb::handle(tuple_item(names, i))] = nb::handle(args[count + static_cast<size_t>(i)]);
  }
  PyObject* const result =
      PyObject_CallFunctionObjArgs(again, function, positional.ptr(), keywords.ptr(), nullptr);
  if (result != Py_NotImplemented || !error) {
    Py_XDECREF(refusal);
    return result;
  }
  Py_DECREF(result);
  error->restore();
  return nullptr;
}

// The way of calls with keywords, and of those that were refused; `result` is what came of it.
[[gnu::noinline]] PyObject* forward_slowly(Call call, PyObject* result, PyObject* function,
                                           PyObject* const* args, size_t flags, PyObject* names) {
  try {
    if (names != nullptr) result = call_with_keywords(call, function, args, flags, names);
    if (result != nullptr && result != Py_NotImplemented) return result;
    return call_again(result, function, args, flags, names);
  } catch (...) {
    set_python_error();
  }
  return nullptr;
}

template <size_t kind>
PyObject* forward(PyObject* function, PyObject* const* args, size_t flags, PyObject* names) {
  if (overrides::active) [[unlikely]] {
    bool handled = false;
    PyObject* const result = overrides::call(function, args, count_of(flags), names, handled);
    if (handled) return result;
  }
  PyObject* result = nullptr;
  if (names == nullptr) [[likely]] {
    result = callers[kind](function, args, flags, nullptr);
    if (result != nullptr && result != Py_NotImplemented) [[likely]]
      return result;
  }
  return forward_slowly(callers[kind], result, function, args, flags, names);
}

template <size_t... kinds>
constexpr std::array<Call, sizeof...(kinds)> forwards(std::index_sequence<kinds...>) {
  return {&forward<kinds>...};
}

bool is_bound_function(nb::handle object) {
  const std::string_view type = name_of_type(object);
  return type.ends_with("nb_func") || type.ends_with("nb_method");
}

void route_all(nb::handle members) {
  for (const auto& [name, member] : nb::cast<nb::dict>(members)) {
    route(member);
  }
}

}  // namespace

void route(nb::handle function) {
  if (!is_bound_function(function)) return;
  static constexpr auto all = forwards(std::make_index_sequence<kKinds>());
  // nanobind keeps the pointer right after the object's head.
  auto& call = *reinterpret_cast<Call*>(reinterpret_cast<PyVarObject*>(function.ptr()) + 1);
  for (const Call routed : all) {
    if (call == routed) return;
  }
  for (size_t kind = 0; kind < kKinds; ++kind) {
    if (callers[kind] == nullptr) callers[kind] = call;
    if (callers[kind] == call) {
      call = all[kind];
      return;
    }
  }
}

void bind_keywords(nb::module_& m, TensorClass& c) {
  route_all(m.attr("__dict__"));
  for (const char* part : {"_functional", "_linalg", "_fft", "_special", "_init"}) {
    route_all(nb::getattr(m, part).attr("__dict__"));
  }
  route_all(nb::module_::import_("builtins").attr("dict")(c.attr("__dict__")));
  m.def(
      "_set_keywords",
      [](nb::dict names, nb::callable words) {
        common = names.release().ptr();
        finish = words.release().ptr();
      },
      "Names that all functions understand, and what is called for words of a function's own.");
  m.def(
      "_set_again", [](nb::callable call) { again = call.release().ptr(); },
      "What is called with a function that refused its arguments, with them as a list and a dict.");
  m.def(
      "_add_keywords",
      [](nb::handle function, nb::dict names) {
        if (!is_bound_function(function)) throw nb::type_error("expected a bound function");
        nb::dict& own = meanings()[function.ptr()];
        for (const auto& [name, meaning] : names) own[name] = meaning;
      },
      "What keywords mean to one function.");
}

}  // namespace kiln::python
