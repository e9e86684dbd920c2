// Files of tensors.
#include <complex>
#include <optional>

#include "binding.h"
#include "kiln/io/gguf_file.h"
#include "kiln/io/model_file.h"
#include "kiln/io/torch_file.h"
#include "pickle_objects.h"

namespace kiln::python {

namespace {

using io::PickleItem;
using io::PickleValue;

// Text of a file as a Python string, with what zero bytes it has.
nb::str text_object(const std::string& text) { return nb::str(text.data(), text.size()); }

// A Python string as UTF-8.
std::string text_of(nb::handle text) {
  Py_ssize_t size = 0;
  const char* bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (bytes == nullptr) {
    PyErr_Clear();
    throw_error<ValueError>("save: a text has a character that is none (a lone surrogate); got ",
                            nb::cast<std::string>(nb::repr(text)), "; expected Unicode");
  }
  return {bytes, static_cast<size_t>(size)};
}

// A path as the system has it; os.fsencode gives back names that are no UTF-8.
std::string path_of(nb::handle path) {
  const nb::object bytes = nb::module_::import_("os").attr("fsencode")(path);
  return bytes_value(bytes.ptr());
}

// Turns the tree of a PyTorch file into Python's objects.
class Loader {
 public:
  // `place`: None, or what a tensor becomes: place(tensor, location).
  Loader(const io::TorchReader& reader, nb::handle place) : reader_(reader), place_(place) {}

  nb::object load() {
    collect(reader_.value());
    {
      Unlocked lock;
      tensors_ = reader_.read(stored_);
    }
    return object_of(reader_.value());
  }

 private:
  // The tensors in the order in which object_of meets them.
  void collect(const PickleValue& value) {
    const auto all = [&](const auto& items) {
      for (const auto& item : items) collect(item);
    };
    const auto pairs = [&](const auto& items) {
      for (const PickleItem& item : items) {
        collect(item.key);
        collect(item.value);
      }
    };
    if (const auto* tensor = value.get<io::StoredTensor>()) {
      if ((*tensor)->parts != nullptr) {
        all((*tensor)->parts->arguments);
      } else {
        if (!(*tensor)->refusal.empty()) reader_.read_all();  // throws, and says where it stands
        stored_.push_back(*tensor);
      }
    }
    if (const auto* list = value.get<io::PickleList>()) all(*list);
    if (const auto* tuple = value.get<io::PickleTuple>()) all(tuple->items);
    if (const auto* set = value.get<io::PickleSet>()) all(set->items);
    if (const auto* object = value.get<io::PickleObject>()) all(object->arguments);
    if (const auto* dict = value.get<io::PickleDict>()) {
      pairs(dict->items);
      pairs(dict->attributes);
    }
  }

  // The layout's name stands alone, or is what a function of PyTorch's is given.
  static std::string layout_of(const PickleValue& value) {
    const auto* object = value.get<io::PickleObject>();
    if (object == nullptr) return {};
    if (object->arguments.empty()) return object->name;
    const auto* name = object->arguments[0].get<std::string>();
    return name == nullptr ? std::string() : *name;
  }
  nb::object sparse_of(const io::PickleObject& parts) {
    const nb::list arguments = list_of(parts.arguments);
    const nb::object data = arguments[1];
    return nb::module_::import_("kiln._pickle")
        .attr("rebuild_torch_sparse")(layout_of(parts.arguments[0]), data);
  }

  nb::object tensor_of(const io::StoredTensorInfo& stored) {
    if (stored.parts != nullptr) return sparse_of(*stored.parts);
    nb::object tensor = nb::cast(std::move(tensors_[next_++]));
    if (!place_.is_none()) tensor = place_(tensor, text_object(reader_.location(stored)));
    if (stored.is_parameter) {
      return nb::module_::import_("kiln._C").attr("Parameter")(tensor, stored.requires_grad);
    }
    if (stored.requires_grad) tensor.attr("requires_grad_")();
    return tensor;
  }

