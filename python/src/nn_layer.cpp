// Layers of C++ as Python classes.
//
// Note [A layer's two sides]
// The Python module has the truth: options are attributes of it, tensors are in its dicts. Its C++
// side keeps layers of the C++ class that wait for a call. A call takes one, brings its options up
// to date, lends it the tensors and takes them back. So nothing can be out of step, no tensor lives
// longer than its module, and two threads that call one module have a layer each. An option that is
// the same object as at the last call, and cannot change, is not read again.
#include "nn_layer.h"

#include <algorithm>
#include <array>

#include "default_device.h"
#include "kiln/tensor/creation.h"
#include "overrides.h"

namespace kiln::python {

namespace {

constexpr size_t kMaxArguments = 12;

// What Python knows of a LayerType.
struct LayerClass {
  std::unique_ptr<LayerType> type;
  std::vector<LayerOption> options;
  std::vector<nb::object> names;       // of the options, interned
  std::vector<bool> is_attribute;      // known from the first layer on: no part has its name
  std::vector<LayerOption> arguments;  // of forward
  std::vector<nb::object> argument_names;
  size_t positional = 0;  // how many of them may be given without a name
  PyTypeObject* python = nullptr;
  nb::object reset_parameters;  // the class's own, or null
  std::string forward_doc;
  nb::object forward;  // as the Python class has it
  std::array<PyMethodDef, 5> methods{};
};

struct LayerNames {
  PyObject* parameters = PyUnicode_InternFromString("_parameters");
  PyObject* buffers = PyUnicode_InternFromString("_buffers");
  PyObject* params = PyUnicode_InternFromString("_params");
  PyObject* hidden = PyUnicode_InternFromString("_non_persistent_buffers_set");
  PyObject* training = PyUnicode_InternFromString("training");
  PyObject* reset = PyUnicode_InternFromString("reset_parameters");
};
const LayerNames& layer_names() {
  static const LayerNames all;
  return all;
}

// They live as long as the process.
std::vector<std::unique_ptr<LayerClass>>& classes() {
  static auto* all = new std::vector<std::unique_ptr<LayerClass>>();
  return *all;
}

// ---- The C++ side of one module

// A parameter or buffer of a layer.
struct Slot {
  PyObject* name;  // interned, never freed
  nn::Param<Tensor>* param;
  nn::Buffer* buffer;

  void lend(const Tensor& x) const {
    if (param != nullptr) {
      param->replace(x);
    } else {
      *buffer = x;
    }
  }
  void take_back() const { lend(Tensor()); }
  const Tensor& get() const { return param != nullptr ? param->get() : buffer->get(); }
};

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

struct Box {
  explicit Box(std::unique_ptr<nn::Module> made, size_t options)
      : layer(std::move(made)), seen(options) {
    Slots slots_of_layer;
    layer->visit_parts(slots_of_layer);
    slots = std::move(slots_of_layer.all);
  }
  void take_back() const {
    for (const Slot& slot : slots) slot.take_back();
  }

  std::unique_ptr<nn::Module> layer;
  std::vector<Slot> slots;
  std::vector<nb::object> seen;  // of each option, the value that the layer has
  bool training = true;
};

}  // namespace

struct LayerState {
  explicit LayerState(LayerClass* layer_class) : of(layer_class) {}

