// Records and recorders: kiln.nn.ParamId, kiln.nn.Record, and what kiln.record stands on.
#include <nanobind/operators.h>

#include "nn_module.h"

namespace kiln::python {

namespace {

using io::detail::RecordFormat;

// A recorder whose format and settings are known at run time.
class AnyRecorder final : public nn::Recorder {
 public:
  AnyRecorder(RecordFormat format, bool gzip, nn::PrecisionSettings settings)
      : format_(format), gzip_(gzip), settings_(std::move(settings)) {}
  using nn::Recorder::record;
  std::string extension() const override { return io::detail::record_extension(format_, gzip_); }
  nn::PrecisionSettings settings() const override { return settings_; }
  void record(const nn::RecordItem& item, const std::string& path) const override {
    io::detail::write_record(item, path, format_, gzip_);
  }
  nn::RecordItem load(const std::string& path) const override {
    return io::detail::read_record(path, format_, gzip_);
  }

 private:
  RecordFormat format_;
  bool gzip_;
  nn::PrecisionSettings settings_;
};

nb::object value_object(const nn::RecordValue& value) {
  return std::visit([](const auto& held) -> nb::object { return nb::cast(held); }, value);
}

void set_value(nn::Record& record, const std::string& name, nb::handle value) {
  if (nb::isinstance<nb::bool_>(value)) {
    record.set_value(name, nb::cast<bool>(value));
  } else if (nb::isinstance<nb::int_>(value)) {
    record.set_value(name, nb::cast<int64_t>(value));
  } else if (nb::isinstance<nb::float_>(value)) {
    record.set_value(name, nb::cast<double>(value));
  } else if (nb::isinstance<nb::str>(value)) {
    record.set_value(name, nb::cast<std::string>(value));
  } else {
    throw nb::type_error(
        concat("Record: a value is a bool, int, float or str; got ", name_of_type(value)).c_str());
  }
}

nb::dict values_of(const nn::Record& record) {
  nb::dict out;
  for (const auto& [name, value] : record.values()) out[name.c_str()] = value_object(value);
  return out;
}

nb::object entry_object(const nn::Record::Entry& entry) {
  return nb::make_tuple(entry.path, entry.id, entry.value);
}

nb::list item_entries(const nn::RecordItem& item) {
  nb::list out;
  for (const auto& entry : item.entries) {
    out.append(nb::make_tuple(entry.path, entry.id, Tensor(entry.data)));
  }
  return out;
}

void bind_param_id(nb::module_& m) {
  nb::class_<nn::ParamId>(m, "ParamId", "What tells a parameter from all others, also in files.")
      .def(nb::init<>(), "A fresh one.")
      .def(nb::init<uint64_t>(), "value"_a)
      .def_static(
          "parse", [](const std::string& text) { return nn::ParamId::parse(text); }, "text"_a,
          "The inverse of str(). ValueError.")
      .def_prop_ro("value", &nn::ParamId::value)
      .def("__str__", [](nn::ParamId id) { return to_string(id); })
      .def("__repr__", [](nn::ParamId id) { return concat("ParamId('", to_string(id), "')"); })
      .def("__hash__", [](nn::ParamId id) { return std::hash<uint64_t>()(id.value()); })
      .def(
          "__eq__", [](nn::ParamId a, nn::ParamId b) { return a == b; }, nb::is_operator());
}

void bind_records(nb::module_& m) {
  nb::class_<nn::PrecisionSettings>(m, "PrecisionSettings",
                                    "The dtypes that a record's numbers are saved in.")
      .def_ro("name", &nn::PrecisionSettings::name)
      .def_ro("float_type", &nn::PrecisionSettings::float_type)
      .def_ro("int_type", &nn::PrecisionSettings::int_type)
      .def("__repr__", [](const nn::PrecisionSettings& s) { return s.name; });
  m.attr("FullPrecisionSettings") = nn::FullPrecisionSettings::get();
  m.attr("HalfPrecisionSettings") = nn::HalfPrecisionSettings::get();
  m.attr("DoublePrecisionSettings") = nn::DoublePrecisionSettings::get();
  nb::class_<nn::RecordItem>(m, "RecordItem", "A record in the precision of its settings.")
      .def_ro("settings", &nn::RecordItem::settings)
      .def_prop_ro("entries", &item_entries, "(path, id or None, tensor) of each.");
  nb::class_<nn::Record>(m, "Record", "A module's state apart from it: tensors, ids and values.")
      .def(nb::init<>())
      .def(
          "add",
          [](nn::Record& r, std::string path, const Tensor& value, std::optional<nn::ParamId> id) {
            r.add(std::move(path), id, value.detach());
          },
          "path"_a, "value"_a, "id"_a = nb::none(), "ValueError for a path that is there already.")
      .def_prop_ro("entries",
                   [](const nn::Record& r) {
                     nb::list out;
                     for (const auto& entry : r.entries()) out.append(entry_object(entry));
                     return out;
                   })
      .def(
          "find",
          [](const nn::Record& r, const std::string& path) -> nb::object {
            const auto* entry = r.find(path);
            return entry == nullptr ? nb::none() : entry_object(*entry);
          },
          "path"_a, "(path, id, tensor), or None.")
      .def("__len__", &nn::Record::size)
      .def("__contains__",
           [](const nn::Record& r, const std::string& path) { return r.find(path) != nullptr; })
      .def("set_value", &set_value, "name"_a, "value"_a, "Notes a bool, int, float or str.")
      .def_prop_ro("values", &values_of)
      .def(
          "merge",
          [](nn::Record& r, const std::string& prefix, const nn::Record& other) {
            r.merge(prefix, other);
          },
          "prefix"_a, "other"_a, "Everything of the other, its names after 'prefix.'.")
      .def(
          "part", [](const nn::Record& r, const std::string& prefix) { return r.part(prefix); },
          "prefix"_a)
      .def(
          "into_item",
          [](const nn::Record& r, const nn::PrecisionSettings& s) { return r.into_item(s); },
          "settings"_a = nn::FullPrecisionSettings::get())
      .def_static(
          "from_item",
          [](const nn::RecordItem& item, const Device& device) {
            return nn::Record::from_item(item, device);
          },
          "item"_a, "device"_a = Device());
}

void bind_recorders(nb::module_& m) {
  nb::enum_<RecordFormat>(m, "_RecordFormat")
      .value("safetensors", RecordFormat::safetensors)
      .value("message_pack", RecordFormat::message_pack)
      .value("cbor", RecordFormat::cbor)
      .value("json", RecordFormat::json)
      .value("pretty_json", RecordFormat::pretty_json);
  nb::class_<AnyRecorder>(m, "_Recorder")
      .def(nb::init<RecordFormat, bool, nn::PrecisionSettings>())
      .def_prop_ro("extension", &AnyRecorder::extension)
      .def_prop_ro("settings", &AnyRecorder::settings)
      .def("record", [](const AnyRecorder& r, const nn::Record& record,
                        const std::string& path) { r.record(record, path); })
      .def("load", [](const AnyRecorder& r, const std::string& path, const Device& device) {
        return r.load_record(path, device);
      });
  m.def("_record_to_bytes", [](const nn::Record& record, const nn::PrecisionSettings& settings) {
    const std::vector<std::byte> bytes = io::record_to_bytes(record.into_item(settings));
    return nb::bytes(bytes.data(), bytes.size());
  });
  m.def("_record_from_bytes", [](const nb::bytes& bytes, const Device& device) {
    const auto* data = static_cast<const std::byte*>(bytes.data());
    return nn::Record::from_item(io::record_from_bytes({data, bytes.size()}), device);
  });
}

}  // namespace

const nn::Recorder& recorder_of(nb::handle object) {
  if (nb::hasattr(object, "_recorder") && nb::isinstance<AnyRecorder>(object.attr("_recorder"))) {
    return nb::cast<AnyRecorder&>(nb::object(object.attr("_recorder")));
  }
  throw nb::type_error(
      concat("expected a recorder of kiln.record; got ", name_of_type(object)).c_str());
}

void bind_param_records(nb::module_& m) {
  bind_param_id(m);
  bind_records(m);
  bind_recorders(m);
  m.def("_into_record",
        [](nb::handle module) { return module_arg("into_record", module).into_record(); });
  m.def("_load_record", [](nb::handle module, const nn::Record& record) {
    PyModule& own = module_arg("load_record", module);
    own.load_record(record);
    sync_tree(own);
  });
  m.def("_num_params",
        [](nb::handle module) { return module_arg("num_params", module).num_params(); });
  m.def("_param_id", [](nb::handle module, const std::string& path) {
    return module_arg("param_id", module).get_parameter(path).id();
  });
}

}  // namespace kiln::python