  nb::object dict_of(const io::PickleDict& dict) {
    nb::dict out;
    for (const PickleItem& item : dict.items) {
      nb::object key = object_of(item.key);
      out[key] = object_of(item.value);
    }
    if (!dict.ordered) return out;
    nb::object ordered = nb::module_::import_("collections").attr("OrderedDict")(out);
    for (const PickleItem& item : dict.attributes) {
      nb::setattr(ordered, object_of(item.key), object_of(item.value));
    }
    return ordered;
  }

  nb::list list_of(const std::vector<PickleValue>& items) {
    nb::list out;
    for (const PickleValue& item : items) out.append(object_of(item));
    return out;
  }

  nb::object set_of(const io::PickleSet& set) {
    const nb::list items = list_of(set.items);
    return checked(set.frozen ? PyFrozenSet_New(items.ptr()) : PySet_New(items.ptr()));
  }

  // A device that Kiln has, or its name: files know others.
  nb::object object_of_kind(const io::PickleObject& value) {
    const nb::list arguments = list_of(value.arguments);
    if (value.name != "torch.device" || nb::len(arguments) == 0) return text_object(value.name);
    std::string name = text_of(arguments[0]);
    if (nb::len(arguments) > 1) {
      const nb::object number = arguments[1];
      name += ":" + text_of(nb::str(nb::handle(number)));
    }
    try {
      return nb::cast(Device(name));
    } catch (const Error&) {
      return text_object(name);
    }
  }

  static nb::object checked(PyObject* object) {
    if (object == nullptr) nb::raise_python_error();
    return nb::steal(object);
  }

  nb::object object_of(const PickleValue& value) {
    return value.visit([this]<class T>(const T& v) -> nb::object {
      if constexpr (std::is_same_v<T, std::monostate>) {
        return nb::none();
      } else if constexpr (std::is_same_v<T, io::PickleBigInt>) {
        return checked(PyLong_FromString(v.decimal.c_str(), nullptr, 10));
      } else if constexpr (std::is_same_v<T, std::complex<double>>) {
        return checked(PyComplex_FromDoubles(v.real(), v.imag()));
      } else if constexpr (std::is_same_v<T, std::string>) {
        return text_object(v);
      } else if constexpr (std::is_same_v<T, io::PickleBytes>) {
        return nb::bytes(v.bytes.data(), v.bytes.size());
      } else if constexpr (std::is_same_v<T, io::PickleList>) {
        return list_of(v);
      } else if constexpr (std::is_same_v<T, io::PickleTuple>) {
        return nb::tuple(list_of(v.items));
      } else if constexpr (std::is_same_v<T, io::PickleSet>) {
        return set_of(v);
      } else if constexpr (std::is_same_v<T, io::PickleDict>) {
        return dict_of(v);
      } else if constexpr (std::is_same_v<T, io::PickleObject>) {
        return object_of_kind(v);
      } else if constexpr (std::is_same_v<T, io::StoredTensor>) {
        return tensor_of(*v);
      } else {
        return nb::cast(v);
      }
    });
  }

