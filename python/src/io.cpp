// Files of tensors.
#include <complex>

#include <nanobind/stl/map.h>

#include "binding.h"
#include "kiln/io/model_file.h"
#include "kiln/io/torch_file.h"

namespace kiln::python {

namespace {

using io::PickleItem;
using io::PickleValue;

nb::object object_of(const PickleValue& value);

nb::object dict_of(const io::PickleDict& dict) {
  nb::dict out;
  for (const PickleItem& item : dict.items) out[object_of(item.key)] = object_of(item.value);
  if (dict.attributes.empty()) return out;
  // Attributes are set on an OrderedDict, as on the state dicts of PyTorch.
  nb::object ordered = nb::module_::import_("collections").attr("OrderedDict")(out);
  for (const PickleItem& item : dict.attributes) {
    if (const auto* name = item.key.get<std::string>()) {
      ordered.attr(name->c_str()) = object_of(item.value);
    }
  }
  return ordered;
}

nb::list list_of(const std::vector<PickleValue>& items) {
  nb::list out;
  for (const PickleValue& item : items) out.append(object_of(item));
  return out;
}

nb::object object_of(const io::PickleObject& value) {
  nb::list arguments = list_of(value.arguments);
  if (value.name == "torch.device" && nb::len(arguments) > 0) {
    return nb::module_::import_("kiln").attr("device")(arguments[0]);
  }
  if (value.name == "torch.Size" && nb::len(arguments) == 1) {
    return nb::module_::import_("kiln").attr("Size")(arguments[0]);
  }
  return nb::str(value.name.c_str());
}

nb::object object_of(const PickleValue& value) {
  return std::visit(
      []<class T>(const T& v) -> nb::object {
        if constexpr (std::is_same_v<T, std::monostate>) {
          return nb::none();
        } else if constexpr (std::is_same_v<T, io::PickleBigInt>) {
          return nb::steal(PyLong_FromString(v.decimal.c_str(), nullptr, 10));
        } else if constexpr (std::is_same_v<T, std::complex<double>>) {
          return nb::steal(PyComplex_FromDoubles(v.real(), v.imag()));
        } else if constexpr (std::is_same_v<T, io::PickleBytes>) {
          return nb::bytes(v.bytes.data(), v.bytes.size());
        } else if constexpr (std::is_same_v<T, io::PickleList>) {
          return list_of(v);
        } else if constexpr (std::is_same_v<T, io::PickleTuple>) {
          return nb::tuple(list_of(v.items));
        } else if constexpr (std::is_same_v<T, io::PickleSet>) {
          return nb::steal(PySet_New(list_of(v.items).ptr()));
        } else if constexpr (std::is_same_v<T, io::PickleDict>) {
          return dict_of(v);
        } else if constexpr (std::is_same_v<T, io::PickleObject>) {
          return object_of(v);
        } else if constexpr (std::is_same_v<T, io::StoredTensor>) {
          throw_error<IoError>("load: a tensor was left in the file");
        } else {
          return nb::cast(v);
        }
      },
      value.variant());
}

[[noreturn]] void throw_cannot_save(nb::handle object) {
  throw nb::type_error(
      concat("save: only tensors, numbers, texts and dicts, lists, tuples and sets of them can be "
             "saved; got ",
             std::string_view(Py_TYPE(object.ptr())->tp_name))
          .c_str());
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
  if (const Tensor* x = tensor_pointer(o)) return x->detach();
  if (PyBool_Check(o)) return o == Py_True;
  if (PyLong_Check(o)) {
    int overflow = 0;
    const long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow == 0) return static_cast<int64_t>(v);
    return io::PickleBigInt{nb::cast<std::string>(nb::str(object))};
  }
  if (PyFloat_Check(o)) return PyFloat_AS_DOUBLE(o);
  if (PyUnicode_Check(o)) return nb::cast<std::string>(object);
  if (PyBytes_Check(o)) {
    return io::PickleBytes{std::string(PyBytes_AS_STRING(o), size_t(PyBytes_GET_SIZE(o)))};
  }
  if (DType t; nb::isinstance<PyDType>(object) && dtype_from(o, &t)) return t;
  if (PyDict_Check(o)) {
    io::PickleDict out{items_of(object, depth + 1), {}};
    if (nb::hasattr(object, "_metadata")) {
      out.attributes.push_back(
          {PickleValue("_metadata"), value_of(nb::object(object.attr("_metadata")), depth + 1)});
    }
    return out;
  }
  if (PyTuple_Check(o)) return io::PickleTuple{values_of(object, depth + 1)};
  if (PyList_Check(o)) return io::PickleList(values_of(object, depth + 1));
  if (PyAnySet_Check(o)) return io::PickleSet{values_of(object, depth + 1)};
  throw_cannot_save(object);
}

void save_tensors(const nb::dict& tensors, const std::string& path,
                  const std::map<std::string, std::string>& metadata, uint64_t max_shard_size,
                  bool compressed) {
  nn::StateDict state;
  for (const auto& [name, value] : tensors) {
    state.set(nb::cast<std::string>(name), tensor_arg("save", value).detach());
  }
  Unlocked lock;
  io::save_model_file(path, state, {metadata, max_shard_size, compressed});
}

nb::tuple load_tensors(const std::string& path, const std::string& key) {
  io::ModelFile file;
  {
    Unlocked lock;
    file = io::load_model_file(path, {key});
  }
  nb::dict tensors;
  for (const auto& [name, value] : file.tensors) tensors[name.c_str()] = value;
  return nb::make_tuple(tensors, file.metadata);
}

}  // namespace

void bind_io(nb::module_& m) {
  m.def("_save_tensors", &save_tensors, "tensors"_a, "path"_a, "metadata"_a, "max_shard_size"_a = 0,
        "compressed"_a = false);
  m.def("_load_tensors", &load_tensors, "path"_a, "key"_a = "");
  m.def("_file_format",
        [](const std::string& path) { return to_string(io::open_model_file(path)->format()); });
  m.def("_is_torch_name", [](const std::string& path) {
    return io::format_for_writing(path) == io::FileFormat::torch;
  });
  m.def("_is_torch_file", [](const std::string& path) {
    const io::FileFormat format = io::recognize(io::InputFile("load", path));
    return format == io::FileFormat::torch || format == io::FileFormat::torch_legacy;
  });
  m.def("_save_torch", [](nb::handle object, const std::string& path) {
    const PickleValue value = value_of(object, 0);
    Unlocked lock;
    io::save_torch(path, value);
  });
  m.def("_load_torch", [](const std::string& path) {
    PickleValue value;
    {
      Unlocked lock;
      value = io::load_torch(path);
    }
    return object_of(value);
  });
}

}  // namespace kiln::python