  LayerClass* of;
  // The module's class when somebody last looked whether it has an attribute of an option's or
  // part's name, such as a property. Python counts the changes of a class.
  PyTypeObject* seen_type = nullptr;
  unsigned int seen_version = 0;
  bool shadows = false;
  std::vector<std::unique_ptr<Box>> boxes;
  std::vector<Box*> idle;
  LayerStatePointer next;  // of another class of layers that the module's class derives from
};

void FreeLayerState::operator()(LayerState* state) const noexcept { delete state; }

namespace {

nb::object dict_of(PyObject* self) {
  nb::object dict = nb::steal(PyObject_GenericGetDict(self, nullptr));
  if (!dict.is_valid()) throw nb::python_error();
  return dict;
}

// Borrowed; null when there is none.
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

// A module's state as a layer of that class.
LayerState& state_of(PyObject* self, LayerClass& of) {
  LayerStatePointer* place = &layer_state(self);
  while (*place != nullptr && (*place)->of != &of) place = &(*place)->next;
  if (*place == nullptr) place->reset(new LayerState(&of));
  return **place;
}

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

Box& add_box(LayerState& state, std::unique_ptr<nn::Module> layer) {
  LayerClass& of = *state.of;
  state.boxes.push_back(std::make_unique<Box>(std::move(layer), of.options.size()));
  Box& box = *state.boxes.back();
  if (of.is_attribute.empty()) find_attributes(of, box);
  return box;
}

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

// A layer of the module's, up to date, for as long as this lives. Under the interpreter's lock.
class LayerInUse {
 public:
  LayerInUse(PyObject* self, LayerClass& of) : state_(state_of(self, of)) {
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
  ~LayerInUse() { give_back(); }
  LayerInUse(const LayerInUse&) = delete;
  LayerInUse& operator=(const LayerInUse&) = delete;

  nn::Module& layer() const { return *box_->layer; }
  int64_t numel() const { return numel_; }

 private:
  void give_back() {
    box_->take_back();
    state_.idle.push_back(box_);
  }

  LayerState& state_;
  Box* box_;
  int64_t numel_ = 0;
};

// ---- The methods of the Python classes

[[noreturn]] void wrong_call(const LayerClass& of, const std::string& what) {
  throw nb::type_error(concat(of.type->name(), ".forward() ", what).c_str());
}

// Where an argument given by name belongs.
size_t place_of(const LayerClass& of, PyObject* name) {
  for (size_t i = 0; i < of.argument_names.size(); ++i) {
    if (PyUnicode_Compare(of.argument_names[i].ptr(), name) == 0) return i;
  }
  wrong_call(of, concat("got an unexpected keyword argument '", utf8_of(name), "'"));
}

using Arguments = std::array<PyObject*, kMaxArguments>;

void bind_arguments(const LayerClass& of, PyObject* const* args, size_t given, PyObject* kwnames,
                    Arguments& out) {
  const size_t count = of.arguments.size();
  if (given > of.positional) {
    wrong_call(of, concat("takes ", of.positional + 1, " positional arguments but ", given + 1,
                          " were given"));
  }
  for (size_t i = 0; i < count; ++i) out[i] = i < given ? args[i] : nullptr;
  const Py_ssize_t named = kwnames == nullptr ? 0 : tuple_size(kwnames);
  for (Py_ssize_t k = 0; k < named; ++k) {
    const size_t place = place_of(of, tuple_item(kwnames, k));
    if (out[place] != nullptr) {
      wrong_call(of, concat("got multiple values for argument '", of.arguments[place].name, "'"));
    }
    out[place] = args[given + static_cast<size_t>(k)];
  }
  for (size_t i = 0; i < count; ++i) {
    if (out[i] != nullptr) continue;
    if (!of.arguments[i].standard.is_valid()) {
      wrong_call(of, concat("missing a required argument: '", of.arguments[i].name, "'"));
    }
    out[i] = of.arguments[i].standard.ptr();
  }
}

// Of a required argument None is no value.
void check_required(const LayerClass& of, const Arguments& values) {
  if (of.type->takes_anything()) return;
  for (size_t i = 0; i < of.arguments.size(); ++i) {
    if (values[i] != Py_None || of.arguments[i].standard.is_valid()) continue;
    throw nb::type_error(concat(of.type->name(), ": expected a tensor for '", of.arguments[i].name,
                                "'; got NoneType")
                             .c_str());
  }
}

// What f(layer in use) gives, or null with Python's error.
template <class F>
PyObject* guarded(PyObject* self, LayerClass& of, F f) {
  try {
    const LayerInUse use(self, of);
    return f(use);
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

// See Note [Overrides]. Arguments that the layer does not take are its own error.
PyObject* override_forward(const LayerClass& of, PyObject* self, PyObject* const* args,
                           Py_ssize_t n, PyObject* kwnames, bool& handled) {
  try {
    Arguments values;
    bind_arguments(of, args, static_cast<size_t>(n), kwnames, values);
  } catch (...) {
    handled = true;
    set_python_error();
    return nullptr;
  }
  const Py_ssize_t named = kwnames == nullptr ? 0 : tuple_size(kwnames);
  std::vector<PyObject*> all{self};
  all.insert(all.end(), args, args + n + named);
  return overrides::call_layer(of.forward.ptr(), all.data(), static_cast<size_t>(n) + 1, kwnames,
                               handled);
}

PyObject* call_method(PyObject* self, LayerClass& of, const char* method) {
  return guarded(self, of, [&](const LayerInUse& use) {
    of.type->call_method(use.layer(), method);
    return nb::none().release().ptr();
  });
}

// The methods of the class in one row. A function for each row, for a class may derive from two.
template <size_t row>
struct Methods {
  static LayerClass& of() { return *classes()[row]; }

  static PyObject* forward(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
    LayerClass& of = Methods::of();
    if (overrides::active) [[unlikely]] {
      bool handled = false;
      PyObject* const result = override_forward(of, self, args, n, kwnames, handled);
      if (handled) return result;
    }
    return guarded(self, of, [&](const LayerInUse& use) {
      const auto given = static_cast<size_t>(n);
      if (kwnames == nullptr && given == of.arguments.size() && given == of.positional &&
          std::find(args, args + n, Py_None) == args + n) [[likely]] {
        return of.type->forward(use.layer(), args, use.numel());
      }
      Arguments values;
      bind_arguments(of, args, given, kwnames, values);
      check_required(of, values);
      return of.type->forward(use.layer(), values.data(), use.numel());
    });
  }
  static PyObject* extra_repr(PyObject* self, PyObject*) {
    return guarded(self, of(), [](const LayerInUse& use) {
      return nb::cast(use.layer().extra_repr()).release().ptr();
    });
  }
  static PyObject* reset_parameters(PyObject* self, PyObject*) {
    return call_method(self, of(), "reset_parameters");
  }
  static PyObject* reset_running_stats(PyObject* self, PyObject*) {
    return call_method(self, of(), "reset_running_stats");
  }
  // _may_lack(name, version): see Module::may_lack.
  static PyObject* may_lack(PyObject* self, PyObject* args) {
    const char* name = nullptr;
    PyObject* version = nullptr;
    if (PyArg_ParseTuple(args, "sO", &name, &version) == 0) return nullptr;
    return guarded(self, of(), [&](const LayerInUse& use) {
      nn::StateMetadata saved;
      int64_t number = 0;
      if (try_value(version, number)) saved["version"] = number;
      return nb::bool_(use.layer().may_lack(name, saved)).release().ptr();
    });
  }
};

// ---- Making a module

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

// What __init__ does once Module's has run: options and parts of a new layer for `self`.
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

// ---- Making the classes

// "input, *, residual=None".
void read_arguments(LayerClass& of) {
  std::string_view text = of.type->forward_text();
  bool keyword_only = false;
  const nb::object evaluate = nb::module_::import_("ast").attr("literal_eval");
  while (!text.empty()) {
    const size_t comma = text.find(", ");
    const std::string_view word = text.substr(0, comma);
    text = comma == std::string_view::npos ? "" : text.substr(comma + 2);
    if (word == "*") {
      keyword_only = true;
      continue;
    }
    const size_t equals = word.find('=');
    LayerOption argument{std::string(word.substr(0, equals)), {}, "", keyword_only};
    if (equals != std::string_view::npos) {
      argument.standard = evaluate(std::string(word.substr(equals + 1)));
    }
    if (!keyword_only) ++of.positional;
    of.argument_names.push_back(nb::steal(PyUnicode_InternFromString(argument.name.c_str())));
    of.arguments.push_back(std::move(argument));
  }
  if (of.arguments.size() > kMaxArguments) {
    throw_error<ValueError>("layers.def: ", of.type->name(), ": forward takes at most ",
                            kMaxArguments, " arguments; got ", of.arguments.size());
  }
}

nb::dict description(const LayerClass& of) {
  nb::dict out;
  const LayerType& type = *of.type;
  out["name"] = type.name();
  out["home"] = type.home();
  out["doc"] = type.doc();
  out["forward"] = type.forward_text();
  out["version"] = type.state_version();
  out["has_parameters"] = type.has_parameters();
  out["takes_anything"] = type.takes_anything();
  nb::list options;
  for (const LayerOption& option : of.options) {
    options.append(nb::make_tuple(
        option.name,
        option.standard.is_valid() ? nb::make_tuple(option.standard) : nb::make_tuple(),
        option.annotation, option.keyword_only));
  }
  out["options"] = options;
  nb::list methods;
  for (const char* method : {"reset_parameters", "reset_running_stats"}) {
    if (type.has_method(method)) methods.append(method);
  }
  out["methods"] = methods;
  return out;
}

void add_method(LayerClass& of, size_t place, PyMethodDef method) {
  of.methods[place] = method;
  const nb::object made = nb::steal(PyDescr_NewMethod(of.python, &of.methods[place]));
  if (!made.is_valid()) throw nb::python_error();
  nb::handle(reinterpret_cast<PyObject*>(of.python)).attr(method.ml_name) = made;
}

template <size_t row>
void install(nb::handle python) {
  using Row = Methods<row>;
  LayerClass& of = Row::of();
  of.python = reinterpret_cast<PyTypeObject*>(nb::object(nb::borrow(python)).release().ptr());
  of.forward_doc = concat("forward($self, ", of.type->forward_text(), ")\n--\n\n");
  const auto forward = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&Row::forward));
  add_method(of, 0, {"forward", forward, METH_FASTCALL | METH_KEYWORDS, of.forward_doc.c_str()});
  of.forward = python.attr("forward");
  add_method(of, 1, {"extra_repr", &Row::extra_repr, METH_NOARGS, "extra_repr($self)\n--\n\n"});
  add_method(of, 2, {"_may_lack", &Row::may_lack, METH_VARARGS, nullptr});
  if (of.type->has_method("reset_parameters")) {
    add_method(of, 3,
               {"reset_parameters", &Row::reset_parameters, METH_NOARGS,
                "reset_parameters($self)\n--\n\nGives the parameters new initial values."});
    of.reset_parameters = python.attr("reset_parameters");
  }
  if (of.type->has_method("reset_running_stats")) {
    add_method(of, 4,
               {"reset_running_stats", &Row::reset_running_stats, METH_NOARGS,
                "reset_running_stats($self)\n--\n\nForgets what the batches so far were like."});
  }
}

#define KILN_LAYER(...) +1
constexpr size_t kRows = 0
#include "kiln/nn/layers.def"
    ;
#undef KILN_LAYER

// Gives the Python class made for a row its methods.
void install_row(size_t index, nb::handle python) {
  const auto functions = []<size_t... row>(std::index_sequence<row...>) {
    return std::array<void (*)(nb::handle), kRows>{&install<row>...};
  }(std::make_index_sequence<kRows>());
  functions.at(index)(python);
}

// ---- The C++ classes themselves, for trees of C++ and for tests

const LayerClass& class_named(const std::string& name) {
  for (const auto& of : classes()) {
    if (name == of->type->name()) return *of;
  }
  throw_error<KeyError>("layers.def: no layer of this name; got '", name, "'");
}

nb::object cpp_layer(const std::string& name, const nb::args& values, const nb::kwargs& named) {
  const LayerClass& of = class_named(name);
  std::vector<nb::object> all;
  for (size_t i = 0; i < of.options.size(); ++i) {
    const LayerOption& option = of.options[i];
    nb::object value = option.standard;
    if (i < values.size()) value = nb::borrow(values[i]);
    if (named.contains(option.name.c_str())) value = nb::borrow(named[option.name.c_str()]);
    if (!value.is_valid()) {
      throw nb::type_error(
          concat(name, ": missing a required argument: '", option.name, "'").c_str());
    }
    all.push_back(std::move(value));
  }
  return cpp_handle(of.type->make(all, {}));
}

// forward of a C++ layer, with the arguments that the row names.
nb::object call_cpp_layer(nb::handle handle, const nb::args& given) {
  nn::Module& layer = module_of_handle(handle);
  const LayerClass& of = class_named(layer.type_name());
  std::vector<PyObject*> all;
  for (nb::handle value : given) all.push_back(value.ptr());
  Arguments values;
  bind_arguments(of, all.data(), all.size(), nullptr, values);
  check_required(of, values);
  return nb::steal(of.type->forward(layer, values.data(), 0));
}

}  // namespace

// All of them, in the order of layers.def.
std::vector<std::unique_ptr<LayerType>> all_layer_types() {
  std::vector<std::unique_ptr<LayerType>> out(kRows);
  [&]<size_t... part>(std::index_sequence<part...>) {
    (make_layer_types<part>(out), ...);
  }(std::make_index_sequence<kLayerParts>());
  return out;
}

void bind_layers(nb::module_& m) {
  for (std::unique_ptr<LayerType>& type : all_layer_types()) {
    auto of = std::make_unique<LayerClass>();
    of->type = std::move(type);
    of->options = of->type->options();
    for (const LayerOption& option : of->options) {
      of->names.push_back(nb::steal(PyUnicode_InternFromString(option.name.c_str())));
    }
    read_arguments(*of);
    classes().push_back(std::move(of));
  }
  m.def("_cpp_layer", &cpp_layer, "name"_a, "values"_a, "named"_a);
  m.def("_call_cpp_layer", &call_cpp_layer, "handle"_a, "arguments"_a);
  // For python/kiln/nn/layers.py.
  m.def("_layers", [] {
    nb::list out;
    for (const auto& of : classes()) out.append(description(*of));
    return out;
  });
  m.def("_layer_install", &install_row, "index"_a, "type"_a);
  m.def("_layer_init", &init_layer, "index"_a, "self"_a, "values"_a, "device"_a = nb::none(),
        "dtype"_a = nb::none());
}

}  // namespace kiln::python