  const io::TorchReader& reader_;
  nb::handle place_;
  std::vector<io::StoredTensor> stored_;
  std::vector<Tensor> tensors_;
  size_t next_ = 0;
};

[[noreturn]] void throw_cannot_save(nb::handle object) {
  throw nb::type_error(
      concat("save: only tensors, numbers, texts and dicts, lists, tuples and sets of them can be "
             "saved; got ",
             name_of_type(object))
          .c_str());
}

// An integer of any size. The longest that can be read back has 1024 bytes.
std::string decimal_of(nb::handle integer) {
  const auto bits = nb::cast<size_t>(integer.attr("bit_length")());
  if (bits >= 8 * 1024) {
    throw_error<ValueError>("save: an integer is too large; got one of ", bits,
                            " bits; expected fewer than 8192");
  }
  return nb::cast<std::string>(nb::str(integer));
}

// What a file keeps of a tensor beside its values: whether it wants gradients, and whether it is a
// parameter.
PickleValue pickled(nb::handle object, const Tensor& x) {
  Tensor value = x.detach();
  if (nb::isinstance<PyParameter>(object)) return io::pickled_parameter(value, x.requires_grad());
  if (x.requires_grad()) value.requires_grad_();
  return value;
}

bool is_ordered(nb::handle dict) {
  return nb::isinstance(dict, nb::module_::import_("collections").attr("OrderedDict"));
}

PickleValue value_of(nb::handle object, int depth);

std::vector<PickleItem> items_of(nb::handle mapping, int depth) {
  std::vector<PickleItem> out;
  for (nb::handle pair : nb::list(mapping.attr("items")())) {
    out.push_back({value_of(nb::object(pair[0]), depth), value_of(nb::object(pair[1]), depth)});
  }
  return out;
}

std::vector<PickleValue> values_of(nb::handle items, int depth) {
  std::vector<PickleValue> out;
  for (nb::handle item : nb::list(nb::borrow(items))) out.push_back(value_of(item, depth));
  return out;
}

PickleValue value_of(nb::handle object, int depth) {
  if (depth > 200) throw_error<ValueError>("save: nested more than 200 deep");
  PyObject* o = object.ptr();
  if (object.is_none()) return {};
  if (is_sparse_object(object)) {
    // As PyTorch writes them: the layout, and a tuple of the parts.
    const nb::object parts = nb::module_::import_("kiln._pickle").attr("torch_sparse")(object);
    return io::PickleObject{
        "torch._utils._rebuild_sparse_tensor",
        {io::PickleObject{"torch.serialization._get_layout",
                          {PickleValue("torch." + text_of(object.attr("layout")))}},
         value_of(parts, depth + 1)}};
  }
  if (const Tensor* x = tensor_pointer(o)) return pickled(object, *x);
  if (PyBool_Check(o)) return o == Py_True;
  if (PyLong_Check(o)) {
    int overflow = 0;
    const long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow == 0) return static_cast<int64_t>(v);
    return io::PickleBigInt{decimal_of(object)};
  }
  if (PyFloat_Check(o)) return float_value(o);
  if (PyComplex_Check(o)) {
    return std::complex<double>(PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o));
  }
  if (PyUnicode_Check(o)) return text_of(object);
  if (PyBytes_Check(o)) return io::PickleBytes{bytes_value(o)};
  if (DType t; nb::isinstance<PyDType>(object) && dtype_from(o, &t)) return t;
  if (PyDict_Check(o)) {
    io::PickleDict out{items_of(object, depth + 1), {}, is_ordered(object)};
    if (nb::hasattr(object, "_metadata")) {
      out.attributes.push_back(
          {PickleValue("_metadata"), value_of(nb::object(object.attr("_metadata")), depth + 1)});
    }
    return out;
  }
  if (PyTuple_Check(o)) return io::PickleTuple{values_of(object, depth + 1)};
  if (PyList_Check(o)) return io::PickleList(values_of(object, depth + 1));
  if (PyAnySet_Check(o)) {
    return io::PickleSet{values_of(object, depth + 1), PyFrozenSet_Check(o) != 0};
  }
  if (nb::isinstance<PyDevice>(object)) {
    return io::PickleObject{"torch.device", {PickleValue(nb::cast<std::string>(nb::str(object)))}};
  }
  // A number of NumPy: one value with a dtype.
  if (nb::hasattr(object, "dtype") && nb::hasattr(object, "item") && PyIndex_Check(o) == 0 &&
      PyNumber_Check(o) != 0 && nb::cast<int>(nb::getattr(object, "ndim", nb::int_(1))) == 0) {
    return value_of(nb::object(object.attr("item")()), depth + 1);
  }
  if (PyIndex_Check(o) != 0 && !nb::isinstance<nb::sequence>(object)) {
    PyObject* whole = PyNumber_Index(o);
    if (whole == nullptr) nb::raise_python_error();
    return value_of(nb::steal(whole), depth + 1);
  }
  throw_cannot_save(object);
}

void save_tensors(const nb::dict& tensors, nb::handle path, const nb::dict& metadata,
                  uint64_t max_shard_size, bool compressed) {
  nn::StateDict state;
  for (const auto& [name, value] : tensors) {
    state.set(text_of(name), tensor_arg("save", value).detach());
  }
  io::SaveOptions options{{}, max_shard_size, compressed};
  for (const auto& [name, value] : metadata) {
    if (!PyUnicode_Check(name.ptr()) || !PyUnicode_Check(value.ptr())) {
      throw nb::type_error("save: metadata must be texts by name");
    }
    options.metadata[text_of(name)] = text_of(value);
  }
  const std::string file = path_of(path);
  Unlocked lock;
  io::save_model_file(file, state, options);
}

