// kiln.nn.Param: a parameter that may wait with its value. See kiln/nn/param.h.
#include "nn_module.h"

namespace kiln::python {

namespace {

using Param = nn::Param<Tensor>;

// A Python function of a tensor. It runs under the interpreter's lock, which whoever waits for the
// parameter's value has given up: see Note [The interpreter's lock].
std::function<Tensor(Tensor)> mapper_of(nb::object function) {
  return [held = HeldObject(std::move(function))](const Tensor& x) {
    Locked lock;
    return tensor_arg("Param", held.get()(nb::cast(x)));
  };
}

Param::InitFn init_of(nb::object function) {
  return [held = HeldObject(std::move(function))](const Device& device, bool require_grad) {
    Locked lock;
    Tensor x = tensor_arg("Param", held.get()(nb::cast(device), require_grad));
    if (!x.is_leaf()) x = x.detach();
    if (x.requires_grad() != require_grad) x.requires_grad_(require_grad);
    return x;
  };
}

Tensor param_value(const Param& param) {
  Unlocked lock;
  return param.val();
}

// Without the interpreter's lock, so that a parameter may be made meanwhile.
template <class F>
auto unlocked(F f) {
  Unlocked lock;
  return f();
}

void bind_access(nb::class_<Param>& c) {
  c.def("val", &param_value, "The value, made now if it has to be.")
      .def_prop_ro("data", [](const Param& p) { return param_value(p).variable_data(); })
      .def(
          "into_value",
          [](Param& p) { return unlocked([&] { return std::move(p).into_value(); }); },
          "The value; the Param holds none from then on.")
      .def(
          "consume",
          [](Param& p) {
            auto [id, value, mapper] = unlocked([&] { return std::move(p).consume(); });
            return nb::make_tuple(id, std::move(value), std::move(mapper));
          },
          "(id, value, mapper); the Param holds none from then on.")
      .def_prop_rw("id", &Param::id, &Param::set_id)
      .def_prop_ro("mapper", &Param::mapper)
      .def(
          "visit", [](nb::object self, nb::object visitor) { visitor.attr("_visit")("", self); },
          "visitor"_a, "Shows the parameter to a ModuleVisitor, under the name ''.")
      .def_prop_ro("is_initialized", &Param::is_initialized)
      .def_prop_ro("defined", &Param::defined)
      .def("lazy_device", &Param::lazy_device, "Where the value is, or will be made.")
      .def("lazy_shape", [](const Param& p) { return size_object(p.lazy_shape()); })
      .def("lazy_dtype", &Param::lazy_dtype, "None when nobody said.")
      .def("lazy_is_require_grad", &Param::lazy_is_require_grad)
      .def("num_params", &Param::num_params)
      .def("devices", &Param::devices)
      .def("collect_devices", &Param::collect_devices, "devices"_a)
      .def("__str__", [](const Param& p) { return display(p); })
      .def("__repr__", [](const Param& p) { return debug_string(p); })
      .def("__copy__", [](const Param& p) { return Param(p); })
      .def("__deepcopy__", [](const Param& p, const nb::handle&) { return Param(p); })
      // Whoever writes a file gets the value: how it is made is a function.
      .def("__reduce__",
           [](const Param& p) {
             const nb::object make = nb::module_::import_("kiln._C").attr("_param_of");
             return nb::make_tuple(make, nb::make_tuple(p.id().value(), param_value(p)));
           })
      .def(
          "clone", [](const Param& p) { return Param(p); },
          "An independent one; what is lazy stays lazy.");
}

void bind_changes(nb::class_<Param>& c) {
  constexpr auto self = nb::rv_policy::none;
  c.def(
       "map",
       [](nb::object self, nb::object f) {
         Param& p = nb::cast<Param&>(self);
         if (nb::hasattr(f, "map_float")) return f.attr("_map_param")(self);
         const auto map = mapper_of(std::move(f));
         unlocked([&] { p.map(map); });
         return self;
       },
       "f"_a, "Replaces the value by f(value); or by what a ModuleMapper makes of it.")
      .def(
          "init_mapper",
          [](Param& p, nb::object f) -> Param& {
            const auto map = mapper_of(std::move(f));
            unlocked([&] { p.init_mapper(map); });
            return p;
          },
          "f"_a, self, "Applies f to the value: now, or right after it is made.")
      .def(
          "load_mapper",
          [](Param& p, nb::object f) -> Param& { return p.load_mapper(mapper_of(std::move(f))); },
          "f"_a, self, "What happens to a value on its way out of a record.")
      .def(
          "save_mapper",
          [](Param& p, nb::object f) -> Param& { return p.save_mapper(mapper_of(std::move(f))); },
          "f"_a, self, "What happens to the value on its way into a record.")
      .def(
          "set_require_grad",
          [](Param& p, bool value) -> Param& { return p.set_require_grad(value); },
          "require_grad"_a, self)
      .def(
          "no_grad", [](Param& p) -> Param& { return p.no_grad(); }, self)
      .def(
          "replace", [](Param& p, const Tensor& value) { p.replace(value); }, "value"_a)
      .def(
          "to_device", [](Param& p, const Device& device) -> Param& { return p.to_device(device); },
          "device"_a, self)
      .def(
          "fork", [](Param& p, const Device& device) -> Param& { return p.fork(device); },
          "device"_a, self)
      .def("valid", [](const Param& p) { return unlocked([&] { return p.valid(); }); })
      .def("from_valid", [](const Param& p) { return unlocked([&] { return p.from_valid(); }); });
}

void bind_param_state(nb::class_<Param>& c) {
  c.def("into_record", [](const Param& p) { return unlocked([&] { return p.into_record(); }); })
      .def(
          "load_record",
          [](Param& p, const Param& record) -> Param& {
            unlocked([&] { p.load_record(record); });
            return p;
          },
          "record"_a, nb::rv_policy::none)
      .def("transform_for_save",
           [](const Param& p) { return unlocked([&] { return p.transform_for_save(); }); })
      .def(
          "transform_for_load",
          [](const Param& p, const Tensor& value, nn::ParamId id) {
            return unlocked([&] { return p.transform_for_load(value, id); });
          },
          "value"_a, "id"_a)
      .def(
          "into_item",
          [](const Param& p, const nn::PrecisionSettings& s) {
            return unlocked([&] { return p.into_item(s); });
          },
          "settings"_a = nn::FullPrecisionSettings::get())
      .def(
          "save_file",
          [](const Param& p, const std::string& path, nb::handle recorder) {
            const nn::Recorder& to = recorder_of(recorder);
            unlocked([&] { p.save_file(path, to); });
          },
          "path"_a, "recorder"_a)
      .def(
          "load_file",
          [](Param& p, const std::string& path, nb::handle recorder,
             std::optional<Device> device) -> Param& {
            const nn::Recorder& from = recorder_of(recorder);
            unlocked([&] { p.load_file(path, from, device); });
            return p;
          },
          "path"_a, "recorder"_a, "device"_a = nb::none(), nb::rv_policy::none)
      .def_static(
          "from_item",
          [](const nn::RecordItem& item, const Device& device) {
            return Param::from_item(item, device);
          },
          "item"_a, "device"_a = Device());
}

}  // namespace

void bind_param(nb::module_& m) {
  using Mapper = nn::ParamMapper<Tensor>;
  nb::class_<Mapper>(m, "ParamMapper", "What happens to a value on its way in and out of a record.")
      .def(nb::init<>())
      .def(
          "on_load",
          [](const Mapper& f, const Tensor& x) { return unlocked([&] { return f.on_load(x); }); },
          "value"_a)
      .def(
          "on_save",
          [](const Mapper& f, const Tensor& x) { return unlocked([&] { return f.on_save(x); }); },
          "value"_a)
      .def_prop_ro("has_load", &Mapper::has_load)
      .def_prop_ro("has_save", &Mapper::has_save);
  nb::class_<Param> c(m, "Param",
                      "A parameter that may wait with its value. As an attribute of a module it is "
                      "a kiln.nn.Parameter, made at the first access.");
  c.def(nb::init<>())
      .def_static(
          "initialized", [](nn::ParamId id, const Tensor& x) { return Param::initialized(id, x); },
          "id"_a, "value"_a)
      .def_static(
          "uninitialized",
          [](nn::ParamId id, nb::object init, const Device& device, bool require_grad,
             const Shape& shape, std::optional<DType> dtype) {
            return Param::uninitialized(id, init_of(std::move(init)), device, require_grad, shape,
                                        dtype);
          },
          "id"_a, "init"_a, "device"_a = Device(), "is_require_grad"_a = true, nb::kw_only(),
          "shape"_a, "dtype"_a = nb::none(),
          "One whose value init(device, require_grad) makes at the first access.")
      .def_static(
          "from_tensor", [](const Tensor& x) { return Param::from_tensor(x); }, "value"_a)
      .def_static(
          "from_data",
          [](nb::object data, const Device& device) {
            const nb::object make = nb::module_::import_("kiln").attr("tensor");
            return Param::from_tensor(
                tensor_arg("Param", make(data, "device"_a = nb::cast(device))));
          },
          "data"_a, "device"_a = Device(), "From numbers, nested lists or an array.")
      .def_static(
          "from_mapped_value",
          [](nn::ParamId id, const Tensor& value, const nn::ParamMapper<Tensor>& mapper) {
            return Param::from_mapped_value(id, value, mapper);
          },
          "id"_a, "value"_a, "mapper"_a);
  m.def("_param_of", [](uint64_t id, const Tensor& value) {
    return Param::initialized(nn::ParamId(id), value);
  });
  bind_access(c);
  bind_changes(c);
  bind_param_state(c);
}

}  // namespace kiln::python