nb::dict load_tensors(nb::handle path, nb::handle key, uint64_t max_ratio, nb::handle place) {
  io::ModelFile file;
  const std::string name = path_of(path);
  const io::ReadOptions options{text_of(key), max_ratio};
  {
    Unlocked lock;
    file = io::load_model_file(name, options);
  }
  nb::dict tensors;
  for (const auto& [name, value] : file.tensors) {
    nb::object tensor = nb::cast(value);
    if (!place.is_none()) tensor = place(tensor, "cpu");
    tensors[text_object(name)] = tensor;
  }
  return tensors;
}

nb::object object_of(const Json& value) {
  if (const auto* flag = value.as<bool>()) return nb::bool_(*flag);
  if (const auto* integer = value.as<int64_t>()) return nb::int_(*integer);
  if (const auto* number = value.as<double>()) return nb::float_(*number);
  if (const auto* text = value.as<std::string>()) return text_object(*text);
  if (const auto* bytes = value.as<Json::Bytes>()) return nb::bytes(bytes->data(), bytes->size());
  if (const auto* items = value.as<Json::Array>()) {
    nb::list out;
    for (const Json& item : *items) out.append(object_of(item));
    return out;
  }
  if (const auto* members = value.as<Json::Object>()) {
    nb::dict out;
    for (const auto& [key, member] : *members) out[text_object(key)] = object_of(member);
    return out;
  }
  return nb::none();
}

nb::tuple load_gguf(nb::handle path, uint64_t max_ratio, nb::handle place) {
  io::GgufFile file;
  const std::string name = path_of(path);
  {
    Unlocked lock;
    file = io::load_gguf(name, max_ratio);
  }
  nb::dict tensors;
  for (const auto& [key, value] : file.tensors) {
    nb::object tensor = nb::cast(value);
    if (!place.is_none()) tensor = place(tensor, "cpu");
    tensors[text_object(key)] = tensor;
  }
  return nb::make_tuple(tensors, object_of(file.metadata));
}

nb::object load_torch(nb::handle path, uint64_t max_ratio, nb::handle place) {
  const std::string name = path_of(path);
  std::optional<io::TorchReader> reader;
  {
    Unlocked lock;
    reader.emplace(name, max_ratio);
  }
  return Loader(*reader, place).load();
}

}  // namespace

io::PickleValue pickle_value_of(nb::handle object) { return value_of(object, 0); }

std::string file_name_of(nb::handle path) { return path_of(path); }

void bind_io(nb::module_& m) {
  m.def("_save_tensors", &save_tensors, "tensors"_a, "path"_a, "metadata"_a, "max_shard_size"_a,
        "compressed"_a);
  m.def("_load_tensors", &load_tensors, "path"_a, "key"_a, "max_ratio"_a, "place"_a.none());
  m.def("_load_gguf", &load_gguf, "path"_a, "max_ratio"_a, "place"_a.none());
  m.def("_is_gguf", [](nb::handle path) { return io::is_gguf(path_of(path)); });
  m.def("_load_torch", &load_torch, "path"_a, "max_ratio"_a, "place"_a.none());
  m.def("_file_format",
        [](nb::handle path) { return to_string(io::open_model_file(path_of(path))->format()); });
  m.def("_is_torch_name", [](nb::handle path) {
    return io::format_for_writing(path_of(path)) == io::FileFormat::torch;
  });
  m.def("_is_torch_file", [](nb::handle path, uint64_t max_ratio) {
    const io::InputFile file("load", path_of(path), max_ratio);
    const io::FileFormat format = io::recognize(file);
    return format == io::FileFormat::torch || format == io::FileFormat::torch_legacy;
  });
  m.def(
      "_save_torch",
      [](nb::handle object, nb::handle path) {
        const PickleValue value = value_of(object, 0);
        const std::string file = path_of(path);
        Unlocked lock;
        io::save_torch(file, value);
      },
      "object"_a.none(), "path"_a);
}

}  // namespace kiln::python
